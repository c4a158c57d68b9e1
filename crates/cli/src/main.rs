//! `trapline`: the command line. One file per command, thin: what they do is in `engine` and `views`.

mod args;
mod doctor;
mod filter;
mod list;
mod output;
mod stats;
mod strace_flags;
mod trace;

use std::io::Write;
use std::process::ExitCode;

/// Prints one error line on stderr; a closed stderr changes nothing.
pub fn complain(message: &str) {
    let mut line = b"trapline: ".to_vec();
    views::escape::line(message.as_bytes(), &mut line);
    line.push(b'\n');
    let _ = std::io::stderr().write_all(&line);
}

fn main() -> ExitCode {
    let started = sys::time::monotonic();
    let argv: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let matches = match args::command().try_get_matches_from(&argv) {
        Ok(m) => m,
        Err(e) => return args::usage(&e, &argv),
    };
    let result = match matches.subcommand() {
        Some(("trace", m)) => trace::run(m, started),
        Some(("list", m)) => list::run(m),
        Some(("doctor", _)) => doctor::run(),
        Some(("man", _)) => args::man(),
        Some(("completions", m)) => args::completions(m),
        _ => unreachable!("clap requires a subcommand"),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            complain(&e.to_string());
            ExitCode::from(e.exit_status())
        }
    }
}
