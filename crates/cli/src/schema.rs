//! `trapline schema`: what the members of JSON lines and the columns of tables mean.

use engine::Result;
use serde_json::{Value, json};
use views::schema::{lines_document, lines_text, tables_document, tables_text};

/// Prints the schema of lines, of tables, or of both.
pub fn run(part: Option<&str>, as_json: bool) -> Result<u8> {
    let text = if as_json { format!("{:#}\n", document(part)) } else { text(part) };
    session::output::to_stdout(text.as_bytes())
}

fn document(part: Option<&str>) -> Value {
    match part {
        Some("lines") => lines_document(),
        Some(_) => tables_document(),
        None => json!({ "lines": lines_document(), "tables": tables_document() }),
    }
}

fn text(part: Option<&str>) -> String {
    let mut out = String::new();
    if part != Some("tables") {
        lines_text(&mut out);
    }
    if part != Some("lines") {
        tables_text(&mut out);
    }
    out
}
