//! What events capture beside the arguments of their probe, as the command line says it.

use clap::ArgMatches;
use engine::captures::{self, Captures};
use engine::{Error, Result};

/// `--kstack`, `--ustack`, `--comm`: for all enablings.
pub fn captures(m: &ArgMatches) -> Result<Captures> {
    let frames = |name: &str, most: u16| -> Result<u16> {
        let Some(n) = m.get_one::<String>(name) else { return Ok(0) };
        let bad = || Error::usage(format!("--{name}={n}"), "not a number of frames", format!("1 to {most}"));
        n.parse().ok().filter(|n| (1..=most).contains(n)).ok_or_else(bad)
    };
    let (kstack, ustack) = (frames("kstack", captures::KERNEL.into())? as u8, frames("ustack", captures::USER)?);
    Ok(Captures { kstack, ustack, comm: m.get_flag("comm") })
}
