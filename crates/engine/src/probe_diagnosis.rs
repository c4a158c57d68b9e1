//! Why did it not fire? Explains an enabling that has recorded nothing, as far as its counters and the target's mappings show.

use crate::maps::Maps;
use crate::plan::Plan;
use crate::provider::{AttachPoint, LeftOut};
use crate::request::enabling::{self, Enabling};
use crate::request::probe_enabling::ProbeEnabling;
use crate::stats::Counts;
use crate::target::Target;
use events::Event;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files of probes, and whether what is traced has mapped them.
pub struct Reach {
    maps: Maps,
    files: Vec<File>,
    own: u32,
    /// Other files of the same names that were mapped.
    others: HashSet<PathBuf>,
}

struct File {
    /// As the probe has it.
    path: PathBuf,
    /// Its path with all links resolved.
    real: PathBuf,
    mapped: bool,
}

impl Reach {
    /// Watches what the targets of a plan map, to be called before the session is started; none where no probe lies in a file, or
    /// where every process of the machine is a target.
    pub fn watch(plan: &Plan) -> Option<Reach> {
        let paths: HashSet<&Path> =
            plan.probes().chain(plan.in_process()).filter_map(|e| e.point.as_ref()?.file()).collect();
        if paths.is_empty() {
            return None;
        }
        let mut maps = Maps::new();
        match &plan.target {
            // Watches whatever the caller starts from now on.
            Target::Command(_) => maps.watch_command(0),
            Target::Pids(pids) => pids.iter().for_each(|pid| drop(maps.watch_pid(*pid))),
            Target::All { .. } => return None,
        }
        let file = |path: &Path| File {
            path: path.into(),
            real: std::fs::canonicalize(path).unwrap_or_else(|_| path.into()),
            mapped: false,
        };
        let files = paths.into_iter().map(file).collect();
        Some(Reach { maps, files, own: sys::process::own_pid() as u32, others: HashSet::new() })
    }

    /// Takes what has been mapped since the last time.
    pub fn look(&mut self) {
        let Reach { maps, files, own, others } = self;
        maps.drain(|bytes| {
            let Ok(ev) = Event::parse(bytes) else { return };
            if ev.pid() == *own {
                return;
            }
            let path = Path::new(OsStr::from_bytes(ev.bytes_of("path")));
            for file in files.iter_mut().filter(|f| !f.mapped) {
                if path == file.real {
                    file.mapped = true;
                } else if path.file_name() == file.real.file_name() {
                    others.insert(path.into());
                }
            }
        });
    }

    /// Why nothing in this file was reached, if it was not mapped.
    fn of(&self, path: &Path) -> Option<String> {
        let file = self.files.iter().find(|f| f.path == path && !f.mapped)?;
        let link = path.is_absolute() && file.real != path;
        let real = if link { format!(" ({})", file.real.display()) } else { String::new() };
        let other = self.others.iter().find(|o| o.file_name() == path.file_name());
        let other = other.map(|o| format!("; {} was", o.display())).unwrap_or_default();
        Some(format!("{}{real} was never executed or mapped by the target{other}", path.display()))
    }
}

/// Lines on what an enabling has not seen: places without a breakpoint, returns that are missing; then one for each that has recorded
/// nothing: why, as far as can be known. `counts` are those of enablings, by number.
pub fn explain(plan: &Plan, counts: &[(u32, Counts)], reach: Option<&Reach>) -> Vec<String> {
    let counted = enabling::counted(&plan.enablings, counts);
    let late = matches!(plan.target, Target::Pids(_));
    // What was lost comes first: of many lines, not all are shown.
    let (mut lost, mut silent) = (Vec::new(), Vec::new());
    let of_file = |(e, n)| {
        let e: &Enabling = e;
        Some((
            e.probe()
                .map(|p| (p, "the kernel can put no breakpoint"))
                .or_else(|| Some((e.in_process()?, "no jump can be put")))?,
            n,
        ))
    };
    for ((e, cannot), n) in counted.into_iter().filter_map(of_file) {
        if !n.refused.is_empty() {
            let (k, first) = (n.refused.len(), first_of(&n.refused));
            lost.push(format!("{}: {cannot} at {k} of its places: {first}", e.name));
        }
        lost.extend(e.watches.unwatched(&e.name));
        let left_out = |LeftOut { why, probes }: &LeftOut| format!("skipped, because {why}: {}", first_of(probes));
        lost.extend(e.left_out.iter().map(left_out));
        if n.recorded == 0 && (n.refused.is_empty() || !e.members.is_empty()) {
            silent.push(format!("{}: nothing recorded: {}", e.name, why(e, n, reach, late)));
        }
        if n.without_return() > 0 {
            let (open, all) = (n.without_return(), n.entered.unwrap_or(0));
            let why = "nested deeper than 64, which the kernel does not follow, left by longjmp or an exception, or still running";
            lost.push(format!("{}: {open} of {all} calls without a return: {why}", e.name));
        }
    }
    lost.append(&mut silent);
    lost
}

