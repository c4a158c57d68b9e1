//! crates/cli/src/examples.md: each of its transcripts is run, succeeds, and prints the output that the file has.
//!
//! Those of a command are run in one directory, one after another. A line that ends with `&` runs beside those that follow, which are
//! repeated until they print what they should: what they are about may not have come so far.

use crate::cookbook::{missing, programs};
use crate::debuginfod::FIND;
use crate::lab::{self, Running, User};
use crate::slab::Place;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A line that is typed, and what it prints.
#[derive(Debug)]
struct Step {
    root: bool,
    line: String,
    expected: Vec<String>,
}

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/examples.md")).expect("examples.md")
}

/// The transcripts of a command.
fn steps(page: &str, command: &str) -> Vec<Step> {
    let (mut all, mut root) = (Vec::<Step>::new(), false);
    let of_command = page.split("\n# ").filter_map(|part| part.split_once('\n')).filter(|(name, _)| *name == command);
    for block in of_command.flat_map(|(_, body)| body.split("\n\n")).map(|block| block.trim_matches('\n')) {
        for line in block.lines().filter_map(|line| line.strip_prefix("    ")) {
            match line.strip_prefix("$ ") {
                Some(line) => all.push(Step { root, line: line.into(), expected: Vec::new() }),
                None => all.last_mut().expect("a line that is typed").expected.push(line.into()),
            }
        }
        root = block == "<!-- root -->";
    }
    all
}

/// Where the steps of a command are run.
struct Scene {
    dir: PathBuf,
    /// Those of root: what they leave in the kernel goes with it.
    place: Option<Place>,
}

impl Scene {
    /// `line` for a shell, in which `$!` is `pid`.
    fn shell(&self, step: &Step, line: &str, pid: u32) -> Command {
        let line = format!("cd {} && exec 2>&1\n{}", self.dir.display(), line.replace("$!", &pid.to_string()));
        let words = ["sh", "-c", &line];
        let mut sh = match &self.place {
            Some(place) if step.root => place.command(User::Me, &words),
            _ => lab::as_user(if lab::is_root() && lab::has("setpriv") { User::Nobody } else { User::Me }, &words),
        };
        let path = format!("{}:{}:{}", lab::dir().display(), self.dir.display(), testkit::PATH);
        // Nobody answers there.
        sh.env("PATH", path).env("DEBUGINFOD_URLS", "http://127.0.0.1:1");
        sh
    }

    /// Why a step has failed.
    fn failure(&self, step: &Step, pid: u32) -> Option<String> {
        let out = lab::run(&mut self.shell(step, &step.line, pid));
        let lacks = missing(&out.out(), &step.expected).map(|line| format!("lacks: {line}\n"));
        let ends = Some(format!("ends with {}\n", out.code())).filter(|_| out.code() != 0);
        let begins = out.out().chars().take(2000).collect::<String>();
        lacks.or(ends).map(|why| format!("$ {}\n{why}{begins}", step.line))
    }
}

/// Runs the transcripts of a command.
fn play(command: &str) {
    let (steps, dir) = (steps(&page(), command), lab::scratch());
    if programs(&dir).is_none() {
        return;
    }
    fs::write(dir.join("debuginfod-find"), FIND).expect("a stand-in");
    testkit::open_to_all(&dir.join("debuginfod-find"), 0o755);
    let place = if steps.iter().any(|s| s.root) { Place::new() } else { None };
    let scene = Scene { dir, place };
    let mut beside: Vec<Running> = Vec::new();
    let mut wrong = Vec::new();
    for step in steps.iter().filter(|s| !s.root || scene.place.is_some()) {
        let pid = beside.last().map_or(0, Running::pid);
        if let Some(line) = step.line.strip_suffix(" &") {
            if !lab::may_attach(User::Nobody) {
                break;
            }
            beside.push(lab::start(scene.shell(step, &format!("exec {line} >/dev/null"), pid).stdout(Stdio::null())));
            continue;
        }
        let until = Instant::now() + Duration::from_secs(if beside.is_empty() { 0 } else { 20 });
        let mut failure = scene.failure(step, pid);
        while failure.is_some() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
            failure = scene.failure(step, pid);
        }
        wrong.extend(failure);
    }
    assert!(wrong.is_empty(), "{} examples of {command} do something else:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! examples {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            play(stringify!($name));
        })*

        #[test]
        fn the_examples_of_each_command_are_run() {
            for name in page().lines().filter_map(|line| line.strip_prefix("# ")) {
                assert!([$(stringify!($name)),*].contains(&name), "{name}");
                assert!(!steps(&page(), name).is_empty(), "{name}");
            }
        }
    };
}

// Slow: dozens of command lines each.
examples! { trace run test record profile graph heap report open diff pack stacks tracer session slab schema man completions repair }
