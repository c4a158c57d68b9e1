//! `watchpoint:ADDR:LEN:MODE`: accesses to an address of the traced processes, by the processor's debug registers.

use super::{ArgInfo, ArgLocation, ArgType, AttachPoint, Encoding, Probe, Provider, Ready, Refusal, word};
use sys::perf::attach::Access;

/// The provider.
pub struct Watchpoint;

const FORM: &str =
    "watchpoint:ADDR:LEN:MODE: LEN (1, 2, 4, 8) bytes written (w), read or written (rw), or executed (x)";
/// The first address that no process has.
const END: u64 = 1 << 47;

impl Provider for Watchpoint {
    fn name(&self) -> &'static str {
        "watchpoint"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        if matches!(pattern, "*" | "ADDR:LEN:MODE") {
            let note = "ADDR: an address of the process, LEN: 1, 2, 4 or 8, MODE: w, rw or x".into();
            return Ok(vec![Probe { name: "watchpoint:ADDR:LEN:MODE".into(), note, ..Probe::default() }]);
        }
        let watched = Watched::parse(pattern)?;
        Ok(vec![watched.probe(details)])
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let watched = Watched::parse(pattern)?;
        let Watched { address, len, access } = watched;
        Ok(vec![Ready::new(watched.probe(true), AttachPoint::Watch { address, len, access })])
    }
}

/// What is watched.
struct Watched {
    address: u64,
    len: u8,
    access: Access,
}

impl Watched {
    fn parse(pattern: &str) -> Result<Watched, Refusal> {
        let wrong = |why: &str, todo: &str| Err(Refusal::Wrong(why.into(), todo.into()));
        let [address, len, mode] = pattern.split(':').collect::<Vec<_>>()[..] else { return Err(Refusal::Form(FORM)) };
        let address = match address.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => address.parse(),
        };
        let (Ok(address), Ok(len @ (1 | 2 | 4 | 8))) = (address, len.parse()) else { return Err(Refusal::Form(FORM)) };
        let access = match mode {
            "w" => Access::Write,
            "rw" | "wr" => Access::ReadWrite,
            "x" if len != 8 => return wrong("x86 watches an instruction only with length 8", "LEN 8"),
            "x" => Access::Execute,
            "r" => return wrong("x86 cannot watch reads alone", "MODE rw"),
            _ => return Err(Refusal::Form(FORM)),
        };
        if address >= END {
            return wrong("it is not an address of a process", "name one below 0x800000000000");
        }
        if access != Access::Execute && !address.is_multiple_of(len.into()) {
            return wrong("x86 watches multiples of the length only", "name another address, or a smaller LEN");
        }
        Ok(Watched { address, len, access })
    }

    fn probe(&self, details: bool) -> Probe {
        let mode = match self.access {
            Access::Write => "w",
            Access::ReadWrite => "rw",
            Access::Execute => "x",
        };
        let name = format!("watchpoint:{:#x}:{}:{mode}", self.address, self.len);
        let args = if details { self.arguments() } else { Vec::new() };
        Probe { name, args, ..Probe::default() }
    }

    /// The address; of data, what it holds after the access.
    fn arguments(&self) -> Vec<ArgInfo> {
        let ty = ArgType { c: "void *".into(), size: 8, signed: false, encoding: Encoding::Pointer };
        let address = ArgInfo { name: "addr".into(), ty, location: ArgLocation::EventAddress };
        let ty = word(&format!("uint{}", u32::from(self.len) * 8), self.len.into(), false);
        let location = ArgLocation::Memory { base: None, index: None, offset: self.address as i64 };
        let value = ArgInfo { name: "value".into(), ty, location };
        [address].into_iter().chain((self.access != Access::Execute).then_some(value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_processor_can_watch_has_one_name() {
        let name = |p: &str| Watchpoint.list(p, false).map(|found| found[0].name.clone());
        assert_eq!(name("0x1000:8:wr").unwrap(), "watchpoint:0x1000:8:rw");
        assert_eq!(name("4099:1:w").unwrap(), "watchpoint:0x1003:1:w");
        assert_eq!(name("0x1003:8:x").unwrap(), "watchpoint:0x1003:8:x");
        for form in ["", "0x1000", "0x1000:3:w", "x:8:w", "0x1000:8:q", "0x1000:8:w:1"] {
            assert_eq!(name(form), Err(Refusal::Form(FORM)), "{form}");
        }
        for wrong in ["0x1000:8:r", "0x1003:2:w", "0x1000:4:x", "0xffffffff81000000:8:w"] {
            assert!(matches!(name(wrong), Err(Refusal::Wrong(..))), "{wrong}");
        }
        let args =
            |p: &str| Watchpoint.list(p, true).unwrap()[0].args.iter().map(|a| a.to_string()).collect::<Vec<_>>();
        assert_eq!(args("0x1000:4:w"), ["void *addr", "uint32 value"]);
        assert_eq!(args("0x1000:8:x"), ["void *addr"]);
    }
}
