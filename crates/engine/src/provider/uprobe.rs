//! `uprobe:PATH:SYMBOL[+OFFSET]`, `uprobe:PATH:0xADDRESS` and `uretprobe:PATH:SYMBOL`: functions of programs and libraries, at their entry and at their
//! return.

use super::absent;
use super::elf_file::{self, ElfFile, split_path};
use super::in_file::{at_all, at_sites, with_left_out};
use super::names::{self, Named};
use super::{AttachPoint, LeftOut, Probe, Provider, Ready, Refusal, Site, join, prototype};
use crate::provider::quoting::quote;
use crate::target::danger::Danger;
use lang::pattern::is_pattern;
use std::fs::File;
use symbols::dwarf::Debug;
use symbols::elf::Function;
use symbols::finder::split_files;
use symbols::places::{Misplaced, Places};

/// One of the two.
pub struct Uprobe {
    name: &'static str,
    describe: &'static str,
    at_return: bool,
}

/// At the entry, or at an offset.
pub static UPROBE: Uprobe = Uprobe {
    name: "uprobe",
    describe: "uprobe:PATH:SYMBOL[+OFFSET] or uprobe:PATH:0xADDRESS: a function of a program or library, reached",
    at_return: false,
};
/// At the return.
pub static URETPROBE: Uprobe = Uprobe {
    name: "uretprobe",
    describe: "uretprobe:PATH:SYMBOL: a function of a program or library, returning",
    at_return: true,
};

/// More functions than this share a program.
const APART: usize = 64;

impl Provider for Uprobe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn is_enumerable(&self) -> bool {
        false
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let (file, symbol) = self.open(pattern)?;
        self.found(&file, &symbol, details)
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let (file, symbol) = self.open(pattern)?;
        let mut all = self.found(&file, &symbol, true)?;
        let tolerant = is_pattern(&symbol);
        // An address has been looked at.
        let misplaced = if address(&symbol).is_some() { Vec::new() } else { self.sort_out(&file, &mut all, tolerant)? };
        let ready = all.iter().flat_map(|probe| at_sites(&file, probe, self.at_return, tolerant)).collect();
        Ok(with_left_out(ready, misplaced))
    }

    fn together(&self, pattern: &str) -> Result<Option<(Vec<Probe>, Ready)>, Refusal> {
        let (file, symbol) = self.open(pattern)?;
        let mut all = self.found(&file, &symbol, false)?;
        if all.len() <= APART {
            return Ok(None);
        }
        let misplaced = self.sort_out(&file, &mut all, true)?;
        let point = AttachPoint::File(at_all(&file, &all, self.at_return));
        let name = format!("{}:{pattern}", self.name);
        let probe = Probe { name, args: prototype::registers(self.at_return), ..Probe::default() };
        Ok(Some((all, Ready { probe, point, left_out: misplaced })))
    }
}

impl Uprobe {
    /// The file and the function that a pattern names.
    fn open(&self, pattern: &str) -> Result<(ElfFile, String), Refusal> {
        let (path, mut symbol) = split_path(pattern, 1, self.describe)?;
        let (file, symbol) = (elf_file::open(&path)?, symbol.swap_remove(0));
        match elf_file::libc_instead(&file) {
            Some(libc) if names::find(&file.elf, &symbol).is_empty() => Ok((libc, symbol)),
            _ => Ok((file, symbol)),
        }
    }

    /// The probes that a function's name means, in their order.
    fn found(&self, file: &ElfFile, symbol: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        // An operator's name may contain `+`: a whole name comes first.
        let mut named = names::find(&file.elf, symbol);
        let mut offset = None;
        if let (true, false, Some((base, plus))) = (named.is_empty(), self.at_return, symbol.rsplit_once('+'))
            && let Some(n) = number(plus)
        {
            (named, offset) = (names::find(&file.elf, base), Some(n));
        }
        if let Some(address) = address(symbol).filter(|_| named.is_empty()) {
            return self.at_address(file, symbol, address, details);
        }
        if named.is_empty() {
            let base = symbol.rsplit_once('+').filter(|p| number(p.1).is_some()).map_or(symbol, |p| p.0);
            return Err(absent::refusal(self.name, file, base));
        }
        if let Some(offset) = offset {
            named = at_offset(file, named, offset, is_pattern(symbol))?;
        }
        let prefix = format!("{}:{}:", self.name, quote(&file.path.to_string_lossy()));
        let suffix = offset.map_or(String::new(), |n| format!("+{n}"));
        let mut found: Vec<Probe> = Vec::new();
        let mut functions: Vec<Vec<&Function>> = Vec::new();
        for Named { function: f, name } in &named {
            let site = Site {
                path: file.path.clone(),
                offset: f.offset + offset.unwrap_or(0),
                counter: 0,
                locations: Vec::new(),
                address: f.address,
                size: f.size,
            };
            let note = if f.indirect {
                "this code only selects the function, at load time: calls do not reach it"
            } else {
                ""
            };
            let name = format!("{prefix}{}{suffix}", quote(name));
            join(&mut found, Probe { name, note: note.into(), sites: vec![site], ..Probe::default() });
            functions.resize_with(found.len(), Vec::new);
            functions.last_mut().into_iter().for_each(|of| of.push(f));
        }
        if details {
            self.describe_all(file, &mut found, &functions, offset.unwrap_or(0) > 0);
        }
        Ok(found)
    }

