//! The small table of symbols that some distributions leave in stripped programs: `.gnu_debugdata`, an ELF file packed by xz.
//!
//! ```text
//!  stream header 12 │ block: header, LZMA2 chunks, padding, check │ block … │ 0, index
//!  LZMA2 chunk: 1 kind, 2 bytes unpacked - 1, 2 bytes packed - 1, 1 properties │ data │ …   0: end
//! ```
//!
//! The chunks say how much they unpack to, so that what is too large is refused before anything is unpacked. Checks are not compared:
//! who could damage the file could correct them.

use lzma_rust2::Lzma2Reader;
use std::io::Read;

/// The most bytes when unpacked.
pub const MAX: usize = 64 << 20;
const MAGIC: &[u8] = b"\xfd7zXZ\0";
/// The filter LZMA2, and the largest dictionary that its byte of properties can say.
const LZMA2: u64 = 0x21;
const MAX_DICTIONARY: u8 = 40;

/// What was packed; none where it is damaged, uses a filter other than LZMA2, or unpacks to more than [`MAX`].
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut rest = packed.strip_prefix(MAGIC)?;
    // Bytes of the check behind a block, by its type.
    let check = match *rest.get(1)? & 15 {
        0 => 0,
        1..=3 => 4,
        4..=6 => 8,
        7..=9 => 16,
        10..=12 => 32,
        _ => 64,
    };
    rest = rest.get(6..)?;
    let mut out = Vec::new();
    while *rest.first()? != 0 {
        let head = rest.get(..4 * (usize::from(*rest.first()?) + 1))?;
        is_lzma2(head)?;
        rest = &rest[head.len()..];
        let (len, unpacked) = measure(rest)?;
        if out.len().checked_add(unpacked)? > MAX {
            return None;
        }
        let from = out.len();
        out.resize(from + unpacked, 0);
        // No distance reaches further back than what the block holds.
        let dictionary = unpacked.next_power_of_two().max(4096) as u32;
        let mut reader = Lzma2Reader::new(rest.get(..len)?, dictionary, None);
        reader.read_exact(out.get_mut(from..)?).ok()?;
        rest = rest.get(len.next_multiple_of(4) + check..)?;
    }
    Some(out)
}

/// Whether a block has no filter but LZMA2.
fn is_lzma2(head: &[u8]) -> Option<()> {
    let flags = *head.get(1)?;
    let mut at = 2;
    if flags & 0x3f != 0 {
        return None;
    }
    for present in [0x40, 0x80] {
        if flags & present != 0 {
            number(head, &mut at)?;
        }
    }
    let (filter, properties) = (number(head, &mut at)?, number(head, &mut at)?);
    (filter == LZMA2 && properties == 1 && *head.get(at)? <= MAX_DICTIONARY).then_some(())
}

/// A number of seven bits a byte, the lowest first.
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut n = 0;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// How many bytes chunks take, and unpack to.
fn measure(bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut at, mut unpacked) = (0usize, 0usize);
    loop {
        let size = |from: usize| Some(1 + usize::from(u16::from_be_bytes(*bytes.get(at + from..)?.first_chunk()?)));
        let kind = *bytes.get(at)?;
        match kind {
            0 => return Some((at + 1, unpacked)),
            1 | 2 => {
                unpacked += size(1)?;
                at += 3 + size(1)?;
            }
            0x80.. => {
                unpacked += (usize::from(kind & 0x1f) << 16) + size(1)?;
                at += 5 + usize::from(kind >= 0xc0) + size(3)?;
            }
            _ => return None,
        }
        if unpacked > MAX {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Packs bytes with xz; none where it is missing.
    fn pack(bytes: &[u8], flags: &[&str]) -> Option<Vec<u8>> {
        let mut xz = Command::new("xz");
        let child = xz.arg("-c").args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            testkit::skip("package:xz-utils", "no xz");
            return None;
        };
        let mut stdin = child.stdin.take().unwrap();
        let bytes = bytes.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes));
        let out = child.wait_with_output().unwrap().stdout;
        writer.join().unwrap().unwrap();
        Some(out)
    }

    fn sample() -> Vec<u8> {
        let mut exe = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        exe.truncate(600_000);
        exe
    }

    #[test]
    fn what_xz_packs_is_unpacked() {
        let bytes = sample();
        for flags in
            [&["-6"][..], &["-0", "--check=sha256"], &["-9", "--check=none"], &["--block-size=100000", "--check=crc32"]]
        {
            let Some(packed) = pack(&bytes, flags) else { return };
            assert!(unpack(&packed).as_deref() == Some(&bytes), "{flags:?}");
        }
        let Some(packed) = pack(&bytes, &["--x86", "--lzma2"]) else { return };
        assert_eq!(unpack(&packed), None);
        let Some(bomb) = pack(&vec![0; MAX + 1], &["-1"]) else { return };
        assert_eq!(unpack(&bomb), None);
    }

    #[test]
    fn damaged_bytes_unpack_to_something_else_or_to_nothing() {
        let Some(packed) = pack(&sample()[..200_000], &["-1"]) else { return };
        let mut r = testkit::Random::new(3);
        for _ in 0..testkit::rounds(500) {
            let mut bytes = packed.clone();
            for _ in 0..=r.below(5) {
                let near = if r.below(2) == 0 { 64 } else { bytes.len() };
                let at = r.index(near);
                bytes[at] = r.of(&[0, 1, 0x7f, 0x80, 0xe0, 0xff]);
            }
            if r.below(4) == 0 {
                bytes.truncate(r.index(bytes.len()));
            }
            let _ = unpack(&bytes);
        }
    }
}
