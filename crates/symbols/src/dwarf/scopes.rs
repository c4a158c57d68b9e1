//! The scopes that functions are declared in: for a function of which the debug information has no name of the linker's, `open` in the
//! class `Box` in the namespace `acme` is `acme::Box::open`.

use super::{Debug, Die, Found};
use gimli::{UnitOffset, constants as c};
use std::collections::HashMap;
use std::rc::Rc;

/// The most scopes of a unit, and scopes within each other.
const MAX_SCOPES: usize = 1 << 20;
const MAX_DEPTH: usize = 64;

/// Namespaces and classes of a unit.
#[derive(Default)]
pub(super) struct Scopes {
    /// Where each is, and the number of the one that it is in.
    all: Vec<(UnitOffset, Option<u32>)>,
    /// The scope that a function is declared in.
    of: HashMap<UnitOffset, u32>,
}

impl Scopes {
    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        24 * self.all.len() + 32 * self.of.len()
    }
}

/// Whether scopes are part of names in this language.
pub(super) fn has_scopes(language: Option<c::DwLang>) -> bool {
    let all = [
        c::DW_LANG_C_plus_plus,
        c::DW_LANG_C_plus_plus_03,
        c::DW_LANG_C_plus_plus_11,
        c::DW_LANG_C_plus_plus_14,
        c::DW_LANG_C_plus_plus_17,
        c::DW_LANG_C_plus_plus_20,
        c::DW_LANG_Rust,
    ];
    language.is_some_and(|l| all.contains(&l))
}

impl<'f> Debug<'f> {
    /// The scopes that the function of an entry is declared in, with `::` behind each; empty where there are none.
    pub(super) fn scope_of(&self, die: &Die<'f>) -> String {
        let found = &die.found;
        let mut fresh = 0;
        let scopes = found.scopes.get_or_init(|| {
            let scopes = self.scopes_of_unit(found);
            fresh = scopes.bytes();
            scopes
        });
        let mut names = Vec::new();
        let mut next = scopes.of.get(&die.at).copied();
        while let Some((at, parent)) = next.and_then(|n| scopes.all.get(n as usize))
            && names.len() < MAX_DEPTH
        {
            let scope = Die { found: Rc::clone(found), at: *at };
            let name = scope.entry().and_then(|e| self.text(found, e.attr_value(c::DW_AT_name)));
            let anonymous =
                if self.tag_of(&scope) == Some(c::DW_TAG_namespace) { "(anonymous namespace)" } else { "{unnamed}" };
            names.push(name.unwrap_or_else(|| anonymous.into()));
            next = *parent;
        }
        self.kept.set(self.kept.get() + fresh);
        names.iter().rev().flat_map(|n| [n.as_str(), "::"]).collect()
    }

    fn tag_of(&self, die: &Die<'f>) -> Option<gimli::DwTag> {
        die.entry().map(|e| e.tag())
    }

    fn scopes_of_unit(&self, found: &Found<'f>) -> Scopes {
        let mut scopes = Scopes::default();
        // What holds the next entry: depth, and its number if it is a scope.
        let mut holders: Vec<(isize, Option<u32>)> = Vec::new();
        let Ok(mut entries) = found.unit.entries_raw(None) else { return scopes };
        while !entries.is_empty() {
            let (at, depth) = (entries.next_offset(), entries.next_depth());
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            let attributes = abbreviation.attributes();
            if !self.source.spend_attributes(attributes.len()) || entries.skip_attributes(attributes).is_err() {
                break;
            }
            while holders.last().is_some_and(|h| h.0 >= depth) {
                holders.pop();
            }
            let scope = holders.last().and_then(|h| h.1);
            match abbreviation.tag() {
                c::DW_TAG_namespace
                | c::DW_TAG_class_type
                | c::DW_TAG_structure_type
                | c::DW_TAG_union_type
                | c::DW_TAG_enumeration_type
                    if scopes.all.len() < MAX_SCOPES =>
                {
                    let number = scopes.all.len() as u32;
                    scopes.all.push((at, scope));
                    holders.push((depth, Some(number)));
                }
                c::DW_TAG_subprogram => {
                    if let Some(scope) = scope {
                        scopes.of.insert(at, scope);
                    }
                    holders.push((depth, None));
                }
                _ => {}
            }
        }
        scopes
    }
}