    /// The probe at an address of the file's tables.
    fn at_address(&self, file: &ElfFile, text: &str, address: u64, details: bool) -> Result<Vec<Probe>, Refusal> {
        let places = Places::new(&file.elf, &*file.file);
        let around = file.elf.functions().iter().find(|f| (f.address..f.address + f.size.max(1)).contains(&address));
        let checked = match around {
            Some(f) => places.offset(f.address, f.size, address - f.address),
            None => places.noted(address),
        };
        checked.map_err(|e| Refusal::Wrong(said(&e), "name the address of an instruction".into()))?;
        let begins = around.filter(|f| f.address == address);
        if self.at_return && begins.is_none() {
            return Err(Refusal::Wrong("no function begins at this address".into(), "name the function".into()));
        }
        let Some(offset) = file.elf.code_offset(address) else {
            return Err(Refusal::Wrong("the file has no code there".into(), "name another address".into()));
        };
        let (path, size) = (file.path.clone(), begins.map_or(0, |f| f.size));
        let site = Site { path, offset, counter: 0, locations: Vec::new(), address, size };
        let name = format!("{}:{}:{text}", self.name, quote(&file.path.to_string_lossy()));
        let mut found = vec![Probe { name, sites: vec![site], ..Probe::default() }];
        if details {
            self.describe_all(file, &mut found, &[begins.into_iter().collect()], begins.is_none());
        }
        Ok(found)
    }

    /// Adds arguments and remarks to each probe.
    fn describe_all(&self, file: &ElfFile, found: &mut [Probe], functions: &[Vec<&Function>], inside: bool) {
        let raw: &File = &file.file;
        let debug = Debug::open(&file.elf, raw).filter(|_| !inside);
        let debug = debug.map(|d| d.with_split_files(split_files(&file.path)));
        let danger = if self.at_return { Danger::of_file(&file.path) } else { None };
        let places = Places::new(&file.elf, raw);
        for (probe, functions) in found.iter_mut().zip(functions) {
            (probe.args, probe.aliases) = prototype::of(debug.as_ref(), functions, self.at_return);
            let mut notes: Vec<String> = Vec::new();
            notes.extend(file.real.iter().map(|real| format!("in {}", real.display())));
            notes.extend((!probe.note.is_empty()).then(|| std::mem::take(&mut probe.note)));
            let harmless = |f: &&Function| places.is_closed(f.address, f.size);
            if self.at_return && functions.iter().any(|f| places.takes_return_address(f.address, f.size)) {
                notes.push("needs --force: it reads its return address".into());
            } else if let Some(danger) = danger.as_ref().filter(|_| !functions.iter().all(harmless)) {
                notes.push(format!("needs --force: {} {}", danger.path.display(), danger.means));
            }
            probe.note = notes.join(", ");
        }
    }

    /// Removes what cannot be probed, whatever its symbol claims. If it was named by itself, that is an error.
    fn sort_out(&self, file: &ElfFile, all: &mut Vec<Probe>, tolerant: bool) -> Result<Vec<LeftOut>, Refusal> {
        let raw: &File = &file.file;
        let places = Places::new(&file.elf, raw);
        let (mut misplaced, mut parts, mut readers) = (Vec::new(), Vec::new(), Vec::new());
        for probe in all.iter_mut() {
            let sites = std::mem::take(&mut probe.sites);
            for site in sites {
                let list = match places.entry(site.address) {
                    Err(e) if !tolerant => return Err(Refusal::Wrong(said(&e), "its symbol is damaged".into())),
                    Err(_) => &mut misplaced,
                    Ok(()) if self.at_return && places.is_jumped_to(site.address) => {
                        if !tolerant {
                            return Err(Refusal::Wrong(
                                format!("it has no return: {PART}"),
                                "name the function".into(),
                            ));
                        }
                        &mut parts
                    }
                    Ok(()) if self.at_return && tolerant && places.takes_return_address(site.address, site.size) => {
                        &mut readers
                    }
                    Ok(()) => {
                        probe.sites.push(site);
                        continue;
                    }
                };
                list.push(probe.name.clone());
            }
        }
        all.retain(|p| !p.sites.is_empty());
        let left_out =
            [("no instruction begins at the places that the file gives", misplaced), (PART, parts), (READER, readers)];
        let mut left_out = left_out.into_iter().filter(|(_, names)| !names.is_empty());
        match (all.is_empty(), left_out.next()) {
            (true, Some((why, _))) => {
                Err(Refusal::Wrong(format!("none of them can be probed: {why}"), "name others".into()))
            }
            (_, first) => Ok(first.into_iter().chain(left_out).map(|(why, probes)| LeftOut { why, probes }).collect()),
        }
    }
}

