//! Numbers the threads of a trace by their creation, so that a thread of one run finds its counterpart in another run,
//! where all pids differ: the first is `0`, its second child `0.2`.

use super::parse::Entry;
use std::collections::{HashMap, HashSet};

const CREATE: [&str; 4] = ["clone", "clone3", "fork", "vfork"];

/// The number of each thread.
pub fn number(entries: &[Entry]) -> HashMap<u32, String> {
    let children = children(entries);
    let created: HashSet<u32> = children.values().flatten().copied().collect();
    let mut numbers = HashMap::new();
    let mut roots = 0;
    for entry in entries {
        // A thread whose creation is not in the trace (a call was lost, or we attached) is numbered by its appearance.
        let root = roots == 0 || !created.contains(&entry.pid);
        if root && !numbers.contains_key(&entry.pid) {
            let number = if roots == 0 { "0".to_string() } else { format!("?{roots}") };
            roots += 1;
            descend(entry.pid, number, &children, &mut numbers);
        }
    }
    numbers
}

/// The children of each thread, in the order of their creation.
fn children(entries: &[Entry]) -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in entries.iter().filter(|entry| CREATE.contains(&entry.name.as_str())) {
        if let Ok(child) = entry.result.parse() {
            children.entry(entry.pid).or_default().push(child);
        }
    }
    children
}

fn descend(pid: u32, number: String, children: &HashMap<u32, Vec<u32>>, numbers: &mut HashMap<u32, String>) {
    // A pid that was used twice keeps its first number, which also ends a circle.
    if numbers.contains_key(&pid) {
        return;
    }
    for (index, &child) in children.get(&pid).into_iter().flatten().enumerate() {
        numbers.entry(pid).or_insert_with(|| number.clone());
        descend(child, format!("{number}.{}", index + 1), children, numbers);
    }
    numbers.entry(pid).or_insert(number);
}

#[cfg(test)]
mod tests {
    use super::number;
    use crate::compare::parse::parse;

    #[test]
    fn by_creation_whatever_appears_first() {
        let trace = "10 brk(NULL) = 0x1\n12 brk(NULL) = 0x1\n11 fork() = 13\n10 fork() = 11\n10 vfork() = 12\n13 a() = 0\n99 a() = 0\n";
        let numbers = number(&parse(trace).entries);
        let of = |pid| numbers.get(&pid).map(String::as_str);
        assert_eq!([10, 11, 12, 13, 99].map(of), [Some("0"), Some("0.1"), Some("0.2"), Some("0.1.1"), Some("?1")]);
    }
}
