//! Debug information in files beside the program (`-gsplit-dwarf`): a unit of the program is a skeleton, and the functions and types are
//! elsewhere.
//!
//! ```text
//!  skeleton: id, name of a file, addresses, lines ─┬─► PROGRAM.dwp, by the id
//!                                                  └─► NAME.dwo, if it has the id ─► a Debug of its own, of one unit
//! ```
//!
//! Addresses and the line table are the skeleton's. Types that have units of their own are in the same `.dwo`, or anywhere in the package
//! (`type_units`).

use super::type_units::type_in;
use super::{Bytes, Debug, Found, Inflated, Joined, Sections, Source};
use crate::ReadAt;
use crate::headers::Headers;
use gimli::{DebugInfoOffset, DebugTypeSignature, Dwarf, DwarfPackage, DwoId, Reader, SectionId};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// The most split files that are open at once.
const MOST: usize = 128;
/// The most units of a file, but for those of types, that are looked at for the one with the id.
const MOST_UNITS: usize = 1 << 12;
/// The units of a program that show whether it has skeletons.
const FIRST: usize = 32;

/// A file that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// All units of the program: `PROGRAM.dwp`.
    Package,
    /// One unit: the directory in which it was compiled, and the name of its file.
    Unit(PathBuf, PathBuf),
}

/// Opens the files that may be the one.
pub type Open<'f> = Rc<dyn Fn(&Split) -> Vec<Rc<dyn ReadAt + 'f>> + 'f>;

/// A package, and its file.
pub(super) struct Package<'f> {
    units: DwarfPackage<Bytes<'f>>,
    source: Rc<Source<'f>>,
}

impl<'f> Package<'f> {
    /// The sections of the unit of a type.
    pub(super) fn type_unit(
        &self,
        signature: DebugTypeSignature,
        parent: &Dwarf<Bytes<'f>>,
    ) -> Option<Dwarf<Bytes<'f>>> {
        self.units.find_tu(signature, parent).ok()?
    }
}

/// The split files of a program.
pub(super) struct Splits<'f> {
    open: Open<'f>,
    package: OnceCell<Option<Rc<Package<'f>>>>,
    units: RefCell<HashMap<u64, Option<Rc<Debug<'f>>>>>,
}

impl Splits<'_> {
    /// Forgets the open files.
    pub(super) fn clear(&self) {
        self.units.borrow_mut().clear();
    }
}

impl<'f> Debug<'f> {
    /// This debug information, with its split files.
    pub fn with_split_files(mut self, open: Open<'f>) -> Debug<'f> {
        self.splits = Some(Splits { open, package: OnceCell::new(), units: RefCell::default() });
        self
    }

    /// Whether the functions of an address were in a split file (`.dwo`, `.dwp`) that was not found.
    pub fn is_split(&self) -> bool {
        self.split.get()
    }

    /// Whether some of its units are skeletons, as far as the first ones show.
    pub(super) fn has_skeletons(&self) -> bool {
        let unit = |at: &usize| self.parse_unit(self.dwarf.unit_header(DebugInfoOffset(*at)).ok()?);
        self.splits.is_some() && self.headers().iter().take(FIRST).filter_map(unit).any(|f| f.unit.dwo_id.is_some())
    }

    /// The split file of the unit that an address belongs to.
    pub(super) fn split_at(&self, address: u64) -> Option<Rc<Debug<'f>>> {
        self.split_of(&self.unit_of(address)?)
    }

