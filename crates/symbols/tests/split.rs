//! Debug information in files beside the program (`-gsplit-dwarf`), compared with that of the same program in one file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use symbols::dwarf::Debug;
use symbols::files::Identity;
use symbols::finder::{Finder, split_files};
use symbols::module::Problem;
use symbols::symbolizer::NameStyle;
use symbols::{Elf, Symbolizer};
use testkit::Scratch;

const BUILDS: [(&str, &str, &str); 6] = [
    ("gcc", "inlines.c", "-gdwarf-4"),
    ("gcc", "inlines.c", "-gdwarf-5"),
    ("g++", "inlines.cc", "-gdwarf-4"),
    ("g++", "inlines.cc", "-gdwarf-5"),
    ("clang", "inlines.c", "-gdwarf-4"),
    ("clang", "inlines.c", "-gdwarf-5"),
];

/// Compiles in a directory, where split files are left.
fn build(dir: &Path, name: &str, (compiler, source, version): (&str, &str, &str), split: bool) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs").join(source);
    let mut command = Command::new(compiler);
    command.current_dir(dir).args(["-O2", "-g", version, "-o", name]).arg(source);
    command.args(split.then_some("-gsplit-dwarf"));
    match command.status() {
        Ok(status) => assert!(status.success(), "{compiler} {version}"),
        Err(_) => {
            testkit::skip(&format!("package:{compiler}"), "no compiler");
            return None;
        }
    }
    Some(dir.join(name))
}

fn elf(path: &Path) -> Elf {
    Elf::read(&File::open(path).unwrap()).unwrap()
}

/// The frames of all addresses of functions that have a size, and what is missing.
fn frames(path: &Path, finder: Finder) -> (Vec<String>, Option<Problem>) {
    let mut s = Symbolizer::new(finder).style(NameStyle::Raw);
    let id = s.module(&Identity::new(path, &[])).unwrap();
    let addresses = elf(path).functions().iter().flat_map(|f| f.address..f.address + f.size).collect::<Vec<_>>();
    let all = addresses.into_iter().map(|address| format!("{:?}", s.frames(id, address))).collect();
    let problem = s.modules().next().unwrap().1.status().problem;
    (all, problem)
}

/// The prototypes of all functions, and how their values are taken.
fn prototypes(path: &Path) -> Vec<String> {
    let (elf, file) = (elf(path), File::open(path).unwrap());
    let debug = Debug::open(&elf, &file).unwrap().with_split_files(split_files(path));
    let one = |f: &symbols::elf::Function| {
        format!("{:?} {:?}", debug.prototype(f), debug.signature(&f.name, f.address, f.local))
    };
    elf.functions().iter().filter(|f| f.size > 0).map(one).collect()
}

fn inlined(path: &Path, name: &str) -> Vec<symbols::dwarf::Inlined> {
    let (elf, file) = (elf(path), File::open(path).unwrap());
    Debug::open(&elf, &file).unwrap().with_split_files(split_files(path)).inlined(name)
}

fn split_files_of(dir: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    all.filter(|p| p.extension().is_some_and(|e| e == "dwo")).collect()
}

fn split_file(dir: &Path) -> PathBuf {
    split_files_of(dir).into_iter().next().expect("a split file")
}

#[test]
fn split_files_say_what_the_program_would() {
    for build_of in BUILDS {
        let dir = Scratch::new("split");
        let Some(whole) = build(&dir, "whole", build_of, false) else { continue };
        let split = build(&dir, "split", build_of, true).unwrap();
        let want = frames(&whole, Finder::new());
        assert!(want.0.iter().any(|f| f.contains("inlined: true")), "{build_of:?}");
        assert_eq!(frames(&split, Finder::new()), want, "{build_of:?}");
        let types = prototypes(&whole);
        assert!(types.iter().any(|t| t.contains("Parameter {")), "{build_of:?}: {types:?}");
        assert_eq!(prototypes(&split), types, "{build_of:?}");
        let name = if build_of.1 == "inlines.c" { "innermost" } else { "twice" };
        assert_eq!(inlined(&split, name), inlined(&whole, name), "{build_of:?}");
        // Elsewhere it is not found, but for who says where; a file of another build is not taken for it.
        let dwo = split_file(&dir);
        let other = dir.join("other");
        fs::create_dir(&other).unwrap();
        fs::rename(&dwo, other.join(dwo.file_name().unwrap())).unwrap();
        let without = frames(&split, Finder::new());
        assert_eq!(without.1, Some(Problem::Split), "{build_of:?}");
        assert!(without.0.iter().any(|f| f.contains("inlines.c") && !f.contains("inlined: true")), "{build_of:?}");
        assert_eq!(frames(&split, Finder::new().directory(&other)), want, "{build_of:?}");
        let again = Scratch::new("again");
        build(
            &again,
            "split",
            (build_of.0, if build_of.1 == "inlines.c" { "hits.c" } else { "deadlock.cc" }, build_of.2),
            true,
        )
        .unwrap();
        fs::copy(split_file(&again), &dwo).unwrap();
        assert_eq!(frames(&split, Finder::new()).1, Some(Problem::Split), "{build_of:?}");
    }
}

