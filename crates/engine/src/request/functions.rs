//! Which functions are traced: those of `function:GLOB` and `trapline graph`.

use crate::capture::captures::Captures;
use crate::error::{Error, Result};
use crate::request::heap_enabling;
use crate::request::parse::{Request, mistake};
use crate::request::probe_enabling::ProbeEnabling;
use abi::stub::Variant;
use events::Schema;
use lang::pattern::glob;
use std::sync::Arc;

/// Bytes of a string in an argument that are captured.
pub const STRINGS: u16 = 32;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// Patterns of names, beside those of the enablings; none here and there: all functions.
    pub wanted: Vec<String>,
    /// Patterns of names that are not wanted, whatever the others say.
    pub unwanted: Vec<String>,
    /// Patterns of names that are shown of what is recorded; empty: all.
    pub shown: Vec<String>,
    /// Functions of shared libraries too.
    pub libraries: bool,
    /// Calls that take less than this many ns are not recorded.
    pub minimum: Option<u64>,
    /// Bytes of the buffer of each process, where that is not the plan's.
    pub buffer: Option<usize>,
    /// Programs whose functions are traced, as patterns of their paths or names; empty: all.
    pub programs: Vec<String>,
    /// Arguments and results too.
    pub values: Option<Values>,
    /// Entries alone are recorded: nothing happens when a call ends.
    pub entries: bool,
    /// Sums are kept of calls, and no records.
    pub sums: Option<Sums>,
    /// Records say where functions were called from: for stacks that are copied meanwhile.
    pub callers: bool,
    /// Patterns of the enablings that the session begins with.
    pub enabled: Vec<String>,
    /// None at all: the agent is there for something else.
    pub none: bool,
    /// Allocations too.
    pub heap: Option<heap_enabling::Wanted>,
    /// Probes in files, with the numbers of their enablings.
    pub probes: Probes,
}

/// Probes in files that the agent reaches.
#[derive(Clone, Debug, Default)]
pub struct Probes(pub Vec<Numbered>);

/// An enabling, by its number.
pub type Numbered = (u32, Arc<ProbeEnabling>);

impl PartialEq for Probes {
    fn eq(&self, other: &Probes) -> bool {
        let same = |((a, p), (b, q)): (&Numbered, &Numbered)| a == b && Arc::ptr_eq(p, q);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl Eq for Probes {}

/// Arguments and results, as they are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// This many bytes of a string; 0: none.
    pub strings: u16,
    /// For scripts: addresses are numbers, and the strings that they lead to are further arguments ([`events::values::text_of`]).
    pub numbers: bool,
}

/// What is kept of calls where there are no records of them, by thread and function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// How many there were.
    Calls,
    /// And how many have ended, and what is wanted of their durations, in units of so many ns.
    Durations(u64),
}

impl Sums {
    /// Numbers of functions of which sums are kept are below this.
    pub fn numbers(self) -> u32 {
        match self {
            Sums::Calls => abi::thread::ROWS,
            Sums::Durations(_) => abi::thread::MEASURED,
        }
    }
}

/// Functions that are recorded, as one `-e` enables them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionEnabling {
    /// A pattern of names.
    pub pattern: String,
    /// Only records that pass this.
    pub filter: Option<String>,
    /// Patterns of names that were taken away from it.
    pub without: Vec<String>,
}

impl FunctionEnabling {
    /// All functions.
    pub fn all() -> FunctionEnabling {
        FunctionEnabling { pattern: "*".into(), ..FunctionEnabling::default() }
    }

    /// The name of its probe.
    pub fn probe(&self) -> String {
        format!("{}{}", Functions::PROVIDER, self.pattern)
    }

    /// Whether it has the function with these names: those of the linker, and the demangled ones.
    pub fn has<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> bool {
        let any = |pattern: &String| names.clone().any(|name| matches(pattern, name));
        any(&self.pattern) && !self.without.iter().any(any)
    }
}

impl Functions {
    /// What the names of their probes begin with.
    pub const PROVIDER: &str = "function:";

    /// Whether the function with these names is wanted: those of the linker, and the demangled ones.
    pub fn wants<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> bool {
        let any = |p: &String| names.clone().any(|name| matches(p, name));
        (self.are_all() || self.patterns().any(any)) && !self.unwanted.iter().any(any)
    }

