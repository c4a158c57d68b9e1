//! All values and functions of the language: what the checker takes, and what the reference shows.
//!
//! Invariant: a row is the only place that says what a value or a function takes, gives and needs.

use super::types::{Space, StackMode, Type};
use crate::ast::Cast;

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub class: Class,
    /// What it takes: `name:want`, with `?` behind it where it may be left out, or `…:want` for any number.
    pub takes: &'static str,
    /// What it gives.
    pub gives: Gives,
    /// What must be there for it.
    pub needs: &'static str,
    /// One line of help. Of those that this version does not have: what to do instead.
    pub help: &'static str,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Of an event or its thread: `pid`.
    Value,
    /// What a map collects: `@ = count()`.
    Aggregation,
    /// Of its arguments.
    Function,
    /// Something that happens.
    Statement,
    /// Not in this version.
    Later,
    /// It would change the traced system.
    Refused,
}

/// The type of what is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// Nothing.
    Nothing,
    /// An integer.
    Int(Cast),
    /// A truth value.
    Bool,
    /// A string of at most this many bytes; 0: as the settings say.
    Text(u32),
    /// Bytes.
    Bytes,
    /// A stack.
    Stack(Space),
    /// A symbol.
    Symbol(Space),
    /// A user.
    User,
    /// An address.
    Address(Space),
    /// It depends on the arguments.
    Depends,
}

/// What an argument is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// An integer, or what is used as one.
    Int,
    /// A string.
    Text,
    /// Any value.
    Any,
    /// A map.
    Map,
    /// A number that is known before the script runs.
    Literal,
    /// A string that is written in the script.
    Word,
    /// One of some names.
    Name,
    /// A variable.
    Var,
}

/// What a row takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it is to be.
    pub want: Want,
    /// It may be left out.
    pub optional: bool,
    /// Any number of them.
    pub many: bool,
}

const U32: Gives = Gives::Int(Cast { size: 4, signed: false });
const U64: Gives = Gives::Int(Cast { size: 8, signed: false });
const I64: Gives = Gives::Int(Cast { size: 8, signed: true });

use Class::{Aggregation, Function, Later, Refused, Statement, Value};
use Gives::{Bool, Bytes, Depends, Nothing, Text};

macro_rules! rows {
    ($($name:literal $class:ident $takes:literal $gives:expr, $needs:literal, $help:literal;)*) => {
        /// The table.
        pub static ROWS: &[Row] = &[$(Row {
            name: $name, class: $class, takes: $takes, gives: $gives, needs: $needs, help: $help,
        }),*];
    };
}

