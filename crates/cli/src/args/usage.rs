//! What is said of a command line that clap refuses.

use super::help::{dressed, first_screen};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use session::output::{complain, print};
use session::strace_flags;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Answers a command line that clap refuses: help and version on stdout, everything else one line.
pub fn usage(e: &clap::Error, argv: &[OsString]) -> ExitCode {
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let all = argv.iter().any(|word| word == "--help-all");
            // Help once more, of the commands as it shows them.
            let dressed = (e.kind() == ErrorKind::DisplayHelp).then(|| dressed(all).try_get_matches_from(argv).err());
            let shown = dressed.flatten().filter(|shown| shown.kind() == e.kind());
            // What clap made of it, with colours where there is a terminal for them.
            return match print(shown.as_ref().unwrap_or(e).print()) {
                Ok(code) => ExitCode::from(code),
                Err(e) => {
                    complain(&e.to_string());
                    ExitCode::from(e.exit_status())
                }
            };
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            match argv.len() {
                0 | 1 => drop(std::io::stderr().write_all(first_screen().as_bytes())),
                _ => drop(e.print()),
            }
            return ExitCode::from(2);
        }
        _ => {}
    }
    let get = |k: ContextKind| match e.get(k) {
        Some(ContextValue::String(s)) => Some(s.clone()),
        Some(ContextValue::Strings(s)) => Some(s.join(", ")),
        _ => None,
    };
    let what = get(ContextKind::InvalidArg).or_else(|| get(ContextKind::InvalidSubcommand)).unwrap_or_default();
    let given = get(ContextKind::InvalidValue).unwrap_or_default();
    let near = get(ContextKind::SuggestedArg)
        .or_else(|| get(ContextKind::SuggestedSubcommand))
        .or_else(|| get(ContextKind::SuggestedValue))
        .map(|s| format!("did you mean {s}?"));
    let line = match e.kind() {
        ErrorKind::UnknownArgument if argv.get(1).is_some_and(|a| a == "trace") => {
            let hint = strace_flags::equivalent(&what).map(str::to_string).or(near);
            format!("{what}: no such option ({})", hint.unwrap_or_else(|| "see 'trapline trace --help'".into()))
        }
        ErrorKind::UnknownArgument => {
            format!("{what}: no such option ({})", near.unwrap_or_else(|| "see --help".into()))
        }
        ErrorKind::MissingRequiredArgument => format!("{what}: not given (see --help)"),
        ErrorKind::InvalidSubcommand => {
            let near = near.map(|n| n + " ").unwrap_or_default();
            format!("{what}: no such command ({near}to trace it: trapline trace -- {what})")
        }
        ErrorKind::InvalidValue if given.is_empty() => format!("{what}: needs a value (see --help)"),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let hint = near.or_else(|| get(ContextKind::ValidValue).map(|v| format!("one of {v}")));
            format!("{what}: not '{given}' ({})", hint.unwrap_or_else(|| "a number is expected".into()))
        }
        _ => {
            let text = e.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            format!("{first} (see --help)")
        }
    };
    complain(&line);
    ExitCode::from(2)
}
