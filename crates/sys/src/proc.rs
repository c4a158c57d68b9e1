//! Reading `/proc`. All parsing is of hostile text, because a process chooses its own name.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The threads of a process.
pub fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let mut v: Vec<i32> =
        fs::read_dir(format!("/proc/{pid}/task"))?.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    v.sort_unstable();
    Ok(v)
}

/// A field of `/proc/PID/status`, for instance `Tgid`.
pub fn status_field(pid: i32, name: &str) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_string())
}

/// A set of signals in a thread's status (`SigPnd`, `ShdPnd`, `SigBlk`, `SigIgn`; proc_pid_status(5)).
pub fn signals(tid: i32, field: &str) -> u64 {
    u64::from_str_radix(&status_field(tid, field).unwrap_or_default(), 16).unwrap_or(0)
}

/// Whether a signal waits for a thread that it does not block.
pub fn gets_signal(tid: i32) -> bool {
    (signals(tid, "SigPnd") | signals(tid, "ShdPnd")) & !signals(tid, "SigBlk") != 0
}

/// The process that thread `tid` belongs to.
pub fn process_of(tid: i32) -> Option<i32> {
    status_field(tid, "Tgid")?.parse().ok()
}

/// The ids of a thread or process, one for each pid namespace that it is in: that of `/proc` first, its own last (`NSpid`, proc(5)).
pub fn ids_by_namespace(tid: i32) -> Vec<i32> {
    let all = status_field(tid, "NSpid").unwrap_or_default();
    all.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// The id by which a thread or process knows itself.
pub fn own_id(tid: i32) -> Option<i32> {
    ids_by_namespace(tid).last().copied()
}

/// Who traces `tid`, 0 for nobody.
pub fn tracer_of(tid: i32) -> Option<i32> {
    status_field(tid, "TracerPid")?.parse().ok()
}

/// The processes that the calling process waits for at its stops: who traces it, who traces those, and so on. With a trapline goes the
/// process that reads its events, which it waits for: its parent, which executes the same file.
pub fn tracers() -> Vec<i32> {
    let file = |pid| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let both = |pid| {
        let parent = status_field(pid, "PPid").and_then(|p| p.parse().ok());
        [Some(pid), parent.filter(|parent| file(pid).is_some_and(|f| file(*parent) == Some(f)))].into_iter().flatten()
    };
    let mut found = Vec::new();
    let mut of: Vec<i32> = both(std::process::id() as i32).collect();
    while let Some(pid) = of.pop() {
        let tracer = tracer_of(pid).filter(|t| *t != 0).and_then(process_of);
        let new: Vec<i32> = tracer.into_iter().flat_map(both).filter(|t| !found.contains(t)).collect();
        found.extend_from_slice(&new);
        of.extend(new);
    }
    found
}

/// The command name (`comm`), raw bytes without the newline.
pub fn comm(tid: i32) -> Option<Vec<u8>> {
    let mut c = fs::read(format!("/proc/{tid}/comm")).ok()?;
    c.truncate(c.len().saturating_sub(1));
    Some(c)
}

/// Real user and group of a thread, as trapline's user namespace knows them.
pub fn ids(tid: i32) -> Option<(u32, u32)> {
    let text = fs::read(format!("/proc/{tid}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let real = |name: &str| -> Option<u32> {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some((real("Uid:")?, real("Gid:")?))
}

/// The processor that a thread runs on, or ran on when it stopped.
pub fn cpu(tid: i32) -> Option<u16> {
    // `processor`, proc_pid_stat(5).
    stat_field(tid, 39)?.try_into().ok()
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It is running, or about to.
    Running,
    /// It is blocked, and goes on at `pc` with its stack at `sp`.
    Blocked {
        /// The number and the arguments of the system call that it is in; none: it is blocked elsewhere, as in a page fault, or in an execve
        /// whose arguments are gone.
        call: Option<(i64, [u64; 6])>,
        /// rsp.
        sp: u64,
        /// rip.
        pc: u64,
    },
}

/// What a thread is doing now.
///
/// # Errors
/// `EACCES`, `EPERM`: the rights of ptrace are wanted. `ENOENT`, `ESRCH`: it is gone.
pub fn doing(pid: i32, tid: i32) -> io::Result<Doing> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"))?;
    parse_doing(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The call that a thread is blocked in: number and arguments. None: it is running, or may not be read.
pub fn call_in_flight(pid: i32, tid: i32) -> Option<(i64, [u64; 6])> {
    match doing(pid, tid).ok()? {
        Doing::Blocked { call, .. } => call,
        Doing::Running => None,
    }
}

/// Whether a thread waits for a child that runs in its memory: of vfork(2), or of a clone(2) with CLONE_VFORK.
pub fn is_in_vfork(pid: i32, tid: i32) -> bool {
    let flags = |call: i64, first: u64| match call {
        libc::SYS_vfork => Some(libc::CLONE_VFORK as u64),
        libc::SYS_clone => Some(first),
        libc::SYS_clone3 => {
            let mut word = [0; 8];
            (crate::mem::read(tid, first, &mut word).ok()? == word.len()).then(|| u64::from_le_bytes(word))
        }
        _ => None,
    };
    let flags = call_in_flight(pid, tid).and_then(|(call, arguments)| flags(call, arguments[0]));
    flags.is_some_and(|f| f & libc::CLONE_VFORK as u64 != 0)
}

/// Where a thread goes on that is blocked in a call. None: it is running, or may not be read.
pub fn pc_in_call(pid: i32, tid: i32) -> Option<u64> {
    match doing(pid, tid).ok()? {
        Doing::Blocked { pc, .. } => Some(pc),
        Doing::Running => None,
    }
}

/// `/proc/PID/syscall`, proc(5): "running", "-1 SP PC", or "NR ARG… SP PC".
fn parse_doing(text: &str) -> Option<Doing> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Doing::Running);
    }
    let nr: i64 = first.parse().ok()?;
    let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let mut args = [0; 6];
    if nr >= 0 {
        for a in &mut args {
            *a = number()?;
        }
    }
    // The registers of an execve that has come so far are those that the new program begins with.
    let is_replaced = [libc::SYS_execve, libc::SYS_execveat].contains(&nr) && args == [0; 6];
    let call = (nr >= 0 && !is_replaced).then_some((nr, args));
    Some(Doing::Blocked { call, sp: number()?, pc: number()? })
}

/// The state of a thread as proc(5) has it: `R`, `S`, `D`, `T`, `t`, `Z`, …
pub fn state(pid: i32, tid: i32) -> Option<char> {
    let text = fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    stat_word(&text, 3)?.chars().next()
}

/// How often a thread has been taken off a processor.
pub fn switches(pid: i32, tid: i32) -> Option<u64> {
    let text = fs::read(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let count = |name: &str| -> Option<u64> { text.lines().find_map(|l| l.strip_prefix(name))?.trim().parse().ok() };
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
}

/// When a thread last ran, ns of the clock of its processor's scheduler (`se.exec_start` of `/proc/PID/sched`), which stands still while
/// the processor serves another machine. None: the kernel does not say.
pub fn last_ran(pid: i32, tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/sched")).ok()?;
    parse_last_ran(&text)
}

fn parse_last_ran(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("se.exec_start"))?;
    let (ms, fraction) = line.trim().strip_prefix(':')?.trim().split_once('.')?;
    let ns = ms.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction.parse().ok()?)?;
    (ns > 0 && fraction.len() == 6).then_some(ns)
}

