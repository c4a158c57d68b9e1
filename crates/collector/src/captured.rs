//! From what a file's debug information says of a function to what the agent copies of its calls, and what a trace says of that.

use abi::values::{FIELD, Op, RAX, RDX, ST0, STACK, STEPS, Step, XMM};
use engine::request::functions::Values;
use events::values::{Shape, Signature, Struct, text_of};
use patch::link::Programs;
use symbols::dwarf::signature::{self as dwarf, Argument, Held, Place, Type};

/// The most arguments whose values are captured.
const ARGUMENTS: usize = 16;

/// The most bytes of a string: a record has room for some.
const STRINGS: u16 = 128;

/// What is captured of a function.
pub struct Captured {
    /// What the agent does.
    pub programs: Programs,
    /// What that gives.
    pub signature: Signature,
}

impl Captured {
    /// Of a function with this signature; None where nothing of it can be captured.
    pub fn of(signature: &dwarf::Signature, values: Values) -> Option<Captured> {
        let (strings, numbers) = (values.strings.min(STRINGS), values.numbers);
        let mut entry = Program { steps: Vec::new(), strings, numbers };
        let of = signature.arguments.get(..ARGUMENTS).unwrap_or(&signature.arguments);
        let mut arguments: Vec<_> = of.iter().map(|a| (a.name.clone(), entry.add(a))).collect();
        if numbers && strings > 0 {
            entry.numbers = false;
            for (nth, a) in of.iter().enumerate().filter(|(_, a)| leads_to_text(&a.ty)) {
                let name = if a.name.is_empty() { format!("arg{nth}") } else { a.name.clone() };
                arguments.push((text_of(&name), entry.add(a)));
            }
        }
        let mut exit = Program { steps: Vec::new(), strings, numbers };
        let result = signature.result.as_ref().map(|r| exit.add(r));
        let programs = (entry.steps, exit.steps);
        let some = !programs.0.is_empty() || !programs.1.is_empty();
        some.then_some(Captured { programs, signature: Signature { arguments, result } })
    }
}

/// Whether a value is the address of a text, or of a string.
fn leads_to_text(ty: &Type) -> bool {
    matches!(ty, Type::Text) || matches!(ty, Type::To(to) if matches!(**to, Type::String { .. }))
}

/// A program that is being made.
struct Program {
    steps: Vec<Step>,
    strings: u16,
    /// Addresses are values.
    numbers: bool,
}

fn place(place: Place) -> (u8, i32) {
    match place {
        Place::Integer(n) => (n, 0),
        Place::Float(n) => (XMM + n, 0),
        Place::Stack(at) => (STACK, at),
        Place::Returned(0) => (RAX, 0),
        Place::Returned(_) => (RDX, 0),
        Place::X87 => (ST0, 0),
    }
}

/// How a value that is in place is taken; None: it is not, or not known.
fn plain(ty: &Type) -> Option<Shape> {
    Some(match ty {
        Type::Int { size, signed, names } => Shape::Int { size: *size, signed: *signed, names: names.clone() },
        Type::Bool(size) => Shape::Bool(*size),
        Type::Char(size) => Shape::Char(*size),
        Type::Float(size) => Shape::Float(*size),
        Type::Pointer | Type::To(_) => Shape::Pointer,
        Type::Chars(n) => Shape::Chars(*n),
        _ => return None,
    })
}

/// Bytes of a value that is in place.
fn size(ty: &Type) -> u16 {
    match ty {
        Type::Int { size, .. } | Type::Bool(size) | Type::Char(size) => u16::from(*size),
        Type::Float(16) => 10,
        Type::Float(size) => u16::from(*size),
        Type::Pointer | Type::Text | Type::To(_) => 8,
        Type::Chars(n) => *n,
        Type::Struct(s) => s.size,
        Type::String { size, .. } => *size,
        Type::Slice => 16,
        Type::Other(_) => 0,
    }
}

impl Program {
    /// Adds the steps for a value, and says what they give. Where they are too many, the value is not captured.
    fn add(&mut self, value: &Argument) -> Shape {
        let before = self.steps.len();
        let shape = self.value(&value.ty, &value.held);
        if shape.is_none() || self.steps.len() > STEPS {
            self.steps.truncate(before);
        }
        shape.filter(|_| self.steps.len() <= STEPS && self.steps.len() > before).unwrap_or(Shape::Unknown)
    }

