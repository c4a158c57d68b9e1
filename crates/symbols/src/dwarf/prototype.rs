//! What a function takes and returns.

use super::types::TypeInfo;
use super::{Debug, Die, MAX_HOPS};
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

impl<'f> Debug<'f> {
    /// Of the function that begins at an address; none where there is no debug information about it. `changed`: the function has been
    /// made to take other arguments than its source says ([`crate::demangle::is_changed`]).
    pub fn prototype(&self, address: u64, changed: bool) -> Option<Prototype> {
        let function = self.function(address)?;
        let returns = self.referred(&function, c::DW_AT_type);
        // LLVM says of functions that it has changed that they follow no convention.
        let changed = changed || self.convention(&function) == Some(c::DW_CC_nocall);
        let mut taken = self.taken_for_result(returns.as_ref());
        let mut parameters = Vec::new();
        for die in self.parameters(&function) {
            let by_type = match self.referred(&die, c::DW_AT_type) {
                Some(ty) if !changed => self.place(&ty, &mut taken),
                _ => Where::Nowhere,
            };
            let at = self.at_entry(&die, address).unwrap_or(by_type);
            let name = self.name(&die).unwrap_or_default();
            let Some(ty) = self.type_of(&die) else { break };
            parameters.push(Parameter { name, ty, at });
        }
        Some(Prototype { parameters, returns: returns.map(|ty| self.describe(&ty)) })
    }

    /// The entries of parameters: the function's own, or those of what it is a further entry of.
    fn parameters(&self, function: &Die<'f>) -> Vec<Die<'f>> {
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

    /// Where a parameter is at the function's first instruction, if its debug information says that it is in a register then.
    fn at_entry(&self, die: &Die<'f>, address: u64) -> Option<Where> {
        let unit = &die.found.unit;
        let value = die.entry()?.attr_value(c::DW_AT_location)?;
        if let AttributeValue::Exprloc(expression) = value {
            return self.register(expression, die);
        }
        let mut list = self.dwarf.attr_locations(unit, value).ok()??;
        while let Ok(Some(entry)) = list.next() {
            if entry.range.begin <= address && address < entry.range.end {
                return self.register(entry.data, die);
            }
        }
        None
    }

    /// The register that an expression is; none where it is something else.
    fn register(&self, expression: Expression<super::Bytes<'f>>, die: &Die<'f>) -> Option<Where> {
        let mut operations = expression.operations(die.found.unit.encoding());
        let Ok(Some(Operation::Register { register })) = operations.next() else { return None };
        if !matches!(operations.next(), Ok(None)) {
            return None;
        }
        NUMBERED.get(usize::from(register.0)).map(|name| Where::Register(name))
    }
}
