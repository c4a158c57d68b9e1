//! Programs and libraries whose functions are left alone, because their own runtime walks stacks, or moves them: it would find the
//! addresses of stubs where it expects those of callers.

use symbols::code_tables::CodeTables;

/// A runtime that stubs would confuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Go moves stacks, and walks them for that.
    Go,
    /// One with a JIT compiler, which walks stacks to collect garbage, to deoptimise and to throw: its name.
    Jit(&'static str),
}

/// Files of runtimes, by the beginnings of their names: programs and libraries. Some programs load the library only later.
const FILES: [(&str, &str); 16] = [
    ("libjvm.so", "Java"),
    ("libjli.so", "Java"),
    ("libj9vm", "Java"),
    ("libnode.so", "V8"),
    ("libv8.so", "V8"),
    ("libcoreclr.so", ".NET"),
    ("libhostfxr.so", ".NET"),
    ("dotnet", ".NET"),
    ("libmonosgen", "Mono"),
    ("libluajit", "LuaJIT"),
    ("libpypy", "PyPy"),
    ("libmozjs", "SpiderMonkey"),
    ("libjavascriptcoregtk", "JavaScriptCore"),
    ("libjulia-internal", "Julia"),
    ("libHotSpot", "Java"),
    ("beam.smp", "Erlang"),
];

/// Functions that only these runtimes have, by the beginnings of the linker's names.
const FUNCTIONS: [(&str, &str); 8] = [
    ("_ZN2v88internal7Isolate", "V8"),
    ("_ZN2v87Isolate10Initialize", "V8"),
    ("JNI_CreateJavaVM", "Java"),
    ("coreclr_initialize", ".NET"),
    ("mono_jit_init", "Mono"),
    ("luaJIT_setmode", "LuaJIT"),
    ("pypy_main_startup", "PyPy"),
    ("_ZN2JS10NewContext", "SpiderMonkey"),
];

impl Runtime {
    /// That of a file, by its path and its tables.
    pub fn of(path: &str, tables: &CodeTables) -> Option<Runtime> {
        if tables.is_go {
            return Some(Runtime::Go);
        }
        let has = |start: &str| tables.functions.iter().any(|f| f.name.starts_with(start));
        let by_function = || FUNCTIONS.iter().find(|(start, _)| has(start)).map(|(_, name)| Runtime::Jit(name));
        Runtime::of_name(path).or_else(by_function)
    }

    /// Whether only a runtime has a function of this name.
    pub fn has(function: &str) -> bool {
        FUNCTIONS.iter().any(|(start, _)| function.starts_with(start))
    }

    /// That of a file, as far as its name says it.
    pub fn of_name(path: &str) -> Option<Runtime> {
        let name = path.rsplit('/').next().unwrap_or(path);
        FILES.iter().find(|(file, _)| name.starts_with(file)).map(|(_, runtime)| Runtime::Jit(runtime))
    }

    /// Whether a library of the runtime makes that of the whole process.
    pub fn owns_process(self) -> bool {
        matches!(self, Runtime::Jit(_))
    }

    /// Why its functions are left alone, in words that complete "not traced: ".
    pub fn words(self) -> String {
        match self {
            Runtime::Go => "a Go program moves its stacks (as root: -e 'uprobe:PROGRAM:FUNCTION')".into(),
            Runtime::Jit(name) => {
                format!("the JIT compiler of {name} walks stacks (as root: -e 'uprobe:PROGRAM:FUNCTION')")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbols::code_tables::Named;

    #[test]
    fn runtimes_are_recognised_by_files_functions_and_sections() {
        let with = |name: &str| {
            let function = Named { name: name.into(), address: 0, size: 0, indirect: false };
            CodeTables { functions: vec![function], ..CodeTables::default() }
        };
        let none = CodeTables::default();
        assert_eq!(Runtime::of("/usr/bin/node", &with("_ZN2v88internal7Isolate3NewEv")), Some(Runtime::Jit("V8")));
        assert_eq!(Runtime::of("/x/libjvm.so", &none), Some(Runtime::Jit("Java")));
        assert_eq!(Runtime::of("/usr/lib/libluajit-5.1.so.2", &none), Some(Runtime::Jit("LuaJIT")));
        let go = CodeTables { is_go: true, ..CodeTables::default() };
        assert_eq!(Runtime::of("/x", &go), Some(Runtime::Go));
        assert_eq!(Runtime::of("/usr/bin/python3", &with("main")), None);
        assert!(!Runtime::Go.owns_process() && Runtime::Jit("V8").owns_process());
    }
}
