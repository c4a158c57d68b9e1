//! `jit-PID.dump`: the functions that a just-in-time compiler has made, with the time of each (tools/perf/Documentation/jitdump-specification.txt,
//! Linux 6.12).
//!
//! ```text
//!  header: magic "JiTD", version, size, machine, pad, pid, time, flags
//!  record: id, size, time (CLOCK_MONOTONIC, ns), and of code that is loaded: pid, tid, vma, address, size, index, name, the code
//! ```
//!
//! Memory is used again: at an address is the function that was loaded there last before a given time. The compiler maps a page of the file
//! with PROT_EXEC, by which it is known where the file is. Whom to believe, [`crate::perf_map::check`] decides.

use std::io::{self, Read, Seek, SeekFrom};

/// "JiTD", and the other way round.
const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
/// `JITDUMP_FLAGS_ARCH_TIMESTAMP`: times are those of the processor's counter.
const ARCH_TIMESTAMP: u64 = 1;
/// Bytes of a header, and of the head of a record.
const HEADER: usize = 40;
const HEAD: usize = 16;
/// Kinds of records.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// Bytes of a load before its name, and of a move.
const LOADED: usize = 40;
const MOVED: usize = 48;
/// The longest name, and the most functions.
const MAX_NAME: usize = 1024;
const MAX_FUNCTIONS: usize = 2 << 20;
/// The largest function: a bound for the search.
const MAX_CODE: u64 = 64 << 20;

/// A function, from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Where it begins and ends.
    pub range: (u64, u64),
    /// Since when, ns of the monotonic clock.
    pub time: u64,
    /// Its name.
    pub name: String,
}

/// The functions of a dump.
#[derive(Clone, Debug, Default)]
pub struct JitDump {
    /// In the order of where they begin, and of time.
    functions: Vec<Loaded>,
    /// The largest one.
    largest: u64,
    /// Up to where the file has been read; 0: its header has not.
    read: u64,
    /// It is no dump that can be used.
    refused: bool,
}

impl JitDump {
    /// Reads what a dump has beyond what was read before. A record that is being written is read the next time.
    ///
    /// # Errors
    /// The file cannot be read, or is no dump with times of the monotonic clock.
    pub fn read(&mut self, file: &mut (impl Read + Seek)) -> io::Result<()> {
        if self.refused {
            return Ok(());
        }
        if self.read == 0 {
            file.seek(SeekFrom::Start(0))?;
            let mut header = [0; HEADER];
            if file.read_exact(&mut header).is_err() {
                // It is being written.
                return Ok(());
            }
            let size = word(&header, 8);
            if word(&header, 0) != MAGIC || word(&header, 4) != VERSION || (size as usize) < HEADER {
                self.refused = true;
                return Err(io::ErrorKind::InvalidData.into());
            }
            if long(&header, 32) & ARCH_TIMESTAMP != 0 {
                self.refused = true;
                return Err(io::Error::other("its times are those of the processor"));
            }
            self.read = size.into();
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut file = io::BufReader::with_capacity(1 << 16, file);
        let before = self.functions.len();
        loop {
            let mut head = [0; HEAD];
            if file.read_exact(&mut head).is_err() {
                break;
            }
            let (id, size, time) = (word(&head, 0), word(&head, 4) as usize, long(&head, 8));
            let Some(rest) = size.checked_sub(HEAD) else { break };
            let wanted = if matches!(id, LOAD | MOVE) { rest.min(LOADED + MAX_NAME) } else { 0 };
            let mut body = vec![0; wanted];
            if file.read_exact(&mut body).is_err() {
                break;
            }
            // A part of the record is not there yet: nothing of it counts.
            let (skip, end) = ((rest - wanted) as i64, self.read.saturating_add(size as u64));
            if skip > 0
                && (file.seek_relative(skip).is_err()
                    || file.stream_position()? > file.get_mut().seek(SeekFrom::End(0))?)
            {
                break;
            }
            if skip > 0 {
                file.seek(SeekFrom::Start(end))?;
            }
            self.read = end;
            if self.functions.len() >= MAX_FUNCTIONS {
                continue;
            }
            match id {
                LOAD => self.loaded(&body, time),
                MOVE => self.moved(&body, time),
                _ => {}
            }
        }
        if self.functions.len() > before {
            self.functions.sort_by_key(|f| (f.range.0, f.time));
        }
        Ok(())
    }

    fn loaded(&mut self, body: &[u8], time: u64) {
        if body.len() <= LOADED {
            return;
        }
        let (start, size) = (long(body, 16), long(body, 24));
        let name = &body[LOADED..];
        let name = &name[..name.iter().position(|b| *b == 0).unwrap_or(name.len())];
        self.add(start, size, time, String::from_utf8_lossy(name).into_owned());
    }

    fn moved(&mut self, body: &[u8], time: u64) {
        if body.len() < MOVED {
            return;
        }
        let (old, new, size) = (long(body, 16), long(body, 24), long(body, 32));
        let name = self.functions.iter().rev().find(|f| f.range.0 == old).map(|f| f.name.clone());
        if let Some(name) = name {
            self.add(new, size, time, name);
        }
    }

    fn add(&mut self, start: u64, size: u64, time: u64, name: String) {
        if let Some(end) = start.checked_add(size).filter(|_| size > 0 && size <= MAX_CODE && !name.is_empty()) {
            self.largest = self.largest.max(size);
            self.functions.push(Loaded { range: (start, end), time, name });
        }
    }

    /// Of functions that are known already.
    pub fn of(functions: impl IntoIterator<Item = Loaded>) -> JitDump {
        let mut dump = JitDump::default();
        for f in functions {
            dump.add(f.range.0, f.range.1.saturating_sub(f.range.0), f.time, f.name);
        }
        dump.functions.sort_by_key(|f| (f.range.0, f.time));
        dump
    }

    /// The function that was at an address at a time: the one that was loaded there last.
    pub fn find(&self, address: u64, time: u64) -> Option<&Loaded> {
        let end = self.functions.partition_point(|f| f.range.0 <= address);
        let near = self.functions[..end].iter().rev().take_while(|f| address - f.range.0 < self.largest);
        near.filter(|f| address < f.range.1 && f.time <= time).max_by_key(|f| f.time)
    }

    /// How many functions it has.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn header(flags: u64) -> Vec<u8> {
        let words = [MAGIC, VERSION, HEADER as u32, 62, 0, 7].map(u32::to_le_bytes).concat();
        [words, [5u64, flags].map(u64::to_le_bytes).concat()].concat()
    }

