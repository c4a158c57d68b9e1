//! What takes long is done by threads of its own: tables are built, chunks are put in their places.

use super::maps::Maps;
use engine::backend::elf_file;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use sys::bpf::map::Map;
use sys::priority::Urgency;
use unwind::build::Module;

/// The most threads that build.
const MAX_THREADS: usize = 4;

/// What a module is built from.
pub(super) enum Source {
    File(File),
    Bytes(Vec<u8>),
}

/// What is to be done.
pub(super) enum Job {
    /// The tables of the module of this number.
    Build(u32, Source),
    /// Chunks go to their places.
    Put(Vec<(u32, Map)>),
}

/// What was done.
pub(super) enum Done {
    /// A module, or why it has no tables; how many ns it took.
    Built(u32, Result<Module, String>, u64),
    /// These chunks are in their places.
    Put(Vec<u32>),
}

/// Wakes a thread that waits for a descriptor.
pub(super) struct Waker(UnixStream);

impl Waker {
    pub fn wake(&self) {
        // Full: it wakes up anyway.
        let _ = (&self.0).write(&[1]);
    }
}

/// The other side of a [`Waker`].
pub(super) struct Woken(UnixStream);

impl Woken {
    pub fn clear(&self) {
        while matches!((&self.0).read(&mut [0; 64]), Ok(n) if n > 0) {}
    }
}

impl AsFd for Woken {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A waker and what it wakes.
pub(super) fn waker() -> io::Result<(Waker, Woken)> {
    let (a, b) = UnixStream::pair()?;
    a.set_nonblocking(true)?;
    b.set_nonblocking(true)?;
    Ok((Waker(a), Woken(b)))
}

/// The threads. They end when this is dropped, each after what it is doing.
pub(super) struct Builders {
    jobs: Sender<Job>,
    pub done: Receiver<Done>,
}

impl Builders {
    /// Starts them; `hurry`: with a priority above that of other programs.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(maps: &Arc<Maps>, waker: &Arc<Waker>, hurry: bool) -> io::Result<Builders> {
        let (jobs, todo) = mpsc::channel();
        let (tell, done) = mpsc::channel();
        let todo = Arc::new(Mutex::new(todo));
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
        // One of them may be waiting for the kernel.
        for _ in 0..=cpus.min(MAX_THREADS) {
            let (todo, tell, maps, waker) = (Arc::clone(&todo), tell.clone(), Arc::clone(maps), Arc::clone(waker));
            let run = move || {
                if hurry {
                    // Refused: it is built as soon as others let it.
                    let _ = sys::priority::raise(Urgency::Writer);
                }
                work(&todo, &tell, &maps, &waker);
            };
            std::thread::Builder::new().name("trapline-build".into()).spawn(run)?;
        }
        Ok(Builders { jobs, done })
    }

    pub fn give(&self, job: Job) {
        let _ = self.jobs.send(job);
    }
}

fn work(todo: &Mutex<Receiver<Job>>, tell: &Sender<Done>, maps: &Maps, waker: &Waker) {
    let _ = sys::caps::drop_to(sys::caps::BPF);
    loop {
        let job = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let done = match job {
            Err(_) => return,
            Ok(Job::Build(id, source)) => {
                let began = Instant::now();
                let module = build(source);
                Done::Built(id, module, began.elapsed().as_nanos() as u64)
            }
            Ok(Job::Put(chunks)) => match maps.put_chunks(&chunks) {
                Ok(()) => Done::Put(chunks.iter().map(|c| c.0).collect()),
                // They are never used.
                Err(_) => continue,
            },
        };
        if tell.send(done).is_err() {
            return;
        }
        waker.wake();
    }
}

fn build(source: Source) -> Result<Module, String> {
    let bytes = match source {
        Source::Bytes(bytes) => bytes,
        Source::File(file) => elf_file::read(&file).map_err(|e| e.to_string())?,
    };
    Module::build(&bytes).map_err(|e| e.to_string())
}
