//! What is left of files that are stripped or compressed, and where the rest is found.

use super::*;

/// A program, and what strip and objcopy make of it.
struct Stripped {
    dir: Scratch,
    whole: PathBuf,
    /// `stripped` in `dir`, which names `whole.debug`.
    stripped: PathBuf,
    debug: PathBuf,
    build_id: Vec<u8>,
}

#[track_caller]
fn stripped(name: &str, flags: &[&str]) -> Option<Stripped> {
    let whole = compile(&format!("stripped-{name}"), "inlines.c", &[&["-O2", "-g"], flags].concat())?;
    let dir = Scratch::new(name);
    let (stripped, debug) = (dir.join("stripped"), dir.join("whole.debug"));
    run("objcopy", &["--only-keep-debug", text(&whole), text(&debug)], "")?;
    let link = format!("--add-gnu-debuglink={}", text(&debug));
    run("objcopy", &["--strip-all", &link, text(&whole), text(&stripped)], "")?;
    let build_id = build_id::of(&fs::File::open(&whole).unwrap()).unwrap_or_default();
    Some(Stripped { dir, whole, stripped, debug, build_id })
}

/// Frames of all addresses of the whole file.
fn all_frames(whole: &Path, mut of: (Symbolizer, ModuleId)) -> Vec<Vec<Shown>> {
    sample(whole, usize::MAX, |_| true).into_iter().map(|a| shown(&mut of.0, of.1, a)).collect()
}

#[test]
fn what_was_stripped_is_found_where_it_is() {
    let Some(p) = stripped("links", &["-Wl,--build-id"]) else { return };
    let want = all_frames(&p.whole, of_file(&p.whole));
    let known = |of: (Symbolizer, ModuleId)| all_frames(&p.whole, of) == want;
    let identity = Identity::new(&p.stripped, &p.build_id);
    assert!(p.build_id.len() == 20 && want.iter().any(|f| f.len() > 3));
    // Beside it, by its link; then in a directory of the user's.
    assert!(known(of(Finder::new(), &identity)));
    assert!(known(of(Finder::new(), &Identity::new(&p.stripped, &[]))));
    let id = identity.hex();
    let places = ["a/whole.debug", "b/stripped", "c/stripped.debug"];
    let by_id = [
        format!("d/.build-id/{}/{}.debug", &id[..2], &id[2..]),
        format!("e/{}/{}.debug", &id[..2], &id[2..]),
        format!("f/{id}.debug"),
    ];
    let below = format!("g{}", text(&p.stripped));
    let elsewhere = p.dir.join("elsewhere");
    fs::rename(&p.debug, &elsewhere).unwrap();
    assert!(!known(of(Finder::new(), &identity)));
    for place in places.iter().map(|p| p.to_string()).chain(by_id).chain([below]) {
        let path = p.dir.join(&place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(&elsewhere, &path).unwrap();
        let directory = p.dir.join(&place[..1]);
        assert!(known(of(Finder::new().directory(&directory), &identity)), "{place}");
        assert!(known(of(Finder::new().directory(&path), &identity)), "{place}");
        // Without the program, as on another machine.
        let finder = Finder::new().without_system().directory(&directory);
        let gone = Identity::new("/nowhere/stripped", &p.build_id);
        if !place.starts_with(['a', 'g']) {
            assert!(known(of(finder.clone(), &gone)), "{place}");
        }
        // Of another program with that name nothing is taken.
        let mut other = p.build_id.clone();
        other[0] ^= 1;
        let (mut s, m) = of(finder, &Identity::new(&p.stripped, &other));
        let address = sample(&p.whole, 1, |n| n == "outer")[0];
        assert_eq!(&*s.frames(m, address)[0].function, format!("{}+{address:#x}", text(&p.stripped)), "{place}");
        assert!(!s.frames(m, address)[0].known);
        assert_eq!(problem(&s), Some(Problem::NotFound));
    }
}

#[test]
fn a_file_without_build_id_is_known_by_its_sum() {
    let Some(p) = stripped("crc", &["-Wl,--build-id=none"]) else { return };
    assert!(p.build_id.is_empty());
    let want = all_frames(&p.whole, of_file(&p.whole));
    assert!(all_frames(&p.whole, of_file(&p.stripped)) == want);
    let mut bytes = fs::read(&p.debug).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&p.debug, bytes).unwrap();
    assert!(all_frames(&p.whole, of_file(&p.stripped)).iter().all(|f| f.len() == 1));
}

