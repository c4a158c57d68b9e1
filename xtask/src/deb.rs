//! `cargo xtask deb [--check] [PROGRAM]`: a Debian package of trapline, its man pages and its completions, made without root.
//!
//! The program in it is the static one (`cargo xtask static`): it is what CI tries out, one package serves every release of Debian and of its
//! descendants, and there is nothing that it depends on. A dynamic one would need a libc6 at least as new as the builder's.
//!
//! With `--check`, and in CI, with the program that `cargo xtask package` has built there, the package is looked at by lintian, and installed
//! in a Debian that has nothing but what every Debian has; see [`check`].

use crate::lab::{self, Scratch};
use crate::{release, root, skips};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn run(args: &[String]) -> Result<()> {
    let (checked, rest) = match args {
        [word, rest @ ..] if word == "--check" => (true, rest),
        rest => (false, rest),
    };
    let program = match rest {
        [] => release::build()?,
        [program] if !program.starts_with('-') => PathBuf::from(program),
        _ => bail!("usage: cargo xtask deb [--check] [PROGRAM]"),
    };
    let package = make(&program, &lab::target().join("debian"), BEST)?;
    if checked {
        check(&package, None)?;
    }
    println!("{}", package.display());
    Ok(())
}

/// Makes the package, of CI's program, and checks it; or notes that there are no tools for packages.
pub fn try_out(trapline: &Path, skips: Option<&Path>) -> Result<()> {
    if printed("dpkg-deb", &["--version"]).is_err() {
        return skipped(skips, "package:dpkg", "no dpkg-deb to make a package with");
    }
    let scratch = Scratch::new("deb")?;
    check(&make(trapline, scratch.path(), FASTEST)?, skips)
}

fn skipped(skips: Option<&Path>, tier: &str, why: &str) -> Result<()> {
    println!("deb: {why}");
    skips.map_or(Ok(()), |file| skips::add(file, tier, "deb", why))
}

/// The shells, with the file where each looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/trapline"),
    ("zsh", "usr/share/zsh/vendor-completions/_trapline"),
    ("fish", "usr/share/fish/vendor_completions.d/trapline.fish"),
];

/// What lintian complains of, and is meant so.
const OVERRIDES: &str = "\
# It is linked statically, and can be loaded anywhere, as a shared library can.
trapline: shared-library-lacks-prerequisites [usr/bin/trapline]
# rm follows no link, so nothing that another user has put there leads elsewhere.
trapline: possibly-insecure-handling-of-tmp-files-in-maintainer-script /tmp [postrm:*]
";

/// Where the library lies that is put into programs: it is no file of the package, and is found by its contents only.
const AFTER_REMOVAL: &str = "#!/bin/sh\nset -e\nif [ \"$1\" = remove ]; then\n    \
    # What was put into programs. Those that run keep what they have loaded.\n    \
    rm -rf /tmp/trapline-agent-* /var/tmp/trapline-agent-* /dev/shm/trapline-agent-*\nfi\n";

/// How hard xz tries: the best takes 20 s of a program with all its checks, and a package that is tried out once needs it not.
const BEST: &str = "-z9";
const FASTEST: &str = "-z0";

