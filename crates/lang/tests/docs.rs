//! The examples of docs/FILTERS.md: each is checked, evaluated, and must end as it says.

use events::encode::{self, Fixed};
use events::layout::Layout;
use events::schema::{Class, Schema};
use events::types::Type;
use events::{Cap, Event};
use lang::{Code, Context, Verdict};
use std::collections::BTreeMap;

const DOC: &str = include_str!("../../../docs/FILTERS.md");

fn schema(name: &str) -> &'static Schema {
    let probe = if name.contains(':') { name.to_string() } else { format!("syscall:{name}") };
    let found = events::generated::SCHEMAS.iter().find(|s| s.probe() == probe);
    found.unwrap_or_else(|| panic!("{probe}"))
}

/// Kind, probe, and lines of every fenced block that has both.
fn blocks() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let mut out = Vec::new();
    let mut lines = DOC.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        if let Some((kind, probe)) = info.split_once(' ') {
            out.push((kind, probe, body));
        }
    }
    out
}

/// The values of an event, as the page lists them.
struct Values(BTreeMap<&'static str, &'static str>);

impl Values {
    fn of(lines: &[&'static str]) -> Values {
        Values(lines.iter().flat_map(|l| l.split_whitespace()).map(|w| w.split_once('=').unwrap()).collect())
    }

    fn number(&self, key: &str) -> i64 {
        let text = self.0.get(key).unwrap_or_else(|| panic!("{key}"));
        match text.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).unwrap(),
            None => text.parse().unwrap(),
        }
    }

    fn encoded(&self, schema: &Schema) -> Vec<u8> {
        let layout = Layout::of(schema);
        // An argument called as a value has a _ behind it.
        let key = |name: &str| if name == "pid" { "pid_".to_owned() } else { name.to_owned() };
        let string = |i: usize| matches!(schema.args[i].ty, Type::Str(_));
        let (mut args, mut cap) = ([0; 6], 0);
        for (i, arg) in schema.args.iter().enumerate() {
            args[i] = if string(i) { 0x1000 } else { self.number(&key(arg.name)) as u64 };
            cap |= if string(i) { u16::from(Cap::Whole.bits()) << (2 * i) } else { 0 };
        }
        let fixed = Fixed {
            time: self.number("nsecs") as u64,
            cap,
            tid: self.number("tid") as u32,
            pid: self.number("pid") as u32,
            start: self.number("start") as u64,
            ret: self.number("retval"),
            cpu_in: self.number("cpu") as u16,
            cpu_out: self.number("cpu") as u16,
            ..Fixed::default()
        };
        let mut bytes = Vec::new();
        encode::fixed(&mut bytes, schema, &layout, &fixed, &args);
        for t in &layout.tails {
            encode::str_tail(&mut bytes, self.0[schema.args[usize::from(t.arg)].name].as_bytes());
        }
        bytes
    }
}

/// What the page says of a line: as in the comments.
fn outcome(text: &str, schema: &'static Schema, values: Option<&Values>) -> String {
    let filter = match lang::filter::parse(text, &[]).and_then(|p| p.check(schema)) {
        Ok(f) => f,
        Err(e) => return e.code.to_string(),
    };
    let values = values.unwrap_or_else(|| panic!("no event for {text}"));
    let bytes = values.encoded(schema);
    let (uid, gid) = (Some(values.number("uid") as u32), Some(values.number("gid") as u32));
    let context = Context { comm: Some(values.0["comm"].as_bytes()), uid, gid, cpu: None };
    match filter.matches(&Event::parse(&bytes).unwrap(), &context) {
        Verdict::Pass => "passes".into(),
        Verdict::Rejected(part) => format!("rejected by {}", part + 1),
        Verdict::Unknown(missing) => format!("unknown: {missing:?}"),
    }
}

#[test]
fn every_example_ends_as_it_says() {
    let mut events = BTreeMap::new();
    let mut tried = 0;
    for (kind, probe, body) in blocks() {
        match kind {
            "event" => drop(events.insert(probe, Values::of(&body))),
            "filter" => {
                for line in body {
                    let (text, expected) = line.rsplit_once("# ").unwrap_or_else(|| panic!("{line}"));
                    assert_eq!(outcome(text.trim(), schema(probe), events.get(probe)), expected, "{line}");
                    tried += 1;
                }
            }
            "diagnostic" => {
                let text = body[0].strip_prefix("$ ").unwrap();
                let e = lang::filter::parse(text, &[]).and_then(|p| p.check(schema(probe))).unwrap_err();
                assert_eq!(e.block("--where", text), body[1..].join("\n"));
                tried += 1;
            }
            _ => panic!("a block of unknown kind: {kind}"),
        }
    }
    assert!(tried > 40, "{tried} examples");
}

#[test]
fn every_code_is_listed() {
    for (code, text) in Code::ALL.iter().filter(|c| c.0.in_filters().is_some()) {
        let row = format!("| {code} | {} |", text.trim());
        assert!(DOC.contains(&row), "{row}");
    }
}

#[test]
fn examples_are_of_calls_and_processes() {
    assert_eq!((schema("openat").class, schema("process:exit").class), (Class::Syscall, Class::Process));
}
