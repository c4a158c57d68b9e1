//! Reads the output of an iterator program: each read runs it over all objects once.

use super::link::Link;
use super::{Attr, Command, at, call_fd};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

/// Starts a run: a file that ends when the program has seen every object.
pub fn open(link: &Link) -> io::Result<File> {
    let mut attr = Attr::new().fd(at::ITER_LINK, link.as_fd());
    // SAFETY: no addresses in it.
    unsafe { call_fd(Command::IterCreate, &mut attr) }.map(File::from)
}

/// Runs the iterator once and appends all that it writes to `out`.
pub fn read(link: &Link, out: &mut Vec<u8>) -> io::Result<()> {
    let mut file = open(link)?;
    let mut page = [0; 4096];
    loop {
        match file.read(&mut page) {
            Ok(0) => return Ok(()),
            Ok(n) => out.extend_from_slice(&page[..n]),
            // EAGAIN: a million objects without output (`bpf_seq_read`); the next read continues.
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(e) => return Err(e),
        }
    }
}
