//! Calls with arguments that are hard to read or to show.

use crate::lab::{self, User, each_backend};
use crate::trace::{on_stderr, trace};

#[test]
fn bad_pointers_are_shown_as_addresses() {
    each_backend(|user| {
        let Some(program) = lab::program("bad_pointers") else { return };
        let alone = lab::run(&mut lab::as_user(user, &[&program]));
        let t = trace(user, &[], &[&program]);
        assert_eq!((t.outcome.code(), alone.code()), (0, 0), "{}", t.text());
        let fault = "-1 EFAULT (Bad address)";
        let expected = [
            "openat(AT_FDCWD, NULL, O_RDONLY)",
            "openat(AT_FDCWD, 0x1, O_RDONLY)",
            "newfstatat(AT_FDCWD, \"/\", 0x1, 0)",
            "execve(\"/bin/true\", 0x1, NULL)",
            "getrandom(0x1, 8, 0)",
            "nanosleep(0x1, NULL)",
        ];
        for call in expected {
            assert_eq!(t.one(call).result(), fault, "{}", t.text());
        }
        // All the others, and the path that runs into an unmapped page.
        for call in ["read(", "write(", "readv(", "ppoll(", "recvmsg(", "sendmsg(", "connect(", "rt_sigaction("] {
            let found =
                t.lines.iter().any(|l| l.text.starts_with(call) && l.result() == fault && l.text.contains("0x"));
            assert!(found, "{call} {}", t.text());
        }
        assert_eq!(t.with(fault).len(), 17, "{}", t.text());
    });
}

#[test]
fn huge_counts_are_cut_off() {
    each_backend(|user| {
        let Some(program) = lab::program("huge_iov") else { return };
        for options in [&[][..], &["-v"], &["-s", "100000"]] {
            let t = trace(user, options, &[&program]);
            assert_eq!(t.outcome.code(), 0, "{}", t.outcome.stderr);
            let writev = t.calls("writev");
            assert_eq!(writev.len(), 4);
            assert_eq!(writev[0].result(), "3072");
            assert!(writev[0].text.contains("{iov_base=\"abc\", iov_len=3}"), "{}", writev[0].text);
            assert!(writev[1..].iter().all(|l| l.result() == "-1 EINVAL (Invalid argument)"));
            assert!(t.calls("write").iter().any(|l| l.result() == "67108864"));
        }
        let t = trace(user, &[], &[&program]);
        let write = t.lines.iter().find(|l| l.result() == "67108864").expect("the huge write");
        assert_eq!(
            write.text.split(" = ").next().map(str::trim_end),
            Some("write(3, \"hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh\"..., 67108864)")
        );
        assert!(t.calls("writev")[0].text.contains("...]"), "{}", t.calls("writev")[0].text);
    });
}

#[test]
fn numbers_beyond_the_table() {
    each_backend(|user| {
        let Some(program) = lab::program("bad_number") else { return };
        let t = trace(user, &[], &[&program]);
        assert_eq!(t.outcome.code(), 0);
        for name in ["syscall_0x270f", "syscall_0xffffffff", "syscall_0x7fffffff"] {
            let found = t.with(name);
            assert_eq!(found.len(), 1, "{name} {}", t.text());
            assert!(found[0].text.contains("(0x1, 0x2, 0x3, 0x4, 0x5, 0x6)"), "{}", found[0].text);
            assert_eq!(found[0].result(), "-1 ENOSYS (Function not implemented)");
        }
        // With a filter, they fail as they would alone.
        let t = trace(user, &["-e", "openat"], &[&program]);
        assert_eq!((t.outcome.code(), t.names()), (0, vec!["openat"]));
    });
}