/// The reason for refusing a part that the compiler has split off a function, and functions like setjmp.
const PART: &str = "parts of functions are jumped to, and have no return address";
const READER: &str = "they read their return addresses, which return probes replace";

/// The functions in which an instruction begins at an offset. If a function was named by itself, anything else is an error.
fn at_offset<'e>(file: &ElfFile, all: Vec<Named<'e>>, offset: u64, tolerant: bool) -> Result<Vec<Named<'e>>, Refusal> {
    let raw: &File = &file.file;
    let places = Places::new(&file.elf, raw);
    let mut wrong = None;
    let mut fits = Vec::new();
    for named in all {
        match places.offset(named.function.address, named.function.size, offset) {
            Ok(()) => fits.push(named),
            Err(e) => wrong = Some(e),
        }
    }
    match wrong {
        Some(e) if fits.is_empty() || !tolerant => {
            let near: Vec<String> = e.nearest().iter().map(|n| format!("+{n}")).collect();
            let todo = match (&e, near.is_empty()) {
                (_, false) => format!("the nearest instructions: {}", near.join(", ")),
                (Misplaced::Outside(_), true) => "name a smaller offset".into(),
                _ => "name the function without an offset".into(),
            };
            Err(Refusal::Wrong(said(&e), todo))
        }
        _ => Ok(fits),
    }
}

/// Why there can be no breakpoint.
fn said(e: &Misplaced) -> String {
    match e {
        Misplaced::Inside(_) | Misplaced::NoCode(_) => format!("a breakpoint would break the program: {e}"),
        Misplaced::Outside(_) => format!("the offset is outside: {e}"),
        e => format!("whether an instruction begins there cannot be known: {e}"),
    }
}

/// The address that a name is: `0x401136`, or `4198710`; no function's name begins with a digit.
fn address(text: &str) -> Option<u64> {
    number(text).filter(|_| text.starts_with(|c: char| c.is_ascii_digit()))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn own() -> String {
        std::env::current_exe().unwrap().to_str().unwrap().to_string()
    }

    #[test]
    fn functions_of_this_program() {
        let probes = UPROBE.list(&format!("{}:mai?", own()), true).unwrap();
        let [main] = &probes[..] else { panic!("{probes:?}") };
        // A path with blanks is in quotes.
        let name = format!("uprobe:{}:main", crate::provider::quoting::quote(&own()));
        assert_eq!(main.name, name);
        assert!(main.places().starts_with("file offset 0x") && main.args.len() == 6);
        assert_eq!(&*main.sites[0].path, Path::new(&own()));
        assert!(URETPROBE.list(&format!("{}:main+4", own()), false).is_err());
        assert_eq!(URETPROBE.list(&format!("{}:main", own()), true).unwrap()[0].args[0].name, "retval");
        assert!(UPROBE.list(&own(), false).unwrap().len() > 100);
        let Err(Refusal::Nothing(near)) = UPROBE.list(&format!("{}:maim", own()), false) else { panic!() };
        assert_eq!(near[0], name);
    }

    #[test]
    fn offsets_lead_to_instructions() {
        let of = |offset: u64| UPROBE.list(&format!("{}:main+{offset}", own()), false);
        let size = UPROBE.list(&format!("{}:main", own()), false).unwrap()[0].sites[0].size;
        let all: Vec<_> = (0..size).map(of).collect();
        let starts = all.iter().flatten().count();
        assert!(starts > 2 && starts * 2 < size as usize, "{starts} of {size}");
        let plus = all.iter().flatten().last().unwrap();
        assert!(
            plus[0].name.contains(":main+")
                && plus[0].sites[0].offset > plus[0].sites[0].address - plus[0].sites[0].address
        );
        let refused = all.iter().filter_map(|r| r.as_ref().err());
        for refusal in refused {
            let Refusal::Wrong(why, todo) = refusal else { panic!("{refusal:?}") };
            assert!(
                why.contains("would break the program") && todo.starts_with("the nearest instructions: +"),
                "{why} {todo}"
            );
        }
        let Err(Refusal::Wrong(why, _)) = of(1_000_000_000) else { panic!() };
        assert!(why.contains(&format!("the function has {size} bytes")), "{why}");
        // A pattern takes what it can.
        assert!(UPROBE.list(&format!("{}:mai?+0", own()), false).is_ok());
    }

    #[test]
    fn every_name_that_is_listed_is_found_again() {
        let pattern = format!("{}:*quoting*", own());
        let all = UPROBE.list(&pattern, false).unwrap();
        assert!(
            all.len() > 5 && all.iter().any(|p| p.name.ends_with(":engine::provider::quoting::unquote")),
            "{}",
            all.len()
        );
        for p in &all {
            let back = crate::provider::list(&p.name, false).unwrap();
            assert_eq!(back, std::slice::from_ref(p), "{}", p.name);
        }
    }
}
