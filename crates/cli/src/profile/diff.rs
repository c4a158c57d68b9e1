//! `trapline profile diff A B`: what has changed.

use clap::ArgMatches;
use engine::Result;

/// Runs the command.
pub fn run(_m: &ArgMatches) -> Result<u8> {
    Ok(0)
}
