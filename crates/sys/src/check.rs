//! Results of libc's functions.

use std::io;

/// Turns the -1 of a libc call into the error of `errno`.
pub fn check(ret: libc::c_long) -> io::Result<libc::c_long> {
    if ret == -1 { Err(io::Error::last_os_error()) } else { Ok(ret) }
}
