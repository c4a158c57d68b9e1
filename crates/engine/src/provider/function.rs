//! `fentry:`, `fexit:`, `kprobe:` and `kretprobe:FUNCTION`: functions of the kernel, with the arguments that its types know.

use super::attach_point::FunctionPoint;
use super::kernel_types::{described, kernel_types};
use super::location::ARGUMENTS;
use super::{ArgLocation, AttachPoint, Probe, Provider, Ready, Refusal};
use lang::pattern::glob;
use std::collections::HashSet;
use std::path::Path;
use sys::btf::{KernelBtf, Kind};
use sys::tracefs;

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

impl Provider for Function {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let btf = kernel_types()?;
        let (traceable, refused) = (tracefs::traceable_functions().ok(), self.refused());
        let usable = |name: &str| traceable.as_ref().is_none_or(|t| t.contains(name)) && !refused.contains(name);
        let mut all: Vec<(&str, u32)> = btf.all(Kind::Func).filter(|(_, n)| usable(n)).map(|(id, n)| (n, id)).collect();
        all.sort_unstable();
        all.dedup_by_key(|f| f.0);
        let wanted = all.iter().filter(|f| glob(pattern.as_bytes(), f.0.as_bytes()));
        let found: Vec<Probe> = wanted.map(|(name, id)| self.probe(&btf, name, *id, details)).collect();
        match found.is_empty() {
            true => Err(Refusal::nothing(self.name, pattern, all.iter().map(|f| f.0))),
            false => Ok(found),
        }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let btf = kernel_types()?;
        let mut ready = Vec::new();
        for probe in self.list(pattern, true)? {
            let name = probe.name.split_once(':').map(|n| n.1.to_string()).unwrap_or_default();
            let id = btf.find(Kind::Func, &name).unwrap_or(0);
            let arguments = probe.args.iter().filter(|a| a.location != ArgLocation::Result).count() as u8;
            let (at_return, by_breakpoint) = (self.at_return, self.kprobe);
            let point = FunctionPoint { name, id, arguments, at_return, by_breakpoint };
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
    fn refused(&self) -> HashSet<String> {
        if self.kprobe { tracefs::kprobe_blacklist().unwrap_or_default() } else { HashSet::new() }
    }

    fn probe(&self, btf: &KernelBtf, name: &str, id: u32, details: bool) -> Probe {
        let mut args = Vec::new();
        if let Some(p) = details.then(|| btf.prototype(id)).flatten() {
            // A kretprobe's registers are those of the return: the arguments are gone.
            if !(self.kprobe && self.at_return) {
                let arg = |(i, (name, ty)): (usize, &(String, u32))| {
                    let mut arg = described(btf.describe(*ty), name, ArgLocation::Argument(i as u8));
                    // The others are on the kernel's stack.
                    if self.kprobe && i >= ARGUMENTS.len() {
                        arg.location = ArgLocation::Unknown;
                    }
                    arg
                };
                // A last parameter without a type means `...`.
                args.extend(p.params.iter().filter(|p| p.1 != 0).enumerate().map(arg));
            }
            if self.at_return && p.returns != 0 {
                args.push(described(btf.describe(p.returns), "retval", ArgLocation::Result));
            }
        }
        Probe { name: format!("{}:{name}", self.name), args, ..Probe::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(FENTRY.list("vfs_*", false).unwrap().len() > 20);
        let Err(Refusal::Nothing(near)) = FENTRY.list("vfs_raed", false) else { panic!() };
        assert!(near.contains(&"fentry:vfs_read".to_string()), "{near:?}");
    }
}
