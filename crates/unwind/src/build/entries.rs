//! The entries of `.eh_frame`: functions (FDEs), and what they have in common (CIEs).
//!
//! ```text
//! u32 length │ u32 0        │ u8 version │ augmentation "zRLPS…" │ code, data factor │ … │ u8 encoding … │ instructions    CIE
//! u32 length │ u32 distance │ address │ bytes │ augmentation data │ instructions                                          FDE
//! ```
//!
//! Formats: System V ABI for x86-64, LSB 5.0 chapter 10 (exception frames).

use super::image::Loaded;

/// Encodings of pointers (DW_EH_PE): size and sign in the lower half, what they are relative to in the upper one.
const ABSOLUTE: u8 = 0x00;
const TO_PLACE: u8 = 0x10;
const TO_TEXT: u8 = 0x20;
const TO_DATA: u8 = 0x30;
/// 4 bytes, signed, relative to their own place: what linkers write.
const USUAL: u8 = 0x1b;

/// Bytes that are read from the front; none behind the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'b>(pub &'b [u8]);

impl<'b> Bytes<'b> {
    pub fn take(&mut self, len: u64) -> Option<&'b [u8]> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn number<const N: usize>(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(head.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    /// Variable length, 7 bits a byte; its bits, and how many there were.
    fn leb(&mut self) -> Option<(u64, u32, u8)> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Some((value, shift, byte));
            }
            if shift > 10 * 7 {
                return None;
            }
        }
    }

    pub fn uleb(&mut self) -> Option<u64> {
        // Nearly all take one byte.
        if let Some((first @ 0..0x80, rest)) = self.0.split_first() {
            self.0 = rest;
            return Some(u64::from(*first));
        }
        Some(self.leb()?.0)
    }

    pub fn sleb(&mut self) -> Option<i64> {
        let (value, bits, last) = self.leb()?;
        let negative = last & 0x40 != 0 && bits < 64;
        Some((value | if negative { u64::MAX << bits } else { 0 }) as i64)
    }
}

/// Addresses that pointers may be relative to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases {
    pub text: u64,
    pub data: u64,
}

/// What functions have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cie<'b> {
    /// Units of the instructions, bytes.
    pub code: u64,
    pub data: i64,
    /// A signal handler returns to its functions.
    pub signal: bool,
    /// There is augmentation data, which says how long it is.
    sized: bool,
    encoding: u8,
    pub instructions: &'b [u8],
    /// Bytes of the entry.
    pub len: u64,
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<'b> {
    pub start: u64,
    pub len: u64,
    pub instructions: &'b [u8],
}

/// An entry, not looked into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'b> {
    /// Where the CIE is of an FDE; none: it is a CIE.
    pub cie: Option<usize>,
    /// Behind the distance; and the address of that.
    bytes: &'b [u8],
    address: u64,
    /// Bytes of the entry.
    pub len: u64,
}

/// Reads the entry at `at`, and says where the next one is. Outer none: it is damaged; inner none: it is the end.
pub(super) fn entry<'b>(section: &Loaded<'b>, at: usize) -> Option<Option<(Entry<'b>, usize)>> {
    let Some(rest) = section.bytes.get(at..).filter(|r| !r.is_empty()) else { return Some(None) };
    let mut bytes = Bytes(rest);
    let len = match bytes.number::<4>()? {
        0 => return Some(None),
        0xffff_ffff => bytes.number::<8>()?,
        len => len,
    };
    let mut inside = Bytes(bytes.take(len)?);
    let next = section.bytes.len() - bytes.0.len();
    let place = next - inside.0.len();
    let distance = inside.number::<4>()?;
    let cie = match distance {
        0 => None,
        // One that leads out of the section leads nowhere.
        _ => Some(place.checked_sub(distance as usize).unwrap_or(usize::MAX)),
    };
    let address = section.address.wrapping_add(place as u64 + 4);
    Some(Some((Entry { cie, bytes: inside.0, address, len }, next)))
}

