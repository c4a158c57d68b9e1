//! `fentry:`, `fexit:`, `kprobe:` and `kretprobe:FUNCTION`: functions of the kernel, with the arguments that its types know.

use super::hook::{Hook, Ready, in_registers};
use super::tracepoint::described;
use super::{Place, Probe, Provider, Refusal, glob};
use bpf::probes::Value;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use sys::bpf::link::Link;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};
use sys::btf::{KernelBtf, Kind};
use sys::perf::attach as perf;
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
        let btf = KernelBtf::kernel().map_err(|e| {
            Refusal::Closed(format!("the kernel's types cannot be read: {e}"), "use a kernel with BTF".into())
        })?;
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
        let btf = KernelBtf::kernel().map_err(|e| {
            Refusal::Closed(format!("the kernel's types cannot be read: {e}"), "use a kernel with BTF".into())
        })?;
        let mut ready = Vec::new();
        for probe in self.list(pattern, true)? {
            let function = probe.name.split_once(':').map(|n| n.1.to_string()).unwrap_or_default();
            let id = btf.find(Kind::Func, &function).unwrap_or(0);
            let result = probe.args.iter().filter(|a| a.place != Place::Result).count() as u8;
            let hook = InKernel { function, id, result, at_return: self.at_return, kprobe: self.kprobe };
            ready.push(Ready { probe, hook: Box::new(hook) });
        }
        Ok(ready)
    }

    fn unusable(&self) -> Option<String> {
        // fentry says only when a program is loaded whether it is allowed.
        (self.kprobe && !Path::new("/sys/bus/event_source/devices/kprobe").exists())
            .then(|| "this kernel is built without kprobes".into())
    }
}

/// A function of the kernel.
struct InKernel {
    function: String,
    /// Of the kernel's types.
    id: u32,
    /// Where fexit has the result: behind the arguments.
    result: u8,
    at_return: bool,
    kprobe: bool,
}

impl Hook for InKernel {
    fn spec<'a>(&'a self, name: &'a str, insns: &'a [u8]) -> ProgramSpec<'a> {
        match self.kprobe {
            true => ProgramSpec::new(ProgramKind::Kprobe, name, insns),
            false => ProgramSpec::function(name, insns, self.id, self.at_return),
        }
    }

    /// The program and its trampoline; a breakpoint has the registers of where it was hit.
    fn own_frames(&self) -> u8 {
        if self.kprobe { 0 } else { 2 }
    }

    fn how(&self) -> String {
        match (self.kprobe, self.at_return) {
            (true, _) => "a breakpoint (perf kprobe)".into(),
            (false, false) => "fentry, else a breakpoint (kprobe)".into(),
            (false, true) => "fexit, else a breakpoint (kretprobe)".into(),
        }
    }

    fn attach(&self, program: &Program) -> io::Result<Vec<Link>> {
        Ok(vec![match self.kprobe {
            true => Link::perf(program, perf::kprobe(&self.function, 0, self.at_return)?, 0)?,
            false => Link::tracing(program)?,
        }])
    }

    fn value(&self, place: &Place, size: u8, signed: bool) -> Option<Value> {
        if self.kprobe {
            return in_registers(place, size, signed);
        }
        // The context is the arguments, 8 bytes each, and at the return the result.
        let nth = match place {
            Place::Argument(i) => *i,
            Place::Result => self.result,
            _ => return None,
        };
        Some(Value::Context { off: 8 * i16::from(nth), size, signed })
    }

    /// fentry and fexit have something to fall back on.
    fn instead(&self) -> Option<Box<dyn Hook>> {
        (!self.kprobe)
            .then(|| Box::new(InKernel { function: self.function.clone(), kprobe: true, ..*self }) as Box<dyn Hook>)
    }

    fn explain(&self, e: &io::Error) -> Option<(String, String)> {
        let word = if self.kprobe { "kprobes" } else { "fentry and fexit" };
        match e.kind() {
            io::ErrorKind::PermissionDenied => Some((format!("this kernel refuses {word}"), "use a tracepoint".into())),
            io::ErrorKind::NotFound => {
                Some((format!("this kernel is built without {word}"), "use a tracepoint".into()))
            }
            _ => None,
        }
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
                    described(btf.describe(*ty), name, Place::Argument(i as u8))
                };
                // A last parameter without a type stands for `...`.
                args.extend(p.params.iter().filter(|p| p.1 != 0).enumerate().map(arg));
            }
            if self.at_return && p.returns != 0 {
                args.push(described(btf.describe(p.returns), "retval", Place::Result));
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
