//! The control page: the front end's orders and the ptracer's reports. Each side has a type of its own, which can write the
//! words of that side and read those of the other.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// In the number of a process that the ptracer lets go of: only until it is told to attach again. Numbers of processes are below that
/// (`PID_MAX_LIMIT`, include/linux/threads.h, 6.18).
pub const LENT: i32 = 1 << 24;

/// Classes that have a counter of lost events.
const CLASSES: usize = 512;
/// Numbers of calls that have a bit.
const NUMBERS: usize = 1024;

/// The page. (f): written by the front end, (p): by the ptracer and the command that it starts.
#[repr(C)]
pub(super) struct Page {
    /// (f) The ptracer releases everything and ends.
    stop: AtomicU32,
    /// (f) Calls and signals are not reported.
    held: AtomicU32,
    /// (f) Calls of no table are wanted.
    unknown: AtomicU32,
    /// (f) A bit for each number of a call that is wanted.
    wanted: [AtomicU64; NUMBERS / 64],
    /// (f) How many requests of [`FrontEnd::change_targets`] there were.
    requests: AtomicU32,
    /// (f) The process of the last one; negative: to let go of.
    requested: AtomicI32,
    /// (p) How many of them are done.
    done: AtomicU32,
    /// (p) What the last one has failed with, 0 for nothing, and who traces that process already, 0 for nobody.
    refusal: AtomicI32,
    refused_by: AtomicI32,
    /// (p) The ptracer has attached, or failed to, and takes orders.
    ready: AtomicU32,
    /// (p) The command's process id, 0 before it is known.
    command: AtomicI32,
    /// (p) The command's wait status; valid when `command_ended` is 1.
    status: AtomicI32,
    /// (p) The command has ended.
    command_ended: AtomicU32,
    /// (p) The fields of [`Failure`]; `errno` is 0 for none.
    errno: AtomicI32,
    failed_at: AtomicU32,
    failed_pid: AtomicI32,
    failed_tracer: AtomicI32,
    /// (p) Stops at calls that the kernel did not describe.
    unread: AtomicU64,
    /// (p) All calls that processes have recorded themselves up to this time are in the ring; 0: none does.
    settled: AtomicU64,
    /// (p) Events that were lost.
    dropped: AtomicU64,
    /// (p) The lost events of each class, by its id, where that is known.
    dropped_classes: [AtomicU64; CLASSES],
}

/// Why a session cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What failed: a constant of the backend.
    pub at: u32,
    /// The error; not 0.
    pub errno: i32,
    /// The process or thread that it failed for.
    pub pid: i32,
    /// Who traces that already, 0 for nobody.
    pub tracer: i32,
}

/// The front end's side.
#[derive(Clone, Copy)]
pub struct FrontEnd<'r>(&'r Page);

