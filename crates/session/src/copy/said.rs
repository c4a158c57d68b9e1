//! What a copy of a trace says of the trace as a whole, where not all texts are shown: what is known, and nothing else.

use crate::spans;
use ctf::end::End;
use ctf::format::NO_DURATION;
use ctf::model::EnvValue;
use ctf::trace::{HOST, Trace};
use engine::redact::MARK;
use engine::request::select::Calls;
use engine::stats::NotCaptured;
use events::rules::{Rules, What, string};

/// Numbers of the environment that are kept.
const NUMBERS: [&str; 6] =
    ["tracer_major", "tracer_minor", "tracer_patchlevel", "utc_offset", "string_limit", NO_DURATION];
/// Texts of the environment, and what they are. The identity of the boot distinguishes machines.
const TEXTS: [(&str, What); 8] = [
    (HOST, What::Host),
    ("boot_id", What::Host),
    ("domain", What::Name),
    ("sysname", What::Name),
    ("kernel_release", What::Name),
    ("architecture", What::Name),
    ("command", What::CommandLine),
    ("backend", What::Name),
];
/// Texts that readers take apart: what they are checked for before they are kept as they are. Names of system calls are no secrets.
const READ: [(&str, Check); 3] = [
    ("tracer_name", |text| text == "trapline"),
    ("machine", |text| matches!(text, "part" | "whole")),
    ("select", |text| Calls::parse(text).is_ok()),
];
/// Whether a text is one that a reader understands.
type Check = fn(&str) -> bool;
/// The filter of the recording, whose text is not kept: what it has rejected is not in the copy.
const FILTER: &str = "where";
/// What lines of the end record that are about an enabling begin with.
const ENABLING: &str = "enabling ";

/// The environment. Without the script: its own texts, and what it prints of others, no rule knows.
pub fn env(trace: &Trace, rules: &dyn Rules) -> Vec<(String, EnvValue)> {
    let mut all = Vec::new();
    for (name, value) in &trace.metadata.env {
        let kept = match value {
            EnvValue::Int(n) => NUMBERS.contains(&&**name).then_some(EnvValue::Int(*n)),
            EnvValue::Str(_) if name == FILTER => Some(EnvValue::Str(MARK.into())),
            EnvValue::Str(text) if READ.iter().any(|(known, is_it)| known == name && is_it(text)) => {
                Some(value.clone())
            }
            EnvValue::Str(text) => {
                let what = TEXTS.iter().find(|(known, _)| known == name).map(|(_, what)| *what);
                what.map(|what| EnvValue::Str(string(rules, what, text).into_owned()))
            }
        };
        all.extend(kept.map(|value| (name.clone(), value)));
    }
    all.extend(spans::said_again(trace, rules).map(|(name, text)| (name, EnvValue::Str(text))));
    all
}

/// The end record.
pub fn end(trace: &Trace, rules: &dyn Rules) -> Option<End> {
    let end = trace.end.as_ref()?;
    let named = |all: &[(String, u64)]| -> Vec<(String, u64)> {
        all.iter().map(|(probe, n)| (string(rules, What::Probe, probe).into_owned(), *n)).collect()
    };
    Some(End {
        failed: end.failed.as_deref().map(|why| string(rules, What::Name, why).into_owned()),
        taken: named(&end.taken),
        unwritten: named(&end.unwritten),
        dropped: named(&end.dropped),
        more: end.more.iter().filter_map(|line| line_of(line, rules)).collect(),
        ..end.clone()
    })
}

/// A line of the end record: of an enabling, `SEEN DROPPED FILTERED MISSED LABEL`, where a filter may follow the probe.
fn line_of(line: &str, rules: &dyn Rules) -> Option<String> {
    let Some(counted) = line.strip_prefix(ENABLING) else { return NotCaptured::parse(line).map(|n| n.line()) };
    let (at, _) = counted.match_indices(' ').nth(3)?;
    let (numbers, label) = counted.split_at(at + 1);
    let numbers = numbers.bytes().all(|b| b.is_ascii_digit() || b == b' ').then_some(numbers)?;
    let (probe, filter) = label.split_once(" /").map_or((label, ""), |(probe, _)| (probe, " /"));
    let filter = if filter.is_empty() { String::new() } else { format!(" /{MARK}/") };
    Some(format!("{ENABLING}{numbers}{}{filter}", string(rules, What::Probe, probe)))
}
