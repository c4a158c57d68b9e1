//! `import "FILE";`: reads the files that a script imports, and those that they do.

use engine::{Error, Result, rights};
use lang::diag::start;
use lang::script::import;
use std::io::Read;
use std::path::{Path, PathBuf};

/// So deep may imports go.
const MOST: usize = 32;

/// A script's name, and its text with all that it imports, each file once.
pub fn whole(name: String, text: String) -> Result<(String, String)> {
    if import::find(&text).is_empty() {
        return Ok((name, text));
    }
    let (mut files, mut seen) = (Vec::new(), Vec::new());
    add(&name, &text, &mut files, &mut seen, 0)?;
    Ok((name, import::join(&files)))
}

/// Adds the imports of a file, and then its own text.
fn add(name: &str, text: &str, files: &mut Vec<(String, String)>, seen: &mut Vec<PathBuf>, depth: usize) -> Result<()> {
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    for (span, file) in import::find(text) {
        let failed =
            |why: String| Error::failed(start(name, span, text), why, "name a file of scripts or of C declarations");
        let path = folder.join(&file);
        let found = path.canonicalize().map_err(|e| failed(format!("import \"{file}\": {e}")))?;
        if seen.contains(&found) {
            continue;
        }
        if depth >= MOST {
            return Err(failed(format!("more than {MOST} files import one another")));
        }
        seen.push(found);
        let mut bytes = Vec::new();
        let most = lang::script::parse::MAX_SCRIPT as u64 + 1;
        let read = rights::open(&path).and_then(|f| f.take(most).read_to_end(&mut bytes));
        read.map_err(|e| failed(format!("import \"{file}\": {e}")))?;
        let imported = String::from_utf8(bytes).map_err(|_| failed(format!("import \"{file}\": it is not UTF-8")))?;
        add(&path.display().to_string(), &imported, files, seen, depth + 1)?;
    }
    files.push((name.into(), import::without(text)));
    Ok(())
}
