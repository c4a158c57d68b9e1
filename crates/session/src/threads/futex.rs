//! What is behind a futex: whose lock it is, as far as the lock says it.
//!
//! Layouts of the GNU C library (2.31 to 2.41, x86-64): `pthread_mutex_t` (`struct __pthread_mutex_s`, sysdeps/x86/nptl/bits/struct_mutex.h)
//! and `pthread_rwlock_t` (`struct __pthread_rwlock_arch_t`, sysdeps/x86/nptl/bits/struct_rwlock.h).

use super::Looked;
use engine::backend::in_flight::InFlight;
use unprivileged::threads::Thread;
use views::threads::{Actor, Wait};

/// `FUTEX_CMD_MASK`, `FUTEX_PRIVATE_FLAG` and the commands that wait (`include/uapi/linux/futex.h`).
const COMMAND: u64 = 0x7f;
const PRIVATE: u64 = 128;
const WAIT: u64 = 0;
const LOCK_PI: u64 = 6;
const WAIT_BITSET: u64 = 9;
const WAIT_REQUEUE_PI: u64 = 11;
const LOCK_PI2: u64 = 13;
/// `FUTEX_WAITERS`, `FUTEX_TID_MASK`.
const WAITERS: u32 = 0x8000_0000;
const TID: u32 = 0x3fff_ffff;
/// The value of a lock with waiters: of the GNU C library's mutexes, and of those of Rust's standard library.
const CONTENDED: u32 = 2;
/// Words of memory that are read at a futex, of 4 bytes.
const WORDS: usize = 8;
/// How far a Rust mutex may begin before its futex, bytes: the data that it guards may come first.
const BEFORE: u64 = 64;

/// What a thread waits for in futex(2). `functions` are the innermost functions of its stack.
pub fn wait(looked: &Looked<'_>, thread: &Thread, call: &InFlight, functions: &[String]) -> Option<Wait> {
    let [address, operation, value, timeout, ..] = call.args;
    let command = operation & COMMAND;
    let timed = timeout != 0 && command != WAIT_REQUEUE_PI;
    let is = |what: &str| functions.iter().any(|f| f.contains(what));
    let words = words(thread.tid, address);
    let at = format!("{address:#x}");
    let held = |kind: &'static str, tid: i32| {
        let by = vec![looked.thread(tid)];
        Wait { kind, object: format!("{kind} {at}"), relation: "held by", by, complete: true, timed, ..Wait::default() }
    };
    if matches!(command, LOCK_PI | LOCK_PI2) {
        return Some(match looked.known((words[0] & TID) as i32) {
            Some(owner) => held("mutex", owner),
            None => unheld("mutex", &at, timed),
        });
    }
    if command == WAIT_REQUEUE_PI || ["cond_wait", "cond_timedwait", "cond_clockwait", "Condvar"].iter().any(|f| is(f))
    {
        return Some(unheld("condition variable", &at, timed));
    }
    if !matches!(command, WAIT | WAIT_BITSET) {
        return None;
    }
    let value = value as u32;
    // Where a thread has its id, which the kernel clears at its end (CLONE_CHILD_CLEARTID): pthread_join(3).
    let joined = (operation & PRIVATE == 0 && words[0] == value).then(|| looked.known(value as i32)).flatten();
    if let Some(tid) = joined.filter(|tid| *tid != thread.tid) {
        let by = vec![looked.thread(tid)];
        let object = format!("the end of thread {tid} ({})", looked.name(tid));
        return Some(Wait { kind: "thread", object, by, complete: true, timed, ..Wait::default() });
    }
    if is("rwlock") || is("RwLock") {
        // The writer's thread comes 16 bytes behind the one futex, and 12 behind the other.
        let writer = [words[4], words[3]].into_iter().find_map(|tid| looked.known(tid as i32));
        return Some(match writer.filter(|_| is("pthread_rwlock")) {
            Some(writer) => held("rwlock", writer),
            None => {
                Wait { note: "held by readers, or the holder is not recorded".into(), ..unheld("rwlock", &at, timed) }
            }
        });
    }
    // Robust and musl's mutexes: the owner is in the futex, as the kernel wants it.
    if let Some(owner) = (words[0] & WAITERS != 0).then(|| looked.known((words[0] & TID) as i32)).flatten() {
        return Some(held("mutex", owner));
    }
    if value == CONTENDED && words[0] == CONTENDED {
        if is_mutex(&words)
            && let Some(owner) = looked.known(words[2] as i32)
        {
            return Some(held("mutex", owner));
        }
        return Some(by_stacks(looked, thread, address, timed));
    }
    if is("sem_wait") || is("sem_timedwait") || is("sem_clockwait") || is("new_sem") {
        return Some(unheld("semaphore", &at, timed));
    }
    Some(unheld("futex", &at, timed))
}

/// Something that anybody may release.
fn unheld(kind: &'static str, at: &str, timed: bool) -> Wait {
    Wait { kind, object: format!("{kind} {at}"), timed, ..Wait::default() }
}

/// Whether the words may be those of a locked mutex: users, and a kind of those that there are (`PTHREAD_MUTEX_*`, with robust, inheriting,
/// protected, shared and elided ones).
fn is_mutex(words: &[u32; WORDS]) -> bool {
    const KINDS: u32 = 0x3ff;
    words[3] >= 1 && words[4] & !KINDS == 0 && words[4] & 0xf <= 3
}

/// A lock that does not record its holder: who else has its address, or that of the data with it, on its stack. A guard of Rust's is that,
/// but so is any other reference to it. Who waits for another lock meanwhile is the likely one: locks are held by those who work.
fn by_stacks(looked: &Looked<'_>, waiter: &Thread, address: u64, timed: bool) -> Wait {
    let at = format!("{address:#x}");
    let unknown = Wait { note: "the mutex does not record its holder".into(), ..unheld("mutex", &at, timed) };
    let futex = |t: &Thread| t.call.as_ref().filter(|c| looked.is_futex(c)).map(|c| c.args);
    // With the same value but shared, it is the end of the thread 2 of a container that is waited for.
    let is_contended = |args: [u64; 6]| args[2] == u64::from(CONTENDED) && args[1] & PRIVATE != 0;
    let waits_for_another = |t: &Thread| futex(t).is_some_and(is_contended);
    // From the futex itself downwards: the nearest address is the lock's own, before that of another one in the same array.
    for below in (0..=BEFORE).step_by(4) {
        let has = |t: &Thread| t.has_word(address.wrapping_sub(below));
        if !has(waiter) {
            continue;
        }
        let waits_too = |t: &Thread| futex(t).is_some_and(|args| args[0] == address);
        let others: Vec<&Thread> = looked.threads.iter().filter(|t| !waits_too(t) && has(t)).collect();
        let likely: Vec<&&Thread> = others.iter().filter(|t| waits_for_another(t)).collect();
        if let [holder] = likely[..] {
            let note = "the mutex does not record its holder; its address is on that stack".into();
            let by = vec![looked.thread(holder.tid)];
            return Wait { relation: "probably held by", by, likely: true, note, ..unheld("mutex", &at, timed) };
        }
        if !others.is_empty() {
            let by: Vec<Actor> = others.iter().map(|t| looked.thread(t.tid)).collect();
            return Wait { relation: "whose address is on the stack of", by, ..unknown };
        }
    }
    unknown
}

fn words(tid: i32, address: u64) -> [u32; WORDS] {
    let mut bytes = [0; 4 * WORDS];
    let n = sys::mem::read(tid, address, &mut bytes).unwrap_or(0);
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes[..n].chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}
