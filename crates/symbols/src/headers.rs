//! The headers of an ELF file of 64 bits, little-endian: its segments and sections. Nothing else is read, whatever the file's size.
//!
//! ```text
//!  offset in the file ──► PT_LOAD that holds it ──► address        the executable segment first: two may share a page of the file
//! ```

use crate::ReadAt;

/// The most program headers and section headers that are read.
const MAX_SEGMENTS: u64 = 1024;
const MAX_SECTIONS: u64 = 1 << 16;
/// The most bytes of the table of section names, and of one name.
const MAX_NAMES: u64 = 16 << 20;
const MAX_NAME: usize = 256;

const ET_EXEC: u16 = 2;
const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;
const SHT_NOBITS: u32 = 8;
const SHF_EXECINSTR: u64 = 4;
const SHF_COMPRESSED: u64 = 1 << 11;

/// Numbers of a little-endian table.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A segment that is loaded (`PT_LOAD`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address in the file's own address space.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub len: u64,
    /// It is mapped executable.
    pub executable: bool,
}

/// A section header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// Name.
    pub name: String,
    /// `SHT_*`.
    pub kind: u32,
    /// Address; 0 where the section is not loaded.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file; 0 where they were removed (`SHT_NOBITS`).
    pub size: u64,
    /// Bytes in memory.
    pub memory: u64,
    /// Number of the section that this one refers to (`sh_link`).
    pub link: u32,
    /// Bytes of one of its entries; 0: not said.
    pub entry: u64,
    /// It holds code.
    pub executable: bool,
    /// Its bytes are compressed (`SHF_COMPRESSED`, or named `.zdebug_*`, which is `.debug_*` here).
    pub compressed: bool,
}

/// The headers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// `EM_*`, for instance 62 for x86-64.
    pub machine: u16,
    /// It is linked to fixed addresses (`ET_EXEC`).
    pub is_fixed: bool,
    /// Where the program begins; 0: nowhere.
    pub entry: u64,
    /// The segments that are loaded.
    pub segments: Vec<Segment>,
    /// The sections, by number.
    pub sections: Vec<SectionHeader>,
}

impl Headers {
    /// Reads the headers of a file; none where it is not an ELF file of 64 bits, little-endian. A file whose section table is damaged
    /// or missing has no sections.
    pub fn read(file: &(impl ReadAt + ?Sized)) -> Option<Headers> {
        let mut head = [0; 64];
        file.read_at(0, &mut head).ok()?;
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let machine = u16_at(&head, 18)?;
        let is_fixed = u16_at(&head, 16)? == ET_EXEC;
        let entry = u64_at(&head, 24)?;
        let segments = segments(file, &head).unwrap_or_default();
        let sections = sections(file, &head).unwrap_or_default();
        Some(Headers { machine, is_fixed, entry, segments, sections })
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&SectionHeader> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// The bytes of a section, at most `most` of them; none where they cannot be read, or are compressed.
    pub fn bytes(&self, file: &(impl ReadAt + ?Sized), name: &str, most: u64) -> Option<Vec<u8>> {
        let section = self.section(name).filter(|s| s.size > 0 && !s.compressed && s.size <= most)?;
        read_bytes(file, section.offset, section.size)
    }

    /// The address of the byte at an offset of the file, where it is mapped executable; else where it is mapped at all. Linkers let two
    /// segments share a page of the file, so that several may hold the offset: code is in the executable one.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let inside = |s: &&Segment| offset.checked_sub(s.offset).is_some_and(|at| at < s.len);
        let code = self.segments.iter().filter(|s| s.executable).find(inside);
        let segment = code.or_else(|| self.segments.iter().find(inside))?;
        segment.address.checked_add(offset - segment.offset)
    }

    /// Where the byte that is mapped at an address of code lies in the file.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        let inside = |s: &&Segment| address.checked_sub(s.address).is_some_and(|at| at < s.len);
        let segment = self.segments.iter().filter(|s| s.executable).find(inside)?;
        segment.offset.checked_add(address - segment.address)
    }

    /// The executable section that holds an address.
    pub fn code_section(&self, address: u64) -> Option<&SectionHeader> {
        let inside = |s: &&SectionHeader| address.checked_sub(s.address).is_some_and(|at| at < s.memory);
        self.sections.iter().filter(|s| s.executable).find(inside)
    }
}

/// `size` bytes of a file from an offset on, read piece by piece: a size that the file does not have costs no memory.
pub(crate) fn read_bytes(file: &(impl ReadAt + ?Sized), offset: u64, size: u64) -> Option<Vec<u8>> {
    const PIECE: u64 = 16 << 20;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < size {
        let done = bytes.len();
        let n = (size - done as u64).min(PIECE) as usize;
        bytes.resize(done + n, 0);
        file.read_at(offset.checked_add(done as u64)?, &mut bytes[done..]).ok()?;
    }
    Some(bytes)
}