/// Makes `PROGRAM.dwp` of a program's split files, and takes those away; none where the tool is missing.
fn package(dir: &Path, tool: &str, program: &Path) -> Option<()> {
    let mut command = Command::new(tool);
    command.current_dir(dir).arg("-e").arg(program).arg("-o").arg(program.with_extension("dwp"));
    match command.stderr(Stdio::null()).status() {
        Ok(status) => assert!(status.success(), "{tool}"),
        Err(_) => {
            testkit::skip(&format!("package:{tool}"), "no such tool");
            return None;
        }
    }
    split_files_of(dir).iter().for_each(|file| fs::remove_file(file).unwrap());
    Some(())
}

#[test]
fn packages_say_what_the_program_would() {
    // dwp of binutils 2.40 and llvm-dwp 14 both fail with what gcc makes of DWARF 5.
    for (tool, build_of) in [("dwp", BUILDS[0]), ("dwp", BUILDS[2]), ("dwp", BUILDS[4]), ("llvm-dwp", BUILDS[5])] {
        let dir = Scratch::new("package");
        let Some(whole) = build(&dir, "whole", build_of, false) else { continue };
        let split = build(&dir, "split", build_of, true).unwrap();
        let want = (frames(&whole, Finder::new()), prototypes(&whole));
        let Some(()) = package(&dir, tool, &split) else { continue };
        assert_eq!((frames(&split, Finder::new()), prototypes(&split)), want, "{tool} {build_of:?}");
    }
}

#[test]
fn damaged_split_files_say_less() {
    let dir = Scratch::new("damaged");
    let Some(split) = build(&dir, "split", BUILDS[1], true) else { return };
    let dwo = split_file(&dir);
    let whole = fs::read(&dwo).unwrap();
    let mut r = testkit::Random::new(7);
    for _ in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..=r.below(8) {
            let at = r.index(bytes.len());
            bytes[at] = r.below(256) as u8;
        }
        bytes.truncate(bytes.len() - if r.below(4) == 0 { r.index(bytes.len()) } else { 0 });
        fs::write(&dwo, &bytes).unwrap();
        let _ = (frames(&split, Finder::new()), prototypes(&split));
    }
}

/// Frames of all addresses, what is missing, prototypes.
type Known = (Vec<String>, Option<Problem>, Vec<String>);

fn known(program: &Path) -> Known {
    let (frames, problem) = frames(program, Finder::new());
    (frames, problem, prototypes(program))
}

/// Compiles a program of two units into a directory, where its split files are left; none where the compiler is missing.
fn build_two(dir: &Path, name: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/shared_types.cc");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(compiler);
        let status = command.current_dir(dir).args(["-O1", "-g"]).args(flags).args(arguments).status();
        status.map(|status| assert!(status.success(), "{compiler} {flags:?} {arguments:?}"))
    };
    let objects = ["0", "1"].map(|part| format!("{name}-{part}.o"));
    for (part, object) in objects.iter().enumerate() {
        let done = run(&["-c", source.to_str().unwrap(), &format!("-DPART={part}"), "-o", object]);
        if done.is_err() {
            testkit::skip(&format!("package:{compiler}"), "no compiler");
            return None;
        }
    }
    run(&[&objects[0], &objects[1], "-o", name]).unwrap();
    Some(dir.join(name))
}

#[test]
fn types_with_units_of_their_own_are_found_in_split_files_and_packages() {
    let all = [
        ("g++", "-gdwarf-4", "dwp"),
        ("g++", "-gdwarf-4", "llvm-dwp"),
        // dwp of binutils 2.40 fails with DWARF 5.
        ("g++", "-gdwarf-5", "llvm-dwp"),
        ("clang++", "-gdwarf-4", "dwp"),
        ("clang++", "-gdwarf-4", "llvm-dwp"),
        ("clang++", "-gdwarf-5", "llvm-dwp"),
    ];
    for (compiler, version, tool) in all {
        let of = format!("{compiler} {version} {tool}");
        let dir = Scratch::new("types");
        let Some(whole) = build_two(&dir, "whole", compiler, &[version]) else { continue };
        let want = known(&whole);
        for text in ["members: [(\"x\"", "\"light\"", "(\"parts\"", "String {", "Pair"] {
            assert!(want.2.iter().any(|p| p.contains(text)), "{of}: {text} of {:?}", want.2);
        }
        let flags = [version, "-gsplit-dwarf", "-fdebug-types-section"];
        let split = build_two(&dir, "split", compiler, &flags).unwrap();
        same(&split, &want, &format!("{of}: split files"));
        let Some(()) = package(&dir, tool, &split) else { continue };
        // The package has each type once, of one of the two units.
        same(&split, &want, &of);
        damaged_package(&split);
    }
}

/// What is known of a program is what is wanted, line by line.
fn same(program: &Path, want: &Known, of: &str) {
    let is = known(program);
    for (is, want) in is.0.iter().zip(&want.0).chain(is.2.iter().zip(&want.2)) {
        assert_eq!(is, want, "{of}");
    }
    assert_eq!((is.0.len(), is.1, is.2.len()), (want.0.len(), want.1, want.2.len()), "{of}");
}

/// A package whose bytes are damaged says less.
fn damaged_package(program: &Path) {
    let path = program.with_extension("dwp");
    let whole = fs::read(&path).unwrap();
    let mut r = testkit::Random::new(9);
    for _ in 0..20 {
        let mut bytes = whole.clone();
        for _ in 0..=r.below(30) {
            let at = r.index(bytes.len());
            bytes[at] = r.below(256) as u8;
        }
        bytes.truncate(bytes.len() - if r.below(4) == 0 { r.index(bytes.len()) } else { 0 });
        fs::write(&path, &bytes).unwrap();
        let _ = prototypes(program);
    }
}
