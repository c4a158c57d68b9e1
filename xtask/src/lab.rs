//! What the measuring chores share: scratch directories, builds, commands as another user, the marked sections of
//! bench/RESULTS.md.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that is removed at the end.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new directory, readable by everybody: commands may run as another user.
    pub fn new(purpose: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("trapline-{purpose}-{}", std::process::id()));
        // create_dir refuses a name that exists, so nobody can put a directory of theirs in our way.
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The user that runs a command: the current one, or the ordinary user nobody.
#[derive(Clone, Copy)]
pub enum User {
    Same,
    Nobody,
}

impl User {
    pub fn command<S: AsRef<OsStr>>(self, argv: &[S]) -> Command {
        const AS_NOBODY: [&str; 6] = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"];
        let prefix: &[&str] = match self {
            User::Same => &[],
            User::Nobody => &AS_NOBODY,
        };
        let mut words = prefix.iter().map(OsStr::new).chain(argv.iter().map(AsRef::as_ref));
        let mut command = Command::new(words.next().unwrap_or(OsStr::new("true")));
        command.args(words);
        command
    }

    /// Gives a file or directory to the user.
    pub fn own(self, path: &Path) -> Result<()> {
        let User::Nobody = self else { return Ok(()) };
        let id = |flag| said("id", &[flag, "nobody"]).parse().context("there is no user nobody");
        chown(path, Some(id("-u")?), Some(id("-g")?)).with_context(|| format!("cannot give {} away", path.display()))
    }
}

/// Where `cargo build` puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}

/// Builds trapline for release and returns its path.
pub fn build_trapline() -> Result<PathBuf> {
    build(&["-p", "trapline"], "trapline")
}

/// Builds an example of a package and returns its path.
pub fn build_example(package: &str, name: &str) -> Result<PathBuf> {
    build(&["-p", package, "--example", name], &format!("examples/{name}"))
}

fn build(what: &[&str], file: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release"]).args(what).current_dir(crate::root());
    run(&mut build)?;
    let binary = target().join("release").join(file);
    if !binary.exists() {
        bail!("the build left no {}", binary.display());
    }
    Ok(binary)
}

/// Compiles tests/programs/NAME.c into a directory.
pub fn build_program(name: &str, into: &Path) -> Result<PathBuf> {
    let source = crate::root().join("tests/programs").join(format!("{name}.c"));
    let program = into.join(name);
    run(Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(source))?;
    Ok(program)
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

/// What a command prints, without the line's end; `unknown` where it does not run.
pub fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(crate::root()).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        _ => "unknown".to_string(),
    }
}

/// Puts a text between the markers `<!-- NAME:begin -->` and `<!-- NAME:end -->` of bench/RESULTS.md, at the end of the
/// file where it has no such markers yet.
pub fn write_section(name: &str, body: &str) -> Result<()> {
    let path = crate::root().join("bench/RESULTS.md");
    let old = fs::read_to_string(&path).unwrap_or_else(|_| "# Results\n".to_string());
    fs::create_dir_all(crate::root().join("bench"))?;
    fs::write(&path, with_section(&old, name, body)).with_context(|| format!("cannot write {}", path.display()))
}

fn with_section(old: &str, name: &str, body: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let section = format!("{begin}\n{}\n{end}", body.trim());
    match (old.find(&begin), old.find(&end)) {
        (Some(from), Some(to)) if from < to => format!("{}{section}{}", &old[..from], &old[to + end.len()..]),
        _ => format!("{}\n\n{section}\n", old.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::with_section;

    #[test]
    fn a_section_is_appended_then_replaced() {
        let first = with_section("# Results\n", "bench x", "one");
        assert_eq!(first, "# Results\n\n<!-- bench x:begin -->\none\n<!-- bench x:end -->\n");
        let second = with_section(&format!("{first}after\n"), "bench x", "two");
        assert_eq!(second, "# Results\n\n<!-- bench x:begin -->\ntwo\n<!-- bench x:end -->\nafter\n");
    }
}
