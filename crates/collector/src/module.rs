//! Modules: what their files say, and the plan of their patches. Made once for each file of a session.

use super::captured::Captured;
use super::points::{self, Point};
use super::runtime::Runtime;
use abi::message::Hook;
use engine::request::functions::{Functions, Values};
use patch::{Frame, Function, Module, Plan, Refusal, Segment, Site};
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use symbols::code_tables::CodeTables;
use symbols::dwarf::Debug;
use symbols::finder::split_files;
use symbols::headers::Headers;
use symbols::{ElfError, code_tables, demangle, symtab};

/// Hooks in libc and in the loader, by the names of their functions.
const IN_LIBC: [(&str, Hook); 13] = [
    ("sigaction", Hook::Sigaction),
    ("execve", Hook::Execve),
    ("execveat", Hook::Execveat),
    ("fork", Hook::Fork),
    ("_Fork", Hook::ForkAsyncSafe),
    ("clone", Hook::Clone),
    ("syscall", Hook::Syscall),
    ("vfork", Hook::Vfork),
    ("prctl", Hook::Prctl),
    ("fexecve", Hook::Fexecve),
    ("longjmp", Hook::Longjmp),
    ("__longjmp_chk", Hook::LongjmpChecked),
    ("_exit", Hook::Exit),
];
/// Functions of libc in which the agent may not come and go: a thread in one of them would go on as if the hook were not there, or were
/// there still. `sigaction` would show the agent's handler to the program. None of them waits.
const CLEARED: [&str; 4] = ["sigaction", "__sigaction", "__libc_sigaction", "prctl"];
/// Hooks in the unwinder, wherever libgcc was linked to.
const IN_UNWINDERS: [(&str, Hook); 2] = [("_Unwind_Find_FDE", Hook::FindFde), ("_Unwind_Backtrace", Hook::Backtrace)];
/// Functions of allocators, by the names that they have behind a prefix.
const OF_HEAP: [(&str, Hook); 21] = [
    ("malloc", Hook::Malloc),
    ("valloc", Hook::Malloc),
    ("pvalloc", Hook::Malloc),
    ("mallocx", Hook::Malloc),
    ("zalloc", Hook::Malloc),
    ("malloc_aligned", Hook::Malloc),
    ("zalloc_aligned", Hook::Malloc),
    ("calloc", Hook::Calloc),
    ("realloc", Hook::Realloc),
    ("rallocx", Hook::Realloc),
    ("realloc_aligned", Hook::Realloc),
    ("reallocarray", Hook::Reallocarray),
    ("posix_memalign", Hook::PosixMemalign),
    ("aligned_alloc", Hook::Aligned),
    ("memalign", Hook::Aligned),
    ("free", Hook::Free),
    ("cfree", Hook::Free),
    ("dallocx", Hook::Free),
    ("sdallocx", Hook::Free),
    ("free_size", Hook::Free),
    ("free_aligned", Hook::Free),
];
/// What allocators put before those names: none, jemalloc, jemalloc in Rust programs, mimalloc, tcmalloc.
const PREFIXES: [&str; 5] = ["", "je_", "_rjem_", "mi_", "tc_"];
/// Functions of libc alone: mappings, and `free`, which libc calls itself.
const OF_LIBC: [(&str, Hook); 6] = [
    ("mmap", Hook::Mmap),
    ("mmap64", Hook::Mmap),
    ("munmap", Hook::Munmap),
    ("mremap", Hook::Mremap),
    ("free", Hook::FreeOfLibc),
    ("cfree", Hook::FreeOfLibc),
];
/// What operators of C++ begin with: new, new[], delete, delete[].
const OPERATORS: [(&str, Hook); 4] =
    [("_Znwm", Hook::Malloc), ("_Znam", Hook::Malloc), ("_ZdlPv", Hook::Free), ("_ZdaPv", Hook::Free)];

