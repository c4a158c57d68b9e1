//! One case: what runs before, the command, what runs once the probes are attached, and the judgement.

use super::cases::Case;
use super::expect::{self, Expect};
use crate::lab::User;
use anyhow::{Context, Result};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long the probes may take to be attached; a case's own time on a busy machine; how long what has met its expectation may take to end.
const ATTACHING: Duration = Duration::from_secs(5);
const LEAST: Duration = Duration::from_secs(2);
const ENDING: Duration = Duration::from_secs(2);
/// How long what a program has done may take to be printed, once it has ended; how often that is looked at.
const AFTERWARDS: Duration = Duration::from_millis(700);
const LOOK: Duration = Duration::from_millis(100);
/// So many chunks of output are taken at once.
const FLOOD: usize = 1 << 12;

/// Settings by the names that they had in the environment.
const SETTINGS: [(&str, &str); 2] = [("BPFTRACE_CAT_BYTES_MAX", "max_cat_bytes"), ("BPFTRACE_LOG_SIZE", "log_size")];

/// Where cases run.
pub struct Place {
    /// Has `bin/bpftrace`, `testprogs`, `testlibs` and `runtime`.
    pub dir: PathBuf,
    pub user: User,
}

/// A group of processes, which ends with this value.
struct Group(Child);

impl Group {
    fn start(place: &Place, user: User, text: &str, output: Option<std::io::PipeWriter>) -> Result<Group> {
        let dir = &place.dir;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut sh = user.command(&["sh", "-c", text]);
        sh.current_dir(dir).process_group(0).env("PATH", format!("{}:{path}", dir.join("bin").display()));
        sh.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
        match output {
            Some(to) => sh.stdout(to.try_clone()?).stderr(to),
            None => sh.stdout(Stdio::null()).stderr(Stdio::null()),
        };
        Ok(Group(sh.spawn().with_context(|| format!("cannot start {text}"))?))
    }

    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
    }

    /// The process of the group that has this name.
    fn find(&self, name: &str) -> Option<u32> {
        let id = self.0.id().to_string();
        fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let (start, end) = stat.rsplit_once(')')?;
            let comm = start.split_once('(')?.1;
            // State, parent, group.
            let group = end.split_whitespace().nth(2)?;
            (group == id && comm == &name[..name.len().min(15)]).then_some(pid)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal("-KILL");
        let _ = self.0.wait();
    }
}

