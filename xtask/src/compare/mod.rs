//! `cargo xtask compare-strace`: runs a command under strace and under trapline and reports which calls both show in the same
//! way; with `--self` under strace twice, which shows how much of that is noise; with `--corpus` all of that for a list of
//! commands.

mod corpus;
mod diff;
mod normal;
mod parse;
mod report;
mod threads;
mod volatile;

use crate::lab::{self, Scratch, User};
use anyhow::{Context, Result, bail};
use parse::Trace;
use report::Comparison;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

const USAGE: &str = "usage: cargo xtask compare-strace [--as-nobody] [--backend B] [--show N] [--self] -- CMD...
       cargo xtask compare-strace [--as-nobody] [--backend B] [--show N] [--self] --corpus [WORD]
  --as-nobody  run command and tracers as the user nobody
  --backend B  trapline's backend
  --show N     so many examples of each kind of difference (2)
  --self       strace against strace: the noise of the command
  --corpus     the commands of xtask/src/compare/corpus.rs (only those whose name contains WORD)";

/// Runs the chore.
pub fn run(args: &[String]) -> Result<()> {
    let options = Options::read(args)?;
    let lab = Lab::new(&options)?;
    if options.corpus {
        return corpus::run(&lab, &options);
    }
    let job = Job { argv: options.command.clone(), directory: std::env::current_dir()?, environment: None };
    let right = if options.against_itself { Tracer::Strace } else { Tracer::Trapline };
    let recordings = [lab.record(Tracer::Strace, &job)?, lab.record(right, &job)?];
    print!("{}", lab.compare(&recordings).text(options.show));
    for line in complaints(&recordings) {
        println!("{line}");
    }
    Ok(())
}

struct Options {
    user: User,
    backend: Option<String>,
    show: usize,
    against_itself: bool,
    corpus: bool,
    command: Vec<String>,
}

impl Options {
    fn read(args: &[String]) -> Result<Self> {
        let mut options = Self {
            user: User::Same,
            backend: None,
            show: 2,
            against_itself: false,
            corpus: false,
            command: Vec::new(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--as-nobody" => options.user = User::Nobody,
                "--backend" => options.backend = Some(args.next().context(USAGE)?.clone()),
                "--show" => options.show = args.next().context(USAGE)?.parse().context(USAGE)?,
                "--self" => options.against_itself = true,
                "--corpus" => options.corpus = true,
                "--" => options.command.extend(args.by_ref().cloned()),
                word if options.corpus && !word.starts_with('-') => options.command.push(word.to_string()),
                _ => bail!("{USAGE}"),
            }
        }
        if options.command.is_empty() && !options.corpus {
            bail!("{USAGE}");
        }
        Ok(options)
    }

    /// Whether the kernel backend is compared, and so the ptrace backend with it.
    fn kernel(&self) -> bool {
        self.backend.as_deref() == Some("kernel")
    }
}

/// A command to trace, where, and in which environment (ours where it has none).
struct Job {
    argv: Vec<String>,
    directory: PathBuf,
    environment: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracer {
    Strace,
    Trapline,
    /// trapline's ptrace backend, in addition to the one asked for.
    Ptrace,
}

/// One run under a tracer.
struct Recording {
    tracer: Tracer,
    trace: Trace,
    status: ExitStatus,
}

/// What the runs have in common.
struct Lab {
    scratch: Scratch,
    user: User,
    /// The built binary and its options; none where strace is compared with itself.
    trapline: Vec<String>,
    /// The result of the ptrace backend; `None` where it is not compared.
    ptrace: Vec<String>,
}

impl Lab {
    fn new(options: &Options) -> Result<Self> {
        let scratch = Scratch::new("compare")?;
        options.user.own(scratch.path())?;
        let (mut trapline, mut ptrace) = (Vec::new(), Vec::new());
        if !options.against_itself {
            let binary = lab::build_trapline()?;
            trapline = vec![binary.to_string_lossy().into_owned(), "trace".into(), "-q".into()];
            if options.kernel() {
                ptrace = [&trapline[..], &["--backend".to_string(), "ptrace".to_string()]].concat();
            }
            trapline.extend(options.backend.iter().flat_map(|backend| ["--backend".to_string(), backend.clone()]));
        }
        Ok(Self { scratch, user: options.user, trapline, ptrace })
    }

    /// The command line of a tracer that writes to a file. A command that hangs is ended, with its tracer.
    fn tracer_argv(&self, tracer: Tracer, out: &Path, job: &Job) -> Vec<String> {
        let own: Vec<String> = match tracer {
            Tracer::Strace => ["strace", "-f", "-q"].map(String::from).to_vec(),
            Tracer::Trapline => self.trapline.clone(),
            Tracer::Ptrace => self.ptrace.clone(),
        };
        let mut argv: Vec<String> = ["timeout", "--kill-after=5", "300"].map(String::from).to_vec();
        argv.extend(own);
        argv.extend(["-o".to_string(), out.to_string_lossy().into_owned(), "--".to_string()]);
        argv.extend(job.argv.iter().cloned());
        argv
    }

    fn record(&self, tracer: Tracer, job: &Job) -> Result<Recording> {
        let [out, stdout, stderr] = ["trace", "stdout", "stderr"].map(|name| self.scratch.path().join(name));
        let _ = fs::remove_file(&out);
        let mut command = self.user.command(&self.tracer_argv(tracer, &out, job));
        command.current_dir(&job.directory).stdin(Stdio::null());
        command.stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        if let Some(environment) = &job.environment {
            command.env_clear().envs(environment);
        }
        let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
        let said = || String::from_utf8_lossy(&fs::read(&stderr).unwrap_or_default()).into_owned();
        let text = fs::read(&out).with_context(|| format!("{command:?} wrote no trace ({status}):\n{}", said()))?;
        let trace = parse::parse(&String::from_utf8_lossy(&text));
        if trace.entries.is_empty() {
            bail!("{command:?}: an empty trace ({status}):\n{}", said());
        }
        Ok(Recording { tracer, trace, status })
    }

    fn compare(&self, [left, right]: &[Recording; 2]) -> Comparison {
        let names = match (left.tracer, right.tracer) {
            (Tracer::Ptrace, _) => ["ptrace", "kernel"],
            (_, Tracer::Strace) => ["strace", "again"],
            _ => ["strace", "trapline"],
        };
        report::compare(names, &left.trace.entries, &right.trace.entries)
    }
}

/// What else is wrong with two runs: lines that could not be read, exit statuses that differ.
fn complaints([left, right]: &[Recording; 2]) -> Vec<String> {
    let mut complaints = Vec::new();
    if left.status != right.status {
        complaints.push(format!("the commands ended differently: {} and {}", left.status, right.status));
    }
    for recording in [left, right] {
        let lines = &recording.trace.not_understood;
        if let Some(first) = lines.first() {
            let tracer = if recording.tracer == Tracer::Strace { "strace" } else { "trapline" };
            complaints.push(format!("{} lines of {tracer} not understood, the first: {first}", lines.len()));
        }
    }
    complaints
}
