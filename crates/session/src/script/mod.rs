//! `trapline run`: scripts in bpftrace's dialect, over the events of a session.
//!
//! ```text
//! text ─► lang::script ◄─ catalogue (probes, arguments) ─► Program ─► places: requests of -e, clauses by probe
//!                                                                                │
//!   record::run_with ─► pump ─► sink::ScriptSink ─► seen::Seen ─► lang's Machine ┴► views::script ─► stdout
//! ```
//!
//! A script asks for what any `-e` can ask for, and so every backend serves it: what each probe's clauses read is what is captured.

mod among;
mod bare;
mod beside;
mod called;
mod catalogue;
mod cgroups;
mod collecting;
mod from_records;
mod import;
mod in_kernel;
mod kernel_types;
mod places;
mod predicates;
mod prints;
mod recorded;
mod seen;
mod sink;
pub mod test;
mod tick;
pub mod typed;
mod watch;

pub use beside::{record, trace};
pub use recorded::report;

use crate::ask::Ask;
use crate::output::{Output, complain};
use crate::record;
use crate::report::traces::Traces;
use crate::run::Status;
use crate::run::interrupts::Interrupts;
use crate::target;
use crate::view::screen::Clocks;
use catalogue::Catalogue;
use engine::pipeline::pump::Sink;
use engine::target::Target;
use engine::{Error, Result, rights};
use lang::script::{self, Parameters, Program, Severity};
use places::Places;
use sink::{Manner, Script, ScriptSink};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Runs the command.
pub fn run(ask: &Ask) -> Result<Status> {
    if ask.script.watch {
        return watch::watch(ask);
    }
    if ask.trace.dir.is_some() {
        return over_traces(ask, source(ask)?);
    }
    let mut ask = ask.clone();
    whose(&mut ask)?;
    let (name, text) = source(&ask)?;
    let of_calls = !ask.target.all && has_no_tracepoints(&ask);
    let catalogue = Catalogue::new(of_calls, pid_of(&ask), ask.target.command.first());
    let program = compile(&ask, (&name, &text), &catalogue)?;
    let places = find(&program, (&name, &text), &catalogue)?;
    if ask.script.dry_run {
        return Ok(Status::Exit(0));
    }
    known(&program, (&name, &text))?;
    if places.count() == 0 {
        return Err(Error::failed(name, "no probe of it exists", "see 'trapline list'"));
    }
    if places.attached > 0 && ask.target.command.is_empty() && ask.target.attach.is_empty() && !ask.target.all {
        let why = rights::kernel_backend_is_usable().err().unwrap_or_else(|| "it is for root only".into());
        return Err(Error::failed("the whole machine", why, "trace a command or a process: -c COMMAND, -p PID"));
    }
    let has_target = !ask.target.command.is_empty() || !ask.target.attach.is_empty();
    // Objects of the kernel are walked over once, and nothing else happens.
    let only_walks = !places.objects.is_empty() && places.intervals.is_empty() && places.requests.is_empty();
    let is_alone = places.requests.is_empty() && !has_target;
    let (output, manner) = (output_of(&ask)?, manner_of(&ask));
    let output = if is_alone { output.of_the_past() } else { output };
    ask.keep.output = None;
    let (requests, values) = (places.requests.clone(), places.values);
    let quiet = ask.quiet;
    let script = Script::new(program, places, (name, text), output, &manner, Clocks::now());
    let script = Rc::new(RefCell::new(script));
    script.borrow_mut().take_records();
    script.borrow_mut().announce(quiet == 0, ask.tracing.explain.is_some());
    if requests.is_empty() {
        script.borrow_mut().attached();
    }
    script.borrow_mut().begin(None);
    if script.borrow().exit().is_none() {
        script.borrow_mut().walk()?;
    }
    let is_over = script.borrow().exit().is_some() || only_walks;
    let mut sink = ScriptSink(Rc::clone(&script));
    let status = if is_over || is_alone {
        if !is_over {
            alone(&script);
        }
        sink.end().map(|()| Status::Exit(0))
    } else {
        ask.select.expr = if requests.is_empty() { vec!["none".into()] } else { requests };
        // What it has to say of itself is about a recording.
        ask.quiet = ask.quiet.max(1);
        let (assigns, everyone) = (Rc::clone(&script), ask.target.all && rights::is_root());
        let entries = script.borrow().takes_entries_alone();
        // The rows of a process that goes on without trapline would be in its way.
        let is_command = !ask.target.command.is_empty() && ask.target.attach.is_empty();
        let sums = script.borrow().sums().filter(|_| is_command);
        if sums.is_some() {
            script.borrow_mut().take_sums();
        }
        let own = record::Own {
            calls: record::OfCalls { values, entries, sums },
            sinks: vec![Box::new(sink)],
            adjust: Some(Box::new(move |enablings| assigns.borrow_mut().assign(enablings, everyone))),
        };
        record::run_own(&ask, own)
    };
    let script = script.borrow();
    if quiet < 2 {
        script.troubles().iter().for_each(|line| complain(line));
    }
    // How the command has ended is none of the script's business, and neither is a reader who has seen enough.
    status.map(|_| match script.is_unwritten() {
        true => Status::Exit(125),
        false => Status::Exit(script.exit().map_or(0, |code| code as u8)),
    })
}

