//! What a process has mapped: `/proc/PID/maps`, and the mapped files. A process chooses its files' names: hostile text.

use crate::check::check;
use crate::mapping::{Mapping, Mode, page_size};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Of [`Map::prot`]: its bytes can be executed.
pub const PROT_EXEC: u32 = libc::PROT_EXEC as u32;
/// Memory that can be written.
pub const PROT_WRITE: u32 = libc::PROT_WRITE as u32;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// First address, and the one after the last.
    pub range: (u64, u64),
    /// `PROT_*`.
    pub prot: u32,
    /// `MAP_SHARED` or `MAP_PRIVATE`.
    pub flags: u32,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Device (major, minor) and inode; zero for no file.
    pub file: (u32, u32, u64),
    /// Path, `[vdso]` and the like, or nothing.
    pub path: Vec<u8>,
}

/// All mappings of a process, in order of addresses.
///
/// # Errors
/// `EACCES`: the process is somebody else's. `ENOENT`: it is gone.
pub fn of(pid: i32) -> io::Result<Vec<Map>> {
    // The file says no size, and is made anew for each piece that is read of it.
    const USUAL: usize = 64 << 10;
    let mut text = Vec::with_capacity(USUAL);
    File::open(format!("/proc/{pid}/maps"))?.read_to_end(&mut text)?;
    Ok(in_text(&text))
}

/// The mapping that holds an address, if there is one: of all of them where the kernel cannot say it alone (PROCMAP_QUERY, Linux 6.11).
///
/// # Errors
/// The process is gone, or may not be looked at.
pub fn at(pid: i32, address: u64) -> io::Result<Option<Map>> {
    const ENOENT: i32 = 2;
    match query(&File::open(format!("/proc/{pid}/maps"))?, address) {
        Ok(map) => Ok(Some(map)),
        Err(e) if e.raw_os_error() == Some(ENOENT) => Ok(None),
        Err(_) => Ok(of(pid)?.into_iter().find(|m| (m.range.0..m.range.1).contains(&address))),
    }
}

/// `struct procmap_query` (`include/uapi/linux/fs.h`, Linux 6.11).
#[derive(Default)]
#[repr(C)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    major: u32,
    minor: u32,
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

fn query(maps: &File, address: u64) -> io::Result<Map> {
    /// `_IOWR('f', 17, struct procmap_query)`.
    const PROCMAP_QUERY: u32 = 0xc068_6611;
    const WRITABLE: u64 = 2;
    const EXECUTABLE: u64 = 4;
    const SHARED: u64 = 8;
    let mut path = vec![0u8; libc::PATH_MAX as usize];
    let mut q = Query {
        size: size_of::<Query>() as u64,
        address,
        name_size: path.len() as u32,
        name: path.as_mut_ptr() as u64,
        ..Query::default()
    };
    // SAFETY: the kernel reads and writes the structure, whose size it gets, and no more than this many bytes of the name.
    check(unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY as _, &raw mut q) }.into())?;
    // With its NUL.
    path.truncate((q.name_size as usize).saturating_sub(1));
    let has = |bit: u64, prot: libc::c_int| if q.vma_flags & bit != 0 { prot as u32 } else { 0 };
    let prot = has(1, libc::PROT_READ) | has(WRITABLE, libc::PROT_WRITE) | has(EXECUTABLE, libc::PROT_EXEC);
    let flags = if q.vma_flags & SHARED != 0 { libc::MAP_SHARED } else { libc::MAP_PRIVATE } as u32;
    Ok(Map { range: (q.start, q.end), prot, flags, offset: q.offset, file: (q.major, q.minor, q.inode), path })
}

/// The mappings in the text of such a file.
pub fn in_text(text: &[u8]) -> Vec<Map> {
    text.split(|b| *b == b'\n').filter_map(parse).collect()
}

