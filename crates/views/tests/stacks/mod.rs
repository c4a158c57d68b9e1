//! Profiles for tests, written as folded stacks.

#![allow(dead_code, reason = "no test uses all of them")]

use views::profile::{Frame, Labels, Stacks, Unit};

/// Adds stacks: `WEIGHT comm outer inner`, a line each. A frame is `[kig:]function[@module]`, its marks first: kernel, inlined, guessed.
pub fn add(s: &mut Stacks, text: &str) {
    for (n, line) in text.lines().map(str::trim).filter(|l| !l.is_empty()).enumerate() {
        let mut words = line.split_whitespace();
        let weight = words.next().and_then(|w| w.parse().ok()).expect("a weight");
        let comm = words.next().expect("a command name");
        let labels = s.labels(Labels { pid: 100, tid: 100 + n as u32 % 2, comm });
        let mut frames: Vec<_> = words.map(|w| s.frame(&frame(w))).collect();
        frames.reverse();
        let stack = s.stack(&frames);
        s.add(stack, labels, weight, 1_000_000 * n as u64);
    }
}

fn frame(word: &str) -> Frame<'_> {
    let (marks, name) =
        word.split_once(':').filter(|(m, _)| m.chars().all(|c| "kig".contains(c))).unwrap_or(("", word));
    let (function, module) = name.split_once('@').unwrap_or((name, ""));
    let file = if module.ends_with("app") { "src/app.c" } else { "" };
    Frame {
        function,
        module,
        file,
        line: if file.is_empty() { 0 } else { 10 + function.len() as u32 },
        inlined: marks.contains('i'),
        guessed: marks.contains('g'),
        kernel: marks.contains('k'),
    }
}

/// A profile with every kind of frame.
pub fn usual() -> Stacks {
    let mut s = Stacks::new(Unit::Samples { period: 10_101_010 });
    add(&mut s, USUAL);
    s
}

/// A profile of the same program that does less of one thing and more of others.
pub fn later() -> Stacks {
    let mut s = Stacks::new(Unit::Samples { period: 10_101_010 });
    add(&mut s, LATER);
    s
}

const USUAL: &str = "
    400 app _start@/usr/bin/app main@/usr/bin/app parse@/usr/bin/app i:hash_insert@/usr/bin/app
    150 app _start@/usr/bin/app main@/usr/bin/app parse@/usr/bin/app malloc@/usr/lib/libc.so.6
    200 app _start@/usr/bin/app main@/usr/bin/app render@/usr/bin/app
    120 app _start@/usr/bin/app main@/usr/bin/app write@/usr/lib/libc.so.6 k:do_syscall_64 k:ksys_write k:vfs_write
    30 app _start@/usr/bin/app g:@/usr/lib/libz.so.1 parse@/usr/bin/app
    90 worker start_thread@/usr/lib/libc.so.6 std::vector<int,std::allocator<int>>::push_back(int&&)@/usr/bin/app
    10 worker @
";

const LATER: &str = "
    100 app _start@/usr/bin/app main@/usr/bin/app parse@/usr/bin/app i:hash_insert@/usr/bin/app
    300 app _start@/usr/bin/app main@/usr/bin/app parse@/usr/bin/app malloc@/usr/lib/libc.so.6
    400 app _start@/usr/bin/app main@/usr/bin/app render@/usr/bin/app
    120 app _start@/usr/bin/app main@/usr/bin/app render@/usr/bin/app draw_text@/usr/bin/app
    120 app _start@/usr/bin/app main@/usr/bin/app write@/usr/lib/libc.so.6 k:do_syscall_64 k:ksys_write k:vfs_write
    90 worker start_thread@/usr/lib/libc.so.6 std::vector<int,std::allocator<int>>::push_back(int&&)@/usr/bin/app
";
