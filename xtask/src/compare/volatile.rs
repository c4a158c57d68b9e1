//! Which values differ from run to run, by call and field: the tables for `normal`.

use super::parse::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

/// Calls with pids among their arguments or as result. In others a number that happens to be a pid stays a number.
const WITH_PIDS: &[&str] = &[
    "clone",
    "clone3",
    "fork",
    "vfork",
    "getpid",
    "gettid",
    "getppid",
    "getpgid",
    "getpgrp",
    "getsid",
    "setpgid",
    "setsid",
    "set_tid_address",
    "kill",
    "tkill",
    "tgkill",
    "wait4",
    "waitid",
    "futex",
    "prlimit64",
    "ptrace",
    "kcmp",
    "capget",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "pidfd_open",
    "process_vm_readv",
    "process_vm_writev",
    "getpriority",
    "setpriority",
    "get_robust_list",
    "sched_getaffinity",
    "sched_setaffinity",
    "sched_getparam",
    "sched_setparam",
    "sched_getscheduler",
    "sched_setscheduler",
    "sched_getattr",
    "sched_setattr",
    "sched_rr_get_interval",
    "ioprio_get",
    "ioprio_set",
    "rt_sigreturn",
    "+++ superseded",
];

const PID_FIELDS: &[&str] = &["si_pid", "pid", "l_pid", "nl_pid", "parent_tid", "child_tid", "shm_cpid", "shm_lpid"];

pub fn has_pids(call: &str, field: &str) -> bool {
    PID_FIELDS.contains(&field) || (field.is_empty() && WITH_PIDS.contains(&call))
}

/// Calls all of whose times come from a clock.
pub fn shows_clock(call: &str) -> bool {
    const CLOCKS: &[&str] = &[
        "clock_gettime",
        "gettimeofday",
        "getrusage",
        "wait4",
        "waitid",
        "adjtimex",
        "clock_adjtime",
        "getitimer",
        "timer_gettime",
        "timerfd_gettime",
    ];
    CLOCKS.contains(&call)
}

/// Calls whose first time is asked for and whose second is what remains of it.
pub fn writes_rest(call: &str) -> bool {
    matches!(call, "nanosleep" | "clock_nanosleep")
}

/// The placeholder for a value that differs in each run.
pub fn field(field: &str, after: &str, is_address: impl Fn(u64) -> bool) -> Option<&'static str> {
    match field {
        "uptime" | "loads" | "freeram" | "sharedram" | "bufferram" | "freeswap" | "procs" => Some("VARIES"),
        "f_bfree" | "f_bavail" | "f_ffree" => Some("VARIES"),
        "st_ino" | "stx_ino" | "d_ino" => Some("INODE"),
        // The lower half of a pointer: `{u32=…, u64=…}`.
        "u32" => {
            let whole = after.strip_prefix(", u64=")?;
            let digits = whole.find(|c: char| !c.is_ascii_digit()).unwrap_or(whole.len());
            whole[..digits].parse().is_ok_and(is_address).then_some("HALF")
        }
        _ => None,
    }
}

/// System V numbers its objects in the order of their creation since the boot: results of these, first arguments of those.
pub fn ipc_id(call: &str, in_result: bool, first: bool) -> Option<&'static str> {
    const USE: &[&str] = &["shmat", "shmctl", "semop", "semtimedop", "semctl", "msgsnd", "msgrcv", "msgctl"];
    let made = in_result && matches!(call, "shmget" | "semget" | "msgget");
    let used = !in_result && first && USE.contains(&call);
    (made || used).then_some("IPC")
}

/// The reads from /dev/urandom and /dev/random, as places among the entries.
pub fn random_reads(entries: &[Entry]) -> HashSet<usize> {
    let mut sources: HashSet<(u32, &str)> = HashSet::new();
    let mut reads = HashSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let opened = (entry.pid, entry.result.as_str());
        let used = (entry.pid, entry.args.split(',').next().unwrap_or_default());
        match entry.name.as_str() {
            "open" | "openat" if entry.args.contains("\"/dev/urandom\"") || entry.args.contains("\"/dev/random\"") => {
                sources.insert(opened);
            }
            "close" => drop(sources.remove(&used)),
            "read" if sources.contains(&used) => drop(reads.insert(index)),
            _ => {}
        }
    }
    reads
}

/// The ports that the kernel chose.
pub fn ports(entries: &[Entry]) -> HashSet<u64> {
    const EPHEMERAL: u64 = 32768;
    let found = entries.iter().flat_map(|entry| entry.args.split("htons(").skip(1));
    found.filter_map(|text| text.split(')').next()?.parse().ok()).filter(|&port| port >= EPHEMERAL).collect()
}

