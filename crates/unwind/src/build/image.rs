//! What of an ELF file matters here: executable segments, `.eh_frame`, linkage tables.

use super::BuildError;
use crate::table::PAGE_BITS;
use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD, SHF_COMPRESSED, SHT_NOBITS};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use std::ops::Range;
use std::vec::Vec;

/// The most segments and sections that are looked at, and linkage tables that are kept.
const MAX_SEGMENTS: usize = 1024;
const MAX_SECTIONS: usize = 65536;
/// The most executable segments.
const MAX_CODE: usize = 64;
const MAX_LINKAGE: usize = 16;
/// Bytes of a page of the machine.
const FILE_PAGE: u64 = 4096;
/// The largest `.eh_frame`.
const MAX_EH_FRAME: u64 = 256 << 20;

/// Bytes, and where they are loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded<'b> {
    pub address: u64,
    pub bytes: &'b [u8],
}

/// How the entries of a linkage table push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linkage {
    /// `.plt`: lazy entries of 16 bytes, which push a number before they jump.
    Lazy,
    /// Others: they only jump.
    Plain,
}

/// An executable segment: where it lies in the file, and where it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    offset: u64,
    len: u64,
    address: u64,
}

impl Segment {
    /// The address of what lies at `offset` of the file; mappings begin with whole pages of the file.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let before = self.offset % FILE_PAGE;
        let within = offset.checked_sub(self.offset - before)?;
        (within < self.len.saturating_add(before)).then(|| self.address.wrapping_sub(before).wrapping_add(within))
    }
}

/// A file.
#[derive(Debug)]
pub(super) struct Image<'b> {
    /// Addresses of code, sorted, apart.
    code: Vec<Range<u64>>,
    pub segments: Vec<Segment>,
    pub eh_frame: Option<Loaded<'b>>,
    /// Addresses that pointers in `.eh_frame` may be relative to.
    pub text: u64,
    pub got: u64,
    pub linkage: Vec<(Linkage, Loaded<'b>)>,
}

type Header = FileHeader64<LittleEndian>;

