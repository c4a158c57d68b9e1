//! Orders to a running session, carried out.

use super::attach_pids::Attacher;
use super::{Kernel, filtered, in_flight, switch};
use bpf::capture_row::UNFILTERED;
use engine::control::{Enabled, Order, State, Stream};
use engine::error::{Error, Result};
use engine::own_events;
use engine::request::select::Calls;
use engine::target::Target;
use events::generated::{P_PAUSED, P_RESUMED};
use events::{Schema, StreamId};
use std::collections::HashSet;
use std::os::fd::AsRawFd;
use sys::time;

impl Kernel {
    /// Carries an order out.
    pub(super) fn obey(&mut self, order: Order) -> Result<State> {
        match order {
            Order::Status => {}
            Order::Stop => {
                self.held.stopped = true;
                self.switch();
                self.mark(&P_PAUSED);
            }
            Order::Start => {
                self.mark(&P_RESUMED);
                self.held.stopped = false;
                self.switch();
            }
            Order::Enable(Enabled { all, calls, prepared, .. }) => {
                if let Some((seen, evaluated)) = calls {
                    if let Some(rows) = &self.loaded.rows_of_calls {
                        switch::mark(rows, &evaluated, UNFILTERED);
                        // Calls that are wanted no more go first, so that no moment has both selections.
                        switch::select(rows, &seen);
                    }
                    self.held.calls = seen;
                    self.switch();
                }
                prepared.into_iter().for_each(|probe| self.join(probe));
                self.leave(&all);
            }
            Order::Attach(pid) => self.attach(pid)?,
            Order::Detach(pid) => self.let_go_of(pid)?,
            // Programs of the kernel are in nobody's way.
            Order::Lend(_) | Order::TakeBack(_) | Order::TakeOut => {}
        }
        Ok(self.state())
    }

    /// Traces a process that runs.
    fn attach(&mut self, pid: i32) -> Result<()> {
        let targets = Target::Pids(vec![pid]);
        engine::rights::of_targets(&targets)?;
        self.loaded.watch_stacks(pid);
        let none = Calls::none();
        let attacher = Attacher {
            tasks: &self.loaded.tasks,
            seen: if self.held.stopped { &none } else { &self.held.calls },
            limits: self.held.limits,
            adopter: self.adopter.as_ref(),
            no_entry: self.no_entry,
        };
        let mut alive = HashSet::new();
        let attached = attacher.attach(pid, &mut alive, &mut self.merge);
        alive.retain(|tid| !self.alive.contains(tid));
        self.attached += alive.len() as i64;
        self.alive.extend(alive);
        // What has become another program since it was asked was not seen by the programs then.
        let checked = attached.and_then(|calls| engine::rights::of_targets(&targets).map(|()| calls));
        match checked {
            Ok(calls) => {
                self.notice_found(calls);
                Ok(())
            }
            Err(e) => {
                let _ = self.let_go_of(pid);
                Err(e)
            }
        }
    }

    /// Traces a process no more.
    fn let_go_of(&mut self, pid: i32) -> Result<()> {
        const ESRCH: i32 = 3;
        let cannot = |why: String, todo: &str| Error::failed(format!("-p -{pid}"), why, todo);
        let own: HashSet<u32> = sys::proc::threads(pid).unwrap_or_default().into_iter().map(|t| t as u32).collect();
        self.forget_ended();
        if self.alive.iter().all(|tid| own.contains(tid)) {
            return Err(cannot("no other process is traced".into(), "to end the session: trapline session end"));
        }
        let mut some = false;
        loop {
            let threads = sys::proc::threads(pid).unwrap_or_default();
            let calls = self.calls_in_flight();
            let mut gone = HashSet::new();
            for tid in threads {
                let fd = match sys::process::pidfd(tid, tid != pid) {
                    Ok(fd) => fd,
                    Err(e) if e.raw_os_error() == Some(ESRCH) => continue,
                    Err(e) => {
                        return Err(cannot(format!("thread {tid}: {e}"), "Linux 6.9 can let go of single threads"));
                    }
                };
                match self.loaded.tasks.delete(&fd.as_raw_fd().to_le_bytes()) {
                    Ok(true) => drop(gone.insert(tid as u32)),
                    Ok(false) => {}
                    Err(e) if e.raw_os_error() == Some(ESRCH) => {}
                    Err(e) => return Err(cannot(e.to_string(), "try again")),
                }
            }
            // What a thread that is not traced creates is not traced either: when a round finds nobody, nobody is left.
            if gone.is_empty() {
                let none = || cannot("it is not traced".into(), "see 'trapline session status'");
                return if some { Ok(()) } else { Err(none()) };
            }
            some = true;
            // Has those that were let go find that out, before it is said of them.
            if let Some(iterator) = &self.loaded.iterator {
                let _ = iterator.read(0, 0);
            }
            in_flight::leave(&calls, &gone, &mut self.merge);
            self.attached -= gone.len() as i64;
            self.alive.retain(|tid| !gone.contains(tid));
        }
    }

    /// The event that reports that the session was stopped or resumed.
    pub(super) fn mark(&mut self, schema: &'static Schema) {
        let own = sys::process::own_pid() as u32;
        self.merge.push(&own_events::process(schema, time::monotonic(), (own, own), &[], &[]));
    }

    fn switch(&self) {
        self.loaded.switch(switch::word(self.held.stopped, &self.held.calls));
    }

    fn state(&self) -> State {
        let missed = self.attribution.count(&self.loaded.misses());
        let fill = |stream: StreamId| self.loaded.ring_of(stream).map_or((0, 0), |r| (r.available(), r.size() as u64));
        let streams = self.loaded.streams().into_iter().map(|stream| {
            let (used, size) = fill(stream);
            Stream { name: stream.to_string(), used, size, dropped: self.loaded.dropped_on(stream) }
        });
        State {
            streams: streams.collect(),
            losses: self.loaded.losses(),
            filtered: filtered::count(&self.loaded),
            missed,
            enablings: self.loaded.probe_counts(),
            running: self.alive.iter().map(|tid| *tid as i32).collect(),
            ..State::default()
        }
    }
}
