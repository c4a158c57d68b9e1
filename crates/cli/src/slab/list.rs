//! `trapline slab list`: the caches of this kernel, and the sessions.

use super::{escaped, nothing};
use engine::provider::glob;
use engine::slab::caches::{Cache, Caches};
use engine::slab::{self, Listed};
use engine::{Error, Result};
use sys::btf::KernelBtf;

/// Prints what matches.
pub fn run(pattern: &str) -> Result<u8> {
    let btf =
        KernelBtf::kernel().map_err(|e| Error::failed("the kernel's types", e.to_string(), "use a kernel with BTF"))?;
    let mut caches = Caches::read(&btf)?;
    caches.all.sort_by(|a, b| a.name.cmp(&b.name));
    let sessions = slab::sessions()?;
    let matches = |name: &str| glob(pattern.as_bytes(), name.as_bytes());
    let mut rows = vec![["NAME", "OBJECTS", "BYTES", "STATE", "ALSO"].map(str::to_string)];
    let mut listed: Vec<&str> = Vec::new();
    for cache in caches.all.iter().filter(|c| matches(&c.name) || c.aliases.iter().any(|a| matches(a))) {
        rows.push(row(&caches, cache, state(&sessions, &cache.name)));
        listed.push(&cache.name);
    }
    for session in sessions.iter().filter(|s| matches(&s.name) && !listed.contains(&s.name.as_str())) {
        let of = caches.all.iter().find(|c| c.aliases.contains(&session.name));
        let also = of.map_or(String::new(), |c| format!("merged with {}", c.name));
        rows.push([session.name.clone(), String::new(), String::new(), word(session), also]);
    }
    if rows.len() == 1 {
        return Err(nothing(pattern));
    }
    crate::output::to_stdout(columns(&rows).as_bytes())
}

fn row(caches: &Caches, cache: &Cache, state: String) -> [String; 5] {
    let mut also = Vec::new();
    if !cache.aliases.is_empty() {
        also.push(format!("merged with {}", cache.aliases.join(", ")));
    }
    let like = caches.like(cache);
    if !like.is_empty() {
        also.push(format!("cannot be told from {}", like.join(", ")));
    }
    [cache.name.clone(), cache.objects.to_string(), cache.object_size.to_string(), state, also.join("; ")]
}

fn state(sessions: &[Listed], name: &str) -> String {
    sessions.iter().find(|s| s.name == name).map_or("-".into(), word)
}

fn word(session: &Listed) -> String {
    match session.running {
        Some(true) => "recording",
        Some(false) => "stopped",
        None => "unfinished: 'slab clear' removes it",
    }
    .into()
}

/// Lines up columns: numbers to the right.
fn columns(rows: &[[String; 5]]) -> String {
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let [name, objects, bytes, state] = [width(0), width(1), width(2), width(3)];
    let mut out = String::new();
    for r in rows {
        let line = format!("{:<name$}  {:>objects$}  {:>bytes$}  {:<state$}  {}", r[0], r[1], r[2], r[3], r[4]);
        out.push_str(&escaped(line.trim_end().as_bytes()));
        out.push('\n');
    }
    out
}
