//! Rules about texts that are not to be shown: kinds of texts, and their replacements.

use std::borrow::Cow;

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A string of an environment.
    Environment,
    /// An argument of a command line, or all of it.
    CommandLine,
    /// Data that is read, written, sent or received.
    Buffer,
    /// Any other string.
    Text,
    /// A path, or the name of a file.
    Path,
    /// The name of a program or thread.
    Program,
    /// The address of a socket.
    Address,
    /// The name of a host.
    Host,
    /// A name in code: of a function.
    Name,
    /// The name of a probe, which may have a path in it.
    Probe,
}

/// Which texts are replaced.
pub trait Rules: std::fmt::Debug + Send + Sync {
    /// The replacement of a text; none: it stays as it is.
    fn text(&self, what: What, text: &[u8]) -> Option<Vec<u8>>;
}

/// A text as the rules want it.
pub fn bytes<'t>(rules: &dyn Rules, what: What, text: &'t [u8]) -> Cow<'t, [u8]> {
    rules.text(what, text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// A text as the rules want it.
pub fn string<'t>(rules: &dyn Rules, what: What, text: &'t str) -> Cow<'t, str> {
    match rules.text(what, text.as_bytes()) {
        Some(other) => String::from_utf8_lossy(&other).into_owned().into(),
        None => text.into(),
    }
}
