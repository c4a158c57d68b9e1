//! What the kernel's refusals mean.

use crate::error::Error;
use std::fmt;
use std::io;
use sys::bpf::prog::LoadError;

/// The error of a refused system call: what it was for, and what would help.
pub fn refused(what: &str, e: &io::Error) -> Error {
    let todo = match e.raw_os_error() {
        Some(1 | 13) => "run as root, or with CAP_BPF and CAP_PERFMON; --backend ptrace needs neither",
        _ => "use --backend ptrace",
    };
    Error::failed(what, e.to_string(), todo)
}

/// What the verifier says is wrong with a program; without its log, the error.
pub fn reason(e: &LoadError) -> String {
    // The last line only counts instructions.
    let said = e.log.lines().rev().find(|l| !l.trim().is_empty() && !l.starts_with("processed"));
    said.map_or_else(|| e.error.to_string(), |line| line.trim().trim_end_matches('.').to_string())
}

/// A rejection by the verifier is a bug in trapline: the program and the kernel's log are written to a file.
pub fn rejected(e: &LoadError, program: &dyn fmt::Display) -> Error {
    // The verifier is content, and there is no descriptor left for the program.
    const EMFILE: i32 = 24;
    let errno = e.error.raw_os_error();
    if errno == Some(EMFILE) || errno == Some(1) && e.log.is_empty() {
        return refused("bpf(2)", &e.error);
    }
    let path = std::env::temp_dir().join(format!("trapline-rejected-{}-{}.log", e.name, std::process::id()));
    let text = format!("{}: {}\n\n{program}\n\n{}\n", e.name, e.error, e.log);
    let kept = sys::process::write_private(&path, text.as_bytes());
    let where_ =
        if kept.is_ok() { format!("please report it with {}", path.display()) } else { "please report it".into() };
    Error::failed(
        format!("BPF program {}", e.name),
        format!("the kernel's verifier rejects it, which is a bug in trapline: {}", reason(e)),
        format!("{where_}; --backend ptrace works meanwhile"),
    )
}
