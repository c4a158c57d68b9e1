//! Frames of programs that are compiled here, compared with what binutils says of the same files: every function with nm, addresses with
//! addr2line.

mod stripped;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use symbols::files::Identity;
use symbols::finder::Finder;
use symbols::module::Problem;
use symbols::symbolizer::NameStyle;
use symbols::{ModuleId, Symbolizer, build_id};
use testkit::Scratch;

/// Function, file without directories, line.
type Shown = (String, String, u32);

/// Runs a program of binutils; none where it is missing, which is counted.
#[track_caller]
fn run(program: &str, args: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        let package = if program == "xz" { "xz-utils" } else { "binutils" };
        testkit::skip(&format!("package:{package}"), &format!("no {program}"));
        return None;
    };
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_string());
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let out = child.wait_with_output().unwrap();
    let _ = writer.join();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[track_caller]
fn compile(name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let compiler = match source.rsplit_once('.').unwrap().1 {
        "rs" => "rustc",
        "cc" => "g++",
        _ => "gcc",
    };
    testkit::compile(compiler, &format!("symbolize-{name}"), source, flags).map(PathBuf::from)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A symbolizer that shows names as the linker knows them, and the module of a file.
fn of(finder: Finder, identity: &Identity) -> (Symbolizer, ModuleId) {
    let mut s = Symbolizer::new(finder).style(NameStyle::Raw);
    let id = s.module(identity).unwrap();
    (s, id)
}

fn of_file(path: &Path) -> (Symbolizer, ModuleId) {
    of(Finder::new(), &Identity::new(path, &[]))
}

/// What is missing of the only module.
fn problem(s: &Symbolizer) -> Option<Problem> {
    s.modules().next().unwrap().1.status().problem
}

/// Functions by address: names and sizes, as nm has them.
#[track_caller]
fn nm(path: &Path) -> Option<BTreeMap<u64, (u64, BTreeSet<String>)>> {
    let text = run("nm", &["-S", "--defined-only", text(path)], "")?;
    let mut all: BTreeMap<u64, (u64, BTreeSet<String>)> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [address, size, kind, name] = words[..] else { continue };
        // A note's address is no function.
        if matches!(kind, "t" | "T" | "w" | "W" | "i") && name != "_.stapsdt.base" {
            let entry = all.entry(u64::from_str_radix(address, 16).unwrap()).or_default();
            entry.0 = entry.0.max(u64::from_str_radix(size, 16).unwrap());
            entry.1.insert(name.split('@').next().unwrap().to_string());
        }
    }
    assert!(!all.is_empty(), "{path:?}");
    Some(all)
}

/// What addr2line says of addresses.
#[track_caller]
fn addr2line(path: &Path, addresses: &[u64]) -> Option<Vec<Vec<Shown>>> {
    let input = addresses.iter().fold(String::new(), |mut t, a| {
        writeln!(t, "{a:#x}").unwrap();
        t
    });
    let out = run("addr2line", &["-a", "-i", "-f", "-e", text(path)], &input)?;
    let mut all: Vec<Vec<Shown>> = Vec::new();
    let mut lines = out.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap();
        let place = place.split(" (discriminator").next().unwrap();
        let (file, number) = place.rsplit_once(':').unwrap();
        all.last_mut().unwrap().push((line.into(), base(file), number.parse().unwrap_or(0)));
    }
    assert_eq!(all.len(), addresses.len());
    Some(all)
}

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap().to_string()
}

/// A name without what a compiler has put behind it for a part or a copy: debug information has none of that.
fn plain(name: &str) -> String {
    let cut = name.find('.').filter(|at| *at > 0).unwrap_or(name.len());
    name[..cut].to_string()
}

fn shown(s: &mut Symbolizer, id: ModuleId, address: u64) -> Vec<Shown> {
    let one = |f: &symbols::StackFrame| {
        let function = if f.known { f.function.to_string() } else { "??".into() };
        (function, f.file.as_deref().map_or("??".into(), base), f.line)
    };
    s.frames(id, address).iter().map(one).collect()
}

