//! The metadata of a trace: what was traced, where and how, and the classes of its events.

use super::Config;
use ctf::classes::{STREAM_CLASS, event_class, functions_class};
use ctf::format::{self, Format};
use ctf::model::{ByteOrder, Clock, EnvValue, Metadata, StreamClass};
use ctf::print::{self, Aliases};
use events::functions::Moment;
use std::ops::Range;
use std::sync::LazyLock;
use sys::proc;

/// What the names of trapline's own events begin with.
const OWN: &str = "process:";

/// The text of the metadata.
pub struct Text {
    /// All of it.
    pub all: String,
    /// The part that describes events, which is most of it, and stays when the clock is known better or classes are added.
    events: Range<usize>,
    /// How many of the recorder's classes it has.
    classes: usize,
    /// The types that are declared at its end.
    aliases: Aliases,
}

/// The text of the metadata; with two moments on the clock of function records where there are any. `before`: the text so far, of the same
/// trace, which may have had fewer classes.
pub fn text(config: &Config, uuid: [u8; 16], clock: Option<(Moment, Moment)>, before: Option<&Text>) -> Text {
    let values = config.has_values();
    let mut metadata = metadata(config, uuid);
    if let Some(moments) = clock {
        metadata
            .env
            .iter_mut()
            .filter(|e| e.0 == format::KEY)
            .for_each(|e| e.1 = format_version(if values { Format::V4 } else { Format::V3 }));
        metadata.clocks.push(tsc(config.realtime_offset, moments));
    }
    let mut aliases = Aliases::new(metadata.order);
    let mut all = print::tsdl_with(&mut aliases, &metadata);
    let start = all.len();
    let mut classes = 0;
    match before {
        Some(before) => {
            all += &before.all[before.events.clone()];
            (aliases, classes) = (before.aliases.clone(), before.classes);
        }
        None => print::stream(&mut aliases, &mut all, &stream_class(config)),
    }
    for class in &config.classes[classes..] {
        all += &print::event_class(&mut aliases, STREAM_CLASS, &event_class(class));
    }
    let (events, classes) = (start..all.len(), config.classes.len());
    if clock.is_some() {
        print::stream(&mut aliases.clone(), &mut all, &functions_class(values));
    }
    Text { all, events, classes, aliases }
}

/// The class of streams of events, without classes that were made at run time.
fn stream_class(config: &Config) -> StreamClass {
    let mut stream = ctf::classes::stream_class();
    if config.packed {
        // A compressed trace has no calls, and their classes would be most of it.
        stream.events.retain(|e| e.name.starts_with(OWN));
    }
    stream
}

fn format_version(format: Format) -> EnvValue {
    EnvValue::Int(format.version())
}

/// The time stamp counter. It is right in the middle between two moments, so that the error of a frequency in whole ticks stays small.
fn tsc(realtime_offset: i64, (first, last): (Moment, Moment)) -> Clock {
    const SECOND: i128 = 1_000_000_000;
    let (ticks, ns) =
        (i128::from(last.tsc) - i128::from(first.tsc), i128::from(last.monotonic) - i128::from(first.monotonic));
    let (mut freq, mut middle) = (SECOND, first);
    if ticks > 0 && ns > 0 {
        freq = ((ticks * SECOND + ns / 2) / ns).clamp(1, 1 << 62);
        middle = Moment { tsc: first.tsc + ticks as u64 / 2, monotonic: first.monotonic + ns as u64 / 2 };
    }
    // Of the clock's zero, in ns since the epoch.
    let zero = i128::from(middle.monotonic) + i128::from(realtime_offset) - i128::from(middle.tsc) * SECOND / freq;
    let (seconds, rest) = (zero.div_euclid(SECOND), zero.rem_euclid(SECOND));
    Clock {
        name: ctf::classes::TSC.into(),
        uuid: None,
        description: "time stamp counter".into(),
        freq: freq as u64,
        precision: 0,
        offset_s: seconds.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
        offset: (rest * freq / SECOND) as i64,
        absolute: true,
    }
}

