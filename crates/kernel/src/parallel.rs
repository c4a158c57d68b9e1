//! Independent jobs in a few threads, which have ended when the answers are there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Something to do, on any thread.
pub type Job<'a, T> = Box<dyn FnOnce() -> T + Send + 'a>;

/// A job that is still to be done, or its answer.
type Slot<'a, T> = Mutex<(Option<Job<'a, T>>, Option<T>)>;

/// The most threads for work.
const MAX_THREADS: usize = 4;
/// The most threads for waiting.
const MAX_WAITING: usize = 16;

/// Carries out jobs that mostly wait: on as many threads as there are jobs, up to a limit.
pub fn run_waiting<T: Send>(jobs: Vec<Job<T>>) -> Vec<T> {
    let threads = jobs.len().min(MAX_WAITING);
    on_threads(jobs, threads)
}

/// Carries out `jobs` on up to `cpus` threads, this one among them, and returns their answers in the order of the jobs. Earlier
/// jobs begin earlier. Where threads cannot be had, those that can do it all.
pub fn run<T: Send>(jobs: Vec<Job<T>>, cpus: usize) -> Vec<T> {
    let threads = cpus.clamp(1, MAX_THREADS).min(jobs.len());
    on_threads(jobs, threads)
}

fn on_threads<T: Send>(jobs: Vec<Job<T>>, threads: usize) -> Vec<T> {
    let slots: Vec<Slot<T>> = jobs.into_iter().map(|j| Mutex::new((Some(j), None))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Nobody else is at this slot: its number was given out once.
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.1 = slot.0.take().map(|job| job());
        }
    };
    std::thread::scope(|s| {
        let others: Vec<_> =
            (1..threads).filter_map(|_| std::thread::Builder::new().spawn_scoped(s, work).ok()).collect();
        work();
        // The scope waits for the work only: the calls with which a thread ends would be seen by what is attached next.
        for other in others {
            other.join().unwrap_or_else(|p| std::panic::resume_unwind(p));
        }
    });
    slots.into_iter().filter_map(|s| s.into_inner().unwrap_or_else(PoisonError::into_inner).1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_and_answers_keep_their_order() {
        let count = AtomicUsize::new(0);
        for cpus in [0, 1, 3, 100] {
            let count = &count;
            let job = |i: usize| -> Job<usize> {
                Box::new(move || {
                    count.fetch_add(1, Ordering::Relaxed);
                    i
                })
            };
            count.store(0, Ordering::Relaxed);
            assert_eq!(run((0..50).map(job).collect(), cpus), (0..50).collect::<Vec<_>>());
            assert_eq!(count.load(Ordering::Relaxed), 50);
        }
        assert!(run(Vec::<Job<()>>::new(), 2).is_empty());
    }
}
