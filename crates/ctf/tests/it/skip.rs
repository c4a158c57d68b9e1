//! Tests that need a program which may not be there.

use std::fs;
use std::io::Write;

/// Says that the calling test does not run, on stderr and in the file named by TRAPLINE_SKIPS.
pub fn skip(tier: &str, why: &str) {
    let test = std::thread::current().name().unwrap_or("ctf").to_string();
    eprintln!("SKIPPED {test} ({tier}): {why}");
    if let Some(path) = std::env::var_os("TRAPLINE_SKIPS") {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("TRAPLINE_SKIPS");
        file.write_all(format!("{tier}\t{test}\t{why}\n").as_bytes()).expect("TRAPLINE_SKIPS");
    }
}

/// Whether a program is in PATH.
pub fn has(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|d| d.join(program).is_file()))
}
