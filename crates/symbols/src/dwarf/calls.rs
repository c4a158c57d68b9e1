//! The functions that an address belongs to: the one whose code it is, and those that were inlined there, with their lines.
//!
//! ```text
//!  address ─► unit ─► function ─► DW_TAG_inlined_subroutine by depth:  main 0─────────────100
//!                └─► line table                                        outer  20───────60         call in main, line 7
//!                                                                      inner     30─40            call in outer, line 3
//!  at 35: inner (line of the table), outer (line 3), main (line 7)
//! ```
//!
//! No recursion: entries nest as deep as a hostile file has bytes.

use super::scopes::has_scopes;
use super::{Debug, Die, Found};
use gimli::{AttributeValue, UnitOffset, constants as c};
use std::rc::Rc;

/// The most functions that are inlined into each other, and inlined calls of one function.
const MAX_DEPTH: usize = 256;
const MAX_CALLS: usize = 1 << 20;
/// Ranges that are looked at for one address: damaged files let them overlap.
const MAX_OVERLAPS: usize = 64;

/// Work for an address, on average, and that all of them have besides: much of it is done once for a unit.
const PER_ADDRESS: u64 = 16 << 20;
pub(super) const CREDIT: u64 = 8 << 30;

/// A function that an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name as the linker knows it, else as the source has it; none where the file does not say.
    pub function: Option<Rc<str>>,
    /// Its source file.
    pub file: Option<Rc<str>>,
    /// Line in it; 0: not known.
    pub line: u32,
    /// Where its code begins, or the part of it that holds the address. Of an inlined function: where the code that holds it begins.
    pub start: u64,
    /// It has no code of its own there: it was inlined into the next one.
    pub inlined: bool,
}

/// What was inlined into a function.
#[derive(Default)]
pub(super) struct Function {
    calls: Vec<InlinedCall>,
    /// Depth, from, to, number of the call; sorted.
    ranges: Vec<(u32, u64, u64, u32)>,
}

struct InlinedCall {
    at: UnitOffset,
    file: Option<u64>,
    line: u32,
}

/// The attributes that say where code lies.
#[derive(Default)]
struct Extent {
    from: Option<u64>,
    to: Option<u64>,
    len: Option<u64>,
}

impl<'f> Debug<'f> {
    /// The functions that an address belongs to, the innermost first, with files and `lines` where those are wanted; whether anything is
    /// known. Names are not demangled.
    pub fn calls(&self, address: u64, lines: bool, out: &mut Vec<Call>) -> bool {
        let Some(found) = self.unit_of(address) else { return false };
        if let Some(split) = self.split_of(&found) {
            let known = split.calls(address, lines, out);
            self.keep(0);
            return known;
        }
        let mut fresh = 0;
        let extents = found.extents.get_or_init(|| {
            let all = self.extents_of(&found);
            fresh += 24 * all.len();
            all
        });
        let before = extents.partition_point(|e| e.0 <= address);
        let function = extents[..before].iter().rev().take(MAX_OVERLAPS).find(|e| address < e.1);
        let (start, function) = function.map_or((address, None), |e| (e.0, Some(e.2)));
        let place = if lines { self.line_at(&found, address, &mut fresh) } else { None };
        let (mut file, mut line) = place.map_or((None, 0), |(file, line)| (Some(file), line));
        let from = out.len();
        if let Some(at) = function {
            let inlined = self.function_at(&found, at, &mut fresh);
            for call in inlined.at(address).into_iter().rev() {
                let function = self.name_at(&found, call.at, &mut fresh);
                let path = file.and_then(|n| self.path_at(&found, n, &mut fresh));
                out.push(Call { function, file: path, line, start, inlined: true });
                (file, line) = if lines { (call.file, call.line) } else { (None, 0) };
            }
        }
        let name = function.and_then(|at| self.name_at(&found, at, &mut fresh));
        let path = file.and_then(|n| self.path_at(&found, n, &mut fresh));
        if name.is_some() || path.is_some() || out.len() > from {
            out.push(Call { function: name, file: path, line, start, inlined: false });
        }
        self.keep(fresh);
        out.len() > from
    }

    /// Counts the work for an address. There is so much for one ([`super::section::WORK`]), and on average so much for each
    /// (16 MiB). Returns whether it was more.
    pub fn restart(&self) -> bool {
        let spent = self.source.is_spent();
        let other = self.supplementary.as_ref().map_or((false, 0), |s| (s.source.is_spent(), s.source.restart()));
        let work = self.source.restart().saturating_add(other.1);
        let left = self.credit.get().saturating_add(PER_ADDRESS).checked_sub(work);
        self.credit.set(left.unwrap_or(0));
        spent || other.0 || left.is_none()
    }

