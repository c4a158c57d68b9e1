//! The schema as JSON: of lines as JSON Schema (2020-12), of tables as their columns.

use super::{Line, lines as all_lines, values};
use crate::parquet::schema::{ALL, Table, VERSION};
use events::generated::SCHEMAS;
use serde_json::{Map, Value, json};
use values::reference;

/// The JSON Schema of the lines.
pub fn lines() -> Value {
    let mut definitions = shared();
    let mut kinds = Vec::new();
    for line in all_lines() {
        kinds.push(json!({
            "if": { "properties": { "type": { "const": line.name } } },
            "then": reference(line.name)
        }));
        definitions.insert(line.name.into(), of_line(&line));
    }
    for schema in SCHEMAS.iter().filter(|s| values::is_call(s)) {
        definitions.insert(arguments_of(schema.name), values::arguments(schema));
        for arg in schema.args {
            values::structs(&arg.ty, &mut |s| {
                definitions.entry(values::definition(s)).or_insert_with(|| values::structure(s));
            });
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a line of trapline --as json",
        "description": "A version may get further members and types of lines; a reader ignores those that it does not know.",
        "type": "object",
        "required": ["v", "type"],
        "properties": { "v": { "const": crate::json::VERSION }, "type": { "type": "string" } },
        "allOf": kinds,
        "$defs": definitions,
    })
}

fn of_line(line: &Line) -> Value {
    let mut members = Map::new();
    for member in &line.members {
        let mut schema = values::schema(&member.value, line.name);
        // `true` allows anything.
        if schema == json!(true) {
            schema = json!({});
        }
        schema["description"] = member.about.into();
        if let Some(unit) = values::unit(&member.value) {
            schema["x-unit"] = unit.into();
        }
        members.insert(member.name.into(), schema);
    }
    let required: Vec<&str> = line.members.iter().filter(|m| !m.optional).map(|m| m.name).collect();
    let mut whole = json!({ "description": line.about, "type": "object", "required": required, "properties": members });
    if has_calls(line) {
        whole["allOf"] = calls();
    }
    whole
}

/// Whether the arguments of a line are those of a call by its name.
fn has_calls(line: &Line) -> bool {
    matches!(line.name, crate::json::CALL | "inflight")
}

fn arguments_of(call: &str) -> String {
    format!("args_{call}")
}

/// The arguments of each call; those of 32-bit ones are their registers.
fn calls() -> Value {
    let of = |name: &str| {
        json!({
            "if": { "properties": { "name": { "const": name } }, "not": { "required": ["arch"] } },
            "then": { "properties": { "args": reference(&arguments_of(name)) } }
        })
    };
    SCHEMAS.iter().filter(|s| values::is_call(s)).map(|s| of(s.name)).collect()
}

/// What values of several types have in common.
fn shared() -> Map<String, Value> {
    let text = |pattern: &str, about: &str| json!({ "type": "string", "pattern": pattern, "description": about });
    let object =
        |required: &[&str], members: Value| json!({ "type": "object", "required": required, "properties": members });
    let names = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let truncated = json!({ "const": true });
    let number = json!({ "type": "integer" });
    let all = [
        ("hex", text("^0x[0-9a-f]+$", "a number in hexadecimal")),
        ("octal", text("^0[0-7]+$", "permissions")),
        ("address", json!({ "anyOf": [{ "type": "null" }, reference("hex")], "description": "NULL is null" })),
        (
            "bytes",
            json!({
                "description": "text; bytes that are not UTF-8 in hexadecimal; of what was cut, the beginning",
                "anyOf": [
                    { "type": "string" },
                    object(&["hex"], json!({ "hex": { "type": "string" }, "truncated": truncated })),
                    object(&["data", "truncated"], json!({ "data": { "type": "string" }, "truncated": truncated })),
                ]
            }),
        ),
        (
            "unread",
            json!({
                "description": "a pointer that was not followed, or whose memory could not be read",
                "anyOf": [
                    reference("address"),
                    object(&["addr", "fault"], json!({ "addr": reference("address"), "fault": { "const": true } })),
                ]
            }),
        ),
        ("flags", names("names of the bits that are set; bits without a name last, as one string")),
        ("mode", names("file type, special bits, permissions in octal")),
        (
            "signals",
            json!({
                "description": "signals by name; of all but some, those under not",
                "anyOf": [
                    { "type": "array", "items": { "type": ["string", "integer"] } },
                    object(&["not"], json!({ "not": { "type": "array", "items": { "type": ["string", "integer"] } } })),
                ]
            }),
        ),
        (
            "descriptor",
            json!({
                "description": "a descriptor; with -y its name; AT_FDCWD is the working directory",
                "anyOf": [
                    number,
                    { "const": "AT_FDCWD" },
                    object(&["fd", "path"], json!({
                        "fd": { "anyOf": [number, { "const": "AT_FDCWD" }] },
                        "path": reference("bytes"),
                        "detail": reference("bytes"),
                    })),
                ]
            }),
        ),
        ("device", object(&["major", "minor"], json!({ "major": number, "minor": number }))),
        (
            "frame",
            object(
                &[],
                json!({
                    "function": { "type": "string", "description": "demangled name, if known" },
                    "module": { "type": "string", "description": "file that contains the code, or module of the kernel, if known" },
                    "file": { "type": "string", "description": "source file, if known" },
                    "line": { "type": "integer", "description": "line in it, if known" },
                    "offset": { "$ref": "#/$defs/hex", "description": "bytes from the beginning of the function, if known" },
                    "address": { "$ref": "#/$defs/hex", "description": "offset in the module's file; in the kernel, or where no module is known, the address" },
                    "inlined": { "const": true, "description": "the function's code is in that of the next frame" },
                    "guessed": { "const": true, "description": "the unwinder has guessed the frame" },
                    "kernel": { "const": true, "description": "a function of the kernel" },
                }),
            ),
        ),
    ];
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// The tables and their columns.
pub fn tables() -> Value {
    let mut all = Map::new();
    for table in ALL {
        all.insert(table.name.into(), of_table(table));
    }
    json!({ "version": VERSION, "tables": all })
}

fn of_table(table: &Table) -> Value {
    let columns = table.columns.iter().map(|column| {
        json!({
            "name": column.name,
            "type": column.kind.name(),
            "null": column.optional,
            "unit": column.unit(),
            "description": column.about,
        })
    });
    json!({ "description": table.about, "columns": columns.collect::<Vec<_>>() })
}
