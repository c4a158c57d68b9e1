//! Whether ld.so will load the agent into the command's program, or into the interpreter of the command's script. What is refused here could
//! never be traced, nor could what it starts.

use super::file;
use engine::error::{Error, Result};
use engine::target::Command;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use symbols::headers::Headers;

/// Scripts that lead to scripts, as the kernel counts them.
const SCRIPTS: u32 = 5;
/// Bytes of a script that the kernel looks at (`BINPRM_BUF_SIZE`, linux/binfmts.h).
const HEAD: usize = 256;
/// x86-64 (elf(5)).
const X86_64: u16 = 62;

/// Why a program loads no agent, and what to do instead.
type Obstacle = (&'static str, &'static str);

const AS_ROOT: &str = "use -e 'uprobe:PROGRAM:FUNCTION' as root";

/// Refuses a command that loads no agent.
///
/// # Errors
/// It does not.
pub fn check(command: &Command) -> Result<()> {
    let user = command.user.as_ref().map_or_else(sys::process::ruid, |u| u.uid);
    let mut path = PathBuf::from(OsStr::from_bytes(command.path.to_bytes()));
    for _ in 0..SCRIPTS {
        // What cannot be read may be executed all the same: if no agent comes, that is a gap.
        let Ok(file) = sys::maps::open_regular(&path) else { return Ok(()) };
        if let Some((why, todo)) = obstacle(&file, user) {
            return Err(Error::failed(path.to_string_lossy(), why, todo));
        }
        match interpreter(&file) {
            Some(next) => path = next,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Whether the command's program loads AddressSanitizer's library, which ends a program in which it is not the first.
pub fn loads_asan(command: &Command) -> bool {
    let path = PathBuf::from(OsStr::from_bytes(command.path.to_bytes()));
    let elf = sys::maps::open_regular(&path).ok().and_then(|file| symbols::Elf::read(&file).ok());
    elf.is_some_and(|elf| elf.dynamic().needed.iter().any(|name| name.starts_with(file::ASAN)))
}

fn obstacle(file: &File, user: u32) -> Option<Obstacle> {
    const SETUID: u32 = 0o4000;
    const SETGID_OF_PROGRAM: u32 = 0o2010;
    let mut head = [0; 20];
    // Scripts have no set-user-ID bit, nor capabilities.
    if file.read_exact_at(&mut head, 0).is_err() || !head.starts_with(b"\x7fELF") {
        return None;
    }
    let meta = file.metadata().ok()?;
    let sets_user = meta.mode() & SETUID != 0 && meta.uid() != user;
    let sets_group = meta.mode() & SETGID_OF_PROGRAM == SETGID_OF_PROGRAM && meta.gid() != sys::process::rgid();
    if sets_user || sets_group {
        return Some(("a program that changes its user or group loads no agent", "run trapline as that user"));
    }
    if user != 0 && sys::caps::of_file(file) {
        return Some((
            "a program whose file has capabilities loads no agent",
            "trace a copy of it, or run trapline as root",
        ));
    }
    if head[4] != 2 || u16::from_le_bytes([head[18], head[19]]) != X86_64 {
        return Some(("a program of 32 bits, or of another architecture, loads no agent", AS_ROOT));
    }
    let elf = symbols::Elf::read(file).unwrap_or_default();
    let is_linked = |init: &str| elf.is_imported(init) || !elf.function(init).is_empty();
    if is_linked("__tsan_init") || is_linked("__msan_init") {
        return Some((
            "ThreadSanitizer and MemorySanitizer end a program that has anything at the agent's addresses",
            "build it without -fsanitize=thread and memory",
        ));
    }
    if elf.is_static() {
        return Some((
            "a static program loads no agent",
            "use -e 'uprobe:PROGRAM:FUNCTION' as root; or link it dynamically",
        ));
    }
    let is_go = |h: &Headers| h.sections.iter().any(|s| s.name == ".go.buildinfo" || s.name == ".gopclntab");
    Headers::read(file)
        .as_ref()
        .is_some_and(is_go)
        .then_some(("a Go program moves its stacks, which stubs do not survive", AS_ROOT))
}

/// The interpreter that a script names.
fn interpreter(file: &File) -> Option<PathBuf> {
    let mut head = [0; HEAD];
    let len = file.read_at(&mut head, 0).ok()?;
    let line = head[..len].strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let name = line.split(|b| matches!(b, b' ' | b'\t' | 0)).find(|word| !word.is_empty())?;
    Some(Path::new(OsStr::from_bytes(name)).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt;
    use testkit::Scratch;

    fn refused(path: &Path) -> Option<String> {
        let command = engine::target::command::prepare(&[OsString::from(path)], &[], None).unwrap();
        check(&command).err().map(|e| e.to_string())
    }

    /// This test's own program, changed.
    fn changed(scratch: &Scratch, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        change(&mut bytes);
        let path = scratch.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn script(scratch: &Scratch, name: &str, interpreter: &Path) -> PathBuf {
        let path = scratch.join(name);
        std::fs::write(&path, format!("#! {} -x\n", interpreter.display())).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn what_loads_no_agent_is_refused_with_the_reason() {
        let scratch = Scratch::new("loadable");
        assert_eq!(refused(&changed(&scratch, "same", |_| ())), None);
        let other = changed(&scratch, "other", |b| b[18] = 183);
        assert!(refused(&other).unwrap().contains("another architecture"));
        // The header alone: there is no loader in it.
        let fixed = changed(&scratch, "static", |b| {
            b.truncate(64);
            b[32..64].fill(0);
        });
        assert!(refused(&fixed).unwrap().contains("a static program loads no agent"));
        let go = changed(&scratch, "go", |b| {
            let name = b".gcc_except_table\0";
            let at = b.windows(name.len()).rposition(|w| w == name).unwrap();
            b[at..at + 15].copy_from_slice(b".go.buildinfo\0\0");
        });
        assert!(refused(&go).unwrap().contains("a Go program"));
        let nested = script(&scratch, "second", &script(&scratch, "first", &fixed));
        assert!(refused(&nested).unwrap().contains("a static program loads no agent"));
        assert_eq!(refused(&script(&scratch, "fine", &scratch.join("same"))), None);
        if sys::process::euid() == 0 {
            let owned = changed(&scratch, "setuid", |_| ());
            std::os::unix::fs::chown(&owned, Some(1), None).unwrap();
            std::fs::set_permissions(&owned, PermissionsExt::from_mode(0o4755)).unwrap();
            assert!(refused(&owned).unwrap().contains("changes its user"));
        } else {
            testkit::skip("root", "no other user to give a file to");
        }
    }
}
