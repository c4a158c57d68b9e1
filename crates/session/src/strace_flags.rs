//! strace's options that trapline does not have, and what to use instead.

/// What to use instead of strace's option `flag`.
pub fn equivalent(flag: &str) -> Option<&'static str> {
    let name = flag.split(['=', ' ']).next().unwrap_or(flag);
    Some(match name {
        "-b" | "--detach-on" => "not offered: use -p and Ctrl-C, or select calls with -e",
        "-B" => "see --help",
        "-d" | "--debug" => "use --explain",
        "-D" | "-DD" | "-DDD" | "--daemonize" => {
            "not needed: the tracer is a process of its own, and the command a child of the terminal's session"
        }
        "-F" => "children are followed by default",
        "-i" | "--instruction-pointer" => "not offered: -k shows the stack",
        "-I" | "--interruptible" => "Ctrl-C goes to the command, a second one within a second ends trapline",
        "-l" => "use --buffer and --on-full",
        "-N" | "--arg-names" => "use --types",
        "-O" | "--summary-syscall-overhead" => "not offered: times are those of the monotonic clock at entry and exit",
        "-V" => "use trapline --version",
        "-Y" => "use --decode-pids=comm",
        "--decode-fds" => "use -y or -yy",
        "--inject" | "--fault" => "trapline never changes what the command sees",
        "--kvm" => "not offered",
        "--abbrev" | "--verbose" => "use -v for all fields of all calls",
        "--raw" => "use -e raw=SET, or -X raw for constants",
        "--read" | "--write" | "-R" | "-W" => "use --as record, which shows buffers as hexadecimal dumps, with -s SIZE",
        "--string-limit" => "use -s SIZE",
        "--follow-forks" => "children are followed by default",
        "--output-separately" => "use -ff -o FILE",
        "--absolute-timestamps" | "--timestamps" => "use -t, -tt or -ttt",
        "--strings-in-hex" => "use -x or -xx",
        "--argv0" => "not offered",
        "--tips" | "--secontext" | "--syscall-limit" => "not offered",
        "--silent" | "--silence" => "use -q",
        "--seccomp" => "the filter is on by default where it helps; --no-seccomp turns it off",
        _ => return None,
    })
}
