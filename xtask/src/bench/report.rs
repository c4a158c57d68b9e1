//! Tables of measurements in Markdown.

use super::measure::Samples;
use crate::lab::said;
use std::fmt::Write;
use std::fs;
use std::time::Duration;

/// Commands that were measured in turn: one that is not traced, then tracers of it.
pub struct Group {
    pub title: String,
    pub samples: Vec<Samples>,
    /// The last one's median may be so many times that of the one at this place.
    pub bar: Option<(usize, f64)>,
}

/// A single number and its bar.
#[derive(Clone)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    pub bar: Option<f64>,
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

impl Group {
    /// The table: each median also as a multiple of every earlier one.
    pub fn table(&self) -> String {
        let mut out = format!("### {}\n\n| | median | min | max | events |", self.title);
        let bases = &self.samples[..self.samples.len().saturating_sub(1)];
        for base in bases {
            let _ = write!(out, " x {} |", base.name);
        }
        let _ = writeln!(out, "\n|---|---:|---:|---:|---:|{}", "---:|".repeat(bases.len()));
        for (place, row) in self.samples.iter().enumerate() {
            let times = [row.median(), row.min(), row.max()].map(milliseconds).join(" | ");
            let _ = write!(out, "| {} | {times} | {} |", row.name, row.events);
            for (base_place, base) in bases.iter().enumerate() {
                let cell = if base_place < place { format!("{:.2}", row.ratio(base)) } else { String::new() };
                let _ = write!(out, " {cell} |");
            }
            out.push('\n');
        }
        if let (Some((base, limit)), Some(last)) = (self.bar, self.samples.last()) {
            let (base, ratio) = (&self.samples[base], last.ratio(&self.samples[base]));
            let _ = writeln!(
                out,
                "\nBar: {} at most {limit:.2} x {}: {ratio:.2}, {}.",
                last.name,
                base.name,
                verdict(ratio <= limit)
            );
        }
        out
    }
}

/// A table of single numbers.
pub fn figures(figures: &[Figure]) -> String {
    let mut out = "| | | bar | |\n|---|---:|---:|---|\n".to_string();
    for figure in figures {
        let Figure { name, value, unit, bar } = figure;
        let bar_cell = bar.map_or(String::new(), |bar| format!("{bar} {unit}"));
        let met = bar.map_or("", |bar| verdict(*value <= bar));
        let _ = writeln!(out, "| {name} | {value:.2} {unit} | {bar_cell} | {met} |");
    }
    out
}

/// What reaching a place `n` times has cost each time, beyond the first of the samples: one line.
pub fn nanoseconds(samples: &[Samples], n: u64) -> String {
    let [base, others @ ..] = samples else { return String::new() };
    let each = |s: &Samples| (s.median().as_secs_f64() - base.median().as_secs_f64()) * 1e9 / n as f64;
    let words: Vec<String> = others.iter().map(|s| format!("{} {:.0} ns", s.name, each(s))).collect();
    format!("Each time, beyond {}: {}.\n", base.name, words.join(", "))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// Where, with what and when the numbers were measured.
pub fn provenance() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let strace = said("sh", &["-c", "strace -V | head -n 1"]);
    format!(
        "{}, {cores} cores, Linux {}; {strace}; {}; trapline at commit {}; {}.",
        model.map_or("unknown CPU", |(_, model)| model),
        said("uname", &["-r"]),
        said("rustc", &["-V"]),
        said("git", &["describe", "--always", "--dirty"]),
        said("date", &["-u", "+%F %H:%M UTC"]),
    )
}

#[cfg(test)]
mod tests {
    use super::{Figure, Group, figures};
    use crate::bench::measure::Samples;
    use std::time::Duration;

    #[test]
    fn ratios_and_verdicts() {
        let samples = |name: &str, ms| Samples { name: name.into(), walls: vec![Duration::from_millis(ms)], events: 3 };
        let group =
            |bar| Group { title: "t".into(), samples: vec![samples("a", 10), samples("b", 15)], bar: Some((0, bar)) };
        assert!(group(1.6).table().contains("| b | 15.0 ms | 15.0 ms | 15.0 ms | 3 | 1.50 |"));
        assert!(group(1.6).table().ends_with("Bar: b at most 1.60 x a: 1.50, met.\n"));
        assert!(group(1.4).table().ends_with("1.50, **missed**.\n"));
        let size = [Figure { name: "size".into(), value: 7.0, unit: "MB", bar: Some(6.0) }];
        assert!(figures(&size).ends_with("| size | 7.00 MB | 6 MB | **missed** |\n"));
    }
}
