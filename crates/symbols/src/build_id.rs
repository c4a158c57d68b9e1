//! The build id of an ELF file: the note `GNU`, type 3, of a segment `PT_NOTE`. Files of 32 and 64 bits, of either byte order. A file
//! without segments, as dwz makes, has it in a section.
//!
//! ```text
//!  note: u32 length of the name │ u32 length of the description │ u32 type │ name, padded │ description, padded
//! ```

use crate::ReadAt;
use crate::headers::{Headers, read_bytes};

/// `PT_NOTE`.
const PT_NOTE: u64 = 4;
/// `NT_GNU_BUILD_ID`.
const NT_GNU_BUILD_ID: u32 = 3;
/// Limits: program headers that are read, and bytes of notes per segment.
const MAX_HEADERS: u64 = 256;
const MAX_NOTES: u64 = 1 << 16;
/// The longest build id that is believed (the kernel's: 20).
pub const MAX_ID: usize = 32;

/// Numbers in the byte order of the ELF header.
#[derive(Clone, Copy)]
struct Numbers {
    wide: bool,
    big: bool,
}

impl Numbers {
    fn get(self, bytes: &[u8], at: usize, len: usize) -> Option<u64> {
        let b = bytes.get(at..)?.get(..len)?;
        let fold = |acc: u64, b: &u8| acc << 8 | u64::from(*b);
        Some(if self.big { b.iter().fold(0, fold) } else { b.iter().rev().fold(0, fold) })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        self.get(bytes, at, 4).map(|v| v as u32)
    }
}

/// The build id of the ELF file that `file` holds; none: no ELF, no build id, or a damaged file.
pub fn of(file: &(impl ReadAt + ?Sized)) -> Option<Vec<u8>> {
    let mut head = [0; 64];
    file.read_at(0, &mut head[..52]).ok()?;
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let n = Numbers { wide: head[4] == 2, big: head[5] == 2 };
    if n.wide {
        file.read_at(0, &mut head).ok()?;
    }
    let (table, size, count) = match n.wide {
        true => (n.get(&head, 32, 8)?, n.get(&head, 54, 2)?, n.get(&head, 56, 2)?),
        false => (n.get(&head, 28, 4)?, n.get(&head, 42, 2)?, n.get(&head, 44, 2)?),
    };
    let want = if n.wide { 56 } else { 32 };
    if size < want as u64 {
        return None;
    }
    for i in 0..count.min(MAX_HEADERS) {
        let mut header = [0; 56];
        file.read_at(table.checked_add(i * size)?, &mut header[..want]).ok()?;
        if n.get(&header, 0, 4)? != PT_NOTE {
            continue;
        }
        let (offset, len, align) = match n.wide {
            true => (n.get(&header, 8, 8)?, n.get(&header, 32, 8)?, n.get(&header, 48, 8)?),
            false => (n.get(&header, 4, 4)?, n.get(&header, 16, 4)?, n.get(&header, 28, 4)?),
        };
        let mut notes = vec![0; len.min(MAX_NOTES) as usize];
        if file.read_at(offset, &mut notes).is_err() {
            continue;
        }
        if let Some(id) = in_notes(&notes, if align == 8 { 8 } else { 4 }, n) {
            return Some(id.to_vec());
        }
    }
    if count > 0 { None } else { in_sections(file, n) }
}

fn in_sections(file: &(impl ReadAt + ?Sized), n: Numbers) -> Option<Vec<u8>> {
    /// `SHT_NOTE`.
    const NOTE: u32 = 7;
    let headers = Headers::read(file)?;
    let notes = headers.sections.iter().filter(|s| s.kind == NOTE && s.size <= MAX_NOTES).take(MAX_HEADERS as usize);
    let mut found = notes.filter_map(|s| Some(in_notes(&read_bytes(file, s.offset, s.size)?, 4, n)?.to_vec()));
    found.next()
}

fn in_notes(mut notes: &[u8], align: usize, n: Numbers) -> Option<&[u8]> {
    const HEAD: usize = 12;
    while notes.len() >= HEAD {
        let (name_len, len, kind) = (n.u32(notes, 0)?, n.u32(notes, 4)?, n.u32(notes, 8)?);
        let from = HEAD.checked_add(name_len as usize)?.checked_next_multiple_of(align)?;
        let to = from.checked_add(len as usize)?;
        let name = notes.get(HEAD..HEAD + name_len as usize)?;
        let id = notes.get(from..to)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" && (1..=MAX_ID).contains(&id.len()) {
            return Some(id);
        }
        notes = notes.get(to.checked_next_multiple_of(align)?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], text: &[u8]) -> Vec<u8> {
        let mut v: Vec<u8> =
            [name.len() as u32, text.len() as u32, kind].iter().flat_map(|w| w.to_le_bytes()).collect();
        for part in [name, text] {
            v.extend(part);
            v.resize(v.len().next_multiple_of(4), 0);
        }
        v
    }

    /// A file of 64 bits with a note segment after its only program header.
    fn elf(notes: &[u8]) -> Vec<u8> {
        let mut v = b"\x7fELF\x02\x01\x01".to_vec();
        v.resize(64 + 56, 0);
        v[32..40].copy_from_slice(&64u64.to_le_bytes());
        v[54..56].copy_from_slice(&56u16.to_le_bytes());
        v[56..58].copy_from_slice(&1u16.to_le_bytes());
        v[64..68].copy_from_slice(&4u32.to_le_bytes());
        v[72..80].copy_from_slice(&120u64.to_le_bytes());
        v[96..104].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        v.extend(notes);
        v
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let file = elf(&[note(1, b"GNU\0", &[9; 16]), note(3, b"GNU\0", &[7; 20])].concat());
        assert_eq!(of(&file[..]), Some(vec![7; 20]));
        assert_eq!(of(&elf(&note(3, b"abc\0", &[7; 20]))[..]), None);
        assert_eq!(of(&elf(&note(3, b"GNU\0", &[7; 33]))[..]), None);
    }

    #[test]
    fn damaged_files_have_none() {
        let whole = elf(&note(3, b"GNU\0", &[7; 20]));
        for n in 0..whole.len() {
            assert_eq!(of(&whole[..n]), None, "{n}");
            let mut bad = whole.clone();
            for value in [0xff, 0x7f] {
                bad[n] = value;
                let _ = of(&bad[..]);
            }
        }
    }

    #[test]
    fn this_program_reads_as_readelf_does() {
        let exe = std::env::current_exe().unwrap();
        let Ok(out) = std::process::Command::new("readelf").arg("-n").arg(&exe).output() else {
            return testkit::skip("package:binutils", "no readelf");
        };
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let said = text.lines().find_map(|l| l.trim().strip_prefix("Build ID: ")).map(str::to_string);
        let found = of(&std::fs::File::open(exe).unwrap());
        assert_eq!(found.map(|id| id.iter().map(|b| format!("{b:02x}")).collect::<String>()), said);
    }
}
