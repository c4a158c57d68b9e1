//! `cargo xtask bt-suite --debian | --suite DIR [--floor N] [--verbose] [CASES]`: bpftrace's runtime suite, run by `trapline run`. `--fetch`
//! only fetches Debian's package.
//!
//! ```text
//! Debian's source package ─► tests/runtime ─► cases ─► what this host can run ─► bpftrace → trapline, as root ─► passed, failed
//!                            (or DIR)                                         └─► as nobody: begin and end only
//! ```
//!
//! Nothing of the suite is in this tree: it is read from the package, which apt fetches into `target`. The programs that its cases trace are
//! ours, in `tests/programs/bt`, with the names and symbols that cases ask for. CASES are parts of `FILE.NAME`; without any, fewer passes than
//! the floor are an error.

mod cases;
mod expect;
mod fetch;
mod host;
mod one;
mod wording;

use crate::lab::{self, Scratch, User, target};
use crate::root;
use crate::skips;
use anyhow::{Context, Result, bail, ensure};
use cases::Case;
use host::Host;
use one::Place;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask bt-suite --debian | --suite DIR [--floor N] [--verbose] [CASES] | --fetch";

/// How many cases pass as root, and how many with begin and end only as nobody: both only rise.
const FLOOR: usize = 382;
const FLOOR_AS_NOBODY: usize = 157;

/// As many as there are processors: cases mostly wait.
const AT_ONCE: usize = 2;

/// What the file of skipped tests calls it.
const TEST: &str = "bt-suite";

struct Asked {
    suite: PathBuf,
    floor: Option<usize>,
    verbose: bool,
    cases: Vec<String>,
}

/// How a case has gone: what is wrong, or nothing.
type Outcome = std::result::Result<(), String>;

pub fn run(args: &[String]) -> Result<()> {
    if args == ["--fetch"] {
        return fetch::suite().map(|dir| println!("{}", dir.display()));
    }
    let asked = asked(args)?;
    lab::run(Command::new(env!("CARGO")).args(["build", "--quiet", "-p", "trapline"]).current_dir(root()))?;
    suite(&asked)
}

/// Runs it with the trapline that the tests use, or notes in the file `skips` why it cannot.
pub fn check(skips: &Path) -> Result<()> {
    if lab::said("id", &["-u"]) != "0" {
        return skips::add(skips, "root", TEST, "not root");
    }
    match fetch::suite() {
        Err(why) => skips::add(skips, "package:bpftrace", TEST, &format!("{why:#}")),
        Ok(dir) => {
            let suite_of = dir.canonicalize()?;
            suite(&Asked { suite: suite_of, floor: None, verbose: false, cases: Vec::new() })
        }
    }
}

fn suite(asked: &Asked) -> Result<()> {
    let started = Instant::now();
    let scratch = Scratch::new("bt-suite")?;
    let dir = prepare(scratch.path(), &asked.suite)?;
    let host = Host::here();
    let all = cases::read(&asked.suite)?;
    let mut hindered: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let (mut able, mut alone) = (Vec::new(), Vec::new());
    let is_asked = |case: &Case| asked.cases.is_empty() || asked.cases.iter().any(|c| case.path().contains(c.as_str()));
    for case in all.iter().filter(|c| is_asked(c)) {
        let text = with_script(case, &asked.suite);
        let lacks = || case.requires.iter().find(|r| !host.has(r, &dir)).map(|_| "want what is not installed or fails");
        match host.hinders(case, &text).or_else(lacks) {
            Some(why) => hindered.entry(why).or_default().push(case.path()),
            None => {
                able.push(case);
                alone.extend(host.is_alone(&text).then_some(case));
            }
        }
    }
    let as_root = run_all(&able, &Place { dir: dir.clone(), user: User::Same }, asked.verbose)?;
    let as_nobody = run_all(&alone, &Place { dir, user: User::Nobody }, asked.verbose)?;
    show(&able, &as_root);
    for (why, names) in &hindered {
        println!("{:5} not runnable here: {why}", names.len());
    }
    let passed = |outcomes: &[Outcome]| outcomes.iter().filter(|o| o.is_ok()).count();
    let failures = |who: &str, cases: &[&Case], outcomes: &[Outcome]| {
        for (case, outcome) in cases.iter().zip(outcomes) {
            if let Err(what) = outcome {
                println!("{who}{}: {}", case.path(), short(what, asked.verbose));
            }
        }
    };
    failures("", &able, &as_root);
    // What fails as root too is said once.
    let fine: Vec<&str> = able.iter().zip(&as_root).filter(|(_, o)| o.is_ok()).map(|(c, _)| c.run.as_str()).collect();
    let (only, outcomes): (Vec<&Case>, Vec<Outcome>) = alone
        .iter()
        .zip(&as_nobody)
        .filter(|(c, _)| fine.contains(&c.run.as_str()))
        .map(|(c, o)| (*c, o.clone()))
        .unzip();
    failures("as nobody: ", &only, &outcomes);
    let (root, nobody) = (passed(&as_root), passed(&as_nobody));
    let reworded = able.iter().zip(&as_root).filter(|(c, o)| o.is_ok() && wording::of(&c.path()).is_some()).count();
    println!(
        "bt-suite: {} cases: {root} of {} that can run here pass, {reworded} of them by words of later versions or of our own; as nobody {nobody} of {} with begin and end only; {:.0} s",
        all.len(),
        able.len(),
        alone.len(),
        started.elapsed().as_secs_f64()
    );
    if asked.cases.is_empty() {
        let floor = asked.floor.unwrap_or(FLOOR);
        ensure!(root >= floor, "{root} cases pass, and {floor} should");
        ensure!(nobody >= FLOOR_AS_NOBODY, "{nobody} cases pass as nobody, and {FLOOR_AS_NOBODY} should");
    }
    Ok(())
}

