//! Errors, each one line: what, why, what to do.

/// What went wrong, and whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line asks for what does not exist. Exit status 2.
    #[error("{what}: {why} ({todo})")]
    Usage {
        /// The option or argument.
        what: String,
        /// What is wrong with it.
        why: String,
        /// What the user can do.
        todo: String,
    },
    /// The command does not exist. Exit status 127.
    #[error("{what}: {why}")]
    NotFound {
        /// The command.
        what: String,
        /// The reason.
        why: String,
    },
    /// The command cannot be executed. Exit status 126.
    #[error("{what}: {why} ({todo})")]
    NotExecutable {
        /// The command.
        what: String,
        /// The reason.
        why: String,
        /// What the user can do.
        todo: String,
    },
    /// A mistake on the command line that has already been reported. Exit status 2.
    #[error("already reported")]
    Said,
    /// Anything else. Exit status 125.
    #[error("{what}: {why} ({todo})")]
    Failed {
        /// The operation and its object.
        what: String,
        /// The reason.
        why: String,
        /// What the user can do.
        todo: String,
    },
}

/// Result of the engine.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A mistake on the command line.
    pub fn usage(what: impl Into<String>, why: impl Into<String>, todo: impl Into<String>) -> Error {
        Error::Usage { what: what.into(), why: why.into(), todo: todo.into() }
    }
    /// An operation that failed.
    pub fn failed(what: impl Into<String>, why: impl Into<String>, todo: impl Into<String>) -> Error {
        let (mut why, mut todo) = (why.into(), todo.into());
        if let Some((said, raise)) = Error::limit(&why) {
            (why, todo) = (said.to_lowercase(), raise);
        }
        Error::Failed { what: what.into(), why, todo }
    }
    /// The limit of the process that a text names, EMFILE or EFBIG, and how to raise it: the remedy does not depend on the file.
    pub fn limit(why: &str) -> Option<(&'static str, String)> {
        let limits = [("Too many open files", "ulimit -n 1024"), ("File too large", "ulimit -f unlimited")];
        let (said, command) = limits.into_iter().find(|(said, _)| why.contains(said))?;
        Some((said, format!("raise the limit: {command}")))
    }
    /// Memory, a process or something else of the system is not to be had.
    pub fn scarce(what: impl Into<String>, e: &std::io::Error) -> Error {
        Error::failed(what, e.to_string(), "free some memory or processes")
    }
    /// The exit status that goes with it.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Usage { .. } | Error::Said => 2,
            Error::NotFound { .. } => 127,
            Error::NotExecutable { .. } => 126,
            Error::Failed { .. } => 125,
        }
    }
}