#[test]
fn calls_of_the_32_bit_table() {
    each_backend(|user| {
        let Some(program) = lab::program("ia32") else { return };
        if lab::run(&mut lab::as_user(user, &[&program])).code() == 77 {
            return lab::skip("kernel:IA32_EMULATION", "no 32-bit calls on this kernel");
        }
        let t = trace(user, &[], &[&program]);
        assert_eq!((t.outcome.code(), t.outcome.out().as_str()), (0, "ia32\n"), "{}", t.text());
        assert!(t.one("getpid@i386(").result().parse::<u32>().is_ok());
        assert_eq!(t.one("write@i386(0x1, ").result(), "5");
        assert_eq!(t.one("close@i386(0xffffffff").result(), "-1 EBADF (Bad file descriptor)");
        // A filter must not let them fail, whatever it selects.
        for options in [&["-e", "openat"][..], &["-e", "write"], &["-e", "none"]] {
            let t = trace(user, options, &[&program]);
            assert_eq!((t.outcome.code(), t.outcome.out().as_str()), (0, "ia32\n"), "{options:?}");
            t.lacks("@i386");
        }
    });
}

fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().any(|&b| (b < 0x20 && b != b'\n') || b == 0x7f)
}

#[test]
fn names_that_are_hard_to_show() {
    each_backend(|user| {
        let Some(program) = lab::program("names") else { return };
        for options in
            [&[][..], &["-y"], &["-yy", "-P", "/"], &["-xx"], &["-x", "-v"], &["--types"], &["-X", "verbose"]]
        {
            let dir = lab::scratch();
            let t = trace(user, options, &[&program, dir.to_str().expect("UTF-8")]);
            assert_eq!((t.outcome.code(), t.outcome.out().as_str()), (0, "7\n"));
            let text = t.text();
            assert!(!has_control(text.as_bytes()) && text.is_ascii(), "{options:?} {text}");
        }
        let t = trace(user, &["-y"], &[&program, "/tmp"]);
        let names = [
            "bad\\377\\376utf8",
            "new\\nline",
            "esc\\33[31mred",
            "quote\\\"back\\\\slash",
            "gr\\303\\274\\303\\237",
            "del\\1777 tab\\t1\\00123",
        ];
        for name in names {
            assert!(
                t.calls("openat").iter().any(|l| l.text.contains(&format!("\"/tmp/{name}\""))),
                "{name} {}",
                t.text()
            );
        }
        assert_eq!(t.one("\"\\33[2J/does\\nnot\\\"exist\"").result(), "-1 ENOENT (No such file or directory)");
    });
}

#[test]
fn control_characters_in_messages_and_arguments() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    each_backend(|user| {
        let bad = OsStr::from_bytes(b"no\x1b[31m\xff\nsuch");
        let nothing: &[&OsStr] = &[];
        let option = |o: &'static str| OsStr::new(o);
        let cases: Vec<(Vec<&OsStr>, i32)> = vec![
            ([nothing, &[bad]].concat(), 127),
            (vec![option("-o"), OsStr::from_bytes(b"/no/\x1b[31m\xffsuch"), option("true")], 125),
            (vec![option("-e"), OsStr::from_bytes(b"\x1b[31m"), option("true")], 2),
            (vec![option("-p"), OsStr::from_bytes(b"1\x1b[31m")], 2),
            (vec![option("-u"), OsStr::from_bytes(b"\x1b[31m"), option("true")], 2),
            (vec![option("--backend"), OsStr::from_bytes(b"\x1b[31m"), option("true")], 2),
            (vec![option("--\x1b[31m"), option("true")], 2),
        ];
        for (args, code) in cases {
            let out = on_stderr(user, &args);
            assert_eq!(out.code(), code, "{args:?} {}", out.stderr);
            assert!(!has_control(out.stderr.as_bytes()), "{args:?} {:?}", out.stderr);
            assert_eq!(out.stderr.lines().count(), 1, "{:?}", out.stderr);
        }
    });
}

#[test]
fn command_name_with_control_characters() {
    let dir = lab::scratch();
    let path = dir.join("sh\u{1b}[31m\nx");
    std::fs::copy("/bin/true", &path).expect("copy");
    let out = on_stderr(
        User::Me,
        &[std::ffi::OsStr::new("--decode-pids=comm"), std::ffi::OsStr::new("-yy"), path.as_os_str()],
    );
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert!(!has_control(out.stderr.as_bytes()), "{:?}", out.stderr);
}

