//! What events capture beside the arguments of their probe, as the command line says it.

use clap::ArgMatches;
use engine::captures::Captures;
use engine::{Error, Result};

/// `--kstack`, `--ustack`, `--comm`: for all enablings.
pub fn captures(m: &ArgMatches) -> Result<Captures> {
    let frames = |name: &str| -> Result<u8> {
        let Some(n) = m.get_one::<String>(name) else { return Ok(0) };
        let bad = || Error::usage(format!("--{name}={n}"), "not a number of frames", "1 to 127");
        n.parse().ok().filter(|n| (1..=127).contains(n)).ok_or_else(bad)
    };
    Ok(Captures { kstack: frames("kstack")?, ustack: frames("ustack")?, comm: m.get_flag("comm") })
}
