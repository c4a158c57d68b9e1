//! The file that a probe names: found, opened, and its tables read.
//!
//! ```text
//!  ./prog, /lib/x.so   the path itself; what a link leads to is said
//!  prog                a program in PATH, a file here
//!  libc, libc.so.6     a library that the dynamic loader's cache knows; of several versions, the newest
//! ```

use super::Refusal;
use crate::target::modules::{LD_CACHE, ld_cache, tables};
use lang::near::nearest;
use lang::pattern::is_pattern;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use symbols::Elf;
use symbols::elf::Function;
use symbols::ld_cache::is_version;

/// A file with probes.
#[derive(Clone)]
pub struct ElfFile {
    /// The path in the names of probes: the given one, or where a name without a path was found.
    pub path: Arc<Path>,
    /// The target of that path, where it is a link.
    pub real: Option<PathBuf>,
    /// The very file that was read, whatever is at its path later.
    pub file: Arc<File>,
    /// Its tables.
    pub elf: Arc<Elf>,
}

/// Opens the file of this name.
pub fn open(name: &str) -> Result<ElfFile, Refusal> {
    let path = if name.contains('/') { PathBuf::from(name) } else { without_path(name)? };
    let closed = |why: String, todo: &str| Refusal::Closed(format!("{}: {why}", path.display()), todo.into());
    let file = sys::maps::open_regular(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidInput => closed("not a file".into(), "name a program or a library"),
        _ => closed(e.to_string().split(" (os error").next().unwrap_or_default().into(), "check the path"),
    })?;
    let elf = tables(&file).map_err(|e| closed(e, "name a program or a library"))?;
    // Of a relative path only the file itself may be a link: everything else would be one to where trapline runs.
    let is_link = |real: &PathBuf| if path.is_absolute() { *real != path } else { path.is_symlink() };
    let real = fs::canonicalize(&path).ok().filter(is_link);
    Ok(ElfFile { path: path.into(), real, file: Arc::new(file), elf })
}

/// The libc beside a library whose functions it has since glibc 2.34, where the library is empty, and there only to be found.
pub fn libc_instead(file: &ElfFile) -> Option<ElfFile> {
    let name = file.path.file_name()?.to_str()?;
    let is_of_libc = ["libpthread", "libdl", "librt", "libutil", "libanl"].iter().any(|l| is_version(name, l));
    let is_placeholder = |f: &Function| f.name.starts_with("__lib") && f.name.ends_with("_version_placeholder");
    let is_empty = is_of_libc && file.elf.functions().iter().all(is_placeholder);
    if is_empty { open(file.path.with_file_name("libc.so.6").to_str()?).ok() } else { None }
}

/// The path of a name without a path.
fn without_path(name: &str) -> Result<PathBuf, Refusal> {
    if let Some(found) = in_path(name) {
        return Ok(found);
    }
    if Path::new(name).is_file() {
        return Ok(name.into());
    }
    library(name)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|d| d.join(name)).find(|p| p.is_file())
}

/// The library of this name, with or without its version.
fn library(name: &str) -> Result<PathBuf, Refusal> {
    let Some(cache) = ld_cache() else {
        let why = format!("{name}: not a program in PATH, and this system has no {LD_CACHE} to find libraries in");
        return Err(Refusal::Closed(why, "name its path".into()));
    };
    match cache.named(name)[..] {
        // Of several versions the cache has the newest one first.
        [newest, ..] => Ok(PathBuf::from(&newest.path)),
        [] => {
            let mut names: Vec<&str> = cache.names().map(|n| n.split(".so").next().unwrap_or(n)).collect();
            names.sort_unstable();
            names.dedup();
            let near = nearest(name, names.into_iter());
            let why = format!("{name}: neither a program in PATH nor a library in {LD_CACHE}");
            Err(Refusal::Closed(why, format!("name its path, or did you mean {}?", near.join(", "))))
        }
    }
}

