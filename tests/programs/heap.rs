//! What Rust programs do with the heap: boxes, vectors that grow, what is leaked, forgotten, held in a circle, freed by other threads.
//!
//! It prints what tests/programs/heap.h describes. It claims functions whose blocks it knows, and of those all.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;

/// A function whose blocks are nobody's business: it is in the table so that they are not its caller's.
fn says_nothing_of(function: &str) {
    println!("heap {function} ? ? ? ?");
}

/// Function, blocks and bytes that are outstanding, allocations and their bytes.
fn says(function: &str, outstanding: (usize, usize), all: (usize, usize)) {
    println!("heap {function} {} {} {} {}", outstanding.0, outstanding.1, all.0, all.1);
}

#[inline(never)]
fn boxes(n: u8) -> Box<[u8; 100]> {
    black_box(Box::new([n; 100]))
}

#[inline(never)]
fn grows(n: u64) -> Vec<u64> {
    let mut row = Vec::new();
    for i in 0..n {
        row.push(black_box(i));
    }
    black_box(row)
}

#[inline(never)]
fn shrinks(mut row: Vec<u64>) -> Box<[u64]> {
    row.truncate(10);
    black_box(row.into_boxed_slice())
}

#[inline(never)]
fn texts(n: usize) -> String {
    let mut text = String::with_capacity(n);
    text.push_str("text");
    black_box(text)
}

struct Knot {
    other: RefCell<Option<Rc<Knot>>>,
    _values: [u64; 4],
}

#[inline(never)]
fn ties() -> Rc<Knot> {
    black_box(Rc::new(Knot { other: RefCell::new(None), _values: [7; 4] }))
}

#[inline(never)]
fn by_hand(size: usize, align: usize) -> usize {
    let layout = Layout::from_size_align(size, align).expect("a layout");
    // SAFETY: the size is not 0, and the layouts are those of the blocks.
    unsafe {
        let first = alloc_zeroed(layout);
        assert!((0..size).all(|i| *first.add(i) == 0));
        let second = realloc(first, layout, size * 3);
        let third = black_box(alloc(layout));
        dealloc(third, layout);
        black_box(second) as usize
    }
}

#[inline(never)]
fn fills(n: usize) -> Vec<u8> {
    black_box(vec![1; n])
}

#[inline(never)]
fn carried(n: usize) {
    std::panic::resume_unwind(Box::new(n));
}

#[inline(never)]
fn panics(n: usize) -> usize {
    let held = black_box(vec![2u8; n]);
    if held.len() > 9 {
        carried(n);
    }
    held.len()
}

fn main() {
    // Room for what is printed, before anything is counted.
    println!("begin");
    let mut kept: Vec<Box<[u8; 100]>> = Vec::with_capacity(20);
    (0..20).for_each(|n| kept.push(boxes(n)));
    kept.truncate(15);
    Box::leak(kept.pop().expect("a box"));
    std::mem::forget(kept);
    says("boxes", (15, 1500), (20, 2000));

    // From 4 places on, twice as many each time.
    let rows: Vec<Vec<u64>> = vec![grows(4), grows(5), grows(1000)];
    let [four, five, thousand] = <[Vec<u64>; 3]>::try_from(rows).expect("three");
    assert_eq!((four.capacity(), five.capacity(), thousand.capacity()), (4, 8, 1024));
    std::mem::forget(five);
    drop(four);
    Box::leak(shrinks(thousand));
    let doubled: usize = (0..9).map(|n| 32 << n).sum();
    says("grows", (1, 64), (1 + 2 + 9, 32 + 32 + 64 + doubled));
    says("shrinks", (1, 80), (1, 80));

    let mut table = HashMap::new();
    // A text has room for 8 where it grows: these need not.
    for n in 4..=53 {
        table.insert(n, texts(n));
    }
    table.retain(|n, _| n % 2 == 0);
    says("texts", (25, 700), (50, 1425));
    std::mem::forget(table);

    for _ in 0..3 {
        let (one, other) = (ties(), ties());
        *one.other.borrow_mut() = Some(other.clone());
        *other.other.borrow_mut() = Some(one);
    }
    drop(ties());
    says("ties", (6, 6 * 64), (7, 7 * 64));

    assert_eq!(by_hand(48, 16) % 16, 0);
    assert_eq!(by_hand(128, 128) % 128, 0);
    says("by_hand", (2, 3 * (48 + 128)), (6, 5 * (48 + 128)));

    // Not by a channel, which allocates as it happens to.
    let place = Arc::new(Mutex::new(Vec::with_capacity(400)));
    let fill = |t: usize| {
        let place = place.clone();
        thread::spawn(move || (1..=100).for_each(|n| place.lock().expect("not poisoned").push(fills(n * t))))
    };
    let threads = [fill(1), fill(2), fill(3), fill(4)];
    threads.into_iter().for_each(|t| t.join().expect("a thread"));
    let (mut sum, mut kept) = (0, Vec::with_capacity(4));
    for bytes in place.lock().expect("not poisoned").drain(..) {
        sum += bytes.len();
        if bytes.len() > 396 || bytes.len() == 1 {
            kept.push(bytes);
        }
    }
    assert_eq!(kept.len(), 2);
    std::mem::forget(kept);
    assert_eq!(sum, 5050 * 10);
    says("fills", (2, 401), (400, sum));

    for n in 0..20 {
        let caught = std::panic::catch_unwind(|| panics(n));
        assert_eq!(caught.is_err(), n > 9);
    }
    // A vector of nothing has no block.
    says("panics", (0, 0), (19, 190));
    says_nothing_of("carried");
}
