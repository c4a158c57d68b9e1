//! Where text goes: stderr, a file, a command, or a file per thread. The first failure is kept for the caller;
//! what follows is dropped and counted.

mod whole_file;

use engine::{Error, Result};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};
use views::Spill;
use whole_file::Unfinished;

/// A destination.
pub struct Output {
    target: Target,
    buf: Vec<u8>,
    /// The events in the buffer: where each ends, and its class.
    pending: Vec<(usize, u16)>,
    /// Classes of the events that were taken and then could not be written.
    lost: Vec<u16>,
    name: String,
    failed: bool,
    /// There was something to write.
    used: bool,
    /// A command runs meanwhile, which a failure does not stop.
    live: bool,
    trouble: Option<Error>,
    /// A file that gets its name when it is closed.
    unfinished: Option<Unfinished>,
}

enum Target {
    Stderr,
    Stdout,
    /// Nowhere: somebody takes it from the buffer, and writes it among other lines.
    Kept,
    File(File),
    Pipe(Child),
    /// `-ff -o FILE`: FILE.TID
    PerThread {
        base: OsString,
        append: bool,
        files: HashMap<u32, File>,
    },
}

const FULL: usize = 64 * 1024;

impl Output {
    /// Opens what `-o`, `-A` and `-ff` ask for; none is stderr.
    pub fn open(path: Option<&OsString>, append: bool, per_thread: bool) -> Result<Output> {
        let mut name = "stderr".to_string();
        let target = match path {
            None => Target::Stderr,
            Some(p) => {
                name = format!("-o {}", p.to_string_lossy());
                if per_thread {
                    Target::PerThread { base: p.clone(), append, files: HashMap::new() }
                } else if let Some(cmd) = p.as_bytes().strip_prefix(b"|") {
                    Target::Pipe(spawn(OsStr::from_bytes(cmd)).map_err(|e| cannot(&name, &e))?)
                } else {
                    Target::File(create(p, append).map_err(|e| cannot(&name, &e))?)
                }
            }
        };
        Ok(Output::to(target, name))
    }

