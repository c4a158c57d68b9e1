//! The members of lines: what writes them takes the names from here, and so does their schema ([`crate::schema`]).

use events::types::Type;

/// A member of a line.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// What it has.
    pub value: Value,
    /// It is left out where it is not known, or does not apply.
    pub optional: bool,
    /// What it means; when it is null or left out.
    pub about: &'static str,
}

/// What a member has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// The version of the schema.
    Version,
    /// The type of the line.
    Kind,
    /// Text that trapline or the kernel has named.
    Name,
    /// A name, or null.
    MaybeName,
    /// Bytes of a program: text, an object where they are not UTF-8.
    Text,
    /// A whole number.
    Number,
    /// A time, ns of the monotonic clock.
    Time,
    /// A time, or null.
    MaybeTime,
    /// Clock ticks (sysconf(_SC_CLK_TCK) a second).
    Ticks,
    /// A truth.
    Truth,
    /// It is there, and true, or left out.
    True,
    /// A number in hexadecimal.
    Hex,
    /// An address; null where it is 0.
    Address,
    /// A constant by its name; by its number where it has none.
    Constant,
    /// A constant, or a number of its own.
    ConstantOrNumber,
    /// Names of the bits that are set.
    Flags,
    /// Arguments by name.
    Arguments,
    /// Values of a function's arguments, by name.
    Values,
    /// The result of a call.
    Result,
    /// A value of any type.
    Any,
    /// The name of an error, its number, or null.
    Error,
    /// Frames of a stack, innermost first.
    Stack,
    /// A field of an event, as its type has it.
    Field(Type),
}

const fn always(name: &'static str, value: Value, about: &'static str) -> Member {
    Member { name, value, optional: false, about }
}

const fn maybe(name: &'static str, value: Value, about: &'static str) -> Member {
    Member { name, value, optional: true, about }
}

/// `v`
pub const VERSION: Member = always("v", Value::Version, "version of the schema");
/// `type`
pub const TYPE: Member = always("type", Value::Kind, "type of the line");
/// `host`
pub const HOST: Member =
    maybe("host", Value::Name, "the machine where it was traced; only of several traces that are shown as one");
/// `trace`
pub const TRACE: Member =
    maybe("trace", Value::Name, "the name of its trace; only of several traces that are shown as one");
/// `pid`
pub const PID: Member = always("pid", Value::Number, "process (thread group)");
/// `tid`
pub const TID: Member = always("tid", Value::Number, "thread");
/// `tid_comm`
pub const COMM: Member = maybe("tid_comm", Value::Text, "command name of the thread, if requested (-Y) and known");
/// `time_ns`
pub const TIME: Member = always("time_ns", Value::Time, "when it happened");
/// `kstack`
pub const KSTACK: Member = maybe("kstack", Value::Stack, "stack of the kernel, if recorded");
/// `ustack`
pub const USTACK: Member = maybe("ustack", Value::Stack, "stack of the process, if recorded");

/// `name` of a call.
pub const CALL: Member = always("name", Value::Name, "name of the call");
/// `name` of a call in flight.
pub const CALL_IN_FLIGHT: Member =
    always("name", Value::MaybeName, "name of the call; null where not even that is known");
/// `name` of a probe.
pub const PROBE: Member = always("name", Value::Name, "whole name of the probe");
/// `nr`
pub const NR: Member = maybe(
    "nr",
    Value::Number,
    "number of the call: of those without a table entry, of 32-bit ones, and of all with -n",
);
/// `arch`
pub const ARCH: Member =
    maybe("arch", Value::Constant, "architecture, of calls without a table entry and of 32-bit ones");
/// `start_ns` of a call.
pub const START: Member = always(
    "start_ns",
    Value::MaybeTime,
    "entry; null where the call was in flight when tracing began, where seccomp(2) answered it before, and with --no-duration",
);
/// `end_ns`
pub const END: Member = always("end_ns", Value::Time, "exit");
/// `start_ns` of a probe that lasts.
pub const BEGIN: Member =
    maybe("start_ns", Value::MaybeTime, "when it began, of probes that last; null where that is not known");
