//! Tries the agent on a small program of the machine: `trapline doctor`.

use super::server::Room;
use super::{Agent, Offer, file, loadable};
use engine::backend::launch::{Launched, Waiting};
use engine::error::Result;
use engine::pipeline::backend::{Backend, Deliver};
use engine::request::enabling::{self, What};
use engine::request::functions::{FunctionEnabling, Functions};
use engine::target::Command;
use engine::target::command;
use events::StreamId;
use events::functions::Run;
use std::ffi::OsString;
use std::time::{Duration, Instant};
use sys::signal;

/// Programs that do little and end, whatever they are given.
const PROGRAMS: [&str; 3] = ["/bin/true", "/usr/bin/true", "/bin/echo"];
/// What they all call in libc.
const CALLED: &str = "exit";
/// SIGKILL.
const KILL: i32 = 9;
/// How long the program may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts records.
#[derive(Default)]
struct Counted(usize);

impl Deliver for Counted {
    fn event(&mut self, _stream: StreamId, _event: &[u8]) {}

    fn functions(&mut self, run: &Run<'_>) {
        self.0 += run.records.len() / 8;
    }

    fn settled(&mut self, _until: u64) {}
}

/// Where the agent's file is.
///
/// # Errors
/// Why it can be nowhere.
pub fn file() -> std::result::Result<String, String> {
    file::place(false).map(|path| path.display().to_string()).map_err(|e| e.to_string())
}

fn start(command: &Command, functions: &Functions, room: Room) -> Result<Agent> {
    let offer = Offer::new(command)?;
    let variables = offer.variables(command);
    let mut waiting = Waiting::fork(command, &variables.each_ref().map(|(name, value)| (*name, &**value)))?;
    let all = enabling::list([What::Functions(FunctionEnabling::all())]);
    let mut agent = offer.serve_with(room, false, None, functions, &all, Some(waiting.pid))?;
    waiting.release();
    agent.command = Launched::new(waiting.pid, waiting.failure());
    Ok(agent)
}

/// Traces a function of a small program. Returns what was traced.
///
/// # Errors
/// Why it was not.
pub fn run() -> std::result::Result<String, String> {
    let exists = |name: &&&str| std::fs::metadata(name).is_ok();
    let found = PROGRAMS.iter().filter(exists).find_map(|name| {
        let command = command::prepare(&[OsString::from(name)], &[], None).ok()?;
        loadable::check(&command).ok().map(|()| (name, command))
    });
    let Some((name, command)) = found else {
        return Err(format!("none of {} is there as a dynamic program", PROGRAMS.join(", ")));
    };
    let functions = Functions { wanted: vec![CALLED.into()], libraries: true, ..Functions::default() };
    let room = Room {
        chunks: 4,
        chunk_size: abi::shared::CHUNK as u32,
        block: false,
        heap: 0,
        sample: 0,
        sums: None,
        minimum: None,
        callers: false,
        keep: false,
    };
    let mut agent = start(&command, &functions, room).map_err(|e| e.to_string())?;
    let (begin, mut counted) = (Instant::now(), Counted::default());
    while !agent.poll(true, &mut counted).ended {
        agent.wait(Duration::from_millis(1));
        if begin.elapsed() > PATIENCE {
            let _ = agent.command.pid.map(|pid| signal::kill(pid, KILL));
            return Err(format!("{name} has not ended within {} s", PATIENCE.as_secs()));
        }
    }
    let report = agent.report();
    match counted.0 {
        0 => Err(report
            .trouble
            .iter()
            .chain(&report.left_out)
            .next()
            .cloned()
            .unwrap_or_else(|| format!("{name}: no call was recorded"))),
        _ => Ok(format!("{CALLED}() of {name} was traced")),
    }
}
