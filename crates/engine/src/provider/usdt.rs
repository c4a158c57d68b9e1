//! `usdt:PATH:PROVIDER:NAME`: static probes that a program or library was built with.

use super::elf_file::{self, ElfFile, split_path};
use super::in_file::{at_sites, with_left_out};
use super::{ArgInfo, ArgLocation, ArgType, Encoding, LeftOut, Probe, Provider, Ready, Refusal, Site, join};
use crate::provider::quoting::quote;
use lang::pattern::{glob, is_pattern};
use std::fs::File;
use std::path::Path;
use symbols::places::Places;
use symbols::usdt::{self, Static};

/// The provider.
pub struct Usdt;

const FORM: &str = "usdt:PATH:PROVIDER:NAME: a static probe of a program or library";

impl Provider for Usdt {
    fn name(&self) -> &'static str {
        "usdt"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn is_enumerable(&self) -> bool {
        false
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let (path, words) = split_path(pattern, 2, FORM)?;
        found(&elf_file::open(&path)?, &words[0], &words[1], details)
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let (path, words) = split_path(pattern, 2, FORM)?;
        let file = elf_file::open(&path)?;
        let tolerant = words.iter().any(|w| is_pattern(w));
        let mut all = found(&file, &words[0], &words[1], true)?;
        let misplaced = sort_out(&file, &mut all, tolerant)?;
        let ready = all.iter().flat_map(|probe| at_sites(&file, probe, false, tolerant)).collect();
        Ok(with_left_out(ready, misplaced))
    }
}

/// The probes of a file that match.
fn found(file: &ElfFile, provider: &str, name: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
    let mut all = usdt::of(&file.elf);
    if all.is_empty() {
        let why = format!("{}: no static probes in it", file.path.display());
        return Err(Refusal::Closed(why, "name another file, or use uprobe".into()));
    }
    order::by(&mut all, |a, b| (&a.provider, &a.name, a.offset).cmp(&(&b.provider, &b.name, b.offset)));
    let wanted =
        |s: &&Static| glob(provider.as_bytes(), s.provider.as_bytes()) && glob(name.as_bytes(), s.name.as_bytes());
    let mut found: Vec<Probe> = Vec::new();
    for s in all.iter().filter(wanted) {
        let args = if details { arguments(s) } else { Vec::new() };
        let note = if s.semaphore == 0 { "" } else { "with a semaphore" };
        let locations = s.args.iter().map(|a| ArgLocation::of_operand(&a.at)).collect();
        let (offset, counter, address) = (s.offset, s.semaphore, s.address);
        let site = Site { path: file.path.clone(), offset, counter, locations, address, size: 0 };
        join(
            &mut found,
            Probe { name: full(&file.path, s), args, note: note.into(), sites: vec![site], ..Probe::default() },
        );
    }
    if found.is_empty() {
        let names: Vec<String> = all.iter().map(|s| format!("{}:{}", s.provider, s.name)).collect();
        let wanted = format!("{provider}:{name}");
        let mut near =
            Refusal::nothing(&format!("usdt:{}", file.path.display()), &wanted, names.iter().map(String::as_str));
        if let Refusal::Nothing(near) = &mut near {
            near.dedup();
        }
        return Err(near);
    }
    Ok(found)
}

/// Removes places where no instruction begins, whatever the note claims. Returns the names of the removed probes.
fn sort_out(file: &ElfFile, all: &mut Vec<Probe>, tolerant: bool) -> Result<Vec<LeftOut>, Refusal> {
    let raw: &File = &file.file;
    let places = Places::new(&file.elf, raw);
    let mut misplaced = Vec::new();
    for probe in all.iter_mut() {
        let mut wrong = None;
        probe.sites.retain(|s| places.noted(s.address).map_err(|e| wrong = Some(e)).is_ok());
        match wrong {
            Some(e) if !tolerant => {
                let why = format!("a breakpoint would break the program: {e}");
                return Err(Refusal::Wrong(why, "the file's notes are damaged".into()));
            }
            Some(_) => misplaced.push(probe.name.clone()),
            None => {}
        }
    }
    all.retain(|p| !p.sites.is_empty());
    let why = "no instruction begins at the places that the file gives";
    match (all.is_empty(), misplaced.is_empty()) {
        (true, _) => Err(Refusal::Wrong(why.into(), "the file's notes are damaged".into())),
        (false, true) => Ok(Vec::new()),
        (false, false) => Ok(vec![LeftOut { why, probes: misplaced }]),
    }
}

fn full(path: &Path, s: &Static) -> String {
    format!("usdt:{}:{}:{}", quote(&path.to_string_lossy()), quote(&s.provider), quote(&s.name))
}

/// The arguments of the first place; each site has its own locations.
fn arguments(s: &Static) -> Vec<ArgInfo> {
    let arg = |(i, a): (usize, &usdt::Arg)| {
        let encoding = if a.float { Encoding::Float } else { Encoding::Int };
        let ty = ArgType { c: a.to_string(), size: a.size.into(), signed: a.signed, encoding };
        ArgInfo { name: format!("arg{i}"), ty, location: ArgLocation::of_operand(&a.at) }
    };
    s.args.iter().enumerate().map(arg).collect()
}
