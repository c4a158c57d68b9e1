//! What the programs must know: where this kernel's structs keep what they read, and the settings of the session.

use super::{descriptors, switch, tables, task_ids};
use bpf::btf_offsets::{BtfOffsets, Credentials};
use bpf::capture_row::{Frames, MAX_STRING};
use bpf::syscalls::{Rights, Session};
use engine::capture;
use engine::error::{Error, Result};
use engine::plan::Plan;
use engine::rights::refusal::refused;
use engine::target::Target as PlanTarget;
use std::io;
use sys::btf::{KernelBtf, Kind};

const _: () = assert!(capture::MOST_IN_PROGRAMS == MAX_STRING as usize);

/// The kernel's types, with those found that the session looks for.
pub(super) fn types(plan: &Plan) -> io::Result<KernelBtf> {
    let mut wanted = vec![
        (Kind::Typedef, "btf_trace_sys_enter"),
        (Kind::Typedef, "btf_trace_signal_generate"),
        (Kind::Typedef, "btf_trace_sched_process_fork"),
        (Kind::Typedef, END),
        (Kind::Struct, "task_struct"),
        (Kind::Struct, "signal_struct"),
        (Kind::Struct, "pid"),
        (Kind::Struct, "upid"),
        (Kind::Struct, "k_sigaction"),
        (Kind::Struct, "linux_binprm"),
        (Kind::Struct, "mm_struct"),
    ];
    // Else it is looked for when the command runs: the names of functions are most of all names.
    if sys::proc::pid_namespace().is_some() {
        wanted.push((Kind::Func, "bpf_iter_task"));
    }
    if plan.has_user_stacks() {
        wanted.extend([(Kind::Func, "bpf_loop"), (Kind::Struct, "uprobe_task"), (Kind::Struct, "return_instance")]);
    }
    if plan.fd_names {
        wanted.extend(descriptors::TYPES.iter().map(|name| (Kind::Struct, *name)));
    }
    if plan.fd_names && plan.fd_details {
        wanted.extend(descriptors::SOCKET_TYPES.iter().map(|name| (Kind::Struct, *name)));
    }
    KernelBtf::kernel_for(&wanted)
}

/// The type of the arguments of `sched_process_exit`, after one that belongs to the attachment.
const END: &str = "btf_trace_sched_process_exit";

/// Whether the tracepoint has two arguments.
fn end_has_two(btf: &KernelBtf) -> bool {
    btf.find(Kind::Typedef, END).and_then(|id| btf.prototype(id)).is_some_and(|p| p.params.len() > 2)
}

/// What traced tasks may have, where trapline's user is not root.
fn rights() -> Option<Rights> {
    let uid = sys::process::ruid();
    (uid != 0).then(|| Rights { uid, capabilities: sys::caps::effective().unwrap_or(0) })
}

/// Offsets of the rights of tasks.
fn credentials(of: &impl Fn(&str, &[&str]) -> Result<i16>) -> Result<Credentials> {
    let cred = |name: &str| of("cred", &[name]);
    Ok(Credentials {
        task_cred: of("task_struct", &["cred"])?,
        uids: [cred("uid")?, cred("euid")?, cred("suid")?],
        permitted: cred("cap_permitted")?,
        task_mm: of("task_struct", &["mm"])?,
        mm_flags: of("mm_struct", &["flags"])?,
    })
}

/// What of the session the programs must know, and whose tasks they may follow.
pub(super) fn session(plan: &Plan, filters: Vec<(u32, lang::Filter)>, captures: Option<u8>) -> Session {
    let frames = plan.frames_of_calls();
    Session {
        filters,
        captures,
        frames: Frames { kernel: frames.kstack, user: frames.ustack },
        signals: Some(plan.class_of(&events::generated::P_SIGNAL)).filter(|s| s.id != s.base),
        unknown: plan.named || plan.seen_calls().has_unknown(),
        kinds: tables::kinds(plan),
        switch: switch::first(plan),
        only: rights(),
        hidden: plan.hidden_code(),
        no_entry: plan.no_duration,
        system_wide: matches!(plan.target, PlanTarget::All { .. }),
    }
}

/// Offsets in the kernel's structs, as far as the session needs them.
pub(super) fn offsets(btf: &KernelBtf, plan: &Plan, session: &Session, users: Option<[i16; 3]>) -> Result<BtfOffsets> {
    let of = |what: &str, path: &[&str]| -> Result<i16> {
        btf.field_of(what, path).filter(|f| f.loads.is_empty()).and_then(|f| i16::try_from(f.offset).ok()).ok_or_else(
            || {
                Error::failed(
                    format!("{what}.{}", path.join(".")),
                    "not found in the kernel's type information",
                    "use --backend ptrace",
                )
            },
        )
    };
    let field = |path: &[&str]| of("task_struct", path);
    Ok(BtfOffsets {
        task_signal: field(&["signal"])?,
        signal_flags: of("signal_struct", &["flags"])?,
        signal_exec: of("signal_struct", &["group_exec_task"])?,
        task_tgid: field(&["tgid"])?,
        task_pid: field(&["pid"])?,
        task_exit_code: field(&["exit_code"])?,
        task_files: field(&["files"])?,
        thread_status: field(&["thread_info", "status"])?,
        end_has_two: end_has_two(btf),
        task_flags: field(&["flags"])?,
        credentials: if session.only.is_some() { credentials(&of)? } else { Credentials::default() },
        task_jobctl: field(&["jobctl"])?,
        task_state: field(&["__state"])?,
        task_parent: field(&["real_parent"])?,
        signal_pids: of("signal_struct", &["pids"])?,
        sigaction_handler: of("k_sigaction", &["sa", "sa_handler"])?,
        binprm_filename: of("linux_binprm", &["filename"])?,
        binprm_fdpath: of("linux_binprm", &["fdpath"])?,
        names: if plan.fd_names { descriptors::names(btf, plan.fd_details) } else { None },
        ids: task_ids::offsets(btf).map_err(|e| refused("ids of tasks", &e))?,
        namespace: task_ids::namespace(btf).map_err(|e| refused("ids of the pid namespace", &e))?,
        users,
    })
}

/// Where a task's credentials say who it runs for, as [`BtfOffsets::users`] wants it.
pub(super) fn users(btf: &KernelBtf) -> Option<[i16; 3]> {
    let of = |root: &str, name: &str| {
        let field = btf.field_of(root, &[name]).filter(|f| f.loads.is_empty())?;
        i16::try_from(field.offset).ok()
    };
    Some([of("task_struct", "cred")?, of("cred", "uid")?, of("cred", "gid")?])
}
