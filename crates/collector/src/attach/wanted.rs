//! What a tracer is enabled with: its options, as its row has them, and the stubs that are enough.

use super::failed;
use super::linker::{Linker, Module};
use super::modules::{is, near_functions};
use abi::built_in::{self, Choice, MAIN, Row, STOP};
use abi::stub::Variant;
use engine::error::Result;
use engine::request::functions::Functions;

/// What the main thread is called among those that may call functions.
pub const MAIN_THREAD: &str = "main";

/// Bytes of the name of a thread.
pub(super) const THREAD_NAME: usize = 15;

/// What a tracer is enabled with.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// The functions that it is on.
    pub functions: Functions,
    /// Patterns of names of sections; only functions that begin in one of these. Empty: in any.
    pub sections: Vec<String>,
    /// Without time ([`Choice::Time`]).
    pub no_time: bool,
    /// Patterns of the names of the threads that may call them, 3 at most beside [`MAIN_THREAD`]; none: the main thread.
    pub threads: Vec<String>,
    /// Stop the program at a violation.
    pub stop: bool,
    /// The function whose callees are watched.
    pub caller: Option<String>,
    /// How long calls may take, in ns.
    pub budget: u64,
}

/// What is enough for a site that has no other tracer.
pub(super) fn stub(kind: u32, wanted: &Wanted) -> Variant {
    let is_timed = Row::find(kind).is_some_and(|row| row.options[0] == Choice::Time) && !wanted.no_time;
    built_in::stub(kind, is_timed.into())
}

/// Options as the tracer's row has them.
pub(super) fn options(
    pid: i32,
    kind: u32,
    (wanted, ticks): (&Wanted, u64),
    modules: &[Module],
    plan: &Linker<'_>,
) -> Result<[u64; 8]> {
    let mut options = [0; 8];
    let Some(row) = Row::find(kind) else { return Ok(options) };
    let mut patterns = patterns(wanted);
    for (option, choice) in options.iter_mut().zip(row.options) {
        *option = match choice {
            Choice::Unused => 0,
            Choice::Time => (!wanted.no_time).into(),
            Choice::Flags => flags(wanted),
            Choice::Thread => patterns.next().unwrap_or(0),
            Choice::Caller => caller(pid, wanted, modules, plan)?.into(),
            Choice::Budget => wanted.budget.saturating_mul(ticks) / 1_000_000,
        };
    }
    Ok(options)
}

/// [`STOP`] and [`MAIN`].
fn flags(wanted: &Wanted) -> u64 {
    let main = wanted.threads.is_empty() || wanted.threads.iter().any(|t| t == MAIN_THREAD);
    (if wanted.stop { STOP } else { 0 }) | if main { MAIN } else { 0 }
}

/// The patterns of threads' names, two words each.
fn patterns(wanted: &Wanted) -> impl Iterator<Item = u64> {
    wanted.threads.iter().filter(|t| *t != MAIN_THREAD).flat_map(|name| {
        let mut text = [[0u8; 8]; (THREAD_NAME + 1) / 8];
        text.as_flattened_mut().iter_mut().zip(name.bytes().take(THREAD_NAME)).for_each(|(to, b)| *to = b);
        text.map(u64::from_le_bytes)
    })
}

/// The number of the function whose callees are watched.
fn caller(pid: i32, wanted: &Wanted, modules: &[Module], plan: &Linker<'_>) -> Result<u32> {
    let caller = wanted.caller.as_deref().unwrap_or_default();
    let found = modules.iter().find_map(|m| {
        let site = m.known.site_of(is(caller))?;
        plan.number(site.start.wrapping_add(m.bias))
    });
    found.filter(|_| !caller.is_empty()).ok_or_else(|| {
        let near = if caller.is_empty() { String::new() } else { near_functions(modules, caller) };
        failed(pid, format!("no function {caller} to watch the callees of"), near + "use --loop FUNCTION")
    })
}
