//! What the agent keeps of threads, seen from outside while they are stopped (`abi::thread`).

use abi::message::Invocation;
use abi::thread::{BARRIER, BASE, CHUNK, CUR, TOP};
use std::ops::Range;
use sys::mem;
use sys::remote::Threads;

/// The most bytes of a shadow stack that are looked at.
const MOST: u64 = 64 << 20;

/// Where the agent's data of each thread is. Threads of other kinds than glibc's have none.
fn locals(threads: &mut Threads, seen: &Invocation) -> Vec<(i32, u64)> {
    let local = |t: &mut sys::remote::Thread| {
        let base = t.registers().ok()?.fs_base();
        (base != 0).then(|| (t.tid(), base.wrapping_add_signed(seen.tls)))
    };
    threads.all().iter_mut().filter_map(local).collect()
}

fn word(tid: i32, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (mem::read(tid, at, &mut bytes).ok()? == 8).then(|| u64::from_le_bytes(bytes))
}

/// Has threads forget the chunks that they write to, and with `calls` also their shadow stacks, in which nothing is alive.
pub fn forget(threads: &mut Threads, seen: &Invocation, calls: bool) {
    for (tid, local) in locals(threads, seen) {
        // cur and end.
        let _ = mem::write(tid, local.wrapping_add_signed(CUR.into()), &[0; 16]);
        let _ = mem::write(tid, local.wrapping_add_signed(CHUNK.into()), &[0; 4]);
        if calls {
            // top and top_slot.
            let _ = mem::write(tid, local.wrapping_add_signed(TOP.into()), &[0; 16]);
            let _ = mem::write(tid, local.wrapping_add_signed(BASE.into()), &[0; 8]);
        }
    }
}

/// Whether a thread will return into an area: an entry of its shadow stack is that of a frame which is still there, or of a handler.
pub fn have_calls(threads: &mut Threads, seen: &Invocation, areas: &[Range<u64>]) -> bool {
    let in_area = |address: u64| areas.iter().any(|a| a.contains(&address));
    let stride = seen.stride.clamp(16, 4096) as usize;
    for (tid, local) in locals(threads, seen) {
        let [top, base] = [TOP, BASE].map(|at| word(tid, local.wrapping_add_signed(at.into())).unwrap_or(0));
        let len = top.saturating_sub(base);
        if top == 0 || len == 0 {
            continue;
        }
        if len > MOST {
            return true;
        }
        let mut entries = vec![0; len as usize];
        if mem::read(tid, base, &mut entries).ok() != Some(entries.len()) {
            return true;
        }
        let at = |entry: &[u8], at: usize| entry[at..].first_chunk::<8>().map_or(0, |w| u64::from_le_bytes(*w));
        let is_live = |entry: &[u8]| at(entry, 8) == BARRIER || word(tid, at(entry, 0)).is_some_and(in_area);
        if entries.chunks_exact(stride).any(is_live) {
            return true;
        }
    }
    false
}
