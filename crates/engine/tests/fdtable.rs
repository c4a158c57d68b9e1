//! The descriptor table, told by events alone.

use engine::pipeline::fdtable::FdTable;
use events::encode::{self, Fixed};
use events::event::Event;
use events::layout::Shape;
use events::names::{AT_FDCWD, Names};
use events::{Schema, generated as g, registry};

/// An event of process `pid` with string tails filled from `strings` in order.
fn event(s: &'static Schema, pid: u32, args: &[u64], ret: i64, strings: &[&[u8]]) -> Vec<u8> {
    let l = events::registry::layout(s.id).unwrap();
    let mut out = Vec::new();
    let f = Fixed { pid, tid: pid, ret, cap: 0b01_0101_0101, ..Fixed::default() };
    encode::fixed(&mut out, s, l, &f, args);
    let mut strings = strings.iter();
    for t in &l.tails {
        match t.shape {
            Shape::Str => encode::str_tail(&mut out, strings.next().copied().unwrap_or_default()),
            Shape::Many(4) => {
                encode::many_tail(&mut out, &[4i32.to_le_bytes(), 5i32.to_le_bytes()].concat(), 4);
            }
            shape => encode::empty_tail(&mut out, shape),
        }
    }
    out
}

struct Table(FdTable);

impl Table {
    fn new() -> Table {
        let mut t = FdTable::default();
        t.enable();
        let mut t = Table(t);
        t.fd(1, AT_FDCWD, b"/home", 0);
        t
    }
    fn feed(&mut self, raw: &[u8]) {
        let ev = Event::parse(raw).unwrap();
        self.0.before(&ev);
        self.0.after(&ev);
    }
    fn fd(&mut self, pid: u32, fd: i32, path: &[u8], flags: u64) {
        self.feed(&event(&g::P_FD, pid, &[0, 0, fd as u64, flags], 0, &[path, b""]));
    }
    fn call(&mut self, pid: u32, name: &str, args: &[u64], ret: i64, strings: &[&[u8]]) {
        self.feed(&event(registry::by_name(name).unwrap(), pid, args, ret, strings));
    }
    fn fork(&mut self, pid: u32, child: u32, flags: u64) {
        self.feed(&event(&g::P_FORK, pid, &[0, child.into(), child.into(), flags], 0, &[b""]));
    }
    fn name(&self, pid: u32, fd: i32) -> Option<&str> {
        self.0.fd(pid, fd).map(|n| std::str::from_utf8(&n.path).unwrap())
    }
}

const CWD: u64 = -100i64 as u64;

#[test]
fn open_dup_and_close() {
    let mut t = Table::new();
    t.call(1, "openat", &[CWD, 1, 0, 0], 3, &[b"notes"]);
    assert_eq!(t.name(1, 3), Some("/home/notes"));
    t.call(1, "dup2", &[3, 9], 9, &[]);
    t.call(1, "close", &[3], 0, &[]);
    assert_eq!((t.name(1, 3), t.name(1, 9)), (None, Some("/home/notes")));
    t.call(1, "openat", &[CWD, 1, 0, 0], -2, &[b"missing"]);
    t.call(1, "close", &[9], -9, &[]);
    assert_eq!(t.name(1, 9), Some("/home/notes"));
}

#[test]
fn chdir_moves_what_is_opened_later() {
    let mut t = Table::new();
    t.call(1, "chdir", &[1], 0, &[b"sub"]);
    t.call(1, "openat", &[CWD, 1, 0, 0], 3, &[b"x"]);
    assert_eq!(t.name(1, 3), Some("/home/sub/x"));
}

#[test]
fn paths_below_unknown_directories_are_not_made_up() {
    let mut t = Table::new();
    t.call(2, "openat", &[CWD, 1, 0, 0], 3, &[b"x"]);
    t.call(2, "openat", &[9, 1, 0, 0], 4, &[b"y"]);
    t.call(2, "openat", &[9, 1, 0, 0], 5, &[b"/z"]);
    assert_eq!((t.name(2, 3), t.name(2, 4), t.name(2, 5)), (Some("x"), None, Some("/z")));
    t.call(2, "chdir", &[1], 0, &[b"sub"]);
    t.call(2, "openat", &[CWD, 1, 0, 0], 6, &[b"x"]);
    assert_eq!(t.name(2, 6), Some("sub/x"));
}

#[test]
fn a_fork_copies_and_clone_files_shares() {
    let mut t = Table::new();
    t.fd(1, 3, b"/a", 0);
    t.fork(1, 2, 0);
    t.fork(1, 7, 0x400);
    t.call(1, "close", &[3], 0, &[]);
    assert_eq!((t.name(1, 3), t.name(2, 3), t.name(7, 3)), (None, Some("/a"), None));
    t.fd(7, 4, b"/b", 0);
    assert_eq!((t.name(1, 4), t.name(2, 4)), (Some("/b"), None));
}

