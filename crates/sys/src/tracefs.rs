//! What tracefs says of probes: tracepoints and their fields, and which functions may be traced. Its directory is root's.

use crate::bpf::link::tracefs;
use std::collections::HashSet;
use std::fs;
use std::io;

/// A field of a tracepoint's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type as C writes it, with the array's length: `pid_t`, `char[16]`, `char *`.
    pub c: String,
    /// Offset in the record, bytes.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// A signed integer.
    pub signed: bool,
    /// The field is a reference (`__data_loc`): length in the upper, offset in the lower 16 bits; `c` is what lies there.
    pub data_loc: bool,
}

/// All tracepoints: category and name, sorted.
///
/// # Errors
/// `NotFound`: tracefs is not mounted. `PermissionDenied`: only root may look.
pub fn tracepoints() -> io::Result<Vec<(String, String)>> {
    let top = format!("{}/events", tracefs()?);
    let mut all = Vec::new();
    for category in directories(&top)? {
        let events = directories(&format!("{top}/{category}")).unwrap_or_default();
        all.extend(events.into_iter().map(|e| (category.clone(), e)));
    }
    all.sort();
    Ok(all)
}

fn directories(path: &str) -> io::Result<Vec<String>> {
    let is_dir = |e: &fs::DirEntry| e.file_type().is_ok_and(|t| t.is_dir());
    let all = fs::read_dir(path)?.flatten().filter(is_dir);
    Ok(all.filter_map(|e| e.file_name().into_string().ok()).collect())
}

/// The fields of a tracepoint, without those that all have.
pub fn fields(category: &str, name: &str) -> io::Result<Vec<Field>> {
    let text = fs::read_to_string(format!("{}/events/{category}/{name}/format", tracefs()?))?;
    let fields = text.lines().filter_map(|l| parse(l.trim().strip_prefix("field:")?));
    Ok(fields.filter(|f| !f.name.starts_with("common_")).collect())
}

/// `__data_loc char[] filename; offset:8; size:4; signed:0;`, with tabs for the blanks behind semicolons.
fn parse(line: &str) -> Option<Field> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.strip_prefix(':')?.parse::<u32>().ok();
    let (offset, size, signed) = (number("offset")?, number("size")?, number("signed")? != 0);
    let data_loc = declaration.strip_prefix("__data_loc ");
    let (c, name) = data_loc.unwrap_or(declaration).rsplit_once(' ')?;
    let (name, array) = name.split_at(name.find('[').unwrap_or(name.len()));
    Some(Field { name: name.into(), c: format!("{c}{array}"), offset, size, signed, data_loc: data_loc.is_some() })
}

/// The functions that ftrace, and so fentry and kprobes, can be set on (`available_filter_functions`), of modules too.
pub fn traceable_functions() -> io::Result<HashSet<String>> {
    let text = fs::read_to_string(format!("{}/available_filter_functions", tracefs()?))?;
    Ok(text.lines().filter_map(|l| l.split_whitespace().next()).map(str::to_string).collect())
}

/// The functions that kprobes refuse. Needs debugfs.
pub fn kprobe_blacklist() -> io::Result<HashSet<String>> {
    let text = fs::read_to_string("/sys/kernel/debug/kprobes/blacklist")?;
    Ok(text.lines().filter_map(|l| l.split_whitespace().nth(1)).map(str::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_parsed() {
        let f = parse("__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;").unwrap();
        assert_eq!((f.name.as_str(), f.c.as_str(), f.offset, f.size, f.data_loc), ("filename", "char[]", 8, 4, true));
        let f = parse("char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;").unwrap();
        assert_eq!((f.name.as_str(), f.c.as_str(), f.data_loc), ("prev_comm", "char[16]", false));
        let f = parse("const char *const * argv;\toffset:24;\tsize:8;\tsigned:0;").unwrap();
        assert_eq!((f.name.as_str(), f.c.as_str()), ("argv", "const char *const *"));
        assert!(parse("pid_t pid;\toffset:12;\tsize:4;\tsigned:1;").unwrap().signed);
        assert_eq!(parse("pid_t pid; offset:x"), None);
    }
}