impl<'b> Image<'b> {
    pub fn parse(file: &'b [u8]) -> Result<Image<'b>, BuildError> {
        let e = LittleEndian;
        let header = Header::parse(file).map_err(|_| BuildError::Kind)?;
        if !header.is_little_endian() || header.e_machine(e) != EM_X86_64 {
            return Err(BuildError::Kind);
        }
        let mut image =
            Image { code: Vec::new(), segments: Vec::new(), eh_frame: None, text: 0, got: 0, linkage: Vec::new() };
        let segments = header.program_headers(e, file).map_err(|_| BuildError::Kind)?;
        for s in segments.iter().take(MAX_SEGMENTS) {
            // Linkers of the LLVM family let segments share a page of the file: only what can be executed counts.
            if s.p_type(e) == PT_LOAD && s.p_flags(e) & PF_X != 0 && image.code.len() < MAX_CODE {
                let start = s.p_vaddr(e);
                let end = start.checked_add(s.p_memsz(e)).ok_or(BuildError::Kind)?;
                image.segments.push(Segment { offset: s.p_offset(e), len: s.p_filesz(e), address: start });
                image.code.extend((start < end).then_some(start..end));
            }
        }
        image.code.sort_by_key(|r| (r.start, r.end));
        let (Some(first), Some(last)) = (image.code.first(), image.code.iter().map(|r| r.end).max()) else {
            return Err(BuildError::NoCode);
        };
        if last - (first.start >> PAGE_BITS << PAGE_BITS) > u64::from(u32::MAX) {
            return Err(BuildError::Size);
        }
        image.sections(file, header)?;
        if image.eh_frame.is_none() {
            image.eh_frame =
                segments.iter().take(MAX_SEGMENTS).find(|s| s.p_type(e) == PT_GNU_EH_FRAME).and_then(|s| {
                    let at = usize::try_from(s.p_offset(e)).ok()?;
                    let head = file.get(at..at.checked_add(12)?)?;
                    by_header(file, segments, s.p_vaddr(e), head)
                });
        }
        if image.eh_frame.is_some_and(|f| f.bytes.len() as u64 > MAX_EH_FRAME) {
            return Err(BuildError::Size);
        }
        Ok(image)
    }

    fn sections(&mut self, file: &'b [u8], header: &'b Header) -> Result<(), BuildError> {
        let e = LittleEndian;
        // A file may have lost its sections; then the segments say where things are.
        let Ok(sections) = header.sections(e, file) else { return Ok(()) };
        for s in sections.iter().take(MAX_SECTIONS) {
            let (Ok(name), Ok(bytes)) = (sections.section_name(e, s), s.data(e, file)) else { continue };
            let loaded = Loaded { address: s.sh_addr(e), bytes };
            let is_there = s.sh_type(e) != SHT_NOBITS && s.sh_flags(e) & u64::from(SHF_COMPRESSED) == 0;
            match name {
                b".eh_frame" if is_there => self.eh_frame = Some(loaded),
                b".text" => self.text = loaded.address,
                b".got" => self.got = loaded.address,
                b".plt" if is_there => self.link(Linkage::Lazy, loaded),
                b".plt.sec" | b".plt.got" | b".plt.bnd" | b".iplt" if is_there => self.link(Linkage::Plain, loaded),
                _ => {}
            }
        }
        Ok(())
    }

    fn link(&mut self, kind: Linkage, table: Loaded<'b>) {
        if self.linkage.len() < MAX_LINKAGE {
            self.linkage.push((kind, table));
        }
    }

    /// Where the first page begins.
    pub fn base(&self) -> u64 {
        self.code.first().map_or(0, |r| r.start) >> PAGE_BITS << PAGE_BITS
    }

    /// From there to the end of the code; below 4 GiB.
    pub fn span(&self) -> u32 {
        let end = self.code.iter().map(|r| r.end).max().unwrap_or(0);
        (end - self.base()).try_into().unwrap_or(u32::MAX)
    }

    /// Addresses counted from [`Image::base`], if they are code.
    pub fn relative(&self, start: u64, end: u64) -> Option<Range<u32>> {
        let inside = self.code.iter().any(|c| c.start <= start && end <= c.end);
        let low = |address: u64| u32::try_from(address.checked_sub(self.base())?).ok();
        (inside && start < end).then_some(low(start)?..low(end)?)
    }
}

/// `.eh_frame` by the address that `.eh_frame_hdr` has: to the end of the segment's bytes, for it ends with a zero word.
fn by_header<'b>(
    file: &'b [u8],
    segments: &[object::elf::ProgramHeader64<LittleEndian>],
    hdr: u64,
    head: &[u8],
) -> Option<Loaded<'b>> {
    let e = LittleEndian;
    // Version 1, and the pointer as linkers write it: 4 bytes, relative to its own place (DW_EH_PE_pcrel | DW_EH_PE_sdata4).
    let (&[1, 0x1b, _, _, a, b, c, d], _) = head.split_first_chunk::<8>()? else { return None };
    let address = hdr.checked_add(4)?.wrapping_add(i64::from(i32::from_le_bytes([a, b, c, d])) as u64);
    let load = segments
        .iter()
        .take(MAX_SEGMENTS)
        .find(|s| s.p_type(e) == PT_LOAD && address.checked_sub(s.p_vaddr(e)).is_some_and(|at| at < s.p_filesz(e)))?;
    let within = address - load.p_vaddr(e);
    let start = usize::try_from(load.p_offset(e).checked_add(within)?).ok()?;
    let len = usize::try_from(load.p_filesz(e) - within).ok()?;
    Some(Loaded { address, bytes: file.get(start..start.checked_add(len)?)? })
}
