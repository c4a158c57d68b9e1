//! What a script has to say at its end.

use super::Script;
use lang::diag::{place, start};
use lang::script::run::Fault;

impl Script {
    /// What it has to say at the end, a line each.
    pub fn troubles(&self) -> Vec<String> {
        let mut all = Vec::new();
        let (name, text) = (&self.source.0, &self.source.1);
        for (clause, counts) in self.program.clauses.iter().zip(self.machine.counts()) {
            if counts.unknown > 0 {
                let point = clause.points.first().map(|p| p.name()).unwrap_or_default();
                let at = start(name, clause.span, text);
                all.push(format!(
                    "{at}: {point}: did not run {} times: a value that it reads was not known",
                    counts.unknown
                ));
            }
        }
        for (fault, span, n) in self.machine.faults() {
            let what = match fault {
                Fault::DivisionByZero => "a division by zero, whose result is 1",
                Fault::TooManyRounds => "too many rounds of loops, and the run was ended",
            };
            all.push(format!("{}: {what} ({n} times)", place(name, span, text)));
        }
        let (refused, lost) = self.machine.speculations_lost();
        if refused > 0 {
            let most = lang::script::run::MAX_OPEN;
            all.push(format!(
                "{name}: {refused} speculations were not opened: {most} were open (commit or discard them)"
            ));
        }
        if lost > 0 {
            all.push(format!("{name}: {lost} lines of speculations were lost: they kept too many"));
        }
        for (map, n) in self.machine.refused() {
            all.push(if self.machine.is_full(map) {
                format!("@{map}: full: {n} new keys were refused (config = {{ max_map_keys = N }} makes it larger)")
            } else {
                format!("@{map}: {n} new keys were refused: the kernel had no memory for them at that moment")
            });
        }
        all.extend(self.unread.iter().cloned());
        all.extend(self.watches.iter().flat_map(|(probe, watches)| watches.unwatched(probe)));
        if let Some(n @ 1..) = self.strange {
            all.push(format!(
                "{name}: cat(), system() and cgroup_path() show nothing over a trace ({n} times): it would be of now, and of this machine"
            ));
        }
        if self.lost > 0 {
            all.push(format!("{} events were lost: what the script shows is too little (--buffer SIZE)", self.lost));
        }
        all
    }
}
