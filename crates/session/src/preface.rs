//! What trapline prints on stderr before a trace begins: the plan, the programs, and the processes that are not traced.

use crate::diagnosis::explain;
use engine::pipeline::backend::Attached;
use engine::plan::Plan;
use engine::target::Target;
use std::io::Write;

/// `--explain`: the plan; `why` its backend.
pub fn explain(plan: &Plan, why: &str) {
    let text: String = explain::lines(plan, why).iter().map(|l| format!("trapline: {l}\n")).collect();
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Finds the readers of the output, so that they are not traced. Returns a message about it, if any.
pub fn readers(target: &mut Target, places: &[i32]) -> Option<String> {
    let Target::All { left_out } = target else { return None };
    let found = engine::target::output_readers::of(places);
    *left_out = found.pids;
    if found.unknown {
        return Some(
            "the reader of this output is not known: what it does with each line is shown too (-o FILE avoids this)"
                .into(),
        );
    }
    let named = |pid: &i32| {
        let comm = sys::proc::comm(*pid).unwrap_or_default();
        format!("{pid} ({})", String::from_utf8_lossy(&comm))
    };
    let names: Vec<String> = left_out.iter().map(named).collect();
    (!names.is_empty())
        .then(|| format!("not shown, because they read this output: {} (-o FILE shows them)", names.join(", ")))
}

/// `--explain`: what was found when the probes were attached.
pub fn explain_attached(attached: &Attached) {
    let line =
        |name| format!("trapline: probe: {name}: the kernel refused the first way, so it is attached in the second\n");
    let mut text: String = attached.fell_back.iter().map(line).collect();
    if let Some(why) = attached.kernel_rings {
        text.push_str(&format!("trapline: events of calls go through the kernel's ring buffers: {why}\n"));
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// `--explain=programs`: the disassembly of everything that was loaded.
pub fn list_programs(attached: &Attached) {
    let mut text = String::new();
    for (place, program) in &attached.programs {
        text.push_str(&format!("trapline: program of {place}\n{program}\n"));
    }
    if text.is_empty() {
        text.push_str("trapline: programs: none, with this backend\n");
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}
