//! Where parameters are when a function begins, by its types: the System V ABI for x86-64 (3.2.3), and what of Rust's is certain.
//!
//! ```text
//!  integers, pointers          rdi rsi rdx rcx r8 r9, then the stack: 8(%rsp), 16(%rsp), …
//!  floating-point numbers      xmm0 …, which programs at probes cannot see
//!  structures up to 16 bytes   as their eight-byte parts; what does not fit into the registers that are left: the stack
//!  larger ones                 the stack; classes that copy themselves: the address, as a pointer
//! ```
//!
//! What does not follow from the types (Rust passes small structures in its own way) makes all later parameters unknown.

use super::types::{Kind, is_pointer};
use super::{Debug, Die};
use gimli::{Operation, constants as c};

/// The registers of integers, in order.
pub(super) const REGISTERS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];
/// Registers of floating-point numbers.
const FLOATS: usize = 8;
/// Limits: members of a structure that are read, and how deep they nest.
const MAX_MEMBERS: u32 = 64;
const DEPTH: u32 = 8;

/// How a value is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    /// In registers: whether each part of it, in order, is in one of floating-point numbers.
    Registers([Option<bool>; 2]),
    /// Its address, in a register of integers.
    Address,
    /// On the stack: bytes, and whether it lies at a multiple of 16.
    Stack(u64, bool),
    /// Not at all: it has no bytes.
    Nothing,
    /// Not known.
    Unknown,
}

/// Which registers, and how much of the stack, parameters have taken so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    integers: usize,
    floats: usize,
    /// Offset of what comes next from the stack pointer; none: not known.
    stack: Option<i64>,
    unknown: bool,
}

/// A register that has a value or a part of one, by its place among those for parameters, or for results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// Of integers.
    Integer(usize),
    /// Of floating-point numbers.
    Float(usize),
    /// st0.
    X87,
}

/// Where a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Its parts, in order.
    Registers([Option<Register>; 2]),
    /// In memory, this many bytes above the stack pointer.
    Stack(i64),
    /// Nowhere, or not known.
    Nowhere,
}

/// A number or an address in a structure.
pub(super) struct Scalar<'f> {
    /// Where it lies.
    pub offset: u64,
    /// It is a floating-point number.
    pub float: bool,
    /// Its type, stripped.
    pub ty: Die<'f>,
}

impl Taken {
    /// Takes what a value needs that is passed so.
    fn take(&mut self, passed: Passed) -> Put {
        let (registers, bytes, aligned) = match passed {
            Passed::Nothing => return Put::Nowhere,
            Passed::Unknown => {
                self.unknown = true;
                return Put::Nowhere;
            }
            Passed::Address => (Some([Some(false), None]), 8, false),
            Passed::Registers(parts) => (Some(parts), 8 * parts.iter().flatten().count() as u64, false),
            Passed::Stack(bytes, aligned) => (None, bytes, aligned),
        };
        if let Some(parts) = registers {
            let count = |float: bool| parts.iter().filter(|p| **p == Some(float)).count();
            if count(false) <= REGISTERS.len() - self.integers && count(true) <= FLOATS - self.floats {
                let mut next = |float: bool| {
                    let of = if float { &mut self.floats } else { &mut self.integers };
                    *of += 1;
                    if float { Register::Float(*of - 1) } else { Register::Integer(*of - 1) }
                };
                return Put::Registers(parts.map(|p| p.map(&mut next)));
            }
        }
        // What is pushed begins at a multiple of 16; how far that of 32 is, the caller knows.
        let is_known = !aligned || bytes == 16;
        let at = self.stack.map(|at| if aligned { (at + 7) / 16 * 16 + 8 } else { at }).filter(|_| is_known);
        let bytes = i64::try_from(bytes.next_multiple_of(8)).ok();
        self.stack = at.zip(bytes).and_then(|(at, n)| at.checked_add(n));
        at.map_or(Put::Nowhere, Put::Stack)
    }
}

/// Where a value of one register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In this register.
    Register(&'static str),
    /// In memory, this many bytes above the stack pointer.
    Stack(i64),
    /// Not where a program at the probe could find it, or not known.
    Nowhere,
}