/// `end_ns` of a probe that lasts.
pub const FINISH: Member = maybe("end_ns", Value::Time, "when it ended, of probes that last");
/// `time_ns` of a probe at a moment.
pub const MOMENT: Member = maybe("time_ns", Value::Time, "when it happened, of probes that do not last");
/// `cpu`
pub const CPU: Member = maybe("cpu", Value::Number, "processor at the beginning, if known");
/// `cpu_exit`
pub const CPU_EXIT: Member = maybe("cpu_exit", Value::Number, "processor at the end, if known");
/// `args`
pub const ARGS: Member = always(
    "args",
    Value::Arguments,
    "arguments or fields by name; those that do not exist for these values are left out",
);
/// `ret` of a call.
pub const RET: Member = always("ret", Value::Result, "result; -1 if the call failed, null if there is none");
/// `errno`
pub const ERRNO: Member =
    always("errno", Value::Error, "name of the error, its number where it has none; null where the call did not fail");
/// `ret` of a probe.
pub const RETURNED: Member = maybe("ret", Value::Result, "result, of probes that last; null if there is none");
/// `errno` of a probe.
pub const FAILED: Member = maybe(
    "errno",
    Value::Error,
    "name of the error, its number where it has none, of operations of io_uring that failed",
);
/// `unfinished`
pub const UNFINISHED: Member = maybe("unfinished", Value::True, "the call did not return");
/// `interrupted`
pub const INTERRUPTED: Member = maybe("interrupted", Value::True, "the attach itself interrupted the call");
/// `values` of the entry of a function.
pub const VALUES: Member =
    maybe("values", Value::Values, "arguments of the function by name, of entries that were recorded with --args");
/// `result` of the exit of a function.
pub const OUTCOME: Member =
    maybe("result", Value::Any, "result of the function, of exits that were recorded with --args");

/// `signal`
pub const SIGNAL: Member = always("signal", Value::Constant, "the signal");
/// `signal` of an exit.
pub const KILLED: Member = maybe("signal", Value::Constant, "the signal that has ended the thread, where one has");
/// `code`
pub const CODE: Member = maybe("code", Value::Number, "exit status, where the thread has ended by itself");
/// `core`
pub const CORE: Member = maybe("core", Value::Truth, "with a signal: whether core was dumped");
/// `si_code`
pub const SI_CODE: Member = always("si_code", Value::Constant, "why it was sent");
/// `si_errno`
pub const SI_ERRNO: Member = maybe("si_errno", Value::Constant, "an error number, where it is not 0");
/// `si_pid`
pub const SI_PID: Member = maybe("si_pid", Value::Number, "the child, or the sender");
/// `si_uid`
pub const SI_UID: Member = maybe("si_uid", Value::Number, "the real user of the child, or of the sender");
/// `si_status`
pub const SI_STATUS: Member = maybe("si_status", Value::ConstantOrNumber, "of a child: its exit status, or the signal");
/// `si_utime`
pub const SI_UTIME: Member = maybe("si_utime", Value::Ticks, "of a child: user time");
/// `si_stime`
pub const SI_STIME: Member = maybe("si_stime", Value::Ticks, "of a child: system time");
/// `si_addr`
pub const SI_ADDR: Member = maybe("si_addr", Value::Address, "of a fault: where");
/// `si_value`
pub const SI_VALUE: Member = maybe("si_value", Value::Hex, "what the sender has queued");
/// `si_timerid`
pub const SI_TIMERID: Member = maybe("si_timerid", Value::Number, "of a timer: which one");
/// `si_overrun`
pub const SI_OVERRUN: Member = maybe("si_overrun", Value::Number, "of a timer: expirations before this one");
/// `si_band`
pub const SI_BAND: Member = maybe("si_band", Value::Number, "of SIGIO: the events of poll(2)");
/// `si_fd`
pub const SI_FD: Member = maybe("si_fd", Value::Number, "of SIGIO: the descriptor");
/// `si_call_addr`
pub const SI_CALL_ADDR: Member = maybe("si_call_addr", Value::Address, "of SIGSYS: the instruction of the call");
/// `si_syscall`
pub const SI_SYSCALL: Member = maybe("si_syscall", Value::Number, "of SIGSYS: the number of the call");
/// `si_arch`
pub const SI_ARCH: Member = maybe("si_arch", Value::Constant, "of SIGSYS: the architecture of the call");