/// Runs it over a trace, or over several as one.
fn over_traces(ask: &Ask, (name, text): (String, String)) -> Result<Status> {
    for (option, given) in [("-c", ask.script.command.is_some()), ("--duration", ask.tracing.duration.is_some())] {
        if given {
            return Err(Error::usage(option, "a trace has its events already", "leave it out"));
        }
    }
    let traces = Traces::open(ask)?;
    let catalogue = Catalogue::recorded(traces.all(), recorded::found(traces.all()));
    let program = compile(ask, (&name, &text), &catalogue)?;
    let places = find(&program, (&name, &text), &catalogue)?;
    known(&program, (&name, &text))?;
    if ask.script.dry_run {
        return Ok(Status::Exit(0));
    }
    let (selection, clocks) = traces.selected(ask)?;
    let output = output_of(ask)?.of_the_past();
    let mut script = Script::new(program, places, (name, text), output, &manner_of(ask), clocks);
    script.of_the_past(traces.begin(), traces.origin());
    script.begin(None);
    let script = Rc::new(RefCell::new(script));
    let mut sink = ScriptSink(Rc::clone(&script));
    let exit = script.borrow().exit();
    let status = match exit {
        Some(_) => sink.end().map(|()| 0)?,
        None => traces.through(ask, (selection, clocks), Box::new(sink))?,
    };
    let script = script.borrow();
    if ask.quiet < 2 {
        script.troubles().iter().for_each(|line| complain(line));
    }
    Ok(Status::Exit(script.exit().map_or(status, |code| code as u8)))
}

fn output_of(ask: &Ask) -> Result<Output> {
    match &ask.keep.output {
        Some(path) => Output::open(Some(path), false, false),
        None => Output::view(None),
    }
}

fn manner_of(ask: &Ask) -> Manner {
    Manner {
        json: ask.script.format.as_deref() == Some("json"),
        raw_strings: ask.script.raw_strings,
        one_stream: false,
        failures: ask.script.failures > 0,
    }
}

/// The script's name and its text.
fn source(ask: &Ask) -> Result<(String, String)> {
    let of_file = |path: &OsString| -> Result<(String, String)> {
        let name = path.to_string_lossy().into_owned();
        let failed = |e: std::io::Error| Error::failed(&*name, e.to_string(), "name a script");
        let mut bytes = Vec::new();
        // Longer ones are refused by name.
        let most = lang::script::parse::MAX_SCRIPT as u64 + 1;
        match name.as_str() {
            "-" => std::io::stdin().take(most).read_to_end(&mut bytes).map_err(failed)?,
            _ => rights::open(Path::new(path)).and_then(|f| f.take(most).read_to_end(&mut bytes)).map_err(failed)?,
        };
        let text = String::from_utf8(bytes).map_err(|_| Error::failed(&*name, "it is not UTF-8", "name a script"))?;
        Ok((if name == "-" { "stdin".into() } else { name.clone() }, text))
    };
    let (name, text) = match (&ask.script.text, &ask.script.file) {
        (Some(text), _) => ("stdin".into(), text.clone()),
        (None, Some(path)) => of_file(path)?,
        (None, None) => {
            return Err(Error::usage(
                "run",
                "no script is given",
                "trapline run FILE, or trapline run -e 'begin { printf(\"hello\\n\"); exit(); }'",
            ));
        }
    };
    import::whole(name, text)
}

/// Whose events: a command, a process, or, for root, the whole machine.
fn whose(ask: &mut Ask) -> Result<()> {
    if let Some(command) = &ask.script.command {
        ask.target.command = split(command)?;
        if !ask.target.attach.is_empty() {
            return Err(Error::usage("-c", "given together with -p", "leave one of them out"));
        }
    } else if !ask.target.attach.is_empty() {
        // What is wrong with -p is said before anything is of the script.
        if let Target::Pids(pids) = target::target(ask)?
            && let Some(pid) = pids.iter().find(|pid| !Path::new(&format!("/proc/{pid}")).exists())
        {
            return Err(Error::failed(format!("-p {pid}"), "no such process", "see 'ps -e'"));
        }
    } else if rights::is_root() && rights::kernel_backend_is_usable().is_ok() {
        ask.target.all = true;
    }
    Ok(())
}

/// The words of a command: blanks separate them, quotes and backslashes hold them together.
fn split(text: &str) -> Result<Vec<OsString>> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\\', None | Some('"')) => word.extend(chars.next()),
            ('"' | '\'', None) => (quote, any) = (Some(c), true),
            (c, None) if c.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word).into());
                }
                any = false;
            }
            (c, _) => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word.into());
    }
    match (quote, words.is_empty()) {
        (Some(_), _) => Err(Error::usage(format!("-c {text}"), "a quote in it is not closed", "close it")),
        (None, true) => Err(Error::usage("-c", "it names no command", "for instance -c 'ls /'")),
        _ => Ok(words),
    }
}

