//! Names for the values of flags, which CTF cannot express well: an enumeration shows an OR of two as unknown.
//!
//! `DIR/.trapline/labels.json`: `{"fields": {"syscall:openat": {"flags": "open"}, …}, "tables": {"open": {"kind": "flags",
//! "values": [["O_RDWR", 2, 3], …]}, …}}`. A value is a name, a number, and the bits that are compared. Readers of other
//! programs may use it; trapline has the same tables built in.

use events::types::{Fmt, Mem, Table, TableKind, Type};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The text of the file, for every class that codegen knows.
pub fn json() -> String {
    let mut tables: BTreeMap<&str, &Table> = BTreeMap::new();
    let mut out = String::from("{\"fields\": {");
    let mut first = true;
    for schema in events::generated::SCHEMAS {
        let named: Vec<_> = schema.args.iter().filter_map(|a| Some((a.name, table(&a.ty)?))).collect();
        if named.is_empty() {
            continue;
        }
        let _ = write!(out, "{}\n\"{}\": {{", if first { "" } else { "," }, schema.probe());
        first = false;
        for (i, (name, table)) in named.iter().enumerate() {
            let _ = write!(out, "{}\"{name}\": \"{}\"", if i > 0 { ", " } else { "" }, table.name);
            tables.insert(table.name, table);
        }
        out.push('}');
    }
    out.push_str("},\n\"tables\": {");
    for (i, (name, table)) in tables.iter().enumerate() {
        let kind = if table.kind == TableKind::Flags { "flags" } else { "enum" };
        let _ = write!(out, "{}\n\"{name}\": {{\"kind\": \"{kind}\", \"values\": [", if i > 0 { "," } else { "" });
        for (j, e) in table.entries().enumerate() {
            let _ = write!(out, "{}[\"{}\", {}, {}]", if j > 0 { ", " } else { "" }, e.name, e.value, e.mask);
        }
        out.push_str("]}");
    }
    out.push_str("}}\n");
    out
}

fn table(ty: &Type) -> Option<&'static Table> {
    let int = match ty {
        Type::Int(i) => i,
        Type::Ptr { elem: Mem::Int(i), .. } => i,
        _ => return None,
    };
    match int.fmt {
        Fmt::Flags(t) | Fmt::Enum(t) => Some(t),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_text_is_json_and_names_the_flags_of_open() {
        let all: serde_json::Value = serde_json::from_str(&super::json()).unwrap();
        let table = all["fields"]["syscall:openat"]["flags"].as_str().unwrap();
        let values = all["tables"][table]["values"].as_array().unwrap();
        assert!(values.iter().any(|v| v[0] == "O_CREAT" && v[1] == 0o100));
        assert_eq!(all["tables"][table]["kind"], "flags");
    }
}
