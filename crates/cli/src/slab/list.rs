//! `trapline slab list`: the caches of this kernel, and the sessions.

use super::{array, escaped, nothing};
use engine::slab::caches::{Cache, Caches};
use engine::slab::{self, Listed};
use engine::{Error, Result};
use lang::pattern::glob;
use serde_json::{Value, json};
use sys::btf::KernelBtf;

/// A line of the list.
struct Row {
    name: String,
    /// How many objects it has, and the bytes of one; none: the cache goes by another name.
    objects: Option<(u64, u64)>,
    /// The session: whether it records; the inner one is none where it is not whole.
    session: Option<Option<bool>>,
    /// Caches that the kernel has made one with it.
    merged: Vec<String>,
    /// Caches that this kernel does not tell from it.
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
        false => session::output::to_stdout(columns(&rows).as_bytes()),
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
fn columns(rows: &[Row]) -> String {
    let head = ["NAME", "OBJECTS", "BYTES", "STATE", "ALSO"].map(str::to_string);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows.iter().map(Row::words)).collect();
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let [name, objects, bytes, state] = [width(0), width(1), width(2), width(3)];
    let mut out = String::new();
    for r in &rows {
        let line = format!("{:<name$}  {:>objects$}  {:>bytes$}  {:<state$}  {}", r[0], r[1], r[2], r[3], r[4]);
        out.push_str(&escaped(line.trim_end().as_bytes()));
        out.push('\n');
    }
    out
}
