//! Named sessions and those who are not meant to reach them: names, sockets, permissions, hostile bytes.

use crate::lab::{self, User, each_user};
use crate::sessions::{Phases, Room, record};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

#[test]
fn names_are_checked_and_taken_once() {
    each_user(|user| {
        let room = Room::new(user);
        let Some(p) = record(&room, "ptrace", "e", &["-e", "getppid"]) else { return };
        let out = lab::run(&mut room.trapline(&["record", "--name", "e", "-o", "second", "true"]));
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert!(out.stderr.contains("runs already"), "{}", out.stderr);
        assert!(!room.path.join("second").exists(), "a name that is taken must leave nothing behind");
        for bad in ["../e", "a b", "", ".x"] {
            let out = lab::run(&mut room.trapline(&["record", "--name", bad, "-o", "third", "true"]));
            assert_eq!((out.code(), room.path.join("third").exists()), (2, false), "{bad:?} {}", out.stderr);
        }
        let out = lab::run(&mut room.trapline(&["record", "--paused", "-o", "third", "true"]));
        assert_eq!(out.code(), 2, "{}", out.stderr);
        let out = lab::run(&mut room.trapline(&["record", "--name", "f", "-e", "none", "-o", "third", "true"]));
        assert!(out.code() == 2 && out.stderr.contains("nothing is enabled"), "{}", out.stderr);
        room.refuses(&["stop", "a b"], 2, "not a name");
        assert_eq!(p.end().code(), 0);
    });
}

#[test]
fn a_killed_session_leaves_a_name_that_can_be_taken_again() {
    each_user(|user| {
        let room = Room::new(user);
        for again in [["list", ""], ["status", "g"]] {
            let Some(p) = record(&room, "ptrace", "g", &["-e", "getppid", "-q"]) else { return };
            let pid = own_trapline(&p, &room);
            lab::kill("KILL", pid.into());
            p.ends();
            assert!(room.socket("g").exists(), "nobody could remove it");
            match again[0] {
                "list" => assert_eq!(room.ask(&["list"]).out(), ""),
                _ => room.refuses(&again, 125, "it has ended"),
            }
            assert!(!room.socket("g").exists(), "{again:?}");
            fs::remove_dir_all(room.path.join("g.trace")).expect("its trace");
        }
        let Some(p) = record(&room, "ptrace", "g", &["-e", "getppid", "-q"]) else { return };
        lab::kill("KILL", own_trapline(&p, &room).into());
        p.ends();
        fs::remove_dir_all(room.path.join("g.trace")).expect("its trace");
        let Some(p) = record(&room, "ptrace", "g", &["-e", "getppid"]) else { return };
        lab::until("the new session", || room.ask(&["status", "g"]).code() == 0);
        assert_eq!(p.end().code(), 0);
    });
}

/// The process id of the session, once it answers.
fn own_trapline(p: &Phases, room: &Room) -> u32 {
    lab::until("the session", || room.ask(&["status", "g"]).code() == 0);
    let pid = room.status("g")["pid"].as_u64();
    assert_eq!(pid, Some(p.child.id().into()));
    p.child.id()
}

#[test]
fn only_the_owner_can_reach_a_session() {
    each_user(|user| {
        let room = Room::new(user);
        let Some(p) = record(&room, "ptrace", "h", &["-e", "getppid"]) else { return };
        let mode = |p: &Path| fs::metadata(p).expect("metadata").mode() & 0o7777;
        assert_eq!((mode(&room.path.join("trapline")), mode(&room.socket("h"))), (0o700, 0o600));
        let socket = room.socket("h").to_str().expect("UTF-8").to_string();
        if user == User::Me && lab::is_root() {
            let other = Room::new(User::Nobody);
            other.refuses(&["status", &socket], 125, "not permitted");
        }
        if user == User::Nobody {
            // Root reaches it by its path.
            let root = Room::new(User::Me);
            assert!(root.does(&["status", &socket]).contains("running"));
        }
        assert_eq!(p.end().code(), 0);
        // A directory that others may enter is not trusted.
        fs::set_permissions(room.path.join("trapline"), fs::Permissions::from_mode(0o755)).expect("chmod");
        let out = lab::run(&mut room.trapline(&["record", "--name", "h", "-o", "second", "true"]));
        assert!(out.code() == 125 && out.stderr.contains("other users may access it"), "{}", out.stderr);
        assert!(!room.path.join("second").exists());
    });
}

