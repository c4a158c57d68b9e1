//! The catalogue of probes, as scripts see it: which a point means, and the types of what they have.

use super::kernel_types::{KernelTypes, pointee};
use ctf::trace::Trace;
use engine::pipeline::functions::shown_name;
use engine::provider::{self, ArgInfo, Probe, quoting};
use engine::request::functions;
use engine::request::probe_enabling;
use engine::rights;
use engine::{Error, Result};
use events::functions::Table;
use events::io_uring;
use events::registry;
use events::schema::{Class, Ret, Schema};
use events::types::{Fmt, Type as Field};
use events::values::Shape;
use kernel::objects::{self, Objects};
use lang::pattern::glob;
use lang::script::attach::Point;
use lang::script::cdecl::Struct;
use lang::script::types::{Space, Type};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

/// More probes than this are asked for by their pattern: they share a program.
pub const APART: usize = 64;

/// How a clause sees an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum As {
    /// Its entry: a call's tracepoint `sys_enter_…`, in the event of the whole call.
    Entry,
    /// Its end: a call's tracepoint `sys_exit_…`.
    Exit,
    /// As it is.
    Whole,
}

/// The catalogue of probes, as scripts see it.
pub struct Catalogue {
    /// Tracepoints of calls are served by the events of calls: who traces without rights has no others.
    pub of_calls: bool,
    /// The process that `-p` names.
    pub child: Option<u32>,
    /// The program whose functions are traced.
    program: Option<String>,
    /// `-c` starts a process.
    pub starts: bool,
    /// Classes of a trace, whose probes are the catalogue.
    recorded: Option<Vec<&'static Schema>>,
    /// They are those of several traces.
    several: bool,
    /// Functions of each trace that has their values.
    functions: Vec<Table>,
    /// Patterns of the script that was recorded: the probes that they were then.
    found: Found,
    known: RefCell<HashMap<String, Rc<[Probe]>>>,
    types: KernelTypes,
}

/// Patterns and the names of their probes, each with other names of its arguments.
pub type Found = HashMap<String, Vec<(String, Vec<(String, String)>)>>;

/// What a probe of a script is made of.
pub enum Kind {
    /// Calls, by a pattern of their names.
    Calls(String, As),
    /// What happens to processes: the event's name.
    Process(String),
    /// Functions that the agent patches, by a pattern; at their return.
    Functions(String, bool),
    /// A probe of the heap.
    Heap(String),
    /// Probes with programs of their own.
    Probes(String),
    /// None: begin, end, an interval, a signal, objects of the kernel.
    Own,
}

impl Catalogue {
    /// Of this machine. `command`: the program that is started.
    pub fn new(of_calls: bool, child: Option<u32>, command: Option<&OsString>) -> Catalogue {
        let mut catalogue = Catalogue {
            of_calls,
            child,
            program: command.and_then(|c| c.to_str()).map(str::to_string),
            starts: command.is_some(),
            recorded: None,
            several: false,
            functions: Vec::new(),
            found: Found::new(),
            known: RefCell::default(),
            types: KernelTypes::default(),
        };
        if catalogue.program.is_none() && child.is_some() {
            catalogue.program = Some(catalogue.file(""));
        }
        catalogue
    }

    /// Of traces: what they have.
    pub fn recorded(traces: &[Trace], found: Found) -> Catalogue {
        let has_values = |trace: &&Trace| trace.classes().any(|c| c.name == events::values::CLASS);
        let mut classes: Vec<&'static Schema> = traces.iter().flat_map(Trace::classes).collect();
        order::by_key(&mut classes, |class| class.id);
        classes.dedup_by_key(|class| class.id);
        Catalogue {
            of_calls: true,
            child: None,
            program: None,
            starts: false,
            recorded: Some(classes),
            several: traces.len() > 1,
            functions: traces.iter().filter(has_values).map(|trace| trace.functions(shown_name)).collect(),
            found,
            known: RefCell::default(),
            types: KernelTypes::default(),
        }
    }

    /// What was looked for, and found.
    pub fn found(&self) -> Found {
        let of = |p: &Probe| (p.name.clone(), p.aliases.clone());
        self.known.borrow().iter().map(|(pattern, found)| (pattern.clone(), found.iter().map(of).collect())).collect()
    }

    /// Whether it is of a trace that has no values of functions.
    pub fn lacks_values(&self) -> bool {
        self.recorded.is_some() && self.functions.is_empty()
    }

