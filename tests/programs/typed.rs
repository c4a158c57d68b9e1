//! typed.rs - functions of Rust, to be looked at by their demangled names. Prints a number that depends on all.

pub mod acme {
    pub struct Widget {
        pub n: i32,
    }

    impl Widget {
        #[inline(never)]
        pub fn poke(&mut self, by: i32, why: &str, ok: bool) -> i32 {
            self.n += by + why.len() as i32 + i32::from(ok);
            std::hint::black_box(self.n)
        }
    }

    #[inline(never)]
    pub fn compute(n: i32, last: i8) -> i32 {
        std::hint::black_box(n - i32::from(last))
    }

    #[inline(never)]
    pub fn shown<T: std::fmt::Display>(t: T, n: usize) -> usize {
        std::hint::black_box(t.to_string().len() + n)
    }

    #[inline(always)]
    pub fn tiny(n: i32) -> i32 {
        std::hint::black_box(n) * 3
    }
}

fn main() {
    let mut widget = acme::Widget { n: std::hint::black_box(1) };
    let sum: i32 = (0..3).map(|n| acme::compute(std::hint::black_box(n), 2)).sum();
    let shown = acme::shown(std::hint::black_box(3u8), 4) + acme::shown(std::hint::black_box("x"), 5);
    println!("{} {sum} {shown} {}", widget.poke(std::hint::black_box(2), "because", true), acme::tiny(4));
}
