//! `fentry:`, `fexit:`, `kprobe:` and `kretprobe:[MODULE:]FUNCTION`: functions of the kernel and of its modules, with the arguments that their
//! types know.

use super::attach_point::FunctionPoint;
use super::kernel_types::{described, kernel_types};
use super::location::ARGUMENTS;
use super::{ArgInfo, ArgLocation, AttachPoint, Probe, Provider, Ready, Refusal, word};
use lang::pattern::glob;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use sys::btf::{KernelBtf, Kind};
use sys::proc::KernelSymbols;
use sys::tracefs::{self, Traceable};

/// One of the four.
pub struct Function {
    name: &'static str,
    describe: &'static str,
    at_return: bool,
    kprobe: bool,
}

/// At the entry.
pub static FENTRY: Function = Function {
    name: "fentry",
    describe: "fentry:FUNCTION: a function of the kernel, entered",
    at_return: false,
    kprobe: false,
};
/// At the return, with the arguments.
pub static FEXIT: Function = Function {
    name: "fexit",
    describe: "fexit:FUNCTION: a function of the kernel, returning, with its arguments",
    at_return: true,
    kprobe: false,
};
/// At the entry, by a breakpoint.
pub static KPROBE: Function = Function {
    name: "kprobe",
    describe: "kprobe:FUNCTION: a function of the kernel, entered (by a breakpoint)",
    at_return: false,
    kprobe: true,
};
/// At the return.
pub static KRETPROBE: Function = Function {
    name: "kretprobe",
    describe: "kretprobe:FUNCTION: a function of the kernel, returning",
    at_return: true,
    kprobe: true,
};

/// What a pattern asks for: `[MODULE:]FUNCTION[+OFFSET]`.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'p> {
    /// `vmlinux` is the kernel itself.
    module: Option<&'p str>,
    name: &'p str,
    offset: u64,
}

impl<'p> Asked<'p> {
    fn of(pattern: &'p str) -> Option<Asked<'p>> {
        let (module, rest) = match pattern.split_once(':') {
            Some((module, rest)) => (Some(module), rest),
            None => (None, pattern),
        };
        let (name, offset) = match rest.split_once('+') {
            Some((name, offset)) => (name, number(offset)?),
            None => (rest, 0),
        };
        (!name.is_empty() && !name.contains(':')).then_some(Asked { module, name, offset })
    }

    fn matches(&self, name: &str, module: Option<&str>) -> bool {
        let in_module = self.module.is_none_or(|m| glob(m.as_bytes(), module.unwrap_or(KERNEL).as_bytes()));
        in_module && glob(self.name.as_bytes(), name.as_bytes())
    }

    /// The name of a probe, behind its provider: that of a module, where one was asked for.
    fn name_of(&self, f: &Known) -> String {
        let module = f.module.as_ref().filter(|_| self.module.is_some());
        let offset = if self.offset == 0 { String::new() } else { format!("+{}", self.offset) };
        format!("{}{}{offset}", module.map_or(String::new(), |m| format!("{m}:")), f.name)
    }
}

/// What scripts call the kernel without its modules.
const KERNEL: &str = "vmlinux";

/// `16`, `0x10`
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A function, and its id in the types that have it, or 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    name: String,
    module: Option<String>,
    id: u32,
}

/// The types of the kernel and of its modules. Those of a module are read when somebody asks for one of its functions.
struct Types {
    kernel: KernelBtf,
    modules: HashMap<String, Option<KernelBtf>>,
}

impl Types {
    fn new() -> Result<Types, Refusal> {
        Ok(Types { kernel: kernel_types()?, modules: HashMap::new() })
    }

    fn of(&mut self, module: Option<&str>) -> Option<&KernelBtf> {
        let Some(module) = module else { return Some(&self.kernel) };
        if !self.modules.contains_key(module) {
            self.modules.insert(module.into(), self.kernel.with_module(module).ok());
        }
        self.modules.get(module)?.as_ref()
    }

    /// Finds the ids of functions, which are sorted by name.
    fn identify(&mut self, functions: &mut [Known]) {
        let modules: BTreeSet<Option<String>> = functions.iter().map(|f| f.module.clone()).collect();
        let own = self.kernel.len();
        for module in modules {
            let Some(btf) = self.of(module.as_deref()) else { continue };
            // The types of a module are behind those of the kernel.
            let skip = if module.is_some() { own } else { 0 };
            for (id, name) in btf.all(Kind::Func).filter(|(id, _)| *id as usize > skip) {
                let first = functions.partition_point(|f| f.name.as_str() < name);
                let same = functions[first..].iter_mut().take_while(|f| f.name == name);
                same.filter(|f| f.module == module && f.id == 0).for_each(|f| f.id = id);
            }
        }
    }
}

