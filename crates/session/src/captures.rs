//! What events capture beside the arguments of their probe, as the command line says it.

use crate::ask::Capture;
use engine::capture::captures::{self, Captures};
use engine::request::select::Calls;
use engine::{Error, Result};
use events::keep::{Keep, KeepByCall};

/// `--kstack`, `--ustack`, `--comm`: for all enablings.
pub fn captures(capture: &Capture) -> Result<Captures> {
    let frames = |name: &str, given: &Option<String>, most: u16| -> Result<u16> {
        let Some(n) = given else { return Ok(0) };
        let bad = || Error::usage(format!("--{name}={n}"), "not a number of frames", format!("1 to {most}"));
        n.parse().ok().filter(|n| (1..=most).contains(n)).ok_or_else(bad)
    };
    let (kstack, ustack) = (
        frames("kstack", &capture.kstack, captures::KERNEL.into())? as u8,
        frames("ustack", &capture.ustack, captures::USER)?,
    );
    Ok(Captures { kstack, ustack, comm: capture.comm, ..Captures::default() })
}

/// Whether strings are captured of probes other than calls: the last `--capture LEVEL` decides.
pub fn has_strings(capture: &Capture) -> bool {
    let mut of_all = capture.levels.iter().filter(|text| !text.contains('='));
    of_all.next_back().is_none_or(|level| level != "none")
}

/// `--capture LEVEL`, `--capture CALL,…=LEVEL`: how much of the memory of calls; what is given last holds.
pub fn keep(capture: &Capture) -> Result<KeepByCall> {
    let mut rules: Vec<(Calls, Keep)> = Vec::new();
    for text in capture.levels.iter() {
        let (calls, level) = match text.rsplit_once('=') {
            Some((calls, level)) => (Calls::parse(calls)?, level),
            None => (Calls::all(), text.as_str()),
        };
        let level = Keep::parse(level).ok_or_else(|| {
            Error::usage(format!("--capture {text}"), "not a level", "all, strings or none; or CALL,…=LEVEL")
        })?;
        rules.push((calls, level));
    }
    Ok(KeepByCall::new(|s| rules.iter().rev().find(|(calls, _)| calls.contains(s)).map_or(Keep::All, |r| r.1)))
}
