//! Where functions begin and end by what the compiler tells unwinders (`.eh_frame`): stripped files have it too, and it cannot name
//! a label within a function.

use crate::{Elf, ReadAt};
use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, UnwindSection,
};
use std::collections::HashMap;

/// The most bytes of the section that are read, and entries of it.
const MAX_SECTION: u64 = 256 << 20;
const MAX_FRAMES: usize = 4 << 20;

type Slice<'b> = EndianSlice<'b, LittleEndian>;

/// What one entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// First address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
    /// Exceptions may lead into it: there is a table of landing places.
    pub lands: bool,
}

/// All of a file's.
#[derive(Clone, Debug, Default)]
pub struct Frames(Vec<Frame>);

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
        Frames::parse(&bytes, section.address, text)
    }

    /// Of the section's bytes, which are loaded at `address`; `text` is where the code is.
    fn parse(bytes: &[u8], address: u64, text: u64) -> Frames {
        let section = EhFrame::new(bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(address).set_text(text);
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
                all.push(Frame { start, end, lands: fde.lsda().is_some() });
            }
        }
        all.sort_unstable();
        Frames(all)
    }

    /// That which an address lies in.
    pub fn at(&self, address: u64) -> Option<Frame> {
        let next = self.0.partition_point(|f| f.start <= address);
        let found = *self.0.get(next.checked_sub(1)?)?;
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
    fn functions_of_this_program_have_frames() {
        let bytes = own();
        let elf = Elf::parse(&bytes[..]).unwrap();
        let frames = Frames::read(&elf, &bytes[..]);
        let [main] = elf.function("main") else { panic!("one main") };
        let frame = frames.at(main.address).unwrap();
        assert_eq!((frame.start, frame.end), (main.address, main.address + main.size));
        assert_eq!(frames.at(main.address + 1), Some(frame));
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
        let whole = Frames::parse(&part, s.address, 0).0.len();
        assert!(whole > 10);
        for at in 0..part.len() {
            let old = std::mem::replace(&mut part[at], 0xff);
            assert!(Frames::parse(&part, s.address, 0).0.len() <= part.len());
            part[at] = old;
            let _ = Frames::parse(&part[..at], u64::MAX, u64::MAX);
        }
    }
}
