//! Offsets of fields in the kernel's structs, from the kernel's type information (BTF).

/// The layout of the kernel's structs. An offset that a session does not need is 0 or `None`.
#[derive(Clone, Debug, Default)]
pub struct BtfOffsets {
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
    /// Offset of `flags` in `struct task_struct`.
    pub task_flags: i16,
    /// The ids of a task in any namespace.
    pub ids: Ids,
    /// The ids of tasks in the session's pid namespace; none where that is the initial one.
    pub namespace: Option<Namespace>,
    /// The structures of open files, where names of descriptors are wanted.
    pub names: Option<Names>,
    /// Offsets of `cred` in `struct task_struct`, and of `uid` and `gid` in `struct cred`, where filters name those.
    pub users: Option<[i16; 3]>,
    /// The rights of a task, where the session may not see every task ([`crate::frame::Session::only`]).
    pub credentials: Credentials,
    /// The tracepoint `sched_process_exit` has two arguments (Linux 6.16), like `sys_exit`: a program of both may read the
    /// second, which is the result of a call. Else it is read from the registers, which costs a helper.
    pub end_has_two: bool,
}

/// Offsets of the rights that a task has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
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

/// Offsets of the ids that tasks have in a pid namespace other than the initial one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Namespace {
    /// Offset of `thread_pid` in `struct task_struct`.
    pub thread_pid: i16,
    /// Offset of `group_leader` in `struct task_struct`.
    pub group_leader: i16,
    /// Offset in `struct pid` of the number at the namespace's level: `numbers[level].nr`.
    pub number: i16,
}

/// Offsets by which a task's ids in any pid namespace are found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ids {
    /// `task_struct.thread_pid`.
    pub thread_pid: i32,
    /// `task_struct.group_leader`.
    pub group_leader: i32,
    /// `pid.level`.
    pub level: i32,
    /// `pid.numbers`, with that of `upid.nr` added.
    pub numbers: i32,
    /// Bytes of `struct upid`.
    pub upid: i32,
}

/// Offsets of the fields that describe descriptors, by structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// `task_struct.files`, `files_struct.fdt`.
    pub files: [i32; 2],
    /// `fdtable`: `max_fds`, `close_on_exec`, `fd`.
    pub fdtable: [i32; 3],
    /// `file`: `f_path`, `private_data`.
    pub file: [i32; 2],
    /// `path`: `mnt`, `dentry`. They are neighbours.
    pub path: [i32; 2],
    /// `task_struct.fs`, `fs_struct.pwd`.
    pub fs: [i32; 2],
    /// `dentry`: `d_parent`, `d_name.name`, `d_inode`, `d_sb`, `d_op`, `d_hash.pprev`.
    pub dentry: [i32; 6],
    /// `dentry_operations.d_dname`.
    pub dname: i32,
    /// `inode`: `i_ino`, `i_rdev`, `i_mode`.
    pub inode: [i32; 3],
    /// `super_block.s_magic`.
    pub magic: i32,
    /// `mount`: `mnt`, `mnt.mnt_root`, `mnt_parent`, `mnt_mountpoint`.
    pub mount: [i32; 4],
    /// Sockets, where their ends are wanted.
    pub sockets: Option<Sockets>,
}

/// Offsets of the ends of sockets, by structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// `socket`: `sk`, `type`.
    pub socket: [i32; 2],
    /// `sock.sk_protocol`.
    pub protocol: i32,
    /// `sock_common`: `skc_family`, `skc_state`, `skc_num`, `skc_dport`, `skc_daddr`, `skc_rcv_saddr`.
    pub common: [i32; 6],
    /// `sock_common`: `skc_v6_daddr`, `skc_v6_rcv_saddr`; none where the kernel has no IPv6.
    pub v6: Option<[i32; 2]>,
    /// `netlink_sock.portid`.
    pub netlink: Option<i32>,
    /// `unix_sock.addr`, `unix_address`: `len`, `name`.
    pub unix: Option<[i32; 3]>,
}
