//! Three tasks of async functions, and an executor of one thread: who waits lets the others go on. The second task works the longest.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread::sleep;
use std::time::Duration;

/// Lets the others go on first.
struct Turn(bool);

impl Future for Turn {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

async fn fetch(number: u64) -> u64 {
    for _ in 0..3 {
        sleep(Duration::from_millis(if number == 2 { 10 } else { 1 }));
        Turn(false).await;
    }
    number
}

fn main() {
    let mut tasks: Vec<Pin<Box<dyn Future<Output = u64>>>> = (1..=3).map(|n| Box::pin(fetch(n)) as _).collect();
    let mut context = Context::from_waker(Waker::noop());
    while !tasks.is_empty() {
        tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
    }
}
