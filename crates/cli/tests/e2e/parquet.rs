//! Tables: `report --as parquet=DIR`, and the questions of docs/QUERIES.md, whose answers are those of other reports.

use crate::lab::{self, User};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const QUIET: [&str; 2] = ["report", "-q"];

fn report(words: &[&str], dir: &Path) -> lab::Outcome {
    lab::run(lab::trapline(User::Me, &[&QUIET[..], words].concat()).current_dir(dir))
}

fn shown(words: &[&str], dir: &Path) -> Value {
    let out = report(words, dir);
    assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
    serde_json::from_str(&out.out()).unwrap_or_else(|e| panic!("{words:?}: {e}"))
}

fn record(words: &[&str], dir: &Path) {
    let out = lab::run(lab::trapline(User::Me, &[&["record", "-q"], words].concat()).current_dir(dir));
    assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
}

/// The parts in a directory of tables.
fn parts(tables: &Path) -> BTreeSet<PathBuf> {
    let all = lab::contents(tables).into_keys();
    all.filter(|path| path.to_string_lossy().ends_with(".parquet")).collect()
}

/// What the questions of the page find in DuckDB, each by its title; and in the other engines, which find the same.
fn answers(dir: &Path) -> Option<BTreeMap<String, Vec<Value>>> {
    let here = env!("CARGO_MANIFEST_DIR");
    let found_by = |engine: &str, modules: &str| {
        let python = testkit::python(engine, &format!("duckdb, pytz, {modules}"))?;
        let words = [format!("{here}/tests/e2e/queries.py"), format!("{here}/../../docs/QUERIES.md")];
        let out = lab::run(std::process::Command::new(python).args(words).arg(engine).current_dir(dir));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        Some(out.stdout)
    };
    let found = found_by("duckdb", "duckdb")?;
    found_by("datafusion", "datafusion");
    found_by("clickhouse", "chdb.session");
    Some(serde_json::from_slice(&found).expect("JSON"))
}

/// The sum of a member of rows that have these values.
fn sum(rows: &[Value], with: &[(&str, &Value)], member: &str) -> i64 {
    let rows = rows.iter().filter(|row| with.iter().all(|(name, value)| row[*name] == **value));
    rows.filter_map(|row| row[member].as_i64()).sum()
}

fn list<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value[member].as_array().unwrap_or_else(|| panic!("no list {member}"))
}

/// Adds up rows of several reports by a member.
fn by(reports: &[Value], key: &str, members: &[&str]) -> BTreeMap<String, Vec<i64>> {
    let mut all: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for row in reports.iter().flat_map(|report| list(report, "rows")).filter(|row| !row[key].is_null()) {
        let sums = all.entry(row[key].as_str().expect("a name").into()).or_insert_with(|| vec![0; members.len()]);
        sums.iter_mut().zip(members).for_each(|(sum, member)| *sum += row[*member].as_i64().unwrap_or(0));
    }
    all
}

