//! The schema as text for a terminal.

use super::{EVERY, Line, lines as all_lines, values};
use crate::json::members as m;
use crate::parquet::schema::{ALL, VERSION};
use std::fmt::Write;

/// What is not in the rows.
const LEGEND: &str = "\
Members with ? are left out where they are not known or do not apply. Text is an object, {\"hex\": …}, where it is not UTF-8,
and {\"data\": …, \"truncated\": true} where only its beginning was read. 'trapline list -v CALL' has the arguments of a call.
Readers ignore members and types of lines that they do not know: a version may get more of them.

";

/// Appends the types of lines and their members.
pub fn lines(out: &mut String) {
    let _ = writeln!(out, "JSON lines (--as json), version {}\n", crate::json::VERSION);
    out.push_str(LEGEND);
    let shared: Vec<_> = EVERY.iter().chain(&[m::KSTACK, m::USTACK]).map(row).collect();
    block("every line of an event", "", &shared, out);
    for Line { name, about, members } in all_lines() {
        let own = members.iter().filter(|m| !EVERY.iter().chain(&[m::KSTACK, m::USTACK]).any(|e| e.name == m.name));
        block(name, about, &own.map(row).collect::<Vec<_>>(), out);
    }
}

fn row(member: &m::Member) -> [String; 3] {
    let missing = if member.optional { "?" } else { "" };
    [format!("{}{missing}", member.name), values::words(&member.value).into(), member.about.into()]
}

/// Appends the tables and their columns.
pub fn tables(out: &mut String) {
    let _ = writeln!(out, "Parquet tables (--as parquet=DIR), version {VERSION}\n");
    out.push_str("NULL is what is not known, or does not exist.\n\n");
    for table in ALL {
        let rows = table.columns.iter().map(|c| {
            let null = if c.optional { " or NULL" } else { "" };
            let unit = c.unit().map(|unit| format!(", {unit}")).unwrap_or_default();
            [c.name.into(), format!("{}{null}{unit}", c.kind.name()), c.about.replace('`', "")]
        });
        block(table.name, &table.about.replace('`', ""), &rows.collect::<Vec<_>>(), out);
    }
}

/// A heading, and rows in columns.
fn block(name: &str, about: &str, rows: &[[String; 3]], out: &mut String) {
    let about = if about.is_empty() { String::new() } else { format!(": {about}") };
    let _ = writeln!(out, "{name}{about}");
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    for [name, ty, about] in rows {
        let _ = writeln!(out, "  {name:first$}  {ty:second$}  {about}");
    }
    out.push('\n');
}
