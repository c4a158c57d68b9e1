//! Instructions of a file: the entries of functions, their returns, static probes.

use super::Site;
use super::elf_file::ElfFile;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use symbols::Elf;
use symbols::places::Places;

/// Instructions of a file.
#[derive(Clone)]
pub struct FilePoint {
    /// The file that was read, whatever is at its path later.
    pub file: Arc<File>,
    pub(super) elf: Arc<Elf>,
    /// Where the instructions are.
    pub sites: Vec<Site>,
    /// Of the sites of several probes: the number of each one's probe. Empty: all are of one.
    pub member_of: Vec<usize>,
    /// When the functions that begin there return, instead.
    pub at_return: bool,
    /// A site that takes no breakpoint does not prevent those of the others.
    pub tolerant: bool,
}

impl FilePoint {
    /// The attach point of some sites of a file.
    pub fn new(of: &ElfFile, sites: Vec<Site>, at_return: bool) -> FilePoint {
        let (file, elf) = (Arc::clone(&of.file), Arc::clone(&of.elf));
        FilePoint { file, elf, sites, member_of: Vec::new(), at_return, tolerant: false }
    }

    /// The file's path.
    pub fn path(&self) -> Option<&Path> {
        self.sites.first().map(|s| &*s.path)
    }

    /// Where a place of the file is loaded, in the file's own address space; none where it is not.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.elf.loaded().find_map(|(address, from, len, _)| {
            let within = offset.checked_sub(from).filter(|n| *n < len)?;
            address.checked_add(within)
        })
    }

    /// The entries of the functions whose returns it is.
    pub fn entries(&self) -> Option<FilePoint> {
        self.at_return.then(|| FilePoint { at_return: false, member_of: Vec::new(), ..self.clone() })
    }

    /// From the only instruction of it to a symbol of its file, where that file is loaded.
    pub fn distance(&self, symbol: &str) -> Option<i64> {
        let [site] = &self.sites[..] else { return None };
        let here = self.address_of(site.offset)?;
        let there = symbols::elf::symbol(&*self.file, symbol)?.address;
        (!self.at_return).then_some(there.wrapping_sub(here) as i64)
    }

    /// How many functions whose return addresses are replaced may be left without returning: of the others that is
    /// proven impossible.
    pub fn unproven_returns(&self) -> usize {
        let places = Places::new(&self.elf, &*self.file);
        self.sites.iter().filter(|s| self.at_return && !places.is_closed(s.address, s.size)).count()
    }

    /// Whether a function reads the return address that is replaced.
    pub fn looks_at_return(&self) -> bool {
        let places = Places::new(&self.elf, &*self.file);
        self.at_return && self.sites.iter().any(|s| places.takes_return_address(s.address, s.size))
    }
}
