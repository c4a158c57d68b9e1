//! A member of a gzip file (RFC 1952): what Parquet's codec GZIP wants of each page.

use miniz_oxide::deflate::compress_to_vec;

/// Magic, deflate, no flags, no time, no system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// How much is compressed: level 3 makes files a tenth smaller, and takes twice as long.
const LEVEL: u8 = 1;

/// The polynomial, lowest bit first; and what each byte does to the sum from each of 8 places.
const POLYNOMIAL: u32 = 0xedb8_8320;
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut all = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        all[0][byte] = sum;
        byte += 1;
    }
    let mut place = 1;
    while place < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = all[place - 1][byte];
            all[place][byte] = before >> 8 ^ all[0][(before & 0xff) as usize];
            byte += 1;
        }
        place += 1;
    }
    all
}

/// CRC-32 of bytes, eight at once.
fn crc(bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let sum = eights.iter().fold(u32::MAX, |sum, eight| {
        let word = u64::from_le_bytes(*eight) ^ u64::from(sum);
        word.to_le_bytes().iter().rev().zip(&TABLES).fold(0, |all, (byte, table)| all ^ table[usize::from(*byte)])
    });
    !rest.iter().fold(sum, |sum, byte| sum >> 8 ^ TABLES[0][usize::from(sum as u8 ^ byte)])
}

/// Packs bytes.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut out = HEAD.to_vec();
    out.extend_from_slice(&compress_to_vec(bytes, LEVEL));
    out.extend_from_slice(&crc(bytes).to_le_bytes());
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standard() {
        assert_eq!(crc(b""), 0);
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc(b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
    }

    #[test]
    fn packed_bytes_come_back() {
        let text = b"abcabcabc".repeat(1000);
        let packed = packed(&text);
        let (deflated, sums) = packed[HEAD.len()..].split_at(packed.len() - HEAD.len() - 8);
        assert_eq!(miniz_oxide::inflate::decompress_to_vec(deflated).expect("deflate"), text);
        assert_eq!(sums[..4], crc(&text).to_le_bytes());
        assert_eq!(sums[4..], 9000u32.to_le_bytes());
    }
}
