//! Missed runs: the kernel skipped the program because it was already running on that CPU (`recursion_misses` of bpf_prog_info): events
//! that happened and that no program has seen.

use engine::plan::Plan;
use engine::stats::Missed;
use events::generated as g;

/// The class whose events each program makes.
pub struct Attribution {
    /// The only call that the programs of calls look at.
    call: Option<u16>,
}

impl Attribution {
    /// For the calls of a plan.
    pub fn of(plan: &Plan) -> Attribution {
        let seen = plan.seen_calls();
        let mut calls = events::registry::syscalls().filter(|s| seen.contains(s));
        let only = calls.next().filter(|_| seen.len() == 1 && !seen.has_unknown());
        Attribution { call: only.map(|s| s.id) }
    }

    /// `shared`: the program of the ends of calls is also that of the ends of tasks.
    fn class(&self, program: &str, shared: bool) -> Option<u16> {
        match program {
            "trapline_exit" if shared => None,
            "trapline_enter" | "trapline_exit" => self.call,
            "trapline_signal" | "trapline_sent" => Some(g::P_SIGNAL.id),
            "trapline_end" => Some(g::P_EXIT.id),
            "trapline_exec" => Some(g::P_EXEC.id),
            "trapline_fork" => Some(g::P_FORK.id),
            _ => None,
        }
    }

    /// Adds up the misses of programs, by name.
    pub fn count(&self, misses: &[(String, u64)]) -> Missed {
        let mut all = Missed::default();
        let shared = !misses.iter().any(|(program, _)| program == "trapline_end");
        for (program, n) in misses.iter().filter(|(_, n)| *n > 0) {
            all.total += n;
            let Some(class) = self.class(program, shared) else { continue };
            match all.classes.iter_mut().find(|(c, _)| *c == class) {
                Some((_, sum)) => *sum += n,
                None => all.classes.push((class, *n)),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_go_to_the_class_of_their_program_and_to_the_total() {
        let misses = [("trapline_enter", 2), ("trapline_exit", 3), ("trapline_signal", 4), ("trapline_sent", 1)];
        let none = [("trapline_fork", 0), ("trapline_end", 0)];
        let misses: Vec<_> = misses.into_iter().chain(none).map(|(p, n)| (p.to_string(), n)).collect();
        let many = Attribution { call: None }.count(&misses);
        assert_eq!(many, Missed { total: 10, classes: vec![(g::P_SIGNAL.id, 5)] });
        let one = Attribution { call: Some(300) }.count(&misses);
        assert_eq!(one, Missed { total: 10, classes: vec![(300, 5), (g::P_SIGNAL.id, 5)] });
        let shared = Attribution { call: Some(300) }.count(&misses[..5]);
        assert_eq!(shared, Missed { total: 10, classes: vec![(300, 2), (g::P_SIGNAL.id, 5)] });
    }
}
