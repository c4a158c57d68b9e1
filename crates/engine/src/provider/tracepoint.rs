//! `tracepoint:CATEGORY:NAME`: static places of the kernel. Their fields come from tracefs; without access to it, names and
//! arguments come from the kernel's types, and the category, which those do not know, is shown as `*`.

use super::{ArgInfo, ArgLocation, ArgType, AttachPoint, Encoding, Probe, Provider, Ready, Refusal, kernel_types};
use lang::near::nearest;
use lang::pattern::{glob, is_pattern};
use std::collections::HashMap;
use std::io;
use sys::btf::KernelBtf;
use sys::tracefs::{self, Field};

/// The provider.
pub struct Tracepoint;

const FORM: &str = "tracepoint:CATEGORY:NAME: a static place in the kernel";

impl Provider for Tracepoint {
    fn name(&self) -> &'static str {
        "tracepoint"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        // A name alone is looked for in all categories.
        let (category, name) = pattern.split_once(':').unwrap_or(("*", pattern));
        // To list all of them takes a millisecond or two.
        if !is_pattern(pattern) && tracefs::has_tracepoint(category, name).unwrap_or(false) {
            return from_tracefs(&[(category.into(), name.into())], category, name, details);
        }
        match tracefs::tracepoints() {
            Ok(all) => from_tracefs(&all, category, name, details),
            Err(e) => from_types(category, name, details, &e),
        }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let closed = |e: &io::Error| {
            Refusal::Closed(
                format!("tracefs: {}", reason(e)),
                "run as root, or mount it: mount -t tracefs tracefs /sys/kernel/tracing".into(),
            )
        };
        tracefs::place().map_err(|e| closed(&e))?;
        let mut ready = Vec::new();
        for probe in self.list(pattern, true)? {
            let mut words = probe.name.splitn(3, ':').skip(1);
            let (category, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            // Records of the function tracer cannot be enabled one by one.
            if category == "ftrace" && is_pattern(pattern) {
                continue;
            }
            let id = tracefs::tracepoint_id(category, name).map_err(|e| closed(&e))?;
            let of_calls = category == "syscalls";
            ready.push(Ready::new(probe, AttachPoint::Tracepoint { id, of_calls }));
        }
        Ok(ready)
    }
}

fn from_tracefs(all: &[(String, String)], category: &str, name: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
    let matches =
        |(c, n): &&(String, String)| glob(category.as_bytes(), c.as_bytes()) && glob(name.as_bytes(), n.as_bytes());
    let mut found = Vec::new();
    for (category, name) in all.iter().filter(matches) {
        let fields = if details { tracefs::fields(category, name).unwrap_or_default() } else { Vec::new() };
        let args = fields.iter().map(field).collect();
        found.push(Probe { name: format!("tracepoint:{category}:{name}"), args, ..Probe::default() });
    }
    if !found.is_empty() {
        return Ok(found);
    }
    Err(nearest_of(all, category, name))
}

/// The nearest names: in all categories, in that category, or else the categories.
fn nearest_of(all: &[(String, String)], category: &str, name: &str) -> Refusal {
    let inside = |(c, n): &(String, String)| glob(category.as_bytes(), c.as_bytes()).then(|| n.clone());
    let names: Vec<String> = all.iter().filter_map(inside).collect();
    if names.is_empty() {
        let mut categories: Vec<&str> = all.iter().map(|t| t.0.as_str()).collect();
        categories.dedup();
        let near = nearest(category, categories.into_iter());
        return Refusal::Nothing(near.iter().map(|c| format!("tracepoint:{c}:*")).collect());
    }
    Refusal::nothing(&format!("tracepoint:{category}"), name, names.iter().map(String::as_str))
}

fn field(f: &Field) -> ArgInfo {
    let chars = f.c.starts_with("char[") || f.c.starts_with("const char[");
    let encoding = match () {
        _ if chars => Encoding::Chars,
        _ if f.c.contains('[') || f.data_loc => Encoding::Bytes,
        _ if f.c == "char *" || f.c == "const char *" => Encoding::Text,
        _ if f.c.ends_with('*') => Encoding::Pointer,
        _ if matches!(f.size, 1 | 2 | 4 | 8) => Encoding::Int,
        _ => Encoding::Bytes,
    };
    let location = if f.data_loc { ArgLocation::RecordReference(f.offset) } else { ArgLocation::Record(f.offset) };
    let (size, signed) = match in_word(&f.c).filter(|_| encoding == Encoding::Int && f.size == WORD) {
        Some(narrower) => narrower,
        None => (if f.data_loc { 0 } else { f.size }, f.signed),
    };
    ArgInfo { name: f.name.clone(), ty: ArgType { c: f.c.clone(), size, signed, encoding }, location }
}

