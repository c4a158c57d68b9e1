//! `trapline slab`: outstanding objects of the kernel's slab caches.

mod list;
mod objects;
mod stacks;

use crate::complain;
use engine::slab::symbols::Symbols;
use engine::slab::{self, Command, Object, Session, Settings, Snapshot};
use engine::{Error, Result};
use session::ask::Slab;
use session::output::to_stdout;
use session::target;

/// Runs the command.
pub fn run(ask: &Slab) -> Result<u8> {
    let name = ask.name.as_str();
    match ask.what.as_str() {
        "list" => return list::run(ask.pattern.as_deref().unwrap_or("*"), ask.json),
        "start" => start(name, ask.max)?,
        "stop" => Session::find(name)?.act(Command::Stop)?,
        "reset" => Session::find(name)?.act(Command::Reset)?,
        "clear" => slab::clear(name)?,
        _ => return print(name, ask),
    }
    Ok(0)
}

fn start(name: &str, room: Option<u32>) -> Result<()> {
    let started = slab::start(&Settings { name: name.into(), room })?;
    started.notes.iter().for_each(|note| complain(note));
    Ok(())
}

/// What is printed, and how.
struct View<'a> {
    /// The slab.
    name: &'a str,
    /// At most this many lines.
    top: usize,
    /// As JSON.
    json: bool,
}

fn print(name: &str, ask: &Slab) -> Result<u8> {
    let min_age = ask.min_age.as_ref().map_or(Ok(0), |age| target::duration("--min-age", age))?;
    let top = ask.top.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let view = View { name, top, json: ask.json };
    // The session is locked, which nobody else waits for while the text is written.
    let session = Session::find(name)?;
    let mut taken = session.snapshot()?;
    let now = taken.time;
    let pids = &ask.pid;
    let wanted = |o: &Object| now.saturating_sub(o.time) >= min_age && (pids.is_empty() || pids.contains(&o.pid));
    let all = taken.objects.len();
    taken.objects.retain(wanted);
    let nothing = (taken.objects.is_empty() && !ask.json).then(|| why_nothing(&taken, all));
    let room = session.room;
    let out = match ask.by_stack {
        true => {
            let groups = stacks::groups(&taken.objects);
            let before = session.exchange_counts(&stacks::counts(&groups))?;
            drop(session);
            stacks::show(&view, &taken, groups, before.as_ref(), &mut Symbols::default())
        }
        false => {
            drop(session);
            objects::show(&view, &taken, &mut Symbols::default())
        }
    };
    let status = to_stdout(&out)?;
    warn(name, &taken, room);
    nothing.iter().for_each(|why| complain(&format!("{name}: no object to show: {why}")));
    Ok(status)
}

/// Why there is no object to show: of `all`, none was asked for.
fn why_nothing(taken: &Snapshot, all: usize) -> String {
    match (all, taken.running) {
        (0, true) => "all that were allocated since 'start' were released, or none was".into(),
        (0, false) => "it is stopped, and nothing of before is left ('trapline slab start' records again)".into(),
        (1, _) => "the only one is not what --pid and --min-age ask for (leave them out to see it)".into(),
        (n, _) => format!("none of {n} is what --pid and --min-age ask for (leave them out to see them)"),
    }
}

/// Reports what is missing from a snapshot.
fn warn(name: &str, taken: &Snapshot, room: u32) {
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    if taken.full > 0 {
        let n = taken.full;
        complain(&format!(
            "{name}: {n} allocation{} did not fit: there is room for {room} objects (start --max)",
            plural(n)
        ));
    }
    if taken.failed > 0 {
        complain(&format!("{name}: {} allocation{} could not be recorded", taken.failed, plural(taken.failed)));
    }
    if taken.replaced > 0 {
        let n = taken.replaced;
        complain(&format!(
            "{name}: {n} object{} released unseen: the kernel's bulk release has no tracepoint, and others may be shown that are gone",
            if n == 1 { " was" } else { "s were" }
        ));
    }
    if taken.kept > 0 {
        let n = taken.kept;
        complain(&format!(
            "{name}: at most {n} object{} shown though released: an interrupt came while the kernel changed the table",
            if n == 1 { " is" } else { "s are" }
        ));
    }
    if taken.missed > 0 {
        let n = taken.missed;
        complain(&format!(
            "{name}: at most {n} event{} of the allocator, of any slab, passed unseen, in interrupts",
            plural(n)
        ));
    }
}

/// The first line of a text.
fn headline(view: &View<'_>, taken: &Snapshot, lines: usize, what: &str) -> String {
    let bytes: u64 = taken.objects.iter().map(|o| o.size).sum();
    let state = if taken.running { "recording" } else { "stopped" };
    let objects = taken.objects.len();
    let shown = if lines > view.top { format!("; the first {} of {lines} {what}", view.top) } else { String::new() };
    let plural = if objects == 1 { "" } else { "s" };
    format!("{}: {objects} object{plural}, {bytes} bytes, {state}{shown}\n", view.name)
}

/// Text of a target, for a terminal.
fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    views::escape::line(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn age(taken: &Snapshot, object: &Object) -> u64 {
    taken.time.saturating_sub(object.time)
}

/// JSON, an item in a line.
fn array(items: Vec<serde_json::Value>) -> Vec<u8> {
    let lines: Vec<String> = items.iter().map(|i| i.to_string()).collect();
    match lines.is_empty() {
        true => b"[]\n".to_vec(),
        false => format!("[\n{}\n]\n", lines.join(",\n")).into_bytes(),
    }
}

/// Refuses a pattern that matches nothing.
fn nothing(pattern: &str) -> Error {
    Error::usage(pattern, "no such slab", "see 'trapline slab list'")
}
