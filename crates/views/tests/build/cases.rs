//! The events of the golden tests: one or more per decoder family, the same for every view.
//!
//! Invariant: a case is a name and whole events; nothing in it depends on the machine. Add to it what a new type needs.

use super::lives;
use super::memory::{cmsg, dirent64, inet, inet6, netlink, packet, unix, words};
use super::{Call, Iov, Message};
use events::event::Cap;

const AT_FDCWD: u64 = -100i64 as u64;

/// A name, and the events in the order of their emission.
pub type Case = (&'static str, Vec<Vec<u8>>);

/// Cases whose events are not encoded yet.
pub type Family = Vec<(&'static str, Vec<Call>)>;

/// All cases.
pub fn all() -> Vec<Case> {
    let families: [fn() -> Family; 7] =
        [files, buffers, structs, sockets, switches, lives::processes, lives::incomplete];
    let encode = |calls: Vec<Call>| calls.iter().map(Call::encode).collect();
    families.into_iter().flat_map(|f| f()).map(|(name, calls)| (name, encode(calls))).collect()
}

/// An openat of /etc/passwd.
pub fn open(flags: u64) -> Call {
    Call::new("openat").arg("dfd", AT_FDCWD).arg("flags", flags).str("filename", b"/etc/passwd")
}

fn files() -> Family {
    vec![
        (
            "path and flags",
            vec![
                open(0o2000000).ret(3).cpus(1, 0),
                open(0o101).arg("mode", 0o644).ret(-13),
                open(0x4000_0000).ret(-22),
                Call::new("unlinkat")
                    .arg("dfd", 5)
                    .str("pathname", b"a \x1b[31m\"\\\n\xe2\x82\xac")
                    .arg("flag", 0x200)
                    .ret(0),
            ],
        ),
        ("path that is not UTF-8", vec![Call::new("chdir").str("filename", b"/tmp/\xff\xfe").ret(-2)]),
        (
            "addresses and numbers",
            vec![
                Call::new("mmap")
                    .arg("len", 8192)
                    .arg("prot", 3)
                    .arg("flags", 0x22)
                    .arg("fd", -1i64 as u64)
                    .ret(0x7f12_3456_7000),
                Call::new("lseek").arg("fd", 3).arg("offset", -5i64 as u64).arg("whence", 2).ret(0x7fff_ffff_ffff),
                Call::new("setresuid").arg("ruid", 1000).arg("euid", u32::MAX.into()).arg("suid", 0).ret(0),
            ],
        ),
        (
            "directory entries",
            vec![
                Call::new("getdents64")
                    .arg("fd", 3)
                    .arg("count", 32768)
                    .bytes("dirent", &[dirent64(2, 1, 4, b"."), dirent64(77, 2, 8, b"a\xffb")].concat())
                    .ret(48),
            ],
        ),
    ]
}

fn buffers() -> Family {
    let read = |b: &[u8]| Call::new("read").arg("fd", 0).bytes("buf", b).arg("count", 4096);
    vec![
        (
            "buffers",
            vec![
                read(b"one\ntwo\n").ret(8),
                read(b"0123456789abcdef0123456789abcdef").cut("buf").ret(4096),
                read(b"\x7fELF\x02\x01\x01\0").ret(8),
                read("12\u{20ac}".as_bytes().split_last().map_or(&[], |(_, b)| b)).cut("buf").ret(100),
                read(b"").ret(0),
                Call::new("write").arg("fd", 1).fault("buf", 0xdead_0000).arg("count", 5).ret(-14),
                Call::new("write").arg("fd", 1).arg("buf", 0).arg("count", 5).ret(-14),
            ],
        ),
        (
            "iovecs",
            vec![
                Call::new("writev")
                    .arg("fd", 1)
                    .iov("vec", &[Iov::whole(b"head"), Iov::cut(b"body", 9000), Iov::fault(0x10, 8), Iov::fault(0, 1)])
                    .arg("vlen", 4)
                    .ret(-14),
                Call::new("readv").arg("fd", 0).iov("vec", &[Iov::whole(b"ab")]).arg("vlen", 1).ret(2),
            ],
        ),
        (
            "argv and envp",
            vec![
                Call::new("execve")
                    .str("filename", b"/bin/echo")
                    .strv("argv", &[b"echo", b"", b"\xc3\xa4"])
                    .strv_of("envp", 23, &[])
                    .ret(0),
                Call::new("execve")
                    .str("filename", b"/bin/x")
                    .strv_of("argv", 40, &[(Cap::Cut, b"aaaa"), (Cap::Fault, b"")])
                    .cut("argv")
                    .strv("envp", &[b"A=1", b"B=2"])
                    .ret(-2),
            ],
        ),
    ]
}

fn structs() -> Family {
    let stat: &[(&str, u64)] = &[
        ("st_dev", 0x801),
        ("st_ino", u64::MAX - 1),
        ("st_mode", 0o104755),
        ("st_nlink", 1),
        ("st_size", 13),
        ("st_mtime", -1i64 as u64),
    ];
    vec![
        (
            "stat and statx",
            vec![
                Call::new("fstat").arg("fd", 3).fields("statbuf", stat).ret(0),
                Call::new("fstat").arg("fd", 1).fields("statbuf", &[("st_mode", 0o20620), ("st_rdev", 0x8803)]).ret(0),
                Call::new("statx")
                    .arg("dfd", AT_FDCWD)
                    .str("filename", b"/")
                    .arg("flags", 0x100)
                    .arg("mask", 0xfff)
                    .fields("buffer", &[("stx_mask", 0x17ff), ("stx_mode", 0o40755), ("stx_btime.tv_nsec", 5)])
                    .ret(0),
            ],
        ),
        (
            "times and limits",
            vec![
                Call::new("clock_nanosleep").arg("which_clock", 1).fields("rqtp", &[("tv_nsec", 500_000_000)]).ret(0),
                Call::new("setitimer").fields("value", &[("it_value.tv_sec", 1)]).ret(0),
                Call::new("prlimit64")
                    .arg("resource", 7)
                    .fields("new_rlim", &[("rlim_cur", 4096), ("rlim_max", u64::MAX)])
                    .fault("old_rlim", 8)
                    .ret(-14),
            ],
        ),
        (
            "calls and flags of Linux 6.19 to 7.2",
            vec![
                Call::new("listns")
                    .fields("req", &[("size", 32), ("ns_type", 0x4002_0000), ("user_ns_id", u64::MAX)])
                    .bytes("ns_ids", &[7u64.to_le_bytes(), 9u64.to_le_bytes()].concat())
                    .arg("nr_ns_ids", 16)
                    .ret(2),
                Call::new("rseq_slice_yield").ret(0),
                Call::new("rseq").arg("rseq", 0x7f00).arg("rseq_len", 33).arg("flags", 2).ret(0),
                Call::new("prctl").arg("option", 79).arg("arg2", 2).arg("arg3", 1).ret(0),
                Call::new("landlock_restrict_self").arg("ruleset_fd", 3).arg("flags", 8).ret(0),
                Call::new("landlock_create_ruleset")
                    .fields("attr", &[("handled_access_fs", 0x10000), ("handled_access_net", 12)])
                    .arg("size", 24)
                    .ret(3),
                Call::new("io_uring_setup").arg("entries", 8).fields("params", &[("flags", 0x18_0000)]).ret(3),
            ],
        ),
        (
            "signals and sets",
            vec![
                Call::new("rt_sigprocmask")
                    .bytes("nset", &(1u64 << 1 | 1 << 16 | 1 << 33).to_le_bytes())
                    .bytes("oset", &(!0x2u64).to_le_bytes())
                    .arg("sigsetsize", 8)
                    .ret(0),
                Call::new("rt_sigaction")
                    .arg("sig", 2)
                    .fields("act", &[("sa_handler", 1), ("sa_flags", 0x1400_0000), ("sa_restorer", 0x7f00)])
                    .fields("oact", &[])
                    .arg("sigsetsize", 8)
                    .ret(0),
                Call::new("kill").arg("pid", -1i64 as u64).arg("sig", 77).ret(-22),
                Call::new("sched_setaffinity").arg("len", 2).bytes("user_mask_ptr", &[5, 1]).ret(0),
            ],
        ),
        (
            "select, poll and epoll",
            vec![
                Call::new("select").arg("n", 10).inout("inp", &[0b1001, 2], &[0b1000, 0]).arg("tvp", 0).ret(1),
                Call::new("poll")
                    .arg("nfds", 2)
                    .elements_inout(
                        "ufds",
                        &[&[("fd", 3), ("events", 1)], &[("fd", 4), ("events", 5)]],
                        &[&[("fd", 3), ("events", 1), ("revents", 0x11)], &[("fd", 4), ("events", 5)]],
                    )
                    .arg("timeout_msecs", -1i64 as u64)
                    .ret(1),
                Call::new("epoll_ctl")
                    .arg("epfd", 4)
                    .arg("op", 1)
                    .arg("fd", 3)
                    .fields("event", &[("events", 1)])
                    .ret(0),
                Call::new("epoll_wait")
                    .arg("epfd", 4)
                    .elements("events", &[&[("events", 0x8000_0011), ("data", 0x1_0000_0003)]])
                    .arg("maxevents", 32)
                    .ret(1),
            ],
        ),
    ]
}

fn sockets() -> Family {
    let connect =
        |a: &[u8]| Call::new("connect").arg("fd", 3).bytes("uservaddr", a).arg("addrlen", a.len() as u64).ret(0);
    let local = std::net::Ipv6Addr::LOCALHOST;
    let rights = [cmsg(1, 1, &words(&[5, 6])), cmsg(1, 2, &words(&[7, 1000, 1000])), cmsg(0, 8, b"\0\x01")].concat();
    vec![
        (
            "socket addresses",
            vec![
                connect(&inet([127, 0, 0, 1], 80)),
                connect(&inet6(local, 443, 2)),
                connect(&unix(b"/run/x.sock\0")),
                connect(&unix(b"\0abstract")),
                connect(&netlink(7, 1)),
                connect(&packet(2, [2, 0, 0, 0, 0, 1])),
                connect(&[99, 0, 1, 2, 0xff]),
                connect(&[1]),
            ],
        ),
        (
            "socket address and length",
            vec![
                Call::new("getsockname")
                    .arg("fd", 3)
                    .bytes("usockaddr", &inet([10, 1, 2, 3], 4000))
                    .inout("usockaddr_len", &words(&[128]), &words(&[16]))
                    .ret(0),
                Call::new("accept")
                    .arg("fd", 3)
                    .bytes("upeer_sockaddr", &unix(b""))
                    .inout("upeer_addrlen", &words(&[2]), &words(&[2]))
                    .ret(4),
            ],
        ),
        (
            "messages",
            vec![
                Call::new("sendmsg")
                    .arg("fd", 3)
                    .messages(
                        "msg",
                        &[Message {
                            name: inet([1, 1, 1, 1], 53),
                            iov: vec![Iov::whole(b"x\0")],
                            control: rights,
                            ..Message::default()
                        }],
                    )
                    .arg("flags", 0x4000)
                    .ret(2),
                Call::new("sendmmsg")
                    .arg("fd", 3)
                    .messages(
                        "mmsg",
                        &[
                            Message { iov: vec![Iov::whole(b"one")], len: 3, ..Message::default() },
                            Message { iov: vec![Iov::cut(b"tw", 3)], len: 3, flags: 1, ..Message::default() },
                        ],
                    )
                    .arg("vlen", 2)
                    .ret(2),
            ],
        ),
        (
            "messages of queues",
            vec![
                Call::new("msgsnd").arg("msqid", 3).bytes("msgp", b"\x05\0\0\0\0\0\0\0four").arg("msgsz", 4).ret(0),
                Call::new("msgrcv").arg("msqid", 3).bytes("msgp", b"\x05\0\0\0\0\0\0\0").arg("msgsz", 4).ret(0),
                Call::new("msgsnd").arg("msqid", 3).arg("msgp", 0x1000).arg("msgsz", 4).ret(-14),
            ],
        ),
    ]
}

fn switches() -> Family {
    let fcntl = |cmd: u64| Call::new("fcntl").arg("fd", 3).arg("cmd", cmd);
    let ioctl = |cmd: u64| Call::new("ioctl").arg("fd", 1).arg("cmd", cmd);
    vec![
        (
            "ioctl",
            vec![
                ioctl(0x5413).fields("arg", &[("ws_row", 24), ("ws_col", 80)]).ret(0),
                ioctl(0x5401).arg("arg", 0x7ffc_0000_1000).ret(-25),
                ioctl(0x541b).bytes("arg", &words(&[42])).ret(0),
                ioctl(0xc012_7a01).arg("arg", 0x10).ret(0),
            ],
        ),
        (
            "fcntl",
            vec![
                fcntl(1).ret(1),
                fcntl(3).ret(0o100002),
                fcntl(1030).arg("arg", 10).ret(11),
                fcntl(6).fields("arg", &[("l_type", 1), ("l_len", 1)]).ret(0),
            ],
        ),
        (
            "prctl and futex",
            vec![
                Call::new("prctl").arg("option", 15).str("arg2", b"worker").ret(0),
                Call::new("futex")
                    .arg("uaddr", 0x7f00)
                    .arg("op", 128)
                    .arg("val", 2)
                    .fields("timeout", &[("tv_sec", 1)])
                    .ret(-110),
                Call::new("futex").arg("uaddr", 0x7f00).arg("op", 129).arg("val", 1).ret(1),
            ],
        ),
    ]
}
