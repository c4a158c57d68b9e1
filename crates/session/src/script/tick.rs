//! A moment that is no event: `begin`, `end`, an interval; or an object of the kernel.

use events::traces::Origin;
use kernel::peek::Peek;
use lang::script::ir::{Leaf, What};
use lang::script::run::{self, Datum, Memory};
use lang::script::types::Space;
use std::cell::OnceCell;

/// What an interval sees.
pub struct Tick<'a> {
    pub leaves: &'a [Leaf],
    pub time: u64,
    pub started: u64,
    pub probe: String,
    pub comm: &'a [u8],
    pub own: (u32, u32, u32),
    pub child: Option<u32>,
    pub past: bool,
    pub origin: &'a Origin,
    /// Reads the kernel's memory, for root; loaded when it is wanted.
    pub peek: Option<&'a OnceCell<Option<Peek>>>,
    /// What is known of an object.
    pub words: &'a [(&'a str, u64)],
}

impl run::Event for Tick<'_> {
    fn leaf(&self, index: usize, _: &Leaf) -> Option<Datum<'_>> {
        let int = |n: u64| Some(Datum::Int(n as i64));
        match &self.leaves.get(index)?.what {
            What::Arg(name) => int(self.words.iter().find(|w| w.0 == name)?.1),
            What::Value("nsecs") => int(self.time),
            What::Kind("nsecs", clock) if clock == "monotonic" => int(self.time),
            What::Value("elapsed") => int(self.time.saturating_sub(self.started)),
            What::Value("probe") => Some(Datum::Text(self.probe.as_bytes(), false)),
            What::Value("probetype") => Some(Datum::Text(self.probe.split(':').next()?.as_bytes(), false)),
            What::Value("pid" | "tid") => int(self.own.0.into()),
            What::Value("uid" | "username") => int(self.own.1.into()),
            What::Value("gid") => int(self.own.2.into()),
            What::Value("host") => Some(Datum::Text(self.origin.host.as_bytes(), false)),
            What::Value("trace") => Some(Datum::Text(self.origin.trace.as_bytes(), false)),
            What::Value("comm") => Some(Datum::Text(self.comm, false)),
            What::Value("cpu") => int(u64::from(sys::process::own_cpu()?)),
            What::Value("cpid") => int(self.child?.into()),
            What::Value("curtask") => int(self.reader()?.task()?),
            // No program runs.
            What::Value("ctx") => int(0),
            What::Value("numaid") if !self.past => int(sys::process::own_node()?.into()),
            What::Value("cgroup") if !self.past => int(sys::proc::own_cgroup()?),
            What::Value("ncpus") => int(std::thread::available_parallelism().map_or(1, |n| n.get() as u64)),
            _ => None,
        }
    }

    fn memory(&self, space: Space, address: u64, length: usize) -> Memory {
        self.peeked(space, |peek| peek.bytes(address, length))
    }

    fn text(&self, space: Space, address: u64, most: usize) -> Memory {
        self.peeked(space, |peek| peek.text(address, most))
    }
}

impl Tick<'_> {
    fn reader(&self) -> Option<&Peek> {
        self.peek?.get_or_init(|| Peek::load().ok()).as_ref()
    }

    /// What is read of the kernel's memory.
    fn peeked(&self, space: Space, read: impl FnOnce(&Peek) -> Option<Vec<u8>>) -> Memory {
        match Some(space).filter(|space| *space == Space::Kernel).and_then(|_| self.reader()) {
            Some(peek) => read(peek).map_or(Memory::Fault, Memory::Bytes),
            None => Memory::Unknown,
        }
    }
}
