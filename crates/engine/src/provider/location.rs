//! Where arguments lie when a probe is reached, in the words of the ABI: x86-64's registers, memory relative to them, the record of a
//! tracepoint. How a program reads them is up to the backend.

use symbols::usdt::Operand;

/// Where an argument lies when the probe is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgLocation {
    /// The argument of this number: of a function, as the calling convention passes it; of a tracepoint, as its prototype lists it.
    Argument(u8),
    /// The function's result.
    Result,
    /// In a register.
    Register(Register),
    /// In the memory of the process, at the sum of registers and a displacement; the second register is multiplied.
    Memory {
        /// A register.
        base: Option<&'static str>,
        /// A register and its factor.
        index: Option<(&'static str, u8)>,
        /// Displacement.
        offset: i64,
    },
    /// A constant.
    Constant(i64),
    /// In the tracepoint's record, at this offset.
    Record(u32),
    /// In the tracepoint's record: a reference (`__data_loc`) at this offset.
    RecordReference(u32),
    /// The address that a perf event is about: the one that has faulted, the one that is watched.
    EventAddress,
    /// In the memory of the process, at that address.
    AtEventAddress,
    /// The time that the event stands for, ns.
    Elapsed,
    /// An address: so far from the instruction that was reached.
    Distance(i64),
    /// Not known.
    Unknown,
}

/// A register, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The whole register's name: one of [`REGISTERS`], or that of [`CODE_SEGMENT`].
    pub name: &'static str,
    /// The first byte that counts.
    pub first: u8,
    /// How many bytes count.
    pub bytes: u8,
}

/// The registers of 8 bytes.
pub const REGISTERS: [&str; 17] = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "rip", "rsp",
];

/// The code segment, whose lowest bits say in which mode the processor is. No argument is in it.
pub const CODE_SEGMENT: Register = Register { name: "cs", first: 0, bytes: 8 };

/// Registers of arguments, in order (System V ABI for x86-64, 3.2.3).
pub const ARGUMENTS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];
/// The register of results.
pub const RESULT: &str = "rax";

impl ArgLocation {
    /// The location that the operand of a static probe gives.
    pub fn of_operand(operand: &Operand) -> ArgLocation {
        let known = match operand {
            Operand::Constant(n) => Some(ArgLocation::Constant(*n)),
            Operand::Register(name) => Register::named(name).map(ArgLocation::Register),
            Operand::Memory { offset, base, index } => memory(*offset, base, index.as_ref()),
            Operand::Other(_) => None,
        };
        known.unwrap_or(ArgLocation::Unknown)
    }
}

fn memory(offset: i64, base: &str, index: Option<&(String, u8)>) -> Option<ArgLocation> {
    let base = if base.is_empty() { None } else { Some(whole(base)?) };
    let index = match index {
        Some((name, factor)) => Some((whole(name)?, *factor)),
        None => None,
    };
    Some(ArgLocation::Memory { base, index, offset })
}

/// A register of 8 bytes.
fn whole(name: &str) -> Option<&'static str> {
    REGISTERS.iter().copied().find(|r| *r == name)
}

impl Register {
    /// A register or a part of one, by the name that the assembler has for it.
    pub fn named(name: &str) -> Option<Register> {
        let part = |whole: &str, first, bytes| Some(Register { name: self::whole(whole)?, first, bytes });
        if let Some(name) = whole(name) {
            return Some(Register { name, first: 0, bytes: 8 });
        }
        // r8d, r8w, r8b
        if let Some(whole) = name.strip_suffix(['d', 'w', 'b'])
            && whole.starts_with('r')
            && whole[1..].parse::<u8>().is_ok()
        {
            let bytes = match name.as_bytes().last() {
                Some(b'd') => 4,
                Some(b'w') => 2,
                _ => 1,
            };
            return part(whole, 0, bytes);
        }
        let legacy = [("ax", "al", "ah"), ("bx", "bl", "bh"), ("cx", "cl", "ch"), ("dx", "dl", "dh")];
        for (word, low, high) in legacy {
            if name == low || name == high {
                return part(&format!("r{word}"), u8::from(name == high), 1);
            }
        }
        let word = name.strip_prefix('e').unwrap_or(name);
        if word.len() == 2
            && let Some(found) = part(&format!("r{word}"), 0, if word.len() < name.len() { 4 } else { 2 })
        {
            return Some(found);
        }
        // sil, dil, bpl, spl
        part(&format!("r{}", name.strip_suffix('l')?), 0, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_registers() {
        let at = |name: &str| Register::named(name).map(|r| (r.name, r.first, r.bytes));
        assert_eq!(
            [at("rax"), at("eax"), at("ax"), at("al"), at("ah")],
            [(0, 8), (0, 4), (0, 2), (0, 1), (1, 1)].map(|(first, bytes)| Some(("rax", first, bytes)))
        );
        assert_eq!(
            [at("r8"), at("r8d"), at("r15w"), at("r10b")],
            [Some(("r8", 0, 8)), Some(("r8", 0, 4)), Some(("r15", 0, 2)), Some(("r10", 0, 1))]
        );
        assert_eq!(
            [at("edi"), at("di"), at("dil"), at("bpl")],
            [Some(("rdi", 0, 4)), Some(("rdi", 0, 2)), Some(("rdi", 0, 1)), Some(("rbp", 0, 1))]
        );
        assert_eq!([at("xmm0"), at("eip2"), at(""), at("l"), at("rd")], [None; 5]);
    }

    #[test]
    fn operands_that_name_no_register_are_unknown() {
        let memory = |base: &str| Operand::Memory { offset: 8, base: base.into(), index: None };
        let at = ArgLocation::Memory { base: Some("rsp"), index: None, offset: 8 };
        assert_eq!(ArgLocation::of_operand(&memory("rsp")), at);
        for operand in [memory("eax"), Operand::Register("xmm0".into()), Operand::Other("%st".into())] {
            assert_eq!(ArgLocation::of_operand(&operand), ArgLocation::Unknown);
        }
    }
}