    fn step(&mut self, op: Op, (place, offset): (u8, i32), size: u16) {
        self.steps.push(Step { op: op as u8, place, size, offset });
    }

    fn value(&mut self, ty: &Type, held: &Held) -> Option<Shape> {
        // Where the whole, or its first part, is.
        let first = match held {
            Held::Parts(parts) => place(parts.first()?.0),
            Held::Memory(at) | Held::Address(at) => place(*at),
            Held::Nowhere => return None,
        };
        let second = match held {
            Held::Parts(parts) => parts.get(1).map(|p| place(p.0)),
            Held::Memory(Place::Stack(at)) => Some((STACK, at.checked_add(8)?)),
            _ => None,
        };
        if let Held::Address(_) = held {
            return self.pointee(ty, first);
        }
        match ty {
            Type::Text | Type::To(_) if self.numbers => {
                self.load(held, 8)?;
                Some(Shape::Pointer)
            }
            Type::Text => {
                self.step(Op::Text, first, self.strings);
                Some(Shape::Text)
            }
            Type::Slice => {
                self.step(Op::Slice, first, self.strings);
                self.step(Op::End, second?, 0);
                Some(Shape::Text)
            }
            Type::To(to) => self.pointee(to, first),
            Type::Struct(s) => {
                self.load(held, s.size)?;
                let described = self.members(s, true);
                Some(Shape::Struct(described))
            }
            Type::String { .. } | Type::Other(_) | Type::Chars(_) => None,
            _ => {
                self.load(held, size(ty))?;
                plain(ty)
            }
        }
    }

    /// Copies a value, part by part.
    fn load(&mut self, held: &Held, size: u16) -> Option<()> {
        match held {
            Held::Parts(parts) => {
                let whole = parts.iter().fold(0, |n, p| n + u16::from(p.1));
                if whole != size {
                    return None;
                }
                parts.iter().for_each(|(at, n)| self.step(Op::Load, place(*at), (*n).into()));
            }
            Held::Memory(Place::Stack(at)) => {
                for done in (0..size).step_by(16) {
                    self.step(Op::Load, (STACK, at.checked_add(done.into())?), (size - done).min(16));
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The value that a word leads to.
    fn pointee(&mut self, ty: &Type, at: (u8, i32)) -> Option<Shape> {
        match ty {
            Type::String { size, address, length } => {
                self.step(Op::Pointee, at, *size);
                self.text(*address, *length);
                Some(Shape::String)
            }
            Type::Struct(s) => {
                self.step(Op::Pointee, at, s.size);
                Some(Shape::To(self.members(s, false)))
            }
            other => {
                let shape = plain(other)?;
                self.step(Op::Pointee, at, size(other));
                Some(Shape::To(Struct { members: vec![(String::new(), 0, shape)], size: size(other) }))
            }
        }
    }

    fn text(&mut self, address: u16, length: u16) {
        self.step(Op::Slice, (FIELD, address.into()), self.strings);
        self.step(Op::End, (FIELD, length.into()), 0);
    }

    /// The members of a structure that was copied just now; `base`: as a value, not by its address.
    fn members(&mut self, s: &dwarf::Struct, base: bool) -> Struct {
        let has_text = s.members.iter().any(|m| matches!(m.2, Type::Text | Type::Slice | Type::String { .. }));
        if base && has_text {
            self.step(Op::Base, (0, 0), s.size);
        }
        let mut members = Vec::new();
        for (name, offset, ty) in &s.members {
            let shape = match ty {
                Type::Text => {
                    self.step(Op::Text, (FIELD, (*offset).into()), self.strings);
                    Shape::Text
                }
                Type::Slice => {
                    self.text(*offset, offset + 8);
                    Shape::Text
                }
                Type::String { address, length, .. } => {
                    self.text(offset + address, offset + length);
                    Shape::Text
                }
                other => plain(other).unwrap_or(Shape::Unknown),
            };
            members.push((name.clone(), *offset, shape));
        }
        Struct { members, size: s.size }
    }
}
