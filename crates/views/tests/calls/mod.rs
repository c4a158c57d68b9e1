//! Calls for tests, written as text.

#![allow(dead_code, reason = "no test uses all of them")]

use std::collections::HashMap;
use views::calls::{CallView, Functions, Step, SystemCall, Thread, What};

/// Functions with numbers from 1, and their modules.
#[derive(Default)]
pub struct Names {
    all: Vec<(String, String)>,
    ids: HashMap<String, u32>,
}

impl Names {
    /// The number of a function, `name` or `name@module`.
    pub fn id(&mut self, word: &str) -> u32 {
        let all = &mut self.all;
        *self.ids.entry(word.to_owned()).or_insert_with(|| {
            let (name, module) = word.split_once('@').unwrap_or((word, "/usr/bin/app"));
            all.push((name.to_owned(), module.to_owned()));
            all.len() as u32
        })
    }
}

impl Functions for Names {
    fn name(&self, number: u32) -> Option<&str> {
        self.all.get((number as usize).checked_sub(1)?).map(|(n, _)| n.as_str())
    }

    fn module(&self, number: u32) -> &str {
        (number as usize).checked_sub(1).and_then(|i| self.all.get(i)).map_or("", |(_, m)| m)
    }
}

/// What a view is told.
pub enum Event {
    Step(u32, Step),
    SystemCall(u32, u64, u64, String),
}

/// Events of threads in the order of their times.
#[derive(Default)]
pub struct Script {
    pub names: Names,
    pub events: Vec<Event>,
}

/// Reads `TID: TIME WORD TIME WORD …`, a thread each line. Words are `+f` (entry), `-f` (exit), `?N` (N records missing), `!` (the end of the
/// thread), `>text` (a system call without spaces that has taken 10 ns).
pub fn script(text: &str) -> Script {
    let mut names = Names::default();
    let mut events = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (tid, rest) = line.split_once(':').expect("a thread");
        let tid: u32 = tid.parse().expect("a thread's number");
        let mut words = rest.split_whitespace();
        while let Some(time) = words.next() {
            let time: u64 = time.parse().expect("a time");
            let word = words.next().expect("a word");
            let (kind, name) = word.split_at(1);
            let what = match kind {
                "+" => What::Entry(names.id(name)),
                "-" => What::Exit(names.id(name)),
                "?" => What::Gap { dropped: name.parse().expect("a number") },
                "!" => What::End,
                _ => {
                    events.push((time, Event::SystemCall(tid, time - 10, time, name.to_owned())));
                    continue;
                }
            };
            events.push((time, Event::Step(tid, Step { time, what })));
        }
    }
    events.sort_by_key(|(time, _)| *time);
    Script { names, events: events.into_iter().map(|(_, e)| e).collect() }
}

pub fn thread(tid: u32) -> Thread<'static> {
    Thread { pid: 4711, tid, comm: "app" }
}

impl Script {
    /// What a view shows.
    pub fn shown(&self, mut view: impl CallView) -> String {
        String::from_utf8(self.bytes(&mut view)).expect("UTF-8")
    }

    pub fn bytes(&self, view: &mut dyn CallView) -> Vec<u8> {
        let mut out = Vec::new();
        for event in &self.events {
            match event {
                Event::Step(tid, step) => view.step(thread(*tid), *step, &self.names, &mut out),
                Event::SystemCall(tid, start, end, text) => {
                    let name = text.split('(').next().unwrap_or_default();
                    let call = SystemCall { start: *start, end: *end, name, text };
                    view.system_call(thread(*tid), &call, &self.names, &mut out);
                }
            }
        }
        view.end(&self.names, &mut out);
        out
    }

    /// The steps of each thread.
    pub fn threads(&self) -> Vec<(u32, Vec<Step>)> {
        let mut all: Vec<(u32, Vec<Step>)> = Vec::new();
        for event in &self.events {
            let Event::Step(tid, step) = event else { continue };
            match all.iter_mut().find(|(t, _)| t == tid) {
                Some((_, steps)) => steps.push(*step),
                None => all.push((*tid, vec![*step])),
            }
        }
        all
    }
}