/// The function of the kernel that a thread waits in (`/proc/PID/wchan`).
pub fn wait_channel(pid: i32, tid: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan")).ok()?;
    (!name.is_empty() && name != "0").then_some(name)
}

/// The children of a process, of all its threads (`/proc/PID/task/TID/children`).
pub fn children(pid: i32) -> Vec<i32> {
    let of = |tid: i32| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let all: Vec<String> = threads(pid).unwrap_or_default().into_iter().map(of).collect();
    all.iter().flat_map(|text| text.split_whitespace()).filter_map(|word| word.parse().ok()).collect()
}

/// What `/proc/PID/fd/N` (or `cwd` for none) leads to, raw bytes.
pub fn fd_link(pid: i32, fd: Option<i32>) -> Option<Vec<u8>> {
    let path = match fd {
        Some(fd) => format!("/proc/{pid}/fd/{fd}"),
        None => format!("/proc/{pid}/cwd"),
    };
    Some(fs::read_link(path).ok()?.into_os_string().into_vec())
}

/// Device and inode of the file that a descriptor leads to.
pub fn fd_file(pid: i32, fd: i32) -> Option<(u64, u64)> {
    let file = fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some((file.dev(), file.ino()))
}

/// Whether a process has this one's root directory, and `/proc` there: names in it are those that this process would read.
pub fn shares_root(pid: i32) -> bool {
    let root = |of: &str| fs::metadata(of).ok().map(|root| (root.dev(), root.ino()));
    let theirs = format!("/proc/{pid}/root");
    root(&theirs).is_some_and(|theirs| Some(theirs) == root("/")) && is_proc(&format!("{theirs}/proc"))
}