/// The questions of the page are about two runs of a program, and each has an answer.
#[test]
fn questions_are_answered_as_other_reports_do() {
    if lab::bpf_refused().is_some() {
        return testkit::skip("root", "no kernel backend");
    }
    let Some(program) = testkit::compile("gcc", "queries", "queries.c", &["-O1", "-g"]) else { return };
    let dir = lab::scratch();
    for (build, argument) in [("1", None), ("2", Some("slow"))] {
        let trace = format!("t{build}");
        let probes = ["syscall:* ustack", "function:*", "heap:* ustack", "profile:hz:999 ustack"];
        let mut words = vec!["-o", &trace];
        probes.iter().for_each(|probe| words.extend(["-e", probe]));
        words.extend(["--", &program]);
        words.extend(argument);
        record(&words, &dir);
        let out = report(&[&trace, "--as", &format!("parquet=tables/build={build}")], &dir);
        assert_eq!((out.code(), out.out()), (0, String::new()), "{}", out.stderr);
    }
    let Some(found) = answers(&dir) else { return };
    assert_eq!(found.len(), 25, "questions: {:?}", found.keys());
    for (title, rows) in &found {
        assert!(!rows.is_empty(), "{title}: no answer");
    }
    let of = |title: &str| found.get(title).unwrap_or_else(|| panic!("no question: {title}")).as_slice();
    let both = |words: &[&str]| ["t1", "t2"].map(|trace| shown(&[&[trace], words].concat(), &dir));

    // Sums are exact, and so are errors.
    let members = ["calls", "errors", "total_ns"];
    let calls = of("How long does which call take?");
    let expected = by(&both(&["-e", "syscall:*", "--latency", "--as", "json"]), "name", &members);
    assert_eq!(calls.len(), expected.len());
    for (name, sums) in &expected {
        let of_name = [("name", &json!(name))];
        assert_eq!(&members.map(|member| sum(calls, &of_name, member))[..], sums, "{name}");
    }
    let files = of("How long do calls take with which file?");
    for (path, sums) in by(&both(&["-e", "syscall:*", "--latency=path", "--as", "json"]), "path", &members) {
        assert_eq!(members.map(|member| sum(files, &[("path", &json!(path))], member))[..], sums, "{path}");
    }

    // What the program does is known.
    let has = |title: &str, members: &[(&str, Value)], n: usize| {
        let is = |row: &&Value| members.iter().all(|(name, value)| row[*name] == *value);
        assert_eq!(of(title).iter().filter(is).count(), n, "{title}: {:#?}", of(title));
    };
    has("Which files are looked for and missing?", &[("path", json!("/nowhere/settings")), ("calls", json!(14))], 1);
    // The 20 of each run are in one second, or in two.
    let storms = of("Who has caused a storm of fsync?");
    let of_runs: BTreeSet<Option<i64>> = storms.iter().map(|row| row["pid"].as_i64()).collect();
    assert_eq!(of_runs.len(), 2, "{storms:#?}");
    assert!(storms.iter().all(|row| row["syncs"].as_i64().is_some_and(|n| (10..=20).contains(&n))), "{storms:#?}");
    has("Which files are opened again and again?", &[("opens", json!(25))], 2);
    has("Which files are written in small pieces?", &[("bytes_per_write", json!(5.0)), ("writes", json!(40))], 1);
    has("Which files were replaced by renaming?", &[("times", json!(2))], 1);
    let refused = [("port", json!(1)), ("errors", json!(2)), ("errno", json!("ECONNREFUSED"))];
    has("Which connections fail, and how long do they take?", &refused, 1);
    has("Which processes have failed?", &[("exit_code", json!(3))], 2);
    has("Which processes have failed?", &[("exit_signal", json!(15))], 2);
    has("Who makes a call?", &[("function", json!("save")), ("calls", json!(40))], 1);
    let kept = [("function", json!("grow")), ("blocks", json!(20)), ("bytes", json!(20_000))];
    has("Which memory was not freed?", &kept, 1);
    has("Which traces are incomplete?", &[("complete", json!(true)), ("lost", json!(0))], 2);
    let slower = of("What has become slower from one build to the next?")[0].clone();
    assert_eq!((&slower["name"], slower["ratio"].as_f64().is_some_and(|r| r > 1.0)), (&json!("clock_nanosleep"), true));

    // Bytes, processes, functions, samples and memory are those of other reports.
    let moved = of("How much does which process read and write?");
    let processes = ["t1", "t2"].map(|trace| report(&[trace, "--as", "processes-json"], &dir).out()).concat();
    let processes: Vec<Value> = processes.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(of("Who has started whom?").len(), processes.len());
    for process in &processes {
        let pid = [("pid", &process["pid"])];
        assert_eq!(Some(sum(moved, &pid, "read_bytes")), process["read_bytes"].as_i64(), "{process}");
        assert_eq!(Some(sum(moved, &pid, "written_bytes")), process["written_bytes"].as_i64(), "{process}");
    }
    let functions = of("Which functions take the time?");
    let lines = |view: &str| ["t1", "t2"].map(|trace| report(&[trace, "--as", view], &dir).out()).concat();
    let mut by_name: BTreeMap<String, [i64; 3]> = BTreeMap::new();
    for line in lines("functions-json").lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let sums = by_name.entry(row["function"].as_str().expect("a name").into()).or_default();
        for (sum, member) in sums.iter_mut().zip(["calls", "total_ns", "self_ns"]) {
            *sum += row[member].as_i64().expect("a number");
        }
    }
    assert_eq!(functions.len(), by_name.len());
    for (name, sums) in by_name {
        let of_name = [("name", &json!(name))];
        assert_eq!(["calls", "total_ns", "self_ns"].map(|member| sum(functions, &of_name, member)), sums, "{name}");
    }
    let heaps = both(&["--as", "heap-json"]);
    let expected = |of: &str, member: &str| heaps.iter().filter_map(|heap| heap[of][member].as_i64()).sum::<i64>();
    for (title, of_heap) in
        [("Which stacks have allocated the most?", "total"), ("Which memory was not freed?", "outstanding")]
    {
        for member in ["blocks", "bytes"] {
            assert_eq!(sum(of(title), &[], member), expected(of_heap, member), "{title} {member}: {:#?}", of(title));
        }
    }
    let samples =
        ["t1", "t2"].map(|trace| report(&[trace, "-e", "profile:hz:999", "--as", "folded"], &dir).out()).concat();
    let in_work =
        samples.lines().filter_map(|line| line.rsplit_once(' ')).filter(|(stack, _)| stack.ends_with(";work"));
    let in_work: i64 = in_work.filter_map(|(_, n)| n.parse::<i64>().ok()).sum();
    assert!(in_work > 0);
    has("Where are the samples?", &[("function", json!("work")), ("samples", json!(in_work))], 1);
}

