//! Builds the BTF that trapline's own maps and programs need: ints, arrays, structures, functions.
//!
//! Ids count from 1 in the order of the calls.

use super::{Kind, MAGIC};

/// BTF being made.
#[derive(Clone, Debug)]
pub struct Builder {
    types: Vec<u8>,
    strings: Vec<u8>,
    last: u32,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// No types yet.
    pub fn new() -> Builder {
        Builder { types: Vec::new(), strings: vec![0], last: 0 }
    }

    fn text(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(name.bytes().filter(|b| *b != 0));
        self.strings.push(0);
        at
    }

    fn words(&mut self, words: &[u32]) {
        self.types.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
    }

    fn add(&mut self, name: &str, kind: Kind, count: usize, value: u32) -> u32 {
        let name = self.text(name);
        self.words(&[name, (kind as u32) << 24 | count as u32, value]);
        self.last += 1;
        self.last
    }

    /// An integer of `size` bytes.
    pub fn int(&mut self, name: &str, size: u32, signed: bool) -> u32 {
        let id = self.add(name, Kind::Int, 0, size);
        self.words(&[(u32::from(signed) << 24) | (size * 8)]);
        id
    }

    /// A pointer to `to` (0: void).
    pub fn pointer(&mut self, to: u32) -> u32 {
        self.add("", Kind::Ptr, 0, to)
    }

    /// `count` times `of`, indexed by the int `index`.
    pub fn array(&mut self, of: u32, index: u32, count: u32) -> u32 {
        let id = self.add("", Kind::Array, 0, 0);
        self.words(&[of, index, count]);
        id
    }

    /// A structure with members (name, type, offset in bytes).
    pub fn structure(&mut self, name: &str, size: u32, members: &[(&str, u32, u32)]) -> u32 {
        let id = self.add(name, Kind::Struct, members.len(), size);
        for (name, of, offset) in members {
            let name = self.text(name);
            self.words(&[name, *of, offset * 8]);
        }
        id
    }

    /// A static function with named parameters (name, type); the verifier wants the names.
    pub fn function(&mut self, name: &str, returns: u32, params: &[(&str, u32)]) -> u32 {
        let proto = self.add("", Kind::FuncProto, params.len(), returns);
        for (name, of) in params {
            let name = self.text(name);
            self.words(&[name, *of]);
        }
        self.add(name, Kind::Func, 0, proto)
    }

    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let head = [u32::from(MAGIC) | 1 << 16, 24, 0, types, types, strings];
        let mut out: Vec<u8> = head.iter().flat_map(|w| w.to_ne_bytes()).collect();
        out.extend(self.types);
        out.extend(self.strings);
        out
    }
}

/// BTF for programs that are called back by bpf_loop: bytes, id of the main function, id of those called back.
pub fn program_types() -> (Vec<u8>, u32, u32) {
    let mut b = Builder::new();
    let long = b.int("long", 8, true);
    let index = b.int("u64", 8, false);
    let pointer = b.pointer(0);
    let main = b.function("trapline_main", long, &[("context", pointer)]);
    let callback = b.function("trapline_callback", long, &[("index", index), ("frame", pointer)]);
    (b.finish(), main, callback)
}

/// BTF for a map with a 4-byte key and a value of `size` bytes (a multiple of 8): bytes, id of the key, id of the value.
pub fn value_types(name: &str, size: u32) -> (Vec<u8>, u32, u32) {
    let mut b = Builder::new();
    let int = b.int("int", 4, true);
    let word = b.int("u64", 8, false);
    let words = b.array(word, int, size / 8);
    let value = b.structure(name, size, &[("words", words, 0)]);
    (b.finish(), int, value)
}
