//! `PROVIDER:EVENT:COUNT`: names of counters, of the kernel's and of the processor's.

use super::{Probe, Refusal};
use lang::pattern::is_pattern;

/// The event and the count that a pattern asks for; none: any count. `form`: how such probes look.
pub fn split<'p>(pattern: &'p str, form: &'static str) -> Result<(&'p str, Option<u64>), Refusal> {
    let (event, count) = pattern.split_once(':').unwrap_or((pattern, "*"));
    if is_pattern(count) || count == "COUNT" {
        return Ok((event, None));
    }
    match count.parse() {
        Ok(n @ 1..) => Ok((event, Some(n))),
        _ => Err(Refusal::Form(form)),
    }
}

/// The probe of an event.
pub fn probe(provider: &str, event: &str, count: Option<u64>) -> Probe {
    let (count, note) = match count {
        Some(n) => (n.to_string(), String::new()),
        None => ("COUNT".into(), "COUNT: a number of your choice".into()),
    };
    Probe { name: format!("{provider}:{event}:{count}"), note, ..Probe::default() }
}