impl<'f> Debug<'f> {
    /// Nothing but what a function that returns `returns` takes for itself: the address where it puts a large result.
    pub(super) fn taken_for_result(&self, returns: Option<&Die<'f>>) -> Taken {
        let mut taken = Taken { integers: 0, floats: 0, stack: Some(8), unknown: false };
        if let Some(ty) = returns.map(|ty| self.strip(ty)) {
            match self.passed(&ty) {
                // Rust returns what fits into a register there, whatever it is.
                Passed::Unknown if self.size(&ty) <= 8 && ty.found.language == Some(c::DW_LANG_Rust) => {}
                // A long double is returned in st0.
                Passed::Stack(..) if self.kind(&ty) == Kind::Float => {}
                Passed::Stack(..) | Passed::Address => taken.integers = 1,
                Passed::Unknown => taken.unknown = true,
                Passed::Registers(_) | Passed::Nothing => {}
            }
        }
        taken
    }

    /// Where a parameter of a type is, after those before it.
    pub(super) fn place(&self, ty: &Die<'f>, taken: &mut Taken) -> Where {
        let base = self.strip(ty);
        let passed = if taken.unknown { Passed::Unknown } else { self.passed(&base) };
        let plain = matches!(self.kind(&base), Kind::Int { .. } | Kind::Pointer | Kind::Text);
        let one = matches!(passed, Passed::Address | Passed::Registers([Some(false), None]));
        match taken.take(passed) {
            Put::Registers([Some(Register::Integer(n)), None]) if plain => {
                REGISTERS.get(n).map_or(Where::Nowhere, |name| Where::Register(name))
            }
            Put::Stack(at) if plain && one => Where::Stack(at),
            _ => Where::Nowhere,
        }
    }

    /// Where all of a parameter of a type is, after those before it.
    pub(super) fn put(&self, ty: &Die<'f>, taken: &mut Taken) -> (Put, bool) {
        let base = self.strip(ty);
        let passed = if taken.unknown { Passed::Unknown } else { self.passed(&base) };
        (taken.take(passed), passed == Passed::Address)
    }

    /// Where a result of a type is; None: it is not known. The flag: its address is, because it is larger.
    pub(super) fn put_result(&self, ty: &Die<'f>) -> Option<(Vec<Register>, bool)> {
        let base = self.strip(ty);
        let passed = self.passed(&base);
        let mut counts = [0, 0];
        let mut next = |float: &bool| {
            let n = counts[usize::from(*float)];
            counts[usize::from(*float)] += 1;
            if *float { Register::Float(n) } else { Register::Integer(n) }
        };
        match passed {
            Passed::Registers(parts) => Some((parts.iter().flatten().map(&mut next).collect(), false)),
            Passed::Stack(..) if self.kind(&base) == Kind::Float => Some((vec![Register::X87], false)),
            Passed::Stack(..) | Passed::Address => Some((vec![Register::Integer(0)], true)),
            Passed::Nothing | Passed::Unknown => None,
        }
    }

    /// How a value of a type, which is stripped, is passed.
    fn passed(&self, ty: &Die<'f>) -> Passed {
        let size = self.size(ty);
        match self.kind(ty) {
            Kind::Int { .. } | Kind::Pointer | Kind::Text if (1..=8).contains(&size) => {
                Passed::Registers([Some(false), None])
            }
            Kind::Int { .. } if size == 16 => Passed::Registers([Some(false); 2]),
            Kind::Float if (1..=8).contains(&size) => Passed::Registers([Some(true), None]),
            Kind::Float if self.name(ty).as_deref() == Some("long double") => Passed::Stack(16, true),
            // A number of 128 bits, or one that is made of two.
            Kind::Float => Passed::Unknown,
            Kind::Aggregate if ty.found.language == Some(c::DW_LANG_Rust) => self.passed_by_rust(ty, size),
            Kind::Aggregate => self.passed_structure(ty, size),
            _ => Passed::Unknown,
        }
    }

    /// Slices, strings and trait objects are two words; what is larger is passed by its address.
    fn passed_by_rust(&self, ty: &Die<'f>, size: u64) -> Passed {
        let words = || {
            let members = self.children(ty, 3);
            let names: Vec<String> = members.iter().filter_map(|m| self.name(m)).collect();
            matches!(&names[..], [first, second] if first.contains("ptr") || first == "pointer" || second == "vtable")
        };
        match size {
            0 => Passed::Nothing,
            1..=16 if size == 16 && words() => Passed::Registers([Some(false); 2]),
            // One number or two are passed as such.
            1..=16 => match self.scalars(ty).map(|all| all.iter().map(|s| s.float).collect::<Vec<_>>()).as_deref() {
                Some([one]) => Passed::Registers([Some(*one), None]),
                Some([one, two]) => Passed::Registers([Some(*one), Some(*two)]),
                _ => Passed::Unknown,
            },
            _ => Passed::Address,
        }
    }

