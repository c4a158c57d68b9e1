//! Which cases this host can run.

use super::cases::Case;
use regex_lite::Regex;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a host has.
pub struct Host {
    functions: bool,
    counters: bool,
    kernel_functions: Regex,
    lists: Regex,
    probes: Regex,
}

impl Host {
    pub fn here() -> Host {
        let regex = |text: &str| Regex::new(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        Host {
            functions: Path::new("/sys/bus/event_source/devices/kprobe").is_dir(),
            counters: Path::new("/sys/bus/event_source/devices/cpu").is_dir(),
            kernel_functions: regex(r"\b(k|kr|kprobe|kretprobe|kfunc|kretfunc):"),
            lists: regex(r"BPFTRACE\}\} -l"),
            probes: regex(
                r"\b(t|tracepoint|u|ur|uprobe|uretprobe|usdt|p|profile|i|interval|s|software|h|hardware|w|watchpoint|asyncwatchpoint|iter|k|kr|kprobe|kretprobe|kfunc|kretfunc):",
            ),
        }
    }

    /// Why a case cannot run here. `text` is its command with the script that it names.
    pub fn hinders(&self, case: &Case, text: &str) -> Option<&'static str> {
        let wants = |feature: &str| case.features.iter().any(|f| f == feature);
        let other = !case.arch.is_empty() && !case.arch.iter().any(|a| a == std::env::consts::ARCH);
        let hindered = [
            (other, "are for other processors"),
            (self.lists.is_match(text), "list probes"),
            (!self.functions && self.kernel_functions.is_match(text), "want functions of the kernel"),
            (!self.counters && text.contains("hardware:"), "count events of the processor"),
            (wants("dwarf"), "want DWARF's types of arguments"),
            (
                wants("aot") || wants("skboutput") || wants("!uprobe_refcount"),
                "want what no kernel or build of now has",
            ),
        ];
        hindered.into_iter().find(|(is, _)| *is).map(|(_, why)| why)
    }

    /// Whether it has `begin` and `end` only, or no script at all.
    pub fn is_alone(&self, text: &str) -> bool {
        !self.probes.is_match(text)
    }

    /// Whether a command of REQUIRES succeeds, in the directory of the cases.
    pub fn has(&self, command: &str, dir: &Path) -> bool {
        let mut sh = Command::new("sh");
        sh.args(["-c", command]).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sh.status().is_ok_and(|s| s.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_told_apart_by_what_they_want() {
        let mut host = Host::here();
        (host.functions, host.counters) = (false, false);
        let why = |text: &str| host.hinders(&Case::default(), text);
        assert_eq!(why("{{BPFTRACE}} -e 'k:vfs_read { }'"), Some("want functions of the kernel"));
        assert_eq!(why("{{BPFTRACE}} -lv 'uprobe:x:*'"), Some("list probes"));
        assert_eq!(why("{{BPFTRACE}} -e 'i:ms:1 { }'"), None);
        assert!(host.is_alone("BEGIN { $a = 1 ? 2 : 3 } END { }") && !host.is_alone("BEGIN { } i:s:1 { }"));
        let case = Case { arch: vec!["s390x".into()], ..Case::default() };
        assert_eq!(host.hinders(&case, "BEGIN { }"), Some("are for other processors"));
    }
}
