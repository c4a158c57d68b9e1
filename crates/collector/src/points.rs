//! Probes in files: what the agent copies at each of their places, and what that becomes in events.
//!
//! ```text
//!  enablings ─► places in a file: address, entry or return ─► a program of steps (`abi::values`), and what each enabling takes of what they copy
//! ```

use abi::values::{FETCHED, MOST, NOTHING, Op, RAX, REGISTER, STACK_HASH, STEPS, Step, most};
use engine::provider::file_point::FilePoint;
use engine::provider::location::{ARGUMENTS, Register};
use engine::provider::{ArgLocation, AttachPoint, Site};
use engine::request::functions::Probes;
use engine::request::probe_enabling::{Number, ProbeEnabling, Source};
use events::Schema;
use events::types::Type;
use lang::filter::NeededString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The most bytes of a string: as many as the kernel backend captures.
const STRING: u16 = 255;
/// General registers in the order of DWARF (System V ABI for x86-64, figure 3.36).
const DWARF: [&str; 16] =
    ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// A field of an event, and the bytes of a record that it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// This many bytes: a number, perhaps with a sign.
    Number(u8, bool),
    /// No bytes: this number.
    Constant(u64),
    /// A head, and a string.
    Text,
    /// No bytes: a string that may not be seen.
    Hidden,
    /// No bytes: the name of the thread.
    Comm,
    /// No bytes: its user.
    Uid,
    /// No bytes: its group.
    Gid,
}

/// What an enabling takes of a record.
#[derive(Clone, Debug)]
pub struct Part {
    /// Which of the enablings.
    pub enabling: usize,
    /// The class of its events.
    pub schema: &'static Schema,
    /// Its fields.
    pub fields: Vec<Taken>,
}

/// A place of probes.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its address in the file's address space.
    pub address: u64,
    /// It is the return of the function there.
    pub at_return: bool,
    /// A name for it.
    pub label: String,
    /// Counters that are to be raised, in the file's address space.
    pub counters: Vec<u64>,
    /// What is copied.
    pub steps: Vec<Step>,
    /// What becomes of it.
    pub parts: Vec<Part>,
}

/// A program that is being made for one enabling.
#[derive(Default)]
struct Program {
    steps: Vec<Step>,
    fields: Vec<Taken>,
}

impl Program {
    fn step(&mut self, op: Op, place: u8, offset: i32, size: u16) {
        self.steps.push(Step { op: op as u8, place, size, offset });
    }

    /// Where a value of this many bytes is once it can be copied; None: it cannot be found.
    fn place(&mut self, at: &ArgLocation, size: u8, at_return: bool) -> Option<u8> {
        let register = |name: &str| Some(REGISTER + DWARF.iter().position(|r| *r == name)? as u8);
        match at {
            ArgLocation::Result if at_return => Some(RAX),
            _ if at_return => None,
            ArgLocation::Argument(n) => match ARGUMENTS.get(usize::from(*n)) {
                Some(name) => register(name),
                None => {
                    let behind = 8 * (i32::from(*n) - ARGUMENTS.len() as i32) + 8;
                    self.fetch((register("rsp")?, behind), (NOTHING, 0), size);
                    Some(FETCHED)
                }
            },
            ArgLocation::Register(Register { name, first: 0, .. }) => register(name),
            ArgLocation::Memory { base, index, offset } => {
                let place = |name: &Option<&'static str>| name.map_or(Some(NOTHING), register);
                let (base, offset) = (place(base)?, i32::try_from(*offset).ok()?);
                let (index, factor) = index.map_or((None, 0), |(name, factor)| (Some(name), factor));
                self.fetch((base, offset), (place(&index)?, factor), size);
                Some(FETCHED)
            }
            _ => None,
        }
    }

    fn fetch(&mut self, (base, offset): (u8, i32), (index, factor): (u8, u8), size: u8) {
        self.step(Op::Fetch, base, offset, size.into());
        self.step(Op::End, index, 0, factor.into());
    }

    /// Adds a number.
    fn number(&mut self, Number { at, size, signed }: &Number, at_return: bool) -> Option<()> {
        if let ArgLocation::Constant(n) = at {
            self.fields.push(Taken::Constant(*n as u64));
            return Some(());
        }
        let (size, signed) = match at {
            ArgLocation::Register(r) => (r.bytes.min(*size), *signed),
            _ => (*size, *signed),
        };
        let place = self.place(at, size, at_return)?;
        self.step(Op::Load, place, 0, size.into());
        self.fields.push(Taken::Number(size, signed));
        Some(())
    }

    /// Adds a field of an event; None: it cannot be had here.
    fn field(&mut self, source: &Source, at_return: bool) -> Option<()> {
        match source {
            Source::Number(number) => self.number(number, at_return),
            Source::Text { address, of_process: true } => {
                let place = self.place(&address.at, 8, at_return)?;
                self.step(Op::Text, place, 0, STRING);
                self.fields.push(Taken::Text);
                Some(())
            }
            Source::Cpu => {
                self.step(Op::Cpu, NOTHING, 0, 4);
                self.fields.push(Taken::Number(4, false));
                Some(())
            }
            Source::UserStack(_) => {
                self.step(Op::Load, STACK_HASH, 0, 8);
                self.fields.push(Taken::Number(8, false));
                Some(())
            }
            Source::Comm | Source::Uid | Source::Gid => {
                self.fields.push(match source {
                    Source::Comm => Taken::Comm,
                    Source::Uid => Taken::Uid,
                    _ => Taken::Gid,
                });
                Some(())
            }
            Source::Hidden { text } => {
                self.fields.push(if *text { Taken::Hidden } else { Taken::Constant(0) });
                Some(())
            }
            _ => None,
        }
    }

