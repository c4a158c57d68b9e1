//! Streams: sequences of events in order of time. Each has a number of its own in a trace, and a file.

use std::fmt;

/// Whose events a stream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of a processor.
    Cpu(u32),
    /// Those of a thread.
    Thread(u32),
    /// Those of a process.
    Process(u32),
    /// Those of the whole session.
    Session(SessionStream),
}

/// Which events of the whole session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStream {
    /// What processes have mapped.
    Maps,
    /// trapline's own events: all events under ptrace; notices.
    Tracer,
    /// Stacks, to which other events refer.
    Stacks,
    /// Functions, to which function records refer.
    Functions,
}

/// A stream: whose events, and of which enabling.
///
/// Streams are in the order of their numbers: those of processors (by enabling, then processor), threads, processes, then those of
/// the session. Events of one moment are shown in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

/// Bits of a number that say which scope it is.
const SCOPE: u32 = 56;
/// Bits of a number that say which enabling it is of.
const ENABLING: u32 = 32;

impl StreamId {
    /// What processes have mapped.
    pub const MAPS: StreamId = StreamId(3 << SCOPE);
    /// trapline's own events.
    pub const TRACER: StreamId = StreamId(3 << SCOPE | 1);
    /// Stacks, to which other events refer.
    pub const STACKS: StreamId = StreamId(3 << SCOPE | 2);
    /// Stacks that processes record themselves. They come at other times than those of [`StreamId::STACKS`], and the times of a stream
    /// rise: in one stream, a stack would be later than the events that refer to it.
    pub const OWN_STACKS: StreamId = StreamId(3 << SCOPE | 2 << ENABLING | 2);
    /// Functions, to which function records refer.
    pub const FUNCTIONS: StreamId = StreamId(3 << SCOPE | 3);

    /// The stream of `scope` that belongs to an enabling: the n-th probe that is no system call (from 1), or 0 for calls and what
    /// belongs to no enabling.
    pub const fn new(scope: Scope, enabling: u16) -> StreamId {
        let (kind, number) = match scope {
            Scope::Cpu(n) => (0, n),
            Scope::Thread(tid) => (1, tid),
            Scope::Process(pid) => (2, pid),
            Scope::Session(SessionStream::Maps) => (3, 0),
            Scope::Session(SessionStream::Tracer) => (3, 1),
            Scope::Session(SessionStream::Stacks) => (3, 2),
            Scope::Session(SessionStream::Functions) => (3, 3),
        };
        StreamId(kind << SCOPE | (enabling as u64) << ENABLING | number as u64)
    }

    /// The calls of a processor.
    pub const fn cpu(n: u32) -> StreamId {
        StreamId::new(Scope::Cpu(n), 0)
    }

    /// The stream with this number; `None` where the number is invalid.
    pub fn from_number(number: u64) -> Option<StreamId> {
        StreamId::from_parts((number >> SCOPE) as u16, (number >> ENABLING) as u32 & 0xff_ffff, number as u32)
    }

    /// The stream of a scope by its [`StreamId::kind`], an enabling and the number of a processor, thread or process.
    pub fn from_parts(kind: u16, enabling: u32, number: u32) -> Option<StreamId> {
        let scope = match (kind, number) {
            (0, n) => Scope::Cpu(n),
            (1, tid) => Scope::Thread(tid),
            (2, pid) => Scope::Process(pid),
            (3, 0) => Scope::Session(SessionStream::Maps),
            (3, 1) => Scope::Session(SessionStream::Tracer),
            (3, 2) => Scope::Session(SessionStream::Stacks),
            (3, 3) => Scope::Session(SessionStream::Functions),
            _ => return None,
        };
        Some(StreamId::new(scope, u16::try_from(enabling).ok()?))
    }

    /// Its number, which identifies it in a trace.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Which scope it is: 0 processor, 1 thread, 2 process, 3 session.
    pub const fn kind(self) -> u16 {
        (self.0 >> SCOPE) as u16
    }

    /// The number of its processor, thread or process; of the session's streams which it is.
    pub const fn scope_id(self) -> u32 {
        self.0 as u32
    }

    /// Its enabling.
    pub const fn enabling(self) -> u16 {
        (self.0 >> ENABLING) as u16
    }

    /// Whether other events cannot be understood without its events, however old these are.
    pub const fn is_needed(self) -> bool {
        use SessionStream::{Functions, Maps, Stacks};
        matches!(self.scope(), Scope::Session(Maps | Stacks | Functions))
    }

    /// Whose events it has.
    pub const fn scope(self) -> Scope {
        match (self.kind(), self.scope_id()) {
            (0, n) => Scope::Cpu(n),
            (1, tid) => Scope::Thread(tid),
            (2, pid) => Scope::Process(pid),
            (_, 0) => Scope::Session(SessionStream::Maps),
            (_, 1) => Scope::Session(SessionStream::Tracer),
            (_, 2) => Scope::Session(SessionStream::Stacks),
            (_, _) => Scope::Session(SessionStream::Functions),
        }
    }
}

/// The name of its file.
impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.enabling() > 0 {
            write!(f, "probe_{}_", self.enabling())?;
        }
        match self.scope() {
            Scope::Cpu(n) => write!(f, "cpu_{n}"),
            Scope::Thread(tid) => write!(f, "thread_{tid}"),
            Scope::Process(pid) => write!(f, "process_{pid}"),
            Scope::Session(SessionStream::Maps) => f.write_str("maps"),
            Scope::Session(SessionStream::Tracer) => f.write_str("tracer"),
            Scope::Session(SessionStream::Stacks) => f.write_str("stacks"),
            Scope::Session(SessionStream::Functions) => f.write_str("functions"),
        }
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_leads_back_and_orders_streams() {
        let new = StreamId::new;
        let all = [
            (StreamId::cpu(0), "cpu_0"),
            (StreamId::cpu(u32::MAX), "cpu_4294967295"),
            (new(Scope::Cpu(3), 1), "probe_1_cpu_3"),
            (new(Scope::Cpu(0), u16::MAX), "probe_65535_cpu_0"),
            (new(Scope::Thread(7), 0), "thread_7"),
            (new(Scope::Thread(u32::MAX), 2), "probe_2_thread_4294967295"),
            (new(Scope::Process(1), 0), "process_1"),
            (StreamId::MAPS, "maps"),
            (StreamId::TRACER, "tracer"),
            (StreamId::STACKS, "stacks"),
            (StreamId::FUNCTIONS, "functions"),
            (StreamId::OWN_STACKS, "probe_2_stacks"),
        ];
        assert!(all.is_sorted_by_key(|s| s.0));
        for (id, name) in all {
            assert_eq!((StreamId::from_number(id.number()), id.to_string().as_str()), (Some(id), name));
            assert_eq!(StreamId::new(id.scope(), id.enabling()), id);
            assert_eq!(StreamId::from_parts(id.kind(), id.enabling().into(), id.scope_id()), Some(id));
        }
        for bad in [4 << SCOPE, u64::MAX, 3 << SCOPE | 4, 1 << 48] {
            assert_eq!(StreamId::from_number(bad), None, "{bad:#x}");
        }
    }
}
