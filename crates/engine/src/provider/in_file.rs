//! The attach points of probes that are instructions of a file.

use super::elf_file::ElfFile;
use super::file_point::FilePoint;
use super::{ArgLocation, AttachPoint, LeftOut, Probe, Ready, Site};

/// The attach points of a probe in a file: one for all sites that have the arguments in the same locations.
pub fn at_sites(of: &ElfFile, probe: &Probe, at_return: bool, tolerant: bool) -> Vec<Ready> {
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
pub fn at_all(of: &ElfFile, probes: &[Probe], at_return: bool) -> FilePoint {
    let mut sites = Vec::new();
    let mut member_of = Vec::new();
    for (nth, probe) in probes.iter().enumerate() {
        sites.extend(probe.sites.iter().cloned());
        member_of.resize(sites.len(), nth);
    }
    FilePoint { member_of, tolerant: true, ..FilePoint::new(of, sites, at_return) }
}

/// Adds the skipped probes of a pattern to the first probe that is not skipped.
pub fn with_left_out(mut ready: Vec<Ready>, left_out: Vec<LeftOut>) -> Vec<Ready> {
    if let Some(first) = ready.first_mut() {
        first.left_out = left_out;
    }
    ready
}