/// Every function that nm names has one of its names from its first byte to its last.
#[track_caller]
fn functions_are_those_of_nm(path: &Path, of: (Symbolizer, ModuleId)) -> usize {
    let (mut s, id) = of;
    let Some(all) = nm(path) else { return 0 };
    for (address, (size, names)) in &all {
        for at in [*address, address + size - 1] {
            let frame = s.frames(id, at).last().unwrap().clone();
            // Another function may begin within it.
            if at != *address && all.range(address + 1..=at).next().is_some() {
                continue;
            }
            assert!(names.contains(&*frame.function), "{path:?} {at:#x}: {frame:?}, not {names:?}");
            assert_eq!(frame.offset, at - address, "{path:?} {at:#x}");
        }
    }
    all.len()
}

/// Addresses of a file, all over the functions that are wanted.
fn sample(path: &Path, most: usize, wanted: impl Fn(&str) -> bool) -> Vec<u64> {
    let all = nm(path).unwrap_or_default();
    let all = all.iter().filter(|(_, (_, names))| names.iter().any(|n| wanted(n)));
    let bytes: Vec<u64> = all.flat_map(|(address, (size, _))| *address..address + size).collect();
    let step = (bytes.len() / most).max(1);
    bytes.into_iter().step_by(step).collect()
}

/// Whether frames are equal, apart from two habits of addr2line: where there is no line it gives the name that the symbol table has for the
/// object file (and `<artificial>` for the first file of a unit that LTO has made, binutils 2.40); and a function whose debug information lacks the linker's name has the source's without
/// scopes, or that of the function that holds it.
fn is_equal(found: &[Shown], want: &[Shown]) -> bool {
    let outermost = want.last().map(|w| &w.0);
    let is_mangled = |n: &str| n.starts_with("_Z");
    let is_equal = |(f, w): (&Shown, &Shown)| {
        let habit =
            Some(&w.0) == outermost && (is_mangled(&f.0) != is_mangled(&w.0)) || f.0.ends_with(&format!("::{}", w.0));
        (plain(&f.0) == plain(&w.0) || habit)
            && f.2 == w.2
            && (f.1 == w.1 || f.1 == "??" && f.2 == 0 || w.1 == "<artificial>")
    };
    found.len() == want.len() && found.iter().zip(want).all(is_equal)
}

/// How many of the addresses have other frames than addr2line gives them; the first few.
#[track_caller]
fn compare(path: &Path, mut of: (Symbolizer, ModuleId), addresses: &[u64]) -> Option<Vec<String>> {
    let want = addr2line(path, addresses)?;
    let mut wrong = Vec::new();
    for (address, want) in addresses.iter().zip(want) {
        let found = shown(&mut of.0, of.1, *address);
        if !is_equal(&found, &want) {
            wrong.push(format!("{address:#x}: {found:?}, addr2line {want:?}"));
        }
    }
    Some(wrong)
}

const C: &[(&str, &[&str])] = &[
    ("v5", &["-O2", "-g", "-gdwarf-5"]),
    ("v4", &["-O2", "-g", "-gdwarf-4"]),
    ("O0", &["-O0", "-g"]),
    ("z", &["-O2", "-g", "-gz=zlib"]),
    ("nopie", &["-O2", "-g", "-no-pie"]),
    ("static", &["-O2", "-g", "-static"]),
    ("so", &["-O2", "-g", "-shared", "-fPIC"]),
    ("lto", &["-O2", "-g", "-flto"]),
    ("sections", &["-O3", "-g", "-ffunction-sections", "-Wl,--gc-sections"]),
];

