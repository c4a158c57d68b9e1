//! What can leave functions without returning, in the files that make up a program.

use crate::target::modules::{self, Module};
use std::path::{Path, PathBuf};
use symbols::throws::Means;

/// What can leave functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Danger {
    /// The file that does it.
    pub path: PathBuf,
    /// How.
    pub means: Means,
}

impl Danger {
    /// The danger in the first of some files that has one.
    fn among(modules: impl Iterator<Item = Module>) -> Option<Danger> {
        modules.into_iter().find_map(|m| Some(Danger { means: m.means()?, path: m.path }))
    }

    /// The danger in a file and the libraries that it is linked with.
    pub fn of_file(path: &Path) -> Option<Danger> {
        Danger::among(modules::of_file(path).into_iter())
    }

    /// The danger in the files that a process has mapped.
    pub fn of_process(pid: i32) -> Option<Danger> {
        Danger::among(modules::of_process(pid).into_iter())
    }

    /// What a return probe would do to the program.
    fn outcome(&self) -> &'static str {
        match self.means {
            Means::Exception(_) | Means::Unknown => "an exception that leaves it would abort the program",
            Means::ThreadEnd(_) => "a thread that ends in it would skip the cleanup of its callers",
            Means::OtherStack(_) | Means::Go => "a switch of stacks in it would kill the program",
        }
    }
}

impl std::fmt::Display for Danger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} {}", self.outcome(), self.path.display(), self.means)
    }
}
