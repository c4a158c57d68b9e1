//! `--as open`: descriptors that were opened and not closed, by stack.

use crate::lab::{self, User};

/// The blocks of the view, and what it says first.
fn view(text: &str) -> (String, Vec<String>) {
    let mut blocks = text.split("\n\n").map(str::to_string);
    (blocks.next().unwrap_or_default(), blocks.collect())
}

#[track_caller]
fn twelve_files_three_ends_and_a_socket(text: &str, stacks: bool) {
    let (head, places) = view(text);
    assert!(head.contains(" 16 still open, from "), "{text}");
    let number = |word: &str| -> u64 {
        let before = head.split(word).next().and_then(|t| t.split(", ").last()).unwrap_or_default();
        before.trim().parse().expect("a number")
    };
    assert_eq!(number(" opened"), number(" closed") + 16, "{head}");
    // On a busy machine the first calls of a program may come before its unwind tables are there: such a stack is a place of its own.
    for (n, call, function) in [
        (12, "openat(AT_FDCWD, \"/dev/", "(leak)"),
        (3, "pipe2(", "(ends)"),
        (1, "socket(AF_UNIX, SOCK_STREAM, 0)", "(main)"),
    ] {
        let of_call: Vec<&String> = places.iter().filter(|p| p.contains(call)).collect();
        let open = |p: &&String| p.split(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("a number");
        assert_eq!(of_call.iter().map(open).sum::<u64>(), n, "{text}");
        assert!(!stacks || of_call.iter().any(|p| p.contains(function)), "{text}");
    }
}

#[test]
fn what_is_left_open_is_shown_by_the_stack_that_opened_it() {
    let Some(program) = testkit::compile("gcc", "open_files", "open_files.c", &["-g", "-O1"]) else { return };
    lab::each_backend(|user| {
        let out = lab::run(&mut lab::trapline(user, &["trace", "--as", "open", "--", &program]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        twelve_files_three_ends_and_a_socket(&out.stderr, true);
    });
}

#[test]
fn a_recording_shows_it_with_the_stacks_that_it_has() {
    let Some(program) = testkit::compile("gcc", "open_files", "open_files.c", &["-g", "-O1"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return;
    }
    for (probe, stacks) in [("%desc,%network,close_range ustack", true), ("%desc,%network", false)] {
        let dir = lab::scratch().join("trace");
        let dir = dir.to_str().expect("UTF-8");
        let out = lab::run(&mut lab::trapline(User::Me, &["record", "-e", probe, "-o", dir, "--", &program]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let out = lab::run(&mut lab::trapline(User::Me, &["report", dir, "--as", "open"]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        if stacks {
            twelve_files_three_ends_and_a_socket(&out.out(), stacks);
        } else {
            // The copy that close_range closes.
            assert!(out.out().contains(" 17 still open, from 4 places"), "{}", out.out());
        }
    }
}
