//! The encoding of protocol buffers: fields with a number and a type, in any order.

/// Wire types (protobuf.dev, "Encoding").
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

/// The fields of a message.
#[derive(Debug, Default)]
pub struct Message {
    pub bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.bytes.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.bytes.push(v as u8);
    }

    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// A field with a number. 0 is the default, and is left out.
    pub fn number(&mut self, field: u32, v: u64) {
        if v > 0 {
            self.tag(field, VARINT);
            self.varint(v);
        }
    }

    /// A field with a number of 8 bytes.
    pub fn fixed(&mut self, field: u32, v: u64) {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }

    /// A field with bytes or a string, even an empty one.
    pub fn bytes_of(&mut self, field: u32, b: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(b.len() as u64);
        self.bytes.extend_from_slice(b);
    }

    /// A field with a message.
    pub fn message(&mut self, field: u32, m: &Message) {
        self.bytes_of(field, &m.bytes);
    }

    /// A field with a number, even 0.
    pub fn number_or_zero(&mut self, field: u32, v: u64) {
        self.tag(field, VARINT);
        self.varint(v);
    }

    /// A field with a message that is written in place.
    pub fn nested(&mut self, field: u32, fields: impl FnOnce(&mut Message)) {
        self.tag(field, LENGTH);
        // Most messages are so short that their length has one byte.
        self.bytes.push(0);
        let from = self.bytes.len();
        fields(self);
        let len = self.bytes.len() - from;
        if len < 0x80 {
            self.bytes[from - 1] = len as u8;
        } else {
            let inside = self.bytes.split_off(from);
            self.bytes.pop();
            self.varint(len as u64);
            self.bytes.extend_from_slice(&inside);
        }
    }

    /// A repeated field with numbers, packed.
    pub fn packed(&mut self, field: u32, numbers: &[u64]) {
        let mut m = Message::default();
        numbers.iter().for_each(|n| m.varint(*n));
        self.message(field, &m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_in_the_specification() {
        let mut m = Message::default();
        m.number(1, 150);
        m.bytes_of(2, b"testing");
        m.packed(6, &[3, 270, 86942]);
        m.number(7, 0);
        let want = [&b"\x08\x96\x01\x12\x07testing"[..], b"\x32\x06\x03\x8e\x02\x9e\xa7\x05"].concat();
        assert_eq!(m.bytes, want);
    }

    #[test]
    fn a_message_in_place_is_one_that_was_made_before() {
        for len in [0, 1, 127, 128, 20_000] {
            let (mut inner, mut a, mut b) = (Message::default(), Message::default(), Message::default());
            inner.bytes_of(3, &vec![7; len]);
            a.message(5, &inner);
            b.nested(5, |m| m.bytes_of(3, &vec![7; len]));
            assert_eq!(a.bytes, b.bytes);
        }
    }
}
