//! Prototypes and inlined places of programs that are compiled here, with and without optimisation, in several versions of DWARF; and
//! of what is left of them when their bytes are damaged.

use std::fs::File;
use std::path::{Path, PathBuf};
use symbols::dwarf::{Debug, Kind, Parameter, Prototype, Where};
use symbols::{Elf, demangle};

/// Compiles a program of `tests/programs`; none where the compiler is missing, which is counted.
#[track_caller]
fn compile(test: &str, compiler: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let words = flags.join("").replace(['/', '='], "_");
    testkit::compile(compiler, &format!("{test}-{source}{words}"), source, flags).map(PathBuf::from)
}

/// What is known of a function by its demangled name, or its symbol.
fn prototype(path: &Path, name: &str) -> Option<Prototype> {
    let file = File::open(path).unwrap();
    let elf = Elf::read(&file).unwrap();
    let debug = Debug::open(&elf, &file)?;
    let is = |symbol: &str| symbol == name || demangle::of(symbol).is_some_and(|d| d.plain == name || d.full == name);
    let f = elf.functions().iter().find(|f| is(&f.name)).unwrap_or_else(|| panic!("no {name}"));
    debug.prototype(f)
}

/// `TYPE NAME@PLACE`, and what it returns.
fn shown(path: &Path, name: &str) -> String {
    let Some(p) = prototype(path, name) else { return "unknown".into() };
    let place = |at: &Where| match at {
        Where::Register(r) => r.to_string(),
        Where::Stack(n) => format!("{n}(rsp)"),
        Where::Nowhere => "-".into(),
    };
    let one = |p: &Parameter| format!("{} {}@{}", p.ty.name, p.name, place(&p.at));
    let all: Vec<String> = p.parameters.iter().map(one).collect();
    format!("{} -> {}", all.join(", "), p.returns.map_or("void".into(), |t| t.name))
}

const C: &[&[&str]] = &[
    &["-O0", "-g", "-gdwarf-5"],
    &["-O0", "-g", "-gdwarf-4"],
    &["-O0", "-g", "-gdwarf-4", "-fdebug-types-section"],
    &["-O0", "-g", "-gdwarf-5", "-fdebug-types-section"],
    &["-O0", "-g", "-gdwarf-2", "-gstrict-dwarf"],
    &["-O2", "-g", "-gdwarf-5"],
    &["-O2", "-g", "-gdwarf-4", "-ffunction-sections"],
    &["-O2", "-g", "-gz=zlib"],
];

#[test]
fn functions_of_c_are_known_with_their_types_and_places() {
    for flags in C {
        let Some(p) = compile("c", "gcc", "typed.c", flags) else { return };
        let compute = prototype(&p, "compute").unwrap();
        let kinds: Vec<(u64, Kind)> = compute.parameters.iter().map(|p| (p.ty.size, p.ty.kind)).collect();
        let int = |signed| Kind::Int { signed };
        let want = [
            (4, int(true)),
            (8, Kind::Text),
            (8, Kind::Pointer),
            (2, int(false)),
            (1, int(false)),
            (4, int(false)),
            (4, int(true)),
        ];
        assert_eq!(kinds, want, "{flags:?}");
        assert_eq!(compute.returns.unwrap().kind, int(true));
        let text = shown(&p, "compute");
        let want = "int n@rdi, const char * what@rsi, char * room@rdx, short unsigned int s@rcx, _Bool ok@r8, \
                    enum color c@r9, enum sign g@8(rsp) -> int";
        assert_eq!(text, want, "{flags:?}");
        // One structure takes a register of integers, one two, one lies on the stack.
        let mixed = prototype(&p, "mixed").unwrap();
        let at = |name: &str| mixed.parameters.iter().find(|p| p.name == name).unwrap().at;
        assert_eq!([at("i"), at("name"), at("c")], ["rsi", "r8", "r9"].map(Where::Register), "{flags:?}");
        assert_eq!([at("d"), at("l"), at("t"), at("x")], [Where::Nowhere; 4], "{flags:?}");
        // A large result takes the first register.
        assert_eq!(shown(&p, "gives"), "int n@rsi -> struct large", "{flags:?}");
        assert_eq!(shown(&p, "half"), "double d@-, int n@rdi -> double", "{flags:?}");
        let want = "void (*)() call@rdi, int * p@rsi, struct two * t@rdx, uint8_t b@rcx, size_t z@r8 -> void";
        assert_eq!(shown(&p, "nothing"), want, "{flags:?}");
        assert!(shown(&p, "many").ends_with("int f@r9, int g@8(rsp), long int h@16(rsp) -> int"), "{flags:?}");
        assert_eq!(shown(&p, "_start"), "unknown");
    }
}

