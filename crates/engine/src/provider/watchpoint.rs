//! `watchpoint:ADDR:LEN:MODE` and `watchpoint:PATH:FUNCTION+argN:LEN:MODE`: accesses to an address of the traced processes, by the processor's debug
//! registers. The address is given, or is an argument of each call of a function. `asyncwatchpoint:` does not stop the process until the
//! address is watched.

use super::uprobe::UPROBE;
use super::{ArgInfo, ArgLocation, ArgType, AttachPoint, Encoding, Probe, Provider, Ready, Refusal, word};
use crate::provider::attach_point::ArgumentWatch;
use sys::perf::attach::Access;

/// One of the two.
pub struct Watchpoint {
    name: &'static str,
    describe: &'static str,
    /// A process that calls the function is stopped until the address is watched.
    stops: bool,
}

/// Of an address, or of an argument.
pub static WATCHPOINT: Watchpoint = Watchpoint {
    name: "watchpoint",
    describe: "watchpoint:ADDR:LEN:MODE or watchpoint:PATH:FUNCTION+argN:LEN:MODE: LEN (1, 2, 4, 8) bytes written (w), read or written (rw), or executed (x)",
    stops: true,
};
/// Of an argument, without a stop.
pub static ASYNC: Watchpoint = Watchpoint {
    name: "asyncwatchpoint",
    describe: "asyncwatchpoint:PATH:FUNCTION+argN:LEN:MODE: as watchpoint, from shortly after the call on: the process is not stopped",
    stops: false,
};

/// The first address that no process has.
const END: u64 = 1 << 47;
/// How a function's argument is named behind it.
const ARGUMENT: &str = "+arg";

impl Provider for Watchpoint {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        if matches!(pattern, "*" | "ADDR:LEN:MODE") {
            return Ok(self.forms());
        }
        let watched = self.parse(pattern)?;
        match &watched.at {
            At::Address(_) => Ok(vec![self.probe(&watched, Probe::default(), details)]),
            At::Argument(function, _) => {
                let found = UPROBE.list(function, false)?;
                Ok(found.into_iter().map(|function| self.probe(&watched, function, details)).collect())
            }
        }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let watched = self.parse(pattern)?;
        let (len, access) = (watched.len, watched.access);
        let (function, argument) = match &watched.at {
            At::Address(address) => {
                let point = AttachPoint::Watch { address: *address, len, access };
                return Ok(vec![Ready::new(self.probe(&watched, Probe::default(), true), point)]);
            }
            At::Argument(function, argument) => (function, *argument),
        };
        let of = |Ready { probe, point, left_out }| {
            let AttachPoint::File(entries) = point else { return None };
            let point = ArgumentWatch { entries, argument, len, access, stops: self.stops };
            Some(Ready { probe: self.probe(&watched, probe, true), point: AttachPoint::WatchArgument(point), left_out })
        };
        Ok(UPROBE.ready(function)?.into_iter().filter_map(of).collect())
    }
}

impl Watchpoint {
    /// What probes look like, as probes.
    fn forms(&self) -> Vec<Probe> {
        let form = |form: &str, note: &str| Probe {
            name: format!("{}:{form}", self.name),
            note: format!("{note}, LEN: 1, 2, 4 or 8, MODE: w, rw or x"),
            ..Probe::default()
        };
        let of_address = form("ADDR:LEN:MODE", "ADDR: an address of the process");
        let of_argument = form("PATH:FUNCTION+argN:LEN:MODE", "argN: the address, an argument of each call");
        self.stops.then_some(of_address).into_iter().chain([of_argument]).collect()
    }

    fn parse(&self, pattern: &str) -> Result<Watched, Refusal> {
        let wrong = |why: &str, todo: &str| Err(Refusal::Wrong(why.into(), todo.into()));
        let form = || Refusal::Form(self.describe);
        // A path or a name may have colons.
        let [mode, len, at] = pattern.rsplitn(3, ':').collect::<Vec<_>>()[..] else { return Err(form()) };
        let at = At::parse(at, self.stops).ok_or_else(form)?;
        let Ok(len @ (1 | 2 | 4 | 8)) = len.parse() else { return Err(form()) };
        let access = match mode {
            "w" => Access::Write,
            "rw" | "wr" => Access::ReadWrite,
            "x" if len != 8 => return wrong("x86 watches an instruction only with length 8", "LEN 8"),
            "x" => Access::Execute,
            "r" => return wrong("x86 cannot watch reads alone", "MODE rw"),
            _ => return Err(form()),
        };
        match at {
            At::Address(END..) => {
                return wrong("it is not an address of a process", "name one below 0x800000000000");
            }
            At::Address(address) if access != Access::Execute && !address.is_multiple_of(len.into()) => {
                return wrong("x86 watches multiples of the length only", "name another address, or a smaller LEN");
            }
            At::Argument(_, 6..) => return wrong("only the first six arguments are in registers", "arg0 to arg5"),
            _ => {}
        }
        Ok(Watched { at, len, access })
    }

