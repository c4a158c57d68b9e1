//! What a function takes and returns.

use super::types::TypeInfo;
use super::{Debug, Die, MAX_HOPS};
use crate::demangle;
use crate::elf::Function;
use gimli::{AttributeValue, Expression, Operation, constants as c};

pub use super::abi::Where;

/// The most parameters of a function.
const MAX: usize = 32;

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; empty where it has none.
    pub name: String,
    /// Its type.
    pub ty: TypeInfo,
    /// Where it is when the function begins.
    pub at: Where,
}

/// A function's parameters and what it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// In order.
    pub parameters: Vec<Parameter>,
    /// None: nothing.
    pub returns: Option<TypeInfo>,
}

/// Registers of integers by their numbers in debug information (System V ABI for x86-64, figure 3.36).
const NUMBERED: [&str; 16] =
    ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// The location of a parameter at the function's first instruction, by the debug information.
enum AtEntry {
    /// In this register.
    Register(&'static str),
    /// In memory, which the function has yet to write: there is a place for it on the stack, so the code is not optimised.
    Memory,
    /// Nothing, or that it is not there: it has been replaced by a constant, or is not used.
    Nothing,
}

impl<'f> Debug<'f> {
    /// Of a function; none where there is no debug information about it.
    pub fn prototype(&self, f: &Function) -> Option<Prototype> {
        if let Some(split) = self.split_at(f.address) {
            return split.prototype(f);
        }
        let function = self.function(f.address)?;
        let returns = self.referred(&function, c::DW_AT_type);
        // LLVM marks functions that it has changed as following no convention.
        let changed = demangle::is_changed(&f.name) || self.convention(&function) == Some(c::DW_CC_nocall);
        let mut taken = self.taken_for_result(returns.as_ref());
        let mut parameters = Vec::new();
        for die in self.parameters(&function) {
            let by_type = match self.referred(&die, c::DW_AT_type) {
                Some(ty) if !changed => self.place(&ty, &mut taken),
                _ => Where::Nowhere,
            };
            let at = match self.at_entry(&die, f.address) {
                AtEntry::Register(name) => Where::Register(name),
                AtEntry::Memory => by_type,
                // Callers that the compiler knows all of need not pass it.
                AtEntry::Nothing if f.local => Where::Nowhere,
                AtEntry::Nothing => by_type,
            };
            let name = self.name(&die).unwrap_or_default();
            let Some(ty) = self.type_of(&die) else { break };
            parameters.push(Parameter { name, ty, at });
        }
        Some(Prototype { parameters, returns: returns.map(|ty| self.describe(&ty)) })
    }

    /// The entries of parameters: the function's own, or those of what it is a further entry of.
    pub(super) fn parameters(&self, function: &Die<'f>) -> Vec<Die<'f>> {
        let mut function = function.clone();
        for _ in 0..MAX_HOPS {
            let of_tag = |die: &Die<'f>| self.tag(die) == Some(c::DW_TAG_formal_parameter);
            // Parameters come first.
            let all: Vec<Die<'f>> = self.children(&function, 4 * MAX).into_iter().filter(of_tag).take(MAX).collect();
            if !all.is_empty() {
                return all;
            }
            let Some(entry) = function.entry() else { break };
            match self.origin(&function, &entry) {
                Some(origin) => function = origin,
                None => break,
            }
        }
        Vec::new()
    }

    fn at_entry(&self, die: &Die<'f>, address: u64) -> AtEntry {
        let unit = &die.found.unit;
        let Some(value) = die.entry().and_then(|e| e.attr_value(c::DW_AT_location)) else { return AtEntry::Nothing };
        if let AttributeValue::Exprloc(expression) = value {
            return self.holds(expression, die);
        }
        let Ok(Some(mut list)) = self.dwarf.attr_locations(unit, value) else { return AtEntry::Nothing };
        while let Ok(Some(entry)) = list.next() {
            if entry.range.begin <= address && address < entry.range.end {
                return self.holds(entry.data, die);
            }
        }
        AtEntry::Nothing
    }

    /// What holds a value, by an expression.
    fn holds(&self, expression: Expression<super::Bytes<'f>>, die: &Die<'f>) -> AtEntry {
        let mut operations = expression.operations(die.found.unit.encoding());
        let first = operations.next();
        let alone = matches!(operations.next(), Ok(None));
        match first {
            Ok(Some(Operation::Register { register })) if alone => {
                NUMBERED.get(usize::from(register.0)).map_or(AtEntry::Nothing, |name| AtEntry::Register(name))
            }
            Ok(Some(Operation::FrameOffset { .. } | Operation::RegisterOffset { .. })) if alone => AtEntry::Memory,
            _ => AtEntry::Nothing,
        }
    }
}
