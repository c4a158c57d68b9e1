//! The peak memory of a tracer: of the process that was started and of those of its descendants that are the same program.

use super::measure::Case;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// Runs a case once and sums up the peaks (VmHWM) of its tracer's processes, in KiB. The kernel keeps the peak, so that
/// it does not matter when we look, only that we look near the end too.
pub fn peak_kib(case: &Case) -> Result<u64> {
    let mut command = case.command();
    let mut child = command.stderr(Stdio::null()).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let root = child.id();
    let program = exe(root).context("cannot tell what was started")?;
    let mut peaks = Peaks { program, known: BTreeMap::new(), traced: HashSet::new() };
    let status = loop {
        for pid in family(root) {
            peaks.look(pid);
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(Duration::from_millis(2));
    };
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(peaks.known.values().sum())
}

struct Peaks {
    program: PathBuf,
    known: BTreeMap<u32, u64>,
    /// What turned out to be another program: the traced command, which is the tracer's copy until its execve.
    traced: HashSet<u32>,
}

impl Peaks {
    fn look(&mut self, pid: u32) {
        let Some(exe) = exe(pid) else { return };
        if exe != self.program {
            self.traced.insert(pid);
            self.known.remove(&pid);
        }
        if let (false, Some(peak)) = (self.traced.contains(&pid), high_water(pid)) {
            self.known.insert(pid, peak);
        }
    }
}

fn exe(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// VmHWM in KiB; a process that is just ending has none any more.
pub fn high_water(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// A process and all its descendants.
pub fn family(root: u32) -> Vec<u32> {
    let parents: BTreeMap<u32, u32> = processes().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&pid) = family.get(next) {
        family.extend(parents.iter().filter(|(_, parent)| **parent == pid).map(|(child, _)| *child));
        next += 1;
    }
    family
}

fn processes() -> Vec<u32> {
    let names = fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything; the fields after it do not contain a parenthesis.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{family, high_water, parent};

    #[test]
    fn we_are_in_our_own_family() {
        let me = std::process::id();
        assert_eq!(family(me)[0], me);
        assert!(high_water(me).is_some_and(|kib| kib > 100));
        assert!(parent(me).is_some());
    }
}
