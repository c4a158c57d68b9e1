//! `trapline open`: everything of a trace over time, in the user's browser.
//!
//! ```text
//! DIR ─► report --as html=FILE ─► $BROWSER, else xdg-open ─► the picture
//! ```

use crate::ask::{Ask, Show};
use crate::named::Place;
use crate::report;
use engine::{Error, Result};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Stdio;

/// Runs the command.
///
/// # Errors
/// The trace cannot be read, or the file not be written.
pub fn run(ask: &Ask) -> Result<u8> {
    let file = match &ask.keep.output {
        Some(file) => PathBuf::from(file),
        None => own_file(ask)?,
    };
    let Some(name) = file.to_str() else {
        return Err(Error::usage(format!("-o {}", file.display()), "its name is not UTF-8", "give it another name"));
    };
    let mut ask = ask.clone();
    ask.keep.output = None;
    ask.show = vec![Show { view: "html".into(), file: Some(name.into()) }];
    let status = report::run(&ask)?;
    let is_seen = has_screen() && browse(name);
    if !is_seen || ask.quiet == 0 {
        println!("{name}");
    }
    Ok(status)
}

/// A file that only the user can read; the next look at the same trace replaces it.
fn own_file(ask: &Ask) -> Result<PathBuf> {
    let dir = ask.trace.dir.clone().unwrap_or_default();
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.clone());
    let mut hasher = DefaultHasher::new();
    whole.hash(&mut hasher);
    let name = whole.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(60).collect();
    Ok(Place::make()?.path().join(format!("{name}-{:08x}.html", hasher.finish() as u32)))
}

/// Whether there is a screen that a browser could open a window on.
fn has_screen() -> bool {
    ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()))
}

/// Has a browser open a file. Whether one has begun to.
fn browse(file: &str) -> bool {
    let of_user = std::env::var("BROWSER").unwrap_or_default();
    // BROWSER is a list, as sensible-browser(1) has it.
    of_user.split(':').chain(["xdg-open"]).filter(|program| !program.is_empty()).any(|program| {
        let mut words = program.split_whitespace();
        let Some(first) = words.next() else { return false };
        let mut command = sys::process::command(first);
        command.args(words).arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}