fn asked(args: &[String]) -> Result<Asked> {
    let (mut suite, mut floor, mut verbose, mut cases) = (None, None, false, Vec::new());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--debian" => suite = Some(fetch::suite()?),
            "--suite" => suite = Some(words.next().context(USAGE)?.into()),
            "--floor" => floor = Some(words.next().and_then(|n| n.parse().ok()).context(USAGE)?),
            "--verbose" => verbose = true,
            word if word.starts_with('-') => bail!(USAGE),
            word => cases.push(word.into()),
        }
    }
    let suite: PathBuf = suite.context(USAGE)?;
    let inside = suite.join("tests/runtime");
    let suite = if inside.is_dir() { inside } else { suite };
    Ok(Asked { suite: suite.canonicalize()?, floor, verbose, cases })
}

/// The directory in which cases run: the command by the name that it has there, the programs, scripts and outputs.
fn prepare(dir: &Path, suite: &Path) -> Result<PathBuf> {
    let bin = dir.join("bin");
    fs::create_dir(&bin)?;
    fs::copy(target().join("debug/trapline"), bin.join("trapline")).context("cannot copy trapline")?;
    symlink("trapline", bin.join("bpftrace"))?;
    if let Some(python) = ["/usr/bin/python3", "/usr/local/bin/python3"].iter().find(|p| Path::new(p).exists()) {
        symlink(python, bin.join("python"))?;
    }
    for name in ["scripts", "outputs"] {
        lab::run(Command::new("cp").arg("-r").arg(suite.join(name)).arg(fresh(dir, "runtime")?))?;
    }
    build_programs(dir)?;
    Ok(dir.to_path_buf())
}

/// A directory that may exist already.
fn fresh(dir: &Path, name: &str) -> Result<PathBuf> {
    let path = dir.join(name);
    fs::create_dir_all(&path)?;
    Ok(path)
}

/// Compiles `tests/programs/bt`: programs, and libraries, whose names begin with `lib`, before them.
fn build_programs(dir: &Path) -> Result<()> {
    let (programs, libraries) = (fresh(dir, "testprogs")?, fresh(dir, "testlibs")?);
    let mut sources: Vec<PathBuf> =
        fs::read_dir(root().join("tests/programs/bt"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    sources.sort();
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    for source in sources.iter().filter(|s| s.extension().is_some_and(|e| e == "c")) {
        let name = stem(source);
        let mut gcc = Command::new("gcc");
        gcc.args(["-O0", "-g", "-w", "-rdynamic"]);
        match name.starts_with("lib") {
            true => gcc.args(["-shared", "-fPIC", "-o"]).arg(libraries.join(format!("{name}.so"))).arg(source),
            false => gcc.arg("-o").arg(programs.join(&name)).arg(source),
        };
        // A program of a library's users says so.
        if let Some(library) = fs::read_to_string(source)?
            .lines()
            .find_map(|l| Some(l.strip_prefix("/* uses ")?.strip_suffix(" */")?.to_string()))
        {
            gcc.arg(libraries.join(&library)).arg(format!("-Wl,-rpath,{}", libraries.display()));
        }
        lab::run(&mut gcc)?;
    }
    Ok(())
}

/// A case's command, with the script that it names.
fn with_script(case: &Case, suite: &Path) -> String {
    let file = case.run.split_whitespace().find_map(|w| w.strip_prefix("runtime/"));
    let script = file.and_then(|f| fs::read_to_string(suite.join(f)).ok()).unwrap_or_default();
    format!("{} {script}", case.run)
}

/// The outcomes of cases, in their order.
fn run_all(cases: &[&Case], place: &Place, verbose: bool) -> Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![Ok(()); cases.len()]);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(nth) else { return Ok(()) };
                let started = Instant::now();
                let outcome = one::run(case, place).with_context(|| case.path())?;
                if verbose {
                    let (took, word) =
                        (started.elapsed().as_secs_f64(), if outcome.is_ok() { "passed" } else { "failed" });
                    println!("{took:5.2} s {word} {}", case.path());
                }
                outcomes.lock().unwrap_or_else(|e| e.into_inner())[nth] = outcome;
            }
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
    })?;
    Ok(outcomes.into_inner().unwrap_or_else(|e| e.into_inner()))
}

/// The counts by file.
fn show(cases: &[&Case], outcomes: &[Outcome]) {
    let mut files: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(outcomes) {
        let (passed, failed) = files.entry(&case.file).or_default();
        *(if outcome.is_ok() { passed } else { failed }) += 1;
    }
    println!("passed failed");
    for (file, (passed, failed)) in files {
        println!("{passed:6} {failed:6} {file}");
    }
}

fn short(text: &str, verbose: bool) -> String {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((at, _)) if !verbose => format!("{}…", &text[..at]),
        _ => text.to_string(),
    }
}
