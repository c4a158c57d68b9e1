//! `cargo xtask bench NAME`: measurements whose outcome goes into bench/RESULTS.md.

mod chromium;
mod dd;
mod flat;
mod floor;
mod functions;
mod heap;
mod kernel;
mod losses;
mod measure;
mod memory;
mod page;
mod probes;
mod profiles;
mod report;
mod slab;
mod stacks;
mod syscalls;
mod trace;
mod tracers;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

const USAGE: &str = "usage: cargo xtask bench syscalls [--runs N] [--count N]
       cargo xtask bench kernel [--runs N]
       cargo xtask bench trace [--runs N]
       cargo xtask bench flat [--runs N]
       cargo xtask bench probes [--runs N] [--before BINARY]
       cargo xtask bench profiles [--runs N] [--count N]
       cargo xtask bench losses [--runs N]
       cargo xtask bench stacks [--runs N]
       cargo xtask bench functions [--runs N]
       cargo xtask bench slab [--runs N]
       cargo xtask bench heap [--runs N]
       cargo xtask bench tracers [--runs N]
       cargo xtask bench page [--runs N]
  --runs N   runs of each command, at least 9 (9)
  --count N  blocks that dd copies where every call is traced (100000)
  --before BINARY  another trapline, whose probes are measured in the same run";

/// Runs the chore.
pub fn run(args: &[String]) -> Result<()> {
    match args.split_first() {
        Some((name, rest)) if name == "syscalls" => syscalls::run(&Options::read(rest)?),
        Some((name, rest)) if name == "kernel" => kernel::run(&Options::read(rest)?),
        Some((name, rest)) if name == "flat" => flat::run(&Options::read(rest)?),
        Some((name, rest)) if name == "trace" => trace::run(&Options::read(rest)?),
        Some((name, rest)) if name == "probes" => probes::run(&Options::read(rest)?),
        Some((name, rest)) if name == "profiles" => profiles::run(&Options::read(rest)?),
        Some((name, rest)) if name == "losses" => losses::run(&Options::read(rest)?),
        Some((name, rest)) if name == "stacks" => stacks::run(&Options::read(rest)?),
        Some((name, rest)) if name == "heap" => heap::run(&Options::read(rest)?),
        Some((name, rest)) if name == "slab" => slab::run(&Options::read(rest)?),
        Some((name, rest)) if name == "tracers" => tracers::run(&Options::read(rest)?),
        Some((name, rest)) if name == "page" => page::run(&Options::read(rest)?),
        Some((name, rest)) if name == "functions" => functions::run(&Options::read(rest)?),
        _ => bail!("{USAGE}"),
    }
}

/// The arguments of a bench.
struct Options {
    runs: usize,
    count: u64,
    before: Option<PathBuf>,
}

impl Options {
    fn read(args: &[String]) -> Result<Self> {
        let mut options = Self { runs: 9, count: 100_000, before: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let value = args.next().context(USAGE)?;
            let number = || value.parse::<u64>().ok().context(USAGE);
            match arg.as_str() {
                "--runs" => options.runs = number()?.try_into()?,
                "--count" => options.count = number()?,
                "--before" => options.before = Some(PathBuf::from(value).canonicalize().context("--before")?),
                _ => bail!("{USAGE}"),
            }
        }
        if options.runs < 9 {
            bail!("medians of fewer than 9 runs say little");
        }
        Ok(options)
    }
}