/// Bytes of a register.
const WORD: u32 = 8;

/// Types of arguments of calls (include/linux/syscalls.h, 6.18) that are no pointers: bytes, and whether they have a sign.
const IN_WORDS: &[(&str, u32, bool)] = &[
    ("int", 4, true),
    ("unsigned int", 4, false),
    ("unsigned", 4, false),
    ("long", 8, true),
    ("unsigned long", 8, false),
    ("__s32", 4, true),
    ("__u32", 4, false),
    ("u32", 4, false),
    ("__u64", 8, false),
    ("u64", 8, false),
    ("aio_context_t", 8, false),
    ("clockid_t", 4, true),
    ("enum landlock_rule_type", 4, false),
    ("gid_t", 4, false),
    ("key_serial_t", 4, true),
    ("key_t", 4, true),
    ("loff_t", 8, true),
    ("mqd_t", 4, true),
    ("off_t", 8, true),
    ("pid_t", 4, true),
    ("qid_t", 4, false),
    ("rwf_t", 4, true),
    ("size_t", 8, false),
    ("timer_t", 4, true),
    ("uid_t", 4, false),
    ("umode_t", 2, false),
];

/// How many bytes count of a word that holds a value of a type, and whether it has a sign. The record of a call's entry has a word for
/// each argument, of which its format file says eight bytes without a sign, and whose upper half is whatever the register held.
fn in_word(c: &str) -> Option<(u32, bool)> {
    let c = c.strip_prefix("const ").unwrap_or(c);
    IN_WORDS.iter().find(|t| t.0 == c).map(|t| (t.1, t.2))
}

fn from_types(category: &str, name: &str, details: bool, why: &io::Error) -> Result<Vec<Probe>, Refusal> {
    let closed = |what: &str| {
        Refusal::Closed(format!("{what}: {}", reason(why)), "run as root, or name it as tracepoint:*:NAME".into())
    };
    // Whether a tracepoint belongs to the category is not known; one name can mean one only.
    if category != "*" && is_pattern(name) {
        return Err(closed("only tracefs has the categories of tracepoints"));
    }
    let btf = KernelBtf::kernel().map_err(|_| closed("neither tracefs nor the kernel's types can be read"))?;
    let all = kernel_types::tracepoints(&btf);
    let callers = if details { kernel_types::callers(&btf) } else { HashMap::new() };
    let matching = all.iter().filter(|t| glob(name.as_bytes(), t.0.as_bytes()));
    let found: Vec<Probe> = matching
        .map(|(n, id)| Probe {
            name: format!("tracepoint:*:{n}"),
            args: if details { kernel_types::arguments(&btf, *callers.get(n).unwrap_or(id)) } else { Vec::new() },
            note: if details { "category unknown: tracefs is not readable".into() } else { String::new() },
            ..Probe::default()
        })
        .collect();
    match found.is_empty() {
        true => Err(Refusal::nothing("tracepoint:*", name, all.iter().map(|t| t.0))),
        false => Ok(found),
    }
}

