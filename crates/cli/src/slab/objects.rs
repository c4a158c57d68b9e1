//! `trapline slab print`: each object, oldest first.

use super::{View, age, array, escaped, headline};
use engine::slab::symbols::Symbols;
use engine::slab::{Object, Snapshot};
use serde_json::{Value, json};

/// The text, or the JSON.
pub fn show(view: &View<'_>, taken: &Snapshot, symbols: &mut Symbols) -> Vec<u8> {
    let shown = taken.objects.iter().take(view.top);
    if view.json {
        return array(shown.map(|o| item(taken, o, symbols)).collect());
    }
    let mut out = headline(view, taken, taken.objects.len(), "objects");
    shown.for_each(|o| out.push_str(&lines(taken, o, symbols)));
    out.into_bytes()
}

fn lines(taken: &Snapshot, o: &Object, symbols: &mut Symbols) -> String {
    let comm = String::from_utf8_lossy(o.comm()).into_owned();
    let program = symbols.program(o).unwrap_or_default();
    let head = format!(
        "{:016x}  {} bytes  {}  pid {}  {comm}  {program}",
        o.address,
        o.size,
        views::units::duration(age(taken, o)),
        o.pid
    );
    let mut out = escaped(head.trim_end().as_bytes()) + "\n";
    if o.user_pc != 0 {
        let place = symbols.user_place(o).map(|p| format!("  {}", escaped(p.as_bytes()))).unwrap_or_default();
        out.push_str(&format!("    user {:#x}{place}\n", o.user_pc));
    }
    symbols.stack(o.frames()).iter().for_each(|frame| out.push_str(&format!("    {frame}\n")));
    out
}

fn item(taken: &Snapshot, o: &Object, symbols: &mut Symbols) -> Value {
    json!({
        "address": format!("{:#x}", o.address),
        "size": o.size,
        "age_ns": age(taken, o),
        "pid": o.pid,
        "tid": o.tid,
        "comm": String::from_utf8_lossy(o.comm()),
        "program": symbols.program(o),
        "user_pc": (o.user_pc != 0).then(|| format!("{:#x}", o.user_pc)),
        "user_place": symbols.user_place(o),
        "stack": symbols.stack(o.frames()),
    })
}