/// As Fedora does: the symbols of functions that .dynsym lacks, packed by xz.
#[test]
fn the_small_table_of_a_stripped_program_is_read() {
    let Some(p) = stripped("mini", &["-Wl,--build-id"]) else { return };
    let mini = p.dir.join("mini");
    let Some(()) = run("objcopy", &["-S", "--remove-section", ".comment", text(&p.debug), text(&mini)], "").map(drop)
    else {
        return;
    };
    let keep: String =
        nm(&p.whole).unwrap().values().flat_map(|(_, names)| names.iter().map(|n| format!("{n}\n"))).collect();
    p.dir.write("keep", keep.as_bytes());
    let symbols = format!("--keep-symbols={}", text(&p.dir.join("keep")));
    run("objcopy", &["-S", &symbols, text(&p.debug), text(&mini)], "");
    if run("xz", &["-k", text(&mini)], "").is_none() {
        return;
    }
    let section = format!(".gnu_debugdata={}", text(&p.dir.join("mini.xz")));
    let with = p.dir.join("with");
    fs::remove_file(&p.debug).unwrap();
    run("objcopy", &["--add-section", &section, text(&p.stripped), text(&with)], "");
    assert!(functions_are_those_of_nm(&p.whole, of(Finder::new(), &Identity::new(&with, &p.build_id))) > 5);
    let (mut s, id) = of_file(&p.stripped);
    let address = sample(&p.whole, 1, |n| n == "local")[0];
    assert!(!s.frames(id, address)[0].known);
}

/// addr2line does not read all of them.
#[test]
fn compressed_debug_information_says_what_it_said() {
    let dir = Scratch::new("compressed");
    for (name, flags) in &C[..2] {
        let Some(path) = compile(&format!("c-{name}"), "inlines.c", flags) else { return };
        let want = all_frames(&path, of_file(&path));
        for how in ["zlib", "zlib-gnu", "zstd"] {
            let compressed = dir.join(how);
            let how = format!("--compress-debug-sections={how}");
            if run("objcopy", &[&how, text(&path), text(&compressed)], "").is_none() {
                return;
            }
            let elf = symbols::Elf::read(fs::File::open(&compressed).unwrap()).unwrap();
            assert!(elf.sections().any(|s| s.name == ".debug_info" && s.compressed));
            assert!(all_frames(&compressed, of_file(&compressed)) == want, "{name}, {how}");
        }
    }
}

/// What dwz lets several files share.
#[test]
fn what_dwz_has_moved_to_another_file_is_found() {
    if Command::new("dwz").arg("-v").output().is_err() {
        return testkit::skip("package:dwz", "no dwz");
    }
    let dir = Scratch::new("dwz");
    let mut files = Vec::new();
    for name in ["one", "two"] {
        let Some(path) =
            compile(&format!("dwz-{name}"), "inlines.cc", &["-O2", "-g", "-gdwarf-4", "-Wl,--build-id=uuid"])
        else {
            return;
        };
        let copy = dir.join(name);
        fs::copy(&path, &copy).unwrap();
        files.push(copy);
    }
    let want: Vec<_> = files.iter().map(|f| all_frames(f, of_file(f))).collect();
    let shared = dir.join("shared");
    run("dwz", &["-m", text(&shared), text(&files[0]), text(&files[1])], "");
    assert!(shared.exists());
    for (path, want) in files.iter().zip(&want) {
        assert!(all_frames(path, of_file(path)) == *want);
    }
    fs::remove_file(&shared).unwrap();
    assert!(all_frames(&files[0], of_file(&files[0])) != want[0]);
    let (mut s, id) = of_file(&files[0]);
    s.frames(id, sample(&files[0], 1, |n| n == "main")[0]);
    assert_eq!(problem(&s), Some(Problem::Shared));
}

