//! Packs: what is known of the addresses of a trace in one module, in a small file, so that names are found where the module is not.
//!
//! ```text
//!  16 bytes "trapline-pack 1\n"
//!  build id, path                                        each: length, bytes
//!  n × string                                            length, UTF-8
//!  n × segment: address, offset in the file, bytes       what is mapped executable
//!  n × function: distance of its start from the last one's, bytes, name
//!  n × address: distance from the last one, n × call: name, file, line, distance from the function's start, 1 if inlined
//! ```
//!
//! Numbers are unsigned LEB128. A name or a file is the number of a string, plus 1; 0: not known. Names are as the linker knows them, so
//! that the reader decides how they are shown. The calls of an address are those of [`crate::module::Module::calls`]: the innermost first.

use crate::dwarf::Call;
use crate::files::{Identity, hex};
use crate::headers::{Headers, Segment};
use std::collections::HashMap;
use std::rc::Rc;

const MAGIC: &[u8; 16] = b"trapline-pack 1\n";
/// What a pack's name ends with.
const SUFFIX: &str = "pack";
/// The most strings, functions, addresses and calls of a pack, each; and the longest string.
const MAX_ITEMS: usize = 4 << 20;
const MAX_STRING: usize = 4096;

/// The name of the file that a module's pack is in: its build id, else a number made of its path and stamp.
pub fn file_name(of: &Identity) -> String {
    if !of.build_id.is_empty() {
        return format!("{}.{SUFFIX}", hex(&of.build_id));
    }
    // FNV-1a: equal for every version of this program.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let stamp = of.stamp.map(|s| [s.size.to_le_bytes(), s.modified.to_le_bytes()].concat()).unwrap_or_default();
    for b in of.path.as_os_str().as_encoded_bytes().iter().chain(&stamp) {
        hash = (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
    }
    format!("path-{hash:016x}.{SUFFIX}")
}

/// Why bytes are no pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// It does not begin as one.
    #[error("not a pack of this version")]
    Kind,
    /// It ends too early, or contradicts itself.
    #[error("a damaged pack")]
    Damaged,
}

/// Writes a pack.
#[derive(Default)]
pub struct PackWriter {
    head: Vec<u8>,
    strings: Vec<u8>,
    numbers: HashMap<Rc<str>, u64>,
    segments: Vec<Segment>,
    functions: Vec<(u64, u64, u64)>,
    addresses: Vec<(u64, Vec<u8>)>,
}

impl PackWriter {
    /// Of a module.
    pub fn new(of: &Identity, headers: Option<&Headers>) -> PackWriter {
        let mut head = MAGIC.to_vec();
        for bytes in [&of.build_id, of.path.as_os_str().as_encoded_bytes()] {
            let bytes = &bytes[..bytes.len().min(MAX_STRING)];
            put(&mut head, bytes.len() as u64);
            head.extend(bytes);
        }
        let segments = headers.map(|h| h.segments.iter().filter(|s| s.executable).copied().collect());
        PackWriter { head, segments: segments.unwrap_or_default(), ..PackWriter::default() }
    }

    /// Adds a function by the name that the linker knows.
    pub fn function(&mut self, start: u64, end: u64, name: &str) {
        let name = self.string(Some(name));
        self.functions.push((start, end.saturating_sub(start), name));
    }

    /// Adds what is known of an address.
    pub fn address(&mut self, address: u64, calls: &[Call]) {
        let mut bytes = Vec::new();
        put(&mut bytes, calls.len() as u64);
        for call in calls {
            let (name, file) = (self.string(call.function.as_deref()), self.string(call.file.as_deref()));
            let distance = address.wrapping_sub(call.start);
            put_all(&mut bytes, &[name, file, call.line.into(), distance, call.inlined.into()]);
        }
        self.addresses.push((address, bytes));
    }

    fn string(&mut self, text: Option<&str>) -> u64 {
        let Some(text) = text else { return 0 };
        let end = (0..=text.len().min(MAX_STRING)).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
        let text = &text[..end];
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.numbers.len() as u64 + 1;
        put(&mut self.strings, text.len() as u64);
        self.strings.extend(text.as_bytes());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The bytes of the pack.
    pub fn finish(mut self) -> Vec<u8> {
        let mut out = self.head;
        put(&mut out, self.numbers.len() as u64);
        out.append(&mut self.strings);
        put(&mut out, self.segments.len() as u64);
        for s in &self.segments {
            put_all(&mut out, &[s.address, s.offset, s.len]);
        }
        self.functions.sort_unstable();
        self.functions.dedup_by_key(|f| f.0);
        put(&mut out, self.functions.len() as u64);
        let mut last = 0;
        for (start, size, name) in self.functions {
            put_all(&mut out, &[start - last, size, name]);
            last = start;
        }
        self.addresses.sort_unstable();
        self.addresses.dedup_by_key(|a| a.0);
        put(&mut out, self.addresses.len() as u64);
        let mut last = 0;
        for (address, calls) in self.addresses {
            put(&mut out, address - last);
            out.extend(calls);
            last = address;
        }
        out
    }
}

fn put_all(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|n| put(out, *n));
}

fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// What was packed of a module.
#[derive(Clone, Debug, Default)]
pub struct Pack {
    identity: Identity,
    strings: Vec<Rc<str>>,
    segments: Headers,
    /// Start, end, name.
    functions: Vec<(u64, u64, u32)>,
    /// Address, first call, number of calls.
    addresses: Vec<(u64, u32, u32)>,
    calls: Vec<Packed>,
}

#[derive(Clone, Copy, Debug)]
struct Packed {
    name: u32,
    file: u32,
    line: u32,
    distance: u64,
    inlined: bool,
}

impl Pack {
    /// Reads a pack.
    ///
    /// # Errors
    /// It is none, or damaged.
    pub fn parse(bytes: &[u8]) -> Result<Pack, PackError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(PackError::Kind)?;
        read(rest).ok_or(PackError::Damaged)
    }

    /// What it was made of.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How many addresses it knows.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether it knows no address.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The address of the byte at an offset of the module's file.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.address_of(offset)
    }

    /// The functions that an address belongs to, the innermost first; whether the pack has the address.
    pub fn calls(&self, address: u64, out: &mut Vec<Call>) -> bool {
        let Ok(at) = self.addresses.binary_search_by_key(&address, |a| a.0) else { return false };
        let (_, first, count) = self.addresses[at];
        let calls = self.calls.get(first as usize..first as usize + count as usize).unwrap_or_default();
        out.extend(calls.iter().map(|c| Call {
            function: self.string(c.name),
            file: self.string(c.file),
            line: c.line,
            start: address.wrapping_sub(c.distance),
            inlined: c.inlined,
        }));
        true
    }

    /// The function that an address belongs to, by the table of functions.
    pub fn function(&self, address: u64) -> Option<Call> {
        let at = self.functions.partition_point(|f| f.0 <= address).checked_sub(1)?;
        let (start, _, name) = *self.functions.get(at).filter(|f| address < f.1)?;
        Some(Call { function: Some(self.string(name)?), file: None, line: 0, start, inlined: false })
    }

    /// A copy with another identity. `name` and `file` map each old text to the new one.
    pub fn renamed(&self, of: &Identity, name: &dyn Fn(&str) -> String, file: &dyn Fn(&str) -> String) -> Vec<u8> {
        let mut writer = PackWriter::new(of, Some(&self.segments));
        for (start, end, number) in &self.functions {
            self.string(*number).iter().for_each(|old| writer.function(*start, *end, &name(old)));
        }
        let mut calls = Vec::new();
        for (address, ..) in &self.addresses {
            calls.clear();
            self.calls(*address, &mut calls);
            for call in &mut calls {
                call.function = call.function.as_deref().map(|old| name(old).into());
                call.file = call.file.as_deref().map(|old| file(old).into());
            }
            writer.address(*address, &calls);
        }
        writer.finish()
    }

    fn string(&self, number: u32) -> Option<Rc<str>> {
        self.strings.get((number as usize).checked_sub(1)?).cloned()
    }
}

/// Bytes that are left.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn number(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// How many items follow, of which each takes at least this many bytes.
    fn count(&mut self, least: usize) -> Option<usize> {
        let n = usize::try_from(self.number()?).ok()?;
        (n <= MAX_ITEMS && n.checked_mul(least)? <= self.0.len()).then_some(n)
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let n = usize::try_from(self.number()?).ok().filter(|n| *n <= MAX_STRING)?;
        let (bytes, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(bytes)
    }
}

