//! From the events of a trace to entries.

use super::feed::Feed;
use engine::heap::classes::Probe;
use engine::heap::{Consumer, Entry, Kind, What};
use engine::pipeline::world::World;
use events::names::Names;
use events::traces::beside;
use events::{Class, Event};
use std::collections::HashMap;

/// This many entries are handed on at once.
const MANY: usize = 4096;

/// Knows which program is in which process.
#[derive(Default)]
pub struct FromEvents {
    /// Numbers of programs by process id.
    programs: HashMap<u32, u32>,
    /// What the number of the next one is.
    next: u32,
    /// Entries of one program that wait.
    waiting: (u32, Vec<Entry>),
    /// Classes of events of the heap, by their ids.
    probes: HashMap<u16, Option<Probe>>,
    /// Stacks whose frames were handed on, by program.
    told: std::collections::HashSet<(u32, u64)>,
}

/// The probe with this name.
fn probe(name: &str) -> Option<Probe> {
    use Probe::{Child, Fork, Free, Malloc, Mmap, Munmap};
    [Malloc, Free, Mmap, Munmap, Fork, Child].into_iter().find(|p| p.name() == name)
}

impl FromEvents {
    /// Hands on what waits.
    pub fn settle(&mut self, feed: &mut Feed) {
        let (program, entries) = &mut self.waiting;
        if !entries.is_empty() {
            feed.entries(*program, entries);
            entries.clear();
        }
    }

    /// Learns which programs end.
    pub fn observe(&mut self, ev: &Event<'_>, feed: &mut Feed) {
        if ev.schema.class != Class::Process {
            return;
        }
        let executes = match ev.schema.name {
            "exec" => true,
            "exit" if ev.pid() == ev.tid() => false,
            _ => return,
        };
        self.settle(feed);
        if let Some(program) = self.programs.remove(&ev.pid()) {
            feed.ended(program, executes);
        }
    }

    fn program(&mut self, ev: &Event<'_>, world: &World, feed: &mut Feed) -> u32 {
        if let Some(program) = self.programs.get(&ev.pid()) {
            return *program;
        }
        let program = self.next;
        self.next += 1;
        self.programs.insert(ev.pid(), program);
        feed.began(program, ev.pid(), world.called(ev.pid()).as_bytes());
        program
    }

    /// Takes an event, if it is one of the heap.
    pub fn event(&mut self, ev: &Event<'_>, world: &World, feed: &mut Feed) {
        let found = self.probes.entry(ev.schema.id).or_insert_with(|| probe(&ev.schema.probe()));
        let Some(probe) = *found else { return };
        let program = self.program(ev, world, feed);
        if program != self.waiting.0 || self.waiting.1.len() >= MANY {
            self.settle(feed);
            self.waiting.0 = program;
        }
        let (address, size) = (ev.value_of("address"), ev.value_of("size"));
        let alloc = |kind, stack| What::Alloc { kind, address, size, stack };
        let mut stack = || {
            let stack = ev.value_of("ustack");
            if stack != 0
                && self.told.insert((program, stack))
                && let Some(known) = world.stack(stack)
            {
                feed.stack(program, ev.time(), stack, known.ended, known.frames);
            }
            stack
        };
        let what = match probe {
            Probe::Malloc => alloc(Kind::Malloc, stack()),
            Probe::Mmap => alloc(Kind::Mmap, stack()),
            Probe::Free => What::Free { address },
            Probe::Munmap => What::Unmap { address, len: size },
            Probe::Fork => What::Fork { number: ev.value_of("number") },
            Probe::Child => {
                let parent =
                    self.programs.get(&beside(ev.pid(), ev.value_of("parent") as u32)).copied().unwrap_or(u32::MAX);
                What::Child { parent, number: ev.value_of("number") }
            }
        };
        self.waiting.1.push(Entry { time: ev.time(), tid: ev.tid(), what });
    }
}