#[test]
fn frames_of_c_are_those_of_addr2line_and_nm() {
    for (name, flags) in C {
        let Some(path) = compile(&format!("c-{name}"), "inlines.c", flags) else { return };
        functions_are_those_of_nm(&path, of_file(&path));
        let own = ["outer", "outer.cold", "local", "main", "aliased", "before", "innermost", "inner", "middle"];
        let addresses = sample(&path, 3000, |n| own.contains(&n));
        assert!(addresses.len() > 200, "{}", addresses.len());
        let Some(wrong) = compare(&path, of_file(&path), &addresses) else { return };
        assert_eq!(wrong, Vec::<String>::new(), "{flags:?}");
    }
}

#[test]
fn inlined_functions_are_told_innermost_first() {
    let Some(path) = compile("c-v5", "inlines.c", C[0].1) else { return };
    let (mut s, id) = of_file(&path);
    let deepest =
        sample(&path, usize::MAX, |n| n == "outer").into_iter().map(|a| s.frames(id, a).to_vec()).max_by_key(Vec::len);
    let frames = deepest.unwrap();
    let names: Vec<&str> = frames.iter().map(|f| &*f.function).collect();
    assert_eq!(names, ["innermost", "inner", "middle", "outer"]);
    assert_eq!(frames.iter().map(|f| f.inlined).collect::<Vec<_>>(), [true, true, true, false]);
    assert!(frames.iter().all(|f| f.file.as_deref().is_some_and(|f| f.ends_with("/inlines.c")) && f.line > 0));
    // Aliases: a visible name without `_`.
    let aliased = nm(&path).unwrap().into_iter().find(|(_, (_, names))| names.contains("aliased")).unwrap();
    assert_eq!(aliased.1.1.len(), 3);
    assert_eq!(&*s.frames(id, aliased.0).last().unwrap().function, "aliased");
}

#[test]
fn frames_of_cpp_are_those_of_addr2line_and_nm() {
    for (name, flags) in
        [("O2", &["-O2", "-g"][..]), ("O1", &["-O1", "-g", "-gdwarf-4"]), ("static", &["-O2", "-g", "-static"])]
    {
        let Some(path) = compile(&format!("cc-{name}"), "inlines.cc", flags) else { return };
        functions_are_those_of_nm(&path, of_file(&path));
        let own = |n: &str| n.contains("acme") || n.contains("hidden") || n == "main" || n.contains("introsort");
        let addresses = sample(&path, 3000, own);
        assert!(addresses.len() > 500, "{}", addresses.len());
        let Some(wrong) = compare(&path, of_file(&path), &addresses) else { return };
        assert_eq!(wrong, Vec::<String>::new(), "{flags:?}");
        let mut s = Symbolizer::new(Finder::new());
        let id = s.module(&Identity::new(&path, &[])).unwrap();
        let names: BTreeSet<String> = addresses
            .iter()
            .flat_map(|a| s.frames(id, *a).iter().map(|f| f.function.to_string()).collect::<Vec<_>>())
            .collect();
        assert!(names.iter().any(|n| n.starts_with("acme::Lid::open(std::")), "{names:#?}");
        assert!(
            names.iter().any(|n| n == "(anonymous namespace)::hidden(std::vector<int, std::allocator<int> >&)"),
            "{names:#?}"
        );
    }
}

