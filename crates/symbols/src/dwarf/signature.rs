//! Where the values of a function's arguments and of its result are, all of them, and how their bytes are to be taken.
//!
//! ```text
//!  parameter ─► its type ─► Type, one level deep: members of structures that are structures are not looked into
//!            └► its location at the first instruction, if it has one there; else by the rules of the ABI ([`super::abi`]) ─► Held
//! ```
//!
//! What is not certain is nowhere: a parameter that was optimised away, or one after it where it matters; enumerations of Rust that have
//! values. Types that lead to themselves end after that one level, and every list has an end.

use super::abi::{Put, REGISTERS, Register};
use super::types::{Kind, is_pointer};
use super::{Debug, Die};
use crate::demangle;
use gimli::{AttributeValue, Operation, constants as c};

/// The most members of a structure, and bytes of one, that are described.
const MEMBERS: usize = 16;
const BYTES: u64 = 128;
/// The most names of an enumeration.
const NAMES: usize = 64;
/// How deep the parts of a string are looked for.
const DEPTH: u32 = 8;

/// How the bytes of a value are to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// An integer.
    Int {
        /// Bytes: up to 16.
        size: u8,
        /// It has a sign.
        signed: bool,
        /// Values that have names, of an enumeration.
        names: Vec<(i64, String)>,
    },
    /// A truth value of this many bytes.
    Bool(u8),
    /// A character of this many bytes.
    Char(u8),
    /// A floating-point number of this many bytes: 4, 8, or 16 for 10 of x87.
    Float(u8),
    /// An address.
    Pointer,
    /// The address of a string that ends with NUL.
    Text,
    /// Characters in place: this many.
    Chars(u16),
    /// An address and a length, in this order: `&str`.
    Slice,
    /// A string with its address and its length at these offsets, and this many bytes itself: `String`, `std::string`.
    String {
        /// Bytes.
        size: u16,
        /// Where the address is.
        address: u16,
        /// Where the length is.
        length: u16,
    },
    /// A structure.
    Struct(Struct),
    /// The address of a value.
    To(Box<Type>),
    /// Not known, or nothing that is described: this many bytes.
    Other(u64),
}

/// A structure: its first members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Struct {
    /// Names, offsets, types.
    pub members: Vec<(String, u16, Type)>,
    /// Bytes.
    pub size: u16,
}

/// A part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// rdi, rsi, rdx, rcx, r8, r9, by number.
    Integer(u8),
    /// A register of floating-point numbers: xmm0 …
    Float(u8),
    /// Memory: this many bytes above the return address.
    Stack(i32),
    /// rax, or rdx, when the function has returned.
    Returned(u8),
    /// st0, when the function has returned.
    X87,
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// Its parts: places, and how many bytes of the value each has.
    Parts(Vec<(Place, u8)>),
    /// All of it, in memory, from there on.
    Memory(Place),
    /// Where its address is.
    Address(Place),
    /// Not known.
    Nowhere,
}

/// An argument, or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name; empty where it has none.
    pub name: String,
    /// What it is.
    pub ty: Type,
    /// Where it is.
    pub held: Held,
}

/// What a function takes and returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// In order.
    pub arguments: Vec<Argument>,
    /// None: nothing.
    pub result: Option<Argument>,
}

/// The location of a parameter at the function's first instruction, by the debug information.
enum AtEntry {
    /// In this register alone.
    Register(Place),
    /// In memory that the function has yet to write.
    Memory,
    /// Not there.
    Nothing,
}

