//! A state for each thread of a stream in which threads take turns.

use super::Thread;
use std::collections::HashMap;

/// A thread's identity, kept.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
}

impl Identity {
    pub fn thread(&self) -> Thread<'_> {
        Thread { pid: self.pid, tid: self.tid, comm: &self.comm }
    }
}

/// The states.
#[derive(Debug, Default)]
pub struct Threads<S> {
    all: Vec<(Identity, S)>,
    by_tid: HashMap<u32, usize>,
    /// Thread and index of the last one.
    last: Option<(u32, usize)>,
}

impl<S: Default> Threads<S> {
    pub fn new() -> Threads<S> {
        Threads { all: Vec::new(), by_tid: HashMap::new(), last: None }
    }

    /// The index of a thread; whether it is new. What is known of its identity is renewed; its name stays where none comes.
    pub fn index(&mut self, thread: Thread<'_>) -> (usize, bool) {
        if let Some((tid, index)) = self.last
            && tid == thread.tid
            && self.all[index].0.comm == thread.comm
            && self.all[index].0.pid == thread.pid
        {
            return (index, false);
        }
        let next = self.all.len();
        let index = *self.by_tid.entry(thread.tid).or_insert(next);
        if index == next {
            self.all.push((Identity::default(), S::default()));
        }
        let identity = &mut self.all[index].0;
        (identity.pid, identity.tid) = (thread.pid, thread.tid);
        if !thread.comm.is_empty() {
            thread.comm.clone_into(&mut identity.comm);
        }
        self.last = Some((thread.tid, index));
        (index, index == next)
    }

    pub fn at(&mut self, index: usize) -> (&Identity, &mut S) {
        let (identity, state) = &mut self.all[index];
        (identity, state)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Identity, S)> {
        self.all.iter()
    }
}
