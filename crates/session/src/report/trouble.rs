//! What is said of a trace that cannot be opened.

use engine::Error;
use std::io;
use std::path::Path;

/// What to do about a directory or file that cannot be opened.
pub fn remedy(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::NotFound => "name a trace: the DIR of 'trapline record -o DIR'",
        io::ErrorKind::NotADirectory => "a trace is a directory: name the directory",
        io::ErrorKind::PermissionDenied => "read it as its owner, or as root",
        _ => "the trace is damaged, or this is not a trace",
    }
}

/// The error of a trace in this directory.
pub fn unreadable(dir: &Path, e: &ctf::native::Error) -> Error {
    let todo = match e {
        ctf::native::Error::Io { error, .. } => remedy(error),
        ctf::native::Error::Metadata(ctf::generic::Error::Io { source, .. }) => remedy(source),
        ctf::native::Error::Format(_) => "use the trapline that wrote it, or a later one",
        _ => "the trace is damaged, or this is not a trace",
    };
    Error::failed(dir.display().to_string(), e.to_string(), todo)
}
