//! Time in which threads were blocked, as a table: the program's functions, what they were blocked in, and who ended it.
//!
//! ```text
//!  self% total%  self total module function      blocked in      woken by
//! ------ ------ ----- ----- ------ ------------- --------------- --------------
//! 99.60% 99.60% 155ms 155ms shop   ask_the_store nanosleep       -
//! ```
//!
//! A row is a function of the program's own: below it, in the system's libraries and in the kernel, every blocked thread looks alike. What it
//! has called there, and the thread that has ended most of the time, with its own innermost function, are columns.

use super::Frame;
use super::functions::{Key, Sort};
use super::name::{self, base, percent};
use super::stacks::Stacks;
use super::words::{ascii, in_all, module, rest};
use crate::table::{Align, Table as Columns};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// The frame between a stack and that of the thread that has ended its wait.
pub const WAKER: &str = "-- waker --";
/// The frame between those of the kernel and those of a thread that did not run, where threads that do are shown too.
pub const BLOCKED: &str = "[blocked]";
/// The longest names of the last columns, in characters.
const MOST: usize = 40;

/// What is known of a function.
#[derive(Default)]
struct Row {
    own: u64,
    total: u64,
    reasons: HashMap<String, u64>,
    wakers: HashMap<String, u64>,
}

/// Whether a frame is of the kernel's or of a library of the system's.
fn is_of_the_system(f: &Frame<'_>) -> bool {
    let library = base(f.module).contains(".so") && ["/lib", "/usr/lib"].iter().any(|dir| f.module.starts_with(dir));
    f.kernel || library || f.module.starts_with('[')
}

