//! BTF: the types of the running kernel, or of any blob of bytes.
//!
//! ```text
//!  header │ types: (name, info, size or type, extra…)* │ strings
//!             ▲ one pass notes where every 16th starts, and finds names that are known beforehand; nothing else is built
//! ```
//!
//! A name is found by walking the types of its kind: that costs microseconds, a table of 100,000 names costs the start of a
//! trace. The parser trusts nothing: every offset is checked, every chain and search is bounded.

pub mod build;
mod describe;
mod raw;
mod vmlinux;
pub use describe::{Described, Part, Shape};
pub use raw::{BtfError, Kind};
pub use vmlinux::{Blob, KernelBtf};

use raw::{Type, read_type, step, text_is, word};

const MAGIC: u16 = 0xeb9f;
/// Bytes of a member, of a parameter.
const MEMBER: usize = 12;
const PARAM: usize = 8;
/// Bytes of a value of an enumeration, and of one of 64 bits.
const ENUMERATOR: usize = 8;
const ENUMERATOR64: usize = 12;
/// The longest chain of typedefs, qualifiers and nested anonymous structures that is followed.
const DEPTH: usize = 32;
/// The most members that one search visits.
const BUDGET: u32 = 100_000;

/// Where a field is, seen from a structure's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Pointers to follow first: load the 8 bytes at each of these offsets in turn.
    pub loads: Vec<u32>,
    /// Offset of the field (of a bit field: of the unit that holds it).
    pub offset: u32,
    /// Its size (of a bit field: of the unit).
    pub size: u32,
    /// Of a bit field: shift and width in bits.
    pub bits: Option<(u8, u8)>,
    /// Its type.
    pub type_id: u32,
}

/// A function's type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prototype {
    /// Type of the result, 0 for void.
    pub returns: u32,
    /// Name and type of each parameter. A last one of type 0 without a name means `...`.
    pub params: Vec<(String, u32)>,
}

/// Types in `D`.
pub struct Btf<D> {
    data: D,
    types: (usize, usize),
    strings: (usize, usize),
    /// Where type N * [`STEP`] + 1 starts in the type section; type 0 is void.
    starts: Vec<u32>,
    /// How many types there are.
    count: u32,
    /// The wanted types, and where they were found.
    known: Vec<(Kind, String, Option<u32>)>,
}

/// A start is noted for each group of this many types; the others are found from there. All of them would take as long to write down as
/// the pass itself does.
const STEP: u32 = 16;

impl<D: AsRef<[u8]>> Btf<D> {
    /// Reads the header and visits each type once.
    pub fn parse(data: D) -> Result<Btf<D>, BtfError> {
        Btf::parse_for(data, &[])
    }

    /// Parses like [`Btf::parse`], and finds `wanted` in the same pass, so that [`Btf::find`] and [`Btf::field_of`] need none for them.
    pub fn parse_for(data: D, wanted: &[(Kind, &str)]) -> Result<Btf<D>, BtfError> {
        let bytes = data.as_ref();
        let word = |at| word(bytes, at).ok_or(BtfError::Truncated);
        if word(0)? & 0x00ff_ffff != u32::from(MAGIC) | 1 << 16 {
            return Err(BtfError::Magic);
        }
        let header = word(4)? as usize;
        let section = |at, len| -> Result<(usize, usize), BtfError> {
            let start = header.checked_add(word(at)? as usize).ok_or(BtfError::Truncated)?;
            let end = start.checked_add(word(len)? as usize).ok_or(BtfError::Truncated)?;
            if end > bytes.len() { Err(BtfError::Truncated) } else { Ok((start, end)) }
        };
        let (types, strings) = (section(8, 12)?, section(16, 20)?);
        let known = wanted.iter().map(|(kind, name)| (*kind, (*name).into(), None)).collect();
        let mut btf = Btf { data, types, strings, starts: Vec::new(), count: 0, known };
        btf.look_at_all()?;
        Ok(btf)
    }

