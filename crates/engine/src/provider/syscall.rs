//! `syscall:NAME`: a call as one event, with its arguments and its result; `syscall:NAME:entry` and `syscall:NAME:return`: one of its
//! ends alone, at the call's own tracepoint.

use super::tracepoint::Tracepoint;
use super::{ArgInfo, ArgLocation, ArgType, Encoding, Probe, Provider, Ready, Refusal, word};
use events::registry::{by_name, syscalls};
use events::schema::{Arg, Ret, Schema};
use events::types::{Fmt, Int, Type};
use lang::pattern::glob;

/// The provider.
pub struct Syscall;

impl Provider for Syscall {
    fn name(&self) -> &'static str {
        "syscall"
    }

    fn describe(&self) -> &'static str {
        "syscall:NAME[:entry|:return]: a system call from its entry to its end, or one of the two alone"
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        if let Some((name, end)) = one_end(pattern) {
            return Ok(ready(name, end)?
                .into_iter()
                .map(|r| Probe { args: if details { r.probe.args } else { Vec::new() }, ..r.probe })
                .collect());
        }
        let mut all: Vec<&Schema> = syscalls().filter(|s| s.name != "raw").collect();
        order::by_key(&mut all, |s| s.name);
        let matching = all.iter().filter(|s| glob(pattern.as_bytes(), s.name.as_bytes()));
        let found: Vec<Probe> = matching.map(|s| probe(s, details)).collect();
        if found.is_empty() { Err(Refusal::nothing("syscall", pattern, all.iter().map(|s| s.name))) } else { Ok(found) }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        match one_end(pattern) {
            Some((name, end)) => ready(name, end),
            // The backends have programs for all calls together.
            None => Err(Refusal::Form(self.describe())),
        }
    }
}

/// The name of a call and which end of it is meant.
fn one_end(pattern: &str) -> Option<(&str, &str)> {
    pattern.rsplit_once(':').filter(|(_, end)| matches!(*end, "entry" | "return"))
}

/// The tracepoints of one end of the calls that match.
fn ready(name: &str, end: &str) -> Result<Vec<Ready>, Refusal> {
    let way = if end == "entry" { "enter" } else { "exit" };
    let mut found = Vec::new();
    for s in Syscall.list(name, false)?.iter().filter_map(|p| by_name(p.name.strip_prefix("syscall:")?)) {
        let tracepoint = format!("syscalls:sys_{way}_{}", kernel_name(s.name));
        for mut r in Tracepoint.ready(&tracepoint)? {
            r.probe.name = format!("syscall:{}:{end}", s.name);
            r.probe.args.retain(|a| !a.name.ends_with("syscall_nr"));
            let whole = probe(s, true).args;
            if end == "entry" && r.probe.args.len() == s.args.len() {
                // The tracepoint has all arguments as wide as a register; the table knows better.
                for (a, known) in r.probe.args.iter_mut().zip(whole) {
                    (a.name, a.ty) = (known.name, known.ty);
                }
            } else if let (Some(a), Some(known)) = (r.probe.args.first_mut(), whole.last().filter(|_| end == "return"))
            {
                a.name = "retval".into();
                if known.name == "retval" && known.ty.encoding == Encoding::Int {
                    a.ty = ArgType { size: 8, ..known.ty.clone() };
                }
            }
            found.push(r);
        }
    }
    Ok(found)
}

fn probe(s: &Schema, details: bool) -> Probe {
    let mut args = Vec::new();
    if details {
        args.extend(s.args.iter().enumerate().map(|(i, a)| argument(i, a)));
        if let Ret::Int(int) = s.ret {
            args.push(ArgInfo { name: "retval".into(), ty: int_type(&int), location: ArgLocation::Result });
        }
    }
    Probe { name: format!("syscall:{}", s.name), args, ..Probe::default() }
}

fn argument(i: usize, a: &Arg) -> ArgInfo {
    let pointer = |c: &str, encoding| ArgType { c: c.into(), size: 8, signed: false, encoding };
    let ty = match a.ty {
        Type::Int(int) => int_type(&int),
        Type::Str(_) => pointer("const char *", Encoding::Text),
        _ => pointer("void *", Encoding::Pointer),
    };
    ArgInfo { name: a.name.into(), ty, location: ArgLocation::Argument(i as u8) }
}

fn int_type(int: &Int) -> ArgType {
    if int.fmt == Fmt::Addr {
        return ArgType { c: "void *".into(), size: 8, signed: false, encoding: Encoding::Pointer };
    }
    let c = format!("{}int{}", if int.signed { "" } else { "u" }, u32::from(int.size) * 8);
    word(&c, int.size.into(), int.signed)
}

/// The kernel's name of a call where its tracepoints differ from the call's (`arch/x86/entry/syscalls/syscall_64.tbl`).
pub fn kernel_name(name: &str) -> &str {
    match name {
        "stat" => "newstat",
        "fstat" => "newfstat",
        "lstat" => "newlstat",
        "uname" => "newuname",
        "sendfile" => "sendfile64",
        "umount2" => "umount",
        name => name,
    }
}
