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
        let (why, todo) = (why.into(), todo.into());
        // EMFILE: the remedy does not depend on what was to be opened.
        if why.contains("Too many open files") {
            let todo = "raise the limit: ulimit -n 1024".into();
            return Error::Failed { what: what.into(), why: "too many open files".into(), todo };
        }
        Error::Failed { what: what.into(), why, todo }
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