    /// The probe of an address, or of a function.
    fn probe(&self, watched: &Watched, function: Probe, details: bool) -> Probe {
        let mode = match watched.access {
            Access::Write => "w",
            Access::ReadWrite => "rw",
            Access::Execute => "x",
        };
        let at = match &watched.at {
            At::Address(address) => format!("{address:#x}"),
            At::Argument(_, n) => {
                let function = function.name.strip_prefix("uprobe:").unwrap_or(&function.name);
                format!("{function}{ARGUMENT}{n}")
            }
        };
        let name = format!("{}:{at}:{}:{mode}", self.name, watched.len);
        let args = if details { watched.arguments() } else { Vec::new() };
        Probe { name, args, aliases: Vec::new(), ..function }
    }
}

/// What is watched.
struct Watched {
    at: At,
    len: u8,
    access: Access,
}

/// Where.
enum At {
    /// This address.
    Address(u64),
    /// The addresses that are an argument: of functions `PATH:NAME`, the argument of this number.
    Argument(String, u8),
}

impl At {
    fn parse(text: &str, may_be_address: bool) -> Option<At> {
        if let Some((function, number)) = text.rsplit_once(ARGUMENT) {
            return Some(At::Argument(function.into(), number.parse().ok()?));
        }
        let address = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        address.ok().filter(|_| may_be_address).map(At::Address)
    }
}

impl Watched {
    /// The address; of data, what it holds after the access.
    fn arguments(&self) -> Vec<ArgInfo> {
        let ty = ArgType { c: "void *".into(), size: 8, signed: false, encoding: Encoding::Pointer };
        let address = ArgInfo { name: "addr".into(), ty, location: ArgLocation::EventAddress };
        let ty = word(&format!("uint{}", u32::from(self.len) * 8), self.len.into(), false);
        let location = match self.at {
            At::Address(address) => ArgLocation::Memory { base: None, index: None, offset: address as i64 },
            At::Argument(..) => ArgLocation::AtEventAddress,
        };
        let value = ArgInfo { name: "value".into(), ty, location };
        [address].into_iter().chain((self.access != Access::Execute).then_some(value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_processor_can_watch_has_one_name() {
        let name = |p: &str| WATCHPOINT.list(p, false).map(|found| found[0].name.clone());
        assert_eq!(name("0x1000:8:wr").unwrap(), "watchpoint:0x1000:8:rw");
        assert_eq!(name("4099:1:w").unwrap(), "watchpoint:0x1003:1:w");
        assert_eq!(name("0x1003:8:x").unwrap(), "watchpoint:0x1003:8:x");
        for form in ["", "0x1000", "0x1000:3:w", "x:8:w", "0x1000:8:q", "0x1000:8:w:1", "/bin/sh:f+arg:8:w"] {
            assert_eq!(name(form), Err(Refusal::Form(WATCHPOINT.describe)), "{form}");
        }
        for wrong in ["0x1000:8:r", "0x1003:2:w", "0x1000:4:x", "0xffffffff81000000:8:w", "/bin/sh:f+arg6:8:w"] {
            assert!(matches!(name(wrong), Err(Refusal::Wrong(..))), "{wrong}");
        }
        assert_eq!(ASYNC.list("0x1000:8:w", false).unwrap_err(), Refusal::Form(ASYNC.describe));
        let args =
            |p: &str| WATCHPOINT.list(p, true).unwrap()[0].args.iter().map(|a| a.to_string()).collect::<Vec<_>>();
        assert_eq!(args("0x1000:4:w"), ["void *addr", "uint32 value"]);
        assert_eq!(args("0x1000:8:x"), ["void *addr"]);
    }

    #[test]
    fn arguments_of_functions_are_watched_in_every_function_of_a_pattern() {
        let own = std::env::current_exe().unwrap();
        let own = own.display();
        let names = |of: &Watchpoint, p: &str| -> Vec<String> {
            of.list(&format!("{own}:{p}"), false).unwrap().into_iter().map(|p| p.name).collect()
        };
        assert_eq!(names(&WATCHPOINT, "main+arg1:4:wr"), [format!("watchpoint:{own}:main+arg1:4:rw")]);
        assert_eq!(names(&ASYNC, "main+arg1:8:w"), [format!("asyncwatchpoint:{own}:main+arg1:8:w")]);
        let ready = WATCHPOINT.ready(&format!("{own}:main+arg1:4:w")).unwrap();
        let AttachPoint::WatchArgument(of) = &ready[0].point else { panic!("no argument") };
        assert_eq!((of.entries.sites.len(), of.argument, of.len, of.stops), (1, 1, 4, true));
        assert_eq!(
            ready[0].probe.args.iter().map(|a| a.to_string()).collect::<Vec<_>>(),
            ["void *addr", "uint32 value"]
        );
    }
}
