//! What may stand in a place of the command line, for completion: names that are known only on this machine, now.

use super::{command, topics};
use clap::{Arg, Command, ValueHint};
use engine::provider;
use events::generated::SET_NAMES;
use events::registry::syscalls;
use session::{running, tracer};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More names than this are shown by their next parts.
const MANY: usize = 100;

/// What may be typed, and what it means.
pub struct Candidate {
    /// The whole word.
    pub word: String,
    /// A help text; may be empty.
    pub what: String,
}

impl Candidate {
    /// Makes one.
    pub fn new(word: impl Into<String>, what: impl Into<String>) -> Candidate {
        Candidate { word: word.into(), what: what.into() }
    }
}

/// What else is on the line.
pub struct Around<'a> {
    /// The command, without trapline.
    pub command: Vec<&'a str>,
    /// The program that is traced.
    pub program: Option<String>,
    /// Options with values.
    pub given: Vec<(&'a str, String)>,
}

/// What may be the value of an option or an argument that begins with `typed`; `before` is what the word has before it.
pub fn of(arg: &Arg, before: &str, typed: &str, around: &Around<'_>) -> Vec<Candidate> {
    let id = arg.get_id().as_str();
    let path: Vec<&str> = around.command.clone();
    let possible = arg.get_possible_values();
    let found: Vec<Candidate> = match (id, path.as_slice()) {
        _ if !possible.is_empty() => {
            let help = |v: &clap::builder::PossibleValue| v.get_help().map(ToString::to_string).unwrap_or_default();
            possible.iter().map(|v| Candidate::new(v.get_name(), help(v))).collect()
        }
        // A script's text.
        ("script", ["run", ..]) => return script(before, typed),
        ("expr", _) if typed.contains('{') => return script(before, typed),
        ("expr", ["trace" | "report", ..]) | ("trace", _) => in_list(typed, calls),
        ("expr", _) => in_list(typed, probes),
        ("pattern", ["list"]) => probes(typed),
        ("pattern", ["slab", ..]) => plain(engine::slab::caches::names()),
        ("slab", _) => plain(engine::slab::caches::names().into_iter().chain(["pages".into()])),
        ("session", _) => sessions(),
        ("name", ["tracer", ..]) => plain(tracer::built_in().map(String::from)),
        ("attach" | "pid" | "process", _) => in_list(typed, |_| processes()),
        ("function" | "no-function" | "leave" | "loop", _) => functions(typed, around),
        ("topic", _) => {
            let topics = topics::all().into_iter().map(|t| Candidate::new(t.name, t.title));
            topics.chain(commands()).collect()
        }
        ("page", _) => commands(),
        _ => match arg.get_value_hint() {
            ValueHint::DirPath => vec![Candidate::new(":dirs", "")],
            _ if is_path(id) => vec![Candidate::new(":files", "")],
            _ => Vec::new(),
        },
    };
    let fits = found.into_iter().filter(|c| c.word.starts_with(typed) || c.word.starts_with(':'));
    let whole =
        |c: Candidate| if c.word.starts_with(':') { c } else { Candidate { word: before.to_string() + &c.word, ..c } };
    fits.map(whole).collect()
}

/// Arguments that are files or directories.
fn is_path(id: &str) -> bool {
    matches!(id, "trace-path" | "symbols" | "output" | "stats" | "dir" | "A" | "B" | "program")
}

fn plain(names: impl IntoIterator<Item = String>) -> Vec<Candidate> {
    names.into_iter().map(|name| Candidate::new(name, "")).collect()
}

/// The last part of a list with commas.
fn in_list(typed: &str, part: impl Fn(&str) -> Vec<Candidate>) -> Vec<Candidate> {
    let at = typed.rfind([',', '!', '?', '+', '=']).map_or(0, |at| at + 1);
    // What `session set` takes away.
    let at = if at == 0 && typed.starts_with('-') { 1 } else { at };
    let (before, last) = typed.split_at(at);
    part(last).into_iter().map(|c| Candidate { word: before.to_string() + &c.word, ..c }).collect()
}

/// System calls, and their groups.
fn calls(_: &str) -> Vec<Candidate> {
    let groups = SET_NAMES.iter().map(|set| Candidate::new(format!("%{set}"), "a group of calls"));
    let mut names: Vec<&str> = syscalls().map(|s| s.name).filter(|name| *name != "raw").collect();
    order::by_key(&mut names, |name| *name);
    names.into_iter().map(|name| Candidate::new(name, "")).chain(groups).collect()
}

