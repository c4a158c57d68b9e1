//! What the agent keeps of threads, seen from outside while they are stopped (`abi::thread`).

use abi::message::Invocation;
use abi::thread::{BARRIER, BASE, CHUNK, COUNTS, CUR, DROPPED, TOP};
use std::ops::Range;
use sys::mem;
use sys::remote::{Thread, Threads};

/// The most bytes of a shadow stack that are looked at.
const MOST: u64 = 64 << 20;

/// Where the agent's data of each thread is. Threads of other kinds than glibc's have none.
fn locals<'t>(threads: &'t mut Threads, seen: &Invocation) -> Vec<(&'t Thread, u64)> {
    let local = |t: &'t Thread| {
        let base = t.registers().ok()?.fs_base();
        (base != 0).then(|| (t, base.wrapping_add_signed(seen.tls)))
    };
    threads.all().iter().filter_map(local).collect()
}

fn word(tid: i32, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (mem::read(tid, at, &mut bytes).ok()? == 8).then(|| u64::from_le_bytes(bytes))
}

/// Has threads forget the chunks that they write to and what they have lost, and with `calls` also their shadow stacks, in which nothing is alive.
pub fn forget(threads: &mut Threads, seen: &Invocation, calls: bool) {
    for (thread, local) in locals(threads, seen) {
        // cur and end.
        let _ = thread.write(local.wrapping_add_signed(CUR.into()), &[0; 16]);
        let _ = thread.write(local.wrapping_add_signed(CHUNK.into()), &[0; 4]);
        // Rows, which are in the chunk where sums are kept; those of the thread's own it gets again.
        let _ = thread.write(local.wrapping_add_signed(COUNTS.into()), &[0; 8]);
        // They were counted in the session that they belong to.
        let _ = thread.write(local.wrapping_add_signed(DROPPED.into()), &[0; 8]);
        if calls {
            // top and top_slot.
            let _ = thread.write(local.wrapping_add_signed(TOP.into()), &[0; 16]);
            let _ = thread.write(local.wrapping_add_signed(BASE.into()), &[0; 8]);
        }
    }
}

/// Entries of the shadow stacks of all threads, the lowest first: place and address; none where they cannot be read.
pub fn entries(threads: &mut Threads, seen: &Invocation) -> Option<Vec<(i32, u64, u64)>> {
    let stride = seen.stride.clamp(16, 4096) as usize;
    let mut all = Vec::new();
    for (thread, local) in locals(threads, seen) {
        let tid = thread.tid();
        let [top, base] = [TOP, BASE].map(|at| word(tid, local.wrapping_add_signed(at.into())).unwrap_or(0));
        let len = top.saturating_sub(base);
        if top == 0 || len == 0 {
            continue;
        }
        let mut bytes = vec![0; if len > MOST { return None } else { len as usize }];
        if mem::read(tid, base, &mut bytes).ok() != Some(bytes.len()) {
            return None;
        }
        let at = |entry: &[u8], at: usize| entry[at..].first_chunk::<8>().map_or(0, |w| u64::from_le_bytes(*w));
        all.extend(bytes.chunks_exact(stride).map(|entry| (tid, at(entry, 0), at(entry, 8))));
    }
    Some(all)
}

/// Whether a thread will return into an area: an entry of its shadow stack is that of a frame which is still there, or of a handler.
pub fn have_calls(threads: &mut Threads, seen: &Invocation, areas: &[Range<u64>]) -> bool {
    let in_area = |address: u64| areas.iter().any(|a| a.contains(&address));
    let is_live =
        |(tid, place, address): &(i32, u64, u64)| *address == BARRIER || word(*tid, *place).is_some_and(in_area);
    entries(threads, seen).is_none_or(|all| all.iter().any(is_live))
}
