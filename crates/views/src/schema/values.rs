//! Values of lines: their types in words, and as JSON Schema.

use crate::json::members::Value;
use events::schema::Dir;
use events::types::{Fmt, Int, Mem, Struct};
use events::{Class, Schema, Type};
use serde_json::{Map, Value as Json, json};

/// A definition of the document.
pub fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// What a member has, in words.
pub fn words(value: &Value) -> &'static str {
    match value {
        Value::Version | Value::Number => "number",
        Value::Time => "number, ns",
        Value::MaybeTime => "number (ns) or null",
        Value::Ticks => "number, clock ticks",
        Value::Kind | Value::Name => "string",
        Value::MaybeName => "string or null",
        Value::Text => "string or object",
        Value::Truth => "true or false",
        Value::True => "true",
        Value::Hex => "string, 0x…",
        Value::Address => "string (0x…) or null",
        Value::Constant | Value::ConstantOrNumber => "string or number",
        Value::Flags => "array of strings",
        Value::Arguments | Value::Values => "object",
        Value::Result | Value::Any => "any",
        Value::Error => "string, number or null",
        Value::Stack => "array of frames",
        Value::Field(Type::Int(int)) => of_number(int),
        Value::Field(_) => "any",
    }
}

fn of_number(int: &Int) -> &'static str {
    match int.fmt {
        Fmt::Hex => "string, 0x…",
        Fmt::Addr => "string (0x…) or null",
        Fmt::Flags(_) => "array of strings",
        Fmt::Dev => "object: major, minor",
        _ => "number",
    }
}

/// What a member has, as JSON Schema; `kind` is the type of its line.
pub fn schema(value: &Value, kind: &str) -> Json {
    match value {
        Value::Version => json!({ "const": crate::json::VERSION }),
        Value::Kind => json!({ "const": kind }),
        Value::Name => json!({ "type": "string" }),
        Value::MaybeName => json!({ "type": ["string", "null"] }),
        Value::Text => reference("bytes"),
        Value::Number | Value::Time | Value::Ticks => json!({ "type": "integer" }),
        Value::MaybeTime => json!({ "type": ["integer", "null"] }),
        Value::Truth => json!({ "type": "boolean" }),
        Value::True => json!({ "const": true }),
        Value::Hex => reference("hex"),
        Value::Address => reference("address"),
        Value::Constant | Value::ConstantOrNumber => json!({ "type": ["string", "integer"] }),
        Value::Flags => json!({ "type": "array", "items": { "type": "string" } }),
        Value::Arguments | Value::Values => json!({ "type": "object" }),
        Value::Result | Value::Any => json!(true),
        Value::Error => json!({ "type": ["string", "integer", "null"] }),
        Value::Stack => json!({ "type": "array", "items": reference("frame") }),
        Value::Field(ty) => of_type(ty),
    }
}

/// The unit of a member's numbers.
pub fn unit(value: &Value) -> Option<&'static str> {
    match value {
        Value::Time | Value::MaybeTime => Some("ns of CLOCK_MONOTONIC; of several traces, since the epoch"),
        Value::Ticks => Some("clock ticks"),
        _ => None,
    }
}

/// The arguments of a call, as a schema of the object `args`.
pub fn arguments(schema: &Schema) -> Json {
    let mut members = Map::new();
    for arg in schema.args {
        let ty = of_type(&arg.ty);
        // With `-e raw=CALL` the value of the register.
        let shown = match arg.ty {
            Type::Int(_) => vec![ty, reference("hex")],
            _ if matches!(arg.dir, Dir::InOut) || matches!(arg.ty, Type::Switch { .. }) => {
                let pair =
                    json!({ "type": "object", "required": ["in", "out"], "properties": { "in": ty, "out": ty } });
                vec![ty, pair, reference("unread")]
            }
            _ => vec![ty, reference("unread")],
        };
        members.insert(arg.name.into(), json!({ "anyOf": shown }));
    }
    json!({ "type": "object", "properties": members })
}

/// Whether calls of a schema are lines of a name of their own.
pub fn is_call(schema: &Schema) -> bool {
    schema.class == Class::Syscall && schema.name != "raw"
}

