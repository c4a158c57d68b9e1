//! Thrift's compact protocol, as far as Parquet's metadata needs it (thrift-compact-protocol.md of apache/thrift).

/// Types of fields and of elements.
pub const I32: u8 = 5;
pub const BINARY: u8 = 8;
pub const STRUCT: u8 = 12;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I64: u8 = 6;
const LIST: u8 = 9;

/// Writes a struct: its fields in the order of their numbers.
#[derive(Debug, Default)]
pub struct Struct {
    out: Vec<u8>,
    last: i16,
}

impl Struct {
    /// An `i32`.
    pub fn i32(&mut self, field: i16, v: i32) {
        self.head(field, I32);
        varint(zigzag(v.into()), &mut self.out);
    }

    /// An `i64`.
    pub fn i64(&mut self, field: i16, v: i64) {
        self.head(field, I64);
        varint(zigzag(v), &mut self.out);
    }

    /// A number that cannot be negative.
    pub fn count(&mut self, field: i16, v: usize) {
        self.i64(field, i64::try_from(v).unwrap_or(i64::MAX));
    }

    /// A truth.
    pub fn boolean(&mut self, field: i16, v: bool) {
        self.head(field, if v { TRUE } else { FALSE });
    }

    /// Bytes, or a string.
    pub fn binary(&mut self, field: i16, v: &[u8]) {
        self.head(field, BINARY);
        binary(v, &mut self.out);
    }

    /// A struct.
    pub fn nested(&mut self, field: i16, fields: impl FnOnce(&mut Struct)) {
        self.head(field, STRUCT);
        self.out.extend_from_slice(&written(fields));
    }

    /// A list of `n` elements of the type `of`, given in their written form.
    pub fn list(&mut self, field: i16, of: u8, n: usize, elements: &[u8]) {
        self.head(field, LIST);
        if n < 15 {
            self.out.push((n as u8) << 4 | of);
        } else {
            self.out.push(0xf0 | of);
            varint(n as u64, &mut self.out);
        }
        self.out.extend_from_slice(elements);
    }

    fn head(&mut self, field: i16, of: u8) {
        match field - self.last {
            step @ 1..=15 => self.out.push((step as u8) << 4 | of),
            _ => {
                self.out.push(of);
                varint(zigzag(field.into()), &mut self.out);
            }
        }
        self.last = field;
    }
}

/// A struct with these fields.
pub fn written(fields: impl FnOnce(&mut Struct)) -> Vec<u8> {
    let mut all = Struct::default();
    fields(&mut all);
    all.out.push(0);
    all.out
}

/// Appends a string as an element of a list.
pub fn binary(v: &[u8], out: &mut Vec<u8>) {
    varint(v.len() as u64, out);
    out.extend_from_slice(v);
}

/// A signed number with its sign in the lowest bit.
pub fn zigzag(v: i64) -> u64 {
    (v << 1 ^ v >> 63) as u64
}

/// Appends a number, seven bits to a byte, the lowest first.
pub fn varint(mut v: u64, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_known_by_how_far_they_are_from_the_last() {
        let bytes = written(|s| {
            s.i32(1, -1);
            s.boolean(2, true);
            s.binary(20, b"ab");
            s.nested(21, |s| s.i64(1, 300));
            s.list(22, I32, 1, &[4]);
        });
        assert_eq!(bytes, [0x15, 1, 0x11, 8, 40, 2, b'a', b'b', 0x1c, 0x16, 0xd8, 4, 0, 0x19, 0x15, 4, 0]);
    }

    #[test]
    fn numbers_have_their_sign_in_the_lowest_bit() {
        assert_eq!([0, -1, 1, i64::MAX, i64::MIN].map(zigzag), [0, 1, 2, u64::MAX - 1, u64::MAX]);
    }
}