    /// Whether a trace has a class of such a name.
    fn has(&self, name: &str) -> bool {
        self.recorded.iter().flatten().any(|s| glob(name.as_bytes(), s.name.as_bytes()))
    }

    /// What a probe is made of.
    pub fn kind(&self, point: &Point) -> Kind {
        let parts: Vec<&str> = point.parts.iter().map(String::as_str).collect();
        // A trace may have the tracepoint itself.
        if matches!((point.provider.name, parts.len()), ("tracepoint" | "syscall", 2..)) && self.has(&point.name()) {
            return Kind::Probes(point.name());
        }
        let quoted = quoting::quote;
        match (point.provider.name, &parts[..]) {
            ("begin" | "end" | "interval" | "self" | "iter" | "test" | "bench", _) => Kind::Own,
            ("syscall", [name]) => Kind::Calls((*name).into(), As::Whole),
            ("syscall", [name, end]) if self.of_calls => {
                Kind::Calls((*name).into(), if *end == "entry" { As::Entry } else { As::Exit })
            }
            ("tracepoint", ["raw_syscalls", name @ ("sys_enter" | "sys_exit")]) if self.of_calls => {
                Kind::Calls("*".into(), if *name == "sys_enter" { As::Entry } else { As::Exit })
            }
            ("tracepoint", ["syscalls", name]) if self.of_calls => match name.split_once("_enter_") {
                Some((_, call)) => Kind::Calls(plain(call).into(), As::Entry),
                None => Kind::Calls(plain(name.split_once("_exit_").map_or("", |n| n.1)).into(), As::Exit),
            },
            ("process", [name, ..]) => Kind::Process((*name).into()),
            ("function", [name, end @ ..]) => Kind::Functions((*name).into(), !end.is_empty()),
            ("heap", [name, ..]) => Kind::Heap(format!("heap:{name}")),
            ("uprobe" | "uretprobe", [path, .., function]) => {
                Kind::Probes(format!("{}:{}:{}", point.provider.name, quoted(&self.file(path)), quoted(function)))
            }
            ("usdt", [path, rest @ ..]) => {
                let rest: Vec<String> = rest.iter().map(|r| quoted(r)).collect();
                Kind::Probes(format!("usdt:{}:{}", quoted(&self.file(path)), rest.join(":")))
            }
            ("rawtracepoint", [.., name]) => Kind::Probes(format!("rawtracepoint:{name}")),
            ("watchpoint" | "asyncwatchpoint", [function, len, mode]) if function.contains("+arg") => {
                let program = quoted(self.program.as_deref().unwrap_or_default());
                Kind::Probes(format!("{}:{program}:{}:{len}:{mode}", point.provider.name, quoted(function)))
            }
            ("watchpoint" | "asyncwatchpoint", [path, function, len, mode]) => {
                let (path, function) = (quoted(&self.file(path)), quoted(function));
                Kind::Probes(format!("{}:{path}:{function}:{len}:{mode}", point.provider.name))
            }
            ("software" | "hardware", [name, count @ ..]) => {
                let (name, default) = counter(name);
                let count = count.first().map_or(default.to_string(), |n| (*n).into());
                Kind::Probes(format!("{}:{name}:{count}", point.provider.name))
            }
            ("profile", [_]) => Kind::Probes(format!("profile:us:{}", point.period.unwrap_or(0) / 1000)),
            _ => Kind::Probes(point.name()),
        }
    }

    /// The file of a probe: the program of -p, where it has no name; and where only that process sees it, as that process sees it.
    fn file(&self, path: &str) -> String {
        let Some(pid) = self.child else { return path.into() };
        let seen = format!("/proc/{pid}/root{path}");
        match path {
            "" => std::fs::read_link(format!("/proc/{pid}/exe")).map_or(String::new(), |p| p.display().to_string()),
            path if path.starts_with('/') && !Path::new(path).exists() && Path::new(&seen).exists() => seen,
            path => path.into(),
        }
    }