/// The hook of a function that allocates or frees memory. Operators of C++ are some only in a module with an allocator: else they call
/// `malloc`.
fn of_heap(name: &str, role: Role) -> Option<Hook> {
    let exactly = |all: &[(&str, Hook)], name: &str| all.iter().find(|(n, _)| *n == name).map(|(_, hook)| *hook);
    let operator = || OPERATORS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, hook)| *hook);
    match role {
        Role::Libc => exactly(&OF_LIBC, name).or_else(|| exactly(&OF_HEAP, name)),
        Role::Support => None,
        _ => PREFIXES.iter().find_map(|p| exactly(&OF_HEAP, name.strip_prefix(p)?)).or_else(operator),
    }
}

/// Whether a name is that of an allocator's first function.
fn is_allocator(name: &str) -> bool {
    PREFIXES.iter().any(|p| name.strip_prefix(p) == Some("malloc")) || name == "_rjem_mallocx"
}

/// Whether the function with all these names is wanted.
fn wants(functions: &Functions, same: &[code_tables::Named]) -> bool {
    if !functions.is_by_name() {
        return true;
    }
    let demangled: Vec<String> = same.iter().filter_map(|f| Some(demangle::of(&f.name)?.plain)).collect();
    functions.wants(same.iter().map(|f| &*f.name).chain(demangled.iter().map(|name| &**name)))
}

/// The hook of the loader.
const DEBUG_STATE: &str = "_dl_debug_state";

/// Which part of a process a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program itself.
    Program,
    /// libc: hooks only, unless libraries are wanted.
    Libc,
    /// The loader, and libgcc with the unwinder: hooks only.
    Support,
    /// Another library.
    Library,
}

impl Role {
    /// That of a file by its name.
    pub fn of(path: &str, is_program: bool) -> Role {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name {
            _ if is_program => Role::Program,
            _ if name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl") => Role::Libc,
            _ if name.starts_with("ld-linux") || name.starts_with("ld-2") || name.starts_with("libgcc_s") => {
                Role::Support
            }
            _ => Role::Library,
        }
    }

    /// Whether its functions are traced.
    pub fn is_traced(self, functions: &Functions) -> bool {
        match self {
            _ if functions.none => false,
            Role::Program => true,
            Role::Libc | Role::Library => functions.libraries,
            Role::Support => false,
        }
    }
}

/// A file that was read.
pub struct Known {
    /// Its path in the process that had it first.
    pub path: String,
    /// Its build id; empty without one.
    pub build_id: Vec<u8>,
    /// The plan; its functions have the numbers of `names`.
    pub plan: Plan,
    /// The linker's names of functions.
    pub names: Vec<String>,
    /// Where they begin in the file's address space.
    pub addresses: Vec<u64>,
    /// The linker's names of functions that could have been traced, and are not wanted.
    pub others: Vec<String>,
    /// Address and offset of each executable segment.
    pub segments: Vec<(u64, u64)>,
    /// Functions in which no thread may be when the agent comes, in the file's address space.
    pub cleared: Vec<Range<u64>>,
    /// What is captured of calls, by the numbers of functions.
    pub captured: HashMap<u32, Captured>,
    /// Places of probes, whose numbers follow those of functions.
    pub points: Vec<Point>,
    /// Probes that cannot be reached: the number of the enabling, and the probe with the reason.
    pub unreached: Vec<(usize, String)>,
    /// The runtime that it belongs to, if its functions are left alone for that.
    pub runtime: Option<Runtime>,
}