fn read(bytes: &[u8]) -> Option<Pack> {
    use std::os::unix::ffi::OsStrExt;
    let mut rest = Rest(bytes);
    let mut pack = Pack::default();
    pack.identity.build_id = rest.bytes()?.to_vec();
    pack.identity.path = std::ffi::OsStr::from_bytes(rest.bytes()?).into();
    for _ in 0..rest.count(1)? {
        pack.strings.push(String::from_utf8_lossy(rest.bytes()?).into());
    }
    for _ in 0..rest.count(3)? {
        let (address, offset, len) = (rest.number()?, rest.number()?, rest.number()?);
        pack.segments.segments.push(Segment { address, offset, len, executable: true });
    }
    let mut last = 0u64;
    for _ in 0..rest.count(3)? {
        last = last.checked_add(rest.number()?)?;
        pack.functions.push((last, last.checked_add(rest.number()?)?, rest.small()?));
    }
    last = 0;
    for _ in 0..rest.count(2)? {
        last = last.checked_add(rest.number()?)?;
        let (first, count) = (pack.calls.len(), rest.count(5)?);
        if first + count > MAX_ITEMS {
            return None;
        }
        for _ in 0..count {
            let (name, file, line) = (rest.small()?, rest.small()?, rest.small()?);
            let (distance, inlined) = (rest.number()?, rest.number()? != 0);
            pack.calls.push(Packed { name, file, line, distance, inlined });
        }
        pack.addresses.push((last, first as u32, count as u32));
    }
    rest.0.is_empty().then_some(pack)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Vec<u8>, Vec<(u64, Vec<Call>)>) {
        let call = |f: Option<&str>, file: Option<&str>, line, start, inlined| {
            let text = |t: Option<&str>| t.map(Rc::from);
            Call { function: text(f), file: text(file), line, start, inlined }
        };
        let all = vec![
            (0x1000, vec![call(Some("a"), Some("/x.c"), 3, 0xff0, true), call(Some("b"), None, 0, 0xff0, false)]),
            (0x1001, vec![]),
            (u64::MAX, vec![call(None, Some("/x.c"), u32::MAX, 0, false)]),
        ];
        let headers = Headers {
            segments: vec![Segment { address: 0x1000, offset: 0x200, len: 0x100, executable: true }],
            ..Headers::default()
        };
        let mut w = PackWriter::new(&Identity::new("/bin/x", &[7; 20]), Some(&headers));
        for (address, calls) in all.iter().rev() {
            w.address(*address, calls);
        }
        w.function(0x2000, 0x2010, "late");
        w.function(0x1000, 0x1800, "b");
        (w.finish(), all)
    }

    #[test]
    fn what_is_packed_is_read_back() {
        let (bytes, all) = sample();
        let pack = Pack::parse(&bytes).unwrap();
        assert_eq!(pack.identity(), &Identity::new("/bin/x", &[7; 20]));
        for (address, calls) in all {
            let mut found = Vec::new();
            assert!(pack.calls(address, &mut found));
            assert_eq!(found, calls);
        }
        assert!(!pack.calls(0x1002, &mut Vec::new()));
        let name = |at| pack.function(at).map(|f| (f.function.unwrap().to_string(), f.start));
        assert_eq!(name(0x17ff), Some(("b".into(), 0x1000)));
        assert_eq!((name(0x1800), name(0x2001)), (None, Some(("late".into(), 0x2000))));
        assert_eq!((pack.address_of(0x210), pack.address_of(0x300)), (Some(0x1010), None));
    }

    #[test]
    fn a_renamed_pack_knows_what_it_knew_by_other_names() {
        let (bytes, all) = sample();
        let (old, other) = (Pack::parse(&bytes).unwrap(), Identity::new("[hidden]", &[9]));
        let bytes = old.renamed(&other, &|name| format!("{name}'"), &|_| "-".into());
        assert!(!bytes.windows(4).any(|b| b == b"/x.c" || b == b"/bin"));
        let new = Pack::parse(&bytes).unwrap();
        assert_eq!((new.identity(), new.len(), new.address_of(0x210)), (&other, old.len(), Some(0x1010)));
        for (address, calls) in all {
            let mut found = Vec::new();
            assert!(new.calls(address, &mut found));
            assert_eq!(found.len(), calls.len());
            for (new, old) in found.iter().zip(&calls) {
                assert_eq!(new.function.as_deref(), old.function.as_deref().map(|n| format!("{n}'")).as_deref());
                assert_eq!((new.file.is_some(), new.line, new.start), (old.file.is_some(), old.line, old.start));
            }
        }
        assert_eq!(new.function(0x17ff).unwrap().function.as_deref(), Some("b'"));
    }

    #[test]
    fn damaged_packs_are_refused_or_say_something_else() {
        let (bytes, _) = sample();
        assert_eq!(Pack::parse(b"trapline-pack 2\n").unwrap_err(), PackError::Kind);
        for n in MAGIC.len()..bytes.len() {
            assert_eq!(Pack::parse(&bytes[..n]).unwrap_err(), PackError::Damaged, "{n}");
        }
        let mut r = testkit::Random::new(8);
        for _ in 0..testkit::rounds(20_000) {
            let mut bad = bytes.clone();
            for _ in 0..=r.below(4) {
                let at = MAGIC.len() + r.index(bytes.len() - MAGIC.len());
                bad[at] = r.of(&[0, 1, 3, 0x7f, 0x80, 0xff]);
            }
            if let Ok(pack) = Pack::parse(&bad) {
                let mut out = Vec::new();
                for at in [0, 0x1000, 0x1001, 0x1800, u64::MAX] {
                    pack.calls(at, &mut out);
                    let _ = (pack.function(at), pack.address_of(at));
                }
            }
        }
    }

    #[test]
    fn names_of_packs_differ_with_what_they_are_of() {
        let of = |path: &str, size| {
            let stamp = Some(crate::files::Stamp { size, modified: 5 });
            file_name(&Identity { stamp, ..Identity::new(path, &[]) })
        };
        assert_eq!(file_name(&Identity::new("/x", &[0xab, 1])), "ab01.pack");
        assert!(of("/x", 1) != of("/y", 1) && of("/x", 1) != of("/x", 2) && of("/x", 1) == of("/x", 1));
    }
}