/// System calls, the providers of probes, and their probes.
fn probes(typed: &str) -> Vec<Candidate> {
    let Some((name, rest)) = typed.split_once(':') else {
        let providers = provider::all().iter().map(|p| Candidate::new(format!("{}:", p.name()), p.describe()));
        return calls(typed).into_iter().chain(providers).collect();
    };
    if name == "syscall" {
        return calls(rest).into_iter().map(|c| Candidate { word: format!("syscall:{}", c.word), ..c }).collect();
    }
    if matches!(name, "uprobe" | "uretprobe" | "usdt") && !rest.contains(':') {
        return files(rest).into_iter().map(|file| Candidate::new(format!("{name}:{file}"), "")).collect();
    }
    let found = provider::list(&format!("{typed}*"), false).unwrap_or_default();
    let note = |p: &provider::Probe| p.note.clone();
    parts(typed, found.iter().map(|p| Candidate::new(p.name.clone(), note(p))).collect())
}

/// What a script may go on with, behind what is typed of it.
fn script(before: &str, text: &str) -> Vec<Candidate> {
    let Some(typed) = session::script::typed::typed(text) else { return Vec::new() };
    let last = text.get(typed.at..).unwrap_or_default();
    let mut found: Vec<Candidate> = typed.names.into_iter().map(|(name, what)| Candidate::new(name, what)).collect();
    if typed.is_probe && last.contains(':') {
        found.extend(probes(last));
    }
    found.retain(|c| c.word.starts_with(last));
    let whole = |c: Candidate| Candidate { word: format!("{before}{}{}", &text[..typed.at], c.word), ..c };
    found.into_iter().map(whole).collect()
}

/// Where there are many names, their parts up to the next colon.
fn parts(typed: &str, found: Vec<Candidate>) -> Vec<Candidate> {
    let next = |c: &Candidate| c.word.get(typed.len()..).and_then(|rest| rest.find(':')).map(|n| typed.len() + n + 1);
    if found.len() <= MANY || !found.iter().any(|c| next(c).is_some()) {
        return found;
    }
    let mut parts: Vec<Candidate> = Vec::new();
    for c in &found {
        let part = next(c).map_or(c.word.as_str(), |end| &c.word[..end]);
        if parts.last().is_none_or(|last| last.word != part) {
            parts.push(Candidate::new(part, ""));
        }
    }
    parts
}

/// The files that a path may go on with: programs with a colon behind them.
fn files(typed: &str) -> Vec<String> {
    let at = typed.rfind('/').map_or(0, |at| at + 1);
    let dir = if at == 0 { "." } else { &typed[..at] };
    let mut found: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (Ok(meta), Ok(name)) = (std::fs::metadata(entry.path()), entry.file_name().into_string()) else { continue };
        let whole = format!("{}{name}", &typed[..at]);
        if meta.is_dir() {
            found.push(whole + "/");
        } else if meta.mode() & 0o111 != 0 || name.contains(".so") {
            found.push(whole + ":");
        }
    }
    order::by_key(&mut found, |name| name.clone());
    found
}

/// What runs, and can be asked.
fn sessions() -> Vec<Candidate> {
    let text = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_string();
    let all = running::all().unwrap_or_default();
    all.iter()
        .map(|s| Candidate::new(text(&s["name"]), format!("{} {}", text(&s["kind"]), text(&s["target"]))))
        .collect()
}

/// Processes, with the names of their programs.
fn processes() -> Vec<Candidate> {
    let own = std::process::id().to_string();
    let mut found: Vec<(u32, Candidate)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        let Ok(number) = pid.parse() else { continue };
        // A thread of the kernel has no program.
        if pid != own && std::fs::read_link(entry.path().join("exe")).is_ok() {
            let comm = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push((number, Candidate::new(pid, comm.trim())));
        }
    }
    order::by_key(&mut found, |(number, _)| *number);
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The functions of the program that is traced.
fn functions(typed: &str, around: &Around<'_>) -> Vec<Candidate> {
    let given = |id: &str| around.given.iter().find(|(of, _)| *of == id).map(|(_, value)| value.clone());
    let program = match (given("attach"), &around.program) {
        (Some(pid), _) => Some(PathBuf::from(format!("/proc/{pid}/exe"))),
        (None, Some(name)) => executable(name),
        _ => None,
    };
    let Some(program) = program.and_then(|path| path.canonicalize().ok()) else { return Vec::new() };
    let of = format!("uprobe:{}:", program.display());
    let found = provider::list(&format!("{of}{typed}*"), false).unwrap_or_default();
    found.iter().filter_map(|p| Some(Candidate::new(p.name.strip_prefix(&of)?, ""))).collect()
}

/// The file of a program.
fn executable(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| Path::is_file(file))
}

/// The commands of trapline.
fn commands() -> Vec<Candidate> {
    let about = |c: &Command| c.get_about().map(ToString::to_string).unwrap_or_default();
    let whole = command();
    whole.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| Candidate::new(c.get_name(), about(c))).collect()
}
