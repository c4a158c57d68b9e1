//! The functions of a file by address: `.symtab`, `.dynsym`, and what the compressed small table of symbols adds.
//!
//! ```text
//!  address ─► symbols that hold it ─► with a size before without ─► the one that begins last ─► of its names the best
//!  names: functions before labels, visible ones before local ones, fewer `_` in front, shorter
//! ```
//!
//! A symbol without a size ends where the next one begins, or its section does. 32 bytes are kept for a symbol; its name is read from
//! the file when it is asked for.

use crate::ReadAt;
use crate::headers::{Headers, read_bytes, u16_at, u32_at, u64_at};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

/// The most symbols of all tables together.
const MAX_SYMBOLS: usize = 4 << 20;
/// The longest name.
const MAX_NAME: usize = 4096;
/// Symbols in front of an address that are looked at, and names of one function.
const MAX_BEFORE: usize = 512;
const MAX_ALIASES: usize = 64;
/// Functions of which the names are kept.
const MAX_KNOWN: usize = 1 << 16;

/// Bytes of `Elf64_Sym`.
const SYMBOL: u64 = 24;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_LOCAL: u8 = 0;

/// A symbol that is a function, or a label in code.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    /// Behind its last byte.
    end: u64,
    /// The furthest end of all symbols with sizes up to this one.
    furthest: u64,
    /// Offset in the strings of its table.
    name: u32,
    /// Number of its table.
    table: u8,
    /// The lower, the better: 4 of it is a label, 2 an indirect function, 1 local.
    rank: u8,
    sized: bool,
}

/// Where the names of a table are.
struct Strings {
    file: Rc<dyn ReadAt>,
    offset: u64,
    size: u64,
}

/// A function that holds an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Name in the file, without a version.
    pub name: Rc<str>,
    /// Where it begins.
    pub start: u64,
    /// Behind its last byte; for a symbol without a size, where the next one begins.
    pub end: u64,
    /// The file says how long it is.
    pub sized: bool,
}

/// Names of a function and their ranks.
type Names = Rc<[(u8, Rc<str>)]>;

/// The functions of a file by address.
#[derive(Default)]
pub struct SymbolTable {
    symbols: Vec<Symbol>,
    tables: Vec<Strings>,
    /// Names that were read, by address and whether the symbols have sizes.
    known: RefCell<HashMap<(u64, bool), Names>>,
}

impl SymbolTable {
    /// Adds the symbols of a file: of `.symtab`, or without one of `.dynsym`. `code` has the sections that hold code: those of the
    /// file itself, or, where their headers were removed, of the program. [`Self::finish`] must follow.
    pub fn add(&mut self, headers: &Headers, file: &Rc<dyn ReadAt>, code: &Headers) -> Option<()> {
        let of = |kind| headers.sections.iter().find(|s| s.kind == kind && s.size > 0 && !s.compressed);
        let section = of(SHT_SYMTAB).or_else(|| of(SHT_DYNSYM))?;
        let strings = headers.sections.get(section.link as usize)?;
        let table = u8::try_from(self.tables.len()).ok()?;
        self.tables.push(Strings { file: Rc::clone(file), offset: strings.offset, size: strings.size });
        /// Symbols that are read at once.
        const PIECE: u64 = 1 << 16;
        let count = section.size / SYMBOL;
        let mut at = 0;
        while at < count {
            let n = (count - at).min(PIECE);
            let bytes = read_bytes(&**file, section.offset.checked_add(at * SYMBOL)?, n * SYMBOL)?;
            for s in bytes.chunks_exact(SYMBOL as usize) {
                if self.symbols.len() >= MAX_SYMBOLS {
                    return None;
                }
                self.symbols.extend(symbol(s, table, headers, code));
            }
            at += n;
        }
        Some(())
    }

    /// Puts the symbols in order, and finds out where those without a size end.
    pub fn finish(&mut self, code: &Headers) {
        self.symbols.sort_unstable_by_key(|s| (s.address, s.end));
        let mut next = u64::MAX;
        let mut following = u64::MAX;
        for s in self.symbols.iter_mut().rev() {
            if s.address < following {
                (next, following) = (following, s.address);
            }
            if !s.sized {
                let section = code.code_section(s.address);
                let end = section.map_or(s.address, |c| c.address.saturating_add(c.memory));
                s.end = end.min(next);
            }
        }
        let mut furthest = 0;
        for s in &mut self.symbols {
            furthest = if s.sized { s.end.max(furthest) } else { furthest };
            s.furthest = furthest;
        }
        self.symbols.shrink_to_fit();
    }

    /// How many symbols there are.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The function that holds an address. The name `preferred` is taken where the function has several that are as good.
    pub fn find(&self, address: u64, preferred: Option<&str>) -> Option<Named> {
        let before = &self.symbols[..self.symbols.partition_point(|s| s.address <= address)];
        let nearest = before.last()?.address;
        let mut best: Option<&Symbol> = None;
        for s in before.iter().rev().take(MAX_BEFORE) {
            if address < s.end && best.is_none_or(|b| s.sized && !b.sized) {
                best = Some(s);
            }
            // What has no size ends where the nearest one begins; what has one reaches as far as is noted.
            let none_before = s.furthest <= address && s.address < nearest;
            if none_before || best.is_some_and(|b| b.sized) {
                break;
            }
        }
        self.named(*best?, preferred)
    }