/// Makes the package in a directory.
fn make(trapline: &Path, into: &Path, compression: &str) -> Result<PathBuf> {
    let version = env!("CARGO_PKG_VERSION");
    let scratch = Scratch::new("deb-tree")?;
    let tree = scratch.path().join("tree");
    let program = tree.join("usr/bin/trapline");
    fs::create_dir_all(tree.join("usr/bin"))?;
    fs::copy(trapline, &program).with_context(|| format!("cannot copy {}", trapline.display()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    lab::run(
        Command::new("strip")
            .args(["--strip-unneeded", "--remove-section=.comment", "--remove-section=.note"])
            .arg(&program),
    )?;
    let program = program.to_str().context("a path that is not UTF-8")?;
    for (shell, file) in COMPLETIONS {
        put(&tree, file, printed(program, &["completions", shell])?.as_bytes())?;
    }
    let pages = tree.join("usr/share/man/man1");
    fs::create_dir_all(&pages)?;
    lab::run(Command::new(program).arg("man").arg("-o").arg(&pages))?;
    let doc = "usr/share/doc/trapline";
    let changed = last_commit("%cD").or_else(|_| printed("date", &["-R"]))?;
    let whom = maintainer();
    let changes = format!(
        "trapline ({version}) unstable; urgency=medium\n\n  * What has changed is in CHANGELOG.md.gz.\n\n -- {whom}  {}\n",
        changed.trim()
    );
    put(&tree, &format!("{doc}/changelog"), changes.as_bytes())?;
    put(&tree, &format!("{doc}/copyright"), copyright()?.as_bytes())?;
    for entry in fs::read_dir(root().join("docs"))?.flatten() {
        if entry.path().extension().is_some_and(|e| e == "md" || e == "sql") {
            put(&tree, &format!("{doc}/{}", entry.file_name().to_string_lossy()), &fs::read(entry.path())?)?;
        }
    }
    for name in ["README.md", "CHANGELOG.md"] {
        put(&tree, &format!("{doc}/{name}"), &fs::read(root().join(name))?)?;
    }
    put(&tree, "usr/share/lintian/overrides/trapline", OVERRIDES.as_bytes())?;
    for packed in files(&tree)? {
        let name = packed.to_string_lossy();
        if name.ends_with(".1") || name.ends_with(".md") || name.ends_with("/changelog") {
            lab::run(Command::new("gzip").arg("-9n").arg(tree.join(&packed)))?;
        }
    }
    let kib = size(&tree)?.div_ceil(1024);
    let sums = sums(&tree)?;
    put(&tree, "DEBIAN/control", control(version, &whom, kib).as_bytes())?;
    put(&tree, "DEBIAN/md5sums", sums.as_bytes())?;
    put(&tree, "DEBIAN/postrm", AFTER_REMOVAL.as_bytes())?;
    fs::set_permissions(tree.join("DEBIAN/postrm"), fs::Permissions::from_mode(0o755))?;
    // Whatever the umask.
    lab::run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&tree))?;
    fs::create_dir_all(into)?;
    let package = into.join(format!("trapline_{version}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--build", "--root-owner-group", "-Zxz", compression]).arg(&tree).arg(&package);
    lab::run(build.stdout(Stdio::null()))?;
    Ok(package)
}

fn control(version: &str, whom: &str, kib: u64) -> String {
    format!(
        "Package: trapline\nVersion: {version}\nArchitecture: amd64\nMaintainer: {whom}\nInstalled-Size: {kib}\nSection: devel\n\
         Priority: optional\nSuggests: bash-completion\nDescription: tracer for calls, functions, memory and samples\n \
         trapline shows what a program does, on one timeline: system calls in strace's\n \
         format, functions, allocations, static probes, tracepoints and samples. Root\n \
         traces through eBPF; ordinary users trace their own programs.\n .\n \
         The program is linked statically, so that one package serves all releases.\n"
    )
}

/// Who makes the package, as Debian's tools ask for it.
fn maintainer() -> String {
    let given = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let name = given("DEBFULLNAME").unwrap_or("The trapline authors".into());
    let mail = given("DEBEMAIL").or_else(|| last_commit("%ae").ok()).unwrap_or("root@localhost".into());
    format!("{name} <{}>", mail.trim())
}

/// Something about the last commit.
fn last_commit(what: &str) -> Result<String> {
    printed("git", &["-C", &root().to_string_lossy(), "log", "-1", &format!("--format={what}")])
}

/// The licences: trapline's, and those of what is linked into it.
fn copyright() -> Result<String> {
    let mit = fs::read_to_string(root().join("LICENSE-MIT"))?;
    let holder = mit.lines().find(|l| l.starts_with("Copyright")).context("LICENSE-MIT names nobody")?;
    let holder = holder.replace("Copyright (c) ", "");
    let indented = |text: &str| -> String {
        text.lines().map(|l| if l.is_empty() { " .\n".into() } else { format!(" {l}\n") }).collect()
    };
    let (_, text) = mit.split_once("\n\nPermission").context("LICENSE-MIT has another text")?;
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: trapline\n\n\
         Files: *\nCopyright: {holder}\nLicense: Expat or Apache-2.0\nComment:\n The program has these libraries in it, with their licences:\n\
         {}\n\nLicense: Expat\n{}\nLicense: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n",
        indented(&linked()?).trim_end(),
        indented(&format!("Permission{text}"))
    ))
}

