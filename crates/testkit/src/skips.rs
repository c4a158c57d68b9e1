//! Tests that cannot run here: each notes it, and `cargo xtask test` counts it as skipped.

use std::fs;
use std::io::Write;
use std::sync::OnceLock;

/// Says that the calling test does not run, on stderr and in the file named by TRAPLINE_SKIPS. `tier` is what the machine would have to
/// offer: `root`, `unprivileged`, `package:NAME`, `kernel:FEATURE`, ….
///
/// # Panics
/// The file cannot be written.
#[track_caller]
pub fn skip(tier: &str, why: &str) {
    let here = std::panic::Location::caller();
    let name = std::thread::current().name().filter(|n| *n != "main").map(str::to_string);
    let test = name.unwrap_or_else(|| format!("{}:{}", here.file(), here.line()));
    eprintln!("SKIPPED {test} ({tier}): {why}");
    if let Some(path) = std::env::var_os("TRAPLINE_SKIPS") {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("TRAPLINE_SKIPS");
        // One line of three columns, whatever a kernel or a program has printed.
        let why = why.replace(['\n', '\t'], " ");
        file.write_all(format!("{tier}\t{test}\t{why}\n").as_bytes()).expect("TRAPLINE_SKIPS");
    }
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        status.lines().any(|l| l.starts_with("Uid:") && l.split_whitespace().nth(2) == Some("0"))
    })
}

/// Whether the tests run in a pid namespace of their own: programs in the kernel then see other ids than the tests.
pub fn own_pid_namespace() -> bool {
    /// The inode of the first pid namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h).
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|l| l.as_os_str() != FIRST)
}
