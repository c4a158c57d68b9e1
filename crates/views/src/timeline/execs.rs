//! What an exec changes of a process: the environment, where it is captured (`-v`), and descriptors that are closed.
//!
//! The environment is compared with that of the last program of the process or, before its first one, of its parent when that forked. Where
//! either is not captured whole, nothing is said.

use crate::escape;
use events::message::Cursor;
use events::{Cap, Event, Type};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The captured part of the value of a variable, and whether it was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    value: String,
    cut: bool,
}

pub(super) type Environment = BTreeMap<String, Variable>;

/// A descriptor that an exec has closed, and its file, a string.
pub(super) type Closed = (i32, u32);

/// How two environments differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    added: Environment,
    removed: Environment,
    /// Before and after.
    changed: BTreeMap<String, [Variable; 2]>,
}

/// The environment that a call of execve gives a program; none where it is not captured whole.
pub(super) fn environment(ev: &Event<'_>) -> Option<Environment> {
    let nth = ev.schema.args.iter().position(|arg| arg.ty == Type::Envv).filter(|nth| ev.cap(*nth) == Cap::Whole)?;
    let all = Cursor::new(ev.tail(nth, false)?.bytes).strv().ok()?;
    let mut environment = Environment::new();
    for (_, cap, bytes) in all.iter() {
        if !matches!(cap, Cap::Whole | Cap::Cut) {
            return None;
        }
        let text = String::from_utf8_lossy(bytes);
        let (name, value) = text.split_once('=').unwrap_or((&text, ""));
        // Of several with one name, getenv(3) finds the first.
        let of = environment.entry(name.to_owned());
        of.or_insert_with(|| Variable { value: value.to_owned(), cut: cap == Cap::Cut });
    }
    (all.n == all.total).then_some(environment)
}

impl Difference {
    pub(super) fn of(before: &Environment, after: &Environment) -> Difference {
        let without = |all: &Environment, other: &Environment| -> Environment {
            let only = all.iter().filter(|(name, _)| !other.contains_key(*name));
            only.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let both = after.iter().filter_map(|(name, new)| Some((name, before.get(name)?, new)));
        let changed = both.filter(|(_, old, new)| old != new);
        Difference {
            added: without(after, before),
            removed: without(before, after),
            changed: changed.map(|(name, old, new)| (name.clone(), [old.clone(), new.clone()])).collect(),
        }
    }

    /// As words: `+NAME=VALUE`, `-NAME`, `NAME=VALUE (was VALUE)`.
    fn words(&self) -> Vec<String> {
        let added = self.added.iter().map(|(name, of)| format!("+{}={}", shown(name), of.shown()));
        let removed = self.removed.keys().map(|name| format!("-{}", shown(name)));
        let changed = self.changed.iter();
        let changed =
            changed.map(|(name, [old, new])| format!("{}={} (was {})", shown(name), new.shown(), old.shown()));
        added.chain(removed).chain(changed).collect()
    }

    fn json(&self) -> Value {
        let of =
            |all: &Environment| -> Map<String, Value> { all.iter().map(|(n, of)| (n.clone(), of.json())).collect() };
        let changed = self.changed.iter();
        let changed: Map<String, Value> =
            changed.map(|(n, [old, new])| (n.clone(), json!({ "before": old.json(), "after": new.json() }))).collect();
        json!({ "added": of(&self.added), "removed": of(&self.removed), "changed": changed })
    }
}

impl Variable {
    fn shown(&self) -> String {
        format!("{}{}", shown(&self.value), if self.cut { "..." } else { "" })
    }

    /// As other strings of which only the beginning was captured (docs/JSON.md).
    fn json(&self) -> Value {
        if self.cut { json!({ "data": self.value, "truncated": true }) } else { self.value.as_str().into() }
    }
}

/// A text of a traced program, on one line.
fn shown(text: &str) -> String {
    /// Characters of it.
    const MOST: usize = 60;
    let mut out = Vec::new();
    escape::name(text.as_bytes(), &mut out);
    let text = String::from_utf8_lossy(&out).into_owned();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => text[..end].to_owned() + "...",
        None => text,
    }
}

/// What an exec has changed, as a line; empty where nothing is known to have changed.
pub(super) fn line(environment: Option<&Difference>, closed: &[Closed], string: &dyn Fn(u32) -> String) -> String {
    /// Variables and descriptors that are named.
    const MOST: usize = 12;
    let list = |what: &str, all: Vec<String>| {
        let more = all.len().saturating_sub(MOST);
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        let some: Vec<&str> = all.iter().take(MOST).map(String::as_str).collect();
        if some.is_empty() { String::new() } else { format!("{what}: {}{more}", some.join(", ")) }
    };
    let closed =
        closed.iter().map(|(fd, file)| format!("{fd} {}", shown(&string(*file))).trim_end().to_owned()).collect();
    let parts = [list("environment", environment.map(Difference::words).unwrap_or_default()), list("closed", closed)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The difference as an object, null where it is not known; the descriptors as an array.
pub(super) fn json(environment: Option<&Difference>, closed: &[Closed], string: &dyn Fn(u32) -> String) -> [Value; 2] {
    let file = |file: u32| if file == 0 { Value::Null } else { string(file).into() };
    let closed = closed.iter().map(|(fd, of)| json!({ "fd": fd, "file": file(*of) })).collect();
    [environment.map_or(Value::Null, Difference::json), closed]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[(&str, &str, bool)]) -> Environment {
        let variable = |value: &str, cut| Variable { value: value.to_owned(), cut };
        all.iter().map(|(name, value, cut)| ((*name).to_owned(), variable(value, *cut))).collect()
    }

    #[test]
    fn differences_are_words_and_objects() {
        let before = of(&[("A", "1", false), ("HOME", "/root", false), ("LONG", "aaa", true), ("OLD", "x", false)]);
        let after = of(&[("A", "1", false), ("HOME", "", false), ("LONG", "aab", true), ("NEW", "a\nb", false)]);
        let difference = Difference::of(&before, &after);
        let files = |n: u32| if n == 0 { String::new() } else { "/f".to_owned() };
        let text = "environment: +NEW=a\\nb, -OLD, HOME= (was /root), LONG=aab... (was aaa...); closed: 3 /f, 5";
        assert_eq!(line(Some(&difference), &[(3, 1), (5, 0)], &files), text);
        let [environment, closed] = json(Some(&difference), &[(3, 1), (5, 0)], &files);
        let long = |data: &str| json!({ "data": data, "truncated": true });
        let changed = json!({
            "HOME": { "before": "/root", "after": "" }, "LONG": { "before": long("aaa"), "after": long("aab") },
        });
        assert_eq!(environment, json!({ "added": { "NEW": "a\nb" }, "removed": { "OLD": "x" }, "changed": changed }));
        assert_eq!(closed, json!([{ "fd": 3, "file": "/f" }, { "fd": 5, "file": null }]));
        assert_eq!(line(Some(&Difference::of(&after, &after)), &[], &files), "");
        assert_eq!((line(None, &[], &files), json(None, &[], &files)), (String::new(), [Value::Null, json!([])]));
    }

    #[test]
    fn many_variables_are_counted() {
        let all: Vec<String> = (10..30).map(|n| format!("V{n}")).collect();
        let after: Vec<(&str, &str, bool)> = all.iter().map(|name| (&**name, "", false)).collect();
        let text = line(Some(&Difference::of(&Environment::new(), &of(&after))), &[], &|_| String::new());
        assert!(text.starts_with("environment: +V10=, ") && text.ends_with("+V21=, 8 more"), "{text}");
    }
}
