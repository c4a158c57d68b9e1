//! `trapline slab`: objects of the kernel in known numbers that come and go.
//!
//! Each test has a mount namespace of its own, without bpffs: sessions of several tests do not meet, and whatever a test leaves behind goes
//! with it. Other processes allocate meanwhile: objects are counted by the process that has made them. Where a number is of all processes,
//! the cache is that of userfaultfd(2), which hardly anybody else uses.

use crate::kernel::possible;
use crate::lab::{self, Outcome, User};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

/// The cache of userfaultfd.
const QUIET: &str = "userfaultfd_ctx_cache";

/// How often a race is tried; TRAPLINE_SLAB_ROUNDS says how often instead.
fn rounds() -> u32 {
    std::env::var("TRAPLINE_SLAB_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4)
}

/// Held by whoever makes objects of that cache, in this run or in another one on this machine: beside others, or `alone`. It is taken
/// before anything else.
#[track_caller]
fn share(alone: bool) -> Option<File> {
    if !possible() {
        return None;
    }
    let cache = File::open(format!("/sys/kernel/slab/{QUIET}")).expect("the cache");
    if alone { cache.lock() } else { cache.lock_shared() }.expect("its lock");
    Some(cache)
}

/// A process that answers lines with lines; it is killed with its value.
struct Talk {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Talk {
    fn new(argv: &[&str]) -> Talk {
        let mut command = lab::as_user(User::Me, argv);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let to = child.stdin.take().expect("its input");
        let from = BufReader::new(child.stdout.take().expect("its output"));
        Talk { child, to, from }
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a line");
        line.trim().to_string()
    }

    #[track_caller]
    fn tell(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).expect("a line");
        assert_eq!(self.hear(), "done", "{line}");
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A mount namespace without bpffs.
pub struct Place {
    holder: Talk,
}

impl Place {
    #[track_caller]
    pub fn new() -> Option<Place> {
        if !possible() {
            return None;
        }
        let script = "while umount /sys/fs/bpf 2>/dev/null; do :; done; echo ready; read line";
        let mut holder = Talk::new(&["unshare", "-m", "--propagation", "private", "sh", "-c", script]);
        assert_eq!(holder.hear(), "ready");
        Some(Place { holder })
    }

    /// A command in the namespace.
    pub fn command(&self, user: User, argv: &[&str]) -> std::process::Command {
        let pid = self.holder.child.id().to_string();
        let mut words = vec!["nsenter", "-t", &pid, "-m", "--"];
        if user == User::Nobody {
            words.extend(["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"]);
        }
        words.extend(argv);
        lab::as_user(User::Me, &words)
    }

    fn shell(&self, script: &str) -> Outcome {
        lab::run(&mut self.command(User::Me, &["sh", "-c", script]))
    }

    fn trapline(&self, user: User, words: &[&str]) -> std::process::Command {
        let exe = lab::dir().join("trapline");
        self.command(user, &[&[exe.to_str().expect("UTF-8"), "slab"], words].concat())
    }

    /// `trapline slab WORDS`, which succeeds.
    #[track_caller]
    fn slab(&self, words: &[&str]) -> Outcome {
        let out = lab::run(&mut self.trapline(User::Me, words));
        assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
        out
    }

    /// What a command that fails says, its only line; and its exit status.
    #[track_caller]
    fn refused(&self, user: User, words: &[&str]) -> (i32, String) {
        let out = lab::run(&mut self.trapline(user, words));
        assert_eq!((out.stderr.lines().count(), out.out().as_str()), (1, ""), "{words:?}: {}", out.stderr);
        (out.code(), out.stderr)
    }

    /// The objects of a process.
    #[track_caller]
    fn objects(&self, slab: &str, pid: u64) -> Vec<Value> {
        let out = self.slab(&["print", slab, "-p", &pid.to_string(), "--as", "json"]);
        let all: Vec<Value> = serde_json::from_str(&out.out()).unwrap_or_else(|e| panic!("{e}: {}", out.out()));
        assert!(all.iter().all(|o| o["pid"] == pid));
        all
    }

    /// Those whose stack passes a function.
    #[track_caller]
    fn through(&self, slab: &str, pid: u64, function: &str) -> Vec<Value> {
        let passes = |o: &Value| {
            let mut frames = o["stack"].as_array().into_iter().flatten();
            frames.any(|f| f.as_str().is_some_and(|f| f.contains(function)))
        };
        self.objects(slab, pid).into_iter().filter(passes).collect()
    }
}

/// The program that makes objects, and its process. Commands have precedence over what it does without an end.
#[track_caller]
fn maker() -> Option<(Talk, u64)> {
    let program = lab::program("objects")?;
    let mut talk = Talk::new(&["nice", "-n", "5", &program]);
    let pid = talk.hear().parse().expect("its process");
    Some((talk, pid))
}

#[test]
fn ten_thousand_open_files_are_ten_thousand_objects() {
    let Some((place, (mut maker, pid))) = Place::new().zip(maker()) else { return };
    let out = place.slab(&["start", "filp"]);
    assert!(out.stderr.contains("bpffs was not mounted"), "{}", out.stderr);
    maker.tell("files 10000");
    let files = place.through("filp", pid, "do_sys_open");
    assert_eq!(files.len(), 10_000);
    assert!(files.iter().all(|f| f["comm"] == "objects" && f["size"].as_u64() > Some(0)));
    assert!(files.iter().all(|f| f["program"].as_str().is_some_and(|p| p.ends_with("/objects"))), "{}", files[0]);
    assert!(files.iter().all(|f| f["user_place"].as_str().is_some_and(|p| p.contains("open"))), "{}", files[0]);
    let ages: Vec<u64> = files.iter().filter_map(|f| f["age_ns"].as_u64()).collect();
    assert!(ages.len() == 10_000 && ages.is_sorted_by(|a, b| a >= b));
    // The same as a table, and as text.
    let groups = place.slab(&["print", "filp", "--by", "stack", "--as", "json", "--top", "1"]).out();
    let groups: Vec<Value> = serde_json::from_str(&groups).expect("JSON");
    assert!(groups[0]["count"].as_u64() >= Some(10_000) && groups[0]["growth"].is_null(), "{groups:?}");
    let text = place.slab(&["print", "filp", "--by", "stack", "--top", "1"]).out();
    assert!(text.contains("since the last table") && text.contains("objects"), "{text}");
    assert!(
        place.slab(&["print", "filp", "--min-age", "1000"]).out().starts_with("filp: 0 objects, 0 bytes, recording")
    );
    maker.tell("close 0");
    lab::until("the files are gone", || place.through("filp", pid, "do_sys_open").is_empty());
    place.slab(&["clear", "filp"]);
    assert_eq!(place.shell("ls /sys/fs/bpf | grep -c trapline").out().trim(), "0");
}

#[test]
fn pipes_names_and_pages_come_and_go_in_slabs_of_their_own() {
    let Some(place) = Place::new() else { return };
    let Some(program) = lab::program("objects") else { return };
    let holder = place.holder.child.id().to_string();
    let script = format!("mount -t tmpfs none /mnt && cd /mnt && exec {program}");
    let mut maker = Talk::new(&["nsenter", "-t", &holder, "-m", "--", "sh", "-c", &script]);
    let pid: u64 = maker.hear().parse().expect("its process");
    for slab in ["filp", "dentry", "pages", "pages-0"] {
        place.slab(&["start", slab]);
    }
    for line in ["pipes 500", "names 300", "pages 700"] {
        maker.tell(line);
    }
    let of = |slab, function| place.through(slab, pid, function).len();
    assert_eq!((of("filp", "create_pipe_files"), of("dentry", "path_openat")), (1000, 300));
    // Pages of page tables and of the program's own data are among them.
    let fault = "handle_mm_fault";
    let pages = [of("pages", fault), of("pages-0", fault)];
    assert!(pages.iter().all(|n| (700..740).contains(n)), "{pages:?}");
    let page = &place.through("pages-0", pid, fault)[0];
    assert_eq!(page["size"], 4096);
    maker.tell("close 0");
    lab::until("they are gone", || {
        let pages = of("pages-0", fault);
        of("filp", "create_pipe_files") == 0 && of("dentry", "path_openat") == 0 && pages < 40
    });
    let listed = place.slab(&["list"]).out();
    assert_eq!(listed.lines().filter(|l| l.contains("  recording")).count(), 4, "{listed}");
}

#[test]
fn stop_start_and_reset_keep_to_their_meaning() {
    let Some(_share) = share(false) else { return };
    let Some((place, (mut maker, pid))) = Place::new().zip(maker()) else { return };
    let count = || place.objects(QUIET, pid).len();
    place.slab(&["start", QUIET]);
    let (code, said) = place.refused(User::Me, &["start", QUIET]);
    assert!(code == 125 && said.contains("is being traced already"), "{code} {said}");
    maker.tell("faults 20");
    assert_eq!(count(), 20);
    place.slab(&["stop", QUIET]);
    maker.tell("faults 30");
    assert_eq!(count(), 20);
    assert!(place.slab(&["list", QUIET]).out().contains("stopped"));
    let json = place.slab(&["list", QUIET, "--as", "json"]).out();
    let json: Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
    assert!(json[0]["slab"] == QUIET && json[0]["state"] == "stopped" && json[0].get("merged").is_some(), "{json}");
    place.slab(&["start", QUIET]);
    assert_eq!(count(), 20);
    maker.tell("faults 5");
    assert_eq!(count(), 25);
    place.slab(&["stop", QUIET]);
    // Releases go on after a stop.
    maker.tell("close 0");
    lab::until("they are gone", || count() == 0);
    place.slab(&["start", QUIET]);
    maker.tell("faults 7");
    place.slab(&["reset", QUIET]);
    assert_eq!(count(), 0);
    maker.tell("faults 1");
    assert_eq!(count(), 1);
    for words in [["stop", "filp"], ["print", "filp"], ["reset", "filp"], ["clear", "filp"]] {
        let (code, said) = place.refused(User::Me, &words);
        assert!(
            code == 125 && said.contains("filp: it is not being traced (trapline slab start filp)"),
            "{code} {said}"
        );
    }
    for (name, hint) in [("flip", "did you mean filp"), ("pages-11", "pages-0 to pages-10"), ("", "no such slab")] {
        let (code, said) = place.refused(User::Me, &["start", name]);
        assert!(code == 2 && said.contains("no such slab") && said.contains(hint), "{code} {said}");
    }
}

#[test]
fn what_does_not_fit_is_counted_exactly() {
    let Some(_share) = share(true) else { return };
    let Some((place, (mut maker, pid))) = Place::new().zip(maker()) else { return };
    place.slab(&["start", QUIET, "--max", "100"]);
    maker.tell("faults 1000");
    let out = place.slab(&["print", QUIET, "--as", "json"]);
    let objects: Vec<Value> = serde_json::from_str(&out.out()).expect("JSON");
    assert_eq!((objects.len(), objects.iter().filter(|o| o["pid"] == pid).count()), (100, 100));
    assert!(out.stderr.contains("900 allocations did not fit: there is room for 100 objects"), "{}", out.stderr);
    maker.tell("close 0");
    lab::until("they are gone", || place.objects(QUIET, pid).is_empty());
    // There is room again, and a reset forgets what did not fit.
    place.slab(&["reset", QUIET]);
    maker.tell("faults 100");
    let out = place.slab(&["print", QUIET]);
    assert!(out.out().starts_with(&format!("{QUIET}: 100 objects")) && !out.stderr.contains("fit"), "{}", out.stderr);
}

#[test]
fn a_storm_leaves_nothing() {
    let Some(_share) = share(false) else { return };
    let Some((place, (mut maker, pid))) = Place::new().zip(maker()) else { return };
    place.slab(&["start", QUIET]);
    maker.tell(&format!("storm {}", 5000 * rounds()));
    // What is released is gone when close(2) returns.
    assert_eq!(place.objects(QUIET, pid), Vec::<Value>::new());
    // An upper limit of what may have passed unseen is all that may be said.
    let said = place.slab(&["print", QUIET, "-p", &pid.to_string()]).stderr;
    assert!(said.lines().all(|l| l.contains("at most") || l.contains("no object to show: ")), "{said}");
}

#[test]
fn no_object_appears_after_stop_and_reset() {
    let Some(_share) = share(false) else { return };
    let Some((place, (mut maker, pid))) = Place::new().zip(maker()) else { return };
    let none = Vec::<Value>::new();
    place.slab(&["start", QUIET, "--max", "1000"]);
    for round in 0..rounds() {
        maker.tell("flood 100000000");
        lab::until("objects", || !place.objects(QUIET, pid).is_empty());
        place.slab(&["stop", QUIET]);
        place.slab(&["reset", QUIET]);
        assert_eq!(place.objects(QUIET, pid), none, "round {round}");
        // What runs now was not there before.
        maker.tell("faults 50");
        assert_eq!(place.objects(QUIET, pid), none, "round {round}");
        maker.tell("close 0");
        place.slab(&["start", QUIET]);
    }
}

/// A command that is killed leaves a session, something that `list` shows and `clear` removes, or nothing.
#[test]
fn a_command_that_is_killed_leaves_nothing_that_cannot_be_removed() {
    let Some(place) = Place::new() else { return };
    let folder = || place.shell("ls /sys/fs/bpf/trapline-slab 2>/dev/null").out();
    let start = ["start", QUIET, "--max", "1000"];
    let clear = ["clear", QUIET];
    let mut seen = BTreeSet::new();
    for words in [&start[..], &clear] {
        let prepare = || {
            if words == clear {
                place.slab(&start);
            }
        };
        // Killed at so many moments of the time that the command takes when it is not.
        prepare();
        let began = Instant::now();
        place.slab(words);
        let whole = began.elapsed();
        if words != clear {
            place.slab(&clear);
        }
        let steps = 3 * rounds();
        for step in 0..steps {
            prepare();
            let mut command = lab::start(&mut place.trapline(User::Me, words));
            std::thread::sleep(whole * step / steps);
            let _ = command.child.kill();
            let _ = command.child.wait();
            let left = folder();
            seen.insert(match left.trim() {
                "" => "nothing",
                left if left.ends_with('~') => "unfinished",
                _ => "whole",
            });
            let listed = place.slab(&["list", QUIET]).out();
            let shown = listed.contains("recording") || listed.contains("stopped") || listed.contains("unfinished");
            assert_eq!(shown, !left.is_empty(), "{left}: {listed}");
            if !left.is_empty() {
                place.slab(&clear);
            }
            assert_eq!(folder(), "", "{words:?}, step {step} of {steps}");
        }
    }
    eprintln!("left: {seen:?}");
    // What is unfinished is in nobody's way.
    place.shell("mkdir -p -m 700 /sys/fs/bpf/trapline-slab && mkdir -m 700 /sys/fs/bpf/trapline-slab/filp~");
    assert!(place.slab(&["list", "filp"]).out().contains("unfinished"));
    place.slab(&["start", "filp"]);
    place.slab(&["clear", "filp"]);
    assert_eq!(folder(), "");
}

#[test]
fn what_is_planted_is_not_followed() {
    let Some(place) = Place::new() else { return };
    place.slab(&["start", QUIET]);
    place.slab(&["clear", QUIET]);
    let root = "/sys/fs/bpf/trapline-slab";
    let plant = |script: &str| {
        let out = place.shell(&format!("rm -rf {root}; {}", script.replace("ROOT", root)));
        assert_eq!(out.code(), 0, "{script}: {}", out.stderr);
    };
    for (script, why) in [
        ("mkdir -m 700 ROOT && chown nobody ROOT", "belongs to another user"),
        ("mkdir -m 777 ROOT", "other users may access it"),
        ("ln -s /tmp ROOT", ""),
        ("mkdir -m 700 ROOT && ln -s /tmp ROOT/filp", ""),
        ("mkdir -m 700 ROOT && mkdir -m 755 ROOT/filp", "other users may access it"),
    ] {
        plant(script);
        for words in [["start", "filp"], ["print", "filp"], ["clear", "filp"]] {
            let (code, said) = place.refused(User::Me, &words);
            assert!(code == 125 && said.contains(root) && said.contains(why), "{script}: {code} {said}");
        }
    }
    // A directory that has no session, or something else.
    for script in ["true", "ln -s /etc/passwd ROOT/filp/state", "mkdir ROOT/filp/objects"] {
        plant(&format!("mkdir -m 700 ROOT && mkdir -m 700 ROOT/filp && {script}"));
        let (code, said) = place.refused(User::Me, &["print", "filp"]);
        assert!(
            code == 125 && said.contains("no session of this trapline") && said.contains("slab clear filp"),
            "{said}"
        );
    }
    plant("mkdir -m 700 ROOT && mkdir -m 700 ROOT/filp && ln -s /etc/passwd ROOT/filp/state");
    place.slab(&["clear", "filp"]);
    assert!(std::path::Path::new("/etc/passwd").exists());
    // Maps of another session under its name.
    place.slab(&["start", QUIET]);
    place.shell(&format!("mv {root}/{QUIET} {root}/filp"));
    let (code, said) = place.refused(User::Me, &["stop", "filp"]);
    assert!(code == 125 && said.contains("it is described otherwise"), "{said}");
    place.slab(&["clear", "filp"]);
}

#[test]
fn an_ordinary_user_gets_one_line() {
    let Some(place) = Place::new() else { return };
    for words in [&["start", "filp"][..], &["stop", "filp"], &["print", "filp"], &["reset", "filp"], &["clear", "filp"]]
    {
        let (code, said) = place.refused(User::Nobody, words);
        assert!(code == 125 && said.contains("for root only") && said.contains("run trapline as root"), "{said}");
    }
    let (code, said) = place.refused(User::Nobody, &["list"]);
    assert!(code == 125 && said.contains("run trapline as root"), "{said}");
    // Root who may not mount.
    let exe = lab::dir().join("trapline");
    let script = format!("setpriv --bounding-set -sys_admin -- {} slab start filp", exe.display());
    let out = place.shell(&script);
    assert!(out.code() == 125 && out.stderr.lines().count() == 1, "{}", out.stderr);
    assert!(out.stderr.contains("mount -t bpf bpf /sys/fs/bpf"), "{}", out.stderr);
}

/// `slab:NAME:alloc` and `slab:NAME:free` in a trace, with filters, counters and stacks.
#[test]
fn probes_of_slabs_are_recorded_like_any_other() {
    use crate::probes::record;
    let Some(_share) = share(true) else { return };
    let Some(program) = lab::program("objects") else { return };
    let [alloc, free] = ["alloc", "free"].map(|end| format!("slab:{QUIET}:{end}"));
    let types = sys::btf::KernelBtf::kernel().expect("the kernel's types");
    if types.find(sys::btf::Kind::Func, "bpf_iter_kmem_cache").is_none() {
        let (code, said) = crate::probes::refused(User::Me, &["-e", &free]);
        assert!(code == 125 && said.contains("do not tell the cache (Linux 6.13)"), "{code} {said}");
        return lab::skip("kernel:6.13", "the kernel does not list its caches with their addresses");
    }
    let other = "slab:filp:alloc";
    let specs = [format!("{alloc} kstack=20 comm"), free.clone(), format!("{other} /args.size == 1/")];
    let script = format!("printf 'faults 40\\nclose 0\\n' | {program} >/dev/null");
    let e = specs.iter().flat_map(|s| ["-e", s.as_str()]).collect::<Vec<_>>();
    let r = record(&e, &["sh", "-c", &script]);
    assert_eq!((r.count(&alloc, "recorded"), r.count(&free, "recorded")), (40, 40));
    assert_eq!(r.count(other, "recorded"), 0);
    assert!(r.count(other, "filtered") >= 40, "{}", r.stats);
    let address = |e: &&Value| e["args"]["address"].to_string();
    let addresses = |name: &str| r.of(name).iter().map(address).collect::<BTreeSet<_>>();
    assert_eq!(addresses(&alloc), addresses(&free));
    // GFP_KERNEL: it may wait, and use disks and file systems.
    let kernel = |e: &Value| e["args"]["gfp_flags"].as_u64().is_some_and(|flags| flags & 0xcc0 == 0xcc0);
    assert!(r.of(&alloc).iter().all(|e| kernel(e)), "{:?}", r.of(&alloc)[0]);
    let (code, said) = crate::probes::refused(User::Me, &["-e", "slab:flip:alloc"]);
    assert!(code == 2 && said.contains("slab:filp"), "{said}");
}

/// Each file that is opened is an event.
#[test]
fn opened_files_are_allocations() {
    use crate::probes::record;
    let types = sys::btf::KernelBtf::kernel().ok();
    if !possible() || types.is_none_or(|t| t.find(sys::btf::Kind::Func, "bpf_iter_kmem_cache").is_none()) {
        return lab::skip("kernel:6.13", "the kernel does not list its caches with their addresses");
    }
    let args = ["-e", "slab:filp:alloc /comm == \"bash\"/ ustack", "-e", "slab:filp:free", "--buffer", "8M"];
    let r = record(&args, &["bash", "-c", "for ((n = 0; n < 10000; n++)); do : </dev/null; done"]);
    let opened = r.count("slab:filp:alloc", "recorded");
    assert!((10_000..10_100).contains(&opened), "{opened}");
    assert!(r.count("slab:filp:free", "recorded") >= 10_000);
}