impl Provider for Function {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let (asked, mut types) = (self.asked(pattern)?, Types::new()?);
        let found = self.found(&asked, &mut types)?;
        Ok(found.iter().map(|f| self.probe(&asked, &mut types, f, details)).collect())
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let (asked, mut types) = (self.asked(pattern)?, Types::new()?);
        let mut ready = Vec::new();
        // Elsewhere there may be another function of the name.
        let by_address = self.kprobe && (asked.offset != 0 || asked.module.is_some_and(|m| m != KERNEL));
        let symbols = if by_address { KernelSymbols::read().ok() } else { None };
        for f in self.found(&asked, &mut types)? {
            let probe = self.probe(&asked, &mut types, &f, true);
            let arguments = probe.args.iter().filter(|a| a.location != ArgLocation::Result).count() as u8;
            let address = self.place(&asked, &f, symbols.as_ref())?;
            let (at_return, by_breakpoint) = (self.at_return, self.kprobe);
            let Known { name, module, id } = f;
            let offset = asked.offset;
            let point = FunctionPoint { name, module, address, offset, id, arguments, at_return, by_breakpoint };
            ready.push(Ready::new(probe, AttachPoint::Function(point)));
        }
        Ok(ready)
    }

    fn unusable(&self) -> Option<String> {
        // fentry says only when a program is loaded whether it is allowed.
        (self.kprobe && !Path::new("/sys/bus/event_source/devices/kprobe").exists())
            .then(|| "this kernel is built without kprobes".into())
    }
}

impl Function {
    fn asked<'p>(&self, pattern: &'p str) -> Result<Asked<'p>, Refusal> {
        let form = match (self.kprobe, self.at_return) {
            (true, false) => "kprobe:[MODULE:]FUNCTION[+OFFSET]",
            (true, true) => "kretprobe:[MODULE:]FUNCTION",
            (false, false) => "fentry:[MODULE:]FUNCTION",
            (false, true) => "fexit:[MODULE:]FUNCTION",
        };
        let asked = Asked::of(pattern).ok_or(Refusal::Form(form))?;
        if asked.offset != 0 && (!self.kprobe || self.at_return) {
            return Err(Refusal::Wrong(
                "only an entry by a breakpoint has an offset".into(),
                format!("write kprobe:{pattern}"),
            ));
        }
        Ok(asked)
    }

    /// The functions that match, sorted by name. Of several with one name the first one counts; those of the kernel itself come first.
    fn found(&self, asked: &Asked<'_>, types: &mut Types) -> Result<Vec<Known>, Refusal> {
        let refused = self.refused();
        let mut found: Vec<Known> = Vec::new();
        let mut add = |name: &str, module: Option<&str>, id| {
            if asked.matches(name, module) && !refused.contains(name) {
                found.push(Known { name: name.into(), module: module.map(str::to_string), id });
            }
        };
        let traceable = Traceable::read().ok();
        match &traceable {
            Some(all) => all.iter().for_each(|(name, module)| add(name, module, 0)),
            None => types.kernel.all(Kind::Func).for_each(|(id, name)| add(name, None, id)),
        }
        found.sort();
        match asked.module {
            Some(_) => found.dedup(),
            None => found.dedup_by(|b, a| a.name == b.name),
        }
        types.identify(&mut found);
        // Breakpoints need no types.
        found.retain(|f| f.id != 0 || self.kprobe);
        if found.is_empty() {
            return Err(self.absent(asked, traceable.as_ref(), &types.kernel));
        }
        Ok(found)
    }

    /// Why nothing matches.
    fn absent(&self, asked: &Asked<'_>, traceable: Option<&Traceable>, kernel: &KernelBtf) -> Refusal {
        let module = asked.module.filter(|m| *m != KERNEL);
        let is_there = || KernelSymbols::read().ok()?.function(module, asked.name);
        if !asked.name.contains(['*', '?']) && is_there().is_some() {
            let why = "the kernel has it, and does not let it be traced (notrace, or a breakpoint is not allowed)";
            return Refusal::Wrong(why.into(), "use another function, or a tracepoint".into());
        }
        let everything = Asked { name: "*", ..*asked };
        let known: Vec<(&str, Option<&str>)> = match traceable {
            Some(all) => all.iter().collect(),
            None => kernel.all(Kind::Func).map(|(_, name)| (name, None)).collect(),
        };
        let others = known.iter().filter(|(name, m)| everything.matches(name, *m)).map(|f| f.0);
        match Refusal::nothing(self.name, asked.name, others) {
            Refusal::Nothing(near) if near.is_empty() && module.is_some() => {
                Refusal::Wrong("no such function, or module".into(), "`lsmod` lists the modules that are loaded".into())
            }
            other => other,
        }
    }

    /// The address of a function, where its name is not enough.
    fn place(&self, asked: &Asked<'_>, f: &Known, symbols: Option<&KernelSymbols>) -> Result<Option<u64>, Refusal> {
        let Some((address, size)) = symbols.and_then(|all| all.function(f.module.as_deref(), &f.name)) else {
            return Ok(None);
        };
        if asked.offset >= size {
            let why = format!("{} has {size} bytes", f.name);
            return Err(Refusal::Wrong(why, "use a smaller offset".into()));
        }
        Ok(f.module.as_ref().map(|_| address))
    }

    fn refused(&self) -> HashSet<String> {
        if self.kprobe { tracefs::kprobe_blacklist().unwrap_or_default() } else { HashSet::new() }
    }

    fn probe(&self, asked: &Asked<'_>, types: &mut Types, f: &Known, details: bool) -> Probe {
        let mut probe = Probe { name: format!("{}:{}", self.name, asked.name_of(f)), ..Probe::default() };
        if !details {
            return probe;
        }
        let types = types.of(f.module.as_deref());
        // Within a function the registers have other contents.
        let known = types.filter(|_| asked.offset == 0).and_then(|btf| Some((btf, btf.prototype(f.id)?)));
        let Some((btf, p)) = known else {
            probe.args = registers(self.at_return);
            return probe;
        };
        // A kretprobe's registers are those of the return: the arguments are gone.
        if !(self.kprobe && self.at_return) {
            // A last parameter without a type means `...`.
            for (i, (name, ty)) in p.params.iter().filter(|p| p.1 != 0).enumerate() {
                let mut arg = described(btf.describe(*ty), name, ArgLocation::Argument(i as u8));
                // The others are on the kernel's stack.
                if self.kprobe && i >= ARGUMENTS.len() {
                    arg.location = ArgLocation::Unknown;
                }
                let number = format!("arg{i}");
                if arg.name != number {
                    probe.aliases.push((number, arg.name.clone()));
                }
                probe.args.push(arg);
            }
        }
        if self.at_return && p.returns != 0 {
            probe.args.push(described(btf.describe(p.returns), "retval", ArgLocation::Result));
        }
        probe
    }
}