    fn look_at_all(&mut self) -> Result<(), BtfError> {
        let (types, strings) = (&self.data.as_ref()[self.types.0..self.types.1], self.strings());
        let (mut starts, mut ids, mut at) = (Vec::with_capacity(types.len() / 20 / STEP as usize), 0u32, 0);
        let mut found = vec![None; self.known.len()];
        let mut kinds = self.known.iter().fold(0u32, |all, (kind, ..)| all | 1 << *kind as u8);
        while at < types.len() {
            if ids.is_multiple_of(STEP) {
                starts.push(at as u32);
            }
            ids += 1;
            let (kind, name, next) = step(types, at)?;
            at = next;
            if kinds >> kind & 1 == 0 {
                continue;
            }
            let is = |(k, n, _): &(Kind, String, _)| *k as u8 == kind && text_is(strings, name as usize, n.as_bytes());
            if let Some(n) = self.known.iter().position(is) {
                found[n] = found[n].or(Some(ids));
                let open = self.known.iter().zip(&found).filter(|(_, id)| id.is_none());
                kinds = open.fold(0, |all, ((kind, ..), _)| all | 1 << *kind as u8);
            }
        }
        if at != types.len() {
            return Err(BtfError::Truncated);
        }
        for (known, id) in self.known.iter_mut().zip(found) {
            known.2 = id;
        }
        (self.starts, self.count) = (starts, ids);
        Ok(())
    }

    fn types(&self) -> &[u8] {
        &self.data.as_ref()[self.types.0..self.types.1]
    }

    fn strings(&self) -> &[u8] {
        &self.data.as_ref()[self.strings.0..self.strings.1]
    }

    fn get(&self, id: u32) -> Option<Type> {
        let index = id.checked_sub(1).filter(|i| *i < self.count)?;
        let (types, mut at) = (self.types(), *self.starts.get((index / STEP) as usize)? as usize);
        for _ in 0..index % STEP {
            at = step(types, at).ok()?.2;
        }
        read_type(types, at).ok()
    }

    fn text(&self, at: u32) -> &[u8] {
        let rest = self.strings().get(at as usize..).unwrap_or_default();
        rest.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What a type is; none for void and ids that do not exist.
    pub fn kind(&self, id: u32) -> Option<Kind> {
        self.get(id).map(|t| t.kind)
    }

    /// A type's name, empty where it has none.
    pub fn name(&self, id: u32) -> String {
        self.get(id).map(|t| String::from_utf8_lossy(self.text(t.name)).into_owned()).unwrap_or_default()
    }

    /// The first type of this kind and name.
    pub fn find(&self, kind: Kind, name: &str) -> Option<u32> {
        if let Some((_, _, id)) = self.known.iter().find(|(k, n, _)| *k == kind && n == name) {
            return *id;
        }
        let (types, strings, mut at) = (self.types(), self.strings(), 0);
        for id in 1..=self.count {
            let (is, text, next) = step(types, at).ok()?;
            if is == kind as u8 && text_is(strings, text as usize, name.as_bytes()) {
                return Some(id);
            }
            at = next;
        }
        None
    }

    /// All types of this kind that have a name, with their ids, in order of ids.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = (u32, &str)> {
        let (types, mut next) = (self.types(), 0);
        let heads = (1..=self.count).map_while(move |id| {
            let (is, name, end) = step(types, next).ok()?;
            next = end;
            Some((id, is, name))
        });
        heads.filter(move |(_, is, _)| *is == kind as u8).filter_map(|(id, _, name)| {
            let name = self.text(name);
            (!name.is_empty()).then_some((id, std::str::from_utf8(name).ok()?))
        })
    }

    /// The type without typedefs, qualifiers and tags; 0 is void.
    pub fn strip(&self, mut id: u32) -> Option<u32> {
        use Kind::*;
        for _ in 0..DEPTH {
            match self.get(id) {
                Some(t) if matches!(t.kind, Typedef | Volatile | Const | Restrict | TypeTag) => id = t.value,
                Some(_) => return Some(id),
                None => return (id == 0).then_some(0),
            }
        }
        None
    }

    fn stripped(&self, id: u32) -> Option<Type> {
        self.get(self.strip(id)?)
    }

    /// Bytes of a type.
    pub fn size(&self, id: u32) -> Option<u32> {
        let (mut id, mut times) = (id, 1u32);
        for _ in 0..DEPTH {
            let t = self.stripped(id)?;
            match t.kind {
                Kind::Array => {
                    times = times.checked_mul(word(self.types(), t.extra + 8)?)?;
                    id = word(self.types(), t.extra)?;
                }
                Kind::Ptr => return times.checked_mul(8),
                Kind::Int | Kind::Struct | Kind::Union | Kind::Enum | Kind::Enum64 | Kind::Float | Kind::DataSec => {
                    return times.checked_mul(t.value);
                }
                _ => return None,
            }
        }
        None
    }

