//! `trapline tracer`: tracers of functions in a running process.

mod recording;

use crate::graph::Chosen;
use crate::output::complain;
use clap::ArgMatches;
use engine::backend::agent::attach::tracers::{self, Shown, Wanted};
use engine::functions::Functions;
use engine::{Error, Result};
use std::fmt::Write as _;
use std::io::Write as _;

/// Runs the command.
pub fn run(m: &ArgMatches, started: u64) -> Result<u8> {
    let Some((command, m)) = m.subcommand() else { return Ok(0) };
    let pid = m.get_one::<i32>("attach").copied().unwrap_or(0);
    let name = || m.get_one::<String>("name").cloned().unwrap_or_default();
    match command {
        "enable" if name() == recording::NAME => {
            let Functions { wanted, unwanted, libraries, .. } = wanted(m, name()).functions;
            return recording::enable(m, pid, Chosen { wanted, unwanted, libraries }, started);
        }
        "enable" if m.contains_id("output") => {
            return Err(Error::usage("-o", "only graph writes a trace", "leave it out"));
        }
        "disable" if name() == recording::NAME => recording::disable(pid)?,
        "print" if name() == recording::NAME => recording::print(pid)?,
        "enable" => {
            let done = tracers::enable(pid, &wanted(m, name()))?;
            if done.refused > 0 {
                complain(&format!("-p {pid}: {} of {} functions could not be patched", done.refused, done.functions));
            }
        }
        "disable" => tracers::disable(pid, &name())?,
        "print" => say(&text(&tracers::print(pid, &name())?)),
        "status" => {
            let only = m.get_one::<String>("name");
            let all = tracers::status(pid)?;
            if let Some(missing) = only.filter(|n| !all.iter().any(|(name, _)| name == *n)) {
                let why = format!("no such tracer {missing}");
                return Err(Error::failed(format!("-p {pid}"), why, "see 'trapline tracer list'"));
            }
            let state = |on| if on { "enabled" } else { "disabled" };
            let shown = all.iter().filter(|(name, _)| only.is_none_or(|n| n == name));
            say(&shown.map(|(name, on)| format!("{name}\t{}\n", state(*on))).collect::<String>());
        }
        _ => say(&tracers::status(pid)?.iter().map(|(name, _)| format!("{name}\n")).collect::<String>()),
    }
    Ok(0)
}

fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn wanted(m: &ArgMatches, name: String) -> Wanted {
    let all = |id: &str| m.get_many::<String>(id).into_iter().flatten().cloned().collect::<Vec<_>>();
    Wanted {
        name,
        functions: Functions {
            wanted: all("function"),
            unwanted: all("no-function"),
            libraries: m.get_flag("lib"),
            ..Functions::default()
        },
        no_time: m.get_flag("no-time"),
        threads: all("thread"),
        stop: m.get_flag("stop"),
        caller: m.get_one::<String>("loop").cloned(),
        budget: m.get_one::<u64>("budget").copied().unwrap_or(1_000).saturating_mul(1_000),
    }
}

/// Names may have anything in them: control characters are shown as `?`.
fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// What a tracer has, as text.
fn text(shown: &Shown) -> String {
    let mut out = String::new();
    if shown.counted.iter().any(|c| c.1 > 0) {
        out.push_str("     TOTAL(us)       SELF(us)        CALLS  FUNCTION\n");
    } else if !shown.counted.is_empty() {
        out.push_str("        CALLS  FUNCTION\n");
    }
    let timed = shown.counted.iter().any(|c| c.1 > 0);
    for (calls, total, own, name) in &shown.counted {
        let us = |ns: &u64| format!("{}.{:03}", ns / 1_000, ns % 1_000);
        if timed {
            let _ = write!(out, "{:>14} {:>14} ", us(total), us(own));
        }
        let _ = writeln!(out, "{calls:>13}  {}", clean(name));
    }
    for (tid, thread, function, caller, ns) in &shown.violations {
        let _ = write!(out, "{} ({tid}): {} called from {}", clean(thread), clean(function), clean(caller));
        if *ns > 0 {
            let _ = write!(out, " took {}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000);
        }
        out.push('\n');
    }
    if shown.lost > 0 {
        let _ = writeln!(out, "and {} more", shown.lost);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_violations_are_lines() {
        let shown = Shown { counted: vec![(7, 0, 0, "f\x1b".into())], ..Shown::default() };
        assert_eq!(text(&shown), "        CALLS  FUNCTION\n            7  f?\n");
        let shown = Shown { counted: vec![(7, 1_500, 20, "f".into())], ..Shown::default() };
        assert!(text(&shown).ends_with("\n         1.500          0.020             7  f\n"), "{}", text(&shown));
        let violation = (5, "worker".into(), "f".into(), "g".into(), 2_500_000);
        let shown = Shown { violations: vec![violation], lost: 3, ..Shown::default() };
        assert_eq!(text(&shown), "worker (5): f called from g took 2.500 ms\nand 3 more\n");
    }
}