/// Whether procfs is mounted at a directory.
fn is_proc(directory: &str) -> bool {
    let Ok(path) = std::ffi::CString::new(directory) else { return false };
    // SAFETY: `statfs` is plain integers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a path, and room for what is said of it.
    unsafe { libc::statfs(path.as_ptr(), &mut about) == 0 && about.f_type == libc::PROC_SUPER_MAGIC }
}

/// The open descriptors of a process.
pub fn fds(pid: i32) -> io::Result<Vec<i32>> {
    let mut v: Vec<i32> =
        fs::read_dir(format!("/proc/{pid}/fd"))?.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    v.sort_unstable();
    Ok(v)
}

/// The ids of the visible processes, rising.
pub fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let mut v: Vec<i32> = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    v.sort_unstable();
    v
}

/// The other processes that have begun since this one has.
pub fn younger() -> Vec<i32> {
    const START: usize = 22;
    let own = std::process::id() as i32;
    let Some(since) = stat_field(own, START) else { return Vec::new() };
    let is_younger = |pid: &i32| *pid != own && stat_field(*pid, START).is_some_and(|at| at >= since);
    processes().into_iter().filter(is_younger).collect()
}

/// Field `n` of `/proc/PID/stat`, counted as proc_pid_stat(5) does; from 3 on. The name before may hold anything.
fn stat_field(pid: i32, n: usize) -> Option<i64> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    stat_word(&text, n)?.parse().ok()
}

fn stat_word(text: &[u8], n: usize) -> Option<&str> {
    let end = text.iter().rposition(|b| *b == b')')?;
    std::str::from_utf8(&text[end + 1..]).ok()?.split_whitespace().nth(n.checked_sub(3)?)
}

/// Whether it is a thread of the kernel's (PF_KTHREAD, `include/linux/sched.h`).
pub fn is_kernel_thread(pid: i32) -> bool {
    stat_field(pid, 9).is_some_and(|flags| flags & 0x0020_0000 != 0)
}

/// The number of the pseudoterminal that controls a process, if one does (majors 136 to 143, 256 minors each).
pub fn terminal(pid: i32) -> Option<u32> {
    let dev = stat_field(pid, 7)? as u32;
    // new_encode_dev(), include/linux/kdev_t.h
    let (major, minor) = (dev >> 8 & 0xfff, dev & 0xff | dev >> 12 & 0xfff00);
    (136..144).contains(&major).then(|| (major - 136) * 256 + minor)
}

/// Whether this process has children, those that have ended and were not waited for among them.
fn has_children() -> bool {
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: all zeros are a siginfo_t, and it lives as long as the call; WNOWAIT leaves every child as it is.
    let found = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &mut info, how)
    };
    found == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD)
}

/// The descendants of a process.
pub fn descendants(pid: i32) -> Vec<i32> {
    // To look for children among all processes takes milliseconds.
    if pid == std::process::id() as i32 && !has_children() {
        return Vec::new();
    }
    let parents: Vec<(i32, i32)> =
        processes().into_iter().filter_map(|p| Some((p, stat_field(p, 4)? as i32))).collect();
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(child, _)| *child));
        at += 1;
    }
    found.split_off(1)
}

/// How a descriptor is open: `O_*` of open(2).
pub fn fd_flags(pid: i32, fd: i32) -> Option<u32> {
    u32::from_str_radix(&fdinfo(pid, fd, "flags")?, 8).ok()
}

/// The process that a descriptor of pidfd_open(2) stands for; none where it is none, or its process has ended.
pub fn pidfd_process(pid: i32, fd: i32) -> Option<i32> {
    fdinfo(pid, fd, "Pid")?.parse().ok().filter(|process| *process > 0)
}

/// The descriptors that an epoll descriptor watches.
pub fn epoll_targets(pid: i32, fd: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    text.lines().filter_map(|l| l.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok()).collect()
}

fn fdinfo(pid: i32, fd: i32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    Some(text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?.trim().to_string())
}