    /// The objects that a probe walks over.
    pub fn objects(&self, point: &Point) -> Result<&'static Objects> {
        let refuse = |why, todo: &str| Err(Error::usage(point.name(), why, todo));
        if self.recorded.is_some() {
            return refuse("a trace has events only", "leave the clause out");
        }
        let names = || objects::ALL.iter().map(|o| o.name).collect::<Vec<_>>().join(", ");
        match point.parts.first().and_then(|name| Objects::find(name)) {
            Some(_) if !rights::is_root() => refuse("objects of the kernel are for root", "run trapline as root"),
            Some(found) => Ok(found),
            None => refuse("no such objects", &format!("they are {}", names())),
        }
    }

    /// The probes that a pattern matches, with their arguments.
    pub fn find(&self, pattern: &str) -> Result<Rc<[Probe]>> {
        if let Some(found) = self.known.borrow().get(pattern) {
            return Ok(Rc::clone(found));
        }
        let found: Rc<[Probe]> = match &self.recorded {
            None => listed(pattern)?,
            Some(classes) => match self.found.get(pattern) {
                Some(found) => classes.iter().filter_map(|s| of_class(s, found)).collect(),
                None => of_trace(classes, pattern)?,
            },
        }
        .into();
        self.known.borrow_mut().insert(pattern.into(), Rc::clone(&found));
        Ok(found)
    }

    /// What functions take, or return: what all of a name have in common.
    pub fn of_functions(&self, pattern: &str, at_return: bool) -> Known {
        if self.recorded.is_none() || self.functions.is_empty() {
            let Some(program) = self.program.as_ref().filter(|_| self.recorded.is_none()) else { return Known::Late };
            let provider = if at_return { "uretprobe" } else { "uprobe" };
            let probes = format!("{provider}:{}:{}", quoting::quote(program), quoting::quote(pattern));
            let Ok(found) = self.find(&probes) else { return Known::Late };
            // Where they are not described, they have registers.
            let is_described = |p: &&Probe| at_return || p.args.is_empty() || !p.aliases.is_empty();
            // Strings by value are what str() takes, and nothing else.
            let is_string = |a: &ArgInfo| ["&str", "String", "string"].iter().any(|end| a.ty.c.ends_with(end));
            let text = |a: &ArgInfo| is_string(a).then(|| Type::Pointer(Box::new(Type::int(1, true)), Space::User));
            let one = |a: &ArgInfo| Some((a.name.clone(), type_of(a, Space::User).or_else(|| text(a))?));
            let of = |p: &Probe| p.args.iter().filter_map(one).collect();
            return common(found.iter().filter(is_described).map(of)).map_or(Known::Never, Known::Now);
        }
        let fits = |table: &Table, n: u32| table.names(n).any(|name| functions::matches(pattern, name));
        let of = |(table, n): (&Table, u32)| {
            let signature = table.signature(n)?;
            let one = |(name, shape): (&str, &Shape)| Some((name.to_string(), type_of_shape(shape)?));
            Some(match at_return {
                true => signature.result.iter().filter_map(|shape| one(("retval", shape))).collect(),
                false => signature.arguments.iter().filter_map(|(name, shape)| one((name, shape))).collect(),
            })
        };
        let all = self.functions.iter().flat_map(|table| (1..=table.last()).map(move |n| (table, n)));
        common(all.filter(|(table, n)| fits(table, *n)).filter_map(of)).map_or(Known::Never, Known::Now)
    }

    /// The arguments that all probes of a pattern have.
    fn common(&self, pattern: &str) -> Option<Vec<(String, Type)>> {
        let found = self.find(pattern).ok()?;
        let (first, others) = found.split_first()?;
        let space = space_of(pattern);
        // Operations have names of their own for what they have in common.
        let of_operations = pattern.starts_with(io_uring::PREFIX) && !others.is_empty();
        let of = |p: &Probe| -> Vec<(String, Type)> {
            let one = |(nth, a): (usize, &ArgInfo)| {
                let name = if of_operations { *io_uring::FIELDS.get(nth)? } else { &a.name };
                Some((name.to_string(), type_of(a, space)?))
            };
            p.args.iter().enumerate().filter_map(one).collect()
        };
        let mut all = of(first);
        // The names of raw arguments.
        for (other, own) in &first.aliases {
            if let Some((_, ty)) = all.iter().find(|a| a.0 == *own) {
                let ty = ty.clone();
                all.push((other.clone(), ty));
            }
        }
        for other in others {
            let theirs = of(other);
            all.retain(|a| theirs.contains(a));
        }
        Some(all)
    }
}

/// What is known of functions before they are called.
pub enum Known {
    /// Names and types.
    Now(Vec<(String, Type)>),
    /// Nothing: they are in other files than the program that is started.
    Late,
    /// Nothing: they are not described.
    Never,
}

