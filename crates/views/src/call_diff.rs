//! What has changed in the system calls from some runs to others: counts, times, errors, and the files that are named.
//!
//! ```text
//! calls change errors change   time   change call
//! ----- ------ ------ ------ ------ -------- ------
//!    40    +28      3     +3 9.10ms  +8.05ms openat
//! ```
//!
//! Of several runs, numbers are means; behind a time is its standard deviation. A change that is not beyond the spread of the runs is marked
//! `~`, and stands below those that are (`spread`).

use crate::View;
use crate::latency::By;
use crate::latency::subject::Subject;
use crate::spread::{Change, Spread, heading, number};
use crate::table::{Align, Table};
use crate::units::duration;
use crate::write::json as w;
use events::Event;
use events::layout::CAP_NO_RESULT;
use events::names::Names;
use events::stacks;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most paths that are remembered of a run, and bytes of them.
const MOST_PATHS: usize = 100_000;
const MOST_BYTES: usize = 16 << 20;

/// What is added up of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    calls: u64,
    errors: u64,
    time: u64,
}

/// What fails, how, and the file that it names, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Failure {
    call: String,
    error: String,
    file: String,
}

/// The calls of one run.
#[derive(Default)]
pub struct Counts {
    calls: BTreeMap<String, Sum>,
    errors: BTreeMap<Failure, u64>,
    paths: HashMap<Subject, u64>,
    bytes: usize,
    /// Paths did not fit.
    full: bool,
    lost: u64,
    /// Events that are no calls have stacks.
    pub has_stacks: bool,
}

impl Counts {
    /// Whether there is no call.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

impl Counts {
    /// Counts a failure, with the name of its file as far as there is room for those.
    fn failed(&mut self, mut failure: Failure, path: &Subject) {
        if is_file(path) {
            failure.file = path.name(By::Path, b"");
        }
        if let Some(n) = self.errors.get_mut(&failure) {
            *n += 1;
            return;
        }
        let bytes = failure.file.len();
        if self.errors.len() >= MOST_PATHS || self.bytes + bytes > MOST_BYTES {
            self.full = true;
            failure.file.clear();
        } else {
            self.bytes += bytes;
        }
        *self.errors.entry(failure).or_default() += 1;
    }
}

impl View for Counts {
    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, _: &mut Vec<u8>) {
        self.has_stacks |= stacks::may_have(ev.schema) && ev.schema.args.iter().any(stacks::is_stack);
        if !ev.is_syscall() || ev.caps() & CAP_NO_RESULT != 0 {
            return;
        }
        let name = Subject::of(ev, By::Call, names).name(By::Call, b"");
        let path = Subject::of(ev, By::Path, names);
        if let Some(errno) = ev.errno() {
            let error = events::errno::lookup(errno).map_or_else(|| errno.to_string(), |(name, _)| name.to_string());
            self.failed(Failure { call: name.clone(), error, file: String::new() }, &path);
        }
        let sum = self.calls.entry(name).or_default();
        sum.calls += 1;
        sum.errors += u64::from(ev.errno().is_some());
        sum.time = sum.time.saturating_add(ev.duration().unwrap_or(0));
        if is_file(&path) {
            if let Some(n) = self.paths.get_mut(&path) {
                *n += 1;
            } else if self.paths.len() < MOST_PATHS && self.bytes + path.heap() <= MOST_BYTES {
                self.bytes += path.heap();
                self.paths.insert(path, 1);
            } else {
                self.full = true;
            }
        }
    }

    fn lost(&mut self, events: u64) {
        self.lost = self.lost.saturating_add(events);
    }
}

/// Whether it is a file with a name, which may be the same in another run.
fn is_file(path: &Subject) -> bool {
    const NAMELESS: [&[u8]; 3] = [b"pipe:[", b"socket:[", b"anon_inode:"];
    matches!(path, Subject::Path(name) if !NAMELESS.iter().any(|n| name.starts_with(n)))
}

/// A row: calls, errors and time of a call.
struct Row {
    name: String,
    numbers: [Change; 3],
}

/// What rows are sorted by: the largest change of it comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Their time.
    #[default]
    Time,
    /// How many they are.
    Calls,
    /// How many have failed.
    Errors,
    /// By their names.
    Name,
}

