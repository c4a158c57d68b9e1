//! Stacks from the command line: whether and how they are shown, and where the names of their functions are looked for.

use crate::ask::{Format, Names};
use crate::complain;
use engine::capture::captures::Captures;
use engine::resolver::Places;
use engine::{Error, Result};
use events::{Schema, stacks};
use std::path::PathBuf;
use views::options::Stacks;

/// Frames of a call's stack (`-k`): as many as there are.
const FRAMES: u16 = engine::capture::captures::USER;

/// How stacks are shown.
pub fn form(format: &Format) -> Result<Stacks> {
    let words = &format.stack_trace;
    let has = |word: &str| words.iter().any(|w| w == word);
    if format.no_stacks {
        return match words.is_empty() {
            true => Ok(Stacks::Fields),
            false => Err(Error::usage("--no-stacks", "given together with -k", "leave one of them out")),
        };
    }
    Ok(match words.len() {
        0 if format.instruction_pointer => Stacks::Fields,
        _ if has("fold") => Stacks::Fold,
        n if n > 1 || has("source") => Stacks::Sources,
        _ => Stacks::Lines,
    })
}

/// `-k` and `-i`: the stack of each call, where nothing else says how many frames.
pub fn with_calls(format: &Format, captures: Captures) -> Captures {
    let ustack = match captures.ustack {
        0 if !format.stack_trace.is_empty() => FRAMES,
        // The innermost frame is the instruction.
        0 if format.instruction_pointer => 1,
        asked => asked,
    };
    Captures { ustack, ..captures }
}

/// Where names are looked for beside the places that are known.
pub fn places(names: &Names) -> Result<Places> {
    let symbols: Vec<PathBuf> = names.symbols.iter().map(PathBuf::from).collect();
    if let Some(path) = symbols.iter().find(|p| !p.exists()) {
        let why = "no such file or directory";
        return Err(Error::failed(format!("--symbols {}", path.display()), why, "name a directory with the files"));
    }
    Places::of(symbols, names.debuginfod)
}

/// Whether events of one of these classes have stacks.
pub fn have_any<'s>(mut classes: impl Iterator<Item = &'s Schema>) -> bool {
    classes.any(|s| stacks::may_have(s) && s.args.iter().any(stacks::is_stack))
}

/// Reports what could not be resolved, and why.
pub fn tell(quiet: u8, troubles: &[String]) {
    /// Lines that are shown.
    const MOST: usize = 20;
    if quiet > 0 {
        return;
    }
    troubles.iter().take(MOST).for_each(|line| complain(&format!("stacks: {line}")));
    if troubles.len() > MOST {
        complain(&format!("stacks: {} more files are missing, or have no names", troubles.len() - MOST));
    }
}