#[test]
fn frames_of_rust_are_those_of_addr2line_and_nm() {
    for (name, flags) in [
        ("release", &["-C", "opt-level=3", "-g"][..]),
        ("lines", &["-C", "opt-level=2", "-C", "debuginfo=line-tables-only"]),
        ("v0", &["-C", "opt-level=3", "-g", "-C", "symbol-mangling-version=v0"]),
    ] {
        let Some(path) = compile(&format!("rs-{name}"), "inlines.rs", flags) else { return };
        functions_are_those_of_nm(&path, of_file(&path));
        let Some(wrong) = compare(&path, of_file(&path), &sample(&path, 2000, |n| n.contains("inlines"))) else {
            return;
        };
        assert_eq!(wrong, Vec::<String>::new(), "{flags:?}");
        let Some(wrong) = compare(&path, of_file(&path), &sample(&path, 5000, |_| true)) else { return };
        let few: Vec<&String> = wrong.iter().take(5).collect();
        assert!(wrong.len() <= 50, "{} {few:#?}", wrong.len());
        let mut s = Symbolizer::new(Finder::new()).style(NameStyle::Plain);
        let id = s.module(&Identity::new(&path, &[])).unwrap();
        let addresses = sample(&path, usize::MAX, |n| n.contains("outer"));
        let has = |s: &mut Symbolizer, name: &str| {
            addresses.iter().any(|a| s.frames(id, *a).iter().any(|f| &*f.function == name))
        };
        assert!(has(&mut s, "inlines::outer"), "{flags:?}");
        // Line tables have no scopes.
        assert!(has(&mut s, "inlines::innermost") || name == "lines" && has(&mut s, "innermost"), "{flags:?}");
    }
}

/// Entries of `.plt`, as objdump names them.
#[test]
fn entries_of_the_plt_are_named_as_objdump_names_them() {
    let all: &[(&str, &[&str])] = &[
        ("lazy", &["-O2", "-Wl,-z,lazy"]),
        ("now", &["-O2", "-Wl,-z,now"]),
        ("ibt", &["-O2", "-fcf-protection=full", "-Wl,-z,ibtplt", "-Wl,-z,lazy"]),
        ("so", &["-O2", "-shared", "-fPIC"]),
        ("nopie", &["-O2", "-no-pie"]),
    ];
    for (name, flags) in all {
        let Some(path) = compile(&format!("plt-{name}"), "inlines.c", flags) else { return };
        let Some(out) = run("objdump", &["-d", text(&path)], "") else { return };
        let (mut s, id) = of_file(&path);
        let mut seen = 0;
        for line in out.lines().filter_map(|l| l.strip_suffix("@plt>:")) {
            let (address, function) = line.split_once(" <").unwrap();
            let address = u64::from_str_radix(address, 16).unwrap();
            let frame = &s.frames(id, address + 1)[0];
            assert_eq!((&*frame.function, frame.offset), (&*format!("{function}@plt"), 1), "{flags:?}");
            seen += 1;
        }
        assert!(seen >= 3, "{flags:?} {seen}");
    }
}

/// This process: its own code, the C library, the vDSO, the kernel, memory without a file.
#[test]
fn addresses_of_a_process_are_resolved() {
    use symbols::kallsyms::Kallsyms;
    use symbols::perf_map::PerfMap;
    use symbols::process::Process;
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut s = Symbolizer::new(Finder::new()).style(NameStyle::Plain);
    let mut p = Process::new();
    let mut vdso = None;
    for line in maps.lines().filter(|l| l.contains("xp ")) {
        let mut words = line.split_ascii_whitespace();
        let (range, _, offset) = (words.next().unwrap(), words.next(), words.next().unwrap());
        let number = |t: &str| u64::from_str_radix(t, 16).unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let (start, end, path) = (number(start), number(end), words.nth(2).unwrap_or(""));
        let id = match path {
            "[vdso]" => {
                vdso = Some((start, end));
                let mut bytes = vec![0; (end - start) as usize];
                use symbols::ReadAt;
                fs::File::open("/proc/self/mem").unwrap().read_at(start, &mut bytes).unwrap();
                s.module_of_bytes(&Identity::new(path, &[]), Rc::new(bytes))
            }
            p if p.starts_with('/') => {
                let id = build_id::of(&fs::File::open(p).unwrap()).unwrap_or_default();
                s.module(&Identity::new(p, &id))
            }
            _ => None,
        };
        p.map(1, start, end - start, number(offset), id);
    }
    let own = addresses_of_a_process_are_resolved as *const () as u64;
    assert_eq!(&*s.resolve(&p, own, 2).last().unwrap().function, "symbolize::addresses_of_a_process_are_resolved");
    assert_eq!(s.resolve(&p, own, 2).last().unwrap().offset, 0);
    if let Some((start, end)) = vdso {
        let names: BTreeSet<String> = (start..end).map(|a| s.resolve(&p, a, 2)[0].function.to_string()).collect();
        assert!(names.iter().any(|n| n.contains("vdso_clock_gettime") || n == "clock_gettime"), "{names:?}");
    }
    assert_eq!(&*s.resolve(&p, 0x10, 2)[0].function, "[unknown]");
    p.set_perf_map(PerfMap::parse(b"10 20 LazyCompile:*fib\n"));
    let frame = s.resolve(&p, 0x18, 2)[0].clone();
    assert_eq!((&*frame.function, frame.offset, frame.known), ("LazyCompile:*fib", 8, true));
    assert_eq!(&*s.resolve(&p, u64::MAX - 5, 2)[0].function, "[unknown]");
    s.set_kernel(Kallsyms::parse(b"ffffffff81000000 T _stext\nffffffff81000010 t helper\t[x]\n").unwrap());
    let frame = s.resolve(&p, 0xffff_ffff_8100_0014, 2)[0].clone();
    assert_eq!((&*frame.function, frame.offset), ("helper [x]", 4));
    let pack = s.packed_kernel([0xffff_ffff_8100_0014]);
    let mut other = Symbolizer::new(Finder::new());
    other.set_kernel_pack(symbols::pack::Pack::parse(&pack).unwrap());
    assert_eq!(other.kernel_frames(0xffff_ffff_8100_0014), [frame]);
}