impl Sort {
    /// The order that is called `name`.
    pub fn parse(name: &str) -> Option<Sort> {
        Some(match name {
            "time" | "total" => Sort::Time,
            "calls" => Sort::Calls,
            "errors" => Sort::Errors,
            "name" => Sort::Name,
            _ => return None,
        })
    }
}

/// Two sides, each of one or more runs.
#[derive(Clone, Copy)]
pub struct Diff<'a> {
    /// The runs that are compared with.
    pub before: &'a [Counts],
    /// The runs that are compared.
    pub after: &'a [Counts],
}

fn time(ns: f64) -> String {
    duration(ns as u64)
}

impl Diff<'_> {
    fn change(&self, of: impl Fn(&Counts) -> u64 + Copy) -> Change {
        Change { before: Spread::of(self.before.iter().map(of)), after: Spread::of(self.after.iter().map(of)) }
    }

    fn runs(&self) -> impl Iterator<Item = &Counts> {
        self.before.iter().chain(self.after)
    }

    /// The calls, those that are the same on both sides too.
    fn rows(&self, sort: Sort) -> Vec<Row> {
        let names: BTreeSet<&String> = self.runs().flat_map(|c| c.calls.keys()).collect();
        let row = |name: &String| {
            let sum = |c: &Counts| c.calls.get(name).copied().unwrap_or_default();
            let numbers = [self.change(|c| sum(c).calls), self.change(|c| sum(c).errors), self.change(|c| sum(c).time)];
            Row { name: name.clone(), numbers }
        };
        let mut rows: Vec<Row> = names.into_iter().map(row).collect();
        let by = match sort {
            Sort::Name => return rows,
            Sort::Calls => 0,
            Sort::Errors => 1,
            Sort::Time => 2,
        };
        rows.sort_by(|a, b| a.numbers[by].order(&b.numbers[by]));
        rows
    }

    fn errors(&self) -> Vec<(&Failure, Change)> {
        let kinds: BTreeSet<&Failure> = self.runs().flat_map(|c| c.errors.keys()).collect();
        let change = |kind| (kind, self.change(|c: &Counts| c.errors.get(kind).copied().unwrap_or(0)));
        let mut all: Vec<_> = kinds.into_iter().map(change).filter(|(_, change)| change.size() > 0.0).collect();
        all.sort_by(|a, b| a.1.order(&b.1));
        all
    }

    /// Paths that all runs of the one side name and none of the other, with the mean of their calls.
    fn only(&self, after: bool) -> Vec<(String, f64)> {
        let (these, others) = if after { (self.after, self.before) } else { (self.before, self.after) };
        let Some((first, rest)) = these.split_first() else { return Vec::new() };
        let in_all = |path: &Subject| rest.iter().all(|c| c.paths.contains_key(path));
        let in_none = |path: &Subject| others.iter().all(|c| !c.paths.contains_key(path));
        let mean = |path: &Subject| Spread::of(these.iter().map(|c| c.paths.get(path).copied().unwrap_or(0))).mean;
        let paths = first.paths.keys().filter(|path| in_all(path) && in_none(path));
        let mut all: Vec<(String, f64)> = paths.map(|path| (path.name(By::Path, b""), mean(path))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }

    /// Appends tables: what fails otherwise, the calls, and the files that only one side names; at most `most` rows of each.
    pub fn text(&self, sort: Sort, most: usize, out: &mut Vec<u8>) {
        if self.is_of_several() {
            out.extend_from_slice(heading(self.before.len(), self.after.len()).as_bytes());
        }
        self.failures(most, out);
        self.calls(sort, most, out);
        for (after, title) in [(true, "Only after"), (false, "Only before")] {
            self.files(after, title, most, out);
        }
        let lost: u64 = self.runs().map(|c| c.lost).sum();
        if lost > 0 {
            out.extend_from_slice(format!("\n{lost} events were lost, and are not counted\n").as_bytes());
        }
        if self.runs().any(|c| c.full) {
            out.extend_from_slice(b"\nA run has more files than fit into memory: some are not compared\n");
        }
    }

    fn is_of_several(&self) -> bool {
        self.before.len() > 1 || self.after.len() > 1
    }

    fn failures(&self, most: usize, out: &mut Vec<u8>) {
        let errors = self.errors();
        if errors.is_empty() {
            return;
        }
        out.extend_from_slice(b"What fails otherwise:\n\n");
        let columns = right(&["errors", "change"]);
        let mut table = Table::new(columns.chain(["call", "error", "file"].map(|name| (name, Align::Left))));
        for (Failure { call, error, file }, change) in errors.iter().take(most) {
            let numbers = [number(change.after.mean), change.signed(number)];
            table.row(numbers.into_iter().chain([call, error, file].map(Clone::clone)).collect());
        }
        table.write(out);
        more(errors.len(), most, out);
        out.push(b'\n');
    }

    fn calls(&self, sort: Sort, most: usize, out: &mut Vec<u8>) {
        let rows = self.rows(sort);
        let changed: Vec<&Row> = rows.iter().filter(|r| r.numbers.iter().any(|n| n.size() > 0.0)).collect();
        if changed.is_empty() {
            out.extend_from_slice(b"No call has changed.\n");
            return;
        }
        let columns = right(&["calls", "change", "errors", "change", "time", "change"]);
        let mut table = Table::new(columns.chain([("call", Align::Left)]));
        for r in changed.iter().take(most) {
            let [calls, errors, spent] = r.numbers;
            let deviation = || format!(" +-{}", time(spent.after.deviation));
            let range = self.is_of_several().then(deviation).unwrap_or_default();
            table.row(vec![
                number(calls.after.mean),
                calls.signed(number),
                number(errors.after.mean),
                errors.signed(number),
                format!("{}{range}", time(spent.after.mean)),
                spent.signed(time),
                r.name.clone(),
            ]);
        }
        table.write(out);
        more(changed.len(), most, out);
    }

    fn files(&self, after: bool, title: &str, most: usize, out: &mut Vec<u8>) {
        let paths = self.only(after);
        if paths.is_empty() {
            return;
        }
        out.extend_from_slice(format!("\n{title}, {}:\n\n", files(paths.len())).as_bytes());
        let mut table = Table::new([("calls", Align::Right), ("file", Align::Left)]);
        for (path, calls) in paths.iter().take(most) {
            table.row(vec![number(*calls), path.clone()]);
        }
        table.write(out);
        more(paths.len(), most, out);
    }

    /// Appends an object for each call, each kind of error that has changed, and each file that one side only names.
    pub fn json(&self, sort: Sort, out: &mut Vec<u8>) {
        let object = |kind: &str, names: &[(&str, &str)], numbers: &[(&str, Change)], out: &mut Vec<u8>| {
            out.push(b'{');
            for (key, value) in [("type", kind)].iter().chain(names) {
                w::key(out, key);
                w::string(out, value);
            }
            for (key, change) in numbers {
                w::key(out, key);
                w::value(out, &change.json());
            }
            out.extend_from_slice(b"}\n");
        };
        for r in self.rows(sort) {
            let [calls, errors, spent] = r.numbers;
            object("call", &[("call", &r.name)], &[("calls", calls), ("errors", errors), ("ns", spent)], out);
        }
        for (Failure { call, error, file }, change) in self.errors() {
            let path = (!file.is_empty()).then_some(("path", file.as_str()));
            let names: Vec<_> = [("call", call.as_str()), ("errno", error)].into_iter().chain(path).collect();
            object("error", &names, &[("calls", change)], out);
        }
        for (after, side) in [(true, "after"), (false, "before")] {
            for (path, calls) in self.only(after) {
                let (one, none) = (Spread::exactly(calls), Spread::exactly(0.0));
                let change =
                    if after { Change { before: none, after: one } } else { Change { before: one, after: none } };
                object("file", &[("path", &path), ("only", side)], &[("calls", change)], out);
            }
        }
    }
}

