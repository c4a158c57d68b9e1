//! Ways to here() while Rust handles a panic:
//! walks hook     the hook, while the functions that panic are still there
//! walks drop     a destructor, on the panic's way
//! walks caught   a function that runs once the panic is caught

use std::arch::asm;
use std::hint::black_box;

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn here() {
    unsafe { asm!("syscall", inlateout("rax") 110_u64 => _, lateout("rcx") _, lateout("r11") _) }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn tells(n: u32) {
    here();
    black_box(n);
}

struct Guard;

impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        tells(2);
        black_box(());
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn panics(n: usize) -> usize {
    let all = [1, 2];
    all[black_box(n)]
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn guarded(n: usize) -> usize {
    let _guard = Guard;
    panics(n) + 1
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    let is_hook = way == "hook";
    std::panic::set_hook(Box::new(move |_| {
        if is_hook {
            tells(1);
        }
    }));
    // The tables for its stacks are built when it is mapped.
    let slow = std::env::var_os("TRAPLINE_TEST_LIMIT").is_some();
    std::thread::sleep(std::time::Duration::from_millis(if slow { 5000 } else { 200 }));
    let drops = way == "drop";
    let n = black_box(2);
    let caught = std::panic::catch_unwind(move || if drops { guarded(n) } else { panics(n) });
    if caught.is_err() && way == "caught" {
        tells(3);
    }
    black_box(());
}