impl Known {
    /// Reads a file, with the functions that are wanted.
    ///
    /// # Errors
    /// It is no ELF file for x86-64, or a damaged one.
    pub fn read(file: &File, path: &str, role: Role, functions: &Functions) -> Result<Known, ElfError> {
        let is_traced = role.is_traced(functions);
        let heap = functions.heap.as_ref().is_some_and(|h| !h.only_stacks);
        let of_heap = |name: &str| heap.then(|| of_heap(name, role)).flatten();
        let is_cleared = |name: &str| role == Role::Libc && CLEARED.contains(&name);
        let is_hook = |name: &str| hook(name, role).is_some() || of_heap(name).is_some() || is_cleared(name);
        let (points, crowded) = points::of_file(file, &functions.probes);
        let is_refused = |name: &str| !points.is_empty() && Refusal::of_name(name).is_some();
        let matters = |name: &str| is_traced || is_hook(name) || Runtime::has(name) || is_refused(name);
        let mut tables = CodeTables::symbols(file, matters)?;
        let (mut names, mut addresses, mut wanted, mut hooks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut others = Vec::new();
        let runtime = Runtime::of(path, &tables);
        let traced = is_traced && runtime.is_none();
        let allocates = heap && tables.functions.iter().any(|f| is_allocator(&f.name));
        if traced {
            // Of several names the plainest is the function's.
            order::by_key(&mut tables.functions, |f| (f.address, symtab::plainness(&f.name)));
        }
        let found = std::mem::take(&mut tables.functions);
        let cleared = found.iter().filter(|f| is_cleared(&f.name)).map(|f| f.address..f.address.saturating_add(f.size));
        let cleared = cleared.collect();
        let is_wanted: Vec<bool> = found
            .chunk_by(|a, b| a.address == b.address)
            .flat_map(|same| std::iter::repeat_n(traced && wants(functions, same), same.len()))
            .collect();
        let refused = if points.is_empty() { HashMap::new() } else { refusals(&found, tables.entry) };
        for (f, is_wanted) in found.into_iter().zip(is_wanted) {
            if let Some(hook) = hook(&f.name, role)
                && runtime.is_none()
                && !hooks.iter().any(|(h, _)| *h == hook)
            {
                hooks.push((hook, f.address));
            }
            if let Some(hook) = of_heap(&f.name).filter(|_| allocates && !f.indirect)
                && !hooks.iter().any(|(_, address)| *address == f.address)
            {
                hooks.push((hook, f.address));
            }
            if !is_wanted {
                others.extend(traced.then_some(f.name));
                continue;
            }
            let is_entry = f.address == tables.entry && tables.entry != 0;
            let refusal = f.indirect.then_some(Refusal::Resolver).or_else(|| Refusal::of_name(&f.name));
            let refusal = refusal.or_else(|| is_entry.then_some(Refusal::OddStack));
            wanted.push(Function { address: f.address, size: f.size, number: names.len() as u32, refusal });
            addresses.push(f.address);
            names.push(f.name);
        }
        let starts = starts(&wanted, &hooks, &points);
        if !starts.is_empty() {
            tables.read_code(file, |start| starts.binary_search(&start).is_ok())?;
        }
        let number = |i: usize| names.len() as u32 + i as u32;
        let place = |(i, p): (usize, &Point)| {
            let (address, at_return) = (p.address, p.at_return);
            let refusal = refused.get(&address).copied().filter(|_| at_return);
            patch::Point { address, at_return, number: number(i), refusal }
        };
        let places: Vec<patch::Point> = points.iter().enumerate().map(place).collect();
        let frames = frames(&tables);
        let stops = stops(file, &wanted);
        let (code, data) = (segments(&tables.code), segments(&tables.data));
        let plan = Plan::new(&Module {
            segments: &code,
            data: &data,
            pointers: &tables.pointers,
            is_fixed: tables.is_fixed,
            captures: functions.values.is_some(),
            functions: &wanted,
            frames: &frames,
            symbols: &tables.labels,
            profilers: &tables.profilers,
            hooks: &hooks,
            points: &places,
            stops: &stops,
            statics: &tables.statics,
        });
        let unreached = unreached(&plan, &points, names.len(), crowded);
        let captured =
            functions.values.map_or_else(HashMap::new, |values| captured((file, path), &plan, &names, values));
        Ok(Known {
            captured,
            unreached,
            points,
            path: path.into(),
            build_id: symbols::build_id::of(file).unwrap_or_default(),
            plan,
            names,
            addresses,
            others,
            segments: tables.code.iter().map(|c| (c.address, c.offset)).collect(),
            cleared,
            runtime,
        })
    }

    /// Further names of functions that are patched, where they are shown otherwise: their numbers, and the function's.
    pub fn aliases(&self) -> impl Iterator<Item = (u32, u32)> {
        let shown =
            |n: u32| self.names.get(n as usize).map(|name| demangle::of(name).map_or(name.clone(), |d| d.plain));
        self.plan.aliases.iter().copied().filter(move |(alias, function)| shown(*alias) != shown(*function))
    }

    /// The patched function of which `is` is true for one of the linker's names.
    pub fn site_of(&self, is: impl Fn(&str) -> bool) -> Option<&Site> {
        let is = |n: u32| self.names.get(n as usize).is_some_and(|name| is(name));
        let alias = self.plan.aliases.iter().find(|(n, _)| is(*n)).map(|(_, function)| *function);
        self.plan.sites.iter().find(|s| Some(s.number) == alias || is(s.number))
    }

    /// Whether there is nothing to patch.
    pub fn is_empty(&self) -> bool {
        let Plan { sites, hooks, points, returns, .. } = &self.plan;
        sites.is_empty() && hooks.is_empty() && points.is_empty() && returns.is_empty()
    }

    /// The place of probes with this number, among those of functions.
    pub fn point(&self, number: u32) -> Option<&Point> {
        self.points.get((number as usize).checked_sub(self.names.len())?)
    }

    /// The first bytes of what is patched, which are a file's.
    pub fn sites(&self) -> impl Iterator<Item = &Site> {
        let Plan { sites, hooks, points, returns, .. } = &self.plan;
        sites.iter().chain(hooks.iter().map(|(_, site)| site)).chain(points).chain(returns)
    }

    /// What is to be added to its addresses where this mapping of it is: first address, and offset in the file.
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let segment = |(_, at): &&(u64, u64)| *at >> 12 << 12 <= offset;
        let (address, at) = self.segments.iter().filter(segment).max_by_key(|(_, at)| *at)?;
        Some(start.wrapping_sub(address.wrapping_sub(*at).wrapping_add(offset)))
    }
}

