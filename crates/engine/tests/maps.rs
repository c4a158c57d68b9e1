//! What processes have mapped, against what the programs do and what readelf says.

use engine::maps::Maps;
use events::Event;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use sys::process;
use testkit::skip;

/// One test at a time: a child that another test forks keeps a program that is being written open, and then nobody can
/// execute it.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// A mapping as its event tells.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    pid: u32,
    path: String,
    build_id: String,
    prot: u64,
    inode: u64,
    time: u64,
    range: (u64, u64),
}

fn drain(maps: &mut Maps) -> Vec<Seen> {
    let mut all = Vec::new();
    maps.drain(|bytes| {
        let ev = Event::parse(bytes).expect("an event");
        assert_eq!((ev.schema.name, ev.bytes.len()), ("map", bytes.len()));
        let (addr, len) = (ev.value_of("addr"), ev.value_of("len"));
        all.push(Seen {
            pid: ev.pid(),
            path: String::from_utf8_lossy(ev.bytes_of("path")).into_owned(),
            build_id: ev.bytes_of("build_id").iter().map(|b| format!("{b:02x}")).collect(),
            prot: ev.value_of("prot"),
            inode: ev.value_of("inode"),
            time: ev.time(),
            range: (addr, addr + len),
        });
    });
    all
}

/// The program `maps`, compiled under a name of its own; none without a compiler.
#[track_caller]
fn program(name: &str) -> Option<String> {
    testkit::compiled(name, "maps.c", &["-Wl,--build-id=sha1"])
}

fn readelf(path: &str) -> Option<String> {
    let out = Command::new("readelf").args(["-n", path]).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().find_map(|l| l.trim().strip_prefix("Build ID: ")).map(str::to_string)
}

/// Every mapping of a file has the build id that readelf finds in it.
fn as_readelf_says(seen: &[Seen]) {
    let mut ids: HashMap<&str, Option<String>> = HashMap::new();
    for s in seen.iter().filter(|s| s.path.starts_with("/") && !s.path.starts_with("//")) {
        let want = ids.entry(&s.path).or_insert_with(|| readelf(&s.path));
        assert_eq!(Some(&s.build_id), want.as_ref(), "{}", s.path);
    }
    assert!(ids.len() >= 3, "{ids:?}");
}

/// Starts a command as sessions do: it waits at a pipe until it is watched. Returns its pid; it has ended.
fn run(maps: &mut Maps, argv: &[&str]) -> i32 {
    let mut waiting = Command::new("/bin/sh")
        .args(["-c", "echo; read line; exec \"$@\"", "sh"])
        .args(argv)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .spawn()
        .unwrap();
    let pid = waiting.id() as i32;
    // Then the shell has mapped its own libraries: they are none of the command's.
    waiting.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    maps.watch_command(pid);
    waiting.stdin.take().unwrap().write_all(b"\n").unwrap();
    let status = waiting.wait().unwrap();
    assert!(status.success(), "{status:?}");
    pid
}

fn of<'a>(seen: &'a [Seen], pid: u32, name: &str) -> Vec<&'a Seen> {
    seen.iter().filter(|s| s.pid == pid && s.path.ends_with(name)).collect()
}

#[test]
fn a_command_and_its_children_from_the_first_instruction() {
    let _alone = alone();
    let Some(exe) = program("maps_command") else { return };
    let mut maps = Maps::new();
    let pid = run(&mut maps, &[&exe, "3"]) as u32;
    if !maps.method().starts_with("perf") {
        return skip("kernel:perf", maps.method());
    }
    let seen = drain(&mut maps);
    assert_eq!(maps.lost(), 0);
    let pids: HashSet<u32> = seen.iter().map(|s| s.pid).collect();
    assert_eq!(pids.len(), 4, "{pids:?}");
    assert!(pids.contains(&pid));
    for p in pids {
        // The program itself and its second mapping, the loader, libc, libm, and the page of no file.
        assert_eq!(of(&seen, p, "/maps_command").len(), 2, "{seen:#?}");
        assert_eq!(of(&seen, p, "libc.so.6").len(), 1, "{seen:#?}");
        assert_eq!(of(&seen, p, "libm.so.6").len(), 1);
        assert_eq!(of(&seen, p, "//anon").len(), 1);
    }
    assert!(seen.iter().all(|s| s.prot & 4 != 0));
    assert!(seen.is_sorted_by_key(|s| s.time));
    as_readelf_says(&seen);
    assert_eq!(drain(&mut maps), []);
}