    /// Where `path` leads from an object of type `root`: members (also those of anonymous structures), through pointers, and
    /// numbers as indices of arrays.
    pub fn field(&self, root: u32, path: &[&str]) -> Option<Field> {
        let (mut id, mut loads, mut bit, mut width) = (root, Vec::new(), 0u32, 0);
        let mut budget = BUDGET;
        for part in path {
            let mut t = self.stripped(id)?;
            if t.kind == Kind::Ptr {
                loads.push(bit / 8);
                bit = 0;
                t = self.stripped(t.value)?;
            }
            let (at, bits, next) = match t.kind {
                Kind::Array => self.element(&t, part)?,
                _ => self.member(&t, part, DEPTH, &mut budget)?,
            };
            (bit, width, id) = (bit.checked_add(at)?, bits, next);
        }
        let size = self.size(id).unwrap_or(0);
        if width == 0 {
            return Some(Field { loads, offset: bit / 8, size, bits: None, type_id: id });
        }
        let unit = size.checked_mul(8).filter(|u| *u > 0)?;
        let shift = bit % unit;
        let bits = (shift + width <= unit).then_some((shift as u8, width as u8));
        Some(Field { loads, offset: (bit - shift) / 8, size, bits: Some(bits?), type_id: id })
    }

    /// Finds a field like [`Btf::field`], from a structure's name.
    pub fn field_of(&self, root: &str, path: &[&str]) -> Option<Field> {
        self.field(self.find(Kind::Struct, root)?, path)
    }

    /// Bit offset, 0, and type of an array's element.
    fn element(&self, array: &Type, index: &str) -> Option<(u32, u32, u32)> {
        let (index, of) = (index.parse::<u32>().ok()?, word(self.types(), array.extra)?);
        let count = word(self.types(), array.extra + 8)?;
        // A flexible array has no known number of elements: any index is accepted.
        if count != 0 && index >= count {
            return None;
        }
        Some((self.size(of)?.checked_mul(8)?.checked_mul(index)?, 0, of))
    }

    /// Bit offset, width of a bit field (else 0) and type of a member.
    fn member(&self, of: &Type, name: &str, depth: usize, budget: &mut u32) -> Option<(u32, u32, u32)> {
        if !matches!(of.kind, Kind::Struct | Kind::Union) || depth == 0 {
            return None;
        }
        let (types, strings) = (self.types(), self.strings());
        for i in 0..of.count {
            *budget = budget.checked_sub(1)?;
            let at = of.extra + i * MEMBER;
            let (text, id, offset) = (word(types, at)? as usize, word(types, at + 4)?, word(types, at + 8)?);
            let (offset, width) = if of.flag { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
            if text_is(strings, text, name.as_bytes()) {
                return Some((offset, width, id));
            }
            if !text_is(strings, text, b"") {
                continue;
            }
            let Some(inner) = self.stripped(id) else { continue };
            if let Some((bit, width, id)) = self.member(&inner, name, depth - 1, budget) {
                return Some((offset.checked_add(bit)?, width, id));
            }
        }
        None
    }

    /// Parameters and result of a function, or of a typedef of a pointer to one (as tracepoints have: `btf_trace_NAME`).
    pub fn prototype(&self, id: u32) -> Option<Prototype> {
        let mut t = self.stripped(id)?;
        for _ in 0..DEPTH {
            match t.kind {
                Kind::Func | Kind::Ptr => t = self.stripped(t.value)?,
                _ => break,
            }
        }
        if t.kind != Kind::FuncProto {
            return None;
        }
        let param = |i| {
            let at = t.extra + i * PARAM;
            let name = String::from_utf8_lossy(self.text(word(self.types(), at)?)).into_owned();
            Some((name, word(self.types(), at + 4)?))
        };
        let params = (0..t.count).map(param).collect::<Option<_>>()?;
        Some(Prototype { returns: t.value, params })
    }
}

#[cfg(test)]
mod tests;
