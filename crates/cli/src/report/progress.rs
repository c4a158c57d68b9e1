//! A progress bar on stderr, when it is a terminal and the work is long.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::OnceCell;
use std::time::{Duration, Instant};

/// Work that takes no longer than this has no bar.
const LONG: Duration = Duration::from_secs(1);

/// How far a reading is.
pub struct Progress {
    bar: OnceCell<ProgressBar>,
    wanted: bool,
    began: Instant,
    bytes: u64,
}

impl Progress {
    /// Of a trace of so many bytes.
    pub fn new(quiet: bool, bytes: u64) -> Progress {
        let wanted = !quiet && sys::process::is_terminal(&std::io::stderr());
        Progress { bar: OnceCell::new(), wanted, began: Instant::now(), bytes }
    }

    /// So many bytes have been read.
    pub fn at(&self, bytes: u64) {
        if self.wanted && self.began.elapsed() > LONG {
            self.bar.get_or_init(|| bar(self.bytes)).set_position(bytes);
        }
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
