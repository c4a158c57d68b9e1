//! Reading another process's memory with process_vm_readv(2).

use crate::check::check;
use std::io;

/// Bytes of a page of the machine.
pub const PAGE: u64 = 4096;

/// Reads memory at `addr` of thread `tid` into `buf`; returns how many bytes were read before unreadable memory.
pub fn read(tid: i32, addr: u64, buf: &mut [u8]) -> io::Result<usize> {
    if buf.is_empty() {
        return Ok(0);
    }
    let local = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: buf.len() };
    // SAFETY: the local iovec covers `buf`, which is borrowed mutably; the remote one is only interpreted by the kernel in
    // the other process.
    let n = unsafe { libc::process_vm_readv(tid, &local, 1, &remote, 1, 0) };
    check(n as libc::c_long).map(|n| n as usize)
}

/// Reads memory at two addresses with one call; returns the bytes read of the first and of the second.
pub fn read2(tid: i32, a: (u64, &mut [u8]), b: (u64, &mut [u8])) -> io::Result<(usize, usize)> {
    let (la, lb) = (a.1.len(), b.1.len());
    let local = [
        libc::iovec { iov_base: a.1.as_mut_ptr().cast(), iov_len: la },
        libc::iovec { iov_base: b.1.as_mut_ptr().cast(), iov_len: lb },
    ];
    let remote = [
        libc::iovec { iov_base: a.0 as *mut libc::c_void, iov_len: la },
        libc::iovec { iov_base: b.0 as *mut libc::c_void, iov_len: lb },
    ];
    // SAFETY: the local iovecs cover two distinct mutable borrows; remote ones are interpreted in the other process only.
    let n = unsafe { libc::process_vm_readv(tid, local.as_ptr(), 2, remote.as_ptr(), 2, 0) };
    let n = check(n as libc::c_long)? as usize;
    Ok((n.min(la), n.saturating_sub(la)))
}