#[rustfmt::skip]
rows! {
    "pid" Value "namespace:name?" U32, "", "process; pid(init) is its number in the first namespace";
    "tid" Value "namespace:name?" U32, "", "thread; tid(init) is its number in the first namespace";
    "ppid" Value "" U32, "root", "parent process";
    "uid" Value "" U32, "", "user of the thread";
    "gid" Value "" U32, "", "group of the thread";
    "username" Value "" Gives::User, "", "user of the thread, by name";
    "comm" Value "" Text(15), "", "name of the thread";
    "pcomm" Value "" Text(15), "root", "name of the process's first thread";
    "host" Value "" Text(64), "", "name of the machine where the event happened; of several traces, empty at begin, end and intervals";
    "trace" Value "" Text(0), "", "name of the event's trace; empty where nothing was recorded before, and, of several traces, at begin, end and intervals";
    "cpu" Value "" U32, "", "processor";
    "ncpus" Value "" U64, "", "number of processors";
    "numaid" Value "" U32, "root", "NUMA node";
    "nsecs" Value "clock:name?" U64, "", "time of the event in ns of the monotonic clock; nsecs(boot), nsecs(tai) are other clocks";
    "elapsed" Value "" U64, "", "ns since the script's start";
    "jiffies" Value "" U64, "root", "ticks of the kernel's clock";
    "cgroup" Value "" U64, "root", "control group of the process, as a number";
    "curtask" Value "" Depends, "root", "address of the kernel's struct task_struct of the thread";
    "ctx" Value "" Depends, "root", "address of what the kernel hands the probe's program: registers, a record, arguments; 0 where no program runs: begin, end, intervals";
    "cpid" Value "" U32, "-c, -p", "process that -c started, or that -p names; not at begin";
    "probe" Value "" Text(0), "", "full name of the probe";
    "probetype" Value "" Text(0), "", "provider of the probe";
    "func" Value "" Text(0), "a probe of a function", "name of the function";
    "retval" Value "" Depends, "a probe at a return, or a span", "result";
    "dur" Value "" U64, "a span", "ns from start to end";
    "args" Value "" Depends, "a probe with named arguments", "the arguments: args.NAME, or all of them";
    "strace" Value "" Text(0), "an event", "the event as `trapline trace` shows it; not at process:fork and process:exec, which have no line there";
    "usermode" Value "" Bool, "root at probes that are not in a program's code", "whether the processor was in user mode, at profile:, software:, hardware:, watchpoint: and kprobe:; true in a program's code, and at begin, end and intervals";
    "rand" Value "" U32, "", "a random number";
    "kstack" Value "mode:name? limit:literal?" Gives::Stack(Space::Kernel), "root", "the kernel's stack; modes are bpftrace, perf, raw";
    "ustack" Value "mode:name? limit:literal?" Gives::Stack(Space::User), "", "the process's stack; modes are bpftrace, perf, raw";

    "count" Aggregation "" Nothing, "", "how often";
    "sum" Aggregation "n:int" Nothing, "", "the sum of the values";
    "min" Aggregation "n:int" Nothing, "", "the smallest value";
    "max" Aggregation "n:int" Nothing, "", "the largest value";
    "avg" Aggregation "n:int" Nothing, "", "the average of the values";
    "stats" Aggregation "n:int" Nothing, "", "count, average and total of the values";
    "stddev" Aggregation "n:int" Nothing, "", "the standard deviation of the values";
    "hist" Aggregation "n:int bits:literal? weight:int?" Nothing, "", "a histogram by powers of two, each in 2^bits parts; a value counts weight times";
    "lhist" Aggregation "n:int min:literal max:literal step:literal weight:int?" Nothing, "", "a histogram in steps from min to max";
    "llquantize" Aggregation "n:int factor:literal from:literal to:literal steps:literal weight:int?" Nothing, "", "a histogram by powers of the factor, from factor^from to factor^(to + 1), each end of a power in so many steps";
    "tseries" Later "" Nothing, "", "keep a map by time yourself: @[nsecs / 1s] = count()";

    "printf" Statement "format:word …:any" Nothing, "", "prints by a format";
    "assert" Statement "condition:bool what:any?" Nothing, "", "ends the script with status 1 where the condition is false, and prints what";
    "errorf" Statement "format:word …:any" Nothing, "", "prints an error by a format, with the script's line";
    "warnf" Statement "format:word …:any" Nothing, "", "prints a warning by a format, with the script's line";
    "cat" Statement "format:word …:any" Nothing, "", "prints the file whose name the format gives";
    "system" Statement "format:word …:any" Nothing, "--unsafe", "runs the command that the format gives by sh, and prints what it writes";
    "print" Statement "value:any top:int? div:int?" Nothing, "", "prints a value, or a map: its top largest values, divided";
    "printa" Statement "…:any" Nothing, "", "prints several maps of equal keys side by side, by a format, if there is one: printa(\"%s %@d %@d\\n\", @a, @b), where %@ is a map's value";
    "speculate" Statement "number:int" Nothing, "", "keeps what the clause prints from here on, until the speculation is committed";
    "commit" Statement "number:int" Nothing, "", "prints what a speculation has kept";
    "discard" Statement "number:int" Nothing, "", "forgets what a speculation has kept";
    "clear" Statement "@m:map" Nothing, "", "takes all keys out of a map";
    "zero" Statement "@m:map" Nothing, "", "sets all values of a map to zero";
    "time" Statement "format:word?" Nothing, "", "prints the time of day, as strftime(3) formats it";
    "join" Statement "strings:any separator:word?" Nothing, "", "prints an array of strings, with the separator or a blank between them";
    "unwatch" Statement "address:int" Nothing, "root", "takes back the debug register by which a watchpoint at a function's argument watches an address";
    "exit" Statement "code:int?" Nothing, "", "ends the script";

    "speculation" Function "" U64, "", "the number of a new speculation: what is printed may be kept until it is known to be wanted";
    "delete" Function "@m:any key:any?" Bool, "", "takes a key out of a map; whether it was there";
    "has_key" Function "@m:map key:any" Bool, "", "whether a map has a key";
    "find" Function "@m:map key:any $value:var" Bool, "", "whether a map has a key; if so, its value is put into the variable";
    "len" Function "x:any" U64, "", "how many keys a map has, or characters a string";
    "str" Function "address:any length:int?" Text(0), "", "the string at an address, of at most length - 1 bytes";
    "buf" Function "data:any length:int?" Bytes, "", "length bytes at an address, or of an array";
    "strftime" Function "format:word ns:int" Text(63), "", "a time of nsecs as strftime(3) formats it; %f are microseconds";
    "strncmp" Function "a:text b:text length:int" I64, "", "0 where two strings are equal in their first bytes";
    "strcontains" Function "text:text part:text" Bool, "", "whether a string is part of another";
    "startswith" Function "text:text start:text" Bool, "", "whether a string begins with another";
    "strlen" Function "text:text" U64, "", "how many bytes a string has";
    "strstr" Function "text:text part:text" I64, "", "where in a string another begins; -1 where it does not";
    "str_concat" Function "a:text b:text" Text(0), "", "two strings as one";
    "strcap" Function "text:text" U64, "", "how many bytes a string may have";
    "memcmp" Function "a:any b:any length:int" I64, "", "0 where two values are equal in their first bytes";
    "bswap" Function "n:int" Depends, "", "an integer with its bytes in the other order";
    "ntop" Function "address:any other:any?" Text(45), "", "an address of the Internet as text; a family may stand before it";
    "pton" Function "address:word" Bytes, "", "a text as an address of the Internet";
    "macaddr" Function "address:any" Text(17), "", "a hardware address as text";
    "strerror" Function "number:int" Text(31), "", "an error's name";
    "signal_name" Function "number:int" Text(15), "", "a signal's name";
    "syscall_name" Function "number:int" Text(31), "", "a system call's name";
    "kptr" Function "address:int" Depends, "", "an address of the kernel's memory";
    "uptr" Function "address:int" Depends, "", "an address of the process's memory";
    "ksym" Function "address:int" Gives::Symbol(Space::Kernel), "root", "the kernel's symbol at an address";
    "usym" Function "address:int" Gives::Symbol(Space::User), "", "the process's symbol at an address";
    "kaddr" Function "symbol:word" Gives::Address(Space::Kernel), "root", "the address of a symbol of the kernel";
    "uaddr" Function "symbol:word" Gives::Address(Space::User), "a probe at an instruction of a file", "the address of a symbol of the probe's file, in the process";
    "cgroupid" Function "path:word" U64, "", "the number of the control group with this directory";
    "cgroup_path" Function "id:int hierarchy:text?" Text(0), "", "the directories of a control group in the hierarchies that are mounted, or in those whose name matches: unified:/user.slice";
    "reg" Function "register:word" U64, "a probe with registers", "a register: ax, bx, cx, dx, si, di, bp, sp, ip, r8 to r15";
    "getopt" Function "name:word default:any? help:word?" Depends, "", "an argument --name=value of the script";

    "percpu_kaddr" Later "" Nothing, "", "kaddr(\"NAME\") gives the address of a symbol that is not per processor";
    "path" Later "" Nothing, "", "the kernel gives a path to a few kinds of programs only (bpf_d_path); str(args.filename) is the path that a call was given, $f->f_path.dentry->d_name.name the last part of it";
    "socket_cookie" Later "" Nothing, "", "the kernel makes one for typed sockets only; write $sk->__sk_common.skc_cookie.counter, which is 0 until somebody has asked for it, or use the socket's address";
    "debugf" Later "" Nothing, "", "printf(), and errorf() on stderr: the kernel's trace buffer is everybody's";
    "skboutput" Later "" Nothing, "", "printf(\"%r\", buf(…)) shows the bytes";
    "globmatch" Later "" Nothing, "", "startswith() and strcontains() compare parts of strings";
    "kfunc_exist" Later "" Nothing, "", "trapline chooses what the kernel has";
    "kfunc_allowed" Later "" Nothing, "", "trapline chooses what the kernel has";
    "nsecs_boot" Later "" Nothing, "", "write nsecs(boot)";
    "signal" Refused "" Nothing, "", "trapline observes; printf the process, and let another program send the signal";
    "signal_thread" Refused "" Nothing, "", "trapline observes; printf the thread, and let another program send the signal";
    "override" Refused "" Nothing, "", "trapline observes; the kernel's fault injection (fail_function) changes results";
    "write_user" Refused "" Nothing, "", "trapline observes; a debugger writes to a process's memory";
}