fn of_type(ty: &Type) -> Json {
    match ty {
        Type::Int(int) => of_int(int),
        Type::Str(_) | Type::Bytes(_) => reference("bytes"),
        Type::Ptr { elem: elem @ Mem::Int(_), len: None } => of_mem(elem),
        Type::Ptr { elem, len: None } => of_mem(elem),
        Type::Ptr { elem, len: Some(_) } => array(of_mem(elem)),
        Type::Strv => array(json!({ "anyOf": [reference("bytes"), reference("unread")] })),
        Type::Envv => json!({ "anyOf": [array(reference("bytes")), count("vars")] }),
        Type::Iov(_) => array(json!({ "type": "object" })),
        Type::Msghdr | Type::Msgbuf(_) | Type::Sockaddr(_) | Type::SigsetPack => {
            json!({ "type": ["object", "string"] })
        }
        Type::Mmsghdr(_) => array(json!({ "type": "object" })),
        Type::Sigset(_) => reference("signals"),
        Type::Fdset(_) | Type::Cpuset(_) => json!({ "type": "array", "items": { "type": "integer" } }),
        Type::Dirents { .. } => json!({ "anyOf": [array(json!({ "type": "object" })), count("entries")] }),
        // Decided by another argument, as of ioctl.
        Type::Switch { .. } => json!(true),
    }
}

/// An array or structure that is shown by its length, because it is cut.
fn count(what: &str) -> Json {
    let members = json!({ "addr": reference("address"), what: { "type": "integer" }, "cut": { "const": true } });
    json!({ "type": "object", "required": ["addr", what], "properties": members })
}

fn array(items: Json) -> Json {
    let whole = json!({ "type": "array", "items": items });
    let cut = json!({ "type": "object", "required": ["data", "truncated"], "properties": { "data": whole } });
    json!({ "anyOf": [whole, cut] })
}

fn of_mem(mem: &Mem) -> Json {
    match mem {
        Mem::Int(int) => of_int(int),
        Mem::Chars(_) | Mem::Bytes(_) => reference("bytes"),
        Mem::Inet6 => json!({ "type": "string" }),
        Mem::Sigset(_) => reference("signals"),
        Mem::Struct(s) => reference(&definition(s)),
        Mem::Array(elem, _) => array(of_mem(elem)),
    }
}

/// The name of the definition of a struct.
pub fn definition(s: &Struct) -> String {
    format!("struct_{}", s.name)
}

/// A struct: which of its fields are shown, others decide, and `-v`.
pub fn structure(s: &Struct) -> Json {
    let mut members = Map::<String, Json>::new();
    for f in s.fields {
        let name = f.name.trim_start_matches('_');
        let (name, ty) = (if name.is_empty() { "value" } else { name }, of_mem(&f.mem));
        let either = members.get(name).filter(|had| **had != ty).map(|had| json!({ "anyOf": [had, ty] }));
        members.insert(name.into(), either.unwrap_or(ty));
    }
    json!({ "type": ["object", "string"], "properties": members })
}

/// The structs that a type has in it.
pub fn structs(ty: &Type, each: &mut dyn FnMut(&'static Struct)) {
    if let Type::Ptr { elem, .. } = ty {
        of_elements(elem, each);
    }
}

fn of_elements(mem: &Mem, each: &mut dyn FnMut(&'static Struct)) {
    match mem {
        Mem::Struct(s) => {
            each(s);
            s.fields.iter().for_each(|f| of_elements(&f.mem, each));
        }
        Mem::Array(elem, _) => of_elements(elem, each),
        _ => {}
    }
}

fn of_int(int: &Int) -> Json {
    match int.fmt {
        Fmt::Dec | Fmt::Pid | Fmt::Tid | Fmt::Uid | Fmt::Be16 | Fmt::Be32 => json!({ "type": "integer" }),
        Fmt::Time => json!({ "type": "integer", "description": "seconds" }),
        Fmt::ClockTicks => json!({ "type": "integer", "description": "clock ticks" }),
        Fmt::Hex | Fmt::Stack => reference("hex"),
        Fmt::Addr => reference("address"),
        Fmt::Oct => reference("octal"),
        Fmt::ModeType => reference("mode"),
        Fmt::Flags(t) => json!({ "anyOf": [reference("flags"), { "type": "integer" }], "description": t.name }),
        Fmt::Enum(t) => json!({ "type": ["string", "integer"], "description": t.name }),
        Fmt::Signal => json!({ "type": ["string", "integer"], "description": "signal" }),
        Fmt::IoctlCmd => json!({ "type": ["string", "integer"], "description": "ioctl request" }),
        Fmt::Fd | Fmt::Dirfd | Fmt::Registered => reference("descriptor"),
        Fmt::Dev => reference("device"),
        Fmt::Rlim => json!({ "type": ["integer", "string"], "description": "resource limit" }),
        Fmt::Handler | Fmt::Inet4 => json!({ "type": "string" }),
        Fmt::EpollData | Fmt::WaitStatus => json!({ "type": ["object", "string"] }),
    }
}
