//! Finds the command that is to be started, as execvp(3) would.

use crate::error::{Error, Result};
use crate::target::Command;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use sys::process::{Identity, Image, may_execute};

/// Changes to the environment of the command (`-E`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `NAME=VALUE`
    Set(OsString, OsString),
    /// `NAME`
    Remove(OsString),
}

/// Looks `argv[0]` up in PATH and prepares everything that the exec needs.
pub fn prepare(argv: &[OsString], changes: &[Variable], user: Option<Identity>) -> Result<Command> {
    let name = &argv[0];
    if name.is_empty() {
        return Err(Error::NotFound { what: "''".into(), why: "an empty command name".into() });
    }
    let path = find(name)?;
    let c = |s: &OsStr| {
        CString::new(s.as_bytes()).map_err(|_| Error::usage(s.to_string_lossy(), "contains a NUL byte", "remove it"))
    };
    let args = argv.iter().map(|a| c(a)).collect::<Result<Vec<_>>>()?;
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for change in changes {
        let (Variable::Set(n, _) | Variable::Remove(n)) = change;
        env.retain(|(k, _)| k != n);
        if let Variable::Set(n, v) = change {
            env.push((n.clone(), v.clone()));
        }
    }
    let envp = env
        .into_iter()
        .map(|(k, v)| {
            let mut s = k.into_vec();
            s.push(b'=');
            s.extend(v.into_vec());
            c(OsStr::from_bytes(&s))
        })
        .collect::<Result<Vec<_>>>()?;
    let path = c(&path)?;
    Ok(Command { image: Image::new(path.clone(), args, envp), path, user })
}

fn find(name: &OsStr) -> Result<OsString> {
    let what = name.to_string_lossy().into_owned();
    if name.as_bytes().contains(&b'/') {
        return check(name).map(|()| name.to_os_string()).map_err(|e| explain(&what, &e, "no such file"));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut denied = None;
    for dir in std::env::split_paths(&path) {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { &dir };
        let candidate = dir.join(name).into_os_string();
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => denied = Some((candidate, e)),
            Err(_) => {}
        }
    }
    match denied {
        Some((candidate, e)) => Err(explain(&candidate.to_string_lossy(), &e, "")),
        None => Err(Error::NotFound { what, why: "command not found".into() }),
    }
}

fn check(path: &OsStr) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    may_execute(&CString::new(path.as_bytes())?)
}

fn explain(what: &str, e: &io::Error, missing: &str) -> Error {
    match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::NotFound { what: what.into(), why: missing.into() }
        }
        io::ErrorKind::IsADirectory => Error::NotExecutable {
            what: what.into(),
            why: "is a directory".into(),
            todo: "name a program inside it".into(),
        },
        _ => Error::NotExecutable {
            what: what.into(),
            why: "permission denied".into(),
            todo: format!("make it executable: chmod +x {what}"),
        },
    }
}

/// Explains why execve(2) of the command failed.
pub fn exec_error(cmd: &Command, errno: i32) -> Error {
    let what = cmd.path.to_string_lossy().into_owned();
    let why = io::Error::from_raw_os_error(errno);
    let why = why.to_string().split(" (os error").next().unwrap_or_default().to_string();
    match errno {
        2 => Error::NotFound { what, why: format!("{why}: the file or its interpreter does not exist") },
        8 => Error::NotExecutable { what, why, todo: "not a program for this machine, or a script without #!".into() },
        _ => Error::NotExecutable { what, why, todo: "check the permissions of the file".into() },
    }
}
