//! Sections of one name, read as one: in a split file each type that has a unit of its own has a section of its own, too.

use crate::ReadAt;
use std::io;
use std::rc::Rc;

/// The most bytes of all of them.
const MAX: u64 = 1 << 30;

/// What several readers have, one behind the other.
#[derive(Default)]
pub(super) struct Joined<'f> {
    /// Where each begins, and what it is read from, at which offset; in order.
    parts: Vec<(u64, Rc<dyn ReadAt + 'f>, u64)>,
    size: u64,
}

impl<'f> Joined<'f> {
    /// Adds bytes of a reader from an offset on; not those that are too many.
    pub(super) fn add(&mut self, file: Rc<dyn ReadAt + 'f>, from: u64, size: u64) {
        if size > 0 && self.size.saturating_add(size) <= MAX && from.checked_add(size).is_some() {
            self.parts.push((self.size, file, from));
            self.size += size;
        }
    }

    /// Bytes of all.
    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

impl ReadAt for Joined<'_> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let (mut offset, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let next = self.parts.partition_point(|p| p.0 <= offset);
            let end = self.parts.get(next).map_or(self.size, |p| p.0);
            let part = next.checked_sub(1).and_then(|n| self.parts.get(n)).filter(|_| offset < end);
            let (begin, file, from) = part.ok_or(io::ErrorKind::UnexpectedEof)?;
            let n = (end - offset).min(rest.len() as u64);
            let (now, later) = rest.split_at_mut(n as usize);
            file.read_at(from + (offset - begin), now)?;
            (offset, rest) = (offset + n, later);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_one_behind_the_other() {
        let (first, second): (Vec<u8>, Vec<u8>) = ((0..100).collect(), (100..200).collect());
        let mut all = Joined::default();
        all.add(Rc::new(first), 10, 20);
        all.add(Rc::new(Vec::new()), 0, 0);
        all.add(Rc::new(second), 50, 3);
        all.add(Rc::new(Vec::new()), 0, MAX);
        all.add(Rc::new(Vec::new()), u64::MAX, 2);
        assert_eq!(all.size(), 23);
        let want: Vec<u8> = (10..30).chain(150..153).collect();
        for from in 0..=want.len() {
            for to in from..=want.len() {
                let mut bytes = vec![0; to - from];
                all.read_at(from as u64, &mut bytes).unwrap();
                assert_eq!(bytes, want[from..to]);
            }
        }
        assert!(all.read_at(23, &mut [0]).is_err() && all.read_at(22, &mut [0, 0]).is_err());
        assert!(all.read_at(u64::MAX, &mut [0]).is_err() && Joined::default().read_at(0, &mut [0]).is_err());
    }
}
