//! Where a function was inlined: why it has no symbol of its own.

use super::{Debug, Die, Found};
use crate::demangle;
use gimli::{AttributeValue, Reader, UnitOffset, constants as c};
use std::collections::HashSet;
use std::rc::Rc;

/// A place that a function was inlined at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The function that holds it, as its source calls it.
    pub into: String,
    /// Line of the call there; 0: not known.
    pub line: u64,
    /// File of that line, where that is known.
    pub file: Option<String>,
}

/// The most places that are returned.
const MAX: usize = 4;

impl<'f> Debug<'f> {
    /// Where functions of this name were inlined: as their source calls them, with or without their scopes and parameters. None: nowhere.
    pub fn inlined(&self, name: &str) -> Vec<Inlined> {
        let mut found = Vec::new();
        // The last word of it is the name that the entry has; most files do not have the word.
        let word = last_word(name);
        if word.is_empty() || !self.has_word(word) && !self.has_skeletons() {
            return found;
        }
        for at in self.headers() {
            let Some(unit) = self.dwarf.unit_header(gimli::DebugInfoOffset(*at)).ok().and_then(|h| self.parse_unit(h))
            else {
                continue;
            };
            match self.split_of(&unit) {
                Some(split) => {
                    let unit = split.unit_of(0);
                    unit.iter().for_each(|unit| split.inlined_in(unit, name, word, &mut found));
                    self.keep(0);
                }
                None => self.inlined_in(&unit, name, word, &mut found),
            }
            if found.len() >= MAX || !self.source.spend(0) {
                break;
            }
        }
        found.truncate(MAX);
        found
    }

    /// Whether a word is in the string section of the file: short ones may be in entries instead.
    fn has_word(&self, word: &str) -> bool {
        if word.len() < 4 {
            return true;
        }
        let section = gimli::Section::reader(&self.dwarf.debug_str);
        if section.is_empty() {
            return true;
        }
        let mut rest: super::Bytes<'f> = section.clone();
        let mut piece = vec![0; 1 << 20];
        let mut kept = 0;
        while !rest.is_empty() {
            let n = rest.len().min(piece.len() - kept);
            if rest.read_slice(&mut piece[kept..kept + n]).is_err() {
                return true;
            }
            let all = &piece[..kept + n];
            if all.windows(word.len()).any(|w| w == word.as_bytes()) {
                return true;
            }
            let keep = all.len().min(word.len());
            let from = all.len() - keep;
            piece.copy_within(from..from + keep, 0);
            kept = keep;
        }
        false
    }

    /// Goes through a unit twice: for the functions of that name, then for the places where they were inlined.
    fn inlined_in(&self, found: &Rc<Found<'f>>, name: &str, word: &str, out: &mut Vec<Inlined>) {
        let mut wanted: HashSet<UnitOffset> = HashSet::new();
        let mut inlined = Vec::new();
        let mut holders: Vec<(isize, UnitOffset)> = Vec::new();
        let Ok(mut entries) = found.unit.entries_raw(None) else { return };
        while !entries.is_empty() {
            let (at, depth) = (entries.next_offset(), entries.next_depth());
            let Ok(abbreviation) = entries.read_abbreviation() else { return };
            let Some(abbreviation) = abbreviation else { continue };
            let attributes = abbreviation.attributes();
            if !self.source.spend_attributes(attributes.len()) {
                return;
            }
            let tag = abbreviation.tag();
            if !matches!(tag, c::DW_TAG_subprogram | c::DW_TAG_inlined_subroutine) {
                if entries.skip_attributes(attributes).is_err() {
                    return;
                }
                continue;
            }
            while holders.last().is_some_and(|h| h.0 >= depth) {
                holders.pop();
            }
            let mut origin = None;
            for spec in attributes {
                let Ok(attribute) = entries.read_attribute(*spec) else { return };
                match attribute.name() {
                    c::DW_AT_name
                        if tag == c::DW_TAG_subprogram
                            && self.text(found, Some(attribute.value())).as_deref() == Some(word) =>
                    {
                        wanted.insert(at);
                    }
                    c::DW_AT_abstract_origin => {
                        if let AttributeValue::UnitRef(to) = attribute.value() {
                            origin = Some(to);
                        }
                    }
                    _ => {}
                }
            }
            if tag == c::DW_TAG_subprogram {
                holders.push((depth, at));
            } else if let (Some(origin), Some(holder)) = (origin, holders.last()) {
                inlined.push((at, origin, holder.1));
            }
        }
        if wanted.is_empty() {
            return;
        }
        for (at, origin, holder) in inlined {
            let die = |at| Die { found: Rc::clone(found), at };
            if out.len() < MAX && self.is_one_of(&die(origin), &wanted) && self.is_named(&die(origin), name) {
                let into = self.source_name(&die(holder)).unwrap_or_else(|| "?".into());
                let line = self.number(&die(at), c::DW_AT_call_line).unwrap_or(0);
                let file = self.file_name(&die(at));
                let place = Inlined { into, line, file };
                if !out.contains(&place) {
                    out.push(place);
                }
            }
        }
    }

    /// Whether an entry, or what it is a further entry of, is among these.
    fn is_one_of(&self, die: &Die<'f>, wanted: &HashSet<UnitOffset>) -> bool {
        let specification = || die.entry().and_then(|entry| self.origin(die, &entry));
        wanted.contains(&die.at) || specification().is_some_and(|s| wanted.contains(&s.at))
    }

    /// Whether a function is called so: by its last name, or with scopes and parameters as its linkage name says.
    fn is_named(&self, die: &Die<'f>, name: &str) -> bool {
        let demangled = self.linkage_name(die).and_then(|l| demangle::of(&l));
        let by_linkage = demangled.is_some_and(|d| d.plain == name || d.full == name);
        by_linkage || self.name(die).as_deref() == Some(name)
    }

    fn linkage_name(&self, die: &Die<'f>) -> Option<String> {
        let named = |at| self.attribute(die, at);
        let (value, found) = named(c::DW_AT_linkage_name).or_else(|| named(c::DW_AT_MIPS_linkage_name))?;
        self.text(&found, Some(value))
    }

    /// A function's name with its scopes, without parameters.
    fn source_name(&self, die: &Die<'f>) -> Option<String> {
        let demangled = self.linkage_name(die).and_then(|l| demangle::of(&l)).map(|d| d.plain);
        demangled.or_else(|| self.name(die))
    }

    /// The file of the line that something was inlined at.
    fn file_name(&self, die: &Die<'f>) -> Option<String> {
        let number = self.number(die, c::DW_AT_call_file)?;
        let program = die.found.unit.line_program.as_ref()?;
        let file = program.header().file(number)?;
        self.text(&die.found, Some(file.path_name()))
    }
}

/// The last part of a name with scopes, without parameters.
fn last_word(name: &str) -> &str {
    let name = name.split('(').next().unwrap_or_default();
    name.rsplit("::").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::last_word;

    #[test]
    fn last_words() {
        assert_eq!([last_word("acme::f(int, a::B)"), last_word("f"), last_word("ru::g")], ["f", "f", "g"]);
    }
}