    /// A structure of C or C++.
    fn passed_structure(&self, ty: &Die<'f>, size: u64) -> Passed {
        let mut left = 16 * MAX_MEMBERS;
        match self.copies_itself(ty, &mut left, DEPTH) {
            Some(true) => return Passed::Address,
            None => return Passed::Unknown,
            Some(false) if size == 0 => return Passed::Nothing,
            Some(false) => {}
        }
        if size > 16 {
            let aligned = self.number(ty, c::DW_AT_alignment).is_some_and(|a| a > 8);
            return Passed::Stack(size, aligned);
        }
        let mut parts = Parts { floats: [None; 2], left: MAX_MEMBERS };
        if !self.take_members(ty, 0, &mut parts, DEPTH) {
            return Passed::Unknown;
        }
        match parts.floats {
            [None, None] => Passed::Nothing,
            floats => Passed::Registers(floats),
        }
    }

    /// The numbers and addresses that a structure of Rust consists of, if those are one or two.
    pub(super) fn scalars(&self, ty: &Die<'f>) -> Option<Vec<Scalar<'f>>> {
        let mut all = Vec::new();
        self.take_scalars(ty, 0, &mut all, DEPTH).filter(|()| !all.is_empty())?;
        all.sort_by_key(|s| s.offset);
        Some(all)
    }

    fn take_scalars(&self, ty: &Die<'f>, at: u64, all: &mut Vec<Scalar<'f>>, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        if self.tag(ty) != Some(c::DW_TAG_structure_type) {
            return None;
        }
        for member in self.children(ty, 16) {
            match self.tag(&member)? {
                c::DW_TAG_member => {}
                // An enumeration with values.
                c::DW_TAG_variant_part => return None,
                _ => continue,
            }
            let offset = at.checked_add(self.member_offset(&member)?)?;
            let inner = self.strip(&self.referred(&member, c::DW_AT_type)?);
            let float = match self.kind(&inner) {
                Kind::Int { .. } | Kind::Pointer | Kind::Text if (1..=8).contains(&self.size(&inner)) => false,
                Kind::Float if matches!(self.size(&inner), 4 | 8) => true,
                Kind::Aggregate if self.size(&inner) == 0 => continue,
                Kind::Aggregate => {
                    self.take_scalars(&inner, offset, all, depth)?;
                    continue;
                }
                _ => return None,
            };
            all.push(Scalar { offset, float, ty: inner });
            if all.len() > 2 {
                return None;
            }
        }
        Some(())
    }

    pub(super) fn convention(&self, die: &Die<'f>) -> Option<gimli::DwCc> {
        match self.attribute(die, c::DW_AT_calling_convention)?.0 {
            gimli::AttributeValue::CallingConvention(cc) => Some(cc),
            _ => None,
        }
    }

    /// Whether a class is passed by its address, because copying or destroying it takes a function: it is said so, or it has virtual
    /// functions, a destructor, or a constructor that copies or moves it, itself or in a part of it. None: not known.
    fn copies_itself(&self, ty: &Die<'f>, left: &mut u32, depth: u32) -> Option<bool> {
        match self.convention(ty) {
            Some(c::DW_CC_pass_by_reference) => return Some(true),
            Some(c::DW_CC_pass_by_value) => return Some(false),
            _ => {}
        }
        let depth = depth.checked_sub(1)?;
        if ty.entry()?.has_attr(c::DW_AT_declaration) {
            return None;
        }
        let own = self.name(ty).unwrap_or_default();
        let own = own.split('<').next().unwrap_or_default();
        for member in self.children(ty, 4 * MAX_MEMBERS as usize) {
            *left = left.checked_sub(1)?;
            let part = match self.tag(&member)? {
                c::DW_TAG_subprogram => {
                    if self.attribute(&member, c::DW_AT_virtuality).is_some() {
                        return Some(true);
                    }
                    let name = self.name(&member).unwrap_or_default();
                    if !self.is_its_care(&member, &name, own, ty) {
                        continue;
                    }
                    // One that the compiler has made is trivial where those of all parts are; before DWARF 5 that is not recorded.
                    match self.attribute(&member, c::DW_AT_defaulted) {
                        None if member.found.unit.header.version() >= 5 => return Some(true),
                        None => return None,
                        Some(_) => continue,
                    }
                }
                c::DW_TAG_member if self.attribute(&member, c::DW_AT_external).is_none() => {
                    self.referred(&member, c::DW_AT_type)?
                }
                c::DW_TAG_inheritance => self.referred(&member, c::DW_AT_type)?,
                _ => continue,
            };
            let part = self.strip(&part);
            if self.kind(&part) == Kind::Aggregate && self.copies_itself(&part, left, depth)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Whether a function of a class is its destructor, or a constructor that copies or moves it.
    fn is_its_care(&self, function: &Die<'f>, name: &str, own: &str, ty: &Die<'f>) -> bool {
        if name.starts_with('~') {
            return true;
        }
        if own.is_empty() || name != own || self.attribute(function, c::DW_AT_artificial).is_some() {
            return false;
        }
        let parameters = self.children(function, 3);
        let taken = parameters.get(1).and_then(|p| self.referred(p, c::DW_AT_type));
        taken.is_some_and(|taken| {
            let is_reference =
                matches!(self.tag(&taken), Some(c::DW_TAG_reference_type | c::DW_TAG_rvalue_reference_type));
            is_reference && self.referred(&taken, c::DW_AT_type).is_some_and(|to| self.strip(&to).at == ty.at)
        })
    }

    /// Takes the members of a structure, or the elements of an array, that lies at an offset; whether it is known where they are.
    fn take_members(&self, ty: &Die<'f>, at: u64, parts: &mut Parts, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        if self.tag(ty) == Some(c::DW_TAG_array_type) {
            let Some((element, n)) = self.array(ty) else { return false };
            let size = self.size(&element);
            return size > 0
                && (0..n).all(|i| self.take_member(&element, at.saturating_add(i.saturating_mul(size)), parts, depth));
        }
        for member in self.children(ty, MAX_MEMBERS as usize + 1) {
            let Some(c::DW_TAG_member | c::DW_TAG_inheritance) = self.tag(&member) else { continue };
            let has = |name| self.attribute(&member, name).is_some();
            // A static member.
            if has(c::DW_AT_external) || has(c::DW_AT_declaration) {
                continue;
            }
            let bits = self.number(&member, c::DW_AT_data_bit_offset).map(|b| b / 8);
            let offset = match has(c::DW_AT_data_member_location) {
                true => self.member_offset(&member),
                false => bits.or(Some(0)),
            };
            let (Some(offset), Some(ty)) = (offset, self.referred(&member, c::DW_AT_type)) else { return false };
            if !self.take_member(&self.strip(&ty), at.saturating_add(offset), parts, depth) {
                return false;
            }
        }
        true
    }

    /// Where a member lies in its structure. In DWARF 2 that is always an expression.
    pub(super) fn member_offset(&self, member: &Die<'f>) -> Option<u64> {
        let (value, found) = self.attribute(member, c::DW_AT_data_member_location)?;
        let Some(expression) = value.exprloc_value() else { return value.udata_value() };
        match expression.operations(found.unit.encoding()).next() {
            Ok(Some(Operation::PlusConstant { value })) => Some(value),
            _ => None,
        }
    }

    fn take_member(&self, ty: &Die<'f>, at: u64, parts: &mut Parts, depth: u32) -> bool {
        parts.left = parts.left.saturating_sub(1);
        if parts.left == 0 || at >= 16 {
            return false;
        }
        let part = &mut parts.floats[(at / 8) as usize];
        match self.kind(ty) {
            // What has an integer in it is passed as one.
            Kind::Int { .. } | Kind::Pointer | Kind::Text if self.size(ty) <= 8 => *part = Some(false),
            Kind::Float if self.size(ty) <= 8 => *part = part.or(Some(true)),
            Kind::Aggregate => return self.take_members(ty, at, parts, depth),
            _ => return self.tag(ty).is_some_and(is_pointer),
        }
        true
    }
}

/// The eight-byte parts of a structure.
struct Parts {
    /// Whether each holds floating-point numbers only; none: nothing.
    floats: [Option<bool>; 2],
    /// Members that may still be read.
    left: u32,
}