    fn line_at(&self, found: &Rc<Found<'f>>, address: u64, fresh: &mut usize) -> Option<(u64, u32)> {
        let lines = found.lines.get_or_init(|| {
            let lines = self.lines_of(found);
            *fresh += lines.bytes();
            lines
        });
        lines.at(address)
    }

    fn name_at(&self, found: &Rc<Found<'f>>, at: UnitOffset, fresh: &mut usize) -> Option<Rc<str>> {
        if let Some(known) = found.names.borrow().get(&at) {
            return known.clone();
        }
        let name: Option<Rc<str>> = self.function_name(&Die { found: Rc::clone(found), at }).map(Rc::from);
        *fresh += 64 + name.as_ref().map_or(0, |n| n.len());
        found.names.borrow_mut().insert(at, name.clone());
        name
    }

    fn path_at(&self, found: &Rc<Found<'f>>, number: u64, fresh: &mut usize) -> Option<Rc<str>> {
        if let Some(known) = found.paths.borrow().get(&number) {
            return known.clone();
        }
        let path: Option<Rc<str>> = self.path_of(found, number).map(Rc::from);
        *fresh += 64 + path.as_ref().map_or(0, |p| p.len());
        found.paths.borrow_mut().insert(number, path.clone());
        path
    }

    fn function_at(&self, found: &Rc<Found<'f>>, at: UnitOffset, fresh: &mut usize) -> Rc<Function> {
        if let Some(known) = found.calls.borrow().get(&at) {
            return Rc::clone(known);
        }
        let function = Rc::new(self.inlined_into(found, at).unwrap_or_default());
        *fresh += 64 + function.calls.len() * size_of::<InlinedCall>() + 24 * function.ranges.len();
        found.calls.borrow_mut().insert(at, Rc::clone(&function));
        function
    }

    /// Where the code of every function of a unit lies.
    fn extents_of(&self, found: &Found<'f>) -> Vec<(u64, u64, UnitOffset)> {
        let mut all = Vec::new();
        self.each_function(&found.unit, |at, attributes| {
            let mut extent = Extent::default();
            for attribute in attributes {
                self.note_extent(found, &mut extent, attribute, |from, to| all.push((from, to, at)));
            }
            extent.add(|from, to| all.push((from, to, at)));
        });
        sorted(all)
    }

    /// Takes notice of an attribute that says where code lies.
    fn note_extent(
        &self,
        found: &Found<'f>,
        extent: &mut Extent,
        attribute: &gimli::Attribute<super::Bytes<'f>>,
        mut add: impl FnMut(u64, u64),
    ) {
        let value = attribute.value();
        let address = |value| self.dwarf.attr_address(&found.unit, value).ok().flatten();
        match attribute.name() {
            c::DW_AT_low_pc => extent.from = address(value),
            c::DW_AT_high_pc => match value.udata_value() {
                Some(len) => extent.len = Some(len),
                None => extent.to = address(value),
            },
            c::DW_AT_ranges => {
                let Ok(Some(mut ranges)) = self.dwarf.attr_ranges(&found.unit, value) else { return };
                while let Ok(Some(range)) = ranges.next() {
                    if !self.source.spend(8) {
                        break;
                    }
                    if range.begin < range.end {
                        add(range.begin, range.end);
                    }
                }
            }
            _ => {}
        }
    }

