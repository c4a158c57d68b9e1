//! What the debug information of a file (DWARF 2 to 5) says of its functions: names and types of what they take and return, and
//! where they were inlined.
//!
//! ```text
//!  address ─► .debug_aranges, else the ranges of the other units ─► unit ─► its functions by address ─► entry
//!  entry ─► DW_AT_abstract_origin, DW_AT_specification ─► parameters and types ─► abi: which registers
//! ```
//!
//! Only what one function takes is read ([`section`]); compressed sections are inflated when they are first needed, and split files
//! (`.dwo`, `.dwp`) opened when one of their functions is ([`split`]). A damaged file says less.

mod abi;
mod calls;
mod inflated;
mod inlined;
mod joined;
mod lines;
mod prototype;
mod scopes;
pub mod section;
pub mod signature;
pub mod split;
mod stops;
mod type_units;
mod types;

pub use calls::Call;
pub use inlined::Inlined;
pub use prototype::{Parameter, Prototype, Where};
pub use types::{Kind, TypeInfo};

use crate::headers::Headers;
use crate::{Elf, ReadAt};
use calls::Function;
use gimli::Section as _;
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrevOffset, DebugInfoOffset, DwAt, Dwarf, Reader, UnitHeader, UnitOffset,
    constants as c,
};
use inflated::Inflated;
use joined::Joined;
use lines::Lines;
use scopes::Scopes;
use section::{Bytes, Source};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

type Unit<'f> = gimli::Unit<Bytes<'f>>;
type Entry<'f> = gimli::DebuggingInformationEntry<Bytes<'f>>;
type Value<'f> = AttributeValue<Bytes<'f>>;

/// The longest name that is believed.
const MAX_NAME: usize = 4096;
/// The most units of a file, and entries that one refers to by the next.
const MAX_UNITS: usize = 1 << 18;
const MAX_HOPS: usize = 8;
/// How many bytes, about, of what was found in units are kept; and how much one unit takes at least.
const MAX_KEPT: usize = 96 << 20;
const UNIT: usize = 16 << 10;

/// The debug information of a file.
pub struct Debug<'f> {
    dwarf: Dwarf<Bytes<'f>>,
    source: Rc<Source<'f>>,
    /// What several files share (`.gnu_debugaltlink`, made by dwz).
    supplementary: Option<Box<Debug<'f>>>,
    /// The unit of the program, where this is a split file.
    skeleton: Option<Rc<Found<'f>>>,
    /// Its split files.
    splits: Option<split::Splits<'f>>,
    /// The package that it was taken from.
    package: Option<Rc<split::Package<'f>>>,
    /// Bytes, about, of `units`, those of split files included.
    kept: Rc<Cell<usize>>,
    /// Work that is left for addresses.
    credit: Cell<u64>,
    /// An address was looked for whose unit is in a split file, which was not found.
    split: Cell<bool>,
    abbreviations: RefCell<HashMap<u64, Arc<Abbreviations>>>,
    units: RefCell<HashMap<usize, Rc<Found<'f>>>>,
    /// Where every unit begins, in order.
    headers: OnceCell<Vec<usize>>,
    /// Ranges of addresses, sorted, and the units that they belong to: those in `.debug_aranges`, and others.
    told: OnceCell<Vec<(u64, u64, usize)>>,
    other: OnceCell<Vec<(u64, u64, usize)>>,
    /// Types that have units of their own.
    types: type_units::Types<'f>,
}

/// A unit, and what was found in it.
struct Found<'f> {
    unit: Unit<'f>,
    /// Its sections, if they are not those of the file: a package has a share of each for every type.
    dwarf: Option<Rc<Dwarf<Bytes<'f>>>>,
    language: Option<c::DwLang>,
    /// Addresses of functions, and where their entries are.
    functions: OnceCell<HashMap<u64, UnitOffset>>,
    /// Where the code of functions lies, sorted: from, to, entry.
    extents: OnceCell<Vec<(u64, u64, UnitOffset)>>,
    /// What was inlined into functions, by their entries.
    calls: RefCell<HashMap<UnitOffset, Rc<Function>>>,
    lines: OnceCell<Lines>,
    scopes: OnceCell<Scopes>,
    /// Names of functions by their entries, and paths of files by their numbers.
    names: RefCell<HashMap<UnitOffset, Option<Rc<str>>>>,
    paths: RefCell<HashMap<u64, Option<Rc<str>>>>,
}