/// Addresses at whose returns no probe may be, and why.
fn refusals(found: &[code_tables::Named], entry: u64) -> HashMap<u64, Refusal> {
    let of = |f: &code_tables::Named| {
        let why = f.indirect.then_some(Refusal::Resolver).or_else(|| Refusal::of_name(&f.name));
        Some((f.address, why?))
    };
    let entry = (entry != 0).then_some((entry, Refusal::OddStack));
    entry.into_iter().chain(found.iter().filter_map(of)).collect()
}

/// Probes that cannot be reached: the number of the enabling, and the probe with the reason. `first`: the number of the first one's place.
fn unreached(plan: &Plan, points: &[Point], first: usize, crowded: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let point = |n: u32| points.get((n as usize).checked_sub(first)?);
    let why = |(n, why): &(u32, Refusal)| Some((point(*n)?, why.to_string()));
    let refused = plan.refused_points.iter().filter_map(why).flat_map(|(point, why)| {
        let line = format!("{} ({why})", point.label);
        point.parts.iter().map(move |part| (part.enabling, line.clone()))
    });
    let crowded = crowded.into_iter().map(|(n, name)| (n, format!("{name} (too much is captured there)")));
    refused.chain(crowded).collect()
}

fn segments(all: &[symbols::code_tables::Segment]) -> Vec<Segment<'_>> {
    all.iter().map(|s| Segment { address: s.address, bytes: &s.bytes }).collect()
}

/// Where functions, hooks and probes begin, sorted.
fn starts(functions: &[Function], hooks: &[(Hook, u64)], points: &[Point]) -> Vec<u64> {
    let functions = functions.iter().map(|f| f.address).chain(hooks.iter().map(|(_, address)| *address));
    let mut starts: Vec<u64> = functions.chain(points.iter().map(|p| p.address)).collect();
    starts.sort_unstable();
    starts
}

fn frames(tables: &CodeTables) -> Vec<Frame> {
    let frame = |(f, is_as_called): &(symbols::frames::Frame, bool)| Frame {
        start: f.start,
        len: f.end.saturating_sub(f.start),
        is_as_called: *is_as_called,
    };
    tables.frames.iter().map(frame).collect()
}

