//! Patches that are made together: of a page, where no other thread can see them, by one write.

use super::sites::Place;
use super::{Image, code};
use patch::calls::{self, Patch, Way};
use std::collections::{BTreeMap, HashSet};
use std::io;
use sys::mem::PAGE;
use sys::ptrace;

/// Patches of sites that have room for their stubs.
#[derive(Default)]
pub struct Batch(Vec<Patched>);

struct Patched {
    /// The `syscall` instruction, and where its call begins again.
    at: u64,
    from: u64,
    way: Way,
    stub: (u64, [u8; calls::STUB]),
    patches: Vec<Patch>,
}

impl Batch {
    /// The patches of a site, and where a call that has stopped there begins again. None: there is no room for its stub.
    pub fn add(&mut self, image: &mut Image, &Place { at, way, ref hole, .. }: &Place) -> Option<u64> {
        let room = image.areas.room(at)?;
        let stub = calls::stub(room, at, way, code::CODE)?;
        let patches = calls::patches(at, way, room, hole)?;
        let from = calls::from(at, way);
        self.0.push(Patched { at, from, way, stub: (room, stub), patches });
        Some(from)
    }

    /// Writes them, where the bytes are still those that they replace: where patched calls begin.
    pub fn write(self, image: &mut Image, tid: i32, alone: bool) -> io::Result<HashSet<u64>> {
        let mut pages = Pages { tid, pages: BTreeMap::new() };
        let mut made = HashSet::new();
        for Patched { at, from, way, stub, patches } in self.0 {
            if !patches.iter().all(|patch| pages.has(patch.at, &patch.old)) || !pages.has(at, &calls::INSTRUCTION) {
                continue;
            }
            if !pages.put(stub.0, &stub.1) {
                continue;
            }
            if let Way::Hole(hole) = way {
                image.areas.use_hole(hole, at);
            }
            if !alone {
                // A stub is there before what leads to it.
                pages.flush()?;
            }
            for patch in &patches {
                image.patched.insert(patch.at);
                if alone {
                    pages.put(patch.at, &patch.new);
                } else {
                    write(tid, patch.at, &patch.new)?;
                }
            }
            made.insert(from);
        }
        pages.flush()?;
        Ok(made)
    }
}

/// Pages of a process that are changed together.
struct Pages {
    tid: i32,
    /// Their bytes, and whether they have changed.
    pages: BTreeMap<u64, (Vec<u8>, bool)>,
}

impl Pages {
    /// The part of a page from an address on; none: it cannot be read.
    fn rest(&mut self, at: u64) -> Option<&mut [u8]> {
        let page = at & !(PAGE - 1);
        let tid = self.tid;
        let (bytes, _) = self.pages.entry(page).or_insert_with(|| {
            let mut bytes = vec![0; PAGE as usize];
            let read = sys::mem::read(tid, page, &mut bytes).unwrap_or(0);
            bytes.truncate(read);
            (bytes, false)
        });
        bytes.get_mut((at - page) as usize..).filter(|rest| !rest.is_empty())
    }

    /// Whether these bytes are there.
    fn has(&mut self, mut at: u64, mut bytes: &[u8]) -> bool {
        while let Some(rest) = self.rest(at).filter(|_| !bytes.is_empty()) {
            let len = rest.len().min(bytes.len());
            if rest[..len] != bytes[..len] {
                return false;
            }
            (at, bytes) = (at + len as u64, &bytes[len..]);
        }
        bytes.is_empty()
    }

    /// Puts bytes there. False: not all of them, because some memory cannot be read.
    fn put(&mut self, mut at: u64, mut bytes: &[u8]) -> bool {
        while let Some(rest) = self.rest(at).filter(|_| !bytes.is_empty()) {
            let len = rest.len().min(bytes.len());
            rest[..len].copy_from_slice(&bytes[..len]);
            self.pages.entry(at & !(PAGE - 1)).and_modify(|page| page.1 = true);
            (at, bytes) = (at + len as u64, &bytes[len..]);
        }
        bytes.is_empty()
    }

    /// Writes those that have changed.
    fn flush(&mut self) -> io::Result<()> {
        let changed = self.pages.iter().filter(|(_, (_, changed))| *changed);
        ptrace::write_at_once(self.tid, changed.map(|(page, (bytes, _))| (*page, &bytes[..])))?;
        self.pages.clear();
        Ok(())
    }
}

/// Writes bytes, while other threads may execute what is there: the first byte is a breakpoint until the others are there.
fn write(tid: i32, at: u64, bytes: &[u8]) -> io::Result<()> {
    const INT3: u8 = 0xcc;
    ptrace::write_bytes(tid, at, &[INT3])?;
    ptrace::write_bytes(tid, at + 1, &bytes[1..])?;
    ptrace::write_bytes(tid, at, &bytes[..1])
}

/// Puts back what the patch at an address has replaced, if it is there.
pub fn undo(tid: i32, at: u64) -> io::Result<()> {
    let read = |at: u64, bytes: &mut [u8]| sys::mem::read(tid, at, bytes).is_ok_and(|read| read == bytes.len());
    calls::replaced(at, read).map_or(Ok(()), |bytes| write(tid, at, &bytes))
}
