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
    &["-O2", "-g", "-gz=zlib-gnu"],
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

/// `NAME:TYPE@PLACE` of what is captured, as Rust shows it, without spaces.
fn captured(path: &Path, name: &str) -> Vec<String> {
    use symbols::dwarf::signature::Argument;
    let file = File::open(path).unwrap();
    let elf = Elf::read(&file).unwrap();
    let debug = Debug::open(&elf, &file).unwrap();
    let is = |symbol: &str| symbol == name || demangle::of(symbol).is_some_and(|d| d.plain == name);
    let f = elf.functions().iter().find(|f| is(&f.name)).unwrap_or_else(|| panic!("no {name}"));
    let signature = debug.signature(&f.name, f.address, true).unwrap();
    let one = |a: &Argument| format!("{}:{:?}@{:?}", a.name, a.ty, a.held).replace(' ', "");
    signature.arguments.iter().chain(&signature.result).map(one).collect()
}

#[test]
fn values_are_where_the_abi_has_them() {
    for flags in [["-O0", "-gdwarf-5"], ["-O2", "-gdwarf-5"], ["-O2", "-gdwarf-4"]] {
        let Some(p) = compile("values", "gcc", "values.c", &[&flags[..], &["-pthread"]].concat()) else { return };
        let int = |size, signed| format!("Int{{size:{size},signed:{signed},names:[]}}");
        let want = [
            format!("a:{}@Parts([(Integer(0),1)])", int(1, true)),
            format!("b:{}@Parts([(Integer(1),1)])", int(1, false)),
            format!("c:{}@Parts([(Integer(2),2)])", int(2, true)),
            format!("d:{}@Parts([(Integer(3),4)])", int(4, false)),
            format!("e:{}@Parts([(Integer(4),8)])", int(8, true)),
            "f:Bool(1)@Parts([(Integer(5),1)])".into(),
            "g:Char(1)@Memory(Stack(8))".into(),
            format!("h:{}@Memory(Stack(16))", int(8, false)),
            format!(":{}@Parts([(Returned(0),8)])", int(8, true)),
        ];
        assert_eq!(captured(&p, "integers"), want, "{flags:?}");
        let want = [
            "a:Float(4)@Parts([(Float(0),4)])",
            "b:Float(8)@Parts([(Float(1),8)])",
            "c:Float(16)@Memory(Stack(8))",
            ":Float(8)@Parts([(Float(0),8)])",
        ];
        assert_eq!(captured(&p, "floats"), want, "{flags:?}");
        let wide = captured(&p, "wide");
        assert!(wide[0].ends_with("@Parts([(Integer(0),4)])") && wide[1] == ":Float(16)@Parts([(X87,10)])", "{wide:?}");
        let by_value = captured(&p, "by_value");
        assert!(by_value[0].ends_with("@Parts([(Float(0),8),(Integer(0),8)])"), "{by_value:?}");
        assert!(by_value[1].ends_with("@Memory(Stack(8))"), "{by_value:?}");
        assert!(by_value[2].ends_with("@Parts([(Float(0),8),(Returned(0),8)])"), "{by_value:?}");
        // The address of the result takes the first register.
        let large = captured(&p, "large");
        assert!(large[0].ends_with("@Parts([(Integer(1),4)])"), "{large:?}");
        assert!(large[1].ends_with("@Address(Returned(0))"), "{large:?}");
        let pointed = captured(&p, "pointed");
        let inside = r#"To(Struct(Struct{members:[("x",0,Int{size:4,signed:true,names:[]}),("name",8,Text),("tag",16,Chars(8))],size:24}))"#;
        assert_eq!(pointed[0], format!("p:{inside}@Parts([(Integer(0),8)])"), "{flags:?}");
        assert_eq!(pointed[1], "q:Pointer@Parts([(Integer(1),8)])");
        assert_eq!(captured(&p, "huge")[0], format!("n:{}@Parts([(Integer(0),8),(Integer(1),8)])", int(16, true)));
    }
}

#[test]
fn types_that_lead_to_themselves_end_and_damaged_ones_say_less() {
    let Some(p) = compile("self", "gcc", "self.c", &["-O0", "-g"]) else { return };
    let node = captured(&p, "walk");
    assert!(node[0].contains(r#"("next",8,Pointer)"#) && node[0].contains(r#"("many",16,Other("#), "{node:?}");
    assert!(node[1].starts_with("deep:Pointer@"), "{node:?}");
    let bytes = std::fs::read(&p).unwrap();
    let headers = symbols::headers::Headers::read(&bytes[..]).unwrap();
    let info = headers.sections.iter().find(|s| s.name == ".debug_info").unwrap();
    let abbrev = headers.sections.iter().find(|s| s.name == ".debug_abbrev").unwrap();
    let elf = Elf::read(File::open(&p).unwrap()).unwrap();
    let walk = elf.functions().iter().find(|f| f.name == "walk").unwrap();
    let mut random = testkit::Random::new(7);
    for _ in 0..testkit::rounds(2000) {
        let mut damaged = bytes.clone();
        for section in [info, info, abbrev] {
            let at = section.offset as usize + random.index(section.size as usize);
            damaged[at] = random.next() as u8;
        }
        let debug = Debug::of(&headers, std::rc::Rc::new(&damaged[..]), None);
        if let Some(signature) = debug.and_then(|d| d.signature("walk", walk.address, true)) {
            assert!(signature.arguments.len() <= 32);
        }
    }
}
