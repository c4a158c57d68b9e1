//! Who may watch whom: eBPF asks for capabilities and then shows every process to whoever holds them. A trapline that has its
//! capabilities from its file would lend them to every user of it, so it asks what ptrace would allow that user.

use crate::error::{Error, Result};
use crate::plan::{Plan, Target};
use sys::{proc, process};

/// Refuses what the real user could not do with ptrace. Root may do anything.
pub fn check(plan: &Plan) -> Result<()> {
    let user = process::ruid();
    if user == 0 {
        return Ok(());
    }
    match &plan.target {
        Target::Command(_) => Ok(()),
        Target::All { .. } => Err(Error::failed(
            "-a",
            format!("the whole machine is for root, and uid {user} has started trapline"),
            "run trapline as root; -p shows your own processes",
        )),
        Target::Pids(pids) => {
            let processes: Vec<i32> = pids.iter().map(|p| proc::process_of(*p).unwrap_or(*p)).collect();
            match process::first_refused(&processes) {
                Ok(None) => Ok(()),
                Ok(Some(pid)) => Err(Error::failed(
                    format!("-p {pid}"),
                    format!("uid {user} may not look into it (ptrace(2), access mode checking)"),
                    "run trapline as root, or name a process of your own",
                )),
                Err(e) => Err(Error::failed("-p", e.to_string(), "use --backend ptrace")),
            }
        }
    }
}
