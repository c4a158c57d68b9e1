//! Cases about processes rather than arguments: ends and signals, and calls of which not everything is known.
//!
//! Invariant: as in [`super::cases`].

use super::Call;
use super::cases::{Family, open};
use super::memory::words;
use events::layout::{CAP_INTERRUPTED, CAP_NO_RESULT, CAP_START_UNKNOWN};

const X86_64: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;

/// Waiting, signals, beginnings and ends.
pub fn processes() -> Family {
    let wait = |status: u32| Call::new("wait4").arg("upid", -1i64 as u64).bytes("stat_addr", &words(&[status])).ret(8);
    let signal = |signo: u64, code: i64| Call::process("signal").arg("signo", signo).arg("code", code as u64);
    let exit = Call::process("exit").who(7, 8);
    vec![
        ("wait status", [0, 0x2a00, 9, 0x8b, 0x137f, 0xffff, 0x0003_057f].into_iter().map(wait).collect()),
        (
            "signals",
            vec![
                signal(17, 1).arg("pid", 9).arg("uid", 1000).arg("status", 3).arg("utime", 2),
                signal(17, 2).arg("pid", 9).arg("status", 9),
                signal(11, 1).arg("addr", 0x10),
                signal(15, 0).arg("pid", 4711).arg("uid", 0),
                signal(34, -1).arg("pid", 4711).arg("value", 0x2a),
                signal(31, 1).arg("addr", 0x7f00).arg("nr", 57).arg("arch", X86_64.into()),
                signal(2, 0x80),
                Call::process("stop").arg("signo", 19),
            ],
        ),
        (
            "life of a process",
            vec![
                Call::process("attach").str("comm", b"bash"),
                Call::process("fork").str("comm", b"").arg("child", 8).arg("tid", 8).arg("flags", 0x0120_0011),
                Call::process("exec").str("comm", b"l\xffs\n").arg("old_tid", 8),
                Call::process("superseded").arg("by", 9),
                Call::process("fd")
                    .str("path", b"socket:[1]")
                    .str("detail", b"TCP:[1.2.3.4:5]")
                    .arg("fd", 3)
                    .arg("flags", 1),
                exit.clone().arg("code", 3),
                exit.arg("signo", 11).arg("core", 1),
                Call::process("detach"),
            ],
        ),
        ("mappings", mappings()),
    ]
}

/// What a process has mapped: with a build id, with an inode, without a file.
fn mappings() -> Vec<Call> {
    let map = |path: &[u8], id: &[u8]| {
        let call = Call::process("map").str("path", path).bytes("build_id", id).arg("prot", 5).arg("flags", 2);
        call.arg("addr", 0x7f12_3456_7000).arg("len", 0x2000).arg("pgoff", 0x1000)
    };
    vec![
        map(b"/usr/lib/libc.so.6", &[0xde, 0xad, 0x00, 0x0f]),
        map(b"/tmp/odd\n\xffname", b"").arg("dev", 0x801).arg("inode", 77),
        map(b"[vdso]", b""),
    ]
}

/// Calls without a result, in flight, or without a table.
pub fn incomplete() -> Family {
    let read = Call::new("read").arg("fd", 0).arg("buf", 0x7ffc_0000_1000).arg("count", 1024);
    let pending = open(0).flags(CAP_NO_RESULT);
    let at_attach = read.clone().flags(CAP_NO_RESULT | CAP_START_UNKNOWN);
    let in_flight =
        |call: &Call, attach: u64| Call::process("inflight").bytes("call", &call.encode()).arg("attach", attach);
    vec![
        (
            "calls without a result",
            vec![
                Call::new("exit_group").arg("error_code", 1).flags(CAP_NO_RESULT),
                read.clone().ret(-512),
                read.clone().ret(-4).flags(CAP_START_UNKNOWN | CAP_INTERRUPTED),
                read.ret(-3000),
            ],
        ),
        (
            "calls in flight",
            vec![
                in_flight(&pending, 0),
                in_flight(&at_attach, 1),
                in_flight(&pending, 2),
                Call::process("inflight").bytes("call", b"\x01\x02"),
            ],
        ),
        (
            "calls without a table",
            vec![
                Call::raw(3, I386, [0, 0xffff_d000, 64, 0, 0, 0]).ret(12),
                Call::raw(0x270f, X86_64, [1, 2, 3, 4, 5, u64::MAX]).ret(-38),
            ],
        ),
    ]
}
