//! The settings of a script: those that the peer has, what they may be, and what is taken where nothing is said.

use super::ast::Setting;
use super::types::StackMode;
use crate::diag::{Code, Diagnostic, Span};
use crate::near::did_you_mean;
use crate::tokens::Result;

/// What a probe that does not exist is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum MissingProbes {
    /// An error where no probe of its clause exists; else a warning.
    #[default]
    Others,
    Error,
    Warn,
    Ignore,
}

/// The settings of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The longest string.
    pub max_strlen: u32,
    /// How many keys a map holds.
    pub max_map_keys: u64,
    /// How much of a file `cat` shows.
    pub max_cat_bytes: u64,
    /// How stacks are shown.
    pub stack_mode: StackMode,
    /// What a probe that does not exist is.
    pub missing_probes: MissingProbes,
    /// Maps are printed at the end.
    pub print_maps_on_exit: bool,
    /// What follows a string that was cut.
    pub str_trunc_trailer: String,
    /// Names of C++ are shown as they are in the source.
    pub cpp_demangle: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            max_strlen: super::types::MAX_STRLEN,
            max_map_keys: 4096,
            max_cat_bytes: 10240,
            stack_mode: StackMode::Bpftrace,
            missing_probes: MissingProbes::Others,
            print_maps_on_exit: true,
            str_trunc_trailer: "..".into(),
            cpp_demangle: true,
        }
    }
}

/// Those that are understood, and what they may be.
pub const SETTINGS: &[(&str, &str)] = &[
    ("max_strlen", "the longest string: a number of bytes up to 65535"),
    ("max_map_keys", "how many keys a map holds: a number"),
    ("max_cat_bytes", "how much of a file cat() shows: a number of bytes"),
    ("stack_mode", "how stacks are shown: bpftrace, perf or raw"),
    (
        "missing_probes",
        "what a probe that does not exist is: error, warn or ignore; else warn where another one of its clause exists",
    ),
    ("print_maps_on_exit", "whether maps are printed at the end: true or false"),
    ("str_trunc_trailer", "what follows a string that was cut: a string"),
    ("cpp_demangle", "whether names of C++ are demangled: true or false"),
];

/// Those that are accepted, and mean nothing here.
const WITHOUT_MEANING: &[&str] = &[
    "license",
    "cache_user_symbols",
    "lazy_symbolication",
    "log_size",
    "max_ast_nodes",
    "max_bpf_progs",
    "max_probes",
    "max_type_res_iterations",
    "on_stack_limit",
    "perf_rb_pages",
    "show_debug_info",
    "use_blazesym",
    "unstable_import",
    "unstable_macro",
    "unstable_map_decl",
    "unstable_tseries",
    "unstable_addr",
];

impl Config {
    /// Of a script and the command line, which is asked last.
    pub(super) fn of(settings: &[Setting], given: &[(String, String)]) -> Result<Config> {
        let mut config = Config::default();
        for s in settings {
            config.set(&s.name, &s.value, s.span)?;
        }
        for (name, value) in given {
            config.set(name, value, Span::default())?;
        }
        Ok(config)
    }

    fn set(&mut self, name: &str, value: &str, span: Span) -> Result<()> {
        let lower = name.to_ascii_lowercase();
        let key = lower.strip_prefix("bpftrace_").unwrap_or(&lower);
        let wrong = || {
            let help = SETTINGS.iter().find(|s| s.0 == key).map_or("", |s| s.1);
            let message = format!("'{name}' cannot be {}", crate::diag::quote(value));
            Diagnostic::new(Code::Config, span, message).hint(format!("it is {help}"))
        };
        let number = |most: u64| value.parse::<u64>().ok().filter(|n| (1..=most).contains(n)).ok_or_else(wrong);
        let truth = || match value {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(wrong()),
        };
        match key {
            "max_strlen" | "strlen" => self.max_strlen = number(65535)? as u32,
            "max_map_keys" | "map_keys_max" => self.max_map_keys = number(u32::MAX.into())?,
            "max_cat_bytes" | "cat_bytes_max" => self.max_cat_bytes = number(1 << 30)?,
            "stack_mode" => self.stack_mode = stack_mode(value).ok_or_else(wrong)?,
            "missing_probes" => {
                self.missing_probes = match value {
                    "error" => MissingProbes::Error,
                    "warn" => MissingProbes::Warn,
                    "ignore" => MissingProbes::Ignore,
                    _ => return Err(wrong()),
                }
            }
            "print_maps_on_exit" => self.print_maps_on_exit = truth()?,
            "str_trunc_trailer" => value.clone_into(&mut self.str_trunc_trailer),
            "cpp_demangle" | "demangle" => self.cpp_demangle = truth()?,
            _ if WITHOUT_MEANING.contains(&key) => {}
            _ => {
                let e =
                    Diagnostic::new(Code::Config, span, format!("no setting is called {}", crate::diag::quote(name)));
                let all: Vec<&str> = SETTINGS.iter().map(|s| s.0).collect();
                let list = format!("there are {}", all.join(", "));
                return Err(e.hint(list).maybe_hint(did_you_mean("", key, all.iter().copied())));
            }
        }
        Ok(())
    }
}

pub(super) fn stack_mode(name: &str) -> Option<StackMode> {
    Some(match name {
        "bpftrace" => StackMode::Bpftrace,
        "perf" => StackMode::Perf,
        "raw" => StackMode::Raw,
        _ => return None,
    })
}
