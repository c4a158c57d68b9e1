//! `cargo xtask codegen [--check]`: `tables/*.def` → `crates/events/src/generated/*.rs`.

mod emit;
mod names;
mod parse;

use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

pub use parse::Tables;

/// Reads all tables.
pub fn read(root: &Path) -> Result<Tables> {
    parse::all(&root.join("tables"))
}

/// File name and contents of everything that is generated.
fn generate(tables: &Tables) -> Result<Vec<(&'static str, String)>> {
    let names = names::Names::new(tables)?;
    let module = "//! Data written by `cargo xtask codegen`.\n\npub mod errno;\npub mod flags;\npub mod structs;\npub mod switches;\nmod syscalls;\n\npub use syscalls::*;\n";
    Ok(vec![
        ("mod.rs", module.to_string()),
        ("errno.rs", emit::errno(tables)?),
        ("flags.rs", emit::flags(&names)?),
        ("structs.rs", emit::structs(&names)?),
        ("switches.rs", emit::switches(&names)?),
        ("syscalls.rs", emit::syscalls(&names)?),
    ])
}

/// Writes the generated files, or with `--check` only reports whether they are up to date.
pub fn run(root: &Path, args: &[String]) -> Result<()> {
    let check = args.iter().any(|a| a == "--check");
    let dir = root.join("crates/events/src/generated");
    let mut stale = Vec::new();
    for (name, text) in generate(&read(root)?)? {
        let path = dir.join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            stale.push(name);
        } else {
            fs::write(&path, text)?;
            println!("wrote {}", path.display());
        }
    }
    if !stale.is_empty() {
        bail!("generated files are stale: {}: run 'cargo xtask codegen'", stale.join(", "));
    }
    Ok(())
}
