//! The processes that read trapline's output: the owner of the terminal's other end, or the readers of the pipe. With `-a`, their calls
//! would be shown, written, read and shown again, without end.
//!
//! ```text
//! our descriptor ─► pts N, pipe ─► who holds ptmx with `tty-index: N`, who reads the pipe ─► what that one writes to ─► …
//! ```

use std::collections::HashSet;
use sys::{proc, process};

/// A destination that another process reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Sink {
    /// A pseudoterminal, by its number.
    Terminal(u32),
    /// A pipe, as `/proc/PID/fd` names it.
    Pipe(Vec<u8>),
    /// A socket: its other end is not known.
    Socket,
}

/// The processes not to trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readers {
    /// Processes that read what is written, or what they make of it.
    pub pids: Vec<i32>,
    /// The reader of some output could not be found.
    pub unknown: bool,
}

/// The processes that read from these descriptors of the calling process.
pub fn of(fds: &[i32]) -> Readers {
    let own = process::own_pid();
    let mut next: Vec<Sink> = fds.iter().filter_map(|fd| sink(own, *fd)).collect();
    if next.is_empty() {
        return Readers::default();
    }
    let others = proc::processes().into_iter().filter(|p| *p != own);
    let all: Vec<Process> = others.map(|pid| Process { pid, links: links(pid) }).collect();
    let (mut found, mut known) = (Readers::default(), HashSet::new());
    for sink in &next {
        found.unknown |= !all.iter().any(|p| p.reads(sink));
    }
    while let Some(sink) = next.pop() {
        if !known.insert(sink.clone()) {
            continue;
        }
        for p in &all {
            if !found.pids.contains(&p.pid) && p.reads(&sink) {
                found.pids.push(p.pid);
                next.extend(p.writes());
            }
        }
    }
    found.pids.sort_unstable();
    found
}

fn links(pid: i32) -> Vec<(i32, Vec<u8>)> {
    proc::fds(pid).unwrap_or_default().into_iter().filter_map(|fd| Some((fd, proc::fd_link(pid, Some(fd))?))).collect()
}

fn sink(pid: i32, fd: i32) -> Option<Sink> {
    let link = proc::fd_link(pid, Some(fd))?;
    if link == b"/dev/tty" { proc::terminal(pid).map(Sink::Terminal) } else { of_link(&link) }
}

fn of_link(link: &[u8]) -> Option<Sink> {
    if let Some(n) = link.strip_prefix(b"/dev/pts/") {
        return std::str::from_utf8(n).ok()?.parse().ok().map(Sink::Terminal);
    }
    match link {
        l if l.starts_with(b"pipe:[") => Some(Sink::Pipe(l.to_vec())),
        l if l.starts_with(b"socket:[") => Some(Sink::Socket),
        l if is_fifo(l) => Some(Sink::Pipe(l.to_vec())),
        _ => None,
    }
}

fn is_fifo(link: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::FileTypeExt;
    link.starts_with(b"/")
        && std::fs::metadata(std::ffi::OsStr::from_bytes(link)).is_ok_and(|m| m.file_type().is_fifo())
}

/// A process, and where its descriptors lead.
struct Process {
    pid: i32,
    links: Vec<(i32, Vec<u8>)>,
}

impl Process {
    /// Whether it is at the other end.
    fn reads(&self, sink: &Sink) -> bool {
        self.links.iter().any(|(fd, link)| match sink {
            Sink::Terminal(n) => link.ends_with(b"/ptmx") && proc::tty_index(self.pid, *fd) == Some(*n),
            Sink::Pipe(name) => link == name && proc::fd_can_read(self.pid, *fd),
            Sink::Socket => false,
        })
    }

    /// Where it passes on what it reads: its output, and every terminal that it holds (a multiplexer is handed those of its
    /// clients).
    fn writes(&self) -> Vec<Sink> {
        let out = |(fd, link): &&(i32, Vec<u8>)| matches!(fd, 1 | 2) || link.starts_with(b"/dev/pts/");
        let to = self.links.iter().filter(out).filter_map(|(_, link)| match &link[..] {
            b"/dev/tty" => proc::terminal(self.pid).map(Sink::Terminal),
            link => of_link(link),
        });
        to.filter(|s| *s != Sink::Socket).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn links_name_what_they_lead_to() {
        assert_eq!(of_link(b"/dev/pts/12"), Some(Sink::Terminal(12)));
        assert_eq!(of_link(b"/dev/pts/ptmx"), None);
        assert_eq!(of_link(b"pipe:[77]"), Some(Sink::Pipe(b"pipe:[77]".to_vec())));
        assert_eq!(of_link(b"socket:[1]"), Some(Sink::Socket));
        assert_eq!(of_link(b"/dev/null"), None);
    }

    #[test]
    fn files_have_no_reader_and_a_pipe_has_the_one_at_its_end() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(of(&[null.as_raw_fd()]), Readers::default());
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let end = child.stdin.take().unwrap();
        let found = of(&[end.as_raw_fd()]);
        assert!(found.pids.contains(&(child.id() as i32)) && !found.unknown, "{found:?}");
        drop(end);
        child.wait().unwrap();
        // No other process has the reading end of this one.
        let (read, write) = sys::process::pipe().unwrap();
        assert_eq!(of(&[write.as_raw_fd()]), Readers { pids: vec![], unknown: true });
        drop(read);
    }
}
