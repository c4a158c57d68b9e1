//! The functions of a file, and where in them `syscall` instructions can be patched.

use engine::backend::code::bytes_of;
use patch::calls::{self, Front};
use std::fs;
use std::os::unix::fs::FileExt;
use symbols::frames::Table;
use symbols::headers::Headers;
use sys::maps::Map;

/// The largest file of which it is read where its functions lie.
const LARGEST: u64 = 64 << 20;
/// The largest function that is taken apart.
const LONGEST: u64 = 64 << 10;

/// How a site of a file is patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// At these instructions in front.
    Front(Front),
    /// By way of the hole at this offset, with these bytes.
    Hole(u64, [u8; calls::JUMP as usize]),
}

/// A site of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The number of the call, where instructions before say it.
    pub number: Option<u32>,
    /// How it is patched.
    pub how: How,
}

/// Where they lie.
pub struct Functions {
    headers: Headers,
    table: Table,
}

impl Functions {
    /// Those of a file that a process has mapped.
    pub fn read(pid: i32, map: &Map) -> Option<Functions> {
        let bytes = bytes_of(pid, map).filter(|bytes| bytes.len() as u64 <= LARGEST)?;
        let headers = Headers::read(&bytes[..])?;
        let table = Table::read(&headers, &bytes[..])?;
        Some(Functions { headers, table })
    }

    /// The site at an offset of the file. `used`: whether the hole at an offset is.
    pub fn site(&self, pid: i32, map: &Map, offset: u64, used: impl Fn(u64) -> bool) -> Option<Known> {
        let file = sys::maps::open(pid, map.range, &map.path, map.file).ok()?;
        let own = self.headers.address_of(offset)?;
        let function = self.table.function(own)?;
        let len = function.end.checked_sub(function.start).filter(|len| *len <= LONGEST)?;
        let mut code = vec![0; len as usize];
        file.read_exact_at(&mut code, self.headers.offset_of(function.start)?).ok()?;
        let site = calls::sites(&code, function.start).into_iter().find(|site| site.at == own)?;
        let front = site.front.filter(|front| own - front.bytes().len() as u64 != function.start);
        let how = match front {
            Some(front) => How::Front(front),
            None => self.hole(&file, own, used)?,
        };
        Some(Known { number: site.number, how })
    }

    /// A hole near a site.
    fn hole(&self, file: &fs::File, own: u64, used: impl Fn(u64) -> bool) -> Option<How> {
        self.table.gaps(own, &calls::near(own)).into_iter().find_map(|gap| {
            let offset = self.headers.offset_of(gap.start)?;
            let mut bytes = vec![0; gap.end.checked_sub(gap.start)?.min(64) as usize];
            file.read_exact_at(&mut bytes, offset).ok()?;
            let hole = calls::hole(own, &gap, &bytes, |at| used(offset.wrapping_add(at.wrapping_sub(gap.start))))?;
            let at = hole - gap.start;
            Some(How::Hole(offset + at, *bytes.get(at as usize..)?.first_chunk()?))
        })
    }
}

impl Known {
    /// The hole that it uses.
    pub fn hole(&self) -> Option<u64> {
        if let How::Hole(at, _) = self.how { Some(at) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use sys::maps::PROT_EXEC;

    #[test]
    fn sites_of_a_library_have_a_front_or_a_hole_of_their_own() {
        let pid = sys::process::own_pid();
        let maps = sys::maps::of(pid).expect("own mappings");
        let is_libc = |m: &Map| m.prot & PROT_EXEC != 0 && m.path.windows(8).any(|name| name == b"/libc.so");
        let map = maps.into_iter().find(is_libc).expect("a C library");
        let functions = Functions::read(pid, &map).expect("functions");
        let read = |at: u64, len: u64| {
            let mut bytes = vec![0; len as usize];
            let read = sys::mem::read(pid, at, &mut bytes).expect("own memory");
            bytes.truncate(read);
            bytes
        };
        let code = read(map.range.0, map.range.1 - map.range.0);
        let at = |offset: u64| offset - map.offset + map.range.0;
        let (mut fronts, mut holes, mut none) = (0, HashSet::new(), 0);
        for place in code.windows(2).enumerate().filter(|(_, two)| **two == calls::INSTRUCTION) {
            let offset = map.offset + place.0 as u64;
            match functions.site(pid, &map, offset, |hole| holes.contains(&hole)).map(|known| known.how) {
                Some(How::Front(front)) => {
                    let len = front.bytes().len() as u64;
                    assert_eq!(read(at(offset) - len, len), front.bytes());
                    fronts += 1;
                }
                Some(How::Hole(hole, bytes)) => {
                    assert_eq!(read(at(hole), calls::JUMP), bytes);
                    assert!(holes.insert(hole), "{hole:#x} twice");
                }
                None => none += 1,
            }
        }
        assert!(fronts > 100 && holes.len() > 20 && none < fronts, "{fronts} {} {none}", holes.len());
    }
}
