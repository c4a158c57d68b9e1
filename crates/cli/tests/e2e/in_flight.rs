//! Calls that take long: one notice after 200 ms, then the whole line.

use crate::lab::{self, each_backend};
use crate::trace::trace;

#[test]
fn a_long_call_gets_one_notice_and_then_its_whole_line() {
    each_backend(|user| {
        for options in [&["-e", "read,/nanosleep/"][..], &["--no-seccomp"]] {
            // cat's read is answered only after its notice must have been written.
            let t = trace(user, options, &["sh", "-c", "sleep 0.7 | cat"]);
            assert_eq!(t.outcome.code(), 0);
            let notice = t
                .lines
                .iter()
                .position(|l| l.text == "read(0,  <in flight>")
                .unwrap_or_else(|| panic!("no notice: {}", t.text()));
            let tid = t.lines[notice].tid;
            assert_eq!(
                t.lines.iter().filter(|l| l.tid == tid && l.text.contains("in flight")).count(),
                1,
                "{}",
                t.text()
            );
            let end = t.lines[notice..].iter().find(|l| l.tid == tid && l.is("read")).expect("the end");
            assert!(end.text.starts_with("read(0, \"\", ") && end.result() == "0", "{}", end.text);
            t.lacks("resumed");
            t.lacks("unfinished");
            assert!(
                t.lines.iter().any(|l| l.text.contains("nanosleep(") && l.text.ends_with(" <in flight>")),
                "{}",
                t.text()
            );
        }
    });
}

#[test]
fn a_short_call_gets_none() {
    each_backend(|user| {
        let Some(program) = lab::program("bad_number") else { return };
        let t = trace(user, &[], &[&program]);
        t.lacks("in flight");
    });
}

#[test]
fn an_unselected_long_call_gets_none() {
    each_backend(|user| {
        for options in [&["-e", "openat"][..], &["--no-seccomp", "-e", "openat"], &["-z", "-e", "/nanosleep/"]] {
            let t = trace(user, options, &["sleep", "0.5"]);
            assert_eq!(t.outcome.code(), 0);
            t.lacks("in flight");
        }
    });
}

/// What is shown of an execve: that of one turn of `execs_itself`, addresses alone, or nothing.
fn is_of_one_turn(line: &str) -> bool {
    let Some((_, rest)) = line.split_once("execve(") else { return true };
    let is_address = |word: &str| word.trim().starts_with("0x");
    if rest.starts_with("?)") || rest.split(',').take(3).all(is_address) {
        return true;
    }
    let between = |before: &str, end: char| Some(rest.split_once(before)?.1.split_once(end)?.0.to_string());
    let number = |before: &str| between(before, '"')?.parse::<i32>().ok();
    let before =
        rest.split_once("\", \"argument-of-").and_then(|(before, _)| before.rsplit_once('"')?.1.parse::<i32>().ok());
    let Some((turn, next)) = number("argument-of-").zip(before) else { return false };
    let filler = char::from(b'a' + (turn % 26) as u8);
    let has_filler = between(&format!("argument-of-{turn}\", \""), '"').is_some_and(|f| f.chars().all(|c| c == filler));
    // Without -v the environment is counted only.
    next == turn - 1 && has_filler && number("TURN=").is_none_or(|t| t == turn)
}

#[test]
fn an_execve_in_flight_shows_its_own_arguments_or_none() {
    lab::each_backend(|user| {
        if !lab::may_attach(user) {
            return;
        }
        let Some(program) = lab::program("execs_itself") else { return };
        let mut random = testkit::Random::new(26);
        let (mut seen, mut attached) = (0, 0);
        // Slow: the moment is chance, within an execve in one of four attaches.
        for round in 0..20 {
            let target = lab::start(&mut lab::as_user(user, &[&program, "100000"]));
            let pid = target.pid().to_string();
            std::thread::sleep(std::time::Duration::from_micros(10_000 + random.below(20_000)));
            let more: &[&str] = if round % 2 == 0 { &[] } else { &["-v"] };
            let options = [&["-e", "execve", "-p", &pid, "--duration", "0.05"], more].concat();
            let (args, file) = crate::trace::arguments(&options, &[]);
            let out = lab::run(&mut lab::trapline(user, &args));
            lab::kill("KILL", target.pid().into());
            target.end();
            // One thread may be about to take another's place, and a program that has just begun may not be looked at yet.
            if out.code() != 0 {
                assert!(
                    ["cannot attach", "not permitted"].iter().any(|why| out.stderr.contains(why)),
                    "{}",
                    out.stderr
                );
                continue;
            }
            attached += 1;
            for line in crate::trace::lines_of(&file) {
                assert!(is_of_one_turn(&line.text), "{user:?}: {}", line.text);
                seen += usize::from(line.text.contains("argument-of-"));
            }
        }
        assert!(attached > 10 && seen > attached, "{user:?}: {attached} attached, {seen} calls");
    });
}
