//! `--capture`: what of memory goes into a trace.

use crate::lab::{self, User, each_backend};

const SECRET: &str = "the-secret-of-the-test";

fn trace(user: User, capture: &[&str]) -> String {
    let script = format!("cat /etc/hostname > /dev/null; echo {SECRET} > /dev/null; ls /proc/self > /dev/null");
    let common = ["trace", "-s", "4000", "-v", "--backend", user.backend()];
    let words = [&common[..], capture, &["sh", "-c", &script]].concat();
    let out = lab::run(&mut lab::trapline(user, &words));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    out.stderr
}

#[test]
fn buffers_and_strings_can_be_kept_out() {
    each_backend(|user| {
        let all = trace(user, &["--capture", "all"]);
        assert!(all.contains(&format!("\"{SECRET}\\n\"")) && all.contains("\"/etc/hostname\""), "{all}");
        let strings = trace(user, &["--capture", "strings"]);
        assert!(!strings.contains(&format!("\"{SECRET}\\n\"")) && strings.contains("\"/etc/hostname\""), "{strings}");
        let none = trace(user, &["--capture=none"]);
        assert!(!none.contains(SECRET) && !none.contains("hostname") && none.contains("openat(AT_FDCWD, 0x"), "{none}");
        // Structs stay.
        assert!(none.contains("st_mode="), "{none}");
        let some = trace(user, &["--capture", "write,execve=none"]);
        assert!(!some.contains(SECRET) && some.contains("\"/etc/hostname\""), "{some}");
        let last = trace(user, &["--capture", "none", "--capture", "openat=all"]);
        assert!(!last.contains(SECRET) && last.contains("\"/etc/hostname\""), "{last}");
    });
}

/// The secret is an argument of the command.
#[test]
fn the_command_line_is_kept_out_with_strings() {
    for (level, is_kept) in [("strings", true), ("none", false)] {
        let dir = lab::scratch().join(level);
        let path = dir.to_str().expect("UTF-8");
        let args = ["record", "-q", "-e", "exit_group", "--capture", level, "-o", path, "echo", SECRET];
        assert_eq!(lab::run(&mut lab::trapline(User::Me, &args)).code(), 0);
        let metadata = std::fs::read_to_string(dir.join("metadata")).expect("metadata");
        assert_eq!(metadata.contains(SECRET), is_kept, "{level}");
    }
}

#[test]
fn levels_are_checked() {
    for (word, why) in [("some", "not a level"), ("reed=none", "did you mean"), ("read=", "not a level")] {
        let out = lab::run(&mut lab::trapline(User::Me, &["trace", "--capture", word, "true"]));
        assert!(out.code() == 2 && out.stderr.contains(why) && out.stderr.lines().count() == 1, "{}", out.stderr);
    }
}
