//! Instructions of a file: the entries of functions, their returns, static probes.

use super::attach_point::{AttachPoint, LeftOut, Ready};
use super::elf_file::ElfFile;
use super::{ArgLocation, Probe, Site};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use symbols::Elf;
use symbols::places::Places;

/// Instructions of a file.
#[derive(Clone)]
pub struct FilePoint {
    /// The file that was looked at, whatever lies at its path by then.
    pub file: Arc<File>,
    elf: Arc<Elf>,
    /// Where the instructions are.
    pub sites: Vec<Site>,
    /// Of the sites of several probes: the number of each one's probe. Empty: all are of one.
    pub member_of: Vec<usize>,
    /// When the functions that begin there return, instead.
    pub at_return: bool,
    /// A site that takes no breakpoint does not keep the others from theirs.
    pub tolerant: bool,
}

/// The attach points of a probe in a file: one for all sites that have the arguments in the same locations.
pub(super) fn at_sites(of: &ElfFile, probe: &Probe, at_return: bool, tolerant: bool) -> Vec<Ready> {
    let mut groups: Vec<(Vec<ArgLocation>, Vec<Site>)> = Vec::new();
    for site in &probe.sites {
        match groups.iter_mut().find(|(locations, _)| *locations == site.locations) {
            Some((_, sites)) => sites.push(site.clone()),
            None => groups.push((site.locations.clone(), vec![site.clone()])),
        }
    }
    let ready = |(locations, sites): (Vec<ArgLocation>, Vec<Site>)| {
        let mut probe = probe.clone();
        for (arg, location) in probe.args.iter_mut().zip(locations) {
            arg.location = location;
        }
        Ready::new(probe, AttachPoint::File(FilePoint { tolerant, ..FilePoint::new(of, sites, at_return) }))
    };
    groups.into_iter().map(ready).collect()
}

/// One attach point for the sites of many probes.
pub(super) fn at_all(of: &ElfFile, probes: &[Probe], at_return: bool) -> FilePoint {
    let mut sites = Vec::new();
    let mut member_of = Vec::new();
    for (nth, probe) in probes.iter().enumerate() {
        sites.extend(probe.sites.iter().cloned());
        member_of.resize(sites.len(), nth);
    }
    FilePoint { member_of, tolerant: true, ..FilePoint::new(of, sites, at_return) }
}

/// Puts what a pattern leaves out to the first probe that it does not.
pub(super) fn with_left_out(mut ready: Vec<Ready>, left_out: Vec<LeftOut>) -> Vec<Ready> {
    if let Some(first) = ready.first_mut() {
        first.left_out = left_out;
    }
    ready
}

impl FilePoint {
    fn new(of: &ElfFile, sites: Vec<Site>, at_return: bool) -> FilePoint {
        let (file, elf) = (Arc::clone(&of.file), Arc::clone(&of.elf));
        FilePoint { file, elf, sites, member_of: Vec::new(), at_return, tolerant: false }
    }

    /// The file's path.
    pub fn path(&self) -> Option<&Path> {
        self.sites.first().map(|s| &*s.path)
    }

    /// The entries of the functions whose returns it is.
    pub fn entries(&self) -> Option<FilePoint> {
        self.at_return.then(|| FilePoint { at_return: false, member_of: Vec::new(), ..self.clone() })
    }

    /// How many functions' return addresses are replaced that something may leave otherwise than by returning: of the others that is
    /// proven impossible.
    pub fn unproven_returns(&self) -> usize {
        let places = Places::new(&self.elf, &*self.file);
        self.sites.iter().filter(|s| self.at_return && !places.is_closed(s.address, s.size)).count()
    }

    /// Whether a function looks at the return address that is replaced.
    pub fn looks_at_return(&self) -> bool {
        let places = Places::new(&self.elf, &*self.file);
        self.at_return && self.sites.iter().any(|s| places.takes_return_address(s.address, s.size))
    }
}
