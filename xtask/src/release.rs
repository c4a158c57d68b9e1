//! `cargo xtask static [--smoke]`: trapline as one static file that runs on any Linux of its processor, whatever libc that has.
//!
//! For the musl target where the toolchain has it (`rustup target add x86_64-unknown-linux-musl`), else with glibc linked in
//! (`crt-static`), which needs nothing but libc6-dev. With `--smoke` it is tried: it names no interpreter, and traces, records,
//! reports and examines the machine, without a library in reach where chroot is allowed.

use crate::lab::Scratch;
use crate::test::cargo;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MUSL: &str = "x86_64-unknown-linux-musl";
const GLIBC: &str = "x86_64-unknown-linux-gnu";

pub fn run(args: &[String]) -> Result<()> {
    let smoke = match args {
        [] => false,
        [word] if word == "--smoke" => true,
        _ => anyhow::bail!("usage: cargo xtask static [--smoke]"),
    };
    let file = build()?;
    if smoke {
        try_out(&file)?;
    }
    println!("{}", file.display());
    Ok(())
}

/// Builds it, and puts it where it is easy to find.
pub fn build() -> Result<PathBuf> {
    let target = if has_target(MUSL) { MUSL } else { GLIBC };
    let out = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from);
    let status = Command::new(cargo())
        .args(["build", "--quiet", "--locked", "--release", "--package", "trapline", "--target", target])
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .current_dir(crate::root())
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "{status} (a static glibc needs libc6-dev)");
    let (from, to) = (out.join(target).join("release/trapline"), out.join("static/trapline"));
    fs::create_dir_all(out.join("static"))?;
    // Not over the file: it may run.
    let _ = fs::remove_file(&to);
    fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    ensure!(interpreter(&fs::read(&to)?).is_none(), "{} is not static: it names an interpreter", to.display());
    Ok(to)
}

/// Whether the toolchain has the standard library of a target.
fn has_target(target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let found =
        Command::new(rustc).args(["--print", "target-libdir", "--target", target]).current_dir(crate::root()).output();
    let dir = found.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_string()).unwrap_or_default();
    !dir.is_empty() && Path::new(&dir).is_dir()
}

/// Where the name of the dynamic loader lies in a 64-bit ELF file, if it has one (`PT_INTERP`, elf(5)).
fn interpreter(elf: &[u8]) -> Option<u64> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let le = elf.get(at..at + bytes)?.iter().rev();
        Some(le.fold(0, |n, b| n << 8 | u64::from(*b)))
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut heads = (0..count).map(|i| (table + i * size) as usize);
    heads.find_map(|at| (number(at, 4)? == PT_INTERP).then(|| number(at + 8, 8)).flatten())
}

fn run_in(dir: &Path, argv: &[&str]) -> Result<Output> {
    let out = Command::new(argv[0])
        .args(&argv[1..])
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output();
    out.with_context(|| format!("cannot run {}", argv[0]))
}

/// Runs it, and checks its output on stdout or stderr.
fn says(dir: &Path, argv: &[&str], words: &[&str]) -> Result<()> {
    let out = run_in(dir, argv)?;
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    ensure!(out.status.success(), "{argv:?}: {}: {text}", out.status);
    for word in words {
        ensure!(text.contains(word), "{argv:?}: no '{word}' in: {text}");
    }
    Ok(())
}

/// Tries the file out.
pub fn try_out(file: &Path) -> Result<()> {
    let scratch = Scratch::new("static")?;
    let dir = scratch.path();
    let exe = dir.join("trapline");
    fs::copy(file, &exe)?;
    let exe = exe.to_str().context("a path that is not UTF-8")?;
    says(dir, &[exe, "--version"], &["trapline "])?;
    says(dir, &[exe, "doctor"], &["trace a command", "trapline trace takes"])?;
    let opens = "openat(AT_FDCWD, \"/etc/hostname\"";
    for backend in ["ptrace", "auto"] {
        says(
            dir,
            &[exe, "trace", "--backend", backend, "-e", "openat", "cat", "/etc/hostname"],
            &[opens, "exited with 0"],
        )?;
        let trace = format!("recorded-{backend}");
        says(dir, &[exe, "record", "--backend", backend, "-o", &trace, "cat", "/etc/hostname"], &[" 0 dropped"])?;
        says(dir, &[exe, "report", &trace], &["execve(", opens])?;
        // And itself, by itself: no call of it needs more than the kernel.
        says(dir, &[exe, "trace", "--backend", backend, "-e", "execve", exe, "list", "openat"], &["syscall:openat"])?;
    }
    without_libraries(dir)
}

/// In a directory that has nothing but the file: as root, or in a user namespace of its own. Where neither is allowed, that is reported.
fn without_libraries(dir: &Path) -> Result<()> {
    let empty = dir.join("empty");
    fs::create_dir(&empty)?;
    fs::copy(dir.join("trapline"), empty.join("trapline"))?;
    let jail = empty.to_str().context("a path that is not UTF-8")?;
    let ways: [&[&str]; 2] = [&["chroot"], &["unshare", "-r", "chroot"]];
    for way in ways {
        let argv = [way, &[jail, "/trapline", "list", "openat"]].concat();
        if run_in(dir, &argv).is_ok_and(|out| out.status.success() && out.stdout == b"syscall:openat\n") {
            return Ok(());
        }
    }
    println!("static: chroot is not allowed here: not tried without libraries");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_names_its_interpreter_and_a_cut_one_does_not() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(interpreter(&own).is_some(), cfg!(not(target_feature = "crt-static")));
        assert_eq!((interpreter(&own[..60]), interpreter(b"")), (None, None));
    }
}
