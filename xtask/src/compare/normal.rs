//! Takes out of the lines what differs between two runs of strace itself: addresses, pids, times, ephemeral ports, random
//! bytes, temporary names. Everything else stays, so that a difference in decoding stays a difference. A value is replaced
//! only where its call or field says that it is of such a kind; the text around it stays.

use super::parse::{Entry, string_end};
use super::{threads, volatile};
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A text without what differs from run to run, and the addresses that were in it.
#[derive(Default)]
pub struct Text {
    pub text: String,
    pub addresses: Vec<u64>,
}

impl Text {
    /// Whether both are equal. The kernel moves whole pages about, so the offset in the page has to agree; in stacks it
    /// moves by 16 bytes.
    pub fn same(&self, other: &Text) -> bool {
        let agree = |(a, b): (&u64, &u64)| {
            let mask = if is_stack(*a) && is_stack(*b) { 0xf } else { 0xfff };
            a & mask == b & mask
        };
        self.text == other.text && self.addresses.iter().zip(&other.addresses).all(agree)
    }
}

/// Where the kernel puts the stacks of main threads, on x86-64 and on aarch64.
fn is_stack(address: u64) -> bool {
    (0x7ffc_0000_0000..1 << 47).contains(&address) || (0xffff_0000_0000..1 << 48).contains(&address)
}

/// Below are position-dependent programs, whose addresses are the same in each run, and no address at all.
const RANDOMIZED: std::ops::Range<u64> = 0x5500_0000_0000..1 << 48;

/// The normal form of an entry.
pub struct Line {
    pub args: Text,
    pub result: Text,
}

/// What was learned from one whole trace.
pub struct Run {
    /// The number of each thread, and words for the pids outside the trace that its calls return.
    pids: HashMap<u64, String>,
    ports: HashSet<u64>,
    heaps: Vec<RangeInclusive<u64>>,
    random_reads: HashSet<usize>,
    now: u64,
}

impl Run {
    pub fn new(entries: &[Entry]) -> Self {
        let numbers = threads::number(entries);
        let mut pids: HashMap<u64, String> =
            numbers.into_iter().map(|(pid, number)| (u64::from(pid), format!("PID#{number}"))).collect();
        for entry in entries {
            // Parent, process group and session of the command are those of the process that started it.
            let pid = entry.result.parse().unwrap_or(0);
            if matches!(entry.name.as_str(), "getppid" | "getpgrp" | "getpgid" | "getsid") && pid != 0 {
                pids.entry(pid).or_insert_with(|| format!("PID#{}", entry.name));
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let (ports, heaps) = (volatile::ports(entries), volatile::heaps(entries));
        Self { pids, ports, heaps, random_reads: volatile::random_reads(entries), now }
    }

    /// The number of a thread.
    pub fn thread(&self, pid: u32) -> &str {
        self.pids.get(&u64::from(pid)).map_or("PID#?", String::as_str)
    }

    /// The normal form of the entry at a place of the trace.
    pub fn line(&self, index: usize, entry: &Entry) -> Line {
        let mut scan = Scan::new(self, &entry.name, false);
        scan.random = entry.name == "getrandom" || self.random_reads.contains(&index);
        let args = scan.text(&entry.args);
        let result = Scan::new(self, &entry.name, true).text(&entry.result);
        Line { args, result }
    }

    fn is_now(&self, seconds: u64) -> bool {
        seconds.abs_diff(self.now) < 86_400
    }

    fn is_address(&self, value: u64) -> bool {
        RANDOMIZED.contains(&value) || self.heaps.iter().any(|heap| heap.contains(&value))
    }
}

/// Walks through the text of one entry.
struct Scan<'a> {
    run: &'a Run,
    call: &'a str,
    in_result: bool,
    /// The field or function that the next number belongs to: `si_pid` in `si_pid=5`, `htons` in `htons(80)`.
    field: String,
    /// The seconds of this time were replaced, so its fraction is too.
    time_replaced: bool,
    /// `left {…}`: what remains of a timeout.
    after_left: bool,
    /// The strings are random bytes.
    random: bool,
    /// How many structs have begun, how many numbers there were.
    structs: usize,
    numbers: usize,
    addresses: Vec<u64>,
}

impl<'a> Scan<'a> {
    fn new(run: &'a Run, call: &'a str, in_result: bool) -> Self {
        Self {
            run,
            call,
            in_result,
            field: String::new(),
            time_replaced: false,
            after_left: false,
            random: false,
            structs: 0,
            numbers: 0,
            addresses: Vec::new(),
        }
    }