impl<'f> Debug<'f> {
    /// Of the function of this name, which begins at an address; none where there is no debug information about it. `local`: only code that
    /// was compiled with it can call it by name.
    pub fn signature(&self, name: &str, address: u64, local: bool) -> Option<Signature> {
        if let Some(split) = self.split_at(address) {
            return split.signature(name, address, local);
        }
        let function = self.function(address)?;
        let returns = self.referred(&function, c::DW_AT_type);
        let changed = demangle::is_changed(name) || self.convention(&function) == Some(c::DW_CC_nocall);
        let mut taken = self.taken_for_result(returns.as_ref());
        let mut arguments = Vec::new();
        for die in self.parameters(&function) {
            let Some(ty) = self.referred(&die, c::DW_AT_type) else { break };
            let (by_type, by_address) = if changed { (Put::Nowhere, false) } else { self.put(&ty, &mut taken) };
            let at_entry = self.at_first(&die, address);
            let base = self.strip(&ty);
            let mut described = self.value_type(&base, 1);
            let held = match at_entry {
                AtEntry::Register(place) if self.size(&base) <= 8 => Held::Parts(vec![(place, self.size(&base) as u8)]),
                AtEntry::Nothing if local => Held::Nowhere,
                _ => self.held(&base, by_type, by_address, &mut described),
            };
            arguments.push(Argument { name: self.name(&die).unwrap_or_default(), ty: described, held });
        }
        let result = returns.map(|ty| {
            let base = self.strip(&ty);
            let mut described = self.value_type(&base, 1);
            let place = |r: &Register| match r {
                Register::Integer(n) => Place::Returned(*n as u8),
                Register::Float(n) => Place::Float(*n as u8),
                Register::X87 => Place::X87,
            };
            let held = match self.put_result(&ty).filter(|_| !changed) {
                Some((registers, true)) => registers.first().map_or(Held::Nowhere, |r| Held::Address(place(r))),
                Some((registers, false)) if registers == [Register::X87] => Held::Parts(vec![(Place::X87, 10)]),
                Some((registers, false)) => self.parts(&base, registers.iter().map(place).collect(), &mut described),
                None => Held::Nowhere,
            };
            Argument { name: String::new(), ty: described, held }
        });
        Some(Signature { arguments, result })
    }

    fn held(&self, base: &Die<'f>, put: Put, by_address: bool, described: &mut Type) -> Held {
        let stack = |at: i64| i32::try_from(at).ok().filter(|at| *at < 1 << 16).map(Place::Stack);
        match put {
            Put::Registers(all) => {
                let place = |r: Register| match r {
                    Register::Integer(n) => Place::Integer(n as u8),
                    Register::Float(n) => Place::Float(n as u8),
                    Register::X87 => Place::X87,
                };
                let places: Vec<Place> = all.into_iter().flatten().map(place).collect();
                match places.first() {
                    Some(first) if by_address => Held::Address(*first),
                    _ => self.parts(base, places, described),
                }
            }
            Put::Stack(at) => match stack(at) {
                Some(place) if by_address => Held::Address(place),
                Some(place) => Held::Memory(place),
                None => Held::Nowhere,
            },
            Put::Nowhere => Held::Nowhere,
        }
    }

    /// A value in registers. Structures of Rust have a number in each, whatever their offsets: then the type gets other ones.
    fn parts(&self, base: &Die<'f>, places: Vec<Place>, described: &mut Type) -> Held {
        let is_rust = base.found.language == Some(c::DW_LANG_Rust) && self.kind(base) == Kind::Aggregate;
        if is_rust && let Type::Struct(s) = described {
            let Some(scalars) = self.scalars(base) else { return Held::Nowhere };
            let (mut members, mut parts, mut at) = (Vec::new(), Vec::new(), 0);
            for (scalar, place) in scalars.iter().zip(&places) {
                let size = self.size(&scalar.ty).min(8) as u8;
                let around = s.members.iter().filter(|m| u64::from(m.1) <= scalar.offset).max_by_key(|m| m.1);
                let name = around.map(|m| m.0.clone());
                members.push((name.unwrap_or_default(), at, self.value_type(&scalar.ty, 0)));
                parts.push((*place, size));
                at += u16::from(size);
            }
            *s = Struct { members, size: at };
            return Held::Parts(parts);
        }
        let mut left = self.size(base);
        let mut parts = Vec::new();
        for place in places {
            parts.push((place, left.min(8) as u8));
            left = left.saturating_sub(8);
        }
        Held::Parts(parts)
    }

    /// Describes a type, which is stripped; what it leads to, this many levels deep.
    fn value_type(&self, ty: &Die<'f>, levels: u32) -> Type {
        let size = self.size(ty);
        let small = u8::try_from(size).ok().filter(|n| (1..=16).contains(n));
        let other = Type::Other(size);
        let Some(tag) = self.tag(ty) else { return other };
        match self.kind(ty) {
            Kind::Int { signed } => {
                let Some(size) = small else { return other };
                let names = if tag == c::DW_TAG_enumeration_type { self.enumerators(ty) } else { Vec::new() };
                match self.encoding(ty) {
                    _ if !names.is_empty() => Type::Int { size, signed, names },
                    Some(c::DW_ATE_boolean) => Type::Bool(size),
                    Some(c::DW_ATE_UTF | c::DW_ATE_UCS | c::DW_ATE_ASCII) => Type::Char(size),
                    Some(c::DW_ATE_signed_char | c::DW_ATE_unsigned_char)
                        if self.name(ty).as_deref() == Some("char") =>
                    {
                        Type::Char(size)
                    }
                    _ => Type::Int { size, signed, names },
                }
            }
            Kind::Float => match size {
                4 | 8 => Type::Float(size as u8),
                16 if self.name(ty).as_deref() == Some("long double") => Type::Float(16),
                _ => other,
            },
            Kind::Pointer | Kind::Text if size == 8 && is_pointer(tag) => self.pointer(ty, tag, levels),
            Kind::Aggregate => self.aggregate(ty, tag),
            _ => other,
        }
    }