#[test]
fn functions_of_cpp_are_known_with_their_types_and_places() {
    let all: &[&[&str]] = &[&["-O0", "-g"], &["-O2", "-g"], &["-O0", "-g", "-gdwarf-5", "-fdebug-types-section"]];
    for flags in all {
        let Some(p) = compile("cc", "g++", "typed.cc", flags) else { return };
        let poke = shown(&p, "acme::Widget::poke(int, char const*)");
        assert_eq!(poke, "Widget *const this@rdi, int by@rsi, const char * why@rdx -> int", "{flags:?}");
        let poke = shown(&p, "acme::Widget::poke(double, long) const");
        assert_eq!(poke, "const Widget *const this@rdi, double d@-, long int l@rsi -> long int", "{flags:?}");
        assert!(shown(&p, "acme::Widget::name").contains("this@rsi, bool b@rdx"), "{flags:?}");
        assert_eq!(shown(&p, "acme::twice<int>"), "int t@rdi -> int", "{flags:?}");
        let takes = prototype(&p, "acme::takes").unwrap();
        // Strings and vectors are passed by their addresses.
        let known: Vec<Where> = takes.parameters.iter().map(|p| p.at).collect();
        let register = Where::Register;
        assert_eq!((known[1], known[4]), (register("rsi"), register("rcx")), "{flags:?}");
        let mode = prototype(&p, "acme::mode").unwrap();
        assert_eq!(mode.parameters[0].ty.kind, Kind::Int { signed: true }, "{flags:?}");
        assert_eq!(shown(&p, "(anonymous namespace)::hidden"), "int x@rdi -> int", "{flags:?}");
    }
}

#[test]
fn functions_of_rust_are_known_as_far_as_that_is_certain() {
    for level in ["opt-level=0", "opt-level=3"] {
        let Some(p) = compile("rs", "rustc", "typed.rs", &["-g", "-C", level]) else { return };
        // A string is two words. What is always the same is no longer passed where code is optimised.
        let ok = if level.ends_with('0') { "r8" } else { "-" };
        let want = format!("&mut typed::acme::Widget self@rdi, i32 by@rsi, &str why@-, bool ok@{ok} -> i32");
        assert_eq!(shown(&p, "typed::acme::Widget::poke"), want, "{level}");
        if level.ends_with('0') {
            assert_eq!(shown(&p, "typed::acme::compute"), "i32 n@rdi, i8 last@rsi -> i32");
        }
    }
}

#[test]
fn inlined_functions_are_found_where_they_are() {
    for flags in [C[0], C[1], C[5]] {
        let Some(p) = compile("inlined", "gcc", "typed.c", flags) else { return };
        let file = File::open(&p).unwrap();
        let elf = Elf::read(&file).unwrap();
        let debug = Debug::open(&elf, &file).unwrap();
        let places = debug.inlined("tiny");
        let [place] = &places[..] else { panic!("{flags:?}: {places:?}") };
        assert_eq!(place.into, "holds_tiny", "{flags:?}");
        assert!(place.line > 50 && place.file.as_deref().is_some_and(|f| f.ends_with("typed.c")), "{place:?}");
        for not in ["compute", "tinies", "", "acme::tiny"] {
            assert_eq!(debug.inlined(not), [], "{not}");
        }
    }
    let Some(p) = compile("inlined", "rustc", "typed.rs", &["-g", "-C", "opt-level=3"]) else { return };
    let file = File::open(&p).unwrap();
    let elf = Elf::read(&file).unwrap();
    let places = Debug::open(&elf, &file).unwrap().inlined("typed::acme::tiny");
    assert!(places.iter().any(|p| p.into == "typed::main"), "{places:?}");
}

/// Bytes of every debug section overwritten at random: less is known, nothing else happens.
#[test]
fn damaged_debug_information_says_less() {
    let Some(p) = compile("damaged", "gcc", "typed.c", C[0]) else { return };
    let whole = std::fs::read(&p).unwrap();
    let elf = Elf::parse(&whole[..]).unwrap();
    let debug: Vec<(u64, u64)> =
        elf.sections().filter(|s| s.name.starts_with(".debug")).map(|s| (s.offset, s.size)).collect();
    let mut r = testkit::Random::new(99);
    let mut random = |n: u64| r.below(n);
    for round in 0..600 {
        let mut bytes = whole.clone();
        for _ in 0..=random(12) {
            let (from, len) = debug[random(debug.len() as u64) as usize];
            let value = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6) as usize];
            bytes[(from + random(len)) as usize] = value;
        }
        if round % 10 == 0 {
            bytes.truncate(debug[random(debug.len() as u64) as usize].0 as usize + random(200) as usize);
        }
        if let Some(debug) = Debug::open(&elf, &bytes) {
            for f in elf.functions() {
                let _ = debug.prototype(f);
            }
            let _ = debug.inlined("tiny");
        }
    }
}
