//! Children of fork(2): what they find of their parent's, and how they get memory of their own.
//!
//! A process that fork(2) has made finds zeros in the page of [`State`], and asks for memory of its own when its first record needs
//! a chunk. A child of vfork(2) finds its parent's page, as it runs on its parent's thread data and writes to its parent's chunk.

use crate::op::{put, recording};
use crate::shared::PAGE;
use crate::thread::{self, Local};
use crate::{kernel, own, shared, talk};
use abi::heap::Op;
use abi::message::{Installed, Reason};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The page that a child of fork finds empty.
#[repr(C)]
pub struct State {
    /// The process, for whose sake the page was filled; 0 in a child.
    pub pid: AtomicU32,
    /// 0: nobody has asked for memory; [`ASKING`], [`DONE`].
    pub asked: AtomicU32,
}

const ASKING: u32 = 1;
/// Memory was asked for.
pub const DONE: u32 = 2;

/// Address of the page.
pub static STATE: AtomicU64 = AtomicU64::new(0);

/// Makes the page of the process. At the start.
pub fn begin() -> bool {
    if state().is_some() {
        mine();
        return true;
    }
    let Some(page) = kernel::reserve(4096) else { return false };
    // SAFETY: the page is new.
    if unsafe { kernel::wipe_on_fork(page, 4096) } != 0 {
        return false;
    }
    STATE.store(page, Release);
    mine();
    true
}

/// The page, once it is there.
pub fn state() -> Option<&'static State> {
    let page = STATE.load(Acquire);
    // SAFETY: the page is never unmapped; zeros are valid.
    (page != 0).then(|| unsafe { &*(page as *const State) })
}

/// The process for whose sake the page was filled; 0: it is a child that has not asked for memory, or was never begun.
pub fn owner() -> u32 {
    state().map_or(0, |s| s.pid.load(Relaxed))
}

fn mine() {
    if let Some(state) = state() {
        state.pid.store(kernel::getpid() as u32, Relaxed);
        state.asked.store(DONE, Release);
    }
}

/// Whether this is a child of fork that has not asked for memory yet.
pub fn is_new() -> bool {
    state().is_some_and(|s| s.asked.load(Acquire) != DONE)
}

/// Leaves the shared memory, which is the parent's. It stays mapped where a handler has forked that has interrupted the writing
/// of a record, and where the child has begun threads already: one of them may have looked at it just before. Else a page of it stays, which
/// is returned: by that the collector knows the child until it has asked.
fn detach(local: &Local) -> Option<u64> {
    let (shared, len) = shared::exchange()?;
    let is_unused = local.heap_level.load(Relaxed) == 0 && own::threads() == Some(1);
    is_unused.then(|| {
        // SAFETY: this is the only thread, and it has no chunk.
        unsafe { kernel::unmap(shared + PAGE, len - PAGE) };
        shared
    })
}

/// Asks for memory in a child of fork. Other threads of it wait meanwhile.
pub fn renew(local: &Local) {
    let Some(state) = state() else { return };
    if state.asked.compare_exchange(0, ASKING, AcqRel, Acquire).is_err() {
        while is_new() {
            kernel::sleep(1_000_000);
        }
        return;
    }
    BORN.store(FORKED.load(Relaxed), Relaxed);
    let page = detach(local);
    thread::identify_again(local);
    for field in [&local.sequence, &local.chunk] {
        field.store(0, Relaxed);
    }
    for field in [&local.cur, &local.end, &local.dropped] {
        field.store(0, Relaxed);
    }
    if let Ok(Some(mut answer)) = talk::ask(Reason::Fork) {
        let error = answer.use_shared().err();
        if let Some(control) = shared::control() {
            control.born.store(BORN.load(Relaxed), Relaxed);
        }
        let _ = answer.finish(&Installed::failure(error.unwrap_or(0)));
    }
    if let Some(page) = page {
        // SAFETY: as in `detach`.
        unsafe { kernel::unmap(page, PAGE) };
    }
    mine();
}

/// The time of the last fork of this process or, in a child that has not forked, of its parent.
static FORKED: AtomicU64 = AtomicU64::new(0);
/// In a child of fork that has asked for memory, the time of the fork.
static BORN: AtomicU64 = AtomicU64::new(0);

/// The process is about to fork.
pub fn before_fork() {
    FORKED.fetch_max(kernel::tsc(), Relaxed);
}

/// When the process began, if it is a child of fork: what was called before, its parent has called.
pub fn born() -> u64 {
    if is_new() { FORKED.load(Relaxed) } else { BORN.load(Relaxed) }
}

/// How many forks the process, or its parent before it was one, has made.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// The process that has forked last, in its own PID namespace.
static FORKER: AtomicU32 = AtomicU32::new(0);

/// The process is about to fork: the fork's number.
pub fn number() -> u64 {
    FORKER.store(kernel::getpid() as u32, Relaxed);
    FORKS.fetch_add(1, Relaxed) + 1
}

/// A child has got memory of its own, and a chunk with room for this record and others: says whose child it is. Signals are blocked.
pub fn introduce(local: &Local) {
    let number = FORKS.load(Relaxed);
    if recording() && number != 0 {
        put(local, kernel::tsc(), Op::Child, number, &[FORKER.load(Relaxed).into()], &[]);
    }
}