    fn text(mut self, text: &str) -> Text {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (token, replaced) = self.token(first, rest);
            out.push_str(&replaced);
            rest = &rest[token..];
        }
        Text { text: out, addresses: self.addresses }
    }

    /// The length of the token at the start of `rest`, and what takes its place.
    fn token(&mut self, first: char, rest: &str) -> (usize, String) {
        let end_of = |of: fn(char) -> bool| rest.find(|c| !of(c)).unwrap_or(rest.len());
        if first == '"' {
            let end = (string_end(rest.as_bytes(), 0) + 1).min(rest.len());
            return (end, self.string(&rest[..end], rest[end..].starts_with("...")));
        }
        if first.is_ascii_digit() {
            let end = end_of(|c| c.is_ascii_alphanumeric());
            let replaced = self.number(&rest[..end], &rest[end..]);
            self.numbers += 1;
            // `si_stime=1 /* 0.01 s */`: the comment is missing where the time is 0.
            let comment = if self.field.starts_with("si_") { rest[end..].strip_prefix(" /* ") } else { None };
            let more = comment.and_then(|comment| comment.find(" */")).map_or(0, |length| length + 7);
            return (end + more, replaced);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let end = end_of(|c| c.is_ascii_alphanumeric() || c == '_');
            self.word(&rest[..end], &rest[end..]);
            return (end, rest[..end].to_string());
        }
        if let Some(end) = rest.strip_prefix("/* ").and_then(|comment| comment.find(" */")) {
            let end = end + 6;
            return (end, self.comment(&rest[..end]));
        }
        self.structs += usize::from(first == '{');
        if matches!(first, '}' | ']' | ')') {
            self.field.clear();
        }
        (first.len_utf8(), first.to_string())
    }

    fn string(&self, literal: &str, cut: bool) -> String {
        if self.random {
            "\"RANDOM\"".to_string()
        } else {
            volatile::string(literal, cut, &self.run.pids, &self.run.ports)
        }
    }

    fn word(&mut self, word: &str, after: &str) {
        self.after_left |= word == "left";
        let is_field = after.starts_with('=') && !after.starts_with("=>");
        if is_field || after.starts_with('(') {
            self.field = word.to_string();
        }
    }

    /// `/* 2024-05-01T… */` belongs to the time before it.
    fn comment(&mut self, comment: &str) -> String {
        let date = comment.as_bytes().get(3..14).is_some_and(|text| text[4] == b'-' && text[10] == b'T');
        if date && self.time_replaced { "/* TIME */".to_string() } else { comment.to_string() }
    }

    fn number(&mut self, token: &str, after: &str) -> String {
        let hex = token.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        let Ok(value) = hex.clone().unwrap_or_else(|| token.parse()) else { return token.to_string() };
        let field = self.field.as_str();
        if self.run.is_address(value) && (hex.is_some() || field == "u64") {
            self.addresses.push(value);
            return "ADDR".to_string();
        }
        if self.is_time(field, value) {
            self.time_replaced = true;
            return "TIME".to_string();
        }
        self.time_replaced &= !matches!(field, "tv_sec");
        if let Some(kind) = volatile::field(field, after, |value| self.run.is_address(value)) {
            return kind.to_string();
        }
        if let (true, Some(pid)) = (volatile::has_pids(self.call, field), self.run.pids.get(&value)) {
            return pid.clone();
        }
        if field == "htons" && self.run.ports.contains(&value) {
            return "PORT".to_string();
        }
        volatile::ipc_id(self.call, self.in_result, self.numbers == 0).map_or_else(|| token.to_string(), str::to_string)
    }

    fn is_time(&self, field: &str, value: u64) -> bool {
        if self.in_result && matches!(self.call, "times" | "time") {
            return true;
        }
        match field {
            "tv_sec" => {
                let remaining = self.after_left || (volatile::writes_rest(self.call) && self.structs > 1);
                remaining || volatile::shows_clock(self.call) || self.run.is_now(value)
            }
            "tv_nsec" | "tv_usec" => self.time_replaced,
            "si_utime" | "si_stime" | "tms_utime" | "tms_stime" | "tms_cutime" | "tms_cstime" => true,
            _ => self.call == "time" && self.run.is_now(value),
        }
    }
}
