//! `trapline tracer print`: what a tracer has, as text or JSON, with names for the stacks of violations.

use super::reports;
use crate::ask::Ask;
use crate::output::{Output, complain, to_stdout};
use crate::stacks;
use crate::view::{calls, screen};
use collector::attach::results::{self, Shown};
use collector::attach::violations::{Ended, Violation};
use engine::resolver::{Origin, Resolver};
use engine::{Error, Result};
use events::names::Stack;
use views::calls::counted::{self, Counted};
use views::calls::sort::Sort;
use views::stack::{Named, Place};

/// Runs the command.
pub fn run(pid: i32, name: &str, ask: &Ask) -> Result<u8> {
    let sort = sort(ask)?;
    let places = stacks::places(&ask.names)?;
    let shown = results::print(pid, name)?;
    let output = Output::view(None)?;
    let json = ask.show.iter().any(|show| show.view == "json");
    let mut out = Vec::new();
    if shown.counts {
        counts(&shown, sort, json, calls::rows(&ask.table), &output, &mut out);
    }
    let mut resolver = Resolver::new(Origin::Live, places);
    let frames: Vec<Vec<Named>> = shown.violations.iter().map(|v| frames(pid, v, &mut resolver)).collect();
    let stacks: Vec<Vec<Place<'_>>> = frames.iter().map(|s| s.iter().map(Named::place).collect()).collect();
    let of = |(v, stack): _| violation(v, stack);
    let violations: Vec<_> = shown.violations.iter().zip(&stacks).map(of).collect();
    if json {
        views::violations::json(&violations, shown.lost, &mut out);
    } else {
        views::violations::text(&violations, shown.lost, screen::colour(&ask.format, &output), &mut out);
    }
    let status = to_stdout(&out)?;
    let said = reports::lines([&shown.tracer].into_iter()).into_iter().chain(reports::nested(&shown.tracer));
    said.chain(nothing(pid, &shown).filter(|_| !json)).for_each(|line| complain(&format!("-p {pid}: {line}")));
    Ok(status)
}

/// Why there is nothing to print, if so.
fn nothing(pid: i32, shown: &Shown) -> Option<String> {
    let name = &shown.tracer.name;
    match shown.tracer.enabled {
        _ if !shown.counted.is_empty() || !shown.violations.is_empty() => None,
        false => Some(format!("nothing to print: {name} is not enabled (trapline tracer enable -p {pid} {name})")),
        true if shown.counts => {
            Some(format!("nothing to print: no function that {name} counts was called since it was enabled"))
        }
        true if shown.tracer.panics > 0 => None,
        true => Some(format!("nothing to print: {name} has seen no violation since it was enabled")),
    }
}

/// The order of the table of counts.
fn sort(ask: &Ask) -> Result<Sort> {
    let Some(name) = ask.table.sort_by.as_ref() else { return Ok(Sort::default()) };
    let found = counted::sorts().find(|(known, _)| known == name).map(|(_, sort)| sort);
    let names = || counted::sorts().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| Error::usage(format!("-S {name}"), "no such order", names()))
}

fn counts(shown: &Shown, sort: Sort, json: bool, rows: Option<usize>, output: &Output, out: &mut Vec<u8>) {
    let mut all = Vec::new();
    for results::Counted { function, module, calls, total, own } in &shown.counted {
        all.push(Counted { function, module, calls: *calls, total: *total, own: *own });
    }
    counted::sort(&mut all, sort);
    let (fits, width) = screen::table_size(output);
    if json {
        counted::json(&all, rows.unwrap_or(usize::MAX), out);
    } else {
        counted::table(&all, rows.unwrap_or(fits), width, out);
    }
}

/// Mappings are those of the process now: what was unloaded since has no names.
const NOW: u64 = u64::MAX;

/// The frames of a violation, with functions that the compiler has inlined. The first is the function itself, whatever is inlined at its
/// first instruction.
fn frames(pid: i32, v: &Violation, resolver: &mut Resolver) -> Vec<Named> {
    let mut all = Vec::new();
    let mut resolve = |frames: &[u64]| {
        let mut named = Vec::new();
        let stack = Stack { kernel: false, ended: 0, guessed: 0, frames };
        resolver.frames(pid as u32, NOW, &stack, &mut |f| named.push(Named::of(f)));
        named
    };
    let (first, rest) = v.frames.split_at(v.frames.len().min(1));
    all.extend(resolve(first).pop());
    all.extend(resolve(rest));
    all
}

fn violation<'a>(v: &'a Violation, stack: &'a Vec<Place<'a>>) -> views::violations::Violation<'a> {
    views::violations::Violation {
        tid: v.tid,
        thread: &v.thread,
        function: &v.function,
        time: v.time,
        took: v.took,
        stack,
        ended: (v.ended != Ended::Outermost).then(|| v.ended.text()),
    }
}