/// The row of a name.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|r| r.name == name)
}

impl Row {
    /// What it takes.
    pub fn params(&self) -> impl Iterator<Item = Param> + Clone {
        self.takes.split_whitespace().map(|p| {
            let (name, want) = p.split_once(':').unwrap_or((p, "any"));
            let optional = want.ends_with('?');
            let want = match want.trim_end_matches('?') {
                "int" => Want::Int,
                "text" => Want::Text,
                "map" => Want::Map,
                "literal" => Want::Literal,
                "word" => Want::Word,
                "name" => Want::Name,
                "var" => Want::Var,
                _ => Want::Any,
            };
            Param { name, want, optional, many: name == "…" }
        })
    }

    /// As the reference and messages show it: `hist(n[, bits])`.
    pub fn signature(&self) -> String {
        let mut out = self.name.to_owned();
        if self.class == Class::Value && self.takes.is_empty() {
            return out;
        }
        let (mut first, mut open) = (true, 0);
        out.push('(');
        for p in self.params() {
            if p.optional {
                out.push('[');
                open += 1;
            }
            out.push_str(if first { "" } else { ", " });
            out.push_str(p.name);
            first = false;
        }
        out.push_str(&"]".repeat(open));
        out.push(')');
        out
    }

    /// Its type, where that does not depend on its arguments.
    pub(super) fn ty(&self, max_strlen: u32) -> Type {
        match self.gives {
            Gives::Nothing | Gives::Depends => Type::None,
            Gives::Int(c) => Type::Int(c),
            Gives::Bool => Type::Bool,
            Gives::Text(0) => Type::Str(max_strlen),
            Gives::Text(n) => Type::Str(n),
            Gives::Bytes => Type::Buffer(max_strlen),
            Gives::Stack(s) => Type::Stack(s, StackMode::default(), 127),
            Gives::Symbol(s) => Type::Symbol(s),
            Gives::User => Type::User,
            Gives::Address(s) => Type::Pointer(Box::new(Type::int(8, false)), s),
        }
    }
}

/// The table as a page of the reference: a row for each value and function, and what to do instead of those that this version does not have.
pub fn reference() -> String {
    let mut out = String::new();
    let classes =
        [(Value, "Values"), (Aggregation, "What maps collect"), (Statement, "Statements"), (Function, "Functions")];
    for (class, title) in classes {
        out.push_str(&format!("#### {title}\n\n| name | what | needs |\n|---|---|---|\n"));
        for r in ROWS.iter().filter(|r| r.class == class) {
            let needs = if r.needs.is_empty() { "-" } else { r.needs };
            out.push_str(&format!("| `{}` | {} | {needs} |\n", r.signature(), r.help.replace('|', "\\|")));
        }
        out.push('\n');
    }
    out.push_str("#### Not there\n\n| name | what to do instead |\n|---|---|\n");
    for r in ROWS.iter().filter(|r| matches!(r.class, Later | Refused)) {
        out.push_str(&format!("| `{}` | {} |\n", r.name, r.help.replace('|', "\\|")));
    }
    out
}
