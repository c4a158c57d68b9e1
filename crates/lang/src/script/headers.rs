//! What headers that scripts include have: constants that no argument's table has, and names that members of the kernel's structures had.

/// Name and value, by header.
#[rustfmt::skip]
const CONSTANTS: &[(&str, i64)] = &[
    // include/net/tcp_states.h
    ("TCP_ESTABLISHED", 1), ("TCP_SYN_SENT", 2), ("TCP_SYN_RECV", 3), ("TCP_FIN_WAIT1", 4), ("TCP_FIN_WAIT2", 5), ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7), ("TCP_CLOSE_WAIT", 8), ("TCP_LAST_ACK", 9), ("TCP_LISTEN", 10), ("TCP_CLOSING", 11), ("TCP_NEW_SYN_RECV", 12),
    // include/uapi/linux/stat.h
    ("S_IFMT", 0o170000), ("S_IFSOCK", 0o140000), ("S_IFLNK", 0o120000), ("S_IFREG", 0o100000), ("S_IFBLK", 0o060000), ("S_IFDIR", 0o040000),
    ("S_IFCHR", 0o020000), ("S_IFIFO", 0o010000), ("S_ISUID", 0o4000), ("S_ISGID", 0o2000), ("S_ISVTX", 0o1000),
    // include/uapi/linux/limits.h, include/linux/sched.h
    ("PATH_MAX", 4096), ("NAME_MAX", 255), ("TASK_COMM_LEN", 16), ("TASK_RUNNING", 0), ("TASK_INTERRUPTIBLE", 1), ("TASK_UNINTERRUPTIBLE", 2),
    // include/uapi/linux/in.h
    ("IPPROTO_IP", 0), ("IPPROTO_ICMP", 1), ("IPPROTO_TCP", 6), ("IPPROTO_UDP", 17), ("IPPROTO_IPV6", 41), ("IPPROTO_ICMPV6", 58),
];

/// Members that newer kernels have by other names, with the same meaning: structure, name before, name now, and since which Linux.
const RENAMED: &[(&str, &str, &str, &str)] =
    &[("task_struct", "state", "__state", "5.14"), ("cfs_rq", "nr_running", "nr_queued", "6.14")];

/// The directories that the headers of Linux (include/, include/uapi/) and of C are in.
#[rustfmt::skip]
const DIRECTORIES: &[&str] = &[
    "acpi", "asm", "asm-generic", "clocksource", "crypto", "cxl", "drm", "generated", "hyperv", "keys", "kunit", "kvm", "linux", "math-emu",
    "media", "memory", "misc", "mtd", "net", "pcmcia", "ras", "rdma", "rv", "scsi", "soc", "sound", "target", "trace", "uapi", "ufs", "vdso",
    "video", "xen", "arpa", "bits", "bpf", "gnu", "netinet", "netpacket", "rpc", "sys",
];

/// Whether a header, in quotes or brackets, is one of Linux or of C; those without a directory may be.
pub(super) fn is_known(header: &str) -> bool {
    let inner = |open, close| {
        header.strip_prefix(open).and_then(|rest| rest.split_once(close)).map(|parts: (&str, &str)| parts.0)
    };
    let name = inner('<', '>').or_else(|| inner('"', '"')).unwrap_or_default();
    name.split_once('/').is_none_or(|(directory, _)| DIRECTORIES.contains(&directory))
}

/// The other name of a structure's member, whichever it is, and the version of Linux between them.
pub(super) fn renamed(of: &str, member: &str) -> Option<(&'static str, &'static str)> {
    RENAMED.iter().filter(|r| r.0 == of).find_map(|(_, before, now, since)| match member {
        m if m == *before => Some((*now, *since)),
        m if m == *now => Some((*before, *since)),
        _ => None,
    })
}

/// The value of a constant.
pub(super) fn constant(name: &str) -> Option<i64> {
    CONSTANTS.iter().find(|c| c.0 == name).map(|c| c.1)
}

/// Their names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CONSTANTS.iter().map(|c| c.0)
}