/// Columns of numbers.
fn right<const N: usize>(names: &[&'static str; N]) -> impl Iterator<Item = (&'static str, Align)> + use<N> {
    names.map(|name| (name, Align::Right)).into_iter()
}

fn files(n: usize) -> String {
    format!("{n} file{}", if n == 1 { "" } else { "s" })
}

fn more(n: usize, most: usize, out: &mut Vec<u8>) {
    if n > most {
        out.extend_from_slice(format!("{} more\n", n - most).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(calls: &[(&str, u64, u64, u64)], errors: &[(&str, &str, &str, u64)], paths: &[&str]) -> Counts {
        let failure =
            |call: &str, error: &str, file: &str| Failure { call: call.into(), error: error.into(), file: file.into() };
        Counts {
            calls: calls
                .iter()
                .map(|(n, calls, errors, time)| ((*n).into(), Sum { calls: *calls, errors: *errors, time: *time }))
                .collect(),
            errors: errors.iter().map(|(call, e, file, n)| (failure(call, e, file), *n)).collect(),
            paths: paths.iter().map(|p| (Subject::Path(p.as_bytes().into()), 2)).collect(),
            ..Counts::default()
        }
    }

    fn text(before: &[Counts], after: &[Counts]) -> String {
        let mut out = Vec::new();
        Diff { before, after }.text(Sort::Time, 10, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn one_run_against_another() {
        let a = run(&[("openat", 12, 0, 1_050_000), ("read", 5, 0, 9_000)], &[], &["/etc/a", "/etc/x"]);
        let b = run(
            &[("openat", 40, 3, 9_100_000), ("read", 5, 0, 9_000), ("close", 1, 0, 10)],
            &[("openat", "ENOENT", "/etc/c", 2), ("openat", "ENOENT", "", 1)],
            &["/etc/a", "/etc/b\x1b"],
        );
        let expect = expect_test::expect![[r#"
            What fails otherwise:

            errors change call   error  file
            ------ ------ ------ ------ ------
                 2     +2 openat ENOENT /etc/c
                 1     +1 openat ENOENT

            calls change errors change   time  change call
            ----- ------ ------ ------ ------ ------- ------
               40    +28      3     +3 9.10ms +8.05ms openat
                1     +1      0      0   10ns   +10ns close

            Only after, 1 file:

            calls file
            ----- ---------
                2 /etc/b\33

            Only before, 1 file:

            calls file
            ----- ------
                2 /etc/x
        "#]];
        expect.assert_eq(&text(&[a], &[b]));
    }

    #[test]
    fn several_runs_have_deviations_and_chance_is_marked() {
        let a = |time| run(&[("read", 10, 0, time), ("write", 4, 0, 1000)], &[], &["/same"]);
        let b = |time, calls| run(&[("read", 10, 0, time), ("write", calls, 0, 9000)], &[], &["/same"]);
        let expect = expect_test::expect![[r#"
            means of 3 and 3 runs; ~ where a change may be chance (Welch's t-test, 1 %)

            calls change errors change           time  change call
            ----- ------ ------ ------ -------------- ------- -----
              8.3   +4.3      0      0   9.00us +-0ns +8.00us write
               10      0      0      0 2.20us +-264ns ~+200ns read
        "#]];
        expect.assert_eq(&text(&[a(1000), a(3000), a(2000)], &[b(2000, 8), b(2500, 9), b(2100, 8)]));
    }

    #[test]
    fn nothing_has_changed() {
        let a = || run(&[("read", 1, 0, 5)], &[], &[]);
        assert_eq!(text(&[a()], &[a()]), "No call has changed.\n");
    }

    #[test]
    fn json_has_a_line_for_each() {
        let a = run(&[("read", 1, 0, 5)], &[], &["/a"]);
        let b = run(&[("read", 2, 1, 6)], &[("read", "EIO", "/b", 1)], &["/b"]);
        let mut out = Vec::new();
        Diff { before: &[a], after: &[b] }.json(Sort::Name, &mut out);
        let lines: Vec<serde_json::Value> =
            String::from_utf8_lossy(&out).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        let types: Vec<&str> = lines.iter().filter_map(|l| l["type"].as_str()).collect();
        assert_eq!(types, ["call", "error", "file", "file"]);
        assert_eq!(lines[1]["path"], "/b");
        assert_eq!((&lines[0]["calls"]["after"]["mean"], &lines[2]["only"]), (&2.0.into(), &"after".into()));
    }
}
