//! Tests that need the whole machine run while no other test does.

use std::cell::{Cell, RefCell};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Tests {
    running: usize,
    /// Tests that wait until they are alone, or are.
    alone: usize,
    /// One of them is.
    taken: bool,
}

static TESTS: Mutex<Tests> = Mutex::new(Tests { running: 0, alone: 0, taken: false });
static CHANGED: Condvar = Condvar::new();

thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
    static SHARE: RefCell<Option<Share>> = const { RefCell::new(None) };
}

fn tests() -> MutexGuard<'static, Tests> {
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A test that runs beside others.
struct Share;

impl Drop for Share {
    fn drop(&mut self) {
        tests().running -= 1;
        CHANGED.notify_all();
    }
}

/// Waits while a test is alone; from here to the end of its thread, the calling test is not. Tests have threads with names, except
/// where they all run on the main thread.
pub fn beside_others() {
    if IS_ALONE.get() || std::thread::current().name().is_none_or(|name| name == "main") {
        return;
    }
    SHARE.with_borrow_mut(|share| {
        share.get_or_insert_with(|| {
            let mut all = CHANGED.wait_while(tests(), |all| all.alone > 0).unwrap_or_else(PoisonError::into_inner);
            all.running += 1;
            Share
        });
    });
}

/// Until it is dropped, no other test runs.
pub struct Alone(());

/// Waits until no other test runs.
pub fn alone() -> Alone {
    // What is dropped here must not be borrowed.
    drop(SHARE.take());
    let mut all = tests();
    all.alone += 1;
    let busy = |all: &mut Tests| all.running > 0 || all.taken;
    CHANGED.wait_while(all, busy).unwrap_or_else(PoisonError::into_inner).taken = true;
    IS_ALONE.set(true);
    Alone(())
}

impl Drop for Alone {
    fn drop(&mut self) {
        IS_ALONE.set(false);
        let mut all = tests();
        all.alone -= 1;
        all.taken = false;
        drop(all);
        CHANGED.notify_all();
    }
}