/// The heaps: from the first result of brk in a process to its last. Those of programs that are not position-independent
/// begin at low, random addresses.
pub fn heaps(entries: &[Entry]) -> Vec<RangeInclusive<u64>> {
    let mut heaps: Vec<RangeInclusive<u64>> = Vec::new();
    let mut of_thread: HashMap<u32, usize> = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.name == "brk") {
        let Some(Ok(end)) = entry.result.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) else {
            continue;
        };
        let place = *of_thread.entry(entry.pid).or_insert(heaps.len());
        let grows = heaps.get(place).is_some_and(|heap| end >= *heap.start() && end - heap.start() < 1 << 30);
        if grows {
            let start = *heaps[place].start();
            heaps[place] = start..=end.max(*heaps[place].end());
        } else {
            // An exec began a new heap.
            of_thread.insert(entry.pid, heaps.len());
            heaps.push(end..=end);
        }
    }
    heaps
}

/// A string literal without random bytes, temporary names, known pids and ports, inode numbers. `cut` says that `...`
/// follows it.
pub fn string(literal: &str, cut: bool, pids: &HashMap<u64, String>, ports: &HashSet<u64>) -> String {
    numbers_in_string(&temporary_names(literal, cut), pids, ports)
}

/// Names that programs make of a fixed beginning and so many random characters.
const TEMPORARY: &[(&str, usize)] = &[
    ("/tmp.", 10),
    ("/cc", 6),
    ("/sort", 6),
    ("sh-thd.", 6),
    ("tmp_obj_", 6),
    ("tmp_pack_", 6),
    ("tmp_idx_", 6),
    ("tmp_rev_", 6),
    ("tmp_mtimes_", 6),
    ("/tmp/tmp", 8),
    ("/tmpf", 6),
    (".git/t", 6),
];

fn temporary_names(literal: &str, cut: bool) -> String {
    let mut text = literal.to_string();
    for &(start, random) in TEMPORARY {
        let mut from = 0;
        while let Some(at) = text[from..].find(start).map(|at| from + at + start.len()) {
            let is_random = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_';
            let length = text.as_bytes()[at..].iter().take_while(|c| is_random(c)).count();
            let mixed = text.as_bytes()[at..at + length].iter().any(|c| !c.is_ascii_lowercase());
            let cut_off = cut && length < random && at + length + 1 == text.len();
            // Ordinary words have no digits and capitals.
            if mixed && (length == random || cut_off) {
                text.replace_range(at..at + length, "XXXXXX");
            }
            from = at;
        }
    }
    text
}

fn numbers_in_string(literal: &str, pids: &HashMap<u64, String>, ports: &HashSet<u64>) -> String {
    let mut out = String::with_capacity(literal.len());
    let mut rest = literal;
    while let Some(first) = rest.chars().next() {
        let mut end = first.len_utf8();
        if first == '\\' {
            // An escape: its digits are a byte, not a number.
            let octal = rest[1..].bytes().take(3).take_while(|c| (b'0'..=b'7').contains(c)).count();
            let one = rest[1..].chars().next().map_or(0, char::len_utf8);
            end = 1 + octal.max(one);
            out.push_str(&rest[..end]);
        } else if first.is_ascii_digit() {
            end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            out.push_str(&number_in_string(&rest[..end], &out, pids, ports));
        } else {
            out.push(first);
        }
        rest = &rest[end..];
    }
    out
}

fn number_in_string(digits: &str, before: &str, pids: &HashMap<u64, String>, ports: &HashSet<u64>) -> String {
    let Ok(value) = digits.parse::<u64>() else { return digits.to_string() };
    let path = before.ends_with("/proc/") || before.ends_with("/task/");
    if before.ends_with("socket:[") || before.ends_with("pipe:[") {
        return "INODE".to_string();
    }
    // In a young container pids are as small as any number; there only paths are certain.
    match pids.get(&value) {
        Some(pid) if path || value >= 1000 => pid.clone(),
        _ if ports.contains(&value) => "PORT".to_string(),
        _ => digits.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{numbers_in_string, temporary_names};
    use std::collections::{HashMap, HashSet};

    #[test]
    fn temporary_names_go_and_others_stay() {
        assert_eq!(temporary_names("\"/tmp/ccAb3dEf.s\"", false), "\"/tmp/ccXXXXXX.s\"");
        assert_eq!(temporary_names("\"/tmp/tmp.abcdeFGH12\"", false), "\"/tmp/tmp.XXXXXX\"");
        assert_eq!(temporary_names("\"/usr/lib/ccache\"", false), "\"/usr/lib/ccache\"");
        assert_eq!(temporary_names("\"/etc/sorted\"", false), "\"/etc/sorted\"");
        assert_eq!(temporary_names("\"-o /tmp/ccAb\"", true), "\"-o /tmp/ccXXXXXX\"");
    }

    #[test]
    fn numbers_of_known_kinds() {
        let pids = HashMap::from([(4321, "PID#0".to_string()), (7, "PID#0.1".to_string())]);
        let replaced = |text| numbers_in_string(text, &pids, &HashSet::from([40000]));
        assert_eq!(replaced("\"/proc/7/stat 7 4321 \\4321\""), "\"/proc/PID#0.1/stat 7 PID#0 \\4321\"");
        assert_eq!(replaced("\"127.0.0.1:40000\""), "\"127.0.0.1:PORT\"");
    }
}
