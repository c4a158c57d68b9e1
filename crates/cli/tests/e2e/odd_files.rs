//! Stacks of programs whose files are not what they seem: gone, replaced, somewhere else, too large, damaged. Frames have the names of the
//! file that is mapped, or none; whatever is in a file, trapline ends well, and says what it could not do.

use crate::kernel::possible;
use crate::lab::{self, Outcome, User};
use crate::record::{record, report, stats_of};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use testkit::compile;

const FLAGS: [&str; 3] = ["-O2", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1"];

fn walks() -> Option<String> {
    compile("gcc", "walks_odd", "walks.c", &FLAGS)
}

/// The same program with another name for a function.
fn other() -> Option<String> {
    compile("gcc", "walks_other", "walks.c", &[&FLAGS[..], &["-Dmiddle=replaced"]].concat())
}

/// Both backends, as root.
fn each(scenario: impl Fn(User)) {
    if !lab::is_root() {
        return lab::skip("root", "files of other processes");
    }
    scenario(User::Ptrace);
    if possible() {
        scenario(User::Kernel);
    }
}

/// `trapline trace -k` of a command, in a directory of its own, which goes on until its stack is there. Then `go` is made.
#[track_caller]
fn traced(user: User, dir: &Path, command: &[&str], go: &str) -> Outcome {
    // Stacks of signals are those of shells.
    let args = [&["trace", "-k", "-f", "-o", "out", "-e", "getppid", "-e", "signal=none", "--"], command].concat();
    let running = lab::start(lab::trapline(user, &args).current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let text = || String::from_utf8_lossy(&fs::read(dir.join("out")).unwrap_or_default()).into_owned();
    // Shells make calls of this name, too; a stack without names ends sometime.
    lab::until("its stack", || {
        let all = text();
        all.contains("(here+0x") || all.matches("\n > ").count() > 12
    });
    fs::write(dir.join(go), "").expect("write");
    let out = running.end();
    assert_eq!(out.code(), 0, "{}", out.stderr);
    Outcome { stderr: text() + &out.stderr, ..out }
}

fn shell(script: &str) -> [&str; 3] {
    ["sh", "-c", script]
}

/// The lines of stacks that name functions of the program.
#[track_caller]
fn is_named(out: &Outcome) {
    for name in ["inner", "middle", "outer", "main"] {
        assert!(
            out.stderr.lines().any(|l| l.starts_with(" > ") && l.contains(&format!("({name}+0x"))),
            "{}",
            out.stderr
        );
    }
    assert!(!out.stderr.contains("replaced"), "{}", out.stderr);
}

fn copy(from: &str, to: &Path) -> PathBuf {
    fs::copy(from, to).expect("copy");
    to.to_path_buf()
}

#[test]
fn a_program_that_is_deleted_while_it_runs() {
    let Some(p) = walks() else { return };
    each(|user| {
        let dir = lab::scratch();
        copy(&p, &dir.join("x"));
        is_named(&traced(user, &dir, &shell("./x plain 1 go & sleep 0.1; rm x; wait"), "go"));
        assert!(!dir.join("x").exists());
    });
}

#[test]
fn a_program_that_is_replaced_while_it_runs() {
    let (Some(p), Some(other)) = (walks(), other()) else { return };
    each(|user| {
        let dir = lab::scratch();
        copy(&p, &dir.join("x"));
        copy(&other, &dir.join("y"));
        is_named(&traced(user, &dir, &shell("./x plain 1 go & sleep 0.1; mv y x; wait"), "go"));
    });
}

/// What tells files apart then is device, inode and time.
#[test]
fn programs_without_build_ids() {
    let flags = ["-O2", "-fno-optimize-sibling-calls", "-Wl,--build-id=none"];
    let Some(p) = compile("gcc", "walks_no_id", "walks.c", &flags) else { return };
    let Some(other) = other() else { return };
    each(|user| {
        let dir = lab::scratch();
        let (x, y) = (copy(&p, &dir.join("x")), copy(&other, &dir.join("y")));
        let name = x.display().to_string();
        is_named(&traced(user, &dir, &["./x", "plain", "1", "go"], "go"));
        let r = record(user, &["-e", "getppid ustack"], &[&name, "plain"]);
        let text = r.report(&[]);
        assert!(text.out().contains("(middle+0x") && text.stderr.is_empty(), "{} {}", text.out(), text.stderr);
        fs::rename(y, &x).expect("rename");
        let text = r.report(&[]);
        assert!(!text.out().contains("replaced") && !text.out().contains("(middle+0x"), "{}", text.out());
        let said: Vec<&str> = text.stderr.lines().filter(|l| l.contains(&name)).collect();
        assert!(said.len() == 1 && said[0].contains("is not known to be the one that was mapped"), "{}", text.stderr);
    });
}

/// At the path of the program lies another one, as seen from here.
#[test]
fn programs_of_another_mount_namespace() {
    let (Some(p), Some(other)) = (walks(), other()) else { return };
    if !lab::has("unshare") {
        return lab::skip("package:util-linux", "no unshare");
    }
    each(|user| {
        let dir = lab::scratch();
        for sub in ["seen", "hidden"] {
            fs::create_dir(dir.join(sub)).expect("mkdir");
        }
        copy(&other, &dir.join("seen/x"));
        copy(&p, &dir.join("hidden/x"));
        let out = traced(
            user,
            &dir,
            &["unshare", "-m", "sh", "-c", "mount --bind hidden seen && exec $PWD/seen/x plain 1 go"],
            "go",
        );
        is_named(&out);
        let r = record(
            user,
            &["-e", "getppid ustack"],
            &[
                "unshare",
                "-m",
                "sh",
                "-c",
                &format!("cd {0}; mount --bind hidden seen && exec {0}/seen/x plain", dir.display()),
            ],
        );
        assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
        let later = r.report(&[]);
        assert!(!later.out().contains("replaced"), "{}", later.out());
        assert!(later.stderr.contains("seen/x: the file there has another build id"), "{}", later.stderr);
    });
}

#[test]
fn programs_below_another_root() {
    let found =
        lab::run(&mut lab::as_user(User::Me, &["sh", "-c", "ls /usr/lib/*/libc.a /usr/lib*/libc.a 2>/dev/null"]));
    if found.out().is_empty() {
        return lab::skip("package:libc6-dev", "no static libc");
    }
    let Some(p) = compile("gcc", "walks_root", "walks.c", &[&FLAGS[..], &["-static", "-w"]].concat()) else { return };
    each(|user| {
        let dir = lab::scratch();
        fs::create_dir(dir.join("root")).expect("mkdir");
        copy(&p, &dir.join("root/only-there"));
        let out = traced(user, &dir, &["chroot", "root", "/only-there", "plain", "1", "/go"], "root/go");
        is_named(&out);
    });
}

#[test]
fn programs_that_are_in_memory_only() {
    let Some(p) = walks() else { return };
    if !lab::has("python3") {
        return lab::skip("package:python3", "nothing that executes a memfd");
    }
    each(|user| {
        let dir = lab::scratch();
        let script = "import os, sys\nfd = os.memfd_create('in memory')\nos.write(fd, open(sys.argv[1], 'rb').read())\n\
                      os.execve(fd, ['x', 'plain', '1', 'go'], {})\n";
        fs::write(dir.join("run.py"), script).expect("write");
        let out = traced(user, &dir, &["python3", "run.py", &p], "go");
        is_named(&out);
        assert!(out.stderr.contains("/memfd:in memory"), "{}", out.stderr);
    });
}

/// A program may lie anywhere, and its path is only ever escaped text.
#[test]
fn long_paths_and_paths_with_control_characters() {
    let Some(p) = walks() else { return };
    each(|user| {
        let dir = lab::scratch();
        for name in ["new\nline \x1b[31m red (deleted)".to_string(), "l".repeat(255), "a;b 'c\" \\ \t\u{202e} ü".into()]
        {
            let deep = dir.join(&name);
            fs::create_dir(&deep).expect("mkdir");
            let program = copy(&p, &deep.join(&name));
            let path = program.to_str().expect("UTF-8");
            let out = traced(user, &lab::scratch(), &[path, "plain", "1", "go"], "go");
            is_named(&out);
            let r = record(user, &["-e", "getppid ustack"], &[path, "plain"]);
            for options in [&["-kk"][..], &["-k=fold"], &["--as", "json"], &["--as", "record"], &["--by", "stack"]] {
                let text = r.report(options);
                assert!(text.out().contains("middle") && text.stderr.is_empty(), "{} {}", text.out(), text.stderr);
                assert!(!text.out().replace('\n', "").contains(char::is_control), "{:?}", text.out());
            }
            assert!(!out.stderr.replace('\n', "").contains(char::is_control), "{:?}", out.stderr);
        }
        // As deep as the kernel goes.
        let mut deep = dir.clone();
        while deep.as_os_str().len() + 201 < 4000 {
            deep.push("d".repeat(200));
        }
        fs::create_dir_all(&deep).expect("mkdir");
        let program = copy(&p, &deep.join("x"));
        let path = program.to_str().expect("UTF-8");
        is_named(&traced(user, &lab::scratch(), &[path, "plain", "1", "go"], "go"));
    });
}

/// The owner of a library empties its file while it is mapped: the program dies of that, and trapline does not.
#[test]
fn files_that_are_truncated_while_they_are_mapped() {
    let (Some(p), Some(library)) =
        (walks(), compile("gcc", "libwalks_odd.so", "walks_library.c", &["-O2", "-shared", "-fPIC"]))
    else {
        return;
    };
    each(|user| {
        let dir = lab::scratch();
        copy(&library, &dir.join("lib.so"));
        let script = format!("{p} dlopen $PWD/lib.so & sleep 0.25; : > lib.so; wait $!; echo ended $?");
        let args = ["record", "-o", "trace", "--stats", "stats", "-e", "getppid ustack", "--", "sh", "-c", &script];
        let out = lab::run(lab::trapline(user, &args).current_dir(&dir));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        // It dies where it comes back to the library, unless it was faster.
        assert!(out.out().contains("ended 135") || out.out().contains("ended 0"), "{}", out.out());
        let later = report(user, &dir.join("trace"), &["-kk"]);
        assert_eq!(later.code(), 0, "{}", later.stderr);
        assert!(later.out().contains("lib.so("), "{}", later.out());
        assert!(later.stderr.lines().filter(|l| l.contains("lib.so")).count() <= 1, "{}", later.stderr);
    });
}

/// A file of 5 GB of which a few pages are there.
#[test]
fn files_of_more_than_4_gib() {
    let Some(p) = walks() else { return };
    each(|user| {
        let dir = lab::scratch();
        let large = copy(&p, &dir.join("large"));
        let file = fs::OpenOptions::new().write(true).open(&large).expect("open");
        if file.set_len(5 << 30).is_err() {
            return lab::skip("disk:sparse", "the file system has no sparse files");
        }
        drop(file);
        let out = traced(user, &dir, &["./large", "plain", "1", "go"], "go");
        assert!(out.stderr.contains("(here+0x"), "{}", out.stderr);
        let path = large.to_str().expect("UTF-8");
        let r = record(user, &["-e", "getppid ustack"], &[path, "plain"]);
        let text = r.report(&[]);
        assert!(text.out().contains("(here+0x"), "{} {}", text.out(), text.stderr);
        if user == User::Kernel {
            let tables = &r.stats["stacks"]["tables"];
            let whole = r.stats["stacks"]["ended"]["the outermost frame was reached"].as_u64() == Some(1);
            assert!(whole || tables["without_tables"].as_u64() == Some(1), "{}", r.stats);
        }
        fs::remove_file(large).expect("remove");
    });
}

/// Programs of 32 bits are not unwound: they have one frame, each of which is counted.
#[test]
fn programs_of_32_bits() {
    let flags =
        ["-m32", "-O1", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-no-pie", "-fno-stack-protector"];
    let Some(p) = compile("gcc", "elf32", "elf32.c", &flags) else { return };
    let ran = lab::run(&mut lab::as_user(User::Me, &["sh", "-c", &format!("{p}; echo $?")]));
    if ran.out().trim() != "7" {
        return lab::skip("kernel:ia32", "no programs of 32 bits");
    }
    each(|user| {
        let r = record(user, &["-e", "all ustack"], &[&p]);
        assert_eq!(r.outcome.code(), 7, "{}", r.outcome.stderr);
        for options in [&["-kk"][..], &["--as", "json"], &["--by", "stack"]] {
            let out = r.report(options);
            assert_eq!(out.code(), 0, "{}", out.stderr);
        }
    });
    if !possible() || !lab::is_root() {
        return;
    }
    let stats = lab::scratch().join("stats");
    let name = stats.display().to_string();
    let args = ["profile", "--stats", &name, "--as", "folded", "--", &p];
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    assert_eq!(out.code(), 7, "{}", out.stderr);
    let stats = stats_of(&stats);
    let weights = out.out().lines().filter_map(|l| l.rsplit_once(' ')?.1.parse::<u64>().ok()).sum::<u64>();
    assert_eq!(Some(weights), stats["profile"]["samples"].as_u64(), "{} {stats}", out.out());
    assert!(weights > 20, "{stats}");
}
