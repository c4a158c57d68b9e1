//! `cargo xtask vm [KERNEL.deb | 6.1 | 6.12] [--fetch | --short | --run COMMAND | TESTS]`: runs tests on another kernel.
//!
//! ```text
//! linux-image-….deb ─► vmlinuz, modules ─► initramfs ─► qemu ─► this machine's files (9p, read-only) under an overlay
//!                                                              └─► the tests, with what they skipped, and their exit status
//! ```
//!
//! Without a package, it is one of Debian's kernels ([`KERNELS`]), the first of them where none is named, fetched by apt into `target/vm`;
//! `--fetch` does no more than that. Tests are filters of the end-to-end tests, or `BINARY/FILTER` of others ([`OTHERS`]). Without any, they are
//! those of the kernel backend ([`TESTS`]); `--short` are those that CI runs ([`SHORT`]), within [`BUDGET`]. `--run` runs a command of the
//! shell instead.
//!
//! The machine is emulated, with one thread for all its CPUs: with several, qemu 7.2 misses that the kernel has patched its own
//! code, and the kernel hangs. It is some ten times as slow as this one: tests that depend on speed ([`SLOW`]) are skipped, and count
//! as skipped.

use crate::programs::{self, Program};
use crate::root;
use crate::skips::{self, Skip};
use crate::test::Tally;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The tests of the kernel backend.
const TESTS: &[&str] = &[
    "kernel::",
    "kernel_functions::",
    "ending::",
    "captures::",
    "probe_sessions::",
    "probes::",
    "accounting::",
    "wheres::",
    "stacks::",
    "unwinding::",
    "profile::",
    "scripts::loops_that_only_collect_run_in_the_kernel",
    "slab::",
    "user_stacks/",
    "live_stacks/",
    "script_clauses/functions_find_what_others_have_left",
    "script_clauses/many_branches_are_no_burden",
    "script_clauses/rounds",
    "script_clauses/the_kernel_and_the_interpreter_agree",
];

/// What CI runs: together they load every kind of program.
const SHORT: &[&str] = &[
    "captures::captures_for_all_are_for_calls_too",
    "kernel::families_are_equal",
    "kernel_functions::breakpoints_have_arguments_results_and_tasks",
    "kernel_functions::functions_of_modules_have_types_and_are_those_of_the_module",
    "probes::a_call_is_the_same_by_both_of_its_names",
    "probes::clocks_tick",
    "probes::filters_of_functions_count_what_each_part_rejects",
    "probes::functions_and_static_probes_are_counted_with_their_arguments",
    "probes::functions_of_the_kernel_are_traced_or_refused_with_the_reason",
    "probes::page_faults_are_counted_with_their_addresses",
    "probes::tracepoints_are_counted_and_only_those_of_the_target",
    "profile::known_shares_are_found_and_no_sample_is_missing",
    "scripts::loops_that_only_collect_run_in_the_kernel",
    "slab::what_does_not_fit_is_counted_exactly",
    "unwinding::return_probes_in_the_way",
    "user_stacks/a_function_s_callers_are_those_of_the_source",
    "live_stacks/a_storm_of_forks_is_followed",
    "script_clauses/functions_find_what_others_have_left",
    "script_clauses/many_branches_are_no_burden",
    "script_clauses/many_rounds_are_no_burden",
    "script_clauses/rounds_are_counted_to_the_last_one",
    "slots/a_second_thread_that_executes_a_program_is_the_process",
    "slots/stacks_that_pass_to_other_threads_pass_without_their_calls",
];

/// Test programs that can run there, and their packages.
const OTHERS: &[(&str, &str)] = &[
    ("user_stacks", "kernel"),
    ("live_stacks", "kernel"),
    ("kernel_load", "kernel"),
    ("slots", "kernel"),
    ("script_clauses", "engine"),
];

/// How long CI waits for them, with the start of the machine.
const BUDGET: Duration = Duration::from_secs(480);

/// Tests that depend on how fast the machine is.
const SLOW: &[&str] = &[
    "drain::many_busy_threads_do_not_starve_the_reader",
    "kernel::a_full_ring_is_counted_exactly",
    "slab::no_object_appears_after_stop_and_reset",
    "stacks::no_stack_is_lost_when_programs_begin_and_end",
];

/// The tier of CI's run.
pub const TIER: &str = "vm";

/// How Debian calls a kernel: its name begins and ends so, and has a number between. The images for clouds have no 9p.
struct Kernel {
    version: &'static str,
    name: (&'static str, &'static str),
}