/// The sections of a file: name, offset, bytes, whether they are compressed.
struct Sections<'f> {
    all: Vec<(String, u64, u64, bool)>,
    file: Rc<dyn ReadAt + 'f>,
    source: Rc<Source<'f>>,
}

impl<'f> Sections<'f> {
    /// `source`: of the file, which ends there.
    fn new(
        all: Vec<(String, u64, u64, bool)>,
        file: Rc<dyn ReadAt + 'f>,
        source: impl Fn(Rc<dyn ReadAt + 'f>, u64) -> Rc<Source<'f>>,
    ) -> Option<Sections<'f>> {
        let end = all.iter().map(|s| s.1.saturating_add(s.2)).max()?;
        let source = source(Rc::clone(&file), end);
        Some(Sections { all, file, source })
    }
}

/// An entry and the unit that it is in.
#[derive(Clone)]
struct Die<'f> {
    found: Rc<Found<'f>>,
    at: UnitOffset,
}

impl<'f> Debug<'f> {
    /// Of a file whose tables are `elf`; none without debug information that can be read.
    pub fn open(elf: &Elf, file: &'f dyn ReadAt) -> Option<Debug<'f>> {
        let sections = elf.sections().map(|s| (s.name.as_str(), s.offset, s.size, s.compressed));
        Debug::of_sections(sections.collect(), Rc::new(file), None)
    }

    /// Of a file whose headers are `headers`, with what it shares with other files.
    pub fn of(headers: &Headers, file: Rc<dyn ReadAt + 'f>, supplementary: Option<Debug<'f>>) -> Option<Debug<'f>> {
        let sections = headers.sections.iter().map(|s| (s.name.as_str(), s.offset, s.size, s.compressed));
        Debug::of_sections(sections.collect(), file, supplementary)
    }

