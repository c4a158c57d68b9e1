//! `trapline slab list`: the caches of this kernel, and the sessions.

use super::{array, escaped, nothing};
use engine::slab::caches::{Cache, Caches};
use engine::slab::{self, Listed};
use engine::{Error, Result};
use lang::pattern::glob;
use serde_json::{Value, json};
use sys::btf::KernelBtf;
use views::table::{Align, Table};

/// A line of the list.
struct Row {
    name: String,
    /// How many objects it has, and the bytes of one; none: the cache goes by another name.
    objects: Option<(u64, u64)>,
    /// The session: whether it records; the inner one is none where it is not whole.
    session: Option<Option<bool>>,
    /// Caches that the kernel has made one with it.
    merged: Vec<String>,
    /// Caches that this kernel does not distinguish from it.
    like: Vec<String>,
    /// The cache that it is merged with, where that has the objects.
    merged_with: Option<String>,
}

/// Prints what matches.
pub fn run(pattern: &str, json: bool) -> Result<u8> {
    let btf =
        KernelBtf::kernel().map_err(|e| Error::failed("the kernel's types", e.to_string(), "use a kernel with BTF"))?;
    let mut caches = Caches::read(&btf)?;
    order::by(&mut caches.all, |a, b| a.name.cmp(&b.name));
    let sessions = slab::sessions()?;
    let matches = |name: &str| glob(pattern.as_bytes(), name.as_bytes());
    let found = caches.all.iter().filter(|c| matches(&c.name) || c.aliases.iter().any(|a| matches(a)));
    let mut rows: Vec<Row> = found.map(|cache| row(&caches, cache, &sessions)).collect();
    let listed: Vec<String> = rows.iter().map(|r| r.name.clone()).collect();
    for session in sessions.iter().filter(|s| matches(&s.name) && !listed.contains(&s.name)) {
        let of = caches.all.iter().find(|c| c.aliases.contains(&session.name));
        rows.push(Row {
            name: session.name.clone(),
            objects: None,
            session: Some(session.running),
            merged: Vec::new(),
            like: Vec::new(),
            merged_with: of.map(|c| c.name.clone()),
        });
    }
    match rows.is_empty() {
        true => Err(nothing(pattern)),
        false if json => session::output::to_stdout(&array(rows.iter().map(Row::json).collect())),
        false => session::output::to_stdout(&columns(&rows)),
    }
}

fn row(caches: &Caches, cache: &Cache, sessions: &[Listed]) -> Row {
    Row {
        name: cache.name.clone(),
        objects: Some((cache.objects, cache.object_size)),
        session: sessions.iter().find(|s| s.name == cache.name).map(|s| s.running),
        merged: cache.aliases.clone(),
        like: caches.like(cache).into_iter().map(str::to_string).collect(),
        merged_with: None,
    }
}

impl Row {
    /// The words of the text.
    fn words(&self) -> [String; 5] {
        let merged = self.merged.iter().chain(&self.merged_with).map(String::as_str).collect::<Vec<_>>();
        let mut also = Vec::new();
        if !merged.is_empty() {
            also.push(format!("merged with {}", merged.join(", ")));
        }
        if !self.like.is_empty() {
            also.push(format!("cannot be told from {}", self.like.join(", ")));
        }
        let number = |of: fn((u64, u64)) -> u64| self.objects.map_or(String::new(), |n| of(n).to_string());
        let state = match self.session {
            None => "-",
            Some(None) => "unfinished: 'slab clear' removes it",
            Some(_) => self.state(),
        };
        [self.name.clone(), number(|n| n.0), number(|n| n.1), state.into(), also.join("; ")]
    }

    fn state(&self) -> &'static str {
        match self.session {
            None => "none",
            Some(Some(true)) => "recording",
            Some(Some(false)) => "stopped",
            Some(None) => "unfinished",
        }
    }

    fn json(&self) -> Value {
        json!({
            "slab": self.name,
            "objects": self.objects.map(|n| n.0),
            "bytes": self.objects.map(|n| n.1),
            "state": self.state(),
            "merged": self.merged,
            "merged_with": self.merged_with,
            "like": self.like,
        })
    }
}

/// Lines up columns: numbers to the right.
fn columns(rows: &[Row]) -> Vec<u8> {
    let mut table = Table::list([
        ("NAME", Align::Left),
        ("OBJECTS", Align::Right),
        ("BYTES", Align::Right),
        ("STATE", Align::Left),
        ("ALSO", Align::Left),
    ]);
    rows.iter().for_each(|r| table.row(r.words().map(|w| escaped(w.as_bytes())).into()));
    let mut out = Vec::new();
    table.write(&mut out);
    out
}