    fn load(start: u64, size: u64, time: u64, name: &str) -> Vec<u8> {
        let body = [[7u32, 7].map(u32::to_le_bytes).concat(), [start, start, size, 1].map(u64::to_le_bytes).concat()];
        let body = [body.concat(), name.as_bytes().to_vec(), vec![0], vec![0x90; size as usize]].concat();
        let head = [LOAD, (HEAD + body.len()) as u32].map(u32::to_le_bytes).concat();
        [head, time.to_le_bytes().to_vec(), body].concat()
    }

    fn other(id: u32, size: usize) -> Vec<u8> {
        let head = [id, (HEAD + size) as u32].map(u32::to_le_bytes).concat();
        [head, 3u64.to_le_bytes().to_vec(), vec![1; size]].concat()
    }

    fn name(dump: &JitDump, address: u64, time: u64) -> Option<&str> {
        dump.find(address, time).map(|f| f.name.as_str())
    }

    #[test]
    fn code_that_is_written_again_keeps_its_name_of_the_time() {
        let first = [header(0), load(100, 50, 10, "first"), other(2, 9), load(200, 3000, 11, "long")].concat();
        let whole = [first.clone(), load(100, 20, 30, "second"), load(130, 5, 40, "third")].concat();
        let mut dump = JitDump::default();
        dump.read(&mut Cursor::new(&first[..])).unwrap();
        assert_eq!((dump.len(), name(&dump, 149, 10), name(&dump, 149, 9)), (2, Some("first"), None));
        // What is written later is read later, from there on.
        dump.read(&mut Cursor::new(&whole[..])).unwrap();
        assert_eq!(dump.len(), 4);
        for (address, time, expected) in [
            (110, 29, Some("first")),
            (110, 30, Some("second")),
            (125, 50, Some("first")),
            (131, 50, Some("third")),
            (131, 39, Some("first")),
            (3199, 50, Some("long")),
            (3200, 50, None),
            (99, 50, None),
        ] {
            assert_eq!(name(&dump, address, time), expected, "{address} {time}");
        }
    }

    #[test]
    fn records_that_are_being_written_are_waited_for() {
        let whole = [header(0), load(100, 50, 10, "a"), load(200, 5000, 11, "b"), other(3, 0)].concat();
        for n in 0..=whole.len() {
            let mut dump = JitDump::default();
            dump.read(&mut Cursor::new(&whole[..n])).unwrap();
            let before = dump.len();
            dump.read(&mut Cursor::new(&whole[..])).unwrap();
            assert_eq!((dump.len(), before <= 2), (2, true), "{n}");
        }
    }

    #[test]
    fn what_is_no_dump_is_refused() {
        assert!(JitDump::default().read(&mut Cursor::new(vec![0; 100])).is_err());
        assert!(JitDump::default().read(&mut Cursor::new(header(ARCH_TIMESTAMP))).is_err());
        // Sizes may be anything.
        for size in [0u32, 1, 15, 16, u32::MAX] {
            let bytes = [header(0), [LOAD, size].map(u32::to_le_bytes).concat(), vec![0xff; 80]].concat();
            let mut dump = JitDump::default();
            dump.read(&mut Cursor::new(&bytes[..])).unwrap();
            assert!(dump.is_empty());
        }
    }
}