#[test]
fn an_exec_closes_what_is_close_on_exec() {
    let mut t = Table::new();
    t.fd(1, 3, b"/keep", 0);
    t.fd(1, 4, b"/drop", 1);
    t.call(1, "dup3", &[3, 5, 0o2_000_000], 5, &[]);
    t.call(1, "fcntl", &[4, 2, 0], 0, &[]);
    t.call(1, "fcntl", &[3, 1030, 6], 6, &[]);
    t.feed(&event(&g::P_EXEC, 1, &[0, 1], 0, &[b"sh"]));
    let open: Vec<i32> = (3..8).filter(|&fd| t.name(1, fd).is_some()).collect();
    assert_eq!(open, [3, 4]);
    assert_eq!(t.0.comm(1), Some(&b"sh"[..]));
}

#[test]
fn close_range_closes_or_marks() {
    let mut t = Table::new();
    for fd in 3..9 {
        t.fd(1, fd, b"/x", 0);
    }
    t.call(1, "close_range", &[4, 5, 0], 0, &[]);
    t.call(1, "close_range", &[7, u32::MAX.into(), 4], 0, &[]);
    assert_eq!((t.name(1, 4), t.name(1, 7)), (None, Some("/x")));
    t.feed(&event(&g::P_EXEC, 1, &[0, 1], 0, &[b"sh"]));
    let open: Vec<i32> = (3..9).filter(|&fd| t.name(1, fd).is_some()).collect();
    assert_eq!(open, [3, 6]);
}

#[test]
fn arguments_have_old_names_and_results_new_ones() {
    let mut t = Table::new();
    t.fd(1, 3, b"/new", 0);
    t.fd(1, 9, b"/old", 0);
    let raw = event(registry::by_name("dup2").unwrap(), 1, &[3, 9], 9, &[]);
    let ev = Event::parse(&raw).unwrap();
    t.0.before(&ev);
    assert_eq!(t.0.fd(1, 9).map(|n| &n.path[..]), Some(&b"/old"[..]));
    assert_eq!(t.0.new_fd(1, 9).map(|n| &n.path[..]), Some(&b"/new"[..]));
    t.0.after(&ev);
    assert_eq!(t.name(1, 9), Some("/new"));
}

#[test]
fn pipes_and_an_end_of_process() {
    let mut t = Table::new();
    t.call(1, "pipe2", &[1, 0], 0, &[]);
    assert_eq!((t.name(1, 4), t.name(1, 5)), (Some("pipe:[?]"), Some("pipe:[?]")));
    t.feed(&event(&g::P_EXIT, 1, &[0, 0, 0], 0, &[]));
    assert_eq!(t.name(1, 4), None);
}

#[test]
fn names_and_ids_follow_threads() {
    let mut t = Table::new();
    let ids = |t: &Table, tid: u32| t.0.ids(tid);
    assert_eq!(ids(&t, 1), (None, None));
    t.feed(&event(&g::P_EXEC, 1, &[0, 1, 0, 7], 0, &[b"sh"]));
    t.fork(1, 2, 0);
    assert_eq!((t.0.comm(2), ids(&t, 2)), (Some(&b"sh"[..]), (Some(0), Some(7))));
    // Root becomes whoever it wants to, and is then nobody else.
    t.call(2, "setgid", &[100], 0, &[]);
    t.call(2, "setuid", &[1000], 0, &[]);
    assert_eq!((ids(&t, 2), ids(&t, 1)), ((Some(1000), Some(100)), (Some(0), Some(7))));
    t.call(2, "setuid", &[0], -1, &[]);
    assert_eq!(ids(&t, 2), (Some(1000), Some(100)));
    // -1 leaves the real id as it is.
    t.call(2, "setresuid", &[u64::MAX, 5, 5], 0, &[]);
    t.call(2, "setregid", &[3, u64::MAX], 0, &[]);
    assert_eq!(ids(&t, 2), (Some(1000), Some(3)));
    // Whether this changes the real id or the effective one depends on capabilities, which are not known.
    t.call(2, "setuid", &[5], 0, &[]);
    assert_eq!(ids(&t, 2), (None, Some(3)));
    t.feed(&event(&g::P_EXIT, 2, &[0, 0, 0], 0, &[]));
    assert_eq!((t.0.comm(2), ids(&t, 2)), (None, (None, None)));
    let unknown = u64::from(u32::MAX);
    t.feed(&event(&g::P_ATTACH, 9, &[0, unknown, unknown], 0, &[b"x"]));
    assert_eq!((t.0.comm(9), ids(&t, 9)), (Some(&b"x"[..]), (None, None)));
}