#[test]
fn every_family_of_decoders_runs() {
    each_backend(|user| {
        for name in ["families", "families_net", "fds"] {
            let Some(program) = lab::program(name) else { return };
            for options in
                [&[][..], &["-yy", "-v"], &["-xx", "-X", "raw"], &["-X", "verbose", "--types"], &["-e", "%file", "-y"]]
            {
                let dir = lab::scratch();
                let mut c = lab::trapline(user, &crate::trace::arguments(options, &[&program]).0);
                let out = lab::run(c.current_dir(dir));
                assert_eq!(out.code(), 0, "{name} {options:?} {}", out.stderr);
                assert!(out.stderr.contains(" 0 dropped"), "{}", out.stderr);
            }
        }
    });
}

/// The last call of the program, in which it ends, is a 32-bit one too: of a 64-bit program, and of one of 32 bits.
#[test]
fn a_program_that_ends_by_a_32_bit_call() {
    for (name, more) in [("int80", None), ("int80_of_32_bits", Some("-m32"))] {
        let flags: Vec<&str> = ["-nostdlib", "-static"].into_iter().chain(more).collect();
        let Some(program) = testkit::compile("gcc", name, "int80.s", &flags) else { return };
        if lab::run(&mut lab::as_user(User::Me, &[&program])).status.code() != Some(7) {
            return lab::skip("kernel:ia32", "this kernel takes no 32-bit calls");
        }
        each_backend(|user| {
            let t = trace(user, &[], &[&program]);
            assert_eq!((t.outcome.code(), t.outcome.out().as_str()), (7, "hi\n"), "{}", t.text());
            assert_eq!(t.one("write@i386(0x1, ").result(), "3");
            assert_eq!(t.one("exit@i386(0x7, ").result(), "?");
            assert_eq!(t.lines.iter().filter(|l| l.is_call()).count(), 3, "{}", t.text());
            trace(user, &["-e", "write"], &[&program]).lacks("write");
        });
    }
}

#[test]
fn entries_that_were_not_captured_are_not_counted_out() {
    each_backend(|user| {
        let Some(program) = lab::program("listing") else { return };
        let dir = lab::scratch();
        let t = trace(user, &["-e", "getdents64,capget"], &[&program, dir.to_str().expect("UTF-8")]);
        let counts: Vec<u64> = t.outcome.out().lines().map(|n| n.parse().expect("a number")).collect();
        t.one(&format!(" /* {} entries */, 1000)", counts[0]));
        t.one(&format!(" /* {} entries */, 32768)", counts[1]));
        let whole = &t.one(" or more entries */, 1048576)").text;
        let (_, rest) = whole.split_once("/* ").expect("a count");
        let shown: u64 = rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        assert!(shown >= counts[1] - 1 && shown < counts[2], "{whole} {counts:?}");
        // The kernel writes a version over the one that it does not know.
        t.one("capget({version=0x12345678 ");
        if lab::is_root() && user != User::Nobody {
            t.one("permitted_high=1<<CAP_MAC_OVERRIDE|1<<CAP_MAC_ADMIN|");
        }
    });
}

#[test]
fn more_than_a_backend_captures_is_said() {
    each_backend(|user| {
        let Some(program) = lab::program("huge_iov") else { return };
        let most = if user.backend() == "kernel" { 4000 } else { 60000 };
        for (asked, said) in [(most, false), (most + 1, true)] {
            let t = trace(user, &["-e", "write", "-s", &asked.to_string()], &[&program]);
            let line = format!("-s {asked}: the {} backend captures at most {most} bytes", user.backend());
            assert_eq!(t.outcome.stderr.contains(&line), said, "{}", t.outcome.stderr);
            assert!(t.one(" = 67108864").text.len() >= most, "{asked}");
        }
    });
}