/// Runs a case. The error is what is wrong with what it printed.
pub fn run(case: &Case, place: &Place) -> Result<std::result::Result<(), String>> {
    let expected = expect::of(case)?;
    // A file of its own for each case that runs at the same time.
    let text = case.run.replace("/tmp/bpftrace-file-output-test", "/tmp/trapline-bt-suite-output-$$");
    // What is attached is said on stderr: there is no first line to leave out.
    let text = text.replace(" | tail -n +2", "");
    let mut text = text.replace("{{BPFTRACE}}", &bpftrace(case, &place.dir));
    let mut before = None;
    if let Some(command) = &case.before {
        let name = command.split_whitespace().last().and_then(|w| w.rsplit('/').next()).unwrap_or_default();
        let group = Group::start(place, place.user, command, None)?;
        let start = Instant::now();
        let pid = loop {
            match group.find(name) {
                Some(pid) => break pid.to_string(),
                None if start.elapsed() > ATTACHING => return Ok(Err(format!("'{command}' does not start"))),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        text = text.replace("{{BEFORE_PID}}", &pid).replace(&format!("$(pidof {name})"), &pid);
        before = Some(group);
    }
    let (reader, writer) = std::io::pipe()?;
    let group = Group::start(place, place.user, &text, Some(writer))?;
    let mut watched = Watched { case, place, group, output: String::new(), chunks: read(reader), after: None };
    let outcome = watched.judge(&expected)?;
    drop(before);
    Ok(outcome)
}

fn bpftrace(case: &Case, dir: &Path) -> String {
    let mut words = dir.join("bin/bpftrace").display().to_string();
    for (name, value) in &case.env {
        if let Some((_, setting)) = SETTINGS.iter().find(|(n, _)| n == name) {
            words.push_str(&format!(" --config {setting}={value}"));
        }
    }
    words
}

fn read(mut from: std::io::PipeReader) -> Receiver<Vec<u8>> {
    let (to, chunks) = channel();
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut chunk) {
            if to.send(chunk[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    chunks
}

struct Watched<'a> {
    case: &'a Case,
    place: &'a Place,
    group: Group,
    output: String,
    chunks: Receiver<Vec<u8>>,
    after: Option<Group>,
}

impl Watched<'_> {
    fn judge(&mut self, expected: &[Expect]) -> Result<std::result::Result<(), String>> {
        let is_met = |output: &str| expected.iter().all(|e| e.is_met(output));
        let own = Duration::from_secs(self.case.timeout).max(LEAST);
        // It ends by itself, or by its command.
        let ends = self.case.run.contains("exit()") || self.case.run.contains(" -c ") || self.case.will_fail;
        let ticks = ["interval:", " i:", "'i:", "}i:"].iter().any(|clock| self.case.run.contains(clock));
        let (mut until, mut attached, mut met, mut timely) = (Instant::now() + ATTACHING + own, false, false, true);
        let mut ended = None;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.chunks.recv_timeout(left.min(LOOK)) {
                // All that is there, before it is looked at: a case may flood.
                Ok(chunk) => std::iter::once(chunk)
                    .chain(self.chunks.try_iter().take(FLOOD))
                    .for_each(|chunk| self.output.push_str(&String::from_utf8_lossy(&chunk))),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if left > LOOK => {
                    // What it has started may live on, and hold its output open.
                    if ended.is_none() && matches!(self.group.0.try_wait(), Ok(Some(_))) {
                        ended = Some(Instant::now() + AFTERWARDS);
                    }
                    if ended.is_some_and(|at| Instant::now() > at || met) {
                        break;
                    }
                    // Nothing happens behind the program that is traced.
                    if self.after.as_mut().is_some_and(|g| matches!(g.0.try_wait(), Ok(Some(_)))) && !ticks {
                        until = until.min(Instant::now() + AFTERWARDS);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    timely = false;
                    break;
                }
            }
            if !attached && ["Attached ", "\"attached_probes\""].iter().any(|said| self.output.contains(said)) {
                (attached, until) = (true, Instant::now() + own);
                if let Some(command) = &self.case.after {
                    self.after = Some(Group::start(self.place, User::Same, &self.with_pid(command), None)?);
                }
            }
            if !met && is_met(&self.output) {
                (met, until) = (true, Instant::now() + if ends { ENDING } else { Duration::from_millis(50) });
            }
            if Instant::now() > until + LOOK {
                timely = false;
                break;
            }
        }
        if !timely {
            self.group.signal("-TERM");
            let until = Instant::now() + ENDING;
            while let Ok(chunk) = self.chunks.recv_timeout(until.saturating_duration_since(Instant::now())) {
                self.output.push_str(&String::from_utf8_lossy(&chunk));
            }
        }
        let wanted = || self.case.expect.join("\" and \"");
        let printed = || self.output.trim_end().escape_debug().to_string();
        if !is_met(&self.output) {
            let late = if timely { "" } else { ", and does not end" };
            return Ok(Err(format!("wants \"{}\", prints \"{}\"{late}", wanted(), printed())));
        }
        if timely && !self.case.will_fail {
            let status = self.group.0.wait()?;
            if !status.success() {
                return Ok(Err(format!("{status}, prints \"{}\"", printed())));
            }
        }
        Ok(Ok(()))
    }

    /// A command that names bpftrace means the one of this case: there may be others on the machine.
    fn with_pid(&self, command: &str) -> String {
        let pid = self.group.find("bpftrace").unwrap_or_else(|| self.group.0.id()).to_string();
        command.replace("$(pidof bpftrace)", &pid).replace("pkill -SIGINT bpftrace", &format!("kill -INT {pid}"))
    }
}