/// The registers of arguments, or that of the result, of a function that no types describe.
fn registers(at_return: bool) -> Vec<ArgInfo> {
    let arg = |name: String, location| ArgInfo { name, ty: word("unsigned long", 8, false), location };
    match at_return {
        true => vec![ArgInfo { name: "retval".into(), ty: word("long", 8, true), location: ArgLocation::Result }],
        false => (0..ARGUMENTS.len()).map(|i| arg(format!("arg{i}"), ArgLocation::Argument(i as u8))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_modules_and_offsets() {
        let asked = |module, name, offset| Some(Asked { module, name, offset });
        assert_eq!(Asked::of("vfs_*"), asked(None, "vfs_*", 0));
        assert_eq!(Asked::of("xfs:xfs_file_open"), asked(Some("xfs"), "xfs_file_open", 0));
        assert_eq!(Asked::of("vfs_read+0x10"), asked(None, "vfs_read", 16));
        for wrong in ["vfs_read+", "vfs_read+x", "a:b:c", "", "xfs:"] {
            assert_eq!(Asked::of(wrong), None, "{wrong}");
        }
        let found = |module: Option<&str>| Known { name: "f".into(), module: module.map(str::to_string), id: 1 };
        let name = |pattern, module| Asked::of(pattern).map(|a| (a.matches("f", module), a.name_of(&found(module))));
        assert_eq!(name("f*", Some("m")), Some((true, "f".into())));
        assert_eq!(name("m:f+4", Some("m")), Some((true, "m:f+4".into())));
        assert_eq!(name("vmlinux:f", None), Some((true, "f".into())));
        assert_eq!(name("vmlinux:f", Some("m")).map(|n| n.0), Some(false));
    }

    #[test]
    fn offsets_are_those_of_entries_by_breakpoints() {
        assert!(KPROBE.asked("vfs_read+8").is_ok());
        for of in [&KRETPROBE, &FENTRY, &FEXIT] {
            assert!(matches!(of.asked("vfs_read+8"), Err(Refusal::Wrong(..))));
        }
        assert!(matches!(KPROBE.asked("a:b:c"), Err(Refusal::Form(_))));
    }

    #[test]
    fn functions_have_the_arguments_of_the_kernel_s_types() {
        if KernelBtf::kernel().is_err() {
            return testkit::skip("kernel:btf", "no types of the kernel");
        }
        let args = |f: &Function| {
            let found = f.list("vfs_read", true).unwrap();
            found[0].args.iter().map(|a| a.to_string()).collect::<Vec<_>>()
        };
        let entry = ["struct file *file", "char *buf", "size_t count", "loff_t *pos"];
        assert_eq!(args(&FENTRY), entry);
        assert_eq!(args(&KPROBE), entry);
        assert_eq!(args(&FEXIT), [&entry[..], &["ssize_t retval"]].concat());
        assert_eq!(args(&KRETPROBE), ["ssize_t retval"]);
        let found = KPROBE.list("vmlinux:vfs_read", true).unwrap();
        assert_eq!(
            (found[0].name.as_str(), found[0].aliases[2].clone()),
            ("kprobe:vfs_read", ("arg2".into(), "count".into()))
        );
        assert!(FENTRY.list("vfs_*", false).unwrap().len() > 20);
        let Err(Refusal::Nothing(near)) = FENTRY.list("vfs_raed", false) else { panic!() };
        assert!(near.contains(&"fentry:vfs_read".to_string()), "{near:?}");
    }
}
