//! What programs of calls are made for: the session's maps, the kernel's structs, whose tasks, and where they are attached.

#[cfg(doc)]
use super::{plan, state};
use crate::scratch::Shape;

/// The maps that the programs use.
#[derive(Clone, Debug)]
pub struct Maps {
    /// Task storage of [`state::SIZE`] bytes.
    pub tasks: i32,
    /// Array of scratch buffers by CPU.
    pub scratch: i32,
    /// What those are made for.
    pub shape: Shape,
    /// Ring buffers by CPU.
    pub rings: Vec<i32>,
    /// Array of [`plan::ROW`] bytes by call number; its size is `rows`.
    pub rows: i32,
    /// Number of rows.
    pub row_count: i32,
    /// Hash from [`plan::switch_key`] to two ops, of entry and of exit.
    pub switches: i32,
}

/// What a traced task may be, as ptrace(2) has it: of one user, without a capability that the tracer does not have, and dumpable (a
/// program that its user may not read is not).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Real user of the session.
    pub uid: u32,
    /// Capabilities, as bits.
    pub capabilities: u64,
    /// Offset of `cred` in `struct task_struct`.
    pub task_cred: i16,
    /// Offsets of `uid`, `euid`, `suid` in `struct cred`.
    pub uids: [i16; 3],
    /// Offset of `cap_permitted` in `struct cred`.
    pub permitted: i16,
    /// Offset of `mm` in `struct task_struct`.
    pub task_mm: i16,
    /// Offset of `flags` in `struct mm_struct`.
    pub mm_flags: i16,
}

/// What the kernel's structs look like, and how the session names processes.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Offset of `tgid` in `struct task_struct`.
    pub task_tgid: i16,
    /// Offset of `pid` in `struct task_struct`.
    pub task_pid: i16,
    /// Offset of `exit_code` in `struct task_struct`.
    pub task_exit_code: i16,
    /// Offset of `files` in `struct task_struct`.
    pub task_files: i16,
    /// Offset of `thread_info.status` in `struct task_struct`, whose bit TS_COMPAT marks 32-bit calls.
    pub thread_status: i16,
    /// Offset of `signal` in `struct task_struct`.
    pub task_signal: i16,
    /// Offset of `flags` in `struct signal_struct`.
    pub signal_flags: i16,
    /// Offset of `group_exec_task` in `struct signal_struct`.
    pub signal_exec: i16,
    /// Offset of `jobctl` in `struct task_struct`.
    pub task_jobctl: i16,
    /// Offset of `__state` in `struct task_struct`.
    pub task_state: i16,
    /// Offset of `real_parent` in `struct task_struct`.
    pub task_parent: i16,
    /// Offset of `pids` in `struct signal_struct`.
    pub signal_pids: i16,
    /// Offset of `sa.sa_handler` in `struct k_sigaction`.
    pub sigaction_handler: i16,
    /// Offset of `filename` in `struct linux_binprm`.
    pub binprm_filename: i16,
    /// Offset of `fdpath` in `struct linux_binprm`.
    pub binprm_fdpath: i16,
    /// Where the ids of a task stand in any namespace.
    pub ids: super::iter::Offsets,
    /// Names of descriptors are wanted, and found here.
    pub names: Option<super::Names>,
    /// The tracepoint `sched_process_exit` has two arguments (Linux 6.16), as `sys_exit` has: a program of both may look at the second,
    /// which is the result of a call. Else it is read from the registers, which costs a helper.
    pub end_has_two: bool,
    /// The kinds of ops that the rows have, a bit each ([`plan::kinds`]): what is not there costs the verifier nothing. None: all.
    pub kinds: Option<u32>,
    /// Some calls have captures: a thread's name, stacks. So many frames at the top of a stack of the kernel are the programs' own.
    pub captures: Option<u8>,
    /// Calls that no row describes, and 32-bit ones, are wanted.
    pub unknown: bool,
    /// The session can be stopped, and its calls chosen anew: what [`crate::scratch::SWITCH`] says at first.
    pub switch: Option<u64>,
    /// Filters of the selected calls by their numbers, sorted, all of one text; empty: all events pass.
    pub filters: Vec<(u32, lang::Filter)>,
    /// Offset of `flags` in `struct task_struct`.
    pub task_flags: i16,
    /// Every process is traced but those whose task storage says [`state::LEFT_OUT`] or [`state::OWN`]; else only those with task
    /// storage are.
    pub whole: bool,
    /// For whom the session is, where that is not root: a task that executes a program with other rights is let go.
    pub only: Option<Rights>,
    /// Where ids in the session's pid namespace stand, none for the initial one.
    pub namespace: Option<Namespace>,
    /// Offsets of `cred` in `struct task_struct`, and of `uid` and `gid` in `struct cred`, where filters name those.
    pub credentials: Option<[i16; 3]>,
}

impl Target {
    /// Where users and groups are found, where that is known.
    pub(crate) fn find_ids(&self, places: &mut crate::filter::Places) {
        use crate::filter::Place::Credential;
        if let Some([cred, uid, gid]) = self.credentials {
            (places.uid, places.gid) = (Credential(cred, uid), Credential(cred, gid));
        }
    }
}

/// Where the ids of tasks stand as a pid namespace other than the initial one knows them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Namespace {
    /// Offset of `thread_pid` in `struct task_struct`.
    pub thread_pid: i16,
    /// Offset of `group_leader` in `struct task_struct`.
    pub group_leader: i16,
    /// Offset in `struct pid` of the number at the namespace's level: `numbers[level].nr`.
    pub number: i16,
}

/// Where the programs of calls are attached, which decides what their context looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `sys_enter` (tp_btf) and `sys_exit` (a raw tracepoint): { pt_regs, number } and { pt_regs, result }. Every task of the
    /// machine passes there.
    All,
    /// The tracepoints of single calls, `syscalls:sys_enter_NAME`: `{ u64 common, int number, long arguments[] }` and
    /// `{ u64 common, int number, long result }`. Other calls do not notice. With the call's number of arguments: the kernel
    /// refuses a program that reads beyond them.
    Single(u8),
}