#[test]
fn without_a_directory_of_the_system_there_is_one_in_tmp() {
    each_user(|user| {
        let Some(program) = lab::program("phases") else { return };
        let room = Room::new(user);
        let name = format!("tmp{}{user:?}", std::process::id());
        let args = ["record", "--backend", "ptrace", "--name", &name, "-o", "t", "-e", "getppid", "--", &program];
        let mut p = Phases::start(room.trapline(&args).env_remove("XDG_RUNTIME_DIR"));
        p.make("ppid", 2);
        let uid = fs::metadata(room.path.join("t")).expect("trace").uid();
        let dir = PathBuf::from(format!("/tmp/trapline-{uid}"));
        let meta = fs::symlink_metadata(&dir).expect("the directory");
        assert_eq!((meta.uid(), meta.mode() & 0o7777, meta.is_dir()), (uid, 0o700, true));
        assert!(dir.join(format!("{name}.sock")).exists());
        // Found also by those who have the variable.
        assert!(room.does(&["list"]).contains(&name));
        room.does(&["destroy", &name]);
        assert_eq!(p.ends().code(), 0);
    });
}

/// What a session answers to these bytes; empty: nothing.
fn say(socket: &Path, bytes: &[u8]) -> String {
    let mut s = UnixStream::connect(socket).expect("connect");
    s.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("timeout");
    // It may hang up before it has read everything.
    let _ = s.write_all(bytes);
    let mut answer = Vec::new();
    let _ = s.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn hostile_bytes_do_a_session_no_harm() {
    if !lab::is_root() {
        lab::skip("root", "the directory belongs to whoever runs the tests, who may be anybody");
    }
    let room = Room::new(User::Me);
    let Some(mut p) = record(&room, "ptrace", "i", &["-e", "getppid"]) else { return };
    p.make("ppid", 1);
    let socket = room.socket("i");
    let deep = [vec![b'['; 50_000], b"\n".to_vec()].concat();
    let long = vec![b'x'; 1 << 20];
    let set = format!("{{\"v\":1,\"do\":\"set\",\"expr\":[\"/{}/\"]}}\n", "(a{0,200}){0,200}".repeat(50));
    let lines: [&[u8]; 9] = [
        b"\n",
        b"\0\xff\xfe\n",
        b"{}\n",
        b"{\"v\":9,\"do\":\"stop\"}\n",
        b"{\"v\":1,\"do\":\"\\u0000\"}\n",
        b"{\"v\":1,\"do\":\"set\",\"expr\":[[]]}\n",
        &deep,
        &long,
        set.as_bytes(),
    ];
    for line in lines {
        let answer = say(&socket, line);
        // It hangs up on those who go on writing; who is answered is refused.
        assert!(answer.is_empty() && line.len() > 65536 || answer.contains("\"ok\":false"), "{answer:?}");
    }
    // Connections that say nothing, half a line, or go at once, as many as one likes.
    let idle: Vec<UnixStream> = (0..40).map(|_| UnixStream::connect(&socket).expect("connect")).collect();
    for _ in 0..40 {
        let mut s = UnixStream::connect(&socket).expect("connect");
        let _ = s.write_all(b"{\"v\":1,\"do\":\"sto");
    }
    p.make("ppid", 6);
    drop(idle);
    lab::until("an answer", || room.ask(&["status", "i"]).code() == 0);
    assert_eq!(room.status("i")["state"], "running");
    // Only the first line counts.
    let two = say(&socket, b"{\"v\":1,\"do\":\"status\"}\n{\"v\":1,\"do\":\"stop\"}\n");
    assert!(two.contains("\"ok\":true") && two.lines().count() == 1, "{two}");
    p.make("ppid", 10);
    assert_eq!(p.end().code(), 0);
    assert_eq!(room.counts("i.trace", ["getppid"]), [17]);
}
