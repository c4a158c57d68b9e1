//! Programs that run without the agent, or whose functions are left alone: a gap in the trace, which is an event of it (`process:untraced`)
//! and is counted.
//!
//! ```text
//!  agent, before exec ──► cannot follow: a gap at once
//!                    └──► follows: expected ──► its Hello comes: none
//!                                            ├► the kernel refused the program: none
//!                                            └► it ends, or the session does: a gap
//! ```

use abi::message::Untraced;
use engine::own_events;
use events::StreamId;
use events::generated::P_UNTRACED;
use events::stream::{Scope, SessionStream};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::process;

/// The stream of gaps. Enabling 0 is for calls.
pub const STREAM: StreamId = StreamId::new(Scope::Session(SessionStream::Tracer), 1);

/// The most programs that are expected at a time. More are not noticed if no agent comes.
const MOST: usize = 4096;
/// How long a session waits at its end for the agent of a program that was just executed.
const GRACE: Duration = Duration::from_secs(2);
/// Reasons, and programs of each, that are kept for the report.
const REASONS: usize = 32;
const PROGRAMS: usize = 3;

/// What the agent has said, in words that complete "not traced: ".
pub fn words(why: Untraced) -> &'static str {
    match why {
        Untraced::Static => "a static program loads no agent",
        Untraced::ChangesUser => "a program that changes its user or group loads no agent",
        Untraced::Capabilities => "a program whose file has capabilities loads no agent",
        Untraced::Machine => "a program of another architecture, or of 32 bits",
        Untraced::Sanitizer => "a program with a sanitizer (libasan, libtsan) can only be the command",
        Untraced::Unreachable => "the agent's file cannot be loaded there (another root, user or noexec)",
    }
}

/// A program that is not traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its process, as trapline numbers it.
    pub pid: i32,
    /// The program.
    pub path: Vec<u8>,
    /// Why.
    pub why: String,
}

impl Gap {
    /// As an event of now.
    pub fn event(&self) -> Vec<u8> {
        let pid = self.pid as u32;
        let tails = [self.path.as_slice(), self.why.as_bytes()];
        own_events::process(&P_UNTRACED, sys::time::monotonic(), (pid, pid), &[0, 0], &tails)
    }
}

/// Gaps as the report has them.
#[derive(Debug, Default)]
pub struct Gaps {
    /// By reason: how many, and the first programs.
    reasons: Vec<(String, u64, Vec<String>)>,
    /// Of reasons for which there was no room.
    others: u64,
}

impl Gaps {
    /// Counts one.
    pub fn note(&mut self, gap: &Gap) {
        let path = String::from_utf8_lossy(&gap.path).into_owned();
        let known = self.reasons.iter().position(|(why, ..)| *why == gap.why);
        match known {
            Some(at) => {
                let (_, n, paths) = &mut self.reasons[at];
                *n += 1;
                if paths.len() < PROGRAMS && !paths.contains(&path) {
                    paths.push(path);
                }
            }
            None if self.reasons.len() < REASONS => self.reasons.push((gap.why.clone(), 1, vec![path])),
            None => self.others += 1,
        }
    }

    /// A line for each reason.
    pub fn lines(&self) -> Vec<String> {
        let line = |(why, n, paths): &(String, u64, Vec<String>)| {
            let more = if *n > paths.len() as u64 { ", …" } else { "" };
            format!("not traced: {}: {why}: {}{more}", programs(*n), paths.join(", "))
        };
        let mut lines: Vec<String> = self.reasons.iter().map(line).collect();
        if self.others > 0 {
            lines.push(format!("not traced: {}, for other reasons", programs(self.others)));
        }
        lines
    }
}

/// This many programs, in words.
pub fn programs(n: u64) -> String {
    if n == 1 { "1 program".into() } else { format!("{n} programs") }
}

/// A program that an agent should come from.
struct Expected {
    path: Vec<u8>,
    /// Readable when its process has ended.
    ended: OwnedFd,
    since: Instant,
}

/// Programs that agents should come from.
#[derive(Default)]
pub struct Executed {
    by_pid: Mutex<HashMap<i32, Expected>>,
}

impl Executed {
    fn all(&self) -> MutexGuard<'_, HashMap<i32, Expected>> {
        self.by_pid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process is about to execute a program, and the agent follows.
    pub fn expect(&self, pid: i32, path: Vec<u8>) {
        let Ok(ended) = process::pidfd(pid, false) else { return };
        let mut all = self.all();
        if all.len() < MOST {
            all.insert(pid, Expected { path, ended, since: Instant::now() });
        }
    }

    /// Its agent has come, or the program was not executed.
    pub fn forget(&self, pid: i32) {
        self.all().remove(&pid);
    }

    /// Those from which none can come any more; at the `end` of the session none can from all.
    pub fn missing(&self, end: bool) -> Vec<Gap> {
        let mut all = self.all();
        if all.is_empty() {
            return Vec::new();
        }
        let over = |e: &mut Expected| end || process::wait_readable(&e.ended, Duration::ZERO).unwrap_or(true);
        let gap = |(pid, e): (i32, Expected)| {
            let why = "it has not loaded the agent, or could not reach trapline".into();
            Gap { pid, path: e.path, why }
        };
        all.extract_if(|_, e| over(e)).map(gap).collect()
    }

    /// Whether an agent may come soon.
    pub fn is_waiting(&self) -> bool {
        self.all().values().any(|e| e.since.elapsed() < GRACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(path: &str, why: &str) -> Gap {
        Gap { pid: 7, path: path.into(), why: why.into() }
    }

    #[test]
    fn gaps_are_counted_by_reason() {
        let mut gaps = Gaps::default();
        for path in ["/a", "/a", "/b", "/c", "/d"] {
            gaps.note(&gap(path, words(Untraced::Static)));
        }
        gaps.note(&gap("/e", "x"));
        let want =
            ["not traced: 5 programs: a static program loads no agent: /a, /b, /c, …", "not traced: 1 program: x: /e"];
        assert_eq!(gaps.lines(), want);
        (0..100).for_each(|n| gaps.note(&gap("/f", &n.to_string())));
        assert_eq!(gaps.lines().last().map(String::as_str), Some("not traced: 70 programs, for other reasons"));
    }

    #[test]
    fn a_gap_is_an_event() {
        let bytes = gap("/bin/x", "y").event();
        let ev = events::Event::parse(&bytes).unwrap();
        assert_eq!((ev.pid(), ev.bytes_of("path"), ev.bytes_of("why")), (7, &b"/bin/x"[..], &b"y"[..]));
    }

    #[test]
    fn a_program_whose_agent_does_not_come_is_missing_once_it_has_ended() {
        let executed = Executed::default();
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let (pid, own) = (child.id() as i32, process::own_pid());
        executed.expect(pid, b"/x".to_vec());
        executed.expect(own, b"/y".to_vec());
        assert!(executed.is_waiting() && executed.missing(false).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(executed.missing(false).iter().map(|g| g.pid).collect::<Vec<_>>(), [pid]);
        executed.forget(own);
        assert!(executed.missing(true).is_empty() && !executed.is_waiting());
    }
}
