//! As checked.c, with names of Rust. Argument: clean or thread. It runs until it is killed.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

struct Window(u64);

impl Window {
    #[inline(never)]
    fn draw(&mut self, n: u64) {
        self.0 = black_box(self.0 + n);
    }

    #[inline(never)]
    fn paint(&mut self, n: u64) {
        self.draw(n);
        self.0 = black_box(self.0 + 1);
    }
}

#[inline(never)]
fn job(planted: bool) {
    let mut window = Window(0);
    if planted {
        window.paint(1);
    }
    black_box(window.0);
}

fn main() {
    let planted = std::env::args().nth(1).is_some_and(|a| a == "thread");
    println!("begun");
    std::io::stdout().flush().unwrap();
    loop {
        std::thread::Builder::new().name("worker-1".into()).spawn(move || job(planted)).unwrap().join().unwrap();
        let mut window = Window(0);
        window.paint(1);
        black_box(window.0);
        std::thread::sleep(Duration::from_millis(2));
    }
}
