//! A progress bar on stderr, when it is a terminal and the work is long.

use crate::ask::Show;
use engine::backend::recorded;
use std::cell::Cell;
use std::io::Write;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use views::advance::Advance;
use views::units;

/// Work that takes no longer than this has no bar.
const LONG: Duration = Duration::from_secs(1);
/// How often the bar is drawn at most.
const EVERY: Duration = Duration::from_millis(200);

/// The progress of reading a trace.
pub struct Progress {
    wanted: bool,
    began: Instant,
    /// When the bar was drawn last.
    drawn: Cell<Option<Instant>>,
    bytes: u64,
    read: Arc<recorded::Progress>,
    /// How far views are with what they write at the end.
    advance: Arc<Advance>,
}

impl Progress {
    /// The progress of a report: `read` of the `bytes` of a trace, then `advance` of the output.
    pub fn new(quiet: bool, bytes: u64, read: Arc<recorded::Progress>, advance: Arc<Advance>) -> Progress {
        let wanted = is_wanted(quiet);
        Progress { wanted, began: Instant::now(), drawn: Cell::new(None), bytes, read, advance }
    }

    /// Shows the progress.
    pub fn show(&self) {
        let due = self.drawn.get().is_none_or(|at| at.elapsed() > EVERY);
        if self.wanted && due && self.began.elapsed() > LONG {
            self.drawn.set(Some(Instant::now()));
            draw(&bar(self.read.bytes(), self.bytes, self.began.elapsed(), width()));
        }
    }

    /// Shows how far this is while it runs, unless it writes to a terminal.
    pub fn during<T>(&self, shows: &[Show], work: impl FnOnce() -> T) -> T {
        let on_terminal = shows.iter().any(|show| show.file.is_none()) && sys::process::is_terminal(&std::io::stdout());
        during(self.wanted && !on_terminal, &self.advance, work)
    }

    /// Events that have been read.
    pub fn events(&self) -> u64 {
        self.read.events()
    }

    /// What a picture does not have, and what to do about it.
    pub fn left_out(&self) -> Option<String> {
        let events = Some(self.advance.left_out()).filter(|n| *n > 0)?;
        Some(format!(
            "the last {events} events are not in the picture: --from, --to, -p and -e make one of a part of the trace"
        ))
    }

    /// Removes the bar.
    pub fn done(&self) {
        if self.drawn.take().is_some() {
            draw("");
        }
    }
}

/// Whether progress is shown.
fn is_wanted(quiet: bool) -> bool {
    !quiet && sys::process::is_terminal(&std::io::stderr())
}

fn width() -> usize {
    sys::process::terminal_size(&std::io::stderr()).map_or(80, |(columns, _)| columns.into())
}

/// Shows how far work without events is while it runs.
pub fn of_work<T>(quiet: bool, work: impl FnOnce() -> T) -> T {
    during(is_wanted(quiet), &Advance::default(), work)
}

/// Shows how far work is while it runs: a bar where it says so, else its time.
fn during<T>(wanted: bool, advance: &Advance, work: impl FnOnce() -> T) -> T {
    if !wanted {
        return work();
    }
    thread::scope(|scope| {
        let (done, until) = mpsc::channel::<()>();
        scope.spawn(move || {
            let (began, mut since, mut wait) = (Instant::now(), None, LONG);
            while until.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
                wait = EVERY;
                let line = match advance.get() {
                    (_, 0) => format!("{:.0}s", began.elapsed().as_secs_f64()),
                    (done, all) => bar(done, all, since.get_or_insert_with(Instant::now).elapsed(), width()),
                };
                draw(&line);
            }
            if wait == EVERY {
                draw("");
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Replaces the line in which the cursor is. A terminal that is gone shows nothing.
fn draw(line: &str) {
    let _ = write!(std::io::stderr(), "\r\x1b[2K{line}");
}

/// `[#####     ] 45.6MiB of 1.23GiB, 9s left`, one column less than `width`: a cursor behind the last one would begin a new line.
fn bar(read: u64, all: u64, took: Duration, width: usize) -> String {
    let part = (read as f64 / all.max(1) as f64).clamp(0.0, 1.0);
    let left = if part > 0.0 { took.as_secs_f64() / part - took.as_secs_f64() } else { 0.0 };
    let words = format!(" {} of {}, {left:.0}s left", units::size(read), units::size(all));
    let Some(room) = width.checked_sub(words.len() + 3).filter(|room| *room > 0) else { return String::new() };
    let full = (part * room as f64) as usize;
    format!("[{}{}]{words}", "#".repeat(full), " ".repeat(room - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_leaves_the_last_column() {
        let half = bar(512, 1024, Duration::from_secs(3), 40);
        assert_eq!(half, "[######      ] 512B of 1.00KiB, 3s left");
        assert_eq!((half.len(), bar(1, 2, LONG, 10)), (39, String::new()));
    }
}
