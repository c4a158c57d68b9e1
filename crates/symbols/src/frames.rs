//! Where functions begin and end by the compiler's tables for unwinders (`.eh_frame`): stripped files have it too, and it cannot name
//! a label within a function.

use crate::headers::Headers;
use crate::{Elf, ReadAt};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, CommonInformationEntry, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice,
    LittleEndian, Pointer, UnwindContext, UnwindSection,
};
use std::collections::HashMap;
use std::ops::Range;

/// The most bytes of the section that are read, and entries of it.
const MAX_SECTION: u64 = 256 << 20;
const MAX_FRAMES: usize = 4 << 20;

type Slice<'b> = EndianSlice<'b, LittleEndian>;

/// What one entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// First address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Exceptions may lead into it: there is a table of landing places.
    pub lands: bool,
    /// Where the entry lies in the section.
    pub(crate) entry: usize,
}

impl Frame {
    /// Of what only a table of symbols knows.
    pub fn unknown(start: u64, end: u64) -> Frame {
        Frame { start, end, lands: false, entry: usize::MAX }
    }
}

/// Number of the stack pointer in debug information (System V ABI for x86-64, figure 3.36).
const STACK_POINTER: u16 = 7;

/// The table of a file's `.eh_frame_hdr`, by which single functions are found without all of them being read.
#[derive(Debug)]
pub struct Table {
    table: Vec<u8>,
    frames: Vec<u8>,
    bases: BaseAddresses,
}

impl Table {
    /// Reads it; none of a file without.
    pub fn read(headers: &Headers, file: &(impl ReadAt + ?Sized)) -> Option<Table> {
        let bytes = |name: &str| headers.bytes(file, name, MAX_SECTION);
        let of = |name: &str| headers.section(name).map_or(0, |s| s.address);
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(of(".eh_frame_hdr"))
            .set_eh_frame(of(".eh_frame"))
            .set_text(of(".text"));
        Some(Table { table: bytes(".eh_frame_hdr")?, frames: bytes(".eh_frame")?, bases })
    }

    /// The last function that begins at an address or before it.
    fn last(&self, address: u64) -> Option<Range<u64>> {
        let table = EhFrameHdr::new(&self.table, LittleEndian).parse(&self.bases, 8).ok()?;
        let (table, section) = (table.table()?, EhFrame::new(&self.frames, LittleEndian));
        let at = table.pointer_to_offset(table.lookup(address, &self.bases).ok()?).ok()?;
        let fde = section.fde_from_offset(&self.bases, at, EhFrame::cie_from_offset).ok()?;
        let function = fde.initial_address()..fde.initial_address().checked_add(fde.len())?;
        (function.start <= address).then_some(function)
    }

    /// The function that an address lies in.
    pub fn function(&self, address: u64) -> Option<Range<u64>> {
        self.last(address).filter(|function| function.contains(&address))
    }

    /// What lies between functions that follow each other, within a range around the function of an address: less than the alignment of
    /// functions each.
    pub fn gaps(&self, address: u64, near: &Range<u64>) -> Vec<Range<u64>> {
        const ALIGNMENT: u64 = 16;
        let mut gaps = vec![];
        let Some(here) = self.function(address) else { return gaps };
        let mut function = here.clone();
        while function.start > near.start
            && let Some(before) = self.last(function.start - 1)
            && before.end <= function.start
            && function.start - before.end < ALIGNMENT
        {
            gaps.push(before.end..function.start);
            function = before;
        }
        let mut function = here;
        while function.end < near.end
            && let Some(next) = self.last(function.end + ALIGNMENT - 1)
            && next.start >= function.end
        {
            gaps.push(function.end..next.start);
            function = next;
        }
        gaps
    }
}

/// All of a file's.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where they are loaded, and where the code is.
    address: u64,
    text: u64,
    all: Vec<Frame>,
}

impl Frames {
    /// Reads them; none of a file without. Damaged entries end the list.
    pub fn read(elf: &Elf, file: &(impl ReadAt + ?Sized)) -> Frames {
        let Some(section) = elf.section(".eh_frame").filter(|s| s.size <= MAX_SECTION && !s.compressed) else {
            return Frames::default();
        };
        let mut bytes = vec![0; section.size as usize];
        if file.read_at(section.offset, &mut bytes).is_err() {
            return Frames::default();
        }
        let text = elf.section(".text").map_or(0, |s| s.address);
        Frames::parse(bytes, section.address, text)
    }

    /// Reads those of a file with these headers.
    pub fn of_headers(headers: &Headers, file: &(impl ReadAt + ?Sized)) -> Frames {
        let Some(bytes) = headers.bytes(file, ".eh_frame", MAX_SECTION) else { return Frames::default() };
        let address = |name: &str| headers.section(name).map_or(0, |s| s.address);
        Frames::parse(bytes, address(".eh_frame"), address(".text"))
    }

    fn bases(&self) -> BaseAddresses {
        BaseAddresses::default().set_eh_frame(self.address).set_text(self.text)
    }

    /// Of the section's bytes, which are loaded at `address`; `text` is where the code is.
    fn parse(bytes: Vec<u8>, address: u64, text: u64) -> Frames {
        let mut frames = Frames { bytes, address, text, all: Vec::new() };
        frames.all = frames.entries();
        frames
    }

