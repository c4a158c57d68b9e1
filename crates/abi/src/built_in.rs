//! The built-in tracers: a file and a row of the table each. The agent calls what a row's file decides; trapline takes names, options,
//! stubs and help from the rows.
//!
//! ```text
//!  built_in! { Kind = file::Tracer } ─┬─► Kind, BUILT_IN                 names, help, options      trapline
//!                                     ├─► stub, is_timed                 what a site needs         both
//!                                     └─► at_entry, at_exit              what is a violation       agent
//! ```
//!
//! What a tracer decides runs in the traced program's threads: it allocates nothing, waits for nothing, and calls nothing but [`Call`].

mod count;
mod graph;
mod loop_checker;
mod thread_checker;

use crate::stub::Variant;

/// Declares the tracers: the table, and the functions that find a tracer by its number.
macro_rules! built_in {
    ($($kind:ident = $file:ident,)*) => {
        /// What a tracer is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Kind {
            /// A tracer of the program, or of a library that was loaded into it.
            Own = 1,
            $(#[doc = concat!("`", stringify!($file), "`.")] $kind,)*
        }

        /// The tracers that every agent has, in the order of their kinds.
        pub const BUILT_IN: &[Row] = &[$(Row::of::<$file::Tracer>(Kind::$kind)),*];

        /// The fastest stub that is enough for a site without another tracer. `first`: the tracer's first option.
        pub fn stub(kind: u32, first: u64) -> Variant {
            match kind {
                $(k if k == Kind::$kind as u32 => $file::Tracer::stub(first),)*
                _ => Variant::Called,
            }
        }

        /// Whether a tracer needs the time of each entry.
        pub fn is_timed(kind: u32, first: u64) -> bool {
            match kind {
                $(k if k == Kind::$kind as u32 => $file::Tracer::is_timed(first),)*
                _ => false,
            }
        }

        /// Whether a call that begins is a violation of what a tracer checks.
        #[inline(always)]
        pub fn at_entry(kind: u32, call: &impl Call) -> bool {
            match kind {
                $(k if k == Kind::$kind as u32 => $file::Tracer::at_entry(call),)*
                _ => false,
            }
        }

        /// Whether a call that has ended is one.
        #[inline(always)]
        pub fn at_exit(kind: u32, call: &impl Call, ended: Ended) -> bool {
            match kind {
                $(k if k == Kind::$kind as u32 => $file::Tracer::at_exit(call, ended),)*
                _ => false,
            }
        }
    };
}

// New rows go to the end: an agent of an earlier trapline knows the kinds before them.
built_in! {
    Count = count,
    ThreadChecker = thread_checker,
    LoopChecker = loop_checker,
    Graph = graph,
}

/// A built-in tracer.
trait BuiltIn {
    /// Its name.
    const NAME: &'static str;
    /// What it shows, for help: a sentence without its end.
    const ABOUT: &'static str;
    /// What its results are.
    const RESULTS: Results;
    /// What its options are.
    const OPTIONS: [Choice; 8];

    /// The fastest stub that is enough for a site without another tracer.
    fn stub(_first: u64) -> Variant {
        Variant::Called
    }

    /// Whether it needs the time of each entry.
    fn is_timed(_first: u64) -> bool {
        false
    }

    /// Whether a call that begins is a violation.
    #[inline(always)]
    fn at_entry(_call: &impl Call) -> bool {
        false
    }

    /// Whether a call that has ended is one. Only calls that the tracer has seen begin.
    #[inline(always)]
    fn at_exit(_call: &impl Call, _ended: Ended) -> bool {
        false
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The tracer.
    pub kind: Kind,
    /// Its name.
    pub name: &'static str,
    /// What it shows, for help: a sentence without its end.
    pub about: &'static str,
    /// What its results are.
    pub results: Results,
    /// What its options are.
    pub options: [Choice; 8],
}

impl Row {
    const fn of<T: BuiltIn>(kind: Kind) -> Row {
        Row { kind, name: T::NAME, about: T::ABOUT, results: T::RESULTS, options: T::OPTIONS }
    }

    /// The row of a [`Kind`]; none for tracers of programs.
    pub fn find(kind: u32) -> Option<&'static Row> {
        BUILT_IN.iter().find(|row| row.kind as u32 == kind)
    }

    /// The row of a name.
    pub fn named(name: &str) -> Option<&'static Row> {
        BUILT_IN.iter().find(|row| row.name == name)
    }
}

/// What a tracer has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// [`crate::tracer::Counted`] of each function.
    Counts,
    /// [`crate::tracer::Violation`]s.
    Violations,
    /// A trace.
    Trace,
}

/// What a user chooses, and an option of a tracer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing: the option is 0, or the agent sets it.
    Unused,
    /// 1: times are taken (not `--no-time`).
    Time,
    /// [`STOP`] (`--stop`) and [`MAIN`] (`--thread`).
    Flags,
    /// Eight bytes of a pattern of threads' names (`--thread`, [`crate::pattern`]): two options for each, and a pattern of zeros is none.
    Thread,
    /// The number of a function (`--loop`).
    Caller,
    /// A time in ticks of the time stamp counter (`--budget`).
    Budget,
}

/// Bit of [`Choice::Flags`]: the process is stopped at a violation.
pub const STOP: u64 = 1;
/// Bit of [`Choice::Flags`]: the main thread may call the functions.
pub const MAIN: u64 = 2;

/// A call as tracers see it, in its thread.
pub trait Call {
    /// An option of the tracer that is asked.
    fn option(&self, number: usize) -> u64;

    /// Whether it is the main thread.
    fn is_main(&self) -> bool;

    /// The thread's name, filled up with NULs.
    fn thread_name(&self) -> [u8; 16];
}

/// What is known of a call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Ticks that it has taken; 0 if the tracer is not timed.
    pub took: u64,
    /// The number of the traced function that has called it; 0 if there is none.
    pub caller: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call for tests of tracers.
    #[derive(Default)]
    pub struct Called {
        pub options: [u64; 8],
        pub main: bool,
        pub name: [u8; 16],
    }

    impl Call for Called {
        fn option(&self, number: usize) -> u64 {
            self.options[number]
        }

        fn is_main(&self) -> bool {
            self.main
        }

        fn thread_name(&self) -> [u8; 16] {
            self.name
        }
    }

    #[test]
    fn kinds_are_in_the_order_of_the_table() {
        for (i, row) in BUILT_IN.iter().enumerate() {
            assert_eq!(row.kind as usize, Kind::Own as usize + 1 + i);
            assert!(crate::tracer::name(row.name).is_some(), "{}", row.name);
            assert!(!row.about.ends_with('.'), "{}", row.name);
            assert_eq!(Row::named(row.name).map(|r| r.kind), Some(row.kind));
        }
    }
}
