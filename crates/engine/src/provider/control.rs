//! `begin` and `end`: the beginning and the end of the session itself.

use super::{Probe, Provider, Ready, Refusal};

/// One of the two.
pub struct Control {
    name: &'static str,
    describe: &'static str,
}

/// The beginning.
pub static BEGIN: Control = Control { name: "begin", describe: "begin: once, when the session starts" };
/// The end.
pub static END: Control = Control { name: "end", describe: "end: once, when the session ends" };

impl Provider for Control {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn list(&self, pattern: &str, _: bool) -> Result<Vec<Probe>, Refusal> {
        match pattern {
            "*" => Ok(vec![Probe { name: self.name.into(), ..Probe::default() }]),
            _ => Err(Refusal::Form(self.describe)),
        }
    }

    fn ready(&self, _: &str) -> Result<Vec<Ready>, Refusal> {
        // The session itself makes their events.
        Err(Refusal::Form(self.describe))
    }
}