    fn entries(&self) -> Vec<Frame> {
        let section = EhFrame::new(&self.bytes, LittleEndian);
        let bases = self.bases();
        let mut cies: HashMap<usize, CommonInformationEntry<Slice<'_>>> = HashMap::new();
        let mut all = Vec::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next()
            && all.len() < MAX_FRAMES
        {
            let CieOrFde::Fde(partial) = entry else { continue };
            let fde = partial.parse(|section, bases, EhFrameOffset(at)| {
                if let Some(known) = cies.get(&at) {
                    return Ok(known.clone());
                }
                let cie = section.cie_from_offset(bases, EhFrameOffset(at))?;
                cies.insert(at, cie.clone());
                Ok(cie)
            });
            let Ok(fde) = fde else { break };
            let (start, end) = (fde.initial_address(), fde.initial_address().saturating_add(fde.len()));
            if start < end {
                all.push(Frame { start, end, lands: fde.lsda().is_some(), entry: fde.offset() });
            }
        }
        all.sort_unstable();
        all
    }

    /// The functions that have a table of landing places: where they begin, and where the table is.
    pub fn landing_tables(&self) -> Vec<(u64, u64)> {
        let section = EhFrame::new(&self.bytes, LittleEndian);
        let bases = self.bases();
        let of = |frame: &Frame| {
            let fde = section.fde_from_offset(&bases, EhFrameOffset(frame.entry), EhFrame::cie_from_offset).ok()?;
            match fde.lsda()? {
                Pointer::Direct(table) => Some((fde.initial_address(), table)),
                Pointer::Indirect(_) => None,
            }
        };
        self.all.iter().filter(|f| f.lands).filter_map(of).collect()
    }

    /// Whether the return address lies where a call has just put it when an instruction is reached: at the entry of a function, and not
    /// in a part of one that is jumped to. None: no entry covers it.
    pub fn is_as_called(&self, address: u64) -> Option<bool> {
        let frame = self.at(address)?;
        let section = EhFrame::new(&self.bytes, LittleEndian);
        let bases = self.bases();
        let fde = section.fde_from_offset(&bases, EhFrameOffset(frame.entry), EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&section, &bases, &mut context, address).ok()?;
        Some(matches!(row.cfa(), CfaRule::RegisterAndOffset { register, offset: 8 } if register.0 == STACK_POINTER))
    }

    /// All of them, by address.
    pub fn all(&self) -> &[Frame] {
        &self.all
    }

    /// That which an address lies in.
    pub fn at(&self, address: u64) -> Option<Frame> {
        let next = self.all.partition_point(|f| f.start <= address);
        let found = *self.all.get(next.checked_sub(1)?)?;
        (address < found.end).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn one_function_is_found_as_among_all() {
        let bytes = own();
        let headers = Headers::read(&bytes).unwrap();
        let all = Frames::of_headers(&headers, &bytes);
        let table = Table::read(&headers, &bytes).unwrap();
        for pair in all.all().windows(2).step_by(all.all().len() / 50 + 1) {
            let (here, next) = (pair[0].start..pair[0].end, pair[1].start);
            let middle = here.start + (here.end - here.start) / 2;
            assert_eq!(table.function(middle), Some(here.clone()));
            let gaps = table.gaps(middle, &(here.end..here.end + 1));
            assert_eq!(gaps.contains(&(here.end..next)), next - here.end < 16, "{here:x?} {next:x} {gaps:x?}");
        }
        assert_eq!(table.function(1), None);
    }

    #[test]
    fn functions_of_this_program_have_frames() {
        let bytes = own();
        let elf = Elf::parse(&bytes[..]).unwrap();
        let frames = Frames::read(&elf, &bytes[..]);
        let [main] = elf.function("main") else { panic!("one main") };
        let frame = frames.at(main.address).unwrap();
        assert_eq!((frame.start, frame.end), (main.address, main.address + main.size));
        assert_eq!(frames.at(main.address + 1), Some(frame));
        assert_eq!(frames.is_as_called(main.address), Some(true));
        // Behind its first push.
        assert!((1..main.size).any(|at| frames.is_as_called(main.address + at) == Some(false)));
        assert_eq!((frames.at(0), frames.at(u64::MAX)), (None, None));
        let own = elf.functions().iter().filter(|f| f.name.contains("frames") && f.size > 0);
        assert!(
            own.clone().count() > 5 && own.clone().all(|f| frames.at(f.address).is_some_and(|r| r.start == f.address))
        );
    }

    #[test]
    fn damaged_sections_end_the_list() {
        let bytes = own();
        let elf = Elf::parse(&bytes[..]).unwrap();
        let s = elf.section(".eh_frame").unwrap();
        let mut part = bytes[s.offset as usize..][..4000.min(s.size as usize)].to_vec();
        let whole = Frames::parse(part.clone(), s.address, 0);
        assert!(whole.all.len() > 10);
        for at in 0..part.len() {
            let old = std::mem::replace(&mut part[at], 0xff);
            let damaged = Frames::parse(part.clone(), s.address, 0);
            assert!(damaged.all.len() <= part.len());
            assert!(damaged.all.iter().filter_map(|f| damaged.is_as_called(f.start)).count() <= damaged.all.len());
            part[at] = old;
            let _ = Frames::parse(part[..at].to_vec(), u64::MAX, u64::MAX);
        }
    }
}
