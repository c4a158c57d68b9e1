//! `--span 'NAME = PROBE .. PROBE [by KEY [.. KEY]] [first]'`: spans of any two probes.
//!
//! A recording has the two probes, what keys are made of, and what was asked for: reports of it have the spans too.

use crate::ask::Ask;
use ctf::trace::Trace;
use engine::provider::quoting;
use engine::request::parse;
use engine::{Error, Result};
use events::rules::{Rules, What, string};
use lang::pattern::glob;
use std::borrow::Cow;
use views::timeline::Timeline;
use views::timeline::spans::{Definition, without_moment};

/// The views that have spans: the first where none is named.
pub const VIEWS: [&str; 4] = ["spans", "spans-json", "html", "timeline"];
/// How many of the slowest a table has where nobody has said it.
const SLOWEST: usize = 10;
/// What a trace calls the definitions that it was recorded with: with numbers from 1.
const SAID: &str = "span_";
/// Most definitions.
const MOST: usize = 100;

/// The spans of `--span`; without it, those that the traces were recorded for.
fn asked(ask: &Ask, traces: &[&Trace]) -> Result<Vec<Definition>> {
    let is_shown = |trace: &Trace, definition| shown(definition, &|what, text| trace.shown(what, text));
    if let (false, Some(trace)) = (ask.table.spans.is_empty(), traces.first()) {
        let asked = ask.table.spans.iter().take(MOST).map(|text| Ok(is_shown(trace, definition(text)?)));
        return asked.collect();
    }
    let mut all: Vec<Definition> = Vec::new();
    for (trace, definition) in traces.iter().flat_map(|trace| of_recording(trace).map(move |d| (trace, d))) {
        let definition = is_shown(trace, definition);
        let is_known = all.iter().any(|d| d.name == definition.name && d.text() == definition.text());
        if !is_known && all.len() < MOST {
            all.push(definition);
        }
    }
    Ok(all)
}

/// Whether a trace was recorded for spans.
pub fn has_any(trace: &Trace) -> bool {
    of_recording(trace).next().is_some()
}

/// A definition with the names that events are shown with.
fn shown(asked: Definition, text: &dyn Fn(What, &str) -> String) -> Definition {
    let Definition { name, probes, keys, .. } = asked;
    let probes = probes.map(|probe| text(What::Probe, &probe));
    let keys = keys.map(|key| text(What::Name, &key));
    Definition { name: text(What::Name, &name), probes, keys, ..asked }
}

/// A picture with the spans of its traces.
///
/// # Errors
/// A `--span` is invalid.
pub fn with(ask: &Ask, traces: &[&Trace], timeline: Timeline) -> Result<Timeline> {
    Ok(timeline.spans(asked(ask, traces)?, ask.table.rows.map_or(SLOWEST, |n| n as usize)))
}

/// Refuses `--span` for a view without spans, and a view of spans for a trace without any.
///
/// # Errors
/// The request is one of these.
pub fn check(ask: &Ask, trace: &Trace, view: &str) -> Result<()> {
    let is_shown = VIEWS.contains(&view);
    if !ask.table.spans.is_empty() && !is_shown {
        return Err(Error::usage(
            format!("--span --as {view}"),
            "it has no spans",
            "spans, spans-json, html or timeline",
        ));
    }
    let any = is_shown && !asked(ask, &[trace])?.is_empty();
    if !any && view.starts_with(VIEWS[0]) {
        let todo = "add --span 'NAME = PROBE .. PROBE by KEY'";
        return Err(Error::usage(format!("--as {view}"), "nothing says which spans", todo));
    }
    Ok(())
}

/// The view where none is named.
pub fn default(ask: &Ask) -> &'static str {
    if ask.table.spans.is_empty() { "text" } else { VIEWS[0] }
}

/// Whether a report has a table of spans.
pub fn has_table(ask: &Ask) -> bool {
    let is_table = |view: &str| view.starts_with(VIEWS[0]);
    ask.show.iter().any(|show| is_table(&show.view)) || ask.show.is_empty() && !ask.table.spans.is_empty()
}

/// What a recording enables: the probes of its spans too, where nothing else does.
///
/// # Errors
/// A `--span` is invalid, or no trace is written.
pub fn recorded(ask: &Ask) -> Result<Cow<'_, Ask>> {
    if ask.table.spans.is_empty() {
        return Ok(Cow::Borrowed(ask));
    }
    if ask.keep.output.is_none() {
        return Err(Error::usage("--span", "spans are shown of a trace, and none is written", "add -o DIR"));
    }
    let mut ask = ask.clone();
    if ask.select.expressions().next().is_none() {
        ask.select.expr.push("all".into());
    }
    for text in &ask.table.spans.clone() {
        for probe in definition(text)?.probes {
            let probe = if probe.starts_with("function:") || probe.starts_with("syscall:") {
                without_moment(&probe)
            } else {
                &probe
            };
            let is_enabled = ask
                .select
                .expressions()
                .flat_map(|e| parse::Request::parse(e).map(|r| r.names).unwrap_or_default())
                .any(|name| {
                    let name = quoting::unquote(&name);
                    let call = probe.strip_prefix("syscall:");
                    let same = |pattern: &str| glob(pattern.as_bytes(), probe.as_bytes());
                    same(&name) || call.is_some_and(|call| name == "all" || glob(name.as_bytes(), call.as_bytes()))
                });
            if !is_enabled {
                ask.select.expr.push(quoting::quote(probe));
            }
        }
    }
    Ok(Cow::Owned(ask))
}

