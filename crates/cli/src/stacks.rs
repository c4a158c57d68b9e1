//! Stacks from the command line: whether and how they are shown, and where the names of their functions are looked for.

use crate::{args, complain};
use clap::ArgMatches;
use engine::captures::Captures;
use engine::pipeline::resolver::Places;
use engine::{Error, Result};
use events::{Schema, stacks};
use std::ffi::OsString;
use std::path::PathBuf;
use views::options::Stacks;

/// Frames of a call's stack (`-k`): as many as there are.
const FRAMES: u16 = engine::captures::USER;

/// How stacks are shown.
pub fn form(m: &ArgMatches) -> Result<Stacks> {
    let words = m.try_get_many::<String>("stack-trace").ok().flatten();
    let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
    let has = |word: &str| words.contains(&word);
    if args::is_set(m, "no-stacks") {
        return match words.is_empty() {
            true => Ok(Stacks::Fields),
            false => Err(Error::usage("--no-stacks", "given together with -k", "leave one of them out")),
        };
    }
    Ok(match words.len() {
        _ if has("fold") => Stacks::Fold,
        n if n > 1 || has("source") => Stacks::Sources,
        _ => Stacks::Lines,
    })
}

/// `-k`: the stack of each call, where nothing else says how many frames.
pub fn with_calls(m: &ArgMatches, captures: Captures) -> Captures {
    let asked = m.contains_id("stack-trace") && captures.ustack == 0;
    Captures { ustack: if asked { FRAMES } else { captures.ustack }, ..captures }
}

/// Where names are looked for beside the places that are known.
pub fn places(m: &ArgMatches) -> Result<Places> {
    let symbols: Vec<PathBuf> = m.get_many::<OsString>("symbols").into_iter().flatten().map(PathBuf::from).collect();
    if let Some(path) = symbols.iter().find(|p| !p.exists()) {
        let why = "no such file or directory";
        return Err(Error::failed(format!("--symbols {}", path.display()), why, "name a directory with the files"));
    }
    Places::of(symbols, m.get_flag("debuginfod"))
}

/// Whether events of one of these classes have stacks.
pub fn have_any<'s>(mut classes: impl Iterator<Item = &'s Schema>) -> bool {
    classes.any(|s| stacks::may_have(s) && s.args.iter().any(stacks::is_stack))
}

/// Reports what could not be resolved, and why.
pub fn tell(m: &ArgMatches, troubles: &[String]) {
    /// Lines that are shown.
    const MOST: usize = 20;
    if m.get_count("quiet") > 0 {
        return;
    }
    troubles.iter().take(MOST).for_each(|line| complain(&format!("stacks: {line}")));
    if troubles.len() > MOST {
        complain(&format!("stacks: {} more files are missing, or have no names", troubles.len() - MOST));
    }
}
