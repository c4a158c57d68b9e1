//! `trapline list`: probes, with argument names and types.

use engine::provider::{self, Probe};
use engine::request::select::Calls;
use engine::rights;
use engine::{Error, Result};
use events::registry::syscalls;
use events::schema::{Ret, Schema};
use lang::near::nearest;
use lang::pattern::glob;

/// Prints the probes that match: `PROVIDER:REST`, or system calls where no provider is named.
pub fn run(pattern: &str, verbose: bool) -> Result<u8> {
    if pattern.split(':').next() == Some("function") {
        let todo = "those of a file: trapline list 'uprobe:PROGRAM:*'";
        return Err(Error::usage(pattern, "functions are found in the programs that a recording meets", todo));
    }
    let mut out = String::new();
    match provider_of(pattern) {
        Some(_) => {
            for p in provider::list(pattern, verbose)? {
                probe(&p, verbose, &mut out);
            }
            for p in provider::all().iter().filter(|p| pattern.split(':').next() == Some(p.name())) {
                if let Some(why) = p.unusable() {
                    crate::complain(&format!("{}: {why}: its probes cannot be enabled here", p.name()));
                }
            }
        }
        None => choose(pattern)?.into_iter().for_each(|s| line(s, verbose, &mut out)),
    }
    session::output::to_stdout(out.as_bytes())
}

/// The provider in a pattern; `None` for system calls, which are listed without a provider.
fn provider_of(pattern: &str) -> Option<&str> {
    if pattern.starts_with(['%', '/', '!']) {
        return None;
    }
    match pattern.split_once(':') {
        Some((name, _)) => Some(name).filter(|n| *n != "syscall"),
        None => Some(pattern).filter(|n| *n != "syscall" && provider::named(n).is_some()),
    }
}

/// Prints a probe. Its name may come from a file, so it is escaped.
fn probe(p: &Probe, verbose: bool, out: &mut String) {
    let mut text = p.name.clone();
    if verbose {
        let args: Vec<String> = p.args.iter().map(|a| a.to_string()).collect();
        text.push_str(&format!("({})", args.join(", ")));
        let barred = if rights::is_root() { None } else { rights::note(&p.name) };
        let more = [p.note.clone(), barred.unwrap_or_default().into(), p.places()];
        let more: Vec<&str> = more.iter().map(String::as_str).filter(|t| !t.is_empty()).collect();
        if !more.is_empty() {
            text.push_str(&format!("  {}", more.join(", ")));
        }
    }
    let mut line = Vec::new();
    views::escape::line(text.as_bytes(), &mut line);
    out.push_str(&String::from_utf8_lossy(&line));
    out.push('\n');
}

fn choose(pattern: &str) -> Result<Vec<&'static Schema>> {
    let name = match pattern {
        "syscall" => "*",
        _ => pattern.strip_prefix("syscall:").unwrap_or(pattern),
    };
    let mut all: Vec<_> = syscalls().filter(|s| s.name != "raw").collect();
    order::by_key(&mut all, |s| s.name);
    if name.starts_with(['%', '/', '!']) || name.contains(',') {
        let calls = Calls::parse(name)?;
        all.retain(|s| calls.contains(s));
        return Ok(all);
    }
    let found: Vec<_> = all.iter().copied().filter(|s| glob(name.as_bytes(), s.name.as_bytes())).collect();
    if found.is_empty() {
        let near = nearest(name, all.iter().map(|s| s.name));
        return Err(Error::usage(pattern, "no such system call", format!("did you mean {}?", near.join(", "))));
    }
    Ok(found)
}

fn line(s: &Schema, verbose: bool, out: &mut String) {
    if !verbose {
        out.push_str(&format!("syscall:{}\n", s.name));
        return;
    }
    let args: Vec<String> = s
        .args
        .iter()
        .map(|a| {
            let t = views::text::c_type(a);
            if t.ends_with('*') { format!("{t}{}", a.name) } else { format!("{t} {}", a.name) }
        })
        .collect();
    let number = |n: Option<u32>| n.map_or("-".to_string(), |n| n.to_string());
    let sets: Vec<String> = events::generated::SET_NAMES
        .iter()
        .enumerate()
        .filter(|(i, _)| s.sets.0 >> i & 1 == 1)
        .map(|(_, n)| format!("%{n}"))
        .collect();
    let never = if s.ret == Ret::Never { "  (does not return)" } else { "" };
    out.push_str(&format!("syscall:{}({}){never}\n", s.name, args.join(", ")));
    out.push_str(&format!("    x86_64 {}, aarch64 {}  {}\n", number(s.x86_64), number(s.aarch64), sets.join(" ")));
}