/// Another engine reads them too, and finds what `--latency` does.
#[test]
fn datafusion_adds_up_the_same() {
    let Some(python) = testkit::python("datafusion", "datafusion") else { return };
    lab::each_user(|user| {
        let dir = lab::scratch();
        let out = lab::run(
            lab::trapline(user, &["record", "-q", "-o", "t", "--", "sh", "-c", "ls -l / /none"]).current_dir(&dir),
        );
        assert_eq!(out.code(), 2, "{}", out.stderr);
        let run = |words: &[&str]| {
            let out = lab::run(lab::trapline(user, &[&QUIET[..], &["t"], words].concat()).current_dir(&dir));
            assert_eq!(out.code(), 0, "{}", out.stderr);
            out.out()
        };
        run(&["--as", "parquet=tables"]);
        let query = "import datafusion, json\n\
            context = datafusion.SessionContext()\n\
            context.register_parquet('calls', 'tables/calls')\n\
            rows = context.sql('select name, count(*) calls, count(errno) errors, sum(dur_ns) total_ns from calls ' +\n\
                'where ret is not null group by name').to_pylist()\n\
            print(json.dumps({'rows': rows}))\n";
        let out = lab::run(std::process::Command::new(&python).args(["-c", query]).current_dir(&dir));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let members = ["calls", "errors", "total_ns"];
        let read = |text: &str| by(&[serde_json::from_str(text).expect("JSON")], "name", &members);
        assert_eq!(read(&out.out()), read(&run(&["-e", "syscall:*", "--latency", "--as", "json"])));
    });
}

/// A quantile is that of `--latency`.
#[test]
fn quantiles_are_those_of_latency() {
    let Some(python) = testkit::python("duckdb", "duckdb, pytz") else { return };
    lab::each_user(|user| {
        let dir = lab::scratch();
        let run = |words: &[&str]| {
            let out = lab::run(lab::trapline(user, words).current_dir(&dir));
            assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
            out.out()
        };
        run(&["record", "-q", "-o", "t", "--", "ls", "-l", "/usr/bin"]);
        run(&["report", "-q", "t", "--as", "parquet=tables"]);
        let query = "import duckdb, json\n\
            rows = duckdb.execute(\"select name, quantile_disc(dur_ns, 0.5), quantile_disc(dur_ns, 0.99) \" +\n\
                \"from 'tables/calls/*/*/*.parquet' where ret is not null group by name\").fetchall()\n\
            print(json.dumps({row[0]: row[1:] for row in rows}))\n";
        let out = lab::run(std::process::Command::new(&python).args(["-c", query]).current_dir(&dir));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let found: BTreeMap<String, [i64; 2]> = serde_json::from_slice(&out.stdout).expect("JSON");
        let report: Value =
            serde_json::from_str(&run(&["report", "-q", "t", "-e", "syscall:*", "--latency", "--as", "json"]))
                .expect("JSON");
        assert_eq!(list(&report, "rows").len(), found.len());
        for row in list(&report, "rows") {
            let exact = found[row["name"].as_str().expect("a name")];
            for (exact, member) in exact.into_iter().zip(["p50_ns", "p99_ns"]) {
                assert_eq!(row[member], exact, "{row}");
            }
        }
    });
}