/// A path and up to `parts` words after it, `*` where they are missing. The path may contain colons: the first part that is a
/// file counts.
pub fn split_path(pattern: &str, parts: usize, form: &'static str) -> Result<(String, Vec<String>), Refusal> {
    let is_file = |p: &str| !p.is_empty() && Path::new(p).is_file();
    let ends = pattern.match_indices(':').map(|(at, _)| at).chain([pattern.len()]);
    let end = ends.into_iter().find(|end| is_file(&pattern[..*end]));
    let end = end.unwrap_or_else(|| pattern.find(':').unwrap_or(pattern.len()));
    let path = &pattern[..end];
    if path.is_empty() || is_pattern(path) {
        return Err(Refusal::Form(form));
    }
    let rest = pattern[end..].strip_prefix(':').unwrap_or_default();
    // The last word keeps what colons it has.
    let mut words: Vec<String> = rest.splitn(parts, ':').filter(|w| !w.is_empty()).map(str::to_string).collect();
    words.resize(parts, "*".into());
    Ok((path.to_string(), words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_symbols() {
        let split = |p: &str, n| split_path(p, n, "form");
        assert_eq!(split("/no/file:a", 1).unwrap(), ("/no/file".into(), vec!["a".into()]));
        assert_eq!(split("/no/file:a:b:c", 2).unwrap(), ("/no/file".into(), vec!["a".into(), "b:c".into()]));
        assert_eq!(split("libc:acme::f", 1).unwrap(), ("libc".into(), vec!["acme::f".into()]));
        assert_eq!(split("/no/file", 2).unwrap().1, ["*", "*"]);
        assert!(split("*:main", 1).is_err() && split(":main", 1).is_err());
    }

    #[test]
    fn libraries_are_found_by_their_names() {
        if ld_cache().is_none_or(|c| c.named("libc").is_empty()) {
            return testkit::skip("package:libc", "no /etc/ld.so.cache that knows libc");
        }
        let libc = open("libc").unwrap_or_else(|e| panic!("{e:?}"));
        assert!(libc.path.is_absolute() && !libc.elf.function("malloc").is_empty());
        assert_eq!(open("libc.so.6").unwrap_or_else(|e| panic!("{e:?}")).path, libc.path);
        let Err(Refusal::Closed(why, todo)) = open("libcc") else { panic!() };
        assert!(why.contains("neither a program in PATH nor a library") && todo.contains("lib"), "{why} {todo}");
    }

    #[test]
    fn functions_of_empty_libraries_are_in_libc() {
        let of = |name: &str| open(name).ok().and_then(|file| libc_instead(&file));
        assert!(of("libc").is_none() && of("libm").is_none());
        match of("libpthread") {
            Some(libc) => assert!(!libc.elf.function("pthread_create").is_empty()),
            None => testkit::skip("package:libc", "no libpthread without functions"),
        }
    }

    #[test]
    fn a_link_says_what_it_leads_to() {
        let dir = testkit::Scratch::new("elf-file");
        let link = dir.join("link");
        let exe = std::env::current_exe().unwrap().canonicalize().unwrap();
        std::os::unix::fs::symlink(&exe, &link).unwrap();
        let found = open(link.to_str().unwrap()).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!((found.path.as_ref(), found.real.as_deref()), (link.as_path(), Some(exe.as_path())));
        assert_eq!(open(exe.to_str().unwrap()).unwrap_or_else(|e| panic!("{e:?}")).real, None);
    }

    #[test]
    fn what_is_no_elf_file_is_said() {
        let why = |name: &str| match open(name) {
            Err(Refusal::Closed(why, _)) => why,
            _ => panic!("{name}"),
        };
        assert!(why("/dev/zero").contains("not a file"));
        assert!(why("/proc/self/maps").contains("not an ELF"));
        assert!(why("/no/such/file").contains("No such file"));
    }
}
