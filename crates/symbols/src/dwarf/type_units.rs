//! Types that have units of their own (`-fdebug-types-section`), which others name by a signature.
//!
//! ```text
//!  signature ─┬─► the file: .debug_types, since DWARF 5 .debug_info
//!             └─► the package that the unit was taken from, by its index ─► sections of that type alone
//! ```

use super::{Bytes, Debug, Die, Found, MAX_UNITS, UNIT};
use gimli::{DebugTypeSignature, Dwarf, UnitHeader, UnitOffset, UnitType};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// The types of a file.
#[derive(Default)]
pub(super) struct Types<'f> {
    /// Those of the file itself.
    headers: OnceCell<HashMap<u64, UnitHeader<Bytes<'f>>>>,
    /// The units that were needed so far; none: there is no such unit.
    units: RefCell<HashMap<u64, Option<Rc<Found<'f>>>>>,
}

impl Types<'_> {
    /// Forgets the units.
    pub(super) fn clear(&self) {
        self.units.borrow_mut().clear();
    }
}

impl<'f> Debug<'f> {
    /// The type of a signature.
    pub(super) fn type_unit(&self, signature: DebugTypeSignature) -> Option<Die<'f>> {
        let known = self.types.units.borrow().get(&signature.0).cloned();
        let found = known.unwrap_or_else(|| {
            let found = self.open_type_unit(signature);
            self.keep(UNIT);
            self.types.units.borrow_mut().insert(signature.0, found.clone());
            found
        })?;
        let (_, at) = type_in(&found.unit.header)?;
        Some(Die { found, at })
    }

    fn open_type_unit(&self, signature: DebugTypeSignature) -> Option<Rc<Found<'f>>> {
        let of_file = self.types.headers.get_or_init(|| headers_of(&self.dwarf)).get(&signature.0).cloned();
        if let Some(header) = of_file {
            return self.parse_unit(header);
        }
        // What its strings and abbreviations are counted from is its own.
        let dwarf = self.package.as_ref()?.type_unit(signature, &self.dwarf)?;
        let header = headers_of(&dwarf).remove(&signature.0)?;
        self.parse_unit_of(Some(Rc::new(dwarf)), header)
    }
}

/// The signature of the type that a unit is of, and where it is in the unit.
pub(super) fn type_in(header: &UnitHeader<Bytes<'_>>) -> Option<(DebugTypeSignature, UnitOffset)> {
    match header.type_() {
        UnitType::Type { type_signature, type_offset } | UnitType::SplitType { type_signature, type_offset } => {
            Some((type_signature, type_offset))
        }
        _ => None,
    }
}

/// The headers of all units of types, by their signatures.
fn headers_of<'f>(dwarf: &Dwarf<Bytes<'f>>) -> HashMap<u64, UnitHeader<Bytes<'f>>> {
    let mut all = HashMap::new();
    let mut add = |header: UnitHeader<Bytes<'f>>| {
        if let Some((signature, _)) = type_in(&header) {
            all.insert(signature.0, header);
        }
    };
    let (mut types, mut units) = (dwarf.type_units(), dwarf.units());
    for _ in 0..MAX_UNITS {
        let Ok(Some(header)) = types.next() else { break };
        add(header);
    }
    for _ in 0..MAX_UNITS {
        let Ok(Some(header)) = units.next() else { break };
        add(header);
    }
    all
}
