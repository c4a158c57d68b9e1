//! A progress bar on stderr, when it is a terminal and the work is long.

use engine::backend::recorded;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Work that takes no longer than this has no bar.
const LONG: Duration = Duration::from_secs(1);

/// The progress of reading a trace.
pub struct Progress {
    bar: OnceCell<ProgressBar>,
    wanted: bool,
    began: Instant,
    bytes: u64,
    read: Arc<recorded::Progress>,
}

impl Progress {
    /// Of a trace of so many bytes, of which `read` are read.
    pub fn new(quiet: bool, bytes: u64, read: Arc<recorded::Progress>) -> Progress {
        let wanted = !quiet && sys::process::is_terminal(&std::io::stderr());
        Progress { bar: OnceCell::new(), wanted, began: Instant::now(), bytes, read }
    }

    /// Shows the progress.
    pub fn show(&self) {
        if self.wanted && self.began.elapsed() > LONG {
            self.bar.get_or_init(|| bar(self.bytes)).set_position(self.read.bytes());
        }
    }

    /// Events that have been read.
    pub fn events(&self) -> u64 {
        self.read.events()
    }

    /// Removes the bar.
    pub fn done(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta}") {
        bar.set_style(style);
    }
    bar
}