/// Kernels of Debian 12: its own, and the next one, from its updates.
const KERNELS: &[Kernel] = &[
    Kernel { version: "6.1", name: ("linux-image-6.1.0-", "-amd64") },
    Kernel { version: "6.12", name: ("linux-image-6.12.", "+deb12-amd64") },
];

/// The programs that it takes, and their packages.
const TOOLS: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("dpkg-deb", "dpkg"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
];

/// In the order in which they are loaded; a kernel may have some of them built in.
const MODULES: &[&str] = &[
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "netfs",
    "fscache",
    "9pnet",
    "9pnet_virtio",
    "9p",
    "overlay",
];

/// The first process: an overlay on this machine's files becomes the root.
const INIT: &str = r#"#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc proc /proc; $B mount -t sysfs sysfs /sys; $B mount -t devtmpfs dev /dev
for m in $($B cat /modules/order); do $B insmod /modules/$m.ko; done
$B mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /host || $B poweroff -f
$B mount -t tmpfs -o size=75% rw /rw; $B mkdir -p /rw/upper /rw/work
$B mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work overlay /new || $B poweroff -f
cd /new
$B mount -t proc proc proc; $B mount -t sysfs sysfs sys; $B mount -t devtmpfs dev dev; $B mount -t tmpfs run run
$B mkdir -p dev/pts dev/shm; $B mount -t devpts devpts dev/pts; $B mount -t tmpfs shm dev/shm
$B mount -t tracefs tracefs sys/kernel/tracing
$B ifconfig lo 127.0.0.1 up
for d in proc sys dev; do $B umount -l /$d; done
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
$B cp /run.sh run/trapline-vm
exec $B switch_root /new /bin/sh /run/trapline-vm
"#;

/// Runs the chore.
pub fn run(args: &[String]) -> Result<()> {
    let named = |word: &str| KERNELS.iter().find(|k| k.version == word);
    let (package, rest) = match args.split_first() {
        Some((path, rest)) if path.ends_with(".deb") => {
            (Path::new(path).canonicalize().with_context(|| path.clone())?, rest)
        }
        Some((word, rest)) if named(word).is_some() => (fetch(named(word).context("a kernel")?)?, rest),
        _ => (fetch(&KERNELS[0])?, args),
    };
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let (tests, limit) = match &words[..] {
        ["--fetch"] => {
            println!("{}", package.display());
            return Ok(());
        }
        ["--run", command] => {
            let ended = boot(&package, &format!("cd {}\n{command}\necho \"vm: exit $?\"", root().display()), None)?;
            return match ended.status.as_deref() {
                Some("0") => Ok(()),
                other => bail!("the command ended with status {other:?}"),
            };
        }
        ["--short"] => (SHORT, Some(BUDGET)),
        [] => (TESTS, None),
        all => (all, None),
    };
    let ended = test(&package, &programs::build(&[])?, tests, limit)?;
    print!("{}", skips::summary(&ended.skips));
    println!("{}", ended.tally());
    match ended.status.as_deref() {
        Some("0") => Ok(()),
        Some(status) => bail!("the tests ended with status {status}"),
        None => bail!("the machine ended before the tests, or had too little time"),
    }
}

/// CI's part: runs [`SHORT`], where that is possible. Returns the counts, and what was skipped.
pub fn try_out(built: &[Program]) -> Result<(Tally, BTreeSet<Skip>)> {
    let cannot = |tier: &str, why: String| {
        let skip = Skip { tier: tier.into(), test: "vm".into(), why };
        Ok((Tally::default(), BTreeSet::from([skip])))
    };
    let package = match fetch(&KERNELS[0]) {
        Ok(package) => package,
        Err(e) => return cannot(TIER, format!("{e:#}")),
    };
    let ended = test(&package, built, SHORT, Some(BUDGET))?;
    match ended.status.as_deref() {
        Some("0") => Ok((ended.passed(), ended.skips)),
        Some(status) => bail!("the tests ended with status {status}"),
        None if ended.in_time => bail!("the machine ended before the tests"),
        None => cannot(&format!("{TIER}:time"), format!("the tests took longer than {} s", BUDGET.as_secs())),
    }
}