/// Whether keys are arguments or results of functions.
pub fn need_values(ask: &Ask) -> bool {
    let plain = |key: &String| matches!(key.as_str(), "tid" | "pid");
    let of_function = |(probe, key): (&String, &String)| probe.starts_with("function:") && !plain(key);
    let all = ask.table.spans.iter().filter_map(|text| definition(text).ok());
    all.into_iter().any(|d| d.probes.iter().zip(&d.keys).any(of_function))
}

/// What a trace says of the spans that it is recorded for.
pub fn said(ask: &Ask) -> impl Iterator<Item = (String, String)> + '_ {
    ask.table.spans.iter().enumerate().map(|(n, text)| (format!("{SAID}{}", n + 1), text.clone()))
}

/// What a copy of a trace says of them, with the names that its events have.
pub fn said_again<'t>(trace: &'t Trace, rules: &'t dyn Rules) -> impl Iterator<Item = (String, String)> + 't {
    let said = of_recording(trace).map(|d| shown(d, &|what, text| string(rules, what, text).into_owned()));
    let text = |d: Definition| {
        let written = Definition { probes: d.probes.map(|probe| quoting::quote(&probe)), ..d };
        format!("{} = {}", written.name, written.text())
    };
    said.enumerate().map(move |(n, d)| (format!("{SAID}{}", n + 1), text(d)))
}

/// What a trace was recorded for.
fn of_recording(trace: &Trace) -> impl Iterator<Item = Definition> + '_ {
    let said = (1..=MOST).map_while(|n| trace.metadata.env_str(&format!("{SAID}{n}")));
    said.filter_map(|text| definition(text).ok())
}

/// Reads a definition.
fn definition(text: &str) -> Result<Definition> {
    let wrong = |why: &str| {
        Err(Error::usage(
            format!("--span {text}"),
            why,
            "'NAME = PROBE .. PROBE by KEY', for instance by fd, arg0 or tid",
        ))
    };
    let Some((name, rest)) = text.split_once('=') else { return wrong("it has no name") };
    let name = name.trim();
    if name.is_empty() || name.len() > 100 || name.contains(char::is_control) {
        return wrong("it has no name");
    }
    let (places, by) = split(rest, " by ").map_or((rest, None), |(places, by)| (places, Some(by)));
    let Some((begin, end)) = split(places, "..") else { return wrong("it has no '..' between two probes") };
    let (by, first) =
        by.map_or(("tid", false), |by| by.trim().strip_suffix(" first").map_or((by, false), |by| (by, true)));
    let (from, to) = split(by, "..").unwrap_or((by, by));
    let probes = [begin, end].map(probe);
    let keys = [from, to].map(|key| key.trim().to_owned());
    let has_blank = |text: &str| quoting::find(text.trim(), |rest| rest.starts_with(char::is_whitespace)).is_some();
    if probes.iter().any(String::is_empty) || !quoting::is_closed(places) || has_blank(begin) || has_blank(end) {
        return wrong("it names no two probes");
    }
    let is_key = |key: &String| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    if !keys.iter().all(is_key) {
        return wrong("its key is no field of an event");
    }
    Ok(Definition { name: name.into(), probes, keys, first })
}

/// The parts before and behind a separator that is outside of quotes.
fn split<'t>(text: &'t str, by: &str) -> Option<(&'t str, &'t str)> {
    let at = quoting::find(text, |rest| rest.starts_with(by))?;
    Some((&text[..at], &text[at + by.len()..]))
}

/// A probe; a bare name is a call, as in `-e`.
fn probe(text: &str) -> String {
    let name = quoting::unquote(text.trim());
    let bare = !name.is_empty() && !name.contains(':') && !matches!(name.as_str(), "begin" | "end");
    if bare { format!("syscall:{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_have_a_name_two_probes_and_keys() {
        let of = |text: &str| definition(text).map(|d| (d.name.clone(), d.text(), d.first)).map_err(|e| e.to_string());
        for (text, name, whole, first) in [
            ("request = syscall:read .. syscall:write by fd", "request", "syscall:read .. syscall:write by fd", false),
            ("a=accept4 .. close by retval .. fd", "a", "syscall:accept4 .. syscall:close by retval .. fd", false),
            ("t = function:f .. function:f:return", "t", "function:f .. function:f:return by tid", false),
            (
                r#"t = function:"a::f(int, b by c)" .. usdt:/x:p:n by arg0 first"#,
                "t",
                "function:a::f(int, b by c) .. usdt:/x:p:n by arg0 first",
                true,
            ),
        ] {
            assert_eq!(of(text), Ok((name.into(), whole.into(), first)), "{text}");
        }
        for wrong in [
            "",
            "a",
            "a = ",
            "= b .. c",
            "a = b",
            "a = b .. ",
            "a = b .. c by",
            "a = b .. c by x y",
            "a = \"b .. c",
            "a = b .. c by -",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
