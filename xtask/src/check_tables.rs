//! `cargo xtask check-tables`: are the calls in tables/ those of the running kernel?
//!
//! The kernel describes its calls in tracefs, `events/syscalls/sys_enter_NAME/format`: names and arguments, no numbers.
//! Names of arguments may differ; their number may not.

use crate::{codegen, skips};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Where tracefs may be.
const PLACES: [&str; 2] = ["/sys/kernel/tracing/events/syscalls", "/sys/kernel/debug/tracing/events/syscalls"];

/// Calls that the kernel's source names otherwise than its list of numbers does: the kernel's name, the table's.
const RENAMED: [(&str, &str); 6] = [
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newstat", "stat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("umount", "umount2"),
];

/// Calls with another number of arguments on purpose: name, arguments in the kernel, in the table, why.
const OTHER_COUNT: [(&str, usize, usize, &str); 1] =
    [("rt_sigreturn", 0, 1, "the backend reads the mask from the signal frame and shows it as an argument")];

pub fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "usage: cargo xtask check-tables");
    check(std::env::var_os(skips::VARIABLE).as_deref().map(Path::new))
}

/// Compares, or notes in the file `skips` that it cannot.
pub fn check(skips: Option<&Path>) -> Result<()> {
    let kernel = match kernel() {
        Ok(kernel) => kernel,
        Err(why) => {
            let why = format!("{why:#} (as root: mount -t tracefs nodev /sys/kernel/tracing)");
            println!("check-tables: not checked: {why}");
            return skips.map_or(Ok(()), |path| skips::add(path, "root", "check-tables", &why));
        }
    };
    let tables = codegen::read(&crate::root())?;
    let table = tables.calls.iter().filter(|c| !c.process).map(|c| (c.name.as_str(), c.args.len())).collect();
    let wrong = compare(&kernel, &table);
    for w in &wrong {
        eprintln!("check-tables: {w}");
    }
    if !wrong.is_empty() {
        bail!("check-tables: {} of {} calls differ: see docs/HOWTO_ADD_SYSCALL.md", wrong.len(), kernel.len());
    }
    println!("check-tables: {} calls of this kernel stand in tables/ with all their arguments", kernel.len());
    Ok(())
}

/// The kernel's calls with their number of arguments.
fn kernel() -> Result<BTreeMap<String, usize>> {
    let mut trouble = None;
    for place in PLACES.map(Path::new) {
        match formats(place) {
            Ok(calls) if !calls.is_empty() => return Ok(calls),
            Ok(_) => {}
            Err(e) => trouble = trouble.or(Some((place, e))),
        }
    }
    let (place, e) = trouble.context("tracefs lists no calls")?;
    Err(e).with_context(|| format!("cannot read {}", place.display()))
}

fn formats(dir: &Path) -> io::Result<BTreeMap<String, usize>> {
    let mut calls = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str().and_then(|n| n.strip_prefix("sys_enter_")) {
            calls.insert(name.to_string(), arguments(&fs::read_to_string(entry.path().join("format"))?));
        }
    }
    Ok(calls)
}

/// The number of arguments in a format file: the fields after `__syscall_nr`, without the copies of strings that
/// newer kernels append.
fn arguments(format: &str) -> usize {
    let own = format.split_once("__syscall_nr;").map_or("", |(_, own)| own);
    own.lines().filter(|l| l.trim_start().starts_with("field:") && !l.contains("__data_loc")).count()
}

/// Every difference, in words.
fn compare(kernel: &BTreeMap<String, usize>, table: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (kernels, &count) in kernel {
        let name = RENAMED.iter().find(|(k, _)| k == kernels).map_or(kernels.as_str(), |(_, t)| *t);
        let Some(&have) = table.get(name) else {
            wrong.push(format!("{name}: the kernel has it, with {count} arguments, tables/ does not"));
            continue;
        };
        let excused = OTHER_COUNT.iter().any(|&(n, k, t, _)| (n, k, t) == (name, count, have));
        if have != count && !excused {
            wrong.push(format!("{name}: {count} arguments in the kernel, {have} in tables/"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_the_fields_behind_the_number() {
        let format = "name: sys_enter_openat\nID: 782\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n\
            \tfield:__data_loc char[] __filename_val;\toffset:48;\tsize:4;\tsigned:0;\n\n\
            print fmt: \"field: 0x%08lx\", REC->dfd\n";
        assert_eq!(arguments(format), 2);
        assert_eq!(arguments("name: nothing\n"), 0);
    }

    #[test]
    fn differences_are_named() {
        let kernel = [("newstat", 2), ("openat", 4), ("read", 2), ("rt_sigreturn", 0), ("shiny", 1)];
        let kernel = kernel.map(|(n, c)| (n.to_string(), c)).into_iter().collect();
        let table = BTreeMap::from([("stat", 2), ("openat", 4), ("read", 3), ("rt_sigreturn", 1), ("vserver", 0)]);
        let want = [
            "read: 2 arguments in the kernel, 3 in tables/",
            "shiny: the kernel has it, with 1 arguments, tables/ does not",
        ];
        assert_eq!(compare(&kernel, &table), want);
    }
}
