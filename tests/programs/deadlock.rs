//! Eight threads, each with a mutex of its own, each after that of the next one.
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

const N: usize = 8;

fn philosopher(forks: Arc<Vec<Mutex<u64>>>, all: Arc<Barrier>, i: usize) {
    let mut left = forks[i].lock().unwrap();
    all.wait();
    let right = forks[(i + 1) % N].lock().unwrap();
    *left += *right;
}

fn main() {
    let forks = Arc::new((0..N as u64).map(Mutex::new).collect::<Vec<_>>());
    let all = Arc::new(Barrier::new(N));
    let start = |i: usize| {
        let (forks, all) = (Arc::clone(&forks), Arc::clone(&all));
        thread::Builder::new().name(format!("p{i}")).spawn(move || philosopher(forks, all, i)).unwrap()
    };
    let threads: Vec<_> = (0..N).map(start).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}
