//! `cargo xtask dist` and `cargo xtask static [--smoke]`: trapline as it is shipped, in the profile `dist`.
//!
//! `dist` needs the C library of this machine, or a newer one. `static` is one file that runs on any Linux of its processor, whatever libc
//! that has: for the musl target where the toolchain has it (`rustup target add x86_64-unknown-linux-musl`), else with glibc linked in
//! (`crt-static`), which needs nothing but libc6-dev. With `--smoke` it is tried: it names no interpreter, and traces, records,
//! reports and examines the machine, without a library in reach where chroot is allowed.

use crate::lab::{self, Scratch};
use crate::test::cargo;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MUSL: &str = "x86_64-unknown-linux-musl";
const GLIBC: &str = "x86_64-unknown-linux-gnu";

/// What cargo needs to link everything into one file.
pub const STATIC: [(&str, &str); 1] = [("RUSTFLAGS", "-C target-feature=+crt-static")];
/// Builds what is shipped, and says where it is.
pub fn dist(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "usage: cargo xtask dist");
    println!("{}", build_dist()?.display());
    Ok(())
}

/// Builds what is shipped, for the C library of this machine.
pub fn build_dist() -> Result<PathBuf> {
    build_with(&[], &[])?;
    Ok(lab::target().join("dist/trapline"))
}

/// Builds in the profile `dist`, with more arguments and variables.
fn build_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let mut build = Command::new(cargo());
    build.args(["build", "--quiet", "--locked", "--profile", "dist", "--package", "trapline"]).args(arguments);
    let status =
        build.envs(variables.iter().copied()).current_dir(crate::root()).status().context("cannot start cargo")?;
    ensure!(status.success(), "{status} (a static glibc needs libc6-dev)");
    Ok(())
}

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
    build_with(&["--target", target()], &STATIC)?;
    let out = lab::target();
    let (from, to) = (out.join(target()).join("dist/trapline"), out.join("static/trapline"));
    fs::create_dir_all(out.join("static"))?;
    // Not over the file: it may run.
    let _ = fs::remove_file(&to);
    fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    check_is_static(&to)?;
    Ok(to)
}

/// The platform of a static trapline: musl where the toolchain has it.
pub fn target() -> &'static str {
    if has_target(MUSL) { MUSL } else { GLIBC }
}

/// Checks that a program needs no loader.
pub fn check_is_static(file: &Path) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    ensure!(interpreter(&bytes).is_none(), "{} is not static: it names an interpreter", file.display());
    Ok(())
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