/// The CIE at `at`.
pub(super) fn cie<'b>(section: &Loaded<'b>, at: usize) -> Option<Cie<'b>> {
    let (entry, _) = entry(section, at)??;
    let mut bytes = Bytes(entry.bytes);
    let version = bytes.byte()?;
    let end = bytes.0.iter().position(|b| *b == 0)?;
    let augmentation = bytes.take(end as u64)?;
    bytes.byte()?;
    if entry.cie.is_some() || !matches!(version, 1 | 3) {
        return None;
    }
    let (code, data) = (bytes.uleb()?, bytes.sleb()?);
    if version == 1 { bytes.byte().map(u64::from) } else { bytes.uleb() }?;
    let (mut encoding, mut signal) = (ABSOLUTE, false);
    let sized = augmentation.first() == Some(&b'z');
    if sized {
        let len = bytes.uleb()?;
        let mut more = Bytes(bytes.take(len)?);
        for letter in &augmentation[1..] {
            match letter {
                b'L' => drop(more.byte()?),
                b'R' => encoding = more.byte()?,
                b'S' => signal = true,
                b'P' => {
                    let encoding = more.byte()?;
                    value(&mut more, encoding)?;
                }
                // Of other processors, or unknown: what follows is not read.
                _ => break,
            }
        }
    } else if !augmentation.is_empty() {
        return None;
    }
    Some(Cie { code, data, signal, sized, encoding, instructions: bytes.0, len: entry.len })
}

/// A number of that encoding.
fn value(bytes: &mut Bytes<'_>, encoding: u8) -> Option<u64> {
    Some(match encoding & 0xf {
        0x0 | 0x4 | 0xc => bytes.number::<8>()?,
        0x1 => bytes.uleb()?,
        0x2 => bytes.number::<2>()?,
        0x3 => bytes.number::<4>()?,
        0x9 => bytes.sleb()? as u64,
        0xa => bytes.number::<2>()? as i16 as u64,
        0xb => bytes.number::<4>()? as i32 as u64,
        _ => return None,
    })
}

impl<'b> Entry<'b> {
    /// The function that it describes.
    pub fn function(&self, cie: &Cie<'b>, bases: Bases) -> Option<Function<'b>> {
        let mut bytes = Bytes(self.bytes);
        let (start, len) = if cie.encoding == USUAL {
            let start = bytes.number::<4>()? as i32 as u64;
            (start.wrapping_add(self.address), bytes.number::<4>()?)
        } else {
            let base = match cie.encoding & 0xf0 {
                ABSOLUTE => 0,
                TO_PLACE => self.address,
                TO_TEXT => bases.text,
                TO_DATA => bases.data,
                _ => return None,
            };
            let start = value(&mut bytes, cie.encoding)?.wrapping_add(base);
            (start, value(&mut bytes, cie.encoding)?)
        };
        if cie.sized {
            let len = bytes.uleb()?;
            bytes.take(len)?;
        }
        Some(Function { start, len, instructions: bytes.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_variable_length() {
        // The examples of the DWARF standard.
        for (bytes, want) in [(&[2][..], 2), (&[0x7f], 127), (&[0x80, 1], 128), (&[0xb9, 0x64], 12857)] {
            assert_eq!(Bytes(bytes).uleb(), Some(want));
        }
        for (bytes, want) in [(&[2][..], 2), (&[0x7e], -2), (&[0xff, 0], 127), (&[0x81, 0x7f], -127), (&[0x80, 1], 128)]
        {
            assert_eq!(Bytes(bytes).sleb(), Some(want));
        }
        let least = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f];
        assert_eq!(
            (Bytes(&least).sleb(), Bytes(&[0x80]).uleb(), Bytes(&[0x80; 20]).sleb()),
            (Some(i64::MIN), None, None)
        );
    }
}