    /// Of sections by name: offset in the file, bytes, whether they are compressed.
    fn of_sections(
        sections: Vec<(&str, u64, u64, bool)>,
        file: Rc<dyn ReadAt + 'f>,
        supplementary: Option<Debug<'f>>,
    ) -> Option<Debug<'f>> {
        let all = sections.into_iter().map(|(name, from, size, packed)| (name.to_string(), from, size, packed));
        let sections = Sections::new(all.collect(), file, Source::new)?;
        let mut dwarf = Dwarf::load(|id| sections.load(id.name())).ok()?;
        if dwarf.debug_info.reader().is_empty() {
            return None;
        }
        if let Some(other) = &supplementary {
            let share = |id: gimli::SectionId| -> Result<Bytes<'f>, gimli::Error> { Ok(other.section(id)) };
            dwarf.load_sup(share).ok()?;
        }
        Some(Debug::new(dwarf, sections.source, supplementary))
    }

    fn new(dwarf: Dwarf<Bytes<'f>>, source: Rc<Source<'f>>, supplementary: Option<Debug<'f>>) -> Debug<'f> {
        Debug {
            dwarf,
            source,
            supplementary: supplementary.map(Box::new),
            skeleton: None,
            splits: None,
            package: None,
            kept: Rc::default(),
            credit: Cell::new(calls::CREDIT),
            split: Cell::new(false),
            abbreviations: RefCell::default(),
            units: RefCell::default(),
            headers: OnceCell::new(),
            told: OnceCell::new(),
            other: OnceCell::new(),
            types: type_units::Types::default(),
        }
    }

    /// The bytes of a section that dwz lets several files share.
    fn section(&self, id: gimli::SectionId) -> Bytes<'f> {
        match id {
            gimli::SectionId::DebugInfo => self.dwarf.debug_info.reader().clone(),
            gimli::SectionId::DebugAbbrev => self.dwarf.debug_abbrev.reader().clone(),
            gimli::SectionId::DebugStr => self.dwarf.debug_str.reader().clone(),
            gimli::SectionId::DebugLine => self.dwarf.debug_line.reader().clone(),
            _ => Bytes::new(&self.source, 0, 0),
        }
    }

    /// The sections that a unit is in.
    fn dwarf_of<'a>(&'a self, found: &'a Found<'f>) -> &'a Dwarf<Bytes<'f>> {
        found.dwarf.as_deref().unwrap_or(&self.dwarf)
    }

    /// The bytes of text at an attribute.
    fn text(&self, found: &Found<'f>, value: Option<Value<'f>>) -> Option<String> {
        let mut bytes = self.dwarf_of(found).attr_string(&found.unit, value?).ok()?;
        let _ = bytes.truncate(MAX_NAME);
        Some(bytes.to_string_lossy().ok()?.into_owned())
    }

    fn abbreviations(&self, dwarf: &Dwarf<Bytes<'f>>, header: &UnitHeader<Bytes<'f>>) -> Option<Arc<Abbreviations>> {
        let DebugAbbrevOffset(at) = header.debug_abbrev_offset();
        // In the file: shares of a package's section begin where they like.
        let at = dwarf.debug_abbrev.reader().offset_id().0.checked_add(at as u64)?;
        if let Some(known) = self.abbreviations.borrow().get(&at) {
            return Some(Arc::clone(known));
        }
        let parsed = dwarf.abbreviations(header).ok()?;
        self.abbreviations.borrow_mut().insert(at, Arc::clone(&parsed));
        Some(parsed)
    }

    fn parse_unit(&self, header: UnitHeader<Bytes<'f>>) -> Option<Rc<Found<'f>>> {
        self.parse_unit_of(None, header)
    }

    /// A unit of these sections, else of the file's.
    fn parse_unit_of(
        &self,
        dwarf: Option<Rc<Dwarf<Bytes<'f>>>>,
        header: UnitHeader<Bytes<'f>>,
    ) -> Option<Rc<Found<'f>>> {
        let sections = dwarf.as_deref().unwrap_or(&self.dwarf);
        let abbreviations = self.abbreviations(sections, &header)?;
        let mut unit = Unit::new_with_abbreviations(sections, header, abbreviations).ok()?;
        if let Some(Found { unit: skeleton, .. }) = self.skeleton.as_deref() {
            unit.copy_relocated_attributes(skeleton);
            (unit.line_program, unit.comp_dir) = (skeleton.line_program.clone(), skeleton.comp_dir.clone());
        }
        let root = unit.entry(UnitOffset(unit.header.header_size())).ok();
        let language = root.and_then(|root| match root.attr_value(c::DW_AT_language)? {
            AttributeValue::Language(l) => Some(l),
            _ => None,
        });
        let (functions, extents, lines) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let (names, paths, calls) = (RefCell::default(), RefCell::default(), RefCell::default());
        let scopes = OnceCell::new();
        Some(Rc::new(Found { unit, dwarf, language, functions, extents, calls, lines, scopes, names, paths }))
    }

    /// The unit whose header is there.
    fn unit(&self, at: usize) -> Option<Rc<Found<'f>>> {
        if let Some(known) = self.units.borrow().get(&at) {
            return Some(Rc::clone(known));
        }
        let found = self.parse_unit(self.dwarf.unit_header(DebugInfoOffset(at)).ok()?)?;
        self.keep(UNIT);
        self.units.borrow_mut().insert(at, Rc::clone(&found));
        Some(found)
    }

    /// Counts bytes that are kept with a unit. Where there are too many, all units are forgotten, and split files, which do not do so
    /// themselves.
    fn keep(&self, bytes: usize) {
        self.kept.set(self.kept.get() + bytes);
        if self.kept.get() > MAX_KEPT && self.skeleton.is_none() {
            self.splits.iter().for_each(split::Splits::clear);
            self.kept.set(0);
            self.units.borrow_mut().clear();
            self.types.clear();
            self.abbreviations.borrow_mut().clear();
        }
    }

    fn headers(&self) -> &[usize] {
        self.headers.get_or_init(|| {
            let mut all = Vec::new();
            let mut units = self.dwarf.units();
            while let Ok(Some(header)) = units.next()
                && all.len() < MAX_UNITS
            {
                all.extend(header.debug_info_offset().map(|at| at.0));
            }
            all
        })
    }

    /// The unit that an address of code belongs to.
    fn unit_of(&self, address: u64) -> Option<Rc<Found<'f>>> {
        let told = self.told.get_or_init(|| self.told_ranges());
        let in_ranges = |ranges: &[(u64, u64, usize)]| {
            let next = ranges.partition_point(|r| r.0 <= address);
            // Ranges overlap only in damaged files; few of those in front are looked at.
            ranges[..next].iter().rev().take(16).find(|r| address < r.1).map(|r| r.2)
        };
        let unit = in_ranges(told).or_else(|| in_ranges(self.other.get_or_init(|| self.other_ranges(told))))?;
        self.unit(unit)
    }

    /// What `.debug_aranges` says.
    fn told_ranges(&self) -> Vec<(u64, u64, usize)> {
        let mut all = Vec::new();
        let mut sets = self.dwarf.debug_aranges.headers();
        while let Ok(Some(set)) = sets.next() {
            let DebugInfoOffset(unit) = set.debug_info_offset();
            let mut entries = set.entries();
            while let Ok(Some(entry)) = entries.next() {
                all.push((entry.address(), entry.address().saturating_add(entry.length()), unit));
            }
        }
        all.retain(|r| r.0 < r.1);
        all.sort_unstable();
        all
    }

    /// What units say themselves that `.debug_aranges` leaves out. All of `.debug_info` is looked at for it.
    fn other_ranges(&self, told: &[(u64, u64, usize)]) -> Vec<(u64, u64, usize)> {
        let told: HashSet<usize> = told.iter().map(|r| r.2).collect();
        let mut all = Vec::new();
        for at in self.headers().iter().filter(|at| !told.contains(*at)) {
            let Some(found) = self.dwarf.unit_header(DebugInfoOffset(*at)).ok().and_then(|h| self.parse_unit(h)) else {
                continue;
            };
            let Ok(mut ranges) = self.dwarf.unit_ranges(&found.unit) else { continue };
            while let Ok(Some(range)) = ranges.next() {
                all.push((range.begin, range.end, *at));
            }
            // One table for each unit: what looks at every unit keeps none.
            if self.abbreviations.borrow().len() > 256 {
                self.abbreviations.borrow_mut().clear();
            }
        }
        all.retain(|r| r.0 < r.1);
        all.sort_unstable();
        all
    }

    /// The entry of the function that begins at an address.
    fn function(&self, address: u64) -> Option<Die<'f>> {
        let found = self.unit_of(address)?;
        let at = *found.functions.get_or_init(|| self.functions_of(&found.unit)).get(&address)?;
        Some(Die { found, at })
    }

    /// The functions of a unit that have code.
    fn functions_of(&self, unit: &Unit<'f>) -> HashMap<u64, UnitOffset> {
        let mut all = HashMap::new();
        self.each_function(unit, |at, attributes| {
            let mut address = None;
            for attribute in attributes {
                match attribute.name() {
                    c::DW_AT_low_pc | c::DW_AT_entry_pc => {
                        address = self.dwarf.attr_address(unit, attribute.value()).ok().flatten().or(address);
                    }
                    // In several parts: it begins with the first.
                    c::DW_AT_ranges if address.is_none() => {
                        let ranges = self.dwarf.attr_ranges(unit, attribute.value()).ok().flatten();
                        address = ranges.and_then(|mut r| r.next().ok().flatten()).map(|r| r.begin);
                    }
                    _ => {}
                }
            }
            if let Some(address) = address {
                all.entry(address).or_insert(at);
            }
        });
        all
    }

    /// Hands over the entry of each function of a unit, and its attributes.
    fn each_function(&self, unit: &Unit<'f>, mut each: impl FnMut(UnitOffset, &[gimli::Attribute<Bytes<'f>>])) {
        let Ok(mut entries) = unit.entries_raw(None) else { return };
        let mut read = Vec::new();
        while !entries.is_empty() {
            let at = entries.next_offset();
            let Ok(abbreviation) = entries.read_abbreviation() else { return };
            let Some(abbreviation) = abbreviation else { continue };
            let attributes = abbreviation.attributes();
            if !self.source.spend_attributes(attributes.len()) {
                return;
            }
            if abbreviation.tag() != c::DW_TAG_subprogram {
                if entries.skip_attributes(attributes).is_err() {
                    return;
                }
                continue;
            }
            read.clear();
            for spec in attributes {
                let Ok(attribute) = entries.read_attribute(*spec) else { return };
                read.push(attribute);
            }
            each(at, &read);
        }
    }

    /// The entry that a reference leads to.
    fn refer(&self, from: &Rc<Found<'f>>, value: &Value<'f>) -> Option<Die<'f>> {
        match *value {
            AttributeValue::UnitRef(at) => Some(Die { found: Rc::clone(from), at }),
            AttributeValue::DebugInfoRef(DebugInfoOffset(at)) => {
                let headers = self.headers();
                let unit = *headers.get(headers.partition_point(|h| *h <= at).checked_sub(1)?)?;
                Some(Die { found: self.unit(unit)?, at: UnitOffset(at - unit) })
            }
            AttributeValue::DebugTypesRef(signature) => self.type_unit(signature),
            _ => None,
        }
    }
}

