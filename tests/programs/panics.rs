//! panics.rs - a panic that leaves a function, and is caught. Prints a number.

#[inline(never)]
pub fn risky(n: u32) -> u32 {
    assert!(n != 1, "one");
    n
}

#[inline(never)]
pub fn passes(n: u32) -> u32 {
    risky(n) + 1
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let one = |n| std::panic::catch_unwind(move || passes(std::hint::black_box(n))).unwrap_or(100);
    println!("{}", (0..3).map(one).sum::<u32>());
}