/// Whether calls have no tracepoints: by ptrace, and where tracefs cannot be read, which is root's.
fn has_no_tracepoints(ask: &Ask) -> bool {
    ask.tracing.backend.as_deref() == Some("ptrace")
        || rights::kernel_backend_is_usable().is_err()
        || sys::tracefs::tracepoint_id("raw_syscalls", "sys_enter").is_err()
}

fn pid_of(ask: &Ask) -> Option<u32> {
    ask.target.attach.first()?.split(',').next()?.parse().ok()
}

/// What the command line gives the script.
fn parameters(ask: &Ask) -> Result<Parameters> {
    let mut params = Parameters { may_run: ask.script.may_run, failures: ask.script.failures, ..Parameters::default() };
    for word in &ask.script.args {
        match word.strip_prefix("--").map(|named| named.split_once('=').unwrap_or((named, "true"))) {
            Some((name, value)) => params.named.push((name.into(), value.into())),
            None => params.positional.push(word.clone()),
        }
    }
    for setting in &ask.script.config {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(Error::usage(format!("--config {setting}"), "it has no value", "--config NAME=VALUE"));
        };
        params.config.push((name.trim().into(), value.trim().into()));
    }
    Ok(params)
}

/// Reads and checks the script; mistakes and warnings are printed.
fn compile(ask: &Ask, source: (&str, &str), catalogue: &Catalogue) -> Result<Program> {
    compiled(&parameters(ask)?, source, catalogue, ask.quiet)
}

fn compiled(params: &Parameters, (name, text): (&str, &str), catalogue: &Catalogue, quiet: u8) -> Result<Program> {
    let (all, program) = match script::compile(text, params, catalogue) {
        Ok(mut program) => {
            script::hoist::hoist(&mut program);
            (std::mem::take(&mut program.warnings), Some(program))
        }
        Err(all) => (all, None),
    };
    for d in all.iter().filter(|d| quiet == 0 || d.severity == Severity::Error) {
        eprintln!("{}", d.show(name, text));
    }
    program.ok_or(Error::Said)
}

/// The places of all clauses; probes that do not exist are what the settings say.
fn find(program: &Program, (name, text): (&str, &str), catalogue: &Catalogue) -> Result<Places> {
    use lang::script::config::MissingProbes;
    let mut refused = false;
    let missing = |point: &script::attach::Point, e: &Error, others: bool| {
        let level = match program.config.missing_probes {
            // Scripts name functions as several kernels have them.
            MissingProbes::Others if others => "WARNING",
            MissingProbes::Error | MissingProbes::Others => "ERROR",
            MissingProbes::Warn => "WARNING",
            MissingProbes::Ignore => return,
        };
        refused |= level == "ERROR";
        say(&format!("{}: {level}: {e}", lang::diag::place(name, point.span, text)));
    };
    let places = places::places(program, catalogue, missing);
    if refused { Err(Error::Said) } else { Ok(places) }
}

/// A line on stderr; what is in it of a script may come with a trace.
fn say(line: &str) {
    let mut out = Vec::new();
    views::escape::line(line.as_bytes(), &mut out);
    out.push(b'\n');
    let _ = std::io::Write::write_all(&mut std::io::stderr(), &out);
}

/// Refuses clauses that read what no event of their probes has.
fn known(program: &Program, (name, text): (&str, &str)) -> Result<()> {
    let mut refused = false;
    for clause in &program.clauses {
        for leaf in &clause.leaves {
            let Some((what, todo)) = places::unknown(program, leaf, clause) else { continue };
            say(&format!("{}: ERROR: {what}", lang::diag::start(name, clause.span, text)));
            say(&format!("HINT: {todo}"));
            refused = true;
        }
    }
    if refused { Err(Error::Said) } else { Ok(()) }
}

/// Runs what needs no session: intervals, until it ends itself, or a signal ends it.
fn alone(script: &Rc<RefCell<Script>>) {
    const LONGEST: u64 = 20_000_000;
    let mut interrupts = Interrupts::watch(false);
    loop {
        let mut script = script.borrow_mut();
        script.until(sys::time::monotonic(), None);
        script.flush();
        script.print_if_asked(None);
        if script.exit().is_some() || script.is_unread() || interrupts.poll().is_some() {
            return;
        }
        let wait = script.next_due().map_or(LONGEST, |due| due.saturating_sub(sys::time::monotonic()).min(LONGEST));
        std::thread::sleep(Duration::from_nanos(wait));
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn commands_are_split_into_words() {
        let words = |text: &str| split(text).unwrap().into_iter().map(|w| w.into_string().unwrap()).collect::<Vec<_>>();
        assert_eq!(words(r#" ls  -l "a b" 'c "d' e\ f "" "#), ["ls", "-l", "a b", "c \"d", "e f", ""]);
        assert!(split("'a").is_err() && split("  ").is_err());
    }
}
