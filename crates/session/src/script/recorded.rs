//! A script in a trace: what is kept of it, and how `report` prints its lines again.
//!
//! It is in the trace's environment: its text and parameters, what its patterns were, and what others had asked for, so that a report shows
//! what the session has shown.

use super::among::{Among, Asked, END, Unasked};
use super::catalogue::{Catalogue, Found};
use super::sink::Script;
use super::{Manner, compile, find};
use crate::ask::Ask;
use crate::complain;
use crate::filter;
use crate::output::Output;
use crate::report;
use crate::script_text::TEXT;
use crate::view::screen::Clocks;
use ctf::trace::{HOST, Trace};
use engine::Result;
use events::traces::Origin;
use std::cell::RefCell;
use std::rc::Rc;

/// The most bytes of a script that a trace keeps.
const MOST: usize = 64 << 10;

const NAME: &str = "script_name";
const PARAMETER: &str = "script_";
const FOUND: &str = "script_found";
const BEGAN: &str = "script_began";
const PROBES: &str = "script_probes";
const CALLS: &str = "script_calls";
const ASKED: &str = "asked_";

/// What a trace says of a script that runs; none where it would be too much.
pub fn said(
    (name, text): (&str, &str),
    params: &[String],
    catalogue: &Catalogue,
    unasked: &Unasked,
    (began, (pid, uid, gid)): (u64, (u32, u32, u32)),
    clocks: Clocks,
) -> Option<Vec<(String, String)>> {
    let (child, of_calls) = (catalogue.child.unwrap_or(0), u8::from(catalogue.of_calls));
    let (real, utc) = (clocks.realtime_offset, clocks.utc_offset);
    let mut all = of_reader(&catalogue.found());
    let mut say = |name: &str, text: String| all.push((name.to_string(), text));
    say(TEXT, text.into());
    say(NAME, name.into());
    say(BEGAN, format!("{began} {pid} {uid} {gid} {of_calls} {child} {real} {utc}"));
    say(PROBES, unasked.probes.join("\n"));
    say(CALLS, format!("{} {}", u8::from(unasked.lives), unasked.calls));
    for (prefix, texts) in [(PARAMETER, params), (ASKED, &unasked.asked[..])] {
        (1..).zip(texts).for_each(|(n, text)| say(&format!("{prefix}{n}"), text.clone()));
    }
    (all.iter().map(|(_, text)| text.len()).sum::<usize>() <= MOST).then_some(all)
}

/// What a trace says of a script that is to read it: what its patterns are.
pub fn of_reader(found: &Found) -> Vec<(String, String)> {
    let mut lines: Vec<String> = Vec::new();
    for (pattern, probes) in found {
        for (name, aliases) in probes {
            let aliases = aliases.iter().map(|(other, own)| format!("\t{other}\t{own}"));
            lines.push(format!("{pattern}\t{name}{}", aliases.collect::<String>()));
        }
    }
    order::by_key(&mut lines, |line| line.clone());
    let text = lines.join("\n");
    // Without it, patterns are looked for among the names of the trace.
    if text.is_empty() || text.len() > MOST / 2 { Vec::new() } else { vec![(FOUND.to_string(), text)] }
}

/// What the patterns of a script were when the traces were recorded.
pub fn found(traces: &[Trace]) -> Found {
    let mut all = Found::new();
    for line in traces.iter().filter_map(|trace| trace.metadata.env_str(FOUND)).flat_map(str::lines) {
        let words: Vec<&str> = line.split('\t').collect();
        let [pattern, name, aliases @ ..] = &words[..] else { continue };
        let aliases = aliases.chunks_exact(2).map(|a| (a[0].to_string(), a[1].to_string())).collect();
        all.entry(pattern.to_string()).or_default().push((name.to_string(), aliases));
    }
    all
}

/// Runs `report`.
pub fn report(ask: &Ask) -> Result<u8> {
    report::run_with(ask, &|trace, clocks| again(ask, trace, clocks))
}

/// The script of a trace, which prints its lines among those of a view. With a part of the events its results would be others.
fn again(ask: &Ask, trace: &Trace, clocks: Clocks) -> Option<report::Beside> {
    let env = |name: &str| trace.metadata.env_str(name);
    // Its own texts, and what it prints of others, no rule knows.
    let is_shown = !ask.script.none && ask.trace.redact.is_empty() && filter::used(ask).is_empty();
    let text = env(TEXT).filter(|_| is_shown)?;
    let source = (env(NAME).unwrap_or("script").to_string(), text.to_string());
    let several = |prefix: &str| -> Vec<String> {
        (1..).map_while(|n| env(&format!("{prefix}{n}")).map(str::to_string)).collect()
    };
    let ready = || -> Result<(Script, Unasked)> {
        let found = found(std::slice::from_ref(trace));
        let (lives, calls) = env(CALLS).and_then(|text| text.split_once(' ')).unwrap_or(("1", "none"));
        let probes = env(PROBES).unwrap_or_default().lines().map(str::to_string).collect();
        let unasked = Unasked::new(calls, lives == "1", probes, several(ASKED), &found)?;
        let began: Vec<i64> = env(BEGAN).unwrap_or_default().split(' ').map(|n| n.parse().unwrap_or(0)).collect();
        let began = |nth: usize| began.get(nth).copied().unwrap_or(0);
        let mut catalogue = Catalogue::recorded(std::slice::from_ref(trace), found);
        catalogue.of_calls = began(4) == 1;
        catalogue.child = Some(began(5) as u32).filter(|pid| *pid != 0);
        let clocks = Clocks { realtime_offset: began(6), utc_offset: began(7), ..clocks };
        let mut ask = ask.clone();
        ask.script.args = several(PARAMETER);
        let program = compile(&ask, (&source.0, &source.1), &catalogue)?;
        let places = find(&program, (&source.0, &source.1), &catalogue)?;
        let mut script = Script::new(program, places, source.clone(), Output::kept(), &Manner::default(), clocks);
        script.of_the_past(began(0) as u64, Origin { host: trace.said(HOST), ..Origin::default() });
        let ended = trace.end.iter().flat_map(|end| &end.more).find_map(|line| line.strip_prefix(END));
        let ended = ended.and_then(|time| time.trim().parse().ok());
        script.of_others((began(1) as u32, began(2) as u32, began(3) as u32), ended);
        Ok((script, unasked))
    };
    match ready() {
        Ok((mut script, unasked)) => {
            script.begin(None);
            let (script, unasked) = (Rc::new(RefCell::new(script)), Rc::new(RefCell::new(unasked)));
            let says = ask.quiet < 2;
            Some(Box::new(move |view| Box::new(Among::new(&script, Some(Asked { unasked, view }), says))))
        }
        Err(_) => {
            let todo = "--no-script leaves it out; 'trapline run --trace DIR FILE' runs another";
            complain(&format!(
                "{}: the trace's script cannot run here: all events are shown ({todo})",
                trace.dir.display()
            ));
            None
        }
    }
}
