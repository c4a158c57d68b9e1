//! Named sessions: `trapline record --name S` listens at a socket that only its owner can reach, `trapline session …`
//! talks to it.
//!
//! ```text
//! trapline session stop S ──one line of JSON──► socket S.sock ──► the recording trapline, between two drains
//!                         ◄──one line of JSON──
//! ```
//!
//! There is no daemon: the session is the recording process, and ends with it. docs/SESSIONS.md has the lines.

mod client;
mod place;
mod server;

pub use client::{Reply, is_there, process_of, reach, request, states};
pub(crate) use place::Place;
pub use server::{Request, Server};

/// The version of the lines.
pub const VERSION: u64 = 1;
/// The most bytes of a request.
const MOST: usize = 64 << 10;

/// Whether a session may be called that: letters, digits, `.`, `_`, `-`, at most 64, and not hidden.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_cannot_leave_their_directory() {
        let long = "x".repeat(64);
        for good in ["a", "web-1", "A.b_c", long.as_str()] {
            assert!(is_name(good), "{good}");
        }
        let longer = "x".repeat(65);
        for bad in ["", ".", "..", ".a", "a/b", "/", "a b", "ä", "a\0", "a\n", longer.as_str()] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