/// Checks that a machine can be made here, and fetches the kernel's package where it is not there yet.
fn fetch(kernel: &Kernel) -> Result<PathBuf> {
    let root_user = succeed(Command::new("id").arg("-u"))?;
    ensure!(root_user.starts_with(b"0\n"), "not root: the machine reads the files of this one");
    for (tool, package) in TOOLS {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).stdout(Stdio::null()).status()?;
        ensure!(found.success(), "no {tool}: install the Debian package {package}");
    }
    let dir = root().join("target/vm");
    fs::create_dir_all(&dir)?;
    let is_package = |f: &str| f.starts_with(kernel.name.0) && f.ends_with(".deb");
    let fetched = || fs::read_dir(&dir).ok()?.flatten().map(|e| e.path()).find(|p| name_of(p).is_some_and(is_package));
    if let Some(package) = fetched() {
        return Ok(package);
    }
    if kernel_of_apt(kernel)?.is_none() {
        let _ = Command::new("apt-get").args(["-q", "update"]).stdout(Stdio::null()).status();
    }
    let name = kernel_of_apt(kernel)?.with_context(|| format!("apt knows no {}NN{}", kernel.name.0, kernel.name.1))?;
    succeed(Command::new("apt-get").args(["-q", "download", &name]).current_dir(&dir))?;
    fetched().context("apt-get download has left no package")
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// The newest kernel that apt knows.
fn kernel_of_apt(kernel: &Kernel) -> Result<Option<String>> {
    let names = succeed(Command::new("apt-cache").args(["pkgnames", kernel.name.0]))?;
    Ok(newest(kernel, &String::from_utf8_lossy(&names)))
}

fn newest(kernel: &Kernel, names: &str) -> Option<String> {
    let number = |name: &str| name.strip_prefix(kernel.name.0)?.strip_suffix(kernel.name.1)?.parse::<u32>().ok();
    names.lines().filter_map(|name| Some((number(name)?, name))).max().map(|(_, name)| name.to_string())
}

/// Boots the kernel of a package and runs tests on it, for no longer than `limit`.
fn test(package: &Path, built: &[Program], tests: &[&str], limit: Option<Duration>) -> Result<Ended> {
    let mut ended = boot(package, &script_of(&test_binaries(built)?, tests)?, limit)?;
    let left_out = SLOW.iter().filter(|slow| tests.iter().any(|t| slow.contains(t)));
    ended.skips.extend(left_out.map(|test| skipped("vm:speed", test, "the emulated machine is slow")));
    Ok(ended)
}

/// Boots the kernel of a package and runs a script on it, for no longer than `limit`.
fn boot(package: &Path, script: &str, limit: Option<Duration>) -> Result<Ended> {
    let dir = root().join("target/vm/machine");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let kernel = dir.join("kernel");
    succeed(Command::new("dpkg-deb").arg("-x").arg(package).arg(&kernel))?;
    let initramfs = initramfs(&dir, &kernel, &format!("{script}\n/bin/busybox poweroff -f\n"))?;
    watch(qemu(&kernel, &initramfs)?, limit)
}

/// A test that the machine did not run. Its tier is of that kernel: what this one must offer is another matter.
fn skipped(tier: &str, test: &str, why: &str) -> Skip {
    Skip { tier: format!("linux-6.1:{tier}"), test: format!("vm::{test}"), why: why.into() }
}

/// How a run has ended.
#[derive(Default)]
struct Ended {
    /// The exit status of the tests; none where they did not end.
    status: Option<String>,
    /// The machine has ended by itself.
    in_time: bool,
    /// What the tests have counted.
    counted: Tally,
    skips: BTreeSet<Skip>,
}

impl Ended {
    /// The counts without what was skipped.
    fn passed(&self) -> Tally {
        let left_out = self.skips.iter().filter(|s| s.tier.ends_with("vm:speed")).count();
        self.counted.without(skips::tests(&self.skips).len() - left_out)
    }

    fn tally(&self) -> Tally {
        self.passed().and_skipped(skips::tests(&self.skips).len())
    }

    /// Takes in a line of the machine's console.
    fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some(status) = line.strip_prefix("vm: exit ") {
            self.status = Some(status.to_string());
        } else if let Some(skip) = line.strip_prefix("skipped: ") {
            let mut columns = skip.splitn(3, '\t');
            if let (Some(tier), Some(test), Some(why)) = (columns.next(), columns.next(), columns.next()) {
                self.skips.insert(skipped(tier, test, why));
            }
        } else {
            self.counted.add_result(line);
        }
    }
}

