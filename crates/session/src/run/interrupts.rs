//! What the signals to trapline do.
//!
//! | signal | from the terminal (the kernel) | from a process |
//! |---|---|---|
//! | INT, QUIT | the command has it already; `-p`, `-a`: the end | passed on to the command; `-p`, `-a`: the end |
//! | TERM | - | the same |
//! | HUP | the terminal is gone: the end | the same |
//!
//! A second one within a second ends trapline, except QUIT; so does one that comes a second after the end was asked for, or after one that
//! went unnoticed because the output is blocked. INT and QUIT that were ignored when trapline started (`cmd &` of a shell without job
//! control) are meant for other processes if they come from the terminal: only those that a process sends to trapline have an effect. HUP
//! and TERM that were ignored (`nohup`) stay ignored.

use sys::{signal, time};

/// The signal that requests a snapshot: SIGUSR2.
pub const SNAPSHOT: i32 = 12;

const HUP: i32 = 1;
const INT: i32 = 2;
const QUIT: i32 = 3;
const TERM: i32 = 15;
/// A second, ns.
pub const SECOND: u64 = 1_000_000_000;

/// What a signal to trapline requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing to do: the command has the signal already.
    Nothing,
    /// Pass the signal on to the command.
    PassOn(i32),
    /// End the trace.
    Leave,
    /// End the trace, and then trapline by this signal.
    End(i32),
    /// Write the flight recorder's events.
    Snapshot,
}

/// How many of a signal have been handled.
#[derive(Clone, Copy, Debug)]
struct Seen {
    signal: i32,
    all: u32,
    sent: u32,
}

/// Signals to trapline, and how many have been handled.
pub struct Interrupts {
    seen: [Seen; 4],
    snapshots: u32,
    last: Option<u64>,
}

impl Interrupts {
    /// Watches the signals that end programs, and with `snapshots` SIGUSR2.
    pub fn watch(snapshots: bool) -> Interrupts {
        if snapshots {
            let _ = signal::count_signal(SNAPSHOT);
        }
        for sig in [INT, QUIT, TERM, HUP] {
            if matches!(sig, INT | QUIT) || !signal::is_ignored(sig) {
                let _ = if sig == QUIT { signal::count_signal(sig) } else { signal::count_ending(sig) };
            }
        }
        let seen = [INT, QUIT, TERM, HUP].map(|signal| Seen { signal, all: 0, sent: 0 });
        Interrupts { seen, snapshots: 0, last: None }
    }

    /// The next pending request, if any.
    pub fn poll(&mut self) -> Option<Wish> {
        let asked = signal::counted(SNAPSHOT);
        if asked != self.snapshots {
            self.snapshots = asked;
            return Some(Wish::Snapshot);
        }
        for seen in &mut self.seen {
            let sig = seen.signal;
            let (all, sent) = (signal::counted(sig), signal::sent(sig));
            let (fresh, by_process) = (all - seen.all, sent != seen.sent);
            if fresh == 0 {
                continue;
            }
            (seen.all, seen.sent) = (all, sent);
            signal::note(sig, all);
            let now = time::monotonic();
            let again = fresh > 1 || self.last.is_some_and(|t| now - t < SECOND);
            self.last = Some(now);
            return Some(wish(sig, by_process, again));
        }
        None
    }
}

/// What a signal requests; `again`: another one came less than a second before.
fn wish(sig: i32, by_process: bool, again: bool) -> Wish {
    match sig {
        HUP if !by_process => Wish::End(HUP),
        QUIT => if_sent(sig, by_process),
        _ if again => Wish::Leave,
        _ => if_sent(sig, by_process),
    }
}

fn if_sent(sig: i32, by_process: bool) -> Wish {
    if by_process { Wish::PassOn(sig) } else { Wish::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_s_signals_are_the_command_s_and_its_end_is_trapline_s() {
        for (sig, by_process, again, what) in [
            (INT, false, false, Wish::Nothing),
            (INT, true, false, Wish::PassOn(INT)),
            (INT, false, true, Wish::Leave),
            (TERM, true, false, Wish::PassOn(TERM)),
            (TERM, true, true, Wish::Leave),
            (QUIT, false, true, Wish::Nothing),
            (QUIT, true, true, Wish::PassOn(QUIT)),
            (HUP, true, false, Wish::PassOn(HUP)),
            (HUP, false, false, Wish::End(HUP)),
            (HUP, false, true, Wish::End(HUP)),
        ] {
            assert_eq!(wish(sig, by_process, again), what, "{sig} {by_process} {again}");
        }
    }
}
