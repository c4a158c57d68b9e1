//! Where a program at an instruction finds arguments: its context is, or begins with, a `struct pt_regs`.

use bpf::probes::Value;
use engine::provider::ArgLocation;
use engine::provider::location::{ARGUMENTS, RESULT};

/// Offset of a register in `struct pt_regs` (arch/x86/include/asm/ptrace.h, 6.18).
fn offset(name: &str) -> Option<i16> {
    const OFFSETS: [(&str, i16); 18] = [
        ("r15", 0),
        ("r14", 8),
        ("r13", 16),
        ("r12", 24),
        ("rbp", 32),
        ("rbx", 40),
        ("r11", 48),
        ("r10", 56),
        ("r9", 64),
        ("r8", 72),
        ("rax", 80),
        ("rcx", 88),
        ("rdx", 96),
        ("rsi", 104),
        ("rdi", 112),
        ("rip", 128),
        ("cs", 136),
        ("rsp", 152),
    ];
    OFFSETS.iter().find(|r| r.0 == name).map(|r| r.1)
}

/// Where the program finds an argument.
pub fn value(at: &ArgLocation, size: u8, signed: bool) -> Option<Value> {
    let context = |off, size| Some(Value::Context { off, size, signed });
    match at {
        ArgLocation::Argument(i) => context(offset(ARGUMENTS.get(usize::from(*i))?)?, size),
        ArgLocation::Result => context(offset(RESULT)?, size),
        ArgLocation::Register(r) => context(offset(r.name)? + i16::from(r.first), size.min(r.bytes)),
        ArgLocation::Memory { base, index, offset: disp } => {
            let index = match index {
                Some((name, factor)) => Some((offset(name)?, *factor)),
                None => None,
            };
            let base = match base {
                Some(name) => Some(offset(name)?),
                None => None,
            };
            Some(Value::User { base, index, disp: *disp, size, signed })
        }
        ArgLocation::Constant(n) => Some(Value::Constant(*n)),
        ArgLocation::Distance(plus) => Some(Value::Sum { off: offset("rip")?, plus: *plus }),
        ArgLocation::Record(_)
        | ArgLocation::RecordReference(_)
        | ArgLocation::EventAddress
        | ArgLocation::AtEventAddress
        | ArgLocation::Elapsed
        | ArgLocation::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::provider::location::{CODE_SEGMENT, REGISTERS, Register};

    #[test]
    fn every_register_of_the_catalogue_is_in_the_context() {
        assert!(REGISTERS.iter().chain([&CODE_SEGMENT.name]).all(|name| offset(name).is_some()));
        let at = |name: &str| value(&ArgLocation::Register(Register::named(name).unwrap()), 8, false).unwrap();
        assert_eq!(at("ah"), Value::Context { off: 81, size: 1, signed: false });
        assert_eq!(at("r15w"), Value::Context { off: 0, size: 2, signed: false });
        let third = value(&ArgLocation::Argument(2), 4, true);
        assert_eq!(third, Some(Value::Context { off: 96, size: 4, signed: true }));
        assert_eq!(value(&ArgLocation::Argument(6), 4, true), None);
    }
}
