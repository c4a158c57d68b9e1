//! `trapline test FILE`: runs a script's clauses of `test:` once each, and measures those of `bench:`.
//!
//! Each is a program of its own, with maps of its own: it has the script's macros, functions and declarations, and no other clause.

use super::catalogue::Catalogue;
use super::sink::{Manner, Script};
use super::{compiled, find, known, parameters, source};
use crate::ask::Ask;
use crate::output::{Output, to_stdout};
use crate::view::screen::Clocks;
use engine::{Error, Result};
use lang::script::parse;
use std::time::{Duration, Instant};

/// How long a benchmark runs.
const LONG: Duration = Duration::from_millis(200);

/// How a clause has ended.
enum Outcome {
    Passed,
    /// With what it has printed.
    Failed(String),
    /// ns of a run.
    Took(f64),
}

/// Runs the tests of all files. The exit status: 1 where one has failed.
pub fn run(ask: &Ask) -> Result<u8> {
    let files = ask.script.file.iter().cloned().chain(ask.script.args.iter().map(Into::into));
    let (mut tests, mut failed, mut benchmarks) = (0, 0, 0);
    for file in files {
        let mut ask = ask.clone();
        (ask.script.file, ask.script.args) = (Some(file), Vec::new());
        let (name, text) = source(&ask)?;
        let mut params = parameters(&ask)?;
        let all = parse::tests(&text, &params).map_err(|d| {
            eprintln!("{}", d.show(&name, &text));
            Error::Said
        })?;
        if all.is_empty() {
            return Err(Error::failed(&*name, "it has no tests", "write test:NAME { assert(1 + 1 == 2); }"));
        }
        for point in all {
            let probe = point.name();
            params.only = Some(probe.clone());
            let line = match one(&params, (&name, &text))? {
                Outcome::Passed => "ok\n".into(),
                Outcome::Failed(said) => {
                    failed += 1;
                    format!("FAILED\n{said}")
                }
                Outcome::Took(ns) => format!("{ns:.1} ns a run\n"),
            };
            if point.provider.name == "test" {
                tests += 1
            } else {
                benchmarks += 1
            };
            to_stdout(format!("{name}: {probe} ... {line}").as_bytes())?;
        }
    }
    let of = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let measured = if benchmarks > 0 { format!(", {}", of(benchmarks, "benchmark")) } else { String::new() };
    to_stdout(format!("{}, {failed} failed{measured}\n", of(tests, "test")).as_bytes())?;
    Ok(u8::from(failed > 0))
}

fn one(params: &lang::script::Parameters, source: (&str, &str)) -> Result<Outcome> {
    let catalogue = Catalogue::new(true, None, None);
    let program = compiled(params, source, &catalogue, 0)?;
    let places = find(&program, source, &catalogue)?;
    known(&program, source)?;
    let manner = Manner { one_stream: true, ..Manner::default() };
    let source = (source.0.to_owned(), source.1.to_owned());
    let mut script = Script::new(program, places, source, Output::kept(), &manner, Clocks::now());
    if params.only.as_ref().is_some_and(|name| name.starts_with("bench:")) {
        return Ok(measured(&mut script));
    }
    script.begin(None);
    Ok(ended(&mut script).map_or(Outcome::Passed, Outcome::Failed))
}

/// Runs it for a moment.
fn measured(script: &mut Script) -> Outcome {
    let (since, mut runs) = (Instant::now(), 0u32);
    while since.elapsed() < LONG {
        // The clock takes as long as a short run.
        for _ in 0..64 {
            script.begin(None);
            script.printed().clear();
        }
        runs += 64;
        if script.exit().is_some() {
            break;
        }
    }
    let took = since.elapsed().as_secs_f64() * 1e9 / f64::from(runs);
    ended(script).map_or(Outcome::Took(took), Outcome::Failed)
}

/// Why it has failed: what it has printed, and what it says of itself.
fn ended(script: &mut Script) -> Option<String> {
    let status = script.exit().unwrap_or(0);
    let mut said = String::from_utf8_lossy(script.printed()).into_owned();
    let troubles = script.troubles();
    if status == 0 && troubles.is_empty() {
        return None;
    }
    troubles.iter().for_each(|line| said += &format!("{line}\n"));
    if status != 0 && said.is_empty() {
        said = format!("it ended with status {status}\n");
    }
    Some(said.lines().filter(|line| !line.is_empty()).map(|line| format!("    {line}\n")).collect())
}