#[test]
fn python() {
    let _alone = alone();
    let Some(python) = ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|p| Path::new(p).exists())
    else {
        return skip("package:python3", "no python3");
    };
    let mut maps = Maps::new();
    run(&mut maps, &[python, "-c", "import ctypes, zlib, ssl, sqlite3"]);
    if !maps.method().starts_with("perf") {
        return skip("kernel:perf", maps.method());
    }
    let seen = drain(&mut maps);
    assert!(seen.iter().any(|s| s.path.contains("_ctypes")), "{seen:#?}");
    as_readelf_says(&seen);
}

/// A set-user-ID program: the kernel takes its events away.
#[test]
fn a_program_with_other_rights() {
    let _alone = alone();
    let Some(setpriv) = (process::euid() == 0).then_some("/usr/bin/setpriv").filter(|p| Path::new(p).exists()) else {
        return skip("root", "becoming nobody, and back, needs root and setpriv");
    };
    let Some(exe) = program("maps_with_rights") else { return };
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&exe, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let become_nobody = ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"];
    let mut child = Command::new(setpriv)
        .args(become_nobody)
        .args(["/bin/sh", "-c", &format!("read line; exec {exe} 0 wait")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut maps = Maps::new();
    maps.watch_pid(child.id() as i32).unwrap();
    drain(&mut maps);
    let mut go = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    go.write_all(b"\n").unwrap();
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    std::fs::set_permissions(&exe, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(line, "ready\n");
    if !maps.method().starts_with("perf") {
        drop(go);
        child.wait().unwrap();
        return skip("kernel:perf", maps.method());
    }
    let started = std::time::Instant::now();
    let mut seen = Vec::new();
    while of(&seen, child.id(), "libm.so.6").is_empty() {
        assert!(started.elapsed().as_secs() < 20, "{seen:#?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
        seen.extend(drain(&mut maps));
    }
    assert!(!of(&seen, child.id(), "/maps_with_rights").is_empty(), "{seen:#?}");
    assert_eq!(maps.missed(), 0);
    drop(go);
    assert!(child.wait().unwrap().success());
}

/// Starts `maps 0 wait` and hands it over while it waits.
fn while_it_waits(exe: &str, look: impl FnOnce(i32)) {
    let mut child = Command::new(exe).args(["0", "wait"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    look(child.id() as i32);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_running_process() {
    let _alone = alone();
    let Some(exe) = program("maps_running") else { return };
    while_it_waits(&exe, |pid| {
        let mut maps = Maps::new();
        maps.watch_pid(pid).unwrap();
        let seen = drain(&mut maps);
        let p = pid as u32;
        let counts = ["/maps_running", "libc.so.6", "libm.so.6", "//anon"].map(|n| of(&seen, p, n).len());
        assert_eq!(counts, [2, 1, 1, 1], "{seen:#?}");
        as_readelf_says(&seen);
        let file = of(&seen, p, "libc.so.6")[0];
        use std::os::unix::fs::MetadataExt;
        assert_eq!(file.inode, std::fs::metadata(&file.path).unwrap().ino());
    });
    assert!(Maps::new().watch_pid(i32::MAX).is_err());
}

#[test]
fn what_a_thread_maps_later_is_told_once() {
    let _alone = alone();
    let mut maps = Maps::new();
    // Twice: every thread has two events that say the same.
    maps.watch_pid(process::own_pid()).unwrap();
    maps.watch_pid(process::own_pid()).unwrap();
    if !maps.method().starts_with("perf") {
        return skip("kernel:perf", maps.method());
    }
    drain(&mut maps);
    let exe = std::env::current_exe().unwrap();
    let path = exe.clone();
    // Starting a child that has all of this process's events.
    let child = std::thread::spawn(move || {
        Command::new(&path).args(["--exact", "no_such_test"]).output().unwrap().status.success()
    });
    assert!(child.join().unwrap());
    let seen = drain(&mut maps);
    let children: HashSet<u32> = seen.iter().filter(|s| s.path == exe.to_str().unwrap()).map(|s| s.pid).collect();
    assert!(!children.is_empty(), "{seen:#?}");
    for pid in children {
        let of: Vec<_> = seen.iter().filter(|s| s.pid == pid && s.path == exe.to_str().unwrap()).collect();
        assert_eq!(of.len(), 1, "{of:#?}");
    }
}

/// A ring that is not read loses records, and says how many.
#[test]
fn what_is_lost_is_counted_exactly() {
    let _alone = alone();
    // More than the largest ring holds, fewer than a process may have mappings.
    const TIMES: u64 = 20_000;
    let Some(exe) = program("maps_flood") else { return };
    let mut child = Command::new(&exe)
        .args(["flood", &TIMES.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut go, mut out) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut line = String::new();
    let mut wait = || assert!(out.read_line(&mut line).unwrap() > 0);
    wait();
    let mut maps = Maps::new();
    maps.watch_pid(child.id() as i32).unwrap();
    drain(&mut maps);
    go.write_all(b"\n").unwrap();
    wait();
    let mut seen = drain(&mut maps).len() as u64;
    go.write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
    seen += drain(&mut maps).len() as u64;
    if !maps.method().starts_with("perf") {
        return skip("kernel:perf", maps.method());
    }
    assert!(maps.lost() > 0);
    assert_eq!(seen + maps.lost(), TIMES + 1);
}

#[test]
fn without_perf_execs_and_mappings_are_looked_at() {
    let _alone = alone();
    let Some(exe) = program("maps_refused") else { return };
    while_it_waits(&exe, |pid| {
        let mut maps = Maps::new().without_perf();
        assert!(maps.method().starts_with("/proc/PID/maps"));
        maps.watch_command(pid);
        assert_eq!(drain(&mut maps), []);
        let exec = engine::own_events::process(
            &events::generated::P_EXEC,
            1,
            (pid as u32, pid as u32),
            &[0, pid as u64],
            &[b"maps"],
        );
        maps.note(&Event::parse(&exec).unwrap());
        let seen = drain(&mut maps);
        assert_eq!(of(&seen, pid as u32, "libm.so.6").len(), 1, "{seen:#?}");
        as_readelf_says(&seen);
        // Told already.
        maps.snapshot(pid).unwrap();
        assert_eq!(drain(&mut maps), []);
        maps.note(&Event::parse(&exec).unwrap());
        assert_eq!(drain(&mut maps).len(), seen.len());
    });
}

#[test]
fn an_ordinary_user_may_watch_his_own() {
    let _alone = alone();
    use std::os::unix::fs::PermissionsExt;
    if process::euid() != 0 {
        return skip("root", "the other tests run as an ordinary user");
    }
    if !Path::new("/usr/bin/setpriv").exists() {
        return skip("unprivileged", "no setpriv to become nobody");
    }
    let copy = testkit::dir().join("as_nobody");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let out = Command::new("/usr/bin/setpriv")
        .args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"])
        .arg(&copy)
        .args(["--exact", "a_command_and_its_children_from_the_first_instruction", "a_running_process"])
        .args(["--nocapture", "--test-threads=1"])
        .env("TMPDIR", "/tmp")
        .env_remove("TRAPLINE_SKIPS")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{text}{said}");
    assert!(text.contains("2 passed"), "{text}");
    if let Some(why) = said.lines().find(|l| l.starts_with("SKIPPED")) {
        assert!(sys::perf::paranoid().is_none_or(|p| p > 2), "{said}");
        skip("kernel:perf", why);
    }
}