/// The number of the pseudoterminal whose master a descriptor is.
pub fn tty_index(pid: i32, fd: i32) -> Option<u32> {
    fdinfo(pid, fd, "tty-index")?.parse().ok()
}

/// Whether a descriptor is open for reading.
pub fn fd_can_read(pid: i32, fd: i32) -> bool {
    const ACCESS_MODE: u32 = 3;
    const WRITE_ONLY: u32 = 1;
    let flags = fdinfo(pid, fd, "flags").and_then(|f| u32::from_str_radix(&f, 8).ok());
    flags.is_some_and(|f| f & ACCESS_MODE != WRITE_ONLY)
}

/// Whether descriptor `fd` closes at exec, from `/proc/PID/fdinfo`.
pub fn fd_cloexec(pid: i32, fd: i32) -> bool {
    const O_CLOEXEC: u32 = 0o2_000_000;
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")) else { return false };
    let flags = text.lines().find_map(|l| u32::from_str_radix(l.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|f| f & O_CLOEXEC != 0)
}

/// The value of `/proc/sys/kernel/yama/ptrace_scope`, where the kernel has Yama.
pub fn yama_scope() -> Option<u32> {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}

/// The processes that are there.
pub fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// The host's name.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().into()
}

/// The kernel's release, for instance `6.18.44`.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// Whether the running kernel is at least of this version. One whose version cannot be read is taken for an old one.
pub fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let release = kernel_release();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

/// What distinguishes this start of the machine from every other one; empty where that is not known.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

/// Device and inode of the calling process's pid namespace; none for the initial one (PROC_PID_INIT_INO,
/// `include/linux/proc_ns.h`).
pub fn pid_namespace() -> Option<(u64, u64)> {
    let meta = fs::metadata("/proc/self/ns/pid").ok()?;
    (meta.ino() != 0xefff_fffc).then(|| (meta.dev(), meta.ino()))
}

/// How many processes and threads the machine has begun since it was started.
pub fn begun() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|l| l.strip_prefix("processes "))?.trim().parse().ok()
}

/// Whether a process exists.
pub fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether a process has this thread.
pub fn has_thread(pid: i32, tid: i32) -> bool {
    Path::new(&format!("/proc/{pid}/task/{tid}")).exists()
}

/// Effective capabilities of the calling process as bits.
pub fn effective_capabilities() -> u64 {
    status_field(std::process::id() as i32, "CapEff").and_then(|s| u64::from_str_radix(&s, 16).ok()).unwrap_or(0)
}

/// The address of a symbol of the kernel: the first of this name. None too where addresses are hidden.
pub fn kernel_symbol(name: &str) -> Option<u64> {
    let text = fs::read("/proc/kallsyms").ok()?;
    let (_, address) = symbols(&text).find(|(words, _)| words[0] == name.as_bytes())?;
    Some(address)
}

/// Symbols of the kernel and of its modules.
pub struct KernelSymbols {
    /// By name: modules, in brackets, and addresses.
    named: HashMap<Vec<u8>, Vec<(Vec<u8>, u64)>>,
    /// All addresses, rising.
    addresses: Vec<u64>,
}

impl KernelSymbols {
    /// Reads them.
    pub fn read() -> io::Result<KernelSymbols> {
        let text = fs::read("/proc/kallsyms")?;
        let (mut named, mut addresses) = (HashMap::<_, Vec<_>>::new(), Vec::new());
        for ([name, module], address) in symbols(&text) {
            named.entry(name.to_vec()).or_default().push((module.to_vec(), address));
            addresses.push(address);
        }
        addresses.sort_unstable();
        Ok(KernelSymbols { named, addresses })
    }

    /// The address of a function, and how many bytes there are to the next symbol. None too where addresses are hidden.
    pub fn function(&self, module: Option<&str>, name: &str) -> Option<(u64, u64)> {
        let module = module.map_or(String::new(), |m| format!("[{m}]"));
        let address = self.named.get(name.as_bytes())?.iter().find(|(of, _)| of == module.as_bytes())?.1;
        let next = self.addresses.get(self.addresses.partition_point(|at| *at <= address))?;
        Some((address, next - address))
    }
}

/// Names, modules and addresses of `/proc/kallsyms`.
fn symbols(text: &[u8]) -> impl Iterator<Item = ([&[u8]; 2], u64)> {
    text.split(|b| *b == b'\n').filter_map(|line| {
        let mut words = line.split(u8::is_ascii_whitespace);
        let address = u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok().filter(|at| *at != 0)?;
        Some(([words.nth(1)?, words.next().unwrap_or_default()], address))
    })
}

