// Closures and generic functions that are inlined into each other.
use std::collections::BTreeMap;

#[inline(always)]
fn innermost(x: u64) -> u64 {
    std::hint::black_box(x).wrapping_mul(31)
}

#[inline(always)]
fn inner<T: Into<u64>>(x: T) -> u64 {
    innermost(x.into()) ^ innermost(7)
}

#[inline(never)]
fn outer(all: &[u32]) -> u64 {
    all.iter().filter(|x| **x % 3 != 0).map(|x| inner(*x)).fold(0, |a, b| a.wrapping_add(b))
}

mod shapes {
    pub trait Area {
        fn area(&self) -> u64;
    }
    pub struct Square(pub u64);
    impl Area for Square {
        #[inline(never)]
        fn area(&self) -> u64 {
            super::inner(self.0) * self.0
        }
    }
}

fn main() {
    use shapes::Area;
    let all: Vec<u32> = (0..std::env::args().count() as u32 + 50).collect();
    let mut counts = BTreeMap::new();
    for x in &all {
        *counts.entry(x % 7).or_insert(0u64) += inner(*x);
    }
    println!("{} {} {:?}", outer(&all), shapes::Square(all.len() as u64).area(), counts);
}