    fn pointer(&self, ty: &Die<'f>, tag: gimli::DwTag, levels: u32) -> Type {
        let Some(to) = self.referred(ty, c::DW_AT_type).map(|to| self.strip(&to)) else { return Type::Pointer };
        let is_char = self.size(&to) == 1 && matches!(self.value_type_of_base(&to), Some(Type::Char(1)));
        if tag == c::DW_TAG_pointer_type && is_char {
            return Type::Text;
        }
        // A pointer of C may lead to one number or to many, or to none.
        let is_reference = tag != c::DW_TAG_pointer_type || self.name(ty).is_some_and(|n| n.starts_with('&'));
        let is_aggregate = matches!(self.tag(&to), Some(c::DW_TAG_structure_type | c::DW_TAG_class_type));
        if levels == 0 || !is_reference && !is_aggregate {
            return Type::Pointer;
        }
        match self.value_type(&to, levels - 1) {
            Type::Other(_) | Type::Slice | Type::Pointer | Type::Text | Type::To(_) | Type::Chars(_) => Type::Pointer,
            Type::Struct(s) if s.members.is_empty() => Type::Pointer,
            to => Type::To(Box::new(to)),
        }
    }

    /// [`Debug::value_type`] of a type that is no structure and leads to none.
    fn value_type_of_base(&self, ty: &Die<'f>) -> Option<Type> {
        (self.tag(ty)? == c::DW_TAG_base_type).then(|| self.value_type(ty, 0))
    }

    fn aggregate(&self, ty: &Die<'f>, tag: gimli::DwTag) -> Type {
        let size = self.size(ty);
        let other = Type::Other(size);
        if tag == c::DW_TAG_array_type {
            let Some((element, n)) = self.array(ty) else { return other };
            let is_char = matches!(self.value_type_of_base(&element), Some(Type::Char(1)));
            return if is_char && (1..=BYTES).contains(&n) { Type::Chars(n as u16) } else { other };
        }
        if tag != c::DW_TAG_structure_type && tag != c::DW_TAG_class_type {
            return other;
        }
        if let Some(string) = self.string(ty, size) {
            return string;
        }
        // What is inside of a structure that is inside of another is not looked at.
        let mut all = Struct { members: Vec::new(), size: size.min(BYTES) as u16 };
        for member in self.children(ty, 4 * MEMBERS) {
            match self.tag(&member) {
                Some(c::DW_TAG_member) => {}
                // An enumeration of Rust whose values have parts.
                Some(c::DW_TAG_variant_part) => return other,
                _ => continue,
            }
            let has = |name| self.attribute(&member, name).is_some();
            if has(c::DW_AT_external) || has(c::DW_AT_artificial) || has(c::DW_AT_declaration) {
                continue;
            }
            let name = self.name(&member).unwrap_or_default();
            if name.starts_with("_vptr") {
                continue;
            }
            let offset = if has(c::DW_AT_data_member_location) { self.member_offset(&member) } else { Some(0) };
            let is_bits = has(c::DW_AT_bit_size) || has(c::DW_AT_data_bit_offset);
            let Some((offset, inner)) = offset.zip(self.referred(&member, c::DW_AT_type)) else { continue };
            let inner = self.strip(&inner);
            let is_structure = matches!(
                self.tag(&inner),
                Some(c::DW_TAG_structure_type | c::DW_TAG_class_type | c::DW_TAG_union_type)
            );
            let described = match (is_bits, is_structure) {
                (true, _) => Type::Other(self.size(&inner)),
                (false, true) => self.string(&inner, self.size(&inner)).unwrap_or(Type::Other(self.size(&inner))),
                (false, false) => self.value_type(&inner, 0),
            };
            if offset.saturating_add(self.size(&inner)) > BYTES.min(size) || all.members.len() >= MEMBERS {
                continue;
            }
            all.members.push((name, offset as u16, described));
        }
        Type::Struct(all)
    }