impl<'r> FrontEnd<'r> {
    pub(super) fn new(page: &'r Page) -> FrontEnd<'r> {
        FrontEnd(page)
    }

    /// Orders the ptracer to release everything and to end.
    pub fn stop(self) {
        self.0.stop.store(1, Ordering::SeqCst);
    }

    /// Whether [`FrontEnd::stop`] was called.
    pub fn has_stopped(self) -> bool {
        self.0.stop.load(Ordering::Relaxed) != 0
    }

    /// Orders the ptracer to stop or resume reporting calls and signals.
    pub fn hold(self, held: bool) {
        self.0.held.store(held.into(), Ordering::Release);
    }

    /// Selects these calls, by number, and no others; `unknown`: those of no table too.
    pub fn select(self, wanted: &[bool], unknown: bool) {
        for (word, bits) in self.0.wanted.iter().zip(wanted.chunks(64).chain(std::iter::repeat(&[][..]))) {
            let bits = bits.iter().enumerate().fold(0, |all, (i, on)| all | u64::from(*on) << i);
            word.store(bits, Ordering::Relaxed);
        }
        self.0.unknown.store(unknown.into(), Ordering::Relaxed);
    }

    /// Orders the ptracer to attach to a process, or, where `pid` is negative, to let go of one. Only after the one before is done.
    pub fn change_targets(self, pid: i32) {
        self.0.requested.store(pid, Ordering::Relaxed);
        self.0.requests.fetch_add(1, Ordering::Release);
    }

    /// How that went, once it is done: an error number, 0 for none, and the process that traces it already, 0 for nobody.
    pub fn targets_changed(self) -> Option<(i32, i32)> {
        let done = self.0.done.load(Ordering::Acquire) == self.0.requests.load(Ordering::Relaxed);
        done.then(|| (self.0.refusal.load(Ordering::Relaxed), self.0.refused_by.load(Ordering::Relaxed)))
    }

    /// Whether the ptracer has attached, or failed to, and takes orders. A signal before that would kill it.
    pub fn is_ready(self) -> bool {
        self.0.ready.load(Ordering::SeqCst) != 0
    }

    /// The command's process id, once it is known.
    pub fn command(self) -> Option<i32> {
        Some(self.0.command.load(Ordering::Acquire)).filter(|&pid| pid != 0)
    }

    /// The command's wait status, once it has ended.
    pub fn command_status(self) -> Option<i32> {
        let ended = self.0.command_ended.load(Ordering::Acquire) != 0;
        ended.then(|| self.0.status.load(Ordering::Relaxed))
    }

    /// Why the session cannot start, where it cannot.
    pub fn failure(self) -> Option<Failure> {
        let errno = self.0.errno.load(Ordering::Acquire);
        (errno != 0).then(|| Failure {
            at: self.0.failed_at.load(Ordering::Relaxed),
            errno,
            pid: self.0.failed_pid.load(Ordering::Relaxed),
            tracer: self.0.failed_tracer.load(Ordering::Relaxed),
        })
    }

    /// Up to which time all calls are in the ring that processes have recorded themselves, ns; none: no process does.
    pub fn settled(self) -> Option<u64> {
        Some(self.0.settled.load(Ordering::Acquire)).filter(|time| *time != 0)
    }

    /// Stops at calls that the kernel did not describe.
    pub fn unread(self) -> u64 {
        self.0.unread.load(Ordering::Relaxed)
    }

    /// Events that were lost.
    pub fn dropped(self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// The lost events of each class that has lost any, by its id.
    pub fn dropped_by_class(self) -> Vec<(u16, u64)> {
        let all = (0..).zip(&self.0.dropped_classes).map(|(id, n)| (id, n.load(Ordering::Relaxed)));
        all.filter(|(_, n)| *n > 0).collect()
    }
}

/// The ptracer's side.
#[derive(Clone, Copy)]
pub struct Ptracer<'r>(&'r Page);

impl<'r> Ptracer<'r> {
    pub(super) fn new(page: &'r Page) -> Ptracer<'r> {
        Ptracer(page)
    }

    /// Whether everything is to be released.
    pub fn must_stop(self) -> bool {
        self.0.stop.load(Ordering::Acquire) != 0
    }

    /// A process to attach to, or, where negative, to let go of.
    pub fn change_of_targets(self) -> Option<i32> {
        let wanted = self.0.requests.load(Ordering::Acquire) != self.0.done.load(Ordering::Relaxed);
        wanted.then(|| self.0.requested.load(Ordering::Relaxed))
    }

    /// Reports how that went: an error number, 0 for none, and the process that traces it already, 0 for nobody.
    pub fn targets_changed(self, errno: i32, tracer: i32) {
        self.0.refusal.store(errno, Ordering::Relaxed);
        self.0.refused_by.store(tracer, Ordering::Relaxed);
        self.0.done.store(self.0.requests.load(Ordering::Relaxed), Ordering::Release);
    }

    /// Whether calls and signals are held back.
    pub fn is_held(self) -> bool {
        self.0.held.load(Ordering::Acquire) != 0
    }

    /// Whether the call with this number is wanted; `nr` is none for calls of no table.
    pub fn wants(self, nr: Option<u64>) -> bool {
        let word = |nr: u64| Some(self.0.wanted.get(usize::try_from(nr / 64).ok()?)?.load(Ordering::Relaxed));
        match nr.and_then(|nr| Some(word(nr)? >> (nr % 64) & 1 != 0)) {
            Some(wanted) => wanted,
            None => self.0.unknown.load(Ordering::Relaxed) != 0,
        }
    }

    /// Reports that everything is attached, or that this has failed.
    pub fn ready(self) {
        self.0.ready.store(1, Ordering::SeqCst);
    }

    /// Reports the command's process id.
    pub fn set_command(self, pid: i32) {
        self.0.command.store(pid, Ordering::Release);
    }

    /// Reports that the command has ended, with this wait status.
    pub fn command_ended(self, status: i32) {
        self.0.status.store(status, Ordering::Relaxed);
        self.0.command_ended.store(1, Ordering::Release);
    }

    /// Reports why the session cannot start.
    pub fn fail(self, failure: Failure) {
        self.0.failed_at.store(failure.at, Ordering::Relaxed);
        self.0.failed_pid.store(failure.pid, Ordering::Relaxed);
        self.0.failed_tracer.store(failure.tracer, Ordering::Relaxed);
        self.0.errno.store(failure.errno, Ordering::Release);
    }

    /// All calls that processes have recorded themselves up to this time are in the ring; 0: none does.
    pub fn settle(self, time: u64) {
        self.0.settled.store(time, Ordering::Release);
    }

    /// Counts a stop at a call that the kernel did not describe.
    pub fn count_unread(self) {
        self.0.unread.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a lost event; `class`: its id.
    pub fn drop_event(self, class: Option<u16>) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
        if let Some(n) = class.and_then(|id| self.0.dropped_classes.get(usize::from(id))) {
            n.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_is_what_was_selected_last() {
        let (reader, writer) = crate::ring::new(4096).unwrap();
        let (front_end, ptracer) = (reader.control(), writer.control());
        assert!([Some(0), Some(1023), Some(1024), None].iter().all(|nr| !ptracer.wants(*nr)));
        let mut wanted = vec![false; 400];
        for nr in [0, 63, 64, 399] {
            wanted[nr] = true;
        }
        front_end.select(&wanted, true);
        for nr in 0..1024 {
            assert_eq!(ptracer.wants(Some(nr)), wanted.get(nr as usize).copied().unwrap_or(false), "{nr}");
        }
        // Numbers that have no bit are those of no table.
        assert!([Some(1024), Some(u64::MAX), None].iter().all(|nr| ptracer.wants(*nr)));
        front_end.select(&[], false);
        assert!((0..1025).all(|nr| !ptracer.wants(Some(nr))));
    }

    #[test]
    fn each_side_reads_what_the_other_has_written() {
        let (reader, writer) = crate::ring::new(4096).unwrap();
        let (f, p) = (reader.control(), writer.control());
        assert_eq!((p.must_stop(), p.is_held(), f.has_stopped()), (false, false, false));
        f.hold(true);
        f.stop();
        assert_eq!((p.must_stop(), p.is_held(), f.has_stopped()), (true, true, true));
        assert!(!f.is_ready());
        p.ready();
        assert!(f.is_ready());
        assert_eq!((f.command(), f.command_status(), f.failure()), (None, None, None));
        p.set_command(7);
        p.command_ended(0);
        let failure = Failure { at: 2, errno: 13, pid: 7, tracer: 8 };
        p.fail(failure);
        assert_eq!((f.command(), f.command_status(), f.failure()), (Some(7), Some(0), Some(failure)));
        p.drop_event(Some(3));
        p.drop_event(Some(u16::MAX));
        p.drop_event(None);
        p.count_unread();
        assert_eq!((f.dropped(), f.dropped_by_class(), f.unread()), (3, vec![(3, 1)], 1));
    }
}
