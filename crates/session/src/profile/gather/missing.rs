//! What a profile lacks.

use engine::pipeline::stacks::{ENDINGS, Ended};

/// What a profile lacks.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    /// Samples.
    pub samples: u64,
    /// Samples of which there is neither a stack of the process nor one of the kernel.
    pub without_stack: u64,
    /// Samples whose stack of the process ended so, by the numbers of [`Ended`].
    pub ended: [u64; ENDINGS],
    /// Samples whose stack of the process has guessed frames.
    pub guessed: u64,
}

impl Missing {
    /// Reasons why stacks do not reach the outermost frame, and how many of them.
    pub(super) fn cut(&self) -> impl Iterator<Item = (Ended, u64)> + '_ {
        // Nothing is known of 0, and 1 is whole.
        Ended::ALL.iter().copied().zip(self.ended).skip(2).filter(|(_, n)| *n > 0)
    }

    /// What is worth a word in the last line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.without_stack > 0 {
            lines.push(format!("samples without a stack: {}", self.without_stack));
        }
        let cut: u64 = self.cut().map(|(_, n)| n).sum();
        if cut > 0 {
            let why: Vec<String> = self.cut().map(|(why, n)| format!("{n}: {}", why.text())).collect();
            lines.push(format!("stacks that do not reach the outermost frame: {cut} ({})", why.join("; ")));
        }
        if self.guessed > 0 {
            lines.push(format!("stacks with guessed frames: {}", self.guessed));
        }
        lines
    }
}
