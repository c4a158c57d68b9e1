//! Arguments and results of Rust: numbers, strings, structures, enumerations.

use std::hint::black_box;

#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Mood {
    Calm = 3,
    Wild,
}

pub struct Point {
    pub x: i32,
    pub y: i64,
    pub name: String,
}

pub struct Meters(f64);

#[derive(Clone, Copy)]
pub struct Pair {
    a: u16,
    b: u64,
}

#[inline(never)]
pub fn numbers(a: i8, b: u32, c: i64, d: bool, e: char, f: f32, g: u128) -> i64 {
    black_box((a, b, c, d, e, f, g));
    c - 1
}

#[inline(never)]
pub fn texts<'a>(s: &'a str, t: &String, empty: &str) -> &'a str {
    black_box((t, empty));
    &black_box(s)[1..]
}

#[inline(never)]
pub fn owned(s: String) -> String {
    black_box(s + "!")
}

#[inline(never)]
pub fn moods(m: Mood, n: &u16) -> Mood {
    black_box((n, m)).1
}

#[inline(never)]
pub fn pointed(p: &Point, m: Meters, q: Pair, after: u8) -> Pair {
    black_box((p, after));
    Pair { a: q.a + 1, b: black_box(m).0 as u64 }
}

#[inline(never)]
pub fn unknown(o: Option<Box<u8>>, r: Result<u64, String>, last: u32) -> Option<u32> {
    black_box((o, r));
    black_box(Some(last))
}

fn main() {
    // What the compiler knows of arguments it need not pass.
    black_box(numbers(
        black_box(-1),
        black_box(4_000_000_000),
        black_box(-5),
        black_box(true),
        black_box('x'),
        black_box(1.5),
        black_box(7),
    ));
    black_box(texts(black_box("hello"), &black_box("world".to_string()), black_box("")));
    black_box(owned(black_box("own".to_string())));
    black_box(moods(black_box(Mood::Wild), &black_box(77)));
    let p = black_box(Point { x: -7, y: 8, name: "here".into() });
    black_box(pointed(&p, black_box(Meters(2.5)), black_box(Pair { a: 1, b: 2 }), black_box(9)));
    black_box(unknown(black_box(None), black_box(Ok(1)), black_box(5)));
}
