//! tracefs: its files about probes (tracepoints and their fields, which functions may be traced), and how it is reached.
//!
//! Only root may read its directory. Where it is not mounted, as in most containers, a process that may mount it opens it without a mount
//! (fsopen(2), Linux 5.2): an instance that no path leads to, which goes with the descriptor. Everything is opened below one
//! descriptor, which is found once and closes at exec.

use crate::check::check;
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Where tracefs was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is mounted there.
    Mounted(&'static str),
    /// It is not mounted, and was opened by itself.
    Detached,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Mounted(dir) => f.write_str(dir),
            Place::Detached => f.write_str("not mounted: opened by itself (fsopen)"),
        }
    }
}

struct Root {
    dir: OwnedFd,
    place: Place,
}

/// Where tracefs is.
///
/// # Errors
/// `NotFound`: it is not mounted, and this process may not open it without a mount (CAP_SYS_ADMIN). `PermissionDenied`: only root
/// may look.
pub fn place() -> io::Result<Place> {
    root().map(|r| r.place)
}

fn root() -> io::Result<&'static Root> {
    static ROOT: OnceLock<Root> = OnceLock::new();
    match ROOT.get() {
        Some(root) => Ok(root),
        None => find().map(|root| ROOT.get_or_init(|| root)),
    }
}

fn find() -> io::Result<Root> {
    let mut refused = None;
    for (dir, path) in [
        ("/sys/kernel/tracing", c"/sys/kernel/tracing/events"),
        ("/sys/kernel/debug/tracing", c"/sys/kernel/debug/tracing/events"),
    ] {
        match open_at(libc::AT_FDCWD, path, libc::O_PATH | libc::O_DIRECTORY) {
            Ok(dir_of_events) => {
                let above = open_at(dir_of_events.as_raw_fd(), c"..", libc::O_PATH | libc::O_DIRECTORY)?;
                return Ok(Root { dir: above, place: Place::Mounted(dir) });
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(e) => refused = Some(e),
        }
    }
    match detached() {
        Ok(dir) => Ok(Root { dir, place: Place::Detached }),
        Err(_) => Err(refused.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "tracefs is not mounted"))),
    }
}

/// The root of tracefs, to read, mounted nowhere.
fn detached() -> io::Result<OwnedFd> {
    const CLOEXEC: libc::c_long = 1;
    const CMD_CREATE: libc::c_long = 6;
    const READ_ONLY: libc::c_long = 0xf; // MOUNT_ATTR_RDONLY, NOSUID, NODEV, NOEXEC
    const NONE: libc::c_long = 0;
    // SAFETY: the name ends with NUL and lives through the call; everything else is plain integers (include/uapi/linux/mount.h), and
    // no address is passed to CMD_CREATE. What is returned is ours.
    unsafe {
        let context = check(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), CLOEXEC))?;
        let context = OwnedFd::from_raw_fd(context as i32);
        check(libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CMD_CREATE, NONE, NONE, NONE))?;
        let root = check(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, READ_ONLY))?;
        Ok(OwnedFd::from_raw_fd(root as i32))
    }
}

fn open_at(dir: i32, path: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: a NUL-terminated path; a descriptor that is returned is ours.
    unsafe {
        let fd = check(libc::openat(dir, path.as_ptr(), flags | libc::O_CLOEXEC).into())?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Opens what lies at `path` in tracefs.
fn open(path: &str, flags: i32) -> io::Result<OwnedFd> {
    open_at(root()?.dir.as_raw_fd(), &CString::new(path)?, flags)
}

fn read(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::from(open(path, libc::O_RDONLY)?).read_to_string(&mut text)?;
    Ok(text)
}

fn directories(path: &str) -> io::Result<Vec<String>> {
    let dir = open(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
    let is_dir = |e: &fs::DirEntry| e.file_type().is_ok_and(|t| t.is_dir());
    let all = fs::read_dir(format!("/proc/self/fd/{}", dir.as_raw_fd()))?.flatten().filter(is_dir);
    Ok(all.filter_map(|e| e.file_name().into_string().ok()).collect())
}

/// The number of a classic tracepoint, for instance `syscalls` and `sys_enter_openat`.
pub fn tracepoint_id(category: &str, name: &str) -> io::Result<u64> {
    if category.contains('/') || name.contains('/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    read(&format!("events/{category}/{name}/id"))?.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

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
/// Those of [`place`].
pub fn tracepoints() -> io::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for category in directories("events")? {
        let events = directories(&format!("events/{category}")).unwrap_or_default();
        all.extend(events.into_iter().map(|e| (category.clone(), e)));
    }
    all.sort();
    Ok(all)
}

/// Whether there is a tracepoint of this category and name.
///
/// # Errors
/// Those of [`place`].
pub fn has_tracepoint(category: &str, name: &str) -> io::Result<bool> {
    root()?;
    Ok(tracepoint_id(category, name).is_ok())
}

/// The fields of a tracepoint, without those that all have.
pub fn fields(category: &str, name: &str) -> io::Result<Vec<Field>> {
    let text = read(&format!("events/{category}/{name}/format"))?;
    let fields = text.lines().filter_map(|l| parse(l.trim().strip_prefix("field:")?));
    Ok(fields.filter(|f| !f.name.starts_with("common_")).collect())
}

/// `__data_loc char[] filename; offset:8; size:4; signed:0;`, with tabs for the blanks after semicolons.
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

/// The functions that ftrace, and so fentry and kprobes, can be set on (`available_filter_functions`).
#[derive(Clone)]
pub struct Traceable {
    text: Arc<str>,
    /// The modules that the kernel had.
    modules: Vec<String>,
}

impl Traceable {
    /// Reads their names, unless they were read before and the kernel has the same modules: the kernel makes the list anew each time, which
    /// takes as long as a thousand probes.
    ///
    /// # Errors
    /// Those of [`place`].
    pub fn read() -> io::Result<Traceable> {
        static LAST: Mutex<Option<Traceable>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
        let modules = modules.lines().filter_map(|l| l.split(' ').next()).map(str::to_string).collect();
        match &*last {
            Some(known) if known.modules == modules => Ok(known.clone()),
            _ => {
                let read = Traceable { text: read("available_filter_functions")?.into(), modules };
                *last = Some(read.clone());
                Ok(read)
            }
        }
    }

    /// Each name, and the module that the function is in.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.text.lines().filter_map(traceable)
    }
}

/// `vfs_read`, `xfs_file_open [xfs]`. Places of functions that are gone have made-up names.
fn traceable(line: &str) -> Option<(&str, Option<&str>)> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|n| !n.starts_with("__ftrace_invalid_address___"))?;
    Some((name, words.next().and_then(|m| m.strip_prefix('[')?.strip_suffix(']'))))
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
    fn functions_have_modules() {
        assert_eq!(traceable("vfs_read"), Some(("vfs_read", None)));
        assert_eq!(traceable("xfs_file_open [xfs]"), Some(("xfs_file_open", Some("xfs"))));
        assert_eq!((traceable("__ftrace_invalid_address___12"), traceable("")), (None, None));
    }

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
