//! docs/COOKBOOK.md and docs/SCRIPTS.md: each of their commands is run, and prints what the page says.
//!
//! A recipe is a heading, an `sh` block and a `text` block. The lines of the latter come in this order in what the command prints; `…` is any
//! text, and spaces are as many as there are. `<!-- root -->` is for root only, `<!-- with: COMMAND -->` runs beside, as process `$PID`.

use crate::lab::{self, User};
use lang::script::table::{Class, ROWS, Row};
use std::fs;
use std::path::Path;
use std::process::Stdio;

const COOKBOOK: &str = "COOKBOOK.md";
const SCRIPTS: &str = "SCRIPTS.md";

#[derive(Debug, Default)]
struct Recipe {
    title: String,
    root: bool,
    with: Option<String>,
    command: String,
    expected: Vec<String>,
}

fn page(name: &str) -> String {
    fs::read_to_string(format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"))).expect("a page")
}

fn recipes(page: &str) -> Vec<Recipe> {
    let mut all: Vec<Recipe> = Vec::new();
    let mut block = "";
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("### ").filter(|_| block.is_empty()) {
            all.push(Recipe { title: title.into(), ..Recipe::default() });
        }
        let Some(recipe) = all.last_mut() else { continue };
        match (block, line) {
            ("", "```sh") => block = "sh",
            ("", "```text") => block = "text",
            ("", "<!-- root -->") => recipe.root = true,
            ("", _) => {
                if let Some(with) = line.strip_prefix("<!-- with: ").and_then(|l| l.strip_suffix(" -->")) {
                    recipe.with = Some(with.into());
                }
            }
            (_, "```") => block = "",
            ("sh", _) => recipe.command += &format!("{line}\n"),
            _ => recipe.expected.push(line.into()),
        }
    }
    all
}

/// Whether the parts of `expected` between `…` come in this order in `line`.
fn is_like(line: &str, expected: &str) -> bool {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (line, expected) = (squeeze(line), squeeze(expected));
    let mut rest = line.as_str();
    expected.split('…').all(|part| match rest.find(part.trim()) {
        Some(at) => {
            rest = rest.get(at + part.trim().len()..).unwrap_or_default();
            true
        }
        None => false,
    })
}

/// The first expected line that does not come in the output.
pub fn missing<'e>(output: &str, expected: &'e [String]) -> Option<&'e str> {
    let mut lines = output.lines();
    expected.iter().find(|e| !lines.any(|line| is_like(line, e))).map(String::as_str)
}

/// The programs of the recipes, and what they read.
pub fn programs(dir: &Path) -> Option<()> {
    for (name, source) in [
        ("settings", "cookbook/settings.c"),
        ("crash", "cookbook/crash.c"),
        ("hot", "cookbook/hot.c"),
        ("cache", "cookbook/cache.c"),
        ("shop", "cookbook/shop.c"),
        ("total", "cookbook/total.c"),
        ("parent", "cookbook/parent.c"),
        ("waits", "cookbook/waits.c"),
        ("window", "cookbook/window.c"),
        ("desk", "cookbook/desk.c"),
        ("ring", "cookbook/ring.c"),
        ("files", "open_files.c"),
        ("stuck", "deadlock.c"),
        ("tasks", "cookbook/tasks.cc"),
        ("futures", "cookbook/futures.rs"),
    ] {
        let (compiler, flags): (_, &[&str]) = match source.rsplit_once('.') {
            Some((_, "rs")) => ("rustc", &["-g", "-O", "--edition=2024"]),
            Some((_, "cc")) => ("g++", &["-g", "-O1", "-pthread", "-std=c++20"]),
            _ => ("gcc", &["-g", "-O1", "-pthread"]),
        };
        let program = testkit::compile(compiler, &format!("cookbook_{name}"), source, flags)?;
        fs::copy(program, dir.join(name)).expect("a program");
    }
    fs::write(dir.join("settings.txt"), "colour = blue\n").expect("a file");
    Some(())
}

fn run(dir: &Path, user: User, recipe: &Recipe, pid: u32) -> String {
    let mut sh = lab::as_user(user, &["sh", "-c", &format!("exec 2>&1\n{}", recipe.command)]);
    let path = format!("{}:{}", lab::dir().display(), testkit::PATH);
    let out = sh.current_dir(dir).env("PATH", path).env("PID", pid.to_string()).stdin(Stdio::null()).output();
    String::from_utf8_lossy(&out.expect("sh").stdout).into_owned()
}

