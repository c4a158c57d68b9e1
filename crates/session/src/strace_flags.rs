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
        "-I" | "--interruptible" => "Ctrl-C goes to the command, a second one within a second ends trapline",
        "-l" => "use --buffer and --on-full",
        "-O" | "--summary-syscall-overhead" => "not offered: times are those of the monotonic clock at entry and exit",
        "--inject" | "--fault" => "trapline never changes what the command sees",
        "--kvm" | "--namespace" | "--pidns-translation" => "not offered",
        "-R" => "use --read",
        "-W" => "use --write",
        "--stack-trace-frame-limit" | "--stack-traces" => "use -k, or 'trapline record --ustack=N'",
        "--argv0" => "not offered",
        "--tips" | "--secontext" | "--syscall-limit" => "not offered",
        "--seccomp" => "the filter is on by default where it helps; --no-seccomp turns it off",
        _ => return None,
    })
}