/// Shows the console of a machine until it ends, or until `limit` is over.
fn watch(mut qemu: std::process::Child, limit: Option<Duration>) -> Result<Ended> {
    let start = Instant::now();
    let console = qemu.stdout.take().context("no console")?;
    let (send, lines) = channel();
    let reader = std::thread::spawn(move || {
        let all = BufReader::new(console).split(b'\n').map_while(Result::ok);
        all.map(|line| String::from_utf8_lossy(&line).into_owned()).try_for_each(|line| send.send(line))
    });
    let mut ended = Ended { in_time: true, ..Ended::default() };
    loop {
        let left = limit.map_or(Duration::MAX, |limit| limit.saturating_sub(start.elapsed()));
        match lines.recv_timeout(left) {
            Ok(line) => {
                println!("{}", line.trim_end());
                ended.line(&line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                ended.in_time = false;
                qemu.kill()?;
                break;
            }
        }
    }
    qemu.wait()?;
    drop(lines);
    let _ = reader.join();
    Ok(ended)
}

fn succeed(command: &mut Command) -> Result<Vec<u8>> {
    let out = command.stderr(Stdio::inherit()).output().with_context(|| format!("{command:?}"))?;
    ensure!(out.status.success(), "{command:?}: {}", out.status);
    Ok(out.stdout)
}

/// The first file below `dir` whose name is one of these.
fn find(dir: &Path, wanted: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut later = Vec::new();
    for entry in fs::read_dir(dir).ok()?.flatten() {
        match entry.file_type() {
            Ok(t) if t.is_dir() => later.push(entry.path()),
            _ if entry.file_name().to_str().is_some_and(wanted) => return Some(entry.path()),
            _ => {}
        }
    }
    later.iter().find_map(|d| find(d, wanted))
}

fn initramfs(dir: &Path, kernel: &Path, script: &str) -> Result<PathBuf> {
    let tree = dir.join("initramfs");
    for sub in ["bin", "proc", "sys", "dev", "host", "rw", "new", "modules"] {
        fs::create_dir_all(tree.join(sub))?;
    }
    fs::copy("/bin/busybox", tree.join("bin/busybox"))?;
    let mut order = String::new();
    for name in MODULES {
        let files = ["ko", "ko.xz", "ko.zst"].map(|end| format!("{name}.{end}"));
        let Some(file) = find(kernel, &|f| files.iter().any(|w| w == f)) else { continue };
        let bytes = match file.extension().and_then(|e| e.to_str()) {
            Some("xz") => succeed(Command::new("xz").arg("-dc").arg(&file))?,
            Some("zst") => succeed(Command::new("zstd").arg("-dcq").arg(&file))?,
            _ => fs::read(&file)?,
        };
        fs::write(tree.join(format!("modules/{name}.ko")), bytes)?;
        order += &format!("{name}\n");
    }
    fs::write(tree.join("modules/order"), order)?;
    fs::write(tree.join("init"), INIT)?;
    fs::write(tree.join("run.sh"), script)?;
    succeed(Command::new("chmod").arg("755").arg(tree.join("init")))?;
    let names = succeed(Command::new("find").arg(".").current_dir(&tree))?;
    let mut cpio = Command::new("cpio");
    cpio.args(["-o", "-H", "newc", "--quiet"]).current_dir(&tree).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = cpio.spawn()?;
    child.stdin.take().context("stdin of cpio")?.write_all(&names)?;
    let out = child.wait_with_output()?;
    ensure!(out.status.success(), "cpio: {}", out.status);
    let file = dir.join("initramfs.cpio");
    fs::write(&file, out.stdout)?;
    Ok(file)
}

/// The name, the directory to run in, and the path of each program: the end-to-end tests first.
fn test_binaries(built: &[Program]) -> Result<Vec<(&'static str, String, String)>> {
    let find = |package: &str, name: &str| -> Result<String> {
        let found = built.iter().find(|p| p.package == package && p.name == name);
        let path = &found.with_context(|| format!("no test program {package}/{name} was built"))?.path;
        Ok(path.to_str().context("a path that is not UTF-8")?.to_string())
    };
    let others = OTHERS.iter().map(|(name, package)| Ok((*name, format!("crates/{package}"), find(package, name)?)));
    std::iter::once(Ok(("e2e", "crates/cli".into(), find("cli", "e2e")?))).chain(others).collect()
}

/// Runs the tests: `FILTER` of the end-to-end tests, `BINARY/FILTER` of the others.
fn script_of(binaries: &[(&str, String, String)], tests: &[&str]) -> Result<String> {
    let quoted = |s: &str| format!("'{}'", s.replace('\'', r"'\''"));
    let mut script = String::from(
        "uname -r\nexport RUSTC_BOOTSTRAP=-1 TRAPLINE_SKIPS=/tmp/trapline-skips RUST_BACKTRACE=0 TRAPLINE_TEST_LIMIT=600 TRAPLINE_SLAB_ROUNDS=1\n\
         status=0\n",
    );
    for (name, dir, path) in binaries {
        let own = tests.iter().filter_map(|test| match test.split_once('/') {
            Some((binary, filter)) => (binary == *name).then_some(filter),
            None => (*name == "e2e").then_some(*test),
        });
        let own: Vec<&str> = own.collect();
        if own.is_empty() {
            continue;
        }
        let slow = SLOW.iter().flat_map(|test| ["--skip", test]);
        let words: Vec<String> = own.into_iter().filter(|f| !f.is_empty()).chain(slow).map(quoted).collect();
        let dir = quoted(&root().join(dir).display().to_string());
        script += &format!(
            "cd {dir}\n{} --color never --test-threads 1 -Zunstable-options --report-time {} || status=$?\n",
            quoted(path),
            words.join(" ")
        );
    }
    ensure!(
        script.contains("--test-threads"),
        "no test is named: FILTER, or BINARY/FILTER of {}",
        OTHERS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    );
    Ok(script + "[ -e /tmp/trapline-skips ] && sed 's/^/skipped: /' /tmp/trapline-skips\necho \"vm: exit $status\"\n")
}

fn qemu(kernel: &Path, initramfs: &Path) -> Result<std::process::Child> {
    let image = find(&kernel.join("boot"), &|f| f.starts_with("vmlinuz")).context("the package has no vmlinuz")?;
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args(["-accel", "tcg,thread=single", "-cpu", "max,la57=off", "-smp", "2", "-m", "4G"]);
    qemu.args(["-nographic", "-no-reboot"]);
    qemu.arg("-kernel").arg(image).arg("-initrd").arg(initramfs).arg("-append");
    qemu.arg("console=ttyS0 quiet panic=-1 edd=off");
    qemu.args(["-fsdev", "local,id=host,path=/,security_model=none,multidevs=remap,readonly=on"]);
    qemu.args(["-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]);
    qemu.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("qemu-system-x86_64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_taken_and_no_other_flavour() {
        let names = "linux-image-6.1.0-9-amd64\nlinux-image-6.1.0-50-amd64\nlinux-image-6.1.0-51-cloud-amd64\n\
                     linux-image-6.1.0-52-amd64-dbg\nlinux-image-6.1.0-53-amd64-unsigned\nlinux-image-6.1.0-12-amd64\n";
        let [old, new] = KERNELS else { panic!("two kernels") };
        assert_eq!(newest(old, names).as_deref(), Some("linux-image-6.1.0-50-amd64"));
        let names =
            "linux-image-6.12.9+deb12-amd64\nlinux-image-6.12.117+deb12-amd64\nlinux-image-6.12.118+deb12-rt-amd64\n";
        assert_eq!(newest(new, names).as_deref(), Some("linux-image-6.12.117+deb12-amd64"));
        assert_eq!((newest(old, ""), newest(new, "")), (None, None));
    }

    #[test]
    fn each_program_gets_its_own_tests() {
        let of = |name, package: &str, path: &str| (name, format!("crates/{package}"), path.to_string());
        let binaries = [of("e2e", "cli", "/e2e"), of("user_stacks", "kernel", "/u")];
        let script = script_of(&binaries, &["a::b", "user_stacks/"]).unwrap();
        let lines: Vec<&str> = script.lines().filter(|l| l.contains("--test-threads")).collect();
        assert!(lines[0].starts_with("'/e2e' ") && lines[0].contains(" 'a::b' ") && lines.len() == 2, "{script}");
        assert!(lines[1].starts_with("'/u' ") && !lines[1].contains("a::b"), "{script}");
        assert!(script_of(&binaries, &["nobody/x"]).is_err());
    }

    #[test]
    fn the_console_is_counted() {
        let mut ended = Ended::default();
        for line in [
            "test kernel::a ... ok\r",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 300 filtered out; finished in 9.00s\r",
            "skipped: fentry\tprobes::b\tnot known\r",
            "vm: exit 0\r",
        ] {
            ended.line(line);
        }
        ended.skips.insert(skipped("vm:speed", "kernel::c", "slow"));
        assert_eq!(
            (ended.status.as_deref(), ended.tally().to_string().as_str()),
            (Some("0"), "4 passed, 0 failed, 2 skipped")
        );
        let tiers: Vec<_> = ended.skips.iter().map(|s| (s.tier.as_str(), s.test.as_str())).collect();
        assert_eq!(tiers, [("linux-6.1:fentry", "vm::probes::b"), ("linux-6.1:vm:speed", "vm::kernel::c")]);
        assert!(skips::missing("fentry,vm,kernel", &ended.skips).is_none());
    }
}