/// `comm` of a fork.
pub const CHILD_COMM: Member = maybe("comm", Value::Text, "command name of the new thread, if known");
/// `child`
pub const CHILD: Member = always("child", Value::Number, "the new process, or the own one of a new thread");
/// `child_tid`
pub const CHILD_TID: Member = always("child_tid", Value::Number, "the new thread");
/// `flags` of a fork.
pub const CLONE_FLAGS: Member = always("flags", Value::Flags, "flags of clone, with the signal at the child's end");

/// `fd`
pub const FD: Member = always("fd", Value::Number, "the descriptor");
/// `path` of a descriptor.
pub const FD_PATH: Member = always("path", Value::Text, "target of /proc/PID/fd/N");
/// `detail`
pub const DETAIL: Member = maybe("detail", Value::Text, "more about it, if known: addresses of a socket, a device");
/// `cloexec`
pub const CLOEXEC: Member = always("cloexec", Value::Truth, "it is closed by execve");

/// `attach` of a call in flight.
pub const ATTACH: Member = always("attach", Value::Truth, "tracing began while the call ran");
/// `detach` of a call in flight.
pub const DETACH: Member = always("detach", Value::Truth, "tracing ended while the call ran");

/// `events`
pub const LOST: Member =
    always("events", Value::Number, "events that were lost before they could be shown or recorded");

/// What the fields of other events mean: the event, the field, whether it is left out where it is not known.
pub const FIELDS: &[(&str, &str, bool, &str)] = &[
    ("superseded", "by", false, "the thread that has taken this one's id with execve"),
    ("exec", "comm", false, "command name of the program"),
    ("exec", "old_tid", false, "the thread that called execve; the others have ended"),
    ("exec", "uid", false, "real user, -1 where it is not known"),
    ("exec", "gid", false, "real group, -1 where it is not known"),
    ("attach", "comm", false, "command name of the thread"),
    ("attach", "uid", false, "real user, -1 where it is not known"),
    ("attach", "gid", false, "real group, -1 where it is not known"),
    ("map", "path", false, "the file; [vdso], //anon: none"),
    ("map", "build_id", true, "build id, identifies the file's contents on any machine"),
    ("map", "addr", false, "where it is mapped"),
    ("map", "len", false, "bytes"),
    ("map", "pgoff", false, "where in the file it begins"),
    ("map", "prot", false, "protection"),
    ("map", "flags", false, "flags of mmap"),
    ("map", "dev", true, "device, if the kernel has reported it"),
    ("map", "inode", true, "inode, if the kernel has reported it"),
    ("stack", "frames", false, "addresses, innermost first, as bytes"),
    ("stack", "id", false, "the stack"),
    ("stack", "kind", false, "0: of the process, 1: of the kernel"),
    ("stack", "ended", false, "why there are no more frames; 0: not known"),
    ("stack", "guessed", false, "frames that the unwinder has guessed"),
    ("function", "name", false, "its name, as the linker has it"),
    ("function", "path", false, "the file that contains it"),
    ("function", "build_id", false, "build id of the file, as bytes"),
    ("function", "number", false, "number of the function in the records of functions"),
    ("function", "addr", false, "its address in the file's symbol table"),
    ("untraced", "path", false, "the program"),
    ("untraced", "why", false, "why its functions are not traced"),
];