/// Runs the recipes for which this is so.
fn cook(name: &str, which: impl Fn(&Recipe) -> bool) {
    let mut wrong = Vec::new();
    for recipe in recipes(&page(name)).iter().filter(|r| which(r)) {
        let user = if recipe.root || !lab::is_root() || !lab::has("setpriv") { User::Me } else { User::Nobody };
        if recipe.root && !lab::kernel_backend_is_possible() {
            continue;
        }
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        if programs(&dir).is_none() {
            return;
        }
        let mut beside = recipe.with.as_ref().map(|with| {
            if !lab::may_attach(user) {
                return None;
            }
            Some(lab::start(lab::as_user(user, &with.split(' ').collect::<Vec<_>>()).current_dir(&dir)))
        });
        if matches!(beside, Some(None)) {
            continue;
        }
        let pid = beside.as_ref().and_then(Option::as_ref).map_or(0, |running| running.pid());
        let mut output = run(&dir, user, recipe, pid);
        // What runs beside may not be where it waits yet.
        for _ in 0..50 {
            if recipe.with.is_none() || missing(&output, &recipe.expected).is_none() {
                break;
            }
            output = run(&dir, user, recipe, pid);
        }
        if let Some(line) = missing(&output, &recipe.expected) {
            wrong.push(format!("### {}\n{}lacks: {line}\n{output}", recipe.title, recipe.command));
        }
        if let Some(Some(running)) = beside.take() {
            lab::kill("KILL", running.pid().into());
            running.end();
        }
    }
    assert!(wrong.is_empty(), "{} recipes print something else:\n{}", wrong.len(), wrong.join("\n"));
}

fn nth(recipe: &Recipe) -> usize {
    recipe.title.len() % 4
}

#[test]
fn each_recipe_prints_what_the_page_says_1() {
    cook(COOKBOOK, |r| nth(r) == 0);
}

#[test]
fn each_recipe_prints_what_the_page_says_2() {
    cook(COOKBOOK, |r| nth(r) == 1);
}

#[test]
fn each_recipe_prints_what_the_page_says_3() {
    cook(COOKBOOK, |r| nth(r) == 2);
}

#[test]
fn each_recipe_prints_what_the_page_says_4() {
    cook(COOKBOOK, |r| nth(r) == 3);
}

#[test]
fn each_script_prints_what_the_page_says_1() {
    cook(SCRIPTS, |r| nth(r) < 2);
}

#[test]
fn each_script_prints_what_the_page_says_2() {
    cook(SCRIPTS, |r| nth(r) >= 2);
}

#[test]
fn the_pages_have_enough_and_each_has_what_it_prints() {
    for (name, least) in [(COOKBOOK, 60), (SCRIPTS, 20)] {
        let all = recipes(&page(name));
        assert!(all.len() >= least, "{name}: {}", all.len());
        for r in &all {
            assert!(!r.command.is_empty() && !r.expected.is_empty(), "{r:?}");
        }
    }
}

/// The names in the scripts of a command, which are in single quotes: no members, no variables, nothing that a script prints.
fn names(command: &str) -> Vec<&str> {
    let parts: Vec<&str> = command.split('\'').collect();
    let scripts = parts.windows(2).filter(|two| two[0].ends_with("-e ")).map(|two| two[1]);
    let code = scripts.flat_map(|script| script.split('"').step_by(2));
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || ".$@>".contains(c);
    let words = code.flat_map(|text| text.split(move |c| !is_of_name(c)));
    words.filter_map(|word| word.split('.').next()).filter(|name| !name.is_empty()).collect()
}

/// Those that this version does not have are in the reference with what to write instead.
#[test]
fn each_name_of_the_reference_is_in_a_command() {
    let all = recipes(&page(SCRIPTS));
    let used: Vec<&str> = all.iter().flat_map(|r| names(&r.command)).collect();
    let is_there = |r: &&Row| !matches!(r.class, Class::Later | Class::Refused);
    let unused: Vec<&str> = ROWS.iter().filter(is_there).map(|r| r.name).filter(|n| !used.contains(n)).collect();
    assert_eq!(unused, [""; 0]);
    let found = names("trapline -e 'begin { @x = str($pid, args.fd); print(\"time\"); }' -c 'cat x'");
    assert_eq!(found, ["begin", "@x", "str", "$pid", "args", "print"]);
}

#[test]
fn lines_are_compared_by_their_parts() {
    assert!(is_like("openat(3,   \"x\") = 3", "openat(…) = 3"));
    assert!(!is_like("openat(3, \"x\") = -1", "openat(…) = 3"));
    assert_eq!(missing("a\nb\nc\n", &["a".into(), "c".into()]), None);
    assert_eq!(missing("a\nb\nc\n", &["c".into(), "a".into()]), Some("a"));
}
