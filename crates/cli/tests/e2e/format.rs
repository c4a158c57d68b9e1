//! How lines look under each option.

use crate::lab::{self, each_backend};
use crate::trace::{Trace, on_stderr, trace};

/// Digits become 9.
fn shape(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect()
}

fn cat(user: lab::User, options: &[&str]) -> Trace {
    let t = trace(user, options, &["cat", "/etc/passwd"]);
    assert_eq!(t.outcome.code(), 0, "{}", t.text());
    t
}

#[test]
fn stamps() {
    each_backend(|user| {
        for (option, expected) in [("-t", "99:99:99 "), ("-tt", "99:99:99.999999 "), ("-ttt", "9999999999.999999 ")] {
            let t = cat(user, &[option]);
            for l in &t.lines {
                assert!(shape(&l.text).starts_with(expected), "{option} {}", l.text);
            }
        }
        let t = cat(user, &["-ttt"]);
        let times: Vec<f64> = t.lines.iter().filter_map(|l| l.text.split(' ').next()?.parse().ok()).collect();
        assert!(times.len() == t.lines.len() && times.is_sorted());
        let t = cat(user, &["-r"]);
        assert!(t.lines.iter().all(|l| shape(&l.text).starts_with("9.999999 ")), "{}", t.text());
        assert!(t.lines[0].text.starts_with("0.000000 execve("), "{}", t.lines[0].text);
    });
}

#[test]
fn durations() {
    each_backend(|user| {
        let t = cat(user, &["-T"]);
        for l in t.lines.iter().filter(|l| l.is_call() && !l.text.ends_with("= ?")) {
            assert!(shape(&l.text).ends_with(" <9.999999>"), "{}", l.text);
        }
        let t = trace(user, &["-T", "-e", "/nanosleep/"], &["sleep", "0.3"]);
        let sleep = t.lines.iter().rev().find(|l| l.is_call()).expect("a sleep");
        let time = sleep.text.rsplit_once('<').and_then(|(_, t)| t.trim_end_matches('>').parse::<f64>().ok());
        assert!(time.is_some_and(|t| t >= 0.3), "{}", sleep.text);
    });
}

#[test]
fn strings() {
    each_backend(|user| {
        let read = |options: &[&str]| {
            let t = trace(
                user,
                &[&["-e", "write"], options].concat(),
                &["printf", "%s", "0123456789\u{e9}\n0123456789012345678901234567890"],
            );
            let line = t.calls("write")[0].text.clone();
            line.split(" = ").next().unwrap_or_default().trim_end().to_string()
        };
        assert_eq!(read(&[]), "write(1, \"0123456789\\303\\251\\n0123456789012345678\"..., 44)");
        assert_eq!(read(&["-s", "5"]), "write(1, \"01234\"..., 44)");
        assert_eq!(read(&["-s", "0"]), "write(1, \"\"..., 44)");
        assert_eq!(read(&["-s", "44"]), "write(1, \"0123456789\\303\\251\\n0123456789012345678901234567890\", 44)");
        assert_eq!(read(&["-s", "4", "-x"]), "write(1, \"0123\"..., 44)");
        assert_eq!(read(&["-s", "4", "-xx"]), "write(1, \"\\x30\\x31\\x32\\x33\"..., 44)");
        assert!(read(&["-s", "12", "-x"]).contains("\\x30\\x31") && read(&["-s", "12", "-x"]).contains("\\xc3\\xa9"));
        // Paths are never cut.
        let t = trace(user, &["-s", "1", "-e", "openat"], &["cat", "/etc/passwd"]);
        t.has("\"/etc/passwd\"");
    });
}

#[test]
fn all_variables_of_the_environment() {
    each_backend(|user| {
        let variables: Vec<String> = (0..60).map(|n| format!("NUMBER{n}=all_of_it_is_shown")).collect();
        let set = variables.iter().flat_map(|v| ["-E", v]);
        let t = trace(user, &["-e", "execve", "-s", "40", "-v"].into_iter().chain(set).collect::<Vec<_>>(), &["true"]);
        let line = &t.one("execve(").text;
        assert!(variables.iter().all(|v| line.contains(v)) && !line.contains(", ...]"), "{line}");
    });
}

#[test]
fn constants() {
    each_backend(|user| {
        let open = |options: &[&str]| {
            let t = cat(user, &[&["-e", "openat"], options].concat());
            t.one("/ld.so.cache\"").text.split(" = ").next().unwrap_or_default().trim_end().to_string()
        };
        assert_eq!(open(&[]), "openat(AT_FDCWD, \"/etc/ld.so.cache\", O_RDONLY|O_CLOEXEC)");
        assert_eq!(open(&["-X", "abbrev"]), open(&[]));
        let raw = open(&["-X", "raw"]);
        assert!(
            raw == "openat(-100, \"/etc/ld.so.cache\", 0x80000)"
                || raw == "openat(0xffffff9c, \"/etc/ld.so.cache\", 0x80000)",
            "{raw}"
        );
        let verbose = open(&["-X", "verbose"]);
        assert!(
            verbose.ends_with("0x80000 /* O_RDONLY|O_CLOEXEC */)") && verbose.contains("/* AT_FDCWD */"),
            "{verbose}"
        );
    });
}