/// What all of several lists have.
fn common(mut lists: impl Iterator<Item = Vec<(String, Type)>>) -> Option<Vec<(String, Type)>> {
    let mut all = lists.next()?;
    lists.for_each(|other| all.retain(|a| other.contains(a)));
    Some(all)
}

/// The type that a value of a function has in scripts; none where they cannot read it.
fn type_of_shape(shape: &Shape) -> Option<Type> {
    let pointer = |of| Some(Type::Pointer(Box::new(of), Space::User));
    match shape {
        Shape::Int { size: size @ (1 | 2 | 4 | 8), signed, .. } => Some(Type::int(*size, *signed)),
        Shape::Bool(_) => Some(Type::int(1, false)),
        Shape::Char(size @ (1 | 2 | 4)) => Some(Type::int(*size, true)),
        Shape::Pointer => pointer(Type::default()),
        Shape::Text | Shape::String => pointer(Type::int(1, true)),
        _ => None,
    }
}

/// Of a pattern whose file is a pattern too: provider, file, and name.
pub fn in_files(pattern: &str) -> Option<(&str, &str, &str)> {
    let mut words = pattern.splitn(3, ':');
    let (provider, file, name) = (words.next()?, words.next()?, words.next()?);
    (["uprobe", "uretprobe", "usdt"].contains(&provider) && file.contains('*')).then_some((provider, file, name))
}

/// The probes of this machine that a pattern matches. The last part of a file's path may be a pattern: files without such probes are passed
/// over.
fn listed(pattern: &str) -> Result<Vec<Probe>> {
    let Some((provider, file, name)) = in_files(pattern) else { return provider::list(pattern, true) };
    let (dir, base) = file.rsplit_once('/').unwrap_or((".", file));
    let names = std::fs::read_dir(if dir.is_empty() { "/" } else { dir }).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|n| glob(base.as_bytes(), n.as_bytes()));
    names.sort_unstable();
    let of_file = |n: String| {
        let path = quoting::quote(&format!("{dir}/{n}"));
        provider::list(&format!("{provider}:{path}:{name}"), true).unwrap_or_default()
    };
    let found: Vec<Probe> = names.into_iter().flat_map(of_file).collect();
    match found.is_empty() {
        true => Err(Error::usage(pattern, "no file has such a probe", "name one file, to see what it has")),
        false => Ok(found),
    }
}

/// The name of a counter, where a script has a short one, and for how many events it counts one where it does not say so.
fn counter(name: &str) -> (&str, u64) {
    match name {
        "cpu" | "cpu-clock" => ("cpu-clock", 1_000_000),
        "task-clock" => ("task-clock", 1_000_000),
        "faults" | "page-faults" => ("page-faults", 100),
        "minor-faults" => ("minor-faults", 100),
        "cs" | "context-switches" => ("context-switches", 1000),
        "cpu-cycles" | "cycles" => ("cpu-cycles", 1_000_000),
        "instructions" => ("instructions", 1_000_000),
        "cache-references" => ("cache-references", 1_000_000),
        "cache-misses" => ("cache-misses", 1_000_000),
        "branches" | "branch-instructions" => ("branch-instructions", 100_000),
        "branch-misses" => ("branch-misses", 100_000),
        "bus-cycles" => ("bus-cycles", 100_000),
        "frontend-stalls" => ("stalled-cycles-frontend", 1_000_000),
        "backend-stalls" => ("stalled-cycles-backend", 1_000_000),
        "ref-cycles" => ("ref-cycles", 1_000_000),
        name => (name, 1),
    }
}

/// The probes of a trace that a pattern matches.
fn of_trace(classes: &[&'static Schema], pattern: &str) -> Result<Vec<Probe>> {
    let whole = quoting::unquote(pattern);
    let mut words = whole.splitn(3, ':');
    let (provider, file, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default(), words.next());
    // A library may stand without its directory and version.
    let is_file = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let short = name.split(".so").next().unwrap_or(name);
        path == file || !file.contains('/') && [short, short.strip_prefix("lib").unwrap_or(short), name].contains(&file)
    };
    let fits = |name: &str| {
        let name = quoting::unquote(name);
        if glob(whole.as_bytes(), name.as_bytes()) {
            return true;
        }
        let mut own = name.splitn(3, ':');
        own.next() == Some(provider)
            && own.next().is_some_and(is_file)
            && rest.zip(own.next()).is_some_and(|(p, n)| glob(p.as_bytes(), n.as_bytes()))
    };
    let probe = |s: &&'static Schema| Probe {
        name: s.name.into(),
        args: s.args.iter().map(arg_of).collect(),
        ..Probe::default()
    };
    let found: Vec<Probe> = classes.iter().filter(|s| s.class == Class::Probe && fits(s.name)).map(probe).collect();
    if found.is_empty() {
        let names: Vec<&str> = classes.iter().filter(|s| s.class == Class::Probe).map(|s| s.name).take(20).collect();
        let todo = if names.is_empty() { "it has calls only".into() } else { format!("it has {}", names.join(", ")) };
        return Err(Error::usage(pattern, "the trace has no such probe", todo));
    }
    Ok(found)
}