    fn of(enabling: &ProbeEnabling, at_return: bool) -> Option<Program> {
        let mut program = Program::default();
        enabling.fields.iter().try_for_each(|source| program.field(source, at_return))?;
        (program.steps.len() <= STEPS && most(&program.steps) as usize <= MOST).then_some(program)
    }
}

/// Whether the agent can reach the probe of an enabling, and has what that captures.
pub fn can_carry(enabling: &ProbeEnabling) -> bool {
    let Some(AttachPoint::File(point)) = &enabling.point else { return false };
    // A filter reads the texts that an event has, and no memory.
    let is_number =
        |s: &NeededString| enabling.schema.args.get(usize::from(s.arg)).is_some_and(|a| matches!(a.ty, Type::Int(_)));
    let needs = |f: &lang::Filter| f.needs().cpu || f.needs().strings.iter().any(is_number);
    enabling.collects.is_none()
        && !enabling.filter.as_ref().is_some_and(needs)
        && Program::of(enabling, point.at_return).is_some()
}

/// The places of enablings in a file, in order of their addresses, and the enablings, by number and name, that some are missing of, because the others
/// there copy so much.
pub fn of_file(file: &File, probes: &Probes) -> (Vec<Point>, Vec<(usize, String)>) {
    let identity = |f: &File| f.metadata().ok().map(|m| (m.dev(), m.ino()));
    let this = identity(file);
    let (mut points, mut left_out) = (Vec::new(), Vec::new());
    for (nth, (_, enabling)) in probes.0.iter().enumerate() {
        let Some(AttachPoint::File(point)) = &enabling.point else { continue };
        if this.is_none() || identity(&point.file) != this {
            continue;
        }
        let Some(program) = Program::of(enabling, point.at_return) else { continue };
        for (n, site) in point.sites.iter().enumerate() {
            if !add(&mut points, (nth, enabling), (point, n, site), &program) {
                left_out.push((nth, enabling.label()));
            }
        }
    }
    order::by_key(&mut points, |p| (p.address, p.at_return));
    (points, left_out)
}

fn add(
    points: &mut Vec<Point>,
    (nth, enabling): (usize, &ProbeEnabling),
    (point, n, site): (&FilePoint, usize, &Site),
    program: &Program,
) -> bool {
    let Some(address) = point.address_of(site.offset) else { return false };
    let schema = point.member_of.get(n).and_then(|m| enabling.members.get(*m)).copied().unwrap_or(enabling.schema);
    let part = Part { enabling: nth, schema, fields: program.fields.clone() };
    let counter = (site.counter != 0).then(|| point.address_of(site.counter)).flatten();
    match points.iter_mut().find(|p| (p.address, p.at_return) == (address, point.at_return)) {
        // Where two have one place, each copies what it needs.
        Some(there) => {
            if there.steps.len() + program.steps.len() > STEPS
                || (most(&there.steps) + most(&program.steps)) as usize > MOST
            {
                return false;
            }
            there.steps.extend_from_slice(&program.steps);
            there.parts.push(part);
            there.counters.extend(counter.filter(|c| !there.counters.contains(c)));
        }
        None => points.push(Point {
            address,
            at_return: point.at_return,
            label: schema.name.into(),
            counters: counter.into_iter().collect(),
            steps: program.steps.clone(),
            parts: vec![part],
        }),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(at: ArgLocation, size: u8) -> Source {
        Source::Number(Number { at, size, signed: true })
    }

    fn step(op: Op, place: u8, size: u16, offset: i32) -> Step {
        Step { op: op as u8, place, size, offset }
    }

    #[test]
    fn places_of_the_abi_become_steps() {
        let mut program = Program::default();
        let memory = ArgLocation::Memory { base: Some("rbp"), index: Some(("rcx", 4)), offset: -24 };
        let fields = [
            number(ArgLocation::Argument(1), 4),
            number(ArgLocation::Argument(7), 8),
            number(memory, 4),
            number(ArgLocation::Constant(-5), 8),
            Source::Hidden { text: true },
            Source::Cpu,
        ];
        assert!(fields.iter().all(|source| program.field(source, false).is_some()));
        let right = [
            step(Op::Load, REGISTER + 4, 4, 0),
            // The second argument on the stack, above the return address.
            step(Op::Fetch, REGISTER + 7, 8, 16),
            step(Op::End, NOTHING, 0, 0),
            step(Op::Load, FETCHED, 8, 0),
            step(Op::Fetch, REGISTER + 6, 4, -24),
            step(Op::End, REGISTER + 2, 4, 0),
            step(Op::Load, FETCHED, 4, 0),
            step(Op::Cpu, NOTHING, 4, 0),
        ];
        assert_eq!(program.steps, right);
        let taken = [
            Taken::Number(4, true),
            Taken::Number(8, true),
            Taken::Number(4, true),
            Taken::Constant(-5i64 as u64),
            Taken::Hidden,
            Taken::Number(4, false),
        ];
        assert_eq!(program.fields, taken);
    }

    #[test]
    fn what_the_agent_cannot_have_is_refused() {
        let of = |source: &Source, at_return| Program::default().field(source, at_return);
        let high = ArgLocation::Register(Register { name: "rax", first: 1, bytes: 1 });
        for source in [number(high, 1), number(ArgLocation::Unknown, 8), number(ArgLocation::Distance(3), 8)] {
            assert!(of(&source, false).is_none(), "{source:?}");
        }
        assert!(of(&Source::KernelStack(9), false).is_none());
        // At a return there is a result, and nothing else.
        assert!(of(&number(ArgLocation::Result, 8), true).is_some());
        assert!(of(&number(ArgLocation::Result, 8), false).is_none());
        assert!(of(&number(ArgLocation::Argument(0), 8), true).is_none());
    }
}
