//! Why a recording by the agent has nothing, and what to do.

use engine::plan::Plan;
use engine::stats::Report;
use engine::target::Target;

/// Lines about the agent's part of a request, where it has recorded nothing at all.
pub fn lines(plan: &Plan, report: &Report) -> Vec<String> {
    let attached = matches!(plan.target, Target::Pids(_));
    let calls = plan.functions.as_ref().filter(|f| !f.none).map(|_| calls(plan, report));
    let heap = plan.heap().filter(|h| !h.only_stacks).map(|h| allocations(attached, h.sample > 0));
    calls.into_iter().chain(heap).collect()
}

/// Why no call of a function was recorded.
pub fn calls(plan: &Plan, report: &Report) -> String {
    if report.traced == 0 && !report.trouble.is_empty() {
        // Why, it says there.
        return "no call of a function was recorded: no process was traced".to_string();
    }
    if report.losses.total > 0 {
        return format!("no call of a function was recorded: {} events were dropped", report.losses.total);
    }
    let patched: usize = report.planned.iter().map(|file| file.patched).sum();
    let minimum = plan.functions.as_ref().and_then(|f| f.minimum);
    let why = match (patched, matches!(plan.target, Target::Pids(_))) {
        (0, _) => "no function could be patched".to_string(),
        (n, _) if minimum.is_some() => {
            format!("functions patched: {n}, entered: none that has taken as long as -t says")
        }
        (n, true) => {
            format!("functions patched: {n}, entered: none; what runs already is seen when it is called again")
        }
        (n, false) => format!("functions patched: {n}, entered: none"),
    };
    let todo = "--lib shows the functions of libraries, debug symbols those of a stripped program, --explain which are left out";
    format!("no call of a function was recorded: {why} ({todo})")
}

/// Why no allocation was recorded.
pub fn allocations(attached: bool, sampled: bool) -> String {
    let (why, todo) = match (sampled, attached) {
        (true, _) => ("too few bytes for a sample were allocated", "leave --sample out, or give a smaller one"),
        (_, true) => ("none was made while trapline was attached", "wait longer, or start the program under trapline"),
        _ => (
            "the program made none that can be seen",
            "docs/HEAP.md lists the allocators, 'trapline trace -e memory' shows its system calls",
        ),
    };
    format!("no allocation was recorded: {why} ({todo})")
}
