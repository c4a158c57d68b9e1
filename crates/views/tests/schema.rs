//! The published schema: each line that the JSON view writes is valid by it, and has no member that it lacks.

mod build;
mod json_schema;

use events::dynamic::{self, Field};
use events::names::NoNames;
use events::types::{Fmt, Int, Type};
use events::{Class, Event, functions};
use json_schema::invalid;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use views::json::Json;
use views::options::{FdNames, Xlat};
use views::schema::{lines, lines_document, lines_text, tables_text};
use views::{Options, View};

/// The lines of all cases with these options.
fn shown(options: &Options) -> String {
    let mut view = Json::new(options.clone());
    let mut out = Vec::new();
    for bytes in build::cases::all().iter().flat_map(|(_, events)| events) {
        view.event(&Event::parse(bytes).expect("an event"), &NoNames, &mut out);
    }
    // One of each type that no case is of.
    for schema in events::generated::SCHEMAS.iter().filter(|s| s.class == Class::Process) {
        let bytes = build::Call::process(schema.name).encode();
        view.event(&Event::parse(&bytes).expect("an event"), &NoNames, &mut out);
    }
    // Other probes: a point, and one that lasts.
    let field = || Field { name: "size".into(), ty: Type::Int(Int { size: 8, signed: false, fmt: Fmt::Dec }) };
    let point = dynamic::class("heap:malloc", &[field()]).expect("a class");
    let lasts = dynamic::span("function:parse", &[field()]).expect("a class");
    for call in [build::Call::of(point), build::Call::of(lasts), build::Call::of(functions::entry())] {
        view.event(&Event::parse(&call.encode()).expect("an event"), &NoNames, &mut out);
    }
    view.lost(17);
    view.end(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

/// What is wrong with a line by the schema, which must know all its members.
fn wrong(document: &Value, line: &str) -> Option<String> {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let known = &document["$defs"][value["type"].as_str().unwrap_or_default()]["properties"];
    let unknown = value.as_object().into_iter().flatten().find(|(name, _)| known.get(name).is_none());
    unknown.map(|(name, _)| format!("unknown member {name}")).or_else(|| invalid(document, &value))
}

#[test]
fn every_line_is_valid() {
    let document = lines_document();
    let ways = [
        Options::default(),
        Options { verbose: true, numbers: true, comm: true, fd_names: FdNames::FULL, ..Options::default() },
        Options { xlat: Xlat::Raw, ..Options::default() },
        Options { raw: vec![true; events::generated::SCHEMAS.len()], ..Options::default() },
    ];
    let mut types = BTreeSet::new();
    for (n, options) in ways.iter().enumerate() {
        for line in shown(options).lines() {
            assert_eq!(wrong(&document, line), None, "{n}: {line}");
            let value: Value = serde_json::from_str(line).expect("JSON");
            types.insert(value["type"].as_str().expect("a type").to_owned());
        }
    }
    assert_eq!(types, lines().iter().map(|line| line.name.to_owned()).collect(), "types of lines that were shown");
}

#[test]
fn what_the_schema_forbids_is_found() {
    let document = lines_document();
    let text = shown(&Options::default());
    let open = text.lines().find(|line| line.contains("\"openat\"")).expect("a call");
    assert_eq!(wrong(&document, open), None);
    for (from, to) in [
        ("\"v\":1", "\"v\":2"),
        ("\"pid\":", "\"pdi\":"),
        ("\"end_ns\":2", "\"end_ns\":-0.2"),
        ("\"filename\":\"", "\"filename\":7,\"x\":\""),
        ("\"type\":\"syscall\"", "\"type\":\"call\""),
    ] {
        assert!(open.contains(from), "{from}: {open}");
        assert!(wrong(&document, &open.replace(from, to)).is_some(), "{from} as {to} is valid");
    }
}

#[test]
fn text_has_every_type_and_every_column() {
    let (mut of_lines, mut of_tables) = (String::new(), String::new());
    lines_text(&mut of_lines);
    tables_text(&mut of_tables);
    for line in lines() {
        assert!(of_lines.contains(&format!("\n{}: {}\n", line.name, line.about)), "{}", line.name);
        for member in &line.members {
            assert!(of_lines.contains(member.about), "{} {}", line.name, member.name);
        }
    }
    for table in views::parquet::schema::ALL {
        assert!(of_tables.contains(&format!("\n{}: ", table.name)), "{}", table.name);
        for column in table.columns {
            assert!(of_tables.contains(&column.about.replace('`', "")), "{} {}", table.name, column.name);
        }
    }
}

/// The validator finds what is wrong.
#[test]
fn the_validator_finds_errors() {
    let schema = json!({
        "type": "object",
        "required": ["v"],
        "properties": { "v": { "const": 1 }, "of": { "$ref": "#/$defs/hex" }, "all": { "items": { "type": ["string", "null"] } } },
        "allOf": [{ "if": { "required": ["of"] }, "then": { "required": ["all"] } }, { "not": { "required": ["bad"] } }],
        "$defs": { "hex": { "anyOf": [{ "pattern": "^0x[0-9a-f]+$", "type": "string" }, { "type": "integer" }] } }
    });
    for valid in [json!({ "v": 1 }), json!({ "v": 1, "of": "0x1f", "all": ["a", null] })] {
        assert_eq!(invalid(&schema, &valid), None);
    }
    let wrong = [
        json!([]),
        json!({}),
        json!({ "v": 2 }),
        json!({ "v": 1, "of": 7 }),
        json!({ "v": 1, "of": "0x", "all": [] }),
        json!({ "v": 1, "of": true, "all": [] }),
        json!({ "v": 1, "all": [1] }),
        json!({ "v": 1, "bad": 1 }),
    ];
    for value in wrong {
        assert!(invalid(&schema, &value).is_some(), "{value}");
    }
    assert!(invalid(&json!({ "maximum": 1 }), &json!(1)).is_some_and(|why| why.contains("unknown keyword")));
}