    /// What was inlined into the function of an entry.
    fn inlined_into(&self, found: &Found<'f>, at: UnitOffset) -> Option<Function> {
        let mut function = Function::default();
        let mut entries = found.unit.entries_raw(Some(at)).ok()?;
        let top = entries.next_depth();
        let first = entries.read_abbreviation().ok()??;
        entries.skip_attributes(first.attributes()).ok()?;
        // Depths of the entries of inlined functions that hold the next entry.
        let mut holders: Vec<isize> = Vec::new();
        // Entries deeper than this belong to another function.
        let mut skipped: Option<isize> = None;
        while !entries.is_empty() && entries.next_depth() > top {
            let (at, depth) = (entries.next_offset(), entries.next_depth());
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            let attributes = abbreviation.attributes();
            if !self.source.spend_attributes(attributes.len()) {
                break;
            }
            skipped = skipped.filter(|s| depth > *s);
            while holders.last().is_some_and(|h| *h >= depth) {
                holders.pop();
            }
            let tag = abbreviation.tag();
            if tag == c::DW_TAG_subprogram && skipped.is_none() {
                skipped = Some(depth);
            }
            let is_call = tag == c::DW_TAG_inlined_subroutine && skipped.is_none() && holders.len() < MAX_DEPTH;
            if !is_call {
                if entries.skip_attributes(attributes).is_err() {
                    break;
                }
                continue;
            }
            let (level, number) = (holders.len() as u32, function.calls.len() as u32);
            holders.push(depth);
            let mut call = InlinedCall { at, file: None, line: 0 };
            let mut extent = Extent::default();
            let ranges = &mut function.ranges;
            for spec in attributes {
                let Ok(attribute) = entries.read_attribute(*spec) else { return Some(function.sorted()) };
                match attribute.name() {
                    c::DW_AT_call_file => {
                        call.file = match attribute.value() {
                            // Before DWARF 5, file 0 is none.
                            AttributeValue::FileIndex(n) => Some(n),
                            value => value.udata_value(),
                        }
                        .filter(|n| *n > 0 || found.unit.header.version() >= 5);
                    }
                    c::DW_AT_call_line => {
                        call.line = attribute.udata_value().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
                    }
                    _ => self.note_extent(found, &mut extent, &attribute, |from, to| {
                        ranges.push((level, from, to, number));
                    }),
                }
            }
            extent.add(|from, to| ranges.push((level, from, to, number)));
            function.calls.push(call);
            if function.calls.len() >= MAX_CALLS {
                break;
            }
        }
        Some(function.sorted())
    }

    /// A function's name as the linker knows it, else as its source has it, with its scopes.
    fn function_name(&self, die: &Die<'f>) -> Option<String> {
        let (mut name, language) = (None, die.found.language);
        let mut die = die.clone();
        // The file that `die` is in.
        let mut debug = self;
        for _ in 0..super::MAX_HOPS {
            let entry = die.entry()?;
            if !debug.source.spend_attributes(entry.attrs().len()) {
                return name;
            }
            let attribute = |name| entry.attr_value(name);
            let linkage = attribute(c::DW_AT_linkage_name).or_else(|| attribute(c::DW_AT_MIPS_linkage_name));
            if let Some(text) = linkage.and_then(|value| debug.text(&die.found, Some(value))) {
                return Some(text);
            }
            if name.is_none() {
                name = debug.text(&die.found, attribute(c::DW_AT_name));
            }
            let origin = attribute(c::DW_AT_abstract_origin).or_else(|| attribute(c::DW_AT_specification));
            let next = match origin {
                Some(AttributeValue::DebugInfoRefSup(at)) => debug.supplementary.as_deref().and_then(|other| {
                    debug = other;
                    debug.refer(&die.found, &AttributeValue::DebugInfoRef(at))
                }),
                Some(value) => debug.refer(&die.found, &value),
                None => None,
            };
            match next {
                Some(next) => die = next,
                None => break,
            }
        }
        // Where it is declared, its scopes are. What dwz has moved has no language.
        let name = name.filter(|n| !n.is_empty())?;
        match has_scopes(language) {
            true => Some(debug.scope_of(&die) + &name),
            false => Some(name),
        }
    }
}

impl Extent {
    fn add(&self, mut add: impl FnMut(u64, u64)) {
        let Some(from) = self.from else { return };
        let to = self.len.map(|len| from.saturating_add(len)).or(self.to);
        // What the linker has thrown away begins at 0.
        if let Some(to) = to.filter(|to| from < *to && from > 0) {
            add(from, to);
        }
    }
}

impl Function {
    fn sorted(mut self) -> Function {
        self.ranges.sort_unstable();
        self
    }

    /// The calls that an address belongs to, the outermost first.
    fn at(&self, address: u64) -> Vec<&InlinedCall> {
        let mut all = Vec::new();
        for depth in 0..MAX_DEPTH as u32 {
            let before = self.ranges.partition_point(|r| (r.0, r.1) <= (depth, address));
            let same = self.ranges[..before].iter().rev().take(MAX_OVERLAPS).take_while(|r| r.0 == depth);
            let Some(range) = same.into_iter().find(|r| address < r.2) else { break };
            all.extend(self.calls.get(range.3 as usize));
        }
        all
    }
}

fn sorted(mut all: Vec<(u64, u64, UnitOffset)>) -> Vec<(u64, u64, UnitOffset)> {
    all.sort_unstable_by_key(|e| (e.0, std::cmp::Reverse(e.1), e.2.0));
    all
}