impl<'f> Die<'f> {
    fn entry(&self) -> Option<Entry<'f>> {
        self.found.unit.entry(self.at).ok()
    }
}

impl<'f> Debug<'f> {
    /// An attribute of an entry, or of the one that it stands for, and the unit that it is in.
    fn attribute(&self, die: &Die<'f>, name: DwAt) -> Option<(Value<'f>, Rc<Found<'f>>)> {
        let mut die = die.clone();
        for _ in 0..MAX_HOPS {
            let entry = die.entry()?;
            if let Some(value) = entry.attr_value(name) {
                return Some((value, die.found));
            }
            die = self.origin(&die, &entry)?;
        }
        None
    }

    /// The entry that an entry is a further one of.
    fn origin(&self, die: &Die<'f>, entry: &Entry<'f>) -> Option<Die<'f>> {
        let value = entry.attr_value(c::DW_AT_abstract_origin).or_else(|| entry.attr_value(c::DW_AT_specification))?;
        self.refer(&die.found, &value)
    }

    /// The entry that an attribute refers to.
    fn referred(&self, die: &Die<'f>, name: DwAt) -> Option<Die<'f>> {
        let (value, found) = self.attribute(die, name)?;
        self.refer(&found, &value)
    }

    fn name(&self, die: &Die<'f>) -> Option<String> {
        let (value, found) = self.attribute(die, c::DW_AT_name)?;
        self.text(&found, Some(value))
    }

    fn number(&self, die: &Die<'f>, name: DwAt) -> Option<u64> {
        match self.attribute(die, name)?.0 {
            AttributeValue::FileIndex(n) => Some(n),
            value => value.udata_value(),
        }
    }

    /// The entries directly below one, at most this many.
    fn children(&self, die: &Die<'f>, most: usize) -> Vec<Die<'f>> {
        let mut all = Vec::new();
        let Ok(mut tree) = die.found.unit.entries_tree(Some(die.at)) else { return all };
        let Ok(root) = tree.root() else { return all };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next()
            && all.len() < most
        {
            let entry = child.entry();
            if !self.source.spend_attributes(entry.attrs().len()) {
                break;
            }
            all.push(Die { found: Rc::clone(&die.found), at: entry.offset() });
        }
        all
    }
}
