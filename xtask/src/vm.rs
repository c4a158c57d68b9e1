//! `cargo xtask vm KERNEL.deb [ARGUMENTS OF the end-to-end tests]`: runs the end-to-end tests on another kernel.
//!
//! ```text
//! linux-image-….deb ─► vmlinuz, modules ─► initramfs ─► qemu ─► this machine's files (9p, read-only) under an overlay
//!                                                              └─► the tests, with what they skipped, and their exit status
//! ```
//!
//! The machine is emulated, with one thread for all its CPUs: with several, qemu 7.2 misses that the kernel has patched its own
//! code, and the kernel hangs. It is some ten times as slow as this one, so that tests which wait for a short time may fail.

use crate::root;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
exec $B switch_root /new /bin/sh "$($B sed -n 's/.*trapline_vm=\([^ ]*\).*/\1/p' /new/proc/cmdline)"
"#;

/// Runs the chore.
pub fn run(args: &[String]) -> Result<()> {
    let Some((package, tests)) = args.split_first() else {
        bail!("usage: cargo xtask vm KERNEL.deb [ARGUMENTS OF the end-to-end tests]");
    };
    for (tool, package) in TOOLS {
        let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).stdout(Stdio::null()).status()?;
        ensure!(found.success(), "no {tool}: install the Debian package {package}");
    }
    let package = Path::new(package).canonicalize().with_context(|| package.clone())?;
    let dir = root().join("target/vm");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let kernel = dir.join("kernel");
    succeed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&kernel))?;
    let initramfs = initramfs(&dir, &kernel)?;
    let script = dir.join("run.sh");
    fs::write(&script, script_of(&test_binary()?, tests))?;
    boot(&kernel, &initramfs, &script)
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

fn initramfs(dir: &Path, kernel: &Path) -> Result<PathBuf> {
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

/// Builds the end-to-end tests.
fn test_binary() -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let build = ["test", "--locked", "-p", "trapline", "--test", "e2e", "--no-run", "--message-format=json"];
    let text = succeed(Command::new(cargo).args(build).current_dir(root()))?;
    let messages = text.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice::<serde_json::Value>(l).ok());
    let binary =
        messages.filter_map(|m| m["executable"].as_str().filter(|e| e.contains("/e2e-")).map(String::from)).next_back();
    binary.context("cargo named no binary of the tests")
}

fn script_of(binary: &str, tests: &[String]) -> String {
    let quoted = |s: &str| format!("'{}'", s.replace('\'', r"'\''"));
    let tests: Vec<String> = tests.iter().map(|t| quoted(t)).collect();
    format!(
        "cd {}\nuname -r\nexport TRAPLINE_SKIPS=/tmp/trapline-skips RUST_BACKTRACE=0 TRAPLINE_TEST_LIMIT=600\n{} --test-threads 1 {}\nstatus=$?\n\
         [ -e /tmp/trapline-skips ] && sed 's/^/skipped: /' /tmp/trapline-skips\necho \"vm: exit $status\"\n\
         /bin/busybox poweroff -f\n",
        quoted(&root().join("crates/cli").display().to_string()),
        quoted(binary),
        tests.join(" ")
    )
}

fn boot(kernel: &Path, initramfs: &Path, script: &Path) -> Result<()> {
    let image = find(&kernel.join("boot"), &|f| f.starts_with("vmlinuz")).context("the package has no vmlinuz")?;
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args([
        "-accel",
        "tcg,thread=single",
        "-cpu",
        "max,la57=off",
        "-smp",
        "2",
        "-m",
        "8G",
        "-nographic",
        "-no-reboot",
    ]);
    qemu.arg("-kernel").arg(image).arg("-initrd").arg(initramfs).arg("-append");
    qemu.arg(format!("console=ttyS0 quiet panic=-1 edd=off trapline_vm={}", script.display()));
    qemu.args(["-fsdev", "local,id=host,path=/,security_model=none,multidevs=remap,readonly=on"]);
    qemu.args(["-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]);
    let out = qemu.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().and_then(|mut child| {
        let console = child.stdout.take();
        let mut ended = None;
        for line in console.into_iter().flat_map(|c| std::io::BufRead::lines(std::io::BufReader::new(c))) {
            let line = line.unwrap_or_default();
            println!("{line}");
            if let Some(status) = line.trim().strip_prefix("vm: exit ") {
                ended = Some(status.to_string());
            }
        }
        child.wait().map(|_| ended)
    })?;
    match out.as_deref() {
        Some("0") => Ok(()),
        Some(status) => bail!("the tests ended with status {status}"),
        None => bail!("the machine ended before the tests"),
    }
}