fn reason(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::NotFound => "it is not mounted",
        _ => "only root may read it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::btf::Kind;

    fn all() -> Vec<(String, String)> {
        let pairs = [("sched", "sched_switch"), ("sched", "sched_wakeup"), ("task", "task_newtask")];
        pairs.map(|(c, n)| (c.to_string(), n.to_string())).to_vec()
    }

    #[test]
    fn categories_and_names_are_matched_apart() {
        let names = |c: &str, n: &str| {
            from_tracefs(&all(), c, n, false).map(|v| v.into_iter().map(|p| p.name).collect::<Vec<_>>())
        };
        assert_eq!(names("sched", "*").unwrap().len(), 2);
        assert_eq!(names("*", "*new*").unwrap(), ["tracepoint:task:task_newtask"]);
        let near = |c: &str, n: &str| match names(c, n) {
            Err(Refusal::Nothing(near)) => near[0].clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(near("sched", "sched_swich"), "tracepoint:sched:sched_switch");
        assert_eq!(near("shced", "sched_switch"), "tracepoint:sched:*");
        assert_eq!(near("*", "sched_swich"), "tracepoint:*:sched_switch");
    }

    #[test]
    fn fields_have_their_forms() {
        let f = |c: &str, size, data_loc| {
            field(&Field { name: "f".into(), c: c.into(), offset: 8, size, signed: false, data_loc })
        };
        assert_eq!(f("char[16]", 16, false).ty.encoding, Encoding::Chars);
        let name = f("char[]", 4, true);
        assert_eq!(
            (name.ty.encoding, name.ty.size, name.location),
            (Encoding::Chars, 0, ArgLocation::RecordReference(8))
        );
        assert_eq!(f("const char *", 8, false).ty.encoding, Encoding::Text);
        assert_eq!(f("struct page *", 8, false).ty.encoding, Encoding::Pointer);
        assert_eq!(f("pid_t", 4, false).ty.encoding, Encoding::Int);
        assert_eq!(f("sigset_t", 128, false).ty.encoding, Encoding::Bytes);
    }

    #[test]
    fn arguments_of_calls_are_as_wide_as_their_types() {
        let f = |c: &str, size, signed| {
            field(&Field { name: "f".into(), c: c.into(), offset: 16, size, signed, data_loc: false }).ty
        };
        let dfd = f("int", 8, false);
        assert_eq!((dfd.size, dfd.signed, dfd.c.as_str()), (4, true, "int"));
        assert_eq!((f("const clockid_t", 8, false).size, f("umode_t", 8, false).size), (4, 2));
        // Arguments that have their own width, and addresses, stay as they are.
        for (c, size, signed) in [("int", 4, true), ("unsigned long", 8, false), ("u64", 8, false), ("dev_t", 4, false)]
        {
            assert_eq!((f(c, size, signed).size, f(c, size, signed).signed), (size, signed), "{c}");
        }
        assert_eq!(f("int *", 8, false).encoding, Encoding::Pointer);
    }

    /// The table has the types of all calls of this kernel, and they agree with the kernel's own types.
    #[test]
    fn types_of_calls_are_those_of_the_kernel() {
        let (Ok(all), Ok(btf)) = (tracefs::tracepoints(), KernelBtf::kernel()) else {
            return testkit::skip("kernel:tracefs", "neither tracefs nor the kernel's types can be read");
        };
        let mut unknown = Vec::new();
        for (category, name) in all.iter().filter(|t| t.0 == "syscalls" && t.1.starts_with("sys_enter_")) {
            let fields = tracefs::fields(category, name).unwrap();
            let words = fields.iter().filter(|f| f.size == WORD && !f.c.ends_with('*') && !f.c.contains("*const"));
            // Names of pointers.
            let words = words.filter(|f| !f.c.contains("cap_user_"));
            unknown.extend(words.filter(|f| in_word(&f.c).is_none()).map(|f| f.c.clone()));
        }
        assert_eq!(unknown, Vec::<String>::new());
        for (name, size, signed) in IN_WORDS {
            let Some(id) = btf.find(Kind::Typedef, name) else { continue };
            let d = btf.describe(id);
            assert_eq!((d.size, d.signed), (*size, *signed), "{name}");
        }
    }

    #[test]
    fn without_tracefs_the_kernel_s_types_tell() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        if KernelBtf::kernel().is_err() {
            return testkit::skip("kernel:btf", "no types of the kernel");
        }
        let found = from_types("sched", "sched_switch", true, &denied).unwrap();
        assert_eq!(found[0].name, "tracepoint:*:sched_switch");
        assert_eq!(found[0].args[1].to_string(), "struct task_struct *prev");
        assert!(matches!(from_types("sched", "*", false, &denied), Err(Refusal::Closed(..))));
        assert!(from_types("*", "*", false, &denied).unwrap().len() > 100);
        assert!(matches!(from_types("*", "sched_swich", false, &denied), Err(Refusal::Nothing(_))));
    }
}
