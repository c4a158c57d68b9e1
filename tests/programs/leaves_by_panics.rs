// Calls that panics leave: over destructors, and caught where the next call is made. Prints how many were caught.
use std::hint::black_box;
use std::panic::{catch_unwind, resume_unwind};

#[unsafe(no_mangle)]
#[inline(never)]
fn thrower(n: u32) {
    if black_box(n).is_multiple_of(3) {
        resume_unwind(Box::new(n));
    }
}

struct Cleanup;
impl Drop for Cleanup {
    #[inline(never)]
    fn drop(&mut self) {
        after();
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn deep(n: u32, depth: u32) {
    let _cleanup = Cleanup;
    if black_box(depth) > 0 { deep(n, depth - 1) } else { thrower(n) }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn catches(n: u32) -> u32 {
    u32::from(catch_unwind(|| deep(n, 2)).is_err())
}

#[unsafe(no_mangle)]
#[inline(never)]
fn after() {
    black_box(0);
}

#[unsafe(no_mangle)]
#[inline(never)]
fn below() {
    let room = [0u8; 400];
    black_box(&room);
    after();
}

#[unsafe(no_mangle)]
#[inline(never)]
fn all(n: u32) -> u32 {
    let caught = catches(n);
    below();
    caught
}

fn main() {
    println!("{}", (0..9).map(all).sum::<u32>());
}