/// The innermost frame of the program's own, of frames that begin with the innermost one; the innermost of a process where none is.
fn own(frames: &[Frame<'_>]) -> usize {
    let is_known = |f: &Frame<'_>| !f.function.is_empty() || !f.module.is_empty();
    let is_own = |f: &Frame<'_>| is_known(f) && !is_of_the_system(f);
    let user = || frames.iter().position(|f| !f.kernel);
    frames.iter().position(is_own).or_else(user).unwrap_or(0)
}

/// What a function has called to be blocked: the name of the next frame, a system call without its prefix.
fn reason(f: &Frame<'_>) -> String {
    let name = name::function(f);
    let plain = name.strip_prefix("__x64_sys_").or_else(|| name.strip_prefix("__se_sys_")).unwrap_or(&name);
    ascii(plain)
}

/// The function of the program's own in which a thread has woken another one, behind its name.
fn waker(frames: &[Frame<'_>]) -> Option<String> {
    // From the thread's name inwards: the last one is where it was.
    let (thread, stack) = frames.split_first()?;
    let comm = ascii(name::function(thread).trim_matches(['[', ']']));
    let inward: Vec<Frame<'_>> = stack.iter().rev().copied().collect();
    Some(match inward.get(own(&inward)) {
        Some(f) if !f.kernel => format!("{comm}: {}", ascii(&name::function(f))),
        _ => comm,
    })
}

/// Appends the table, of at most this many rows.
pub fn write(stacks: &Stacks, sort: Sort, most_rows: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(in_all(stacks).as_bytes());
    out.push(b'\n');
    let mut rows: HashMap<Key<'_>, Row> = HashMap::new();
    let mut has_wakers = false;
    for e in stacks.entries() {
        let weight = e.tally.weight;
        let all: Vec<Frame<'_>> = stacks.frames_of(e.stack).iter().map(|id| stacks.frame_at(*id)).collect();
        let marker = all.iter().rposition(|f| f.function == WAKER && f.module.is_empty());
        let blocked = marker.map_or(&all[..], |at| all.get(at + 1..).unwrap_or_default());
        let at = own(blocked);
        let mut seen = HashSet::new();
        for f in blocked.get(at..).unwrap_or_default() {
            let key = Key::of(f);
            let row = rows.entry(key).or_default();
            if seen.is_empty() {
                row.own = row.own.saturating_add(weight);
                if let Some(inner) = at.checked_sub(1).and_then(|inner| blocked.get(inner)) {
                    *row.reasons.entry(reason(inner)).or_default() += weight;
                }
                if let Some(by) = marker.and_then(|at| waker(all.get(..at)?)) {
                    has_wakers = true;
                    *row.wakers.entry(by).or_default() += weight;
                }
            }
            if seen.insert(key) {
                row.total = row.total.saturating_add(weight);
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    out.push(b'\n');
    let mut rows: Vec<(Key<'_>, Row)> = rows.into_iter().collect();
    rows.sort_by_key(|(key, r)| match sort {
        Sort::Own => (Reverse((r.own, r.total)), *key),
        Sort::Total => (Reverse((r.total, r.own)), *key),
    });
    let whole = stacks.kept();
    let right = ["self%", "total%", "self", "total"].map(|h| (h, Align::Right));
    let left = ["module", "function", "blocked in"].map(|h| (h, Align::Left));
    let last = has_wakers.then_some(("woken by", Align::Left));
    let mut columns = Columns::new(right.into_iter().chain(left).chain(last));
    let shown = rows.len().min(most_rows);
    for (key, row) in rows.iter().take(shown) {
        let numbers = [percent(row.own, whole), percent(row.total, whole)].into_iter();
        let weights = [row.own, row.total].map(|w| stacks.unit().short(w));
        let names = [module(key), ascii(&name::function(&key.frame())), most(&row.reasons)];
        let names = names.map(|n| name::shortened(&n, MOST).into_owned());
        let by = has_wakers.then(|| name::shortened(&most(&row.wakers), MOST).into_owned());
        columns.row(numbers.chain(weights).chain(names).chain(by).collect());
    }
    columns.write(out);
    rest(rows.len() - shown, out);
}

/// The heaviest of several names, and how many more there are.
fn most(names: &HashMap<String, u64>) -> String {
    let heaviest = names.iter().max_by_key(|(name, weight)| (**weight, Reverse((*name).clone())));
    match (heaviest, names.len()) {
        (None, _) => "-".into(),
        (Some((name, _)), 1) => name.clone(),
        (Some((name, _)), n) => format!("{name} (+{})", n - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FrameId, Labels};
    use super::*;

    /// Function, module, and whether it is of the kernel.
    type Made = (&'static str, &'static str, bool);

    fn stacks(all: &[(&[Made], u64)]) -> Stacks {
        let mut s = Stacks::of_blocked_time();
        for (frames, weight) in all {
            let ids: Vec<FrameId> = frames
                .iter()
                .map(|(function, module, kernel)| {
                    s.frame(&Frame { function, module, kernel: *kernel, ..Frame::default() })
                })
                .collect();
            let stack = s.stack(&ids);
            let who = s.labels(Labels { pid: 1, tid: 1, comm: "app" });
            s.add(stack, who, *weight, 5);
        }
        s
    }

    const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";

    #[test]
    fn rows_are_the_program_s_own_functions() {
        let read: &[_] = &[
            ("schedule", "", true),
            ("__x64_sys_read", "", true),
            ("read", LIBC, false),
            ("get", "/app", false),
            ("main", "/app", false),
            ("start", LIBC, false),
        ];
        let lock: &[_] = &[
            ("futex_wait", "", true),
            ("pthread_mutex_lock", LIBC, false),
            ("get", "/app", false),
            ("main", "/app", false),
        ];
        let raw: &[_] = &[("schedule", "", true), ("__x64_sys_read", "", true), ("bare", "/app", false)];
        let s = stacks(&[(read, 6_000_000), (lock, 3_000_000), (raw, 1_000_000)]);
        let mut out = Vec::new();
        write(&s, Sort::Own, 100, &mut out);
        let expect = expect_test::expect![[r#"
            10.0ms in 3 events, of 3 stacks

             self% total%   self  total module    function blocked in
            ------ ------ ------ ------ --------- -------- ----------
            90.00% 90.00% 9.00ms 9.00ms app       get      read (+1)
            10.00% 10.00% 1.00ms 1.00ms app       bare     read
             0.00% 90.00%    0ns 9.00ms app       main     -
             0.00% 60.00%    0ns 6.00ms libc.so.6 start    -
        "#]];
        expect.assert_eq(&String::from_utf8_lossy(&out));
    }

    #[test]
    fn who_woke_it_is_a_column() {
        let woken: &[_] = &[
            ("", "[worker]", false),
            ("run", "/app", false),
            ("post", "/app", false),
            ("sem_post", LIBC, false),
            (WAKER, "", false),
            ("futex_wait", "", true),
            ("sem_wait", LIBC, false),
            ("take", "/app", false),
        ];
        let s = stacks(&[(woken, 2_000_000)]);
        let mut out = Vec::new();
        write(&s, Sort::Own, 100, &mut out);
        let expect = expect_test::expect![[r#"
            2.00ms in 1 event, of 1 stack

              self%  total%   self  total module function blocked in woken by
            ------- ------- ------ ------ ------ -------- ---------- ------------
            100.00% 100.00% 2.00ms 2.00ms app    take     sem_wait   worker: post
        "#]];
        expect.assert_eq(&String::from_utf8_lossy(&out));
    }
}