/// The probe of a class, where it is one of those that were found.
fn of_class(schema: &'static Schema, found: &[(String, Vec<(String, String)>)]) -> Option<Probe> {
    let (name, aliases) = found.iter().find(|(name, _)| name == schema.name)?;
    let args = schema.args.iter().map(arg_of).collect();
    Some(Probe { name: name.clone(), args, aliases: aliases.clone(), ..Probe::default() })
}

/// An argument, as a trace has it: of strings, the bytes themselves.
fn arg_of(arg: &events::schema::Arg) -> provider::ArgInfo {
    use provider::{ArgInfo, ArgLocation, ArgType, Encoding};
    let ty = match arg.ty {
        Field::Int(int) if matches!(int.fmt, Fmt::Addr | Fmt::Hex) => {
            ArgType { size: 8, encoding: Encoding::Pointer, ..ArgType::default() }
        }
        Field::Int(int) => {
            ArgType { size: int.size.into(), signed: int.signed, encoding: Encoding::Int, ..ArgType::default() }
        }
        _ => ArgType { encoding: Encoding::Chars, ..ArgType::default() },
    };
    ArgInfo { name: arg.name.into(), ty, location: ArgLocation::Record(0) }
}

/// The name of a call, where its tracepoints have the kernel's.
fn plain(kernel: &str) -> &str {
    match kernel {
        "newstat" => "stat",
        "newfstat" => "fstat",
        "newlstat" => "lstat",
        "newuname" => "uname",
        "sendfile64" => "sendfile",
        "umount" => "umount2",
        name => name,
    }
}

/// Whose memory the addresses of a probe's arguments are of.
fn space_of(pattern: &str) -> Space {
    let users = ["uprobe:", "uretprobe:", "usdt:", "syscall:", "heap:", "io_uring:", "tracepoint:syscalls:"];
    if users.iter().any(|p| pattern.starts_with(p)) { Space::User } else { Space::Kernel }
}

/// The type that an argument has in scripts; none where events do not have it.
fn type_of(arg: &provider::ArgInfo, space: Space) -> Option<Type> {
    use provider::Encoding;
    probe_enabling::field_type(arg)?;
    Some(match arg.ty.encoding {
        Encoding::Int | Encoding::Shown(_) => Type::int(arg.ty.size as u8, arg.ty.signed),
        Encoding::Text => Type::Pointer(Box::new(Type::int(1, true)), space),
        Encoding::Chars if arg.ty.size > 0 => Type::Str(arg.ty.size - 1),
        Encoding::Chars | Encoding::Bytes => Type::Str(lang::script::types::MAX_STRLEN),
        Encoding::Pointer => Type::Pointer(Box::new(pointee(&arg.ty.c).unwrap_or_default()), space),
        Encoding::Float => Type::UINT,
    })
}

/// The arguments of a call, as scripts see them.
fn of_schema(schema: &Schema) -> Vec<(String, Type)> {
    let ty = |field: &Field| match field {
        Field::Int(int) if int.fmt == Fmt::Addr => Type::Pointer(Box::default(), Space::User),
        Field::Int(int) => Type::int(int.size, int.signed),
        Field::Str(_) if schema.class == Class::Process => Type::Str(lang::script::types::MAX_STRLEN),
        Field::Str(_) => Type::Pointer(Box::new(Type::int(1, true)), Space::User),
        _ => Type::Pointer(Box::default(), Space::User),
    };
    schema.args.iter().map(|a| (a.name.to_string(), ty(&a.ty))).collect()
}

fn call(pattern: &str) -> Option<&'static Schema> {
    registry::syscalls().find(|s| glob(pattern.as_bytes(), s.name.as_bytes()))
}