/// The crates in the program, with their licences, and the C library.
fn linked() -> Result<String> {
    let mut tree = Command::new(crate::test::cargo());
    tree.args([
        "tree",
        "--offline",
        "--locked",
        "-p",
        "trapline",
        "-e",
        "normal",
        "--prefix",
        "none",
        "-f",
        "{p}: {l}",
    ]);
    let out = tree.current_dir(root()).output().context("cannot start cargo")?;
    ensure!(out.status.success(), "cargo tree: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let foreign =
        text.lines().filter(|l| !l.contains(" (/")).map(|l| l.trim_end_matches(" (*)").replace(" (proc-macro)", ""));
    let all: BTreeSet<String> = foreign.collect();
    let libc = if release::target().ends_with("musl") { "musl: MIT" } else { "glibc: LGPL-2.1-or-later" };
    Ok(all
        .into_iter()
        .chain([libc.into(), "Rust's standard library: MIT OR Apache-2.0".into()])
        .collect::<Vec<_>>()
        .join("\n"))
}

/// Looks at the package with lintian, and tries it out where it finds nothing but what is in it: installed, it examines the machine, traces,
/// records functions and allocations, and takes samples, for root and for a user; removed, it leaves no file.
///
/// The place is a Debian as debootstrap makes it (kept in target/debian), or, where none can be had, a directory with a shell and the few
/// programs that are traced, with their libraries.
fn check(package: &Path, skips: Option<&Path>) -> Result<()> {
    lint(package, skips)?;
    if printed("id", &["-u"])?.trim() != "0" {
        return skipped(skips, "root", "no root to install the package in a directory");
    }
    let scratch = Scratch::new("deb-check")?;
    let base = match debian() {
        Ok(base) => base,
        Err(why) => {
            skipped(
                skips,
                "package:debootstrap",
                &format!("{why:#}: checked with a few programs instead of a Debian"),
            )?;
            few_programs(&scratch.path().join("few"))?
        }
    };
    let script = scratch.path().join("check.sh");
    fs::write(&script, CHECK)?;
    let mut check = Command::new("unshare");
    check
        .args(["--mount", "--propagation", "private", "sh", "-eu"])
        .arg(&script)
        .arg(&base)
        .arg(package)
        .arg(scratch.path());
    let out = check.output().context("cannot start unshare")?;
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if out.status.code() == Some(NO_MOUNT) {
        return skipped(skips, "mount", "mount(2) is refused");
    }
    ensure!(out.status.success(), "{}: {text}", out.status);
    Ok(())
}

/// The script's status where nothing can be mounted.
const NO_MOUNT: i32 = 77;

const CHECK: &str = r#"
umask 022
base=$1 package=$2 scratch=$3
# dpkg looks for programs of root.
PATH=$PATH:/usr/sbin:/sbin
new=$scratch/new root=$scratch/root
mkdir -p "$new" "$root"
mount -t tmpfs tmpfs "$new" || exit 77
mkdir "$new/upper" "$new/work"
mount -t overlay -o "lowerdir=$base,upperdir=$new/upper,workdir=$new/work" overlay "$root" 2>/dev/null || {
    root=$new/copy
    cp -a "$base" "$root"
}
# What is there, but for what dpkg notes for itself.
listed() { (cd "$root" && find . -xdev -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -print | LC_ALL=C sort); }
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/var/tmp" "$root/var/log"
chmod 1777 "$root/tmp" "$root/var/tmp"
listed > "$scratch/before"
dpkg --root="$root" --install "$package"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
says() {
    word=$1
    shift
    for user in 0:0 65534:65534; do
        out=$(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot --userspec="$user" "$root" "$@" 2>&1) || { echo "$user: $*: $? $out"; exit 1; }
        case $out in
            *"$word"*) ;;
            *) echo "$user: $*: no '$word' in: $out"; exit 1 ;;
        esac
    done
}
says 'ok  agent backend (functions)' trapline doctor
says 'openat(AT_FDCWD, "/etc/group"' trapline trace -e openat cat /etc/group
says ' exit' trapline graph --lib --as functions -- cat /etc/group
says 'allocat' trapline heap -- cat /etc/group
says 'samples' trapline profile -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'
umount -R "$root/dev" "$root/sys" "$root/proc"
dpkg --root="$root" --purge trapline
listed > "$scratch/after"
diff "$scratch/before" "$scratch/after"
"#;