/// Libraries that nobody here has made.
#[test]
fn functions_of_libraries_are_those_of_nm() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libraries: BTreeSet<&str> =
        maps.lines().filter_map(|l| l.split_ascii_whitespace().nth(5)).filter(|p| p.contains(".so")).collect();
    assert!(!libraries.is_empty());
    for path in libraries {
        let Some(out) = run("nm", &["-D", "-S", "--defined-only", path], "") else { return };
        let mut names: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
        for line in out.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if let [address, _, "T" | "W" | "i", name] = words[..] {
                let name = name.split('@').next().unwrap();
                names.entry(u64::from_str_radix(address, 16).unwrap()).or_default().insert(name);
            }
        }
        // Without what /usr/lib/debug may have.
        let (mut s, id) = of(Finder::new().without_system().directory("/"), &Identity::new(path, &[]));
        for (address, names) in &names {
            let frame = s.frames(id, *address).last().unwrap();
            assert!(
                names.contains(&*frame.function) && frame.offset == 0,
                "{path} {address:#x}: {frame:?}, not {names:?}"
            );
        }
        assert!(names.len() > 5, "{path}");
    }
}

/// The table of this machine's kernel.
#[test]
fn every_function_of_this_kernel_is_found() {
    use symbols::kallsyms::{Kallsyms, KallsymsError};
    let Ok(text) = fs::read("/proc/kallsyms") else { return testkit::skip("kernel:kallsyms", "no /proc/kallsyms") };
    let table = match Kallsyms::parse(&text) {
        Err(KallsymsError::Hidden) => return testkit::skip("root", "addresses of the kernel are hidden"),
        other => other.unwrap(),
    };
    let mut names: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    let text = String::from_utf8(text).unwrap();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if matches!(words[1], "t" | "T" | "w" | "W") {
            names.entry(u64::from_str_radix(words[0], 16).unwrap()).or_default().insert(words[2]);
        }
    }
    assert!(names.len() > 10_000);
    for (address, names) in names.range(1 << 63..) {
        let found = table.find(*address).unwrap_or_else(|| panic!("{address:#x} {names:?}"));
        assert!(found.start == *address && names.contains(found.name), "{address:#x} {found:?}, not {names:?}");
    }
    let (start, end) = table.text().unwrap();
    assert!(start < end && table.find(start).is_some());
}
