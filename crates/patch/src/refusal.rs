//! Why a function gets no patch.

use std::fmt;

/// A reason. Its text is one line, which completes "NAME is not traced: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// It lies in no executable segment.
    Outside,
    /// It and the padding behind it have less than 5 bytes.
    TooSmall,
    /// A direct jump or call leads into the bytes that a patch replaces, behind the first.
    JumpInside,
    /// A symbol, or unwind information, begins within the bytes that a patch replaces.
    SymbolInside,
    /// It jumps back to its own beginning: each turn of the loop would look like a call.
    Loop,
    /// No unwind information begins where it begins: hand-written code, or not a function.
    NoFrame,
    /// Its first bytes are no instructions.
    Undecodable,
    /// One of its first instructions depends on its place in a way that cannot be reproduced elsewhere.
    Unmovable,
    /// One of its first instructions enters the kernel.
    SystemCall,
    /// A call among its first instructions would return into the patch.
    CallInside,
    /// It begins with a jump out of its module, or with a breakpoint: somebody else has patched it.
    Patched,
    /// It chooses an implementation while the program is linked (IFUNC).
    Resolver,
    /// It is a part of a function to which the compiler has moved what is rarely run.
    Cold,
    /// It returns more than once, or keeps its return address for later (setjmp, vfork).
    ReturnsTwice,
    /// It is not called by way of a call instruction, or finds something else than its return address on top of the stack.
    OddStack,
    /// It looks at its return address to find out who calls it (dlsym).
    Caller,
    /// It is a part of the unwinder, which begins with its own frames (libgcc, linked statically).
    Unwinder,
    /// It is the hook of a profiler (mcount) that is called from the beginnings of functions.
    Profiler,
    /// The agent replaces it: where it returns is the agent's.
    Hooked,
    /// By its debug information, a debugger's breakpoint at it would lie within the patch.
    Breakpoint,
    /// A static probe (USDT) would lie within the patch.
    StaticProbe,
}

/// All of them.
#[cfg(test)]
const ALL: [Refusal; 21] = {
    use Refusal::*;
    [
        Outside,
        TooSmall,
        JumpInside,
        SymbolInside,
        Loop,
        NoFrame,
        Undecodable,
        Unmovable,
        SystemCall,
        CallInside,
        Patched,
        Resolver,
        Cold,
        ReturnsTwice,
        OddStack,
        Caller,
        Unwinder,
        Profiler,
        Hooked,
        Breakpoint,
        StaticProbe,
    ]
};

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Outside => "it lies outside of the file's code",
            Refusal::TooSmall => "it is smaller than a jump instruction",
            Refusal::JumpInside => "a jump leads into its first bytes",
            Refusal::SymbolInside => "another symbol lies in its first bytes",
            Refusal::Loop => "a loop begins at its first instruction",
            Refusal::NoFrame => "it has no unwind information (hand-written code?)",
            Refusal::Undecodable => "its first bytes are no instructions",
            Refusal::Unmovable => "its first instructions cannot be moved",
            Refusal::SystemCall => "it begins with a system call",
            Refusal::CallInside => "it begins with a call that returns into its first bytes",
            Refusal::Patched => "somebody else has patched it",
            Refusal::Resolver => "it is an IFUNC: programs call another function, which it chooses",
            Refusal::Cold => "it is the rarely run part of another function",
            Refusal::ReturnsTwice => "it can return twice",
            Refusal::OddStack => "it is not called like a function",
            Refusal::Caller => "it finds out who calls it",
            Refusal::Unwinder => "it is a part of the unwinder",
            Refusal::Profiler => "it is a profiler's hook",
            Refusal::Hooked => "trapline replaces it",
            Refusal::Breakpoint => "a debugger's breakpoint at it would lie in the bytes that are replaced",
            Refusal::StaticProbe => "a static probe lies in the bytes that would be replaced",
        })
    }
}

impl Refusal {
    /// Whether the name of a function says that it must not be traced. The list is of what glibc, musl, libgcc and compilers have.
    pub fn of_name(name: &str) -> Option<Refusal> {
        let name = name.split('@').next().unwrap_or(name);
        if is_cold(name) {
            return Some(Refusal::Cold);
        }
        Some(match name {
            "setjmp" | "_setjmp" | "__setjmp" | "sigsetjmp" | "__sigsetjmp" | "__sigsetjmp_cancel" | "savectx" => {
                Refusal::ReturnsTwice
            }
            "vfork" | "__vfork" | "__libc_vfork" | "getcontext" | "__getcontext" | "swapcontext" | "__swapcontext" => {
                Refusal::ReturnsTwice
            }
            "clone" | "__clone" | "clone3" | "__clone3" | "__start_context" | "__push___start_context" => {
                Refusal::ReturnsTwice
            }
            "_start" | "_dl_start_user" | "_dlstart" | "__restore_rt" | "__restore" | "_init" | "_fini" => {
                Refusal::OddStack
            }
            "dlopen" | "dlmopen" | "dlsym" | "dlvsym" | "__dlopen" | "__dlmopen" | "__dlsym" | "__dlvsym" => {
                Refusal::Caller
            }
            "__morestack" | "__morestack_non_split" | "_dl_tlsdesc_return" | "_dl_tlsdesc_undefweak" => {
                Refusal::OddStack
            }
            "mcount" | "_mcount" | "__mcount" | "__fentry__" => Refusal::Profiler,
            _ if ["_Unwind_", "uw_", "unw_", "__unw_", "_ULx86_64_", "_ZN9libunwind"]
                .iter()
                .any(|p| name.starts_with(p)) =>
            {
                Refusal::Unwinder
            }
            _ if name.starts_with("_dl_runtime_") || name.starts_with("_dl_tlsdesc_dynamic") => Refusal::OddStack,
            _ if name.starts_with("__x86_indirect_thunk") || name.starts_with("__x86_return_thunk") => {
                Refusal::OddStack
            }
            _ if name.starts_with("__llvm_retpoline") || name.starts_with("__x86.get_pc_thunk") => Refusal::OddStack,
            _ => return None,
        })
    }
}

/// `f.cold`, `f.cold.3`: what GCC, LLVM and BOLT have split off (BOLT: `f.warm` too). `f.part.0`, `f.isra.0` and `f.constprop.0` are
/// functions that are called.
fn is_cold(name: &str) -> bool {
    [".cold", ".warm"].iter().filter_map(|part| name.split_once(part)).any(|(_, rest)| {
        rest.is_empty() || rest.strip_prefix('.').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_refused() {
        for (name, refusal) in [
            ("main", None),
            ("f.cold", Some(Refusal::Cold)),
            ("f.cold.12", Some(Refusal::Cold)),
            ("f.part.0.cold", Some(Refusal::Cold)),
            ("f.warm", Some(Refusal::Cold)),
            ("f.part.0", None),
            ("f.coldest", None),
            ("cold", None),
            ("_setjmp", Some(Refusal::ReturnsTwice)),
            ("vfork@@GLIBC_2.2.5", Some(Refusal::ReturnsTwice)),
            ("_dl_runtime_resolve_xsavec", Some(Refusal::OddStack)),
            ("_start", Some(Refusal::OddStack)),
            ("uw_init_context_1", Some(Refusal::Unwinder)),
            ("dlsym@@GLIBC_2.34", Some(Refusal::Caller)),
        ] {
            assert_eq!(Refusal::of_name(name), refusal, "{name}");
        }
    }

    #[test]
    fn each_has_a_text_of_its_own() {
        let mut texts = ALL.map(|r| r.to_string());
        texts.sort();
        assert!(texts.windows(2).all(|t| t[0] != t[1]));
    }
}
