//! The parts of an ELF file that tables are built from, read into memory at their places in the file.
//!
//! Files are not mapped: whoever shortens a mapped file ends its reader (SIGBUS). What is not read is zero, and takes no memory, because
//! pages that nobody has touched do not exist. Every length comes from the file, and is bounded.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The largest file.
const MAX_FILE: u64 = 1 << 30;
/// The most bytes that are read of a section.
const MAX_SECTION: u64 = 256 << 20;
/// The most bytes of a file without sections that are read.
const MAX_WHOLE: u64 = 64 << 20;
/// Bytes of the ELF header, and of an entry of the table of sections.
const HEADER: usize = 64;
const ENTRY: usize = 64;
/// The most sections.
const MAX_SECTIONS: usize = 1 << 16;
/// `SHT_NOBITS`.
const NOBITS: u32 = 8;
/// Sections that are read.
const WANTED: [&[u8]; 7] = [b".eh_frame", b".eh_frame_hdr", b".plt", b".plt.sec", b".plt.got", b".plt.bnd", b".iplt"];

/// Reads them.
///
/// # Errors
/// The file cannot be read, is no ELF file of 64 bits, or is too large.
pub fn read(file: &File) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    let mut head = [0; HEADER];
    file.read_exact_at(&mut head, 0)?;
    if !head.starts_with(b"\x7fELF\x02\x01") || len > MAX_FILE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut image = Image { bytes: vec![0; len as usize], file };
    image.fill(0, HEADER as u64)?;
    let (programs, entry, count) = (number(&head, 32, 8), number(&head, 54, 2), number(&head, 56, 2));
    image.fill(programs, entry * count)?;
    if image.sections(&head).is_none() && len <= MAX_WHOLE {
        image.fill(0, len)?;
    }
    Ok(image.bytes)
}

/// A number of this many bytes; 0 beyond the end.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let bytes = at.checked_add(len).and_then(|end| bytes.get(at..end)).unwrap_or_default();
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

struct Image<'f> {
    bytes: Vec<u8>,
    file: &'f File,
}

impl Image<'_> {
    /// Reads a part of the file; what lies beyond its end is left out.
    fn fill(&mut self, at: u64, len: u64) -> io::Result<()> {
        let end = at.saturating_add(len.min(MAX_SECTION)).min(self.bytes.len() as u64);
        let Some(part) = self.bytes.get_mut(at as usize..end as usize) else { return Ok(()) };
        self.file.read_exact_at(part, at)
    }

    /// Reads the wanted sections; none where the file has lost the table of them, or `.eh_frame`.
    fn sections(&mut self, head: &[u8; HEADER]) -> Option<()> {
        let (table, size, names) = (number(head, 40, 8), number(head, 58, 2), number(head, 62, 2) as usize);
        if table == 0 || size != ENTRY as u64 {
            return None;
        }
        self.fill(table, ENTRY as u64).ok()?;
        let at = usize::try_from(table).ok()?;
        // The first entry has the number where the header has no room for it.
        let count = match number(head, 60, 2) {
            0 => number(&self.bytes, at.checked_add(32)?, 8),
            count => count,
        };
        let count = usize::try_from(count).ok()?.min(MAX_SECTIONS);
        self.fill(table, (count * ENTRY) as u64).ok()?;
        let field = |image: &Self, nth: usize, at_field, len| number(&image.bytes, at + nth * ENTRY + at_field, len);
        let names = if names == 0xffff { field(self, 0, 40, 4) as usize } else { names };
        let (names_at, names_len) = (field(self, names.min(count), 24, 8), field(self, names.min(count), 32, 8));
        self.fill(names_at, names_len).ok()?;
        let mut found = None;
        for nth in 0..count {
            let name = usize::try_from(names_at.saturating_add(field(self, nth, 0, 4))).ok()?;
            let name = self.bytes.get(name..).unwrap_or_default();
            let wanted = WANTED.iter().find(|w| name.starts_with(w) && name.get(w.len()) == Some(&0));
            if let Some(wanted) = wanted
                && field(self, nth, 4, 4) as u32 != NOBITS
            {
                let (from, len) = (field(self, nth, 24, 8), field(self, nth, 32, 8));
                self.fill(from, len).ok()?;
                found = found.or((*wanted == b".eh_frame").then_some(()));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use unwind::build::Module;

    #[test]
    fn what_is_read_is_what_is_needed() {
        for path in ["/bin/sh", "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6", "/proc/self/exe"] {
            let Ok(file) = File::open(path) else { continue };
            let (part, whole) = (read(&file).unwrap(), std::fs::read(path).unwrap());
            let [part, whole] = [&part, &whole].map(|b| Module::build(b).unwrap());
            assert_eq!(part.counts(), whole.counts(), "{path}");
            assert_eq!((part.tables().rows, part.tables().rules), (whole.tables().rows, whole.tables().rules));
            assert!(!part.is_empty());
        }
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        let whole = std::fs::read("/bin/sh").unwrap();
        let mut random = testkit::Random::new(7);
        let path = testkit::dir().join("damaged");
        for _ in 0..testkit::rounds(300) {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                // The header, and the table of sections at the end.
                let at = if random.below(2) == 0 { random.index(HEADER) } else { bytes.len() - 1 - random.index(2048) };
                bytes[at] = random.next() as u8;
            }
            bytes.truncate(bytes.len() - random.index(bytes.len()));
            File::create(&path).unwrap().write_all(&bytes).unwrap();
            if let Ok(read) = read(&File::open(&path).unwrap()) {
                assert_eq!(read.len(), bytes.len());
                let _ = Module::build(&read);
            }
        }
    }
}
