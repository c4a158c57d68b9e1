//! `trapline list`: system calls, with argument names and types.

use clap::ArgMatches;
use engine::select::{Calls, nearest};
use engine::{Error, Result};
use events::schema::{Ret, Schema, syscalls};
use std::io::Write;

/// Prints the calls that match.
pub fn run(m: &ArgMatches) -> Result<u8> {
    let pattern = m.get_one::<String>("pattern").map_or("*", String::as_str);
    let verbose = m.get_flag("verbose");
    let chosen = choose(pattern)?;
    let mut out = String::new();
    for s in chosen {
        line(s, verbose, &mut out);
    }
    // A closed pipe (| head) is no error.
    let _ = std::io::stdout().write_all(out.as_bytes());
    Ok(0)
}

fn choose(pattern: &str) -> Result<Vec<&'static Schema>> {
    let name = pattern.strip_prefix("syscall:").unwrap_or(pattern);
    let mut all: Vec<_> = syscalls().filter(|s| s.name != "raw").collect();
    all.sort_by_key(|s| s.name);
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

/// `*` and `?`.
fn glob(p: &[u8], s: &[u8]) -> bool {
    match (p.first(), s.first()) {
        (None, None) => true,
        (Some(b'*'), _) => glob(&p[1..], s) || (!s.is_empty() && glob(p, &s[1..])),
        (Some(b'?'), Some(_)) => glob(&p[1..], &s[1..]),
        (Some(a), Some(b)) if a == b => glob(&p[1..], &s[1..]),
        _ => false,
    }
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

#[cfg(test)]
mod tests {
    #[test]
    fn globs() {
        assert!(super::glob(b"open*", b"openat"));
        assert!(super::glob(b"*at", b"openat"));
        assert!(super::glob(b"dup?", b"dup2"));
        assert!(!super::glob(b"dup?", b"dup"));
    }
}