#[test]
fn names_of_descriptors() {
    each_backend(|user| {
        let t = cat(user, &["-y"]);
        t.has("= 3</etc/passwd>");
        t.has("read(3</etc/passwd>, \"root:");
        t.has("close(3</etc/passwd>)");
        t.has("openat(AT_FDCWD<");
        let t = trace(user, &["-yy"], &["sh", "-c", "cat </dev/zero | head -c 1 >/dev/null; exec 5</dev/null"]);
        t.has("</dev/zero<char 1:5>>");
        t.has("</dev/null<char 1:3>>");
        t.has("<pipe:[");
        let Some(program) = lab::program("fds") else { return };
        let t = trace(user, &["-y"], &[&program]);
        // What arrived by SCM_RIGHTS, what was copied, and what the exec closed.
        let received = t.calls("recvmsg")[0];
        assert!(received.text.contains("</dev/null>"), "{}", received.text);
        // 50 is not open before the call, and is after it.
        let dup2 = &t.calls("dup2")[0];
        assert!(dup2.text.contains("</dev/null>, 50)") && dup2.result() == "50</dev/null>", "{}", dup2.text);
        let after: Vec<&str> =
            t.lines.iter().skip_while(|l| !l.text.contains("after-exec")).map(|l| l.text.as_str()).collect();
        let fcntl = |fd: u32| {
            after.iter().find(|l| l.starts_with(&format!("fcntl({fd}"))).copied().unwrap_or_default().to_string()
        };
        assert!(fcntl(50).starts_with("fcntl(50</dev/null>, F_GETFD)"), "{}", fcntl(50));
        for fd in 51..=53 {
            assert!(fcntl(fd).starts_with(&format!("fcntl({fd}, F_GETFD)")), "{}", fcntl(fd));
        }
    });
}

#[test]
fn names_of_sockets() {
    each_backend(|user| {
        let Some(program) = lab::program("families_net") else { return };
        let t = trace(user, &["-y"], &[&program]);
        t.has("<socket:[");
        let t = trace(user, &["-yy"], &[&program]);
        t.has("<TCP");
        t.has("<UNIX");
        let Some(program) = lab::program("fds") else { return };
        let t = trace(user, &["-yy"], &[&program]);
        assert!(t.calls("sendmsg")[0].text.contains("<UNIX-STREAM:["), "{}", t.calls("sendmsg")[0].text);
    });
}

#[test]
fn numbers_and_types() {
    each_backend(|user| {
        let t = cat(user, &["-n", "-e", "openat,read"]);
        assert!(t.lines.iter().any(|l| l.text.starts_with("[ 257] openat(")), "{}", t.text());
        assert!(t.lines.iter().any(|l| l.text.starts_with("[   0] read(3, ")), "{}", t.text());
        let t = cat(user, &["--types", "-e", "openat,read"]);
        t.has("openat(int dfd: AT_FDCWD, const char *filename: \"/etc/passwd\", ");
        t.has(" flags: O_RDONLY");
        t.has("read(int fd: 3, ");
    });
}

#[test]
fn all_fields() {
    each_backend(|user| {
        let short = trace(user, &["-e", "execve,newfstatat"], &["stat", "/etc/passwd"]);
        short.has("vars */)");
        short.has(", ...}");
        let t = trace(user, &["-v", "-s", "200", "-e", "execve,newfstatat"], &["stat", "/etc/passwd"]);
        t.has("\"LC_ALL=C\"");
        t.has("st_mtime=");
        t.has("st_blksize=");
        t.lacks("vars */");
    });
}

#[test]
fn column_of_the_result() {
    each_backend(|user| {
        for (options, column) in [(&[][..], 40), (&["--columns", "60"], 60), (&["--columns", "0"], 0)] {
            let args = [&["-q", "-e", "close"], options, &["true"]].concat();
            let out = on_stderr(user, &args);
            let line = out.stderr.lines().find(|l| l.starts_with("close(3)")).expect("a close");
            assert_eq!(line.find("= "), Some(column.max("close(3) ".len())), "{line}");
        }
    });
}

#[test]
fn command_names() {
    each_backend(|user| {
        let out = on_stderr(user, &["-q", "--decode-pids=comm", "-e", "%process", "sh", "-c", "/bin/true; exit 0"]);
        assert!(out.stderr.lines().any(|l| l.starts_with("[pid ") && l.contains("<sh>] ")), "{}", out.stderr);
        assert!(out.stderr.lines().any(|l| l.starts_with("[pid ") && l.contains("<true>] ")), "{}", out.stderr);
    });
}

#[test]
fn colour() {
    each_backend(|user| {
        let plain = on_stderr(user, &["-q", "-e", "openat", "true"]);
        assert!(!plain.stderr.contains('\u{1b}'));
        let colour = on_stderr(user, &["-q", "--color", "always", "-e", "openat", "true"]);
        assert!(colour.stderr.contains('\u{1b}'));
        let mut bare = String::new();
        let mut rest = colour.stderr.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            bare.push_str(before);
            rest = after.split_once('m').map_or("", |(_, r)| r);
        }
        bare.push_str(rest);
        assert_eq!(bare, plain.stderr);
    });
}