/// Traces of many runs are in one directory, each once.
#[test]
fn traces_are_added_and_nothing_else_is_touched() {
    lab::each_user(|user| {
        let dir = lab::scratch();
        let run = |words: &[&str]| lab::run(lab::trapline(user, words).current_dir(&dir));
        let write = |words: &[&str]| run(&[&["report", "-q"], words].concat());
        for trace in ["t1", "t2"] {
            let out = run(&["record", "-q", "-o", trace, "--", "cat", "/dev/null"]);
            assert_eq!(out.code(), 0, "{}", out.stderr);
        }
        let tables = dir.join("tables");
        let out = write(&["t1", "--as", "parquet=tables"]);
        assert_eq!((out.code(), &*out.out(), &*out.stderr), (0, "", ""));
        let first = parts(&tables);
        assert_eq!(first.len(), 8, "{first:?}");
        let out = write(&["t1", "--as", "parquet=tables"]);
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert!(out.stderr.contains(": the trace is there already (remove this part "), "{}", out.stderr);
        assert_eq!(parts(&tables), first);

        // One place cannot be written to: then none is. What an earlier report has left is removed.
        let samples = tables.join("samples");
        fs::rename(&samples, tables.join("kept")).and_then(|()| fs::write(&samples, "")).expect("a file");
        let out = write(&["t2", "--as", "parquet=tables"]);
        assert_eq!((out.code(), out.stderr.lines().count()), (125, 1), "{}", out.stderr);
        assert_eq!(parts(&tables).len(), 8);
        let hidden = |name: &str| name.starts_with(".part-");
        let names = || lab::contents(&tables).into_keys().map(|path| path.to_string_lossy().into_owned());
        assert!(!names().any(|name| name.split('/').any(hidden)), "{:?}", names().collect::<Vec<_>>());
        fs::remove_file(&samples).and_then(|()| fs::rename(tables.join("kept"), &samples)).expect("as before");
        let out = write(&["t2", "--as", "parquet=tables", "--as", "stats=stats.txt"]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        assert_eq!(parts(&tables).len(), 16);

        // Nothing that is not of trapline, or of another version.
        fs::create_dir(dir.join("other")).and_then(|()| fs::write(dir.join("other/file"), "")).expect("a file");
        fs::write(tables.join("trapline.json"), "{\"parquet\":1000}").expect("a version");
        for (to, why) in [
            (
                "parquet=other",
                "other: it is not empty, and has no tables of trapline (name a new or an empty directory)",
            ),
            (
                "parquet=tables",
                "tables: its tables have version 1000, and these have version 1 (name a new or an empty directory)",
            ),
        ] {
            let out = write(&["t1", "--as", to]);
            assert_eq!((out.code(), out.stderr), (125, format!("trapline: {why}\n")));
        }
        let out = write(&["t1", "--as", "parquet"]);
        let said = "trapline: --as parquet: it is a directory of files (--as parquet=DIR)\n";
        assert_eq!((out.code(), &*out.stderr), (2, said));
    });
}

/// What is selected is in the tables, with the names of the programs of all processes.
#[test]
fn selections_are_of_rows() {
    let Some(python) = testkit::python("duckdb", "duckdb, pytz") else { return };
    lab::each_user(|user| {
        let dir = lab::scratch();
        let run = |words: &[&str]| {
            let out = lab::run(lab::trapline(user, words).current_dir(&dir));
            assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
        };
        run(&["record", "-q", "-o", "t", "--", "sh", "-c", "cat /etc/hostname >/dev/null; cat /dev/null"]);
        run(&["report", "-q", "t", "-e", "openat", "--where", "retval >= 0", "--as", "parquet=tables"]);
        let query = "import duckdb, json\n\
            ask = lambda q: [list(row) for row in duckdb.execute(q).fetchall()]\n\
            print(json.dumps([\n\
                ask(\"select distinct name from 'tables/calls/*/*/*.parquet'\"),\n\
                ask(\"select count(*) from 'tables/calls/*/*/*.parquet' where errno is not null\"),\n\
                ask(\"select exe, argv from 'tables/processes/*/*/*.parquet' where comm = 'cat' order by time\"),\n\
                ask(\"select distinct regexp_extract(exe, '[a-z]*$') from 'tables/calls/*/*/*.parquet' order by 1\"),\n\
                ask(\"select distinct host from 'tables/*/*/*/*.parquet'\")]))\n";
        let out = lab::run(std::process::Command::new(&python).args(["-c", query]).current_dir(&dir));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let found: Value = serde_json::from_str(&out.out()).expect("JSON");
        assert_eq!((&found[0], &found[1]), (&json!([["openat"]]), &json!([[0]])));
        let cat = |row: &Value| row[0].as_str().is_some_and(|exe| exe.ends_with("/cat"));
        let processes = found[2].as_array().expect("rows");
        assert!(processes.iter().all(cat), "{processes:?}");
        let argv: Vec<&Value> = processes.iter().map(|row| &row[1]).collect();
        assert_eq!(argv, ["[\"cat\",\"/etc/hostname\"]", "[\"cat\",\"/dev/null\"]"]);
        assert_eq!(found[3], json!([["cat"], ["sh"]]));
        assert_eq!(found[4].as_array().map(Vec::len), Some(1));
    });
}
