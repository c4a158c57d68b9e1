//! Events without texts: every case stays an event of its class, and rules that find nothing change no byte.

mod build;

use events::redact;
use events::rules::{Rules, What};
use events::{Event, names::NoNames};
use views::json::Json;
use views::{Options, View};

/// Replaces every text, or none.
#[derive(Debug)]
struct Every(bool);

impl Rules for Every {
    fn text(&self, _: What, text: &[u8]) -> Option<Vec<u8>> {
        (self.0 && !text.is_empty()).then(|| b"~".to_vec())
    }
}

fn redacted(bytes: &[u8], rules: &Every) -> Vec<u8> {
    let mut out = Vec::new();
    redact::event(&Event::parse(bytes).expect("an event"), rules, &mut out);
    out
}

fn shown(bytes: &[u8]) -> serde_json::Value {
    let mut out = Vec::new();
    let ev = Event::parse(bytes).expect("what was redacted is an event");
    Json::new(Options { verbose: true, ..Options::default() }).event(&ev, &NoNames, &mut out);
    serde_json::from_slice(&out).expect("JSON")
}

#[test]
fn rules_that_find_nothing_change_nothing() {
    for (name, events) in build::cases::all() {
        for bytes in events {
            assert_eq!(shown(&redacted(&bytes, &Every(false))), shown(&bytes), "{name}");
        }
    }
}

#[test]
fn every_event_stays_one() {
    for (name, events) in build::cases::all() {
        for bytes in events {
            let other = redacted(&bytes, &Every(true));
            let (other, whole) = (shown(&other), shown(&bytes));
            for member in ["type", "name", "pid", "tid", "start_ns", "end_ns", "time_ns", "ret", "errno"] {
                assert_eq!(other[member], whole[member], "{name}: {member}");
            }
        }
    }
}

/// What a backend leaves where an event has no field is whatever was in its buffer before.
#[test]
fn bytes_without_a_field_are_not_copied() {
    const LEFT: u64 = u64::from_le_bytes(*b"leftover");
    let is_own = |ev: &Event<'_>| ev.schema.class == events::Class::Process;
    let mut places = 0;
    for (name, events) in build::cases::all() {
        for mut bytes in events {
            let ev = Event::parse(&bytes).expect("an event");
            let (args, at) = (ev.schema.args.iter(), ev.layout.args);
            let texts = args.zip(at).filter(|(arg, _)| is_own(&ev) && !matches!(arg.ty, events::Type::Int(_)));
            let texts: Vec<usize> = texts.map(|(_, (at, _))| at.into()).collect();
            texts.iter().for_each(|at| bytes[*at..at + 8].copy_from_slice(&LEFT.to_le_bytes()));
            places += texts.len();
            let other = redacted(&bytes, &Every(false));
            assert!(!other.windows(8).any(|b| b == b"leftover"), "{name}");
        }
    }
    assert!(places > 3);
}