impl lang::script::World for Catalogue {
    fn args(&self, point: &Point) -> Option<Vec<(String, Type)>> {
        match self.kind(point) {
            Kind::Own => {
                let word = |(name, of): &(&str, Option<&str>)| {
                    let address = |of: &str| Type::Pointer(Box::new(Type::Struct(of.into())), Space::Kernel);
                    ((*name).to_string(), of.map_or(Type::int(4, false), address))
                };
                Some(Objects::find(point.parts.first()?)?.words.iter().map(word).collect())
            }
            // Those that all calls have.
            Kind::Calls(name, role) if name.contains(['*', '?']) => Some(match role {
                As::Entry => vec![("id".into(), Type::INT)],
                As::Exit => vec![("id".into(), Type::INT), ("ret".into(), Type::INT)],
                As::Whole => Vec::new(),
            }),
            Kind::Calls(name, As::Exit) => call(&name).map(|_| vec![("ret".into(), Type::INT)]),
            Kind::Calls(name, _) => call(&name).map(of_schema),
            Kind::Process(name) => process(&name).map(of_schema),
            Kind::Functions(pattern, _) => match self.of_functions(&pattern, false) {
                Known::Now(all) => Some(all),
                Known::Late | Known::Never => None,
            },
            Kind::Heap(name) => {
                let probe = engine::heap::classes::Probe::named(&name)?;
                let ty = |n: &str| match n {
                    "address" => Type::Pointer(Box::default(), Space::User),
                    _ => Type::UINT,
                };
                Some(probe.fields(false).into_iter().map(|(n, _)| (n.to_string(), ty(n))).collect())
            }
            Kind::Probes(pattern) => self.common(&pattern),
        }
    }

    fn late(&self, point: &Point) -> Option<Type> {
        let Kind::Functions(pattern, _) = self.kind(point) else { return None };
        matches!(self.of_functions(&pattern, false), Known::Late).then_some(Type::INT)
    }

    fn retval(&self, point: &Point) -> Option<Type> {
        match self.kind(point) {
            Kind::Functions(pattern, true) => match self.of_functions(&pattern, true) {
                Known::Now(all) => all.into_iter().find(|a| a.0 == "retval").map(|a| a.1),
                Known::Late | Known::Never => None,
            },
            Kind::Calls(name, _) => match call(&name)?.ret {
                Ret::Int(int) => Some(Type::int(8, int.signed)),
                _ => Some(Type::INT),
            },
            Kind::Probes(pattern) => self.common(&pattern)?.into_iter().find(|a| a.0 == "retval").map(|a| a.1),
            _ => None,
        }
    }

    fn structure(&self, name: &str) -> Option<Struct> {
        self.types.structure(name)
    }

    fn typedef(&self, name: &str) -> Option<Type> {
        self.types.typedef(name)
    }

    fn starts(&self) -> bool {
        self.starts
    }

    fn is_several(&self) -> bool {
        self.several
    }

    fn kernel_symbol(&self, name: &str) -> Option<u64> {
        if self.recorded.is_some() || !rights::is_root() { None } else { sys::proc::kernel_symbol(name) }
    }

    /// Of the unified hierarchy: the number of a directory is that of its group (`kernfs_node_id()`, include/linux/kernfs.h).
    fn cgroup(&self, path: &str) -> Option<u64> {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::metadata(path).ok().filter(|_| self.recorded.is_none())?;
        (found.is_dir() && Path::new(path).join("cgroup.controllers").exists()).then(|| found.ino())
    }

    fn symbol(&self, point: &Point, name: &str) -> Option<u64> {
        let (Kind::Probes(pattern), "uprobe" | "usdt") = (self.kind(point), point.provider.name) else { return None };
        let found = self.find(&pattern).ok().filter(|found| found.len() <= APART && self.recorded.is_none())?;
        found.iter().map(|probe| probe.symbol_size(name)).collect::<Option<Vec<_>>>()?.first().copied()
    }

    fn enumerators(&self, name: &str) -> Vec<(String, i64)> {
        self.types.enumerators(name)
    }

    fn child(&self) -> Option<u32> {
        self.child
    }
}

/// The event of what happens to processes.
pub fn process(name: &str) -> Option<&'static Schema> {
    let shown = ["fork", "exec", "exit", "signal", "stop", "attach"];
    let of_processes = |s: &&&Schema| s.class == Class::Process && s.name == name;
    shown.contains(&name).then(|| events::generated::SCHEMAS.iter().find(of_processes).copied()).flatten()
}