    /// The split file of a unit, if it is a skeleton.
    pub(super) fn split_of(&self, found: &Rc<Found<'f>>) -> Option<Rc<Debug<'f>>> {
        // The unit of a split file has the id too.
        let id = found.unit.dwo_id.filter(|_| self.skeleton.is_none())?;
        let split = self.splits.as_ref().and_then(|splits| {
            let known = splits.units.borrow().get(&id.0).cloned();
            known.unwrap_or_else(|| {
                let opened = self.open_split(splits, found, id).map(Rc::new);
                let mut units = splits.units.borrow_mut();
                if units.len() >= MOST {
                    units.clear();
                }
                units.insert(id.0, opened.clone());
                opened
            })
        });
        if split.is_none() {
            self.split.set(true);
        }
        split
    }

    fn open_split(&self, splits: &Splits<'f>, skeleton: &Rc<Found<'f>>, id: DwoId) -> Option<Debug<'f>> {
        let package = splits.package.get_or_init(|| self.package(splits));
        let of_package = package.as_ref().and_then(|package| {
            let dwarf = package.units.find_cu(id, &self.dwarf).ok().flatten()?;
            let mut split = self.split(dwarf, Rc::clone(&package.source), skeleton, id)?;
            split.package = Some(Rc::clone(package));
            Some(split)
        });
        of_package.or_else(|| {
            let text = |bytes: Bytes<'f>| {
                let mut bytes = bytes;
                let _ = bytes.truncate(super::MAX_NAME.min(bytes.len()));
                Some(PathBuf::from(bytes.to_string_lossy().ok()?.into_owned()))
            };
            let name = self.text(skeleton, skeleton.unit.dwo_name().ok().flatten())?;
            let directory = skeleton.unit.comp_dir.clone().and_then(text).unwrap_or_default();
            let files = (splits.open)(&Split::Unit(directory, name.into()));
            files.into_iter().find_map(|file| {
                let (sections, source) = self.sections_of(&file)?;
                let mut dwarf = Dwarf::load(|section| sections.load(split_name(section))).ok()?;
                dwarf.make_dwo(&self.dwarf);
                self.split(dwarf, source, skeleton, id)
            })
        })
    }

    /// The package of all units.
    fn package(&self, splits: &Splits<'f>) -> Option<Rc<Package<'f>>> {
        (splits.open)(&Split::Package).into_iter().find_map(|file| {
            let (sections, source) = self.sections_of(&file)?;
            let load = |section: SectionId| sections.load(split_name(section));
            Some(Rc::new(Package { units: DwarfPackage::load(load, Bytes::new(&source, 0, 0)).ok()?, source }))
        })
    }

    /// The sections of a file whose work is counted with this one's.
    fn sections_of(&self, file: &Rc<dyn ReadAt + 'f>) -> Option<(Sections<'f>, Rc<Source<'f>>)> {
        let headers = Headers::read(&**file)?;
        let all = headers.sections.iter().map(|s| (s.name.clone(), s.offset, s.size, s.compressed));
        let sections = Sections::new(all.collect(), Rc::clone(file), |file, end| self.source.beside(file, end))?;
        let source = Rc::clone(&sections.source);
        Some((sections, source))
    }

    /// What a split file says, if it has the unit.
    fn split(
        &self,
        mut dwarf: Dwarf<Bytes<'f>>,
        source: Rc<Source<'f>>,
        skeleton: &Rc<Found<'f>>,
        id: DwoId,
    ) -> Option<Debug<'f>> {
        // The names of the line table, which is the skeleton's.
        dwarf.debug_line_str = self.dwarf.debug_line_str.clone();
        let mut split = Debug::new(dwarf, source, None);
        split.skeleton = Some(Rc::clone(skeleton));
        split.kept = Rc::clone(&self.kept);
        let is_code = |at: &&usize| split.dwarf.unit_header(DebugInfoOffset(**at)).is_ok_and(|h| type_in(&h).is_none());
        let has_id = |at: &&usize| split.unit(**at).is_some_and(|found| found.unit.dwo_id == Some(id));
        let at = *split.headers().iter().filter(is_code).take(MOST_UNITS).find(has_id)?;
        // Whatever address is asked for, it is this unit's.
        split.told.set(vec![(0, u64::MAX, at)]).ok()?;
        Some(split)
    }
}

/// What a section is called in a split file.
fn split_name(section: SectionId) -> &'static str {
    section.dwo_name().unwrap_or_default()
}

impl<'f> Sections<'f> {
    /// The sections of a name, one behind the other; empty where there is none.
    pub(super) fn load(&self, name: &str) -> Result<Bytes<'f>, gimli::Error> {
        let all: Vec<_> = self.all.iter().filter(|s| s.0 == name && s.2 > 0).collect();
        if let [(_, from, size, false)] = all[..] {
            return Ok(Bytes::new(&self.source, *from, *size as usize));
        }
        let mut joined = Joined::default();
        for (_, from, size, compressed) in all {
            if *compressed {
                let inflated = Inflated::new(Rc::clone(&self.file), *from, *size);
                let size = inflated.size();
                joined.add(Rc::new(inflated), 0, size);
            } else {
                joined.add(Rc::clone(&self.file), *from, *size);
            }
        }
        let size = joined.size();
        Ok(Bytes::new(&self.source.beside(joined, size), 0, size as usize))
    }
}
