//! Cases whose expectation is in the words of 0.17, and what is expected instead: the words of the version that the dialect is pinned to, or
//! trapline's own where only the refusal matters. What is expected happens either way.

/// The case, what its output must have, and what has changed.
pub const REWORDED: &[(&str, &str, &str)] = &[
    ("call.stats", r"@bytes\[.*\]: \{ \.count = \d+, \.average = \d+, \.total = \d+ \}", STATS),
    ("signed_ints.stats with negative values", r"^@: \{ \.count = 3, \.average = -3, \.total = -10 \}$", STATS),
    ("intcast.Sum casted retval", r"^@: \{ \.count = 1, \.average = -120, \.total = -120 \}$", EXIT),
    ("struct.struct as a map key", r"@s\[\{ \.m = 2, \.n = 3 \}\]: 0", KEYS),
    ("struct.struct as a part of multikey", r"@s\[\{ \.m = 2, \.n = 3 \}, 42\]: 0", KEYS),
    ("struct.struct as a map key assigned from another map", r"@s\[\{ \.m = 2, \.n = 3 \}\]: 0", KEYS),
    (
        "other.bitfield_access_2",
        "^1 -39 -3 -1 -12 -1651 -1 -2 -5",
        "fields of bits have signs where their type has, as in C",
    ),
    ("builtin.begin probe", "^begin-end$", "probes have one name, whatever the script calls them"),
    ("builtin.sizeof", "^8 4 1 1 1$", SMALL),
    ("tuples.complex tuple 4", "^32$", SMALL),
    ("signed_ints.Comparison should print as 0 or 1", "^1 1$", "numbers of 64 bits are compared as signed ones"),
    ("call.print_avg_map_args", r"BEGIN\n@\[c\]: 3\n@\[d\]: 4\nEND", AVERAGES),
    ("call.print_avg_map_with_large_top", r"BEGIN\n@\[a\]: 1\n@\[b\]: 2\n@\[c\]: 3\n@\[d\]: 4\nEND", AVERAGES),
    ("array.array element access - out of bounds", "ERROR: an array of 4 has no element 5", OWN),
    ("basic.errors on non existent file", "non_existent_file.bt: No such file or directory", OWN),
    ("basic.pid fails validation with leading non-number", "-p a1111: not a process id", OWN),
    ("basic.pid fails validation with non-number in between", "-p 111a1: not a process id", OWN),
    ("basic.pid fails validation with non-numeric argument", "-p not_a_pid: not a process id", OWN),
    ("basic.kaddr fails", "ERROR: no symbol of the kernel is 'asdfzzzzzzz'", OWN),
    ("json-output.join_delim", r#"^\{"type": "join", "data": "/bin/echo,A"\}"#, "quotes of -c hold words together"),
    ("basic.pid outside of valid pid range", "-p 5000000: no such process", OWN),
    (
        "probe.uprobe_address_fail_resolve",
        "ERROR: uprobe:/bin/bash:10: a breakpoint would break the program: what lies there is not known to be code",
        OWN,
    ),
    ("json-output.invalid_format", "--format <FORMAT>: not 'jsonx'", OWN),
    ("other.unroll_max_value", "ERROR: not a number from 1 to 100", OWN),
    ("other.unroll_min_value", "ERROR: not a number from 1 to 100", OWN),
    ("probe.uprobe_offset_fail_size", r"ERROR: uprobe:/bin/bash:echo_builtin\+1000000: the offset is outside", OWN),
    ("probe.tracepoint_missing", "ERROR: tracepoint:syscalls:nonsense: no such probe", OWN),
    (
        "watchpoint.many_function_probes",
        "were not watched: all debug registers of a processor were taken, and x86 has four",
        OWN,
    ),
    (
        "watchpoint.wildcarded_function",
        "were not watched: all debug registers of a processor were taken, and x86 has four",
        OWN,
    ),
    ("watchpoint.unique_probe_bodies", r"increment_0\+arg0:4:w!", "probes have the names by which they were asked for"),
    ("basic.it shows usage with help flag", r"Usage: trapline run \[OPTIONS\] FILE", OWN),
    ("basic.it shows usage with bad flag", "^trapline: -i: no such option", OWN),
    ("basic.info flag", r"^ok\s+kernel\s+Linux", OWN),
    ("usdt.\"usdt duplicated markers\"", r"Attached 2 probes\n999\s*100", "no empty line is before the script's own"),
];

const STATS: &str = "stats are printed with the names of their parts";
const EXIT: &str = "exit() ends the script at once";
const KEYS: &str = "structs are printed alike as keys and as values";
const SMALL: &str = "literals and truth values are as small as they may be";
const AVERAGES: &str = "no empty line is behind maps of averages";
const OWN: &str = "the message is trapline's own";

/// The change of a case.
pub fn of(case: &str) -> Option<&'static str> {
    REWORDED.iter().find(|(path, ..)| *path == case).map(|(_, pattern, _)| *pattern)
}