/// The first of some names.
fn first_of(names: &[String]) -> String {
    let more = if names.len() > 3 { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(3)].join(", "))
}

fn why(e: &ProbeEnabling, n: &Counts, reach: Option<&Reach>, late: bool) -> String {
    let missed = if n.missed > 0 {
        format!("missed {} times, because its program was already running on that CPU", n.missed)
    } else {
        String::new()
    };
    if n.seen > 0 {
        let mut all = Vec::new();
        let parts = e.filter.iter().flat_map(|f| f.parts()).zip(&n.parts);
        let by: Vec<(u64, &str)> = parts.filter(|(_, n)| **n > 0).map(|(p, n)| (*n, p.text.as_str())).collect();
        match by[..] {
            [(k, part)] if k == n.seen => all.push(format!("all {k} filtered by '{part}'")),
            _ => all.extend(by.iter().map(|(k, part)| format!("{k} filtered by '{part}'"))),
        }
        if n.dropped > 0 {
            all.push(format!("{} dropped (see --buffer)", n.dropped));
        }
        all.extend((!missed.is_empty()).then_some(missed));
        return all.join(", ");
    }
    if !missed.is_empty() {
        return missed;
    }
    let file = e.point.as_ref().and_then(|p| p.file());
    if let Some(why) = file.zip(reach).and_then(|(path, reach)| reach.of(path)) {
        return why;
    }
    if let Some(AttachPoint::Clock { every_cpu: true, .. }) = &e.point {
        let why = "the target was on no processor when the clock ticked";
        return format!("{why} (a faster clock may see it; 'trapline profile --wall' shows where it waits)");
    }
    match late {
        true => "never reached since trapline attached (what came before is not known)".into(),
        false => "never reached".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::captures::Captures;
    use crate::request::parse::Request;
    use crate::request::probe_enabling::enable;

    #[test]
    fn what_is_known_is_said() {
        let own = std::env::current_exe().unwrap();
        let text = format!("uprobe:{}:main /pid == 1 && tid == 2/", own.display());
        let enabled =
            enable(&[Request::parse(&text).unwrap()], Captures::default(), &Target::Pids(Vec::new())).unwrap();
        let e = &enabled[0];
        let counts = |seen, parts: &[u64], missed| Counts {
            seen,
            filtered: parts.iter().sum(),
            parts: parts.to_vec(),
            missed,
            ..Counts::default()
        };
        assert_eq!(why(e, &counts(3, &[3, 0], 0), None, false), "all 3 filtered by 'pid == 1'");
        let both = "1 filtered by 'pid == 1', 2 filtered by 'tid == 2', missed 5 times, because its program was already running on that CPU";
        assert_eq!(why(e, &counts(3, &[1, 2], 5), None, false), both);
        assert_eq!(
            why(e, &counts(0, &[0, 0], 5), None, false),
            "missed 5 times, because its program was already running on that CPU"
        );
        assert_eq!(why(e, &counts(0, &[0, 0], 0), None, false), "never reached");
        let file = |mapped| File { path: own.clone(), real: own.clone(), mapped };
        let reach = |mapped| Reach {
            maps: Maps::new(),
            files: vec![file(mapped)],
            own: 0,
            others: HashSet::from([Path::new("/other").join(own.file_name().unwrap())]),
        };
        let said = why(e, &counts(0, &[0, 0], 0), Some(&reach(false)), false);
        assert!(said.contains("was never executed or mapped by the target; /other/"), "{said}");
        assert!(why(e, &counts(0, &[0, 0], 0), Some(&reach(true)), true).starts_with("never reached since"));
    }
}