#[test]
fn packs_say_what_the_files_say() {
    for (source, flags) in
        [("inlines.c", &["-O2", "-g", "-Wl,--build-id"][..]), ("inlines.cc", &["-O2", "-g", "-Wl,--build-id"])]
    {
        let Some(path) = compile(&format!("pack-{source}"), source, flags) else { return };
        let id = build_id::of(&fs::File::open(&path).unwrap()).unwrap();
        let identity = Identity::new(&path, &id);
        let mut s = Symbolizer::new(Finder::new());
        let m = s.module(&identity).unwrap();
        let addresses = sample(&path, 100, |_| true);
        let want: Vec<_> = addresses.iter().map(|a| s.frames(m, *a).to_vec()).collect();
        let dir = Scratch::new("packs");
        let name = symbols::pack::file_name(&identity);
        for whole in [false, true] {
            dir.write(&name, &s.packed(m, addresses.iter().copied(), whole).unwrap());
            // On another machine: there is no such file.
            let elsewhere = Identity::new(&path, &id);
            let mut other = Symbolizer::new(Finder::new().without_system().packs(&*dir));
            let om = other.module(&elsewhere).unwrap();
            let found: Vec<_> = addresses.iter().map(|a| other.frames(om, *a).to_vec()).collect();
            assert!(found == want, "{source} {whole}");
            let status = other.modules().next().unwrap().1.status();
            assert!(status.packed && status.program.is_none() && status.problem.is_none(), "{status:?}");
            let section = symbols::headers::Headers::read(&fs::File::open(&path).unwrap()).unwrap();
            let text = section.section(".text").unwrap();
            assert_eq!(other.address_of(om, text.offset), Some(text.address));
            // An address that the trace does not have: its function, if all were packed.
            let main = sample(&path, usize::MAX, |n| n == "main").into_iter().find(|a| !addresses.contains(a)).unwrap();
            let frame = other.frames(om, main)[0].clone();
            assert_eq!((&*frame.function == "main", frame.known), (whole, whole), "{frame:?}");
        }
        // One of another build does not count.
        let mut wrong = id.clone();
        wrong[3] ^= 1;
        let wrong = Identity::new(&path, &wrong);
        fs::rename(dir.join(&name), dir.join(symbols::pack::file_name(&wrong))).unwrap();
        let mut other = Symbolizer::new(Finder::new().without_system().packs(&*dir));
        let om = other.module(&wrong).unwrap();
        assert!(!other.frames(om, addresses[0])[0].known);
    }
}

/// A program in place of `debuginfod-find`, which has the file of one build id.
#[test]
fn debuginfod_is_asked_when_that_is_wanted() {
    use symbols::finder::{Debuginfod, DebuginfodError};
    let Some(p) = stripped("debuginfod", &["-Wl,--build-id"]) else { return };
    let identity = Identity::new(&p.stripped, &p.build_id);
    let there = p.dir.join("downloaded");
    fs::rename(&p.debug, &there).unwrap();
    let script = format!(
        "#!/bin/sh\n[ \"$DEBUGINFOD_URLS\" = 'http://localhost:1 x' ] && [ \"$1 $2\" = 'debuginfo {}' ] || exit 1\necho {}\n",
        identity.hex(),
        text(&there)
    );
    let path = format!("relative:/nonexistent:{}", text(&p.dir));
    assert_eq!(Debuginfod::new("http://localhost:1", &path).unwrap_err(), DebuginfodError::NoProgram);
    p.dir.write("debuginfod-find", script.as_bytes());
    testkit::open_to_all(&p.dir.join("debuginfod-find"), 0o755);
    assert_eq!(Debuginfod::new(" ", &path).unwrap_err(), DebuginfodError::NoServer);
    let want = all_frames(&p.whole, of_file(&p.whole));
    assert!(all_frames(&p.whole, of(Finder::new(), &identity)) != want);
    let finder = |servers| Finder::new().debuginfod(Debuginfod::new(servers, &path).unwrap());
    assert!(all_frames(&p.whole, of(finder("http://localhost:1 x"), &identity)) == want);
    // It fails, or has something else.
    assert!(all_frames(&p.whole, of(finder("http://localhost:2"), &identity)) != want);
    fs::copy("/bin/sh", &there).unwrap();
    assert!(all_frames(&p.whole, of(finder("http://localhost:1 x"), &identity)) != want);
}

/// Paths of a trace may name anything.
#[test]
fn only_regular_files_are_opened_and_nothing_is_waited_for() {
    use symbols::files::{Files, Stamp};
    let dir = Scratch::new("odd");
    let pipe = dir.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [
        pipe.as_path(),
        Path::new("/dev/zero"),
        Path::new("/"),
        Path::new("/dev/tty"),
        Path::new("relative"),
        Path::new(""),
    ] {
        assert!(Finder::new().program(&Identity::new(path, &[])).is_none(), "{path:?}");
        let finder = Finder::new().directory(&*dir).directory("/");
        assert!(finder.debug(&Identity::new(path, &[1; 20]), None).is_none(), "{path:?}");
    }
    dir.write("file", b"\x7fELF");
    let path = dir.join("file");
    let stamp = symbols::finder::stamp_of(&fs::File::open(&path).unwrap()).unwrap();
    let of = |stamp: Stamp| Finder::new().program(&Identity { stamp: Some(stamp), ..Identity::new(&path, &[]) });
    assert!(of(stamp).is_some());
    assert!(of(Stamp { size: 5, ..stamp }).is_none() && of(Stamp { modified: stamp.modified - 1, ..stamp }).is_none());
}