    /// The strings of Rust and of libstdc++.
    fn string(&self, ty: &Die<'f>, size: u64) -> Option<Type> {
        let name = self.name(ty)?;
        let member = |of: &Die<'f>, wanted: &str| {
            let all = self.children(of, 4 * MEMBERS);
            let found = all
                .into_iter()
                .find(|m| self.tag(m) == Some(c::DW_TAG_member) && self.name(m).as_deref() == Some(wanted))?;
            Some((self.member_offset(&found)?, self.strip(&self.referred(&found, c::DW_AT_type)?)))
        };
        let small = |at: u64| u16::try_from(at).ok().filter(|at| u64::from(*at) + 8 <= size && size <= BYTES);
        let is_rust = ty.found.language == Some(c::DW_LANG_Rust);
        if is_rust && name == "&str" {
            let (address, length) = (member(ty, "data_ptr")?.0, member(ty, "length")?.0);
            return ((address, length, size) == (0, 8, 16)).then_some(Type::Slice);
        }
        let (address, length) = if is_rust && name == "String" {
            let (at, vec) = member(ty, "vec")?;
            let (buffer, inner) = member(&vec, "buf")?;
            (at + buffer + self.first_pointer(&inner, DEPTH)?, at + member(&vec, "len")?.0)
        } else if name.starts_with("basic_string<char,") {
            let (at, inner) = member(ty, "_M_dataplus")?;
            (at + member(&inner, "_M_p")?.0, member(ty, "_M_string_length")?.0)
        } else {
            return None;
        };
        Some(Type::String { size: u16::try_from(size).ok()?, address: small(address)?, length: small(length)? })
    }

    /// The offset of the first pointer in a structure.
    fn first_pointer(&self, ty: &Die<'f>, depth: u32) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        self.children(ty, MEMBERS).iter().filter(|m| self.tag(m) == Some(c::DW_TAG_member)).find_map(|m| {
            let inner = self.strip(&self.referred(m, c::DW_AT_type)?);
            let at = self.member_offset(m)?;
            match self.tag(&inner)? {
                tag if is_pointer(tag) => Some(at),
                c::DW_TAG_structure_type => at.checked_add(self.first_pointer(&inner, depth)?),
                _ => None,
            }
        })
    }

    fn enumerators(&self, ty: &Die<'f>) -> Vec<(i64, String)> {
        let value = |die: &Die<'f>| {
            let (value, _) = self.attribute(die, c::DW_AT_const_value)?;
            let value = match value {
                // Data of a fixed size has no sign of its own, and negative values are written otherwise.
                AttributeValue::Data1(n) => n.into(),
                AttributeValue::Data2(n) => n.into(),
                AttributeValue::Data4(n) => n.into(),
                value => value.sdata_value().or_else(|| value.udata_value().map(|n| n as i64))?,
            };
            Some((value, self.name(die)?))
        };
        let all = self.children(ty, NAMES);
        all.iter().filter(|d| self.tag(d) == Some(c::DW_TAG_enumerator)).filter_map(value).collect()
    }

    fn at_first(&self, die: &Die<'f>, address: u64) -> AtEntry {
        let unit = &die.found.unit;
        let Some(value) = die.entry().and_then(|e| e.attr_value(c::DW_AT_location)) else { return AtEntry::Nothing };
        let expression = match value {
            AttributeValue::Exprloc(expression) => Some(expression),
            value => {
                let Ok(Some(mut list)) = self.dwarf.attr_locations(unit, value) else { return AtEntry::Nothing };
                let mut found = None;
                while let Ok(Some(entry)) = list.next() {
                    if entry.range.begin <= address && address < entry.range.end {
                        found = Some(entry.data);
                        break;
                    }
                }
                found
            }
        };
        let Some(expression) = expression else { return AtEntry::Nothing };
        let mut operations = expression.operations(unit.encoding());
        let first = operations.next();
        let alone = matches!(operations.next(), Ok(None));
        match first {
            Ok(Some(Operation::Register { register })) if alone => match (register.0, integer(register.0)) {
                (_, Some(n)) => AtEntry::Register(Place::Integer(n)),
                (17..=24, _) => AtEntry::Register(Place::Float((register.0 - 17) as u8)),
                _ => AtEntry::Nothing,
            },
            // In several registers: those of the ABI, as nothing has been moved yet.
            Ok(Some(Operation::Register { .. } | Operation::Piece { .. })) => AtEntry::Memory,
            // There, or where the word there leads to.
            Ok(Some(Operation::FrameOffset { .. } | Operation::RegisterOffset { .. })) => AtEntry::Memory,
            _ => AtEntry::Nothing,
        }
    }
}

/// The number among registers of arguments of one that debug information calls so.
fn integer(number: u16) -> Option<u8> {
    const NUMBERS: [u16; REGISTERS.len()] = [5, 4, 1, 2, 8, 9];
    NUMBERS.iter().position(|n| *n == number).map(|n| n as u8)
}