    /// The best of the names that a function has.
    fn named(&self, best: Symbol, preferred: Option<&str>) -> Option<Named> {
        let names = self.names_of(best);
        // A library's own name for what others call otherwise is never preferred.
        let best_rank = names.first()?.0;
        let is_preferred =
            |(rank, n): &&(u8, Rc<str>)| *rank == best_rank && Some(&**n) == preferred && !is_internal(n);
        let (_, name) = names.iter().find(is_preferred).or(names.first())?;
        Some(Named { name: Rc::clone(name), start: best.address, end: best.end, sized: best.sized })
    }

    /// All names of a function, the best first.
    fn names_of(&self, best: Symbol) -> Names {
        let key = (best.address, best.sized);
        if let Some(known) = self.known.borrow().get(&key) {
            return Rc::clone(known);
        }
        let from = self.symbols.partition_point(|s| s.address < best.address);
        let same = self.symbols[from..].iter().take_while(|s| s.address == best.address).take(MAX_ALIASES);
        let same = same.filter(|s| s.sized == best.sized);
        let mut names: Vec<(u8, Rc<str>)> = same.filter_map(|s| Some((s.rank, self.name(s)?.into()))).collect();
        names.retain(|(_, n)| is_sane(n));
        names.sort_by_cached_key(|(rank, n)| (*rank, plainness(n), n.clone()));
        names.dedup_by(|a, b| a.1 == b.1);
        let names: Names = names.into();
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, Rc::clone(&names));
        names
    }

    /// All functions in order of addresses, each with its best name.
    pub fn functions(&self) -> impl Iterator<Item = Named> + '_ {
        let mut last = None;
        self.symbols.iter().filter_map(move |s| {
            if last.replace(s.address) == Some(s.address) || s.end <= s.address {
                return None;
            }
            self.find(s.address, None).filter(|n| n.start == s.address)
        })
    }

    fn name(&self, s: &Symbol) -> Option<String> {
        let strings = self.tables.get(usize::from(s.table))?;
        let room = strings.size.checked_sub(s.name.into())?;
        let at = strings.offset.checked_add(s.name.into())?;
        let mut len = 64;
        loop {
            let mut bytes = vec![0; room.min(len) as usize];
            strings.file.read_at(at, &mut bytes).ok()?;
            match bytes.iter().position(|b| *b == 0) {
                Some(end) => bytes.truncate(end),
                None if len < room.min(MAX_NAME as u64) => {
                    len *= 4;
                    continue;
                }
                None => {}
            }
            // In `.symtab` old linkers put a version behind the name.
            let name = String::from_utf8_lossy(&bytes);
            return name.split('@').next().filter(|n| !n.is_empty()).map(str::to_string);
        }
    }
}

/// What a symbol is, if it may be code.
fn symbol(s: &[u8], table: u8, headers: &Headers, code: &Headers) -> Option<Symbol> {
    let (info, section) = (*s.get(4)?, u16_at(s, 6)?);
    let (address, size) = (u64_at(s, 8)?, u64_at(s, 16)?);
    let (kind, binding) = (info & 15, info >> 4);
    // SHN_XINDEX: the number is too large to stand here.
    const RESERVED: u16 = 0xff00;
    const XINDEX: u16 = 0xffff;
    if section == 0 || address == 0 {
        return None;
    }
    let rank = match kind {
        STT_FUNC => 0,
        STT_GNU_IFUNC => 2,
        STT_NOTYPE => 4,
        _ => return None,
    };
    if kind == STT_NOTYPE {
        let known = headers.sections.get(usize::from(section)).filter(|_| section < RESERVED);
        let is_code = known.map_or(section == XINDEX, |s| s.executable);
        if !is_code || code.code_section(address).is_none() {
            return None;
        }
    }
    let rank = rank | u8::from(binding == STB_LOCAL);
    let (end, sized) = (address.checked_add(size)?, size > 0);
    Some(Symbol { address, end, furthest: 0, name: u32_at(s, 0)?, table, rank, sized })
}

/// Whether a name is one that somebody has given: not a label of the assembler, not one that marks code or data.
fn is_sane(name: &str) -> bool {
    let is_mark = ["$x", "$a", "$d", "$t"]
        .iter()
        .any(|m| name.strip_prefix(m).is_some_and(|r| r.is_empty() || r.starts_with('.')));
    !name.starts_with(".L") && !is_mark
}

/// Whether a name is a library's own for what others call otherwise (`__GI_read`, `__libc_malloc`).
fn is_internal(name: &str) -> bool {
    ["__GI_", "__libc_", "_IO_", "__IO_"].iter().any(|p| name.starts_with(p))
}

/// An order of the names of one function: the plainest is the least.
pub fn plainness(name: &str) -> (bool, Reverse<bool>, usize) {
    (is_internal(name), underscores(name), name.len())
}

fn underscores(name: &str) -> Reverse<bool> {
    Reverse(!name.starts_with('_') || name.starts_with("_Z") || name.starts_with("_R"))
}