/// The number of the calling process's control group of version 2.
pub fn own_cgroup() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let group = |root: &str| {
        fs::metadata(format!("{root}{path}/cgroup.controllers")).and_then(|_| fs::metadata(format!("{root}{path}")))
    };
    ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].into_iter().find_map(|root| group(root).ok()).map(|m| m.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_has_ids_and_a_processor() {
        let me = crate::process::own_pid();
        assert_eq!(ids(me).map(|i| i.0), Some(crate::process::ruid()));
        assert!(cpu(me).is_some_and(|c| c < 4096) && ids(0).is_none() && cpu(0).is_none());
    }

    #[test]
    fn symbols_of_the_kernel_have_addresses_for_root() {
        assert_eq!(kernel_symbol("no such symbol"), None);
        let found = kernel_symbol("vfs_read");
        assert!(crate::process::euid() != 0 || found.is_none_or(|at| at > 1 << 63), "{found:?}");
        let all = KernelSymbols::read().expect("symbols");
        let function = all.function(None, "vfs_read");
        assert_eq!(function.map(|f| f.0), found);
        assert!(function.is_none_or(|f| f.1 > 16 && f.1 < 1 << 16), "{function:?}");
        assert_eq!(all.function(Some("no_such_module"), "vfs_read"), None);
    }

    #[test]
    fn symbols_have_modules() {
        let text = b"ffffffff81000000 T _text\nffffffffc0000010 t f\t[m]\n0000000000000000 A hidden\n";
        let all: Vec<_> = symbols(text).collect();
        assert_eq!(all, [([&b"_text"[..], b""], 0xffff_ffff_8100_0000), ([b"f", b"[m]"], 0xffff_ffff_c000_0010)]);
    }

    #[test]
    fn names_do_not_shift_the_fields_of_stat() {
        let text = b"12 (a) b ( 3) S 7 12 12 34816 -1 4194304 1";
        assert_eq!([3, 4, 7, 9].map(|n| stat_word(text, n)), ["S", "7", "34816", "4194304"].map(Some));
        assert_eq!((stat_word(text, 2), stat_word(text, 11), stat_word(b"12 (a", 4)), (None, None, None));
    }

    #[test]
    fn descendants_are_found_and_others_are_not() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let all = descendants(std::process::id() as i32);
        assert!(all.contains(&(child.id() as i32)) && !all.contains(&1), "{all:?}");
        assert!(has_children());
        assert!(!is_kernel_thread(child.id() as i32));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn calls_in_flight_are_parsed_and_running_threads_are_not() {
        let line = "0 0x0 0x7ffd 0x10 0x0 0x0 0x0 0x7ffdc 0x7f3c\n";
        let call = Some((0, [0, 0x7ffd, 0x10, 0, 0, 0]));
        assert_eq!(parse_doing(line), Some(Doing::Blocked { call, sp: 0x7ffdc, pc: 0x7f3c }));
        assert_eq!(parse_doing("running\n"), Some(Doing::Running));
        // An execve whose program has been replaced has the new one's registers.
        for (line, call) in [
            ("59 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffdc 0x7f3c", None),
            ("59 0x0 0x5 0x0 0x0 0x0 0x0 0x7ffdc 0x7f3c", Some((59, [0, 5, 0, 0, 0, 0]))),
        ] {
            assert_eq!(parse_doing(line), Some(Doing::Blocked { call, sp: 0x7ffdc, pc: 0x7f3c }));
        }
        assert_eq!(parse_doing("-1 0x7ffc 0x7f3c\n"), Some(Doing::Blocked { call: None, sp: 0x7ffc, pc: 0x7f3c }));
        for wrong in ["", "0 0x0 0x1", "0 1 2 3 4 5 6 7 8", "-1 0x7ffc", "x 0x0"] {
            assert_eq!(parse_doing(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn when_a_thread_last_ran_is_read_to_the_nanosecond() {
        let text = "sh (1, #threads: 1)\n-----\nse.exec_start                                :      48240806.509223\nse.x : 1.0\n";
        assert_eq!(parse_last_ran(text), Some(48_240_806_509_223));
        for wrong in ["", "se.exec_start : 0.000000\n", "se.exec_start : 12\n", "se.exec_start : 1.5\n"] {
            assert_eq!(parse_last_ran(wrong), None, "{wrong}");
        }
    }
}