/// Names of flags, where the trace has events with flags.
pub fn labels(config: &Config) -> &'static str {
    static ALL: LazyLock<String> = LazyLock::new(ctf::labels::json);
    if config.packed { "" } else { &ALL }
}

/// What is said of the trace as a whole, without its streams.
fn metadata(config: &Config, uuid: [u8; 16]) -> Metadata {
    let offset = config.realtime_offset;
    let text = |s: &str| EnvValue::Str(s.to_string());
    let version: Vec<i64> = env!("CARGO_PKG_VERSION").split('.').map(|n| n.parse().unwrap_or(0)).collect();
    let part = |i: usize| EnvValue::Int(version.get(i).copied().unwrap_or(0));
    let env = vec![
        ("hostname".into(), text(&proc::host_name())),
        ("domain".into(), text("trapline")),
        (format::KEY.into(), format_version(if config.packed { Format::V5 } else { Format::V2 })),
        ("tracer_name".into(), text("trapline")),
        ("tracer_major".into(), part(0)),
        ("tracer_minor".into(), part(1)),
        ("tracer_patchlevel".into(), part(2)),
        ("sysname".into(), text("Linux")),
        ("kernel_release".into(), text(&proc::kernel_release())),
        ("boot_id".into(), text(&proc::boot_id())),
        ("architecture".into(), text(std::env::consts::ARCH)),
        ("command".into(), text(&config.command)),
        ("backend".into(), text(&config.backend)),
        ("utc_offset".into(), EnvValue::Int(config.utc_offset)),
    ];
    let mut env = env;
    if let Some((filter, params)) = &config.filter {
        env.push(("where".into(), text(filter)));
        env.push(("string_limit".into(), EnvValue::Int(config.string.try_into().unwrap_or(i64::MAX))));
        env.extend(params.iter().enumerate().map(|(i, p)| (format!("where_{}", i + 1), text(p))));
    }
    env.extend(config.no_duration.then(|| (ctf::format::NO_DURATION.to_string(), EnvValue::Int(1))));
    let part = |in_part| text(if in_part { "part" } else { "whole" });
    env.extend(config.machine_in_part.map(|in_part| ("machine".to_string(), part(in_part))));
    env.extend(config.select.iter().map(|s| ("select".to_string(), text(s))));
    env.extend(config.said.iter().map(|(name, said)| (name.clone(), text(said))));
    let clock = Clock {
        name: ctf::classes::CLOCK.into(),
        uuid: None,
        description: "CLOCK_MONOTONIC".into(),
        freq: 1_000_000_000,
        precision: 0,
        offset_s: offset.div_euclid(1_000_000_000),
        offset: offset.rem_euclid(1_000_000_000),
        absolute: true,
    };
    Metadata {
        order: ByteOrder::Little,
        uuid: Some(uuid),
        packet_header: Some(ctf::classes::packet_header()),
        env,
        clocks: vec![clock],
        streams: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::dynamic;

    /// What is kept of the text before is what would be made again.
    #[test]
    fn a_text_that_grows_is_the_one_that_is_made_at_once() {
        let class = |name| dynamic::class(name, &[]).expect("a class");
        let moment = |n| Moment { tsc: 3 * n, monotonic: n };
        let clocks = [None, Some((moment(5), moment(9_000))), Some((moment(5), moment(80_000)))];
        for packed in [false, true] {
            let mut config = Config { packed, ..Config::default() };
            let mut before = None;
            for added in [&["probe:a"][..], &[], &["probe:b", events::values::CLASS], &["probe:c"]] {
                config.classes.extend(added.iter().map(|name| class(name)));
                for clock in clocks {
                    let grown = text(&config, [7; 16], clock, before.as_ref());
                    assert_eq!(grown.all, text(&config, [7; 16], clock, None).all, "{added:?} {clock:?}");
                    before = Some(grown);
                }
            }
            let all = before.expect("a text").all;
            let parsed = ctf::tsdl::parse("metadata", &all).expect("metadata");
            assert_eq!(ctf::print::tsdl(&parsed), all);
            assert_eq!((parsed.clocks.len(), parsed.streams.len()), (2, 2));
        }
    }
}