/// Where debuggers put the breakpoints of these functions.
fn stops(file: &File, functions: &[Function]) -> Vec<u64> {
    if functions.is_empty() {
        return Vec::new();
    }
    let headers = Headers::read(file);
    let debug = headers.as_ref().and_then(|h| Debug::of(h, Rc::new(file), None));
    let mut starts: Vec<u64> = functions.iter().map(|f| f.address).collect();
    starts.sort_unstable();
    debug.map_or_else(Vec::new, |debug| debug.stops(&starts))
}

/// What is captured of the functions that are patched, and are no hooks.
fn captured((file, path): (&File, &str), plan: &Plan, names: &[String], values: Values) -> HashMap<u32, Captured> {
    let headers = Headers::read(file);
    let Some(debug) = headers.as_ref().and_then(|h| Debug::of(h, Rc::new(file), None)) else { return HashMap::new() };
    let debug = debug.with_split_files(split_files(Path::new(path)));
    let is_hook = |address: u64| plan.hooks.iter().any(|(_, site)| site.start == address);
    let of = |number: u32, address: u64| {
        let name = names.get(number as usize).filter(|_| !is_hook(address))?;
        Some((number, Captured::of(&debug.signature(name, address, true)?, values)?))
    };
    plan.sites.iter().filter_map(|site| of(site.number, site.start)).collect()
}

fn hook(name: &str, role: Role) -> Option<Hook> {
    if let Some((_, hook)) = IN_UNWINDERS.iter().find(|(n, _)| *n == name) {
        return Some(*hook);
    }
    match role {
        Role::Libc => IN_LIBC.iter().find(|(n, _)| *n == name).map(|(_, hook)| *hook),
        Role::Support if name == DEBUG_STATE => Some(Hook::Modules),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, role: Role, functions: &Functions) -> Option<Known> {
        Known::read(&File::open(path).ok()?, path, role, functions).ok()
    }

    #[test]
    fn hooks_are_found_in_libc() {
        let mapped = sys::maps::of(sys::process::own_pid()).unwrap();
        let path = |start: &str| {
            let mut paths = mapped.iter().map(|m| String::from_utf8_lossy(&m.path).into_owned());
            paths.find(|p| p.rsplit('/').next().is_some_and(|n| n.starts_with(start)))
        };
        let (Some(libc), Some(ld)) = (path("libc."), path("ld-")) else { return testkit::skip("package", "no glibc") };
        let none = Functions::default();
        let libc = read(&libc, Role::of(&libc, false), &none).unwrap();
        let hooks: Vec<Hook> = libc.plan.hooks.iter().map(|(h, _)| *h).collect();
        for hook in IN_LIBC.map(|(_, h)| h).into_iter().filter(|h| *h != Hook::Vfork) {
            assert!(hooks.contains(&hook), "{hook:?}: {:?}", libc.plan.refused_hooks);
        }
        assert!(libc.plan.sites.is_empty() && libc.names.is_empty());
        assert!(
            libc.cleared.len() >= 2 && libc.cleared.iter().all(|r| r.start != 0 && r.end > r.start),
            "{:x?}",
            libc.cleared
        );
        let ld = read(&ld, Role::of(&ld, false), &none).unwrap();
        assert_eq!(ld.plan.hooks[0].0, Hook::Modules);
    }

    #[test]
    fn a_bias_is_where_the_file_is() {
        let exe = std::env::current_exe().unwrap();
        let identity = sys::maps::identity(&std::fs::metadata(&exe).unwrap());
        let mapped = sys::maps::of(sys::process::own_pid()).unwrap();
        let code = mapped.iter().find(|m| m.file == identity && m.prot & sys::maps::PROT_EXEC != 0).unwrap();
        let pattern = "*a_bias_is_where_the_file_is*".to_string();
        let some = Functions { wanted: vec![pattern], ..Functions::default() };
        let known = read(exe.to_str().unwrap(), Role::Program, &some).unwrap();
        let bias = known.bias(code.range.0, code.offset).unwrap();
        let here = a_bias_is_where_the_file_is as *const () as u64;
        let there: Vec<u64> = known.addresses.iter().map(|a| a.wrapping_add(bias)).collect();
        assert!(there.contains(&here), "{here:x} {there:x?} {:?}", known.names);
    }
}
