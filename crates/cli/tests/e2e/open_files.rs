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
    assert!(head.contains(" 16 still open, from 3 places"), "{text}");
    let number = |word: &str| -> u64 {
        let before = head.split(word).next().and_then(|t| t.split(", ").last()).unwrap_or_default();
        before.trim().parse().expect("a number")
    };
    assert_eq!(number(" opened"), number(" closed") + 16, "{head}");
    for (place, (n, call, function)) in places.iter().zip([
        ("12 open, the oldest for ", "openat(AT_FDCWD, \"/dev/zero\", O_RDONLY)", "(leak)"),
        ("3 open, the oldest for ", "pipe2(", "(ends)"),
        ("1 open, for ", "socket(AF_UNIX, SOCK_STREAM, 0)", "(main)"),
    ]) {
        assert!(place.starts_with(n) && place.contains(call), "{place}");
        assert!(!stacks || place.contains(function), "{place}");
    }
    assert_eq!(places.len(), 3, "{text}");
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