/// `55d0c-55d1e r-xp 00002000 08:01 1234      /usr/bin/true`
fn parse(line: &[u8]) -> Option<Map> {
    let (head, path) = split_fields(line)?;
    let mut words = std::str::from_utf8(head).ok()?.split_ascii_whitespace();
    let hex = |s: &str| u64::from_str_radix(s, 16).ok();
    let (from, to) = words.next()?.split_once('-')?;
    let bits = words.next()?.as_bytes();
    let offset = hex(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let inode = words.next()?.parse().ok()?;
    let has = |at: usize, c: u8, bit: u32| if bits.get(at) == Some(&c) { bit } else { 0 };
    let prot = has(0, b'r', libc::PROT_READ as u32)
        | has(1, b'w', libc::PROT_WRITE as u32)
        | has(2, b'x', libc::PROT_EXEC as u32);
    let flags = if bits.get(3) == Some(&b's') { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
    let file = (hex(major)? as u32, hex(minor)? as u32, inode);
    Some(Map { range: (hex(from)?, hex(to)?), prot, flags: flags as u32, offset, file, path })
}

/// The five fields, and the path: the kernel writes a newline in it as `\012`.
fn split_fields(line: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let mut at = 0;
    for _ in 0..5 {
        at += line.get(at..)?.iter().position(|b| *b != b' ')?;
        at += line[at..].iter().position(|b| *b == b' ').unwrap_or(line.len() - at);
    }
    let (head, rest) = line.split_at(at);
    let mut rest = &rest[rest.iter().position(|b| *b != b' ').unwrap_or(rest.len())..];
    let mut path = Vec::with_capacity(rest.len());
    while let [first, tail @ ..] = rest {
        match rest.strip_prefix(b"\\012") {
            Some(after) => {
                path.push(b'\n');
                rest = after;
            }
            None => {
                path.push(*first);
                rest = tail;
            }
        }
    }
    Some((head, path))
}

/// Opens the very file that a process has mapped at `range`; or, where that is not allowed, the file of that path as the process
/// sees it, if its device and inode are those of `file`. Only regular files are opened.
pub fn open(pid: i32, range: (u64, u64), path: &[u8], file: (u32, u32, u64)) -> io::Result<File> {
    if let Ok(f) = open_regular(Path::new(&format!("/proc/{pid}/map_files/{:x}-{:x}", range.0, range.1))) {
        return Ok(f);
    }
    if path.first() != Some(&b'/') {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut inside = format!("/proc/{pid}/root").into_bytes();
    inside.extend(path);
    let inside = std::ffi::OsStr::from_bytes(&inside);
    let found =
        open_regular(Path::new(inside)).or_else(|_| open_regular(Path::new(std::ffi::OsStr::from_bytes(path))))?;
    if is_mapped_as(&found, file) { Ok(found) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Device and inode of a file, in the form of [`Map::file`].
pub fn identity(meta: &fs::Metadata) -> (u32, u32, u64) {
    of_stat(meta.dev(), meta.ino())
}

/// Device and inode of stat(2), in the form of [`Map::file`].
pub fn of_stat(dev: u64, inode: u64) -> (u32, u32, u64) {
    (libc::major(dev), libc::minor(dev), inode)
}

/// Whether a mapping with this device and inode is one of the file. On an overlay some kernels (Linux 6.1) list those of the file in the
/// layer below, which stat(2) does not report: then a page of the file is mapped here, never read, to see how that is listed.
pub fn is_mapped_as(file: &File, listed: (u32, u32, u64)) -> bool {
    let by_stat = file.metadata().is_ok_and(|m| identity(&m) == listed);
    by_stat || (listed.2 != 0 && as_mapped(file).is_ok_and(|own| own == Some(listed)))
}

fn as_mapped(file: &File) -> io::Result<Option<(u32, u32, u64)>> {
    let page = Mapping::new(file.as_fd(), 0, page_size(), Mode::PrivateRead)?;
    let at = page.base() as u64;
    let own = of(std::process::id() as i32)?;
    Ok(own.iter().find(|m| (m.range.0..m.range.1).contains(&at)).map(|m| m.file))
}

/// Opens a regular file for reading; neither waits for nor opens anything else (pipes, devices).
pub fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// [`open_regular`], but not through a symbolic link in the last part of the path.
pub fn open_itself(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_of_an_address_is_that_of_the_list() {
        let pid = std::process::id() as i32;
        let here = lines_are_parsed as fn() as usize as u64;
        let listed = of(pid).unwrap().into_iter().find(|m| (m.range.0..m.range.1).contains(&here));
        assert_eq!(at(pid, here).unwrap(), listed);
        assert_eq!((at(pid, 8).unwrap(), at(0, here).is_err()), (None, true));
    }

    #[test]
    fn lines_are_parsed() {
        let m = parse(b"7f00-7f10 r-xp 00002000 fe:01 1234                      /a b\\012c (deleted)").unwrap();
        assert_eq!((m.range, m.prot, m.flags, m.offset), ((0x7f00, 0x7f10), 5, 2, 0x2000));
        assert_eq!((m.file, m.path.as_slice()), ((0xfe, 1, 1234), b"/a b\nc (deleted)".as_slice()));
        let anon = parse(b"7f00-7f10 rw-s 00000000 00:00 0").unwrap();
        assert_eq!((anon.prot, anon.flags, anon.path.len()), (3, 1, 0));
        for bad in [b"".as_slice(), b"7f00 r-xp 0 0:0 0", b"x-y r-xp 0 0:0 0", b"1-2 r-xp 0 0 0", b"1-2 r"] {
            assert_eq!(parse(bad), None);
        }
    }

    #[test]
    fn own_file_is_opened_by_its_mapping() {
        let all = of(std::process::id() as i32).unwrap();
        let exe = std::env::current_exe().unwrap();
        let own = all.iter().find(|m| m.prot & 4 != 0 && m.path == exe.as_os_str().as_bytes()).unwrap();
        let file = open(std::process::id() as i32, own.range, &own.path, own.file).unwrap();
        assert_eq!(file.metadata().unwrap().ino(), fs::metadata(&exe).unwrap().ino());
        assert!(open(std::process::id() as i32, (0, 0), &own.path, (0, 0, 1)).is_err());
        assert!(open_regular(Path::new("/dev/zero")).is_err());
        assert_eq!(as_mapped(&file).unwrap(), Some(own.file));
        assert!(is_mapped_as(&file, own.file) && !is_mapped_as(&file, (own.file.0, own.file.1, own.file.2 + 1)));
    }
}
