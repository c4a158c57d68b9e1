//! `profile:UNIT:N` on every CPU and `interval:UNIT:N` on one: clocks. `blocked:UNIT:N`: looks at threads that do not run.

use super::{ArgInfo, ArgLocation, ArgType, AttachPoint, Probe, Provider, Ready, Refusal};
use lang::pattern::{glob, is_pattern};
use sys::perf::attach::Rate;

/// A clock.
pub struct Timer {
    name: &'static str,
    describe: &'static str,
    /// The shortest period, ns, and what is said of shorter ones.
    shortest: (u64, &'static str),
}

/// On every CPU.
pub static PROFILE: Timer = Timer {
    name: "profile",
    describe: "profile:hz|s|ms|us:N: on every CPU, N times a second or every N",
    shortest: SHORTEST,
};
/// On one CPU.
pub static INTERVAL: Timer = Timer {
    name: "interval",
    describe: "interval:hz|s|ms|us:N: on one CPU, N times a second or every N",
    shortest: SHORTEST,
};
/// No clock of the kernel: trapline looks at `/proc`.
pub static BLOCKED: Timer = Timer {
    name: "blocked",
    describe: "blocked:hz|s|ms|us:N: threads that do not run, looked at N times a second or every N",
    shortest: (1_000_000, "at most 1000 times a second"),
};

/// Units, and how many ns one is (`hz`: a frequency).
const UNITS: [(&str, Option<u64>); 4] =
    [("hz", None), ("ms", Some(1_000_000)), ("s", Some(1_000_000_000)), ("us", Some(1_000))];
/// The shortest period of a clock: what comes more often leaves no time for anything else.
const SHORTEST: (u64, &str) = (10_000, "at most 100000 times a second");

/// The period in ns of `UNIT:N`; none: no such unit, or out of a clock's range.
pub fn period_ns(unit: &str, n: u64) -> Option<u64> {
    let (_, ns) = UNITS.iter().find(|u| u.0 == unit)?;
    let period = match ns {
        Some(ns) => ns.checked_mul(n)?,
        None => 1_000_000_000u64.checked_div(n)?,
    };
    (SHORTEST.0..=i64::MAX as u64).contains(&period).then_some(period)
}

/// The period in ns of a probe `profile:UNIT:N`; none of any other.
pub fn clock_period(probe: &str) -> Option<u64> {
    let mut words = probe.strip_prefix("profile:")?.split(':');
    period_ns(words.next()?, words.next()?.parse().ok()?)
}

/// Whether a probe is one of threads that do not run, each event of which says for how long.
pub fn is_of_blocked(probe: &str) -> bool {
    probe.strip_prefix(BLOCKED.name).is_some_and(|rest| rest.starts_with(':'))
}

impl Timer {
    /// What its events have.
    fn args(&self) -> Vec<ArgInfo> {
        let ty = ArgType { c: "u64".into(), size: 8, ..ArgType::default() };
        let elapsed = || ArgInfo { name: "ns".into(), ty, location: ArgLocation::Elapsed };
        is_of_blocked(&format!("{}:", self.name)).then(elapsed).into_iter().collect()
    }
}

impl Provider for Timer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn list(&self, pattern: &str, _: bool) -> Result<Vec<Probe>, Refusal> {
        let (unit, n) = pattern.split_once(':').unwrap_or((pattern, "*"));
        let units: Vec<&str> = UNITS.iter().map(|u| u.0).filter(|u| glob(unit.as_bytes(), u.as_bytes())).collect();
        if units.is_empty() {
            return Err(Refusal::nothing(self.name, unit, UNITS.iter().map(|u| u.0)));
        }
        if is_pattern(n) || n == "N" {
            let note = "N: a number of your choice";
            let form = |u: &str| Probe {
                name: format!("{}:{u}:N", self.name),
                args: self.args(),
                note: note.into(),
                ..Probe::default()
            };
            return Ok(units.into_iter().map(form).collect());
        }
        let number = n.parse().map_err(|_| Refusal::Form(self.describe))?;
        let (shortest, refusal) = self.shortest;
        let valid = units.into_iter().filter_map(|u| Some((u, period_ns(u, number).filter(|ns| *ns >= shortest)?)));
        let probe = |(u, ns)| Probe {
            name: format!("{}:{u}:{number}", self.name),
            args: self.args(),
            note: format!("every {ns} ns"),
            ..Probe::default()
        };
        let found: Vec<Probe> = valid.map(probe).collect();
        if found.is_empty() { Err(Refusal::Form(refusal)) } else { Ok(found) }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let mut ready = Vec::new();
        for probe in self.list(pattern, false)? {
            let mut words = probe.name.split(':').skip(1);
            let unit = words.next().unwrap_or_default();
            let n = words.next().and_then(|n| n.parse().ok()).ok_or(Refusal::Form(self.describe))?;
            let period = period_ns(unit, n).ok_or(Refusal::Form(self.describe))?;
            let point = match self.name {
                _ if is_of_blocked(&probe.name) => AttachPoint::Blocked { period },
                name => {
                    let rate = if unit == "hz" { Rate::Hz(n) } else { Rate::Ns(period) };
                    AttachPoint::Clock { rate, every_cpu: name == PROFILE.name }
                }
            };
            ready.push(Ready::new(probe, point));
        }
        Ok(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods() {
        assert_eq!(period_ns("hz", 100), Some(10_000_000));
        assert_eq!(period_ns("ms", 3), Some(3_000_000));
        assert_eq!(period_ns("us", 10), Some(10_000));
        for (unit, n) in [("hz", 0), ("hz", 100_001), ("us", 9), ("s", u64::MAX), ("s", 0), ("min", 1)] {
            assert_eq!(period_ns(unit, n), None, "{unit} {n}");
        }
        let names = |p: &str| PROFILE.list(p, false).map(|v| v.into_iter().map(|p| p.name).collect::<Vec<_>>());
        assert_eq!(names("hz:99").unwrap(), ["profile:hz:99"]);
        assert_eq!(names("*").unwrap().len(), 4);
        assert_eq!(names("?s").unwrap(), ["profile:ms:N", "profile:us:N"]);
        let blocked = |p: &str| BLOCKED.list(p, true);
        assert_eq!(blocked("ms:5").unwrap()[0].args[0].name, "ns");
        assert!(blocked("us:999").is_err() && blocked("hz:1000").is_ok());
        assert!(is_of_blocked("blocked:ms:5") && !is_of_blocked("blocked") && !is_of_blocked("profile:hz:99"));
        assert!(names("hz:many").is_err() && names("hz:0").is_err() && names("day:1").is_err());
    }
}
