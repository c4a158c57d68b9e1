//! Which processes the tables for user stacks are kept for, and what is reported of that.

use super::unwinder::{Counts, Room, Target, Unwinder};
use engine::error::{Error, Result};
use engine::plan::{Plan, Unwind};
use engine::provider::AttachPoint;
use engine::target::Target as PlanTarget;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use sys::btf::KernelBtf;

/// The unwinder of a session, whose `command` waits; none where user stacks are found by frame pointers.
///
/// # Errors
/// Tables were asked for, and this kernel cannot walk them.
pub fn make(plan: &Plan, btf: &KernelBtf, command: Option<i32>) -> Result<Option<Unwinder>> {
    if plan.unwind == Unwind::FramePointers {
        return Ok(None);
    }
    let room = if matches!(plan.target, PlanTarget::All { .. }) { Room::machine() } else { Room::SOME };
    let made = Unwinder::possible(btf).and_then(|()| Unwinder::new(btf, room).map_err(|e| e.to_string()));
    let mut unwinder = match (made, plan.unwind) {
        (Ok(unwinder), _) => unwinder,
        (Err(why), Unwind::Tables) => return Err(Error::failed("--unwind tables", why, "use --unwind fp")),
        (Err(_), _) => return Ok(None),
    };
    if plan.samples_stacks() && !matches!(plan.target, PlanTarget::All { .. }) {
        unwinder.hurry();
    }
    // A library may be loaded only when its function is called: its tables are there by then.
    let probed = plan.probes().filter_map(|e| match &e.point {
        Some(AttachPoint::File(point)) => point.path(),
        _ => None,
    });
    probed.for_each(|path| unwinder.expect(path));
    match &plan.target {
        PlanTarget::Command(cmd) => {
            unwinder.expect(Path::new(OsStr::from_bytes(cmd.path.to_bytes())));
            command.into_iter().for_each(|pid| unwinder.watch(Target::Command(pid as u32)));
        }
        PlanTarget::Pids(pids) => {
            let processes = pids.iter().map(|pid| sys::proc::process_of(*pid).unwrap_or(*pid));
            processes.for_each(|pid| unwinder.watch(Target::Process(pid as u32)));
        }
        PlanTarget::All { .. } => unwinder.watch(Target::Machine),
    }
    Ok(Some(unwinder))
}

/// What was counted, by name.
pub fn counted(c: &Counts) -> Vec<(&'static str, u64)> {
    vec![
        ("modules", c.built),
        ("bytes", c.bytes),
        ("build_ns", c.build_ns),
        ("unknown_rows", c.unknown_rows),
        ("evicted", c.evicted),
        ("too_large", c.too_large),
        ("unreadable", c.unreadable),
        ("without_tables", c.without),
        ("crowded", c.crowded),
        ("no_room", c.no_room),
        ("lost_records", c.lost),
        ("snapshots", c.snapshots),
        ("updates", c.updates),
    ]
}