/// lintian finds nothing.
fn lint(package: &Path, skips: Option<&Path>) -> Result<()> {
    let mut lintian = Command::new("lintian");
    // Whoever makes the package answers for the address.
    lintian.args(["--allow-root", "--fail-on", "error,warning", "--suppress-tags", "bogus-mail-host"]).arg(package);
    match lintian.output() {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            skipped(skips, "package:lintian", "no lintian to look at the package")
        }
        Err(e) => Err(e).context("cannot start lintian"),
        Ok(out) => {
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            ensure!(out.status.success(), "lintian: {text}{}", String::from_utf8_lossy(&out.stderr));
            Ok(())
        }
    }
}

/// A Debian with nothing but its base system, made once.
fn debian() -> Result<PathBuf> {
    let base = lab::target().join("debian/base");
    if base.join("usr/bin/dpkg").exists() {
        return Ok(base);
    }
    printed("debootstrap", &["--version"]).context("no debootstrap")?;
    let parts = lab::target().join("debian/parts");
    let _ = fs::remove_dir_all(&parts);
    fs::create_dir_all(&parts)?;
    let mut make = Command::new("timeout");
    make.args(["300", "debootstrap", "--variant=minbase", "stable"]).arg(&parts);
    let out = make.output().context("cannot start debootstrap")?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    ensure!(out.status.success(), "debootstrap: {}", text.lines().last().unwrap_or_default());
    fs::rename(&parts, &base)?;
    Ok(base)
}

/// A directory with the programs that the check uses, their libraries, and an empty database of packages.
fn few_programs(base: &Path) -> Result<PathBuf> {
    for name in ["sh", "cat", "rm", "true"] {
        let path = fs::canonicalize(Path::new("/bin").join(name)).with_context(|| format!("no {name}"))?;
        let path = path.to_str().context("a path that is not UTF-8")?;
        let libraries = printed("ldd", &[path])?;
        let libraries = libraries.split_whitespace().filter(|word| word.starts_with('/'));
        for (from, to) in libraries.map(|l| (l, l.to_string())).chain([(path, format!("/bin/{name}"))]) {
            let to = base.join(to.trim_start_matches('/'));
            fs::create_dir_all(to.parent().context("a file has a directory")?)?;
            fs::copy(from, &to).with_context(|| format!("cannot copy {from}"))?;
        }
    }
    for name in ["etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "usr/bin"] {
        fs::create_dir_all(base.join(name))?;
    }
    fs::write(base.join("etc/group"), "root:x:0:\n")?;
    // dpkg takes directories away that nothing else is in.
    fs::write(base.join("usr/bin/other"), "")?;
    fs::write(base.join("var/lib/dpkg/status"), "")?;
    Ok(base.into())
}

/// What a command prints.
fn printed(program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program).args(args).output().with_context(|| format!("cannot start {program}"))?;
    ensure!(out.status.success(), "{program}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn put(tree: &Path, name: &str, contents: &[u8]) -> Result<()> {
    let path = tree.join(name);
    ensure!(!contents.is_empty(), "{name} would be empty");
    fs::create_dir_all(path.parent().context("a file has a directory")?)?;
    fs::write(&path, contents).with_context(|| format!("cannot write {}", path.display()))
}

/// The files below a directory, without it.
fn files(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![tree.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir)?.flatten() {
            match entry.file_type()?.is_dir() {
                true => open.push(entry.path()),
                false => found.push(entry.path().strip_prefix(tree)?.to_path_buf()),
            }
        }
    }
    found.sort();
    Ok(found)
}

fn size(tree: &Path) -> Result<u64> {
    files(tree)?.iter().map(|file| Ok(fs::metadata(tree.join(file))?.len())).sum()
}

fn sums(tree: &Path) -> Result<String> {
    let mut md5sum = Command::new("md5sum");
    let out = md5sum.args(files(tree)?).current_dir(tree).output().context("cannot start md5sum")?;
    ensure!(out.status.success(), "md5sum: {}", out.status);
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
