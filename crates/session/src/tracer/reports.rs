//! What became of tracers, in words: failures and panics of their own code, and calls that none saw.

use collector::attach::tracers::Listed;

/// A line for each thing to report.
pub fn lines<'t>(tracers: impl Iterator<Item = &'t Listed>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut missed = 0;
    for t in tracers {
        if t.panics > 0 {
            lines.push(format!("{}: {}, told of no more calls", t.name, number(t.panics, "panic")));
        }
        if t.failures > 0 {
            lines.push(format!("{}: it has reported {}", t.name, number(t.failures, "failure")));
        }
        // The process counts these once, for all tracers.
        missed = t.missed;
    }
    match missed {
        0 => {}
        1 => lines.push("1 call was missed: no memory for its thread".into()),
        n => lines.push(format!("{n} calls were missed: no memory for their threads")),
    }
    lines
}

/// Calls in tracers, which none sees.
pub fn nested(t: &Listed) -> Option<String> {
    let calls = number(t.nested, "call");
    (t.nested > 0).then(|| format!("{calls} by tracers, or by handlers of signals during them, not traced"))
}

fn number(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_to_report_is_said() {
        let mine = Listed { name: "mine".into(), panics: 3, failures: 1, missed: 12, ..Listed::default() };
        let other = Listed { name: "other".into(), missed: 12, ..Listed::default() };
        let said = lines([&mine, &other].into_iter());
        assert_eq!(
            said,
            [
                "mine: 3 panics, told of no more calls",
                "mine: it has reported 1 failure",
                "12 calls were missed: no memory for their threads"
            ]
        );
        assert_eq!(lines([&Listed::default()].into_iter()), [""; 0]);
        assert_eq!(nested(&other), None);
        let nested = nested(&Listed { nested: 1, ..Listed::default() });
        assert_eq!(nested.as_deref(), Some("1 call by tracers, or by handlers of signals during them, not traced"));
    }
}