    /// Opens the file of a view (`--as VIEW=FILE`), which is there when it is closed and whole; none is stdout.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn view(path: Option<&str>) -> Result<Output> {
        Output::of_view(path, whole_file::create)
    }

    /// Opens the file of a view that is read while a recording goes on; none is stdout.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn growing(path: Option<&str>) -> Result<Output> {
        Output::of_view(path, |path| Ok((whole_file::direct(path)?, None)))
    }

    fn of_view(
        path: Option<&str>,
        open: impl FnOnce(&Path) -> io::Result<(File, Option<Unfinished>)>,
    ) -> Result<Output> {
        let Some(path) = path else { return Ok(Output::stdout()) };
        let name = format!("--as …={path}");
        let (file, unfinished) = open(Path::new(path)).map_err(|e| cannot(&name, &e))?;
        Ok(Output { unfinished, ..Output::to(Target::File(file), name) })
    }

    /// Standard output.
    pub fn stdout() -> Output {
        Output::to(Target::Stdout, "stdout".into())
    }

    /// Text that is taken from the [`buffer`](Output::buffer).
    pub fn kept() -> Output {
        Output::to(Target::Kept, String::new())
    }

    fn to(target: Target, name: String) -> Output {
        let buf = Vec::with_capacity(FULL * 2);
        Output {
            target,
            buf,
            pending: Vec::new(),
            lost: Vec::new(),
            name,
            failed: false,
            used: false,
            live: true,
            trouble: None,
            unfinished: None,
        }
    }

    /// For recorded events: no command is running, and a reader that has seen enough is not a failure.
    pub fn of_the_past(mut self) -> Output {
        self.live = false;
        self
    }

    /// Why something could not be written; once. A reader that has seen enough is not a failure.
    pub fn take_trouble(&mut self) -> Option<Error> {
        self.trouble.take()
    }

    /// Whether lines go to a file (or command), and so carry the thread on every line.
    pub fn is_file(&self) -> bool {
        !matches!(self.target, Target::Stderr)
    }

    /// Whether lines go where stdout goes.
    pub fn is_stdout(&self) -> bool {
        let file =
            |fd: io::Result<std::os::fd::OwnedFd>| File::from(fd?).metadata().map(|m| (m.dev(), m.ino(), m.rdev()));
        let stdout = || file(io::stdout().as_fd().try_clone_to_owned());
        match self.target {
            Target::Stdout => true,
            Target::Stderr => {
                let stderr = file(io::stderr().as_fd().try_clone_to_owned());
                stderr.is_ok_and(|stderr| stdout().is_ok_and(|stdout| stdout == stderr))
            }
            _ => false,
        }
    }

    /// Whether a person reads the output: it goes to a terminal.
    pub fn is_terminal(&self) -> bool {
        match self.target {
            Target::Stderr => sys::process::is_terminal(&io::stderr()),
            Target::Stdout => sys::process::is_terminal(&io::stdout()),
            _ => false,
        }
    }

    /// The descriptors that lead to where the text goes, or to where it goes on from there.
    pub fn descriptors(&self) -> Vec<i32> {
        match &self.target {
            Target::Stderr => vec![2],
            Target::Stdout => vec![1],
            Target::File(f) => vec![f.as_raw_fd()],
            // The command inherits trapline's own outputs.
            Target::Pipe(_) => vec![1, 2],
            Target::PerThread { .. } | Target::Kept => vec![],
        }
    }

    /// Whether each thread has its own file.
    pub fn is_per_thread(&self) -> bool {
        matches!(self.target, Target::PerThread { .. })
    }

    /// Whether there was anything to write so far.
    pub fn has_written(&self) -> bool {
        self.used || !self.buf.is_empty()
    }

    /// Whether what is written is lost.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// The buffer that views append to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    /// After an event of class `id` of thread `tid`: writes when enough has gathered.
    #[inline]
    pub fn event_done(&mut self, tid: u32, id: u16) {
        // An event of a table has no line that could be lost.
        if !self.buf.is_empty() {
            self.pending.push((self.buf.len(), id));
        }
        if let Target::PerThread { base, append, files } = &mut self.target {
            let res = match per_thread(base, *append, files, tid) {
                Ok(f) => write(f, &self.buf),
                Err(e) => Err((0, e)),
            };
            self.settle(res);
        } else if self.buf.len() >= FULL {
            self.flush();
        }
    }

    /// Writes lines of several events that nobody counts.
    pub fn write_lines(&mut self, text: &[u8]) {
        let is_kept = matches!(self.target, Target::Kept);
        if self.buf.is_empty() && text.len() >= FULL && !is_kept {
            // A large write is not copied into the buffer first.
            let res = self.put(text);
            return self.settle(res);
        }
        self.buf.extend_from_slice(text);
        if self.buf.len() >= FULL {
            self.flush();
        }
    }

    /// Appends what is made part by part: each part is written before the next one.
    pub fn parts(&mut self, make: impl FnOnce(&mut Vec<u8>, Spill<'_>)) {
        let mut text = std::mem::take(&mut self.buf);
        make(&mut text, &mut |part| {
            if !matches!(self.target, Target::Kept) {
                std::mem::swap(&mut self.buf, part);
                self.flush();
                std::mem::swap(&mut self.buf, part);
            }
        });
        self.buf = text;
    }

    /// Writes everything.
    pub fn flush(&mut self) {
        if self.buf.is_empty() || matches!(self.target, Target::Kept) {
            return;
        }
        let buf = std::mem::take(&mut self.buf);
        let res = self.put(&buf);
        self.buf = buf;
        self.settle(res);
    }

    fn put(&mut self, bytes: &[u8]) -> std::result::Result<(), (usize, io::Error)> {
        self.used |= !bytes.is_empty();
        match &mut self.target {
            _ if self.failed => Err((0, io::ErrorKind::Other.into())),
            Target::Stderr => write(&mut io::stderr(), bytes),
            // What it would hold back (of a line that is not complete) counts as written only when it is.
            Target::Stdout => write(&mut io::stdout(), bytes).and_then(|()| io::stdout().flush().map_err(|e| (0, e))),
            Target::File(f) => write(f, bytes),
            Target::Pipe(c) => c.stdin.as_mut().map_or(Ok(()), |s| write(s, bytes)),
            Target::PerThread { .. } | Target::Kept => Ok(()),
        }
    }

    /// What the buffer held is written, or lost from the first event on that was not written whole.
    fn settle(&mut self, res: std::result::Result<(), (usize, io::Error)>) {
        if let Err((written, e)) = res {
            self.lost.extend(self.pending.iter().filter(|(end, _)| *end > written).map(|(_, id)| *id));
            self.note_failure(&e);
        }
        self.pending.clear();
        self.buf.clear();
    }

    /// The classes of the events that were taken and then could not be written.
    pub fn take_lost(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.lost)
    }

    fn note_failure(&mut self, e: &io::Error) {
        if self.failed {
            return;
        }
        self.failed = true;
        let closed = e.kind() == io::ErrorKind::BrokenPipe;
        // Whoever reads has seen enough (| head).
        if closed && (!self.live || matches!(self.target, Target::Stdout)) {
            return;
        }
        let todo = match self.live {
            true => "the target continues; the rest is counted as dropped",
            false => "choose a place with enough space",
        };
        self.trouble = Some(Error::failed(&self.name, without_number(e), todo));
    }

    /// Writes what is left, gives a file that is whole its name, and waits for a command that reads.
    pub fn close(&mut self) {
        self.flush();
        if let Some(unfinished) = self.unfinished.take()
            && !self.failed
            && let Err(e) = unfinished.finish()
        {
            self.note_failure(&e);
        }
        if let Target::Pipe(c) = &mut self.target {
            drop(c.stdin.take());
            let _ = c.wait();
        }
    }
}