    /// What was asked for by name, as it was asked, and the patterns.
    pub fn asked(&self) -> Vec<(String, String)> {
        let shown = self.wanted.iter().chain(&self.shown).map(|p| (format!("-F {p}"), p.clone()));
        let enabled = self.enabled.iter().map(|p| (format!("{}{p}", Functions::PROVIDER), p.clone()));
        enabled.chain(shown).collect()
    }

    /// Whether names matter.
    pub fn is_by_name(&self) -> bool {
        !self.are_all() || !self.unwanted.is_empty()
    }

    /// What the agent records, in words.
    pub fn what(&self) -> &'static str {
        match (self.none, &self.heap) {
            (true, heap) if heap.as_ref().is_none_or(|h| h.only_stacks) => "probes",
            (true, _) => "allocations",
            (false, Some(_)) => "functions and allocations",
            (false, None) => "functions",
        }
    }

    /// The classes of their events that filters can be about, without those of the heap.
    pub fn classes(&self) -> Vec<&'static Schema> {
        let mut all = Vec::new();
        if !self.none {
            all.extend([events::functions::entry(), events::functions::exit()]);
            all.extend(self.values.map(|_| events::functions::with_values()).into_iter().flatten());
        }
        all
    }

    /// Whether none are asked for by name.
    pub fn are_all(&self) -> bool {
        self.patterns().next().is_none()
    }

    fn patterns(&self) -> impl Iterator<Item = &String> {
        self.wanted.iter().chain(&self.enabled)
    }

    /// Whether functions of the program at this path are wanted.
    pub fn wants_program(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.programs.is_empty() || self.programs.iter().any(|p| matches(p, path) || matches(p, name))
    }

    /// What their stubs do.
    pub fn variant(&self) -> Variant {
        match (self.sums, self.minimum) {
            (Some(Sums::Calls), _) => Variant::Count,
            (Some(Sums::Durations(_)), _) => Variant::Measured,
            (None, Some(_)) => Variant::Timed,
            (None, None) if self.entries => Variant::Entry,
            (None, None) if self.callers => Variant::Callers,
            (None, None) => Variant::Paired,
        }
    }
}

/// Whether a pattern is one of a function's name.
pub fn matches(pattern: &str, name: &str) -> bool {
    glob(pattern.as_bytes(), name.as_bytes())
}

/// What the requests enable of functions: an enabling for each pattern.
///
/// # Errors
/// A filter is wrong, or they capture what records of functions do not have.
pub fn function_enablings(requests: &[Request]) -> Result<Vec<FunctionEnabling>> {
    let mut all: Vec<FunctionEnabling> = Vec::new();
    for request in requests {
        let of_functions = |n: &&String| n.starts_with(Functions::PROVIDER);
        for name in request.names.iter().filter(of_functions) {
            if request.captures != Captures::default() || !request.strings.is_empty() {
                let why = "records of functions have a time, a thread and a function, and no captures";
                return Err(Error::usage(format!("-e {name}"), why, "leave the captures out"));
            }
            if let Some(text) = &request.filter {
                let parsed = lang::filter::parse(text, &[]);
                let typed = parsed.and_then(|p| p.check_all(&[events::functions::entry(), events::functions::exit()]));
                typed.map_err(|d| mistake(name, text, &d))?;
            }
            let pattern = name[Functions::PROVIDER.len()..].to_string();
            if all.iter().any(|e| e.pattern == pattern && e.filter == request.filter) {
                continue;
            }
            all.push(FunctionEnabling { pattern, filter: request.filter.clone(), ..Default::default() });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_chosen_by_both_names() {
        let list = |v: &[&str]| v.iter().map(|s| s.to_string()).collect();
        let some = Functions { wanted: list(&["main", "std::*"]), unwanted: list(&["*grow*"]), ..Functions::default() };
        let wants = |functions: &Functions, names: &[&str]| functions.wants(names.iter().copied());
        assert!(wants(&some, &["main"]) && wants(&some, &["_ZNSt", "std::vec"]) && wants(&some, &["__main", "main"]));
        assert!(!wants(&some, &["other"]) && !wants(&some, &["_ZNSt", "std::vec::grow"]));
        assert!(wants(&Functions::default(), &["x"]));
        let enabled = Functions { enabled: list(&["main"]), ..Functions::default() };
        assert!(wants(&enabled, &["main"]) && !wants(&enabled, &["other"]) && enabled.is_by_name());
        let cc1 = Functions { programs: list(&["cc1*"]), ..Functions::default() };
        assert!(cc1.wants_program("/usr/lib/gcc/cc1plus") && !cc1.wants_program("/usr/bin/gcc"));
    }
}
