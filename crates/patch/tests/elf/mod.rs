//! What a plan is made of, read from a file of this machine.

#![allow(dead_code, reason = "each test uses a part")]

use object::elf::{
    FileHeader64, PF_X, PT_LOAD, SHF_EXECINSTR, SHT_DYNSYM, SHT_RELA, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC,
};
use object::elf::{STT_FILE, STT_SECTION, STT_TLS};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::{LittleEndian as Le, SectionIndex};
use patch::{Frame, Function, Module, Plan, Refusal, Segment};
use std::collections::HashMap;
use symbols::Elf;
use symbols::frames::Frames;
use symbols::headers::Headers;
use symbols::plt::Plt;

/// A file's code and tables.
pub struct File {
    pub bytes: Vec<u8>,
    pub segments: Vec<(u64, usize, usize)>,
    pub functions: Vec<Function>,
    pub names: Vec<String>,
    pub frames: Vec<Frame>,
    pub symbols: Vec<u64>,
    pub profilers: Vec<u64>,
}

const PROFILERS: [&str; 3] = ["mcount", "_mcount", "__fentry__"];

impl File {
    pub fn read(path: &str) -> Option<File> {
        let bytes = std::fs::read(path).ok()?;
        let header = FileHeader64::<Le>::parse(&*bytes).ok()?;
        let data = &*bytes;
        let mut segments = vec![];
        for p in header.program_headers(Le, data).ok()? {
            if p.p_type(Le) == PT_LOAD && p.p_flags(Le) & PF_X != 0 {
                segments.push((p.p_vaddr(Le), p.p_offset(Le) as usize, p.p_filesz(Le) as usize));
            }
        }
        let sections = header.sections(Le, data).ok()?;
        let has_symtab = sections.iter().any(|s| s.sh_type(Le) == SHT_SYMTAB);
        let kind = if has_symtab { SHT_SYMTAB } else { SHT_DYNSYM };
        let table = sections.symbols(Le, data, kind).ok()?;
        let (mut functions, mut names, mut symbols, mut profilers) = (vec![], vec![], vec![], vec![]);
        for symbol in table.iter() {
            let kind = symbol.st_type();
            let section = sections.section(SectionIndex(symbol.st_shndx(Le).into()));
            let is_code = section.is_ok_and(|s| s.sh_flags(Le) & u64::from(SHF_EXECINSTR) != 0);
            if !is_code || [STT_FILE, STT_SECTION, STT_TLS].contains(&kind) {
                continue;
            }
            symbols.push(symbol.st_value(Le));
            let name = String::from_utf8_lossy(symbol.name(Le, table.strings()).unwrap_or_default()).into_owned();
            if PROFILERS.contains(&name.as_str()) {
                profilers.push(symbol.st_value(Le));
            }
            if kind == STT_FUNC || kind == STT_GNU_IFUNC {
                let resolver = (kind == STT_GNU_IFUNC).then_some(Refusal::Resolver);
                let refusal = Refusal::of_name(&name).or(resolver);
                let number = names.len() as u32;
                functions.push(Function { address: symbol.st_value(Le), size: symbol.st_size(Le), number, refusal });
                names.push(name);
            }
        }
        symbols.sort_unstable();
        let dynamic = sections.symbols(Le, data, SHT_DYNSYM).ok()?;
        for section in sections.iter().filter(|s| s.sh_type(Le) == SHT_RELA) {
            let Ok(Some((relas, _))) = section.rela(Le, data) else { continue };
            for rela in relas {
                let Some(Ok(symbol)) = rela.symbol(Le, false).map(|s| dynamic.symbol(s)) else { continue };
                let name = String::from_utf8_lossy(symbol.name(Le, dynamic.strings()).unwrap_or_default()).into_owned();
                if PROFILERS.contains(&name.as_str()) {
                    profilers.push(rela.r_offset(Le));
                }
            }
        }
        if let Some(headers) = Headers::read(&data) {
            let plt = Plt::read(&headers, &data);
            profilers.extend(plt.entries().iter().filter(|e| PROFILERS.contains(&&*e.2)).map(|e| e.0));
        }
        profilers.sort_unstable();
        let elf = Elf::parse(data).ok()?;
        let found = Frames::read(&elf, &data);
        let frame = |f: &symbols::frames::Frame| Frame {
            start: f.start,
            len: f.end - f.start,
            is_as_called: found.is_as_called(f.start) == Some(true),
        };
        let frames = found.all().iter().map(frame).collect();
        Some(File { segments, functions, names, frames, symbols, profilers, bytes })
    }

    pub fn module<T>(&self, use_it: impl FnOnce(&Module<'_>) -> T) -> T {
        let segments: Vec<Segment<'_>> = self
            .segments
            .iter()
            .map(|(address, at, len)| Segment { address: *address, bytes: &self.bytes[*at..][..*len] })
            .collect();
        use_it(&Module {
            segments: &segments,
            functions: &self.functions,
            frames: &self.frames,
            symbols: &self.symbols,
            profilers: &self.profilers,
            hooks: &[],
        })
    }

    pub fn plan(&self) -> Plan {
        self.module(Plan::new)
    }

    pub fn text(&self) -> usize {
        self.segments.iter().map(|s| s.2).sum()
    }

    /// The bytes at an address.
    pub fn at(&self, address: u64) -> &[u8] {
        self.segments
            .iter()
            .find_map(|(start, at, len)| self.bytes[*at..][..*len].get(address.checked_sub(*start)? as usize..))
            .unwrap_or_default()
    }

    /// How often each reason is given.
    pub fn refusals(plan: &Plan) -> HashMap<Refusal, usize> {
        let mut counts = HashMap::new();
        plan.refusals.iter().for_each(|(_, r)| *counts.entry(*r).or_default() += 1);
        counts
    }
}