/// Writes all of `b`; an error says how many bytes were written before it.
fn write(to: &mut impl Write, b: &[u8]) -> std::result::Result<(), (usize, io::Error)> {
    let mut done = 0;
    while done < b.len() {
        match to.write(&b[done..]) {
            Ok(0) => return Err((done, io::ErrorKind::WriteZero.into())),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err((done, e)),
        }
    }
    Ok(())
}

fn per_thread<'f>(base: &OsStr, append: bool, files: &'f mut HashMap<u32, File>, tid: u32) -> io::Result<&'f mut File> {
    Ok(match files.entry(tid) {
        std::collections::hash_map::Entry::Occupied(e) => e.into_mut(),
        std::collections::hash_map::Entry::Vacant(v) => {
            let mut path = base.to_os_string();
            path.push(format!(".{tid}"));
            v.insert(create(&path, append)?)
        }
    })
}

fn create(path: &OsStr, append: bool) -> io::Result<File> {
    whole_file::private().append(append).truncate(!append).create(true).open(path)
}

/// Prints one error line on stderr; a closed stderr changes nothing.
pub fn complain(message: &str) {
    let mut line = b"trapline: ".to_vec();
    views::escape::line(message.as_bytes(), &mut line);
    line.push(b'\n');
    let _ = io::stderr().write_all(&line);
}

/// Prints what a command has to say; the status that it ends with.
pub fn to_stdout(text: &[u8]) -> Result<u8> {
    print(io::stdout().write_all(text))
}

/// Checks that the output was written. A reader that has seen enough (`| head`) is not a failure.
pub fn print(printed: io::Result<()>) -> Result<u8> {
    match printed.and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(0),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(e) => Err(Error::failed("stdout", without_number(&e), "choose a place with enough space")),
    }
}

/// An error in words, without its number.
pub fn without_number(e: &io::Error) -> String {
    let why = e.to_string();
    why.split(" (os error").next().unwrap_or_default().to_string()
}

fn spawn(cmd: &OsStr) -> io::Result<Child> {
    sys::process::command("/bin/sh").arg("-c").arg(cmd).stdin(Stdio::piped()).spawn()
}

fn cannot(name: &str, e: &io::Error) -> Error {
    Error::failed(name, without_number(e), "choose a file that you may write")
}
