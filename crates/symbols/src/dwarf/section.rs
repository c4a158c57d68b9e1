//! The bytes of a debug section, read from the file as they are needed: of a file of gigabytes only what one function takes.
//!
//! ```text
//!  Bytes { from, len } ──► page of the file, kept by Source ──► ReadAt
//! ```
//!
//! Every byte that is read is work, and there is only so much of it for a file ([`WORK`]): a hostile one ends as a damaged one does.

use crate::ReadAt;
use gimli::{Error, LittleEndian, Reader, ReaderOffsetId, Result};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

/// Bytes of a page, and how many pages are kept.
const PAGE: usize = 16 << 10;
const PAGES: usize = 2048;
/// How many bytes of a file are looked at, all in all, some of them again and again.
pub const WORK: u64 = 1 << 30;

/// A file, and what was read of it.
pub struct Source<'f> {
    file: Box<dyn ReadAt + 'f>,
    /// Bytes of the file.
    end: u64,
    pages: RefCell<HashMap<u64, Rc<Vec<u8>>>>,
    work: Rc<Cell<u64>>,
}

impl<'f> Source<'f> {
    /// Of a file that ends at `end`, or behind it.
    pub fn new(file: impl ReadAt + 'f, end: u64) -> Rc<Source<'f>> {
        Rc::new(Source { file: Box::new(file), end, pages: RefCell::default(), work: Rc::default() })
    }

    /// Of other bytes, whose work is counted together with this one's.
    pub fn beside(&self, file: impl ReadAt + 'f, end: u64) -> Rc<Source<'f>> {
        Rc::new(Source { file: Box::new(file), end, pages: RefCell::default(), work: Rc::clone(&self.work) })
    }

    /// Begins to count anew; returns the work so far.
    pub fn restart(&self) -> u64 {
        self.work.replace(0)
    }

    /// Whether all work that is allowed was done.
    pub fn is_spent(&self) -> bool {
        self.work.get() > WORK
    }

    /// Counts work; whether there may be more.
    pub fn spend(&self, n: u64) -> bool {
        self.work.set(self.work.get().saturating_add(n));
        self.work.get() <= WORK
    }

    /// Counts attributes that are read: they may have no bytes, and cost more than a byte.
    pub fn spend_attributes(&self, n: usize) -> bool {
        self.spend(8 * n as u64)
    }

    /// The page of this number; shorter where the file ends.
    fn page(&self, number: u64) -> Option<Rc<Vec<u8>>> {
        if let Some(page) = self.pages.borrow().get(&number) {
            return Some(Rc::clone(page));
        }
        let from = number.checked_mul(PAGE as u64)?;
        let mut bytes = vec![0; self.end.checked_sub(from)?.min(PAGE as u64) as usize];
        self.file.read_at(from, &mut bytes).ok()?;
        let page = Rc::new(bytes);
        let mut pages = self.pages.borrow_mut();
        if pages.len() >= PAGES {
            pages.clear();
        }
        pages.insert(number, Rc::clone(&page));
        Some(page)
    }
}

/// A part of a section.
#[derive(Clone)]
pub struct Bytes<'f> {
    source: Rc<Source<'f>>,
    /// Offset in the file.
    from: u64,
    len: usize,
    /// The page that was read last, and its number.
    page: Option<(u64, Rc<Vec<u8>>)>,
}

impl<'f> Bytes<'f> {
    /// `len` bytes of a file from an offset on.
    pub fn new(source: &Rc<Source<'f>>, from: u64, len: usize) -> Bytes<'f> {
        Bytes { source: Rc::clone(source), from, len, page: None }
    }

    fn end(&self) -> Error {
        Error::UnexpectedEof(self.offset_id())
    }

    /// The bytes of one page from an offset into the file on.
    fn with_page<T>(&mut self, at: u64, take: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let number = at / PAGE as u64;
        if self.page.as_ref().is_none_or(|p| p.0 != number) {
            self.page = Some((number, self.source.page(number).ok_or_else(|| self.end())?));
        }
        let page = self.page.as_ref().map(|p| p.1.as_slice()).unwrap_or_default();
        page.get((at % PAGE as u64) as usize..).map(take).ok_or_else(|| self.end())
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.len, self.from)
    }
}

impl Reader for Bytes<'_> {
    type Endian = LittleEndian;
    type Offset = usize;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        self.len
    }

    fn empty(&mut self) {
        self.len = 0;
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        if len > self.len {
            return Err(self.end());
        }
        self.len = len;
        Ok(())
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.from.saturating_sub(base.from) as usize
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.from)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let at = id.0.checked_sub(self.from)? as usize;
        (at <= self.len).then_some(at)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let mut rest = self.clone();
        let mut before = 0;
        while rest.len > 0 {
            let len = rest.len;
            let (found, seen) = rest.with_page(rest.from, |page| {
                let page = &page[..page.len().min(len)];
                (page.iter().position(|b| *b == byte), page.len())
            })?;
            if !self.source.spend(seen as u64) || seen == 0 {
                break;
            }
            if let Some(at) = found {
                return Ok(before + at);
            }
            before += seen;
            rest.skip(seen)?;
        }
        Err(self.end())
    }

    fn skip(&mut self, len: usize) -> Result<()> {
        if len > self.len {
            return Err(self.end());
        }
        self.from += len as u64;
        self.len -= len;
        Ok(())
    }

    fn split(&mut self, len: usize) -> Result<Self> {
        let mut first = self.clone();
        first.truncate(len)?;
        self.skip(len)?;
        Ok(first)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        let mut bytes = vec![0; self.len];
        self.clone().read_slice(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        let bytes = self.to_slice()?.into_owned();
        String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Ok(Cow::Owned(String::from_utf8_lossy(&self.to_slice()?).into_owned()))
    }

    fn read_slice(&mut self, buf: &mut [u8]) -> Result<()> {
        if buf.len() > self.len || !self.source.spend(buf.len() as u64) {
            return Err(self.end());
        }
        let mut done = 0;
        while done < buf.len() {
            let rest = &mut buf[done..];
            let n = self.with_page(self.from, |page| {
                let n = page.len().min(rest.len());
                rest[..n].copy_from_slice(&page[..n]);
                n
            })?;
            if n == 0 {
                return Err(self.end());
            }
            self.skip(n)?;
            done += n;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        (0..3 * PAGE + 100).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn bytes_are_those_of_the_file_over_the_ends_of_pages() {
        let file = file();
        let source = Source::new(&file, file.len() as u64);
        let mut b = Bytes::new(&source, 10, file.len() - 10);
        assert_eq!(b.read_u8().unwrap(), 10);
        b.skip(PAGE - 13).unwrap();
        assert_eq!(b.read_u32().unwrap().to_le_bytes(), file[PAGE - 2..PAGE + 2]);
        let part = b.split(2 * PAGE).unwrap();
        assert_eq!(part.to_slice().unwrap(), &file[PAGE + 2..3 * PAGE + 2]);
        assert_eq!(b.to_slice().unwrap(), &file[3 * PAGE + 2..]);
        let at = part.find(file[3 * PAGE]).unwrap();
        assert_eq!(file[PAGE + 2..].iter().position(|b| *b == file[3 * PAGE]), Some(at));
        assert!(Bytes::new(&source, 0, 5).find(200).is_err());
    }

    #[test]
    fn outside_of_the_file_and_of_the_part_there_is_nothing() {
        let file = file();
        let source = Source::new(&file, file.len() as u64);
        let mut b = Bytes::new(&source, file.len() as u64 - 2, 100);
        assert!(b.clone().read_u32().is_err() && b.to_slice().is_err() && b.find(0xff).is_err());
        assert!(b.skip(101).is_err() && b.truncate(101).is_err() && b.split(101).is_err());
        let mut behind = Bytes::new(&source, u64::MAX - 8, 4);
        assert!(behind.read_u8().is_err());
        assert!(source.spend(1) && !source.spend(WORK));
        assert!(Bytes::new(&source, 0, 4).read_u8().is_err());
    }
}