fn segments(file: &(impl ReadAt + ?Sized), head: &[u8]) -> Option<Vec<Segment>> {
    let (table, size, count) = (u64_at(head, 32)?, u16_at(head, 54)?, u16_at(head, 56)?);
    let mut all = Vec::new();
    if size < 56 {
        return None;
    }
    for i in 0..u64::from(count).min(MAX_SEGMENTS) {
        let mut p = [0; 56];
        file.read_at(table.checked_add(i * u64::from(size))?, &mut p).ok()?;
        if u32_at(&p, 0)? == PT_LOAD {
            let executable = u32_at(&p, 4)? & PF_X != 0;
            let (offset, address, len) = (u64_at(&p, 8)?, u64_at(&p, 16)?, u64_at(&p, 32)?);
            all.push(Segment { address, offset, len, executable });
        }
    }
    Some(all)
}

fn sections(file: &(impl ReadAt + ?Sized), head: &[u8]) -> Option<Vec<SectionHeader>> {
    const SIZE: u64 = 64;
    let (table, size) = (u64_at(head, 40)?, u64::from(u16_at(head, 58)?));
    let (mut count, mut names) = (u64::from(u16_at(head, 60)?), u64::from(u16_at(head, 62)?));
    if table == 0 || size < SIZE {
        return None;
    }
    // What does not fit into the header is in the first section's.
    let mut first = [0; SIZE as usize];
    file.read_at(table, &mut first).ok()?;
    if count == 0 {
        count = u64_at(&first, 32)?;
    }
    if names == 0xffff {
        names = u64::from(u32_at(&first, 40)?);
    }
    if count > MAX_SECTIONS {
        return None;
    }
    let bytes = read_bytes(file, table, count.checked_mul(size)?)?;
    let header = |i: u64| bytes.get((i * size) as usize..)?.get(..SIZE as usize);
    let strings = (names < count).then(|| header(names)).flatten().and_then(|h| {
        let (offset, len) = (u64_at(h, 24)?, u64_at(h, 32)?);
        if len <= MAX_NAMES { read_bytes(file, offset, len) } else { None }
    });
    let strings = strings.unwrap_or_default();
    let mut all = Vec::new();
    for i in 0..count {
        let h = header(i)?;
        let (kind, flags, memory) = (u32_at(h, 4)?, u64_at(h, 8)?, u64_at(h, 32)?);
        let (name, is_zdebug) = section_name(text_at(&strings, u32_at(h, 0)? as usize));
        all.push(SectionHeader {
            name,
            kind,
            address: u64_at(h, 16)?,
            offset: u64_at(h, 24)?,
            size: if kind == SHT_NOBITS { 0 } else { memory },
            memory,
            link: u32_at(h, 40)?,
            entry: u64_at(h, 56)?,
            executable: flags & SHF_EXECINSTR != 0,
            compressed: is_zdebug || flags & SHF_COMPRESSED != 0,
        });
    }
    Some(all)
}

/// What a section is called when it is not compressed, and whether its name says that it is: those of `-gz=zlib-gnu` have no flag.
pub(crate) fn section_name(name: String) -> (String, bool) {
    match name.strip_prefix(".zdebug_") {
        Some(rest) => (format!(".debug_{rest}"), true),
        None => (name, false),
    }
}

fn text_at(strings: &[u8], at: usize) -> String {
    let rest = strings.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MAX_NAME)];
    let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
    String::from_utf8_lossy(&rest[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Elf;

    #[test]
    fn headers_are_those_that_the_other_reader_finds() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let (headers, elf) = (Headers::read(&bytes[..]).unwrap(), Elf::parse(&bytes[..]).unwrap());
        assert_eq!(headers.machine, elf.machine());
        let named = |n: &str| n.starts_with('.');
        for (own, other) in headers.sections.iter().zip(elf.sections()).filter(|(o, _)| named(&o.name)) {
            let (a, b) = (
                (&own.name, own.address, own.offset, own.size),
                (&other.name, other.address, other.offset, other.size),
            );
            assert_eq!(a, b);
        }
        assert_eq!(headers.sections.len(), elf.sections().count());
        for s in headers.segments.iter().filter(|s| s.executable) {
            assert_eq!(headers.address_of(s.offset), Some(s.address));
            assert_eq!(elf.code_offset(s.address), Some(s.offset));
        }
    }

    /// LLD and BOLT: the page of the file where one segment ends and the next begins is mapped twice.
    #[test]
    fn code_is_in_the_executable_one_of_two_segments_that_share_a_page() {
        let segment = |address, offset, len, executable| Segment { address, offset, len, executable };
        let segments = vec![segment(0, 0, 0x1234, false), segment(0x2234, 0x1234, 0x1000, true)];
        let headers = Headers { segments, ..Headers::default() };
        assert_eq!(headers.address_of(0x1235), Some(0x2235));
        assert_eq!(headers.address_of(0x1233), Some(0x1233));
        assert_eq!(headers.address_of(0x3000), None);
    }

    #[test]
    fn sizes_that_a_file_does_not_have_cost_nothing() {
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        bytes[60..62].fill(0);
        let table = u64_at(&bytes, 40).unwrap() as usize;
        for count in [u64::MAX, 1 << 40, 1 << 16] {
            bytes[table + 32..table + 40].copy_from_slice(&count.to_le_bytes());
            assert!(Headers::read(&bytes[..]).is_some_and(|h| h.sections.is_empty()));
        }
        assert_eq!(read_bytes(&bytes[..], 0, u64::MAX), None);
        for n in 0..2000 {
            let _ = Headers::read(&bytes[..n]);
        }
    }
}
