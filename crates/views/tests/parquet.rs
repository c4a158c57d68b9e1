//! Tables in Parquet's format: read by DuckDB and by pyarrow, and compared with what went in.

mod build;

use build::Call;
use events::Event;
use events::dynamic::{self, Field};
use events::functions;
use events::layout::CAP_NO_RESULT;
use events::names::{FdName, Frame, FunctionName, Names, Stack};
use events::types::{Fmt, Int, Type};
use expect_test::{expect, expect_file};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use views::View;
use views::parquet::schema::{ALL, VERSION};
use views::parquet::{About, Parquet};
use views::trace_stats::{Trace, TraceStats};

/// Knows process 7, functions 1 and 2, stack 1, and where descriptor 3 leads to.
struct Known;

impl Names for Known {
    fn fd(&self, _: u32, fd: i32) -> Option<&FdName> {
        static NAMES: std::sync::OnceLock<[FdName; 2]> = std::sync::OnceLock::new();
        let named = |path: &str, detail: &str| FdName { path: path.into(), detail: detail.into() };
        let names =
            NAMES.get_or_init(|| [named("/home/app", ""), named("socket:[4711]", "TCP:[127.0.0.1:4000->10.1.2.3:80]")]);
        match fd {
            events::names::AT_FDCWD => Some(&names[0]),
            3 => Some(&names[1]),
            _ => None,
        }
    }
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        (tid == 7).then_some(b"app")
    }
    fn ids(&self, tid: u32) -> (Option<u32>, Option<u32>) {
        (Some(1000).filter(|_| tid == 7), None)
    }
    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        let name = ["main", "parse"].get(number as usize - 1)?;
        Some(FunctionName { name, symbol: name, module: "/usr/bin/app", build_id: &[], address: 0, aliases: &[] })
    }
    fn stack(&self, id: u64) -> Option<Stack<'_>> {
        (id == 1).then_some(Stack { kernel: false, ended: 1, guessed: 0, frames: &[0x10, 0x20] })
    }
    fn frames(&self, _: u32, _: u64, _: &Stack<'_>, each: &mut dyn FnMut(&Frame<'_>)) {
        let frame = |function, line, address| Frame {
            function,
            module: "/usr/bin/app",
            file: "src/app.c",
            line,
            address: Some(address),
            ..Frame::default()
        };
        each(&Frame { inlined: true, ..frame("parse", 12, 0x1010) });
        each(&frame("main", 0, 0x1020));
    }
}

fn at(ms: u64) -> u64 {
    5_000_000_000 + ms * 1_000_000
}

fn probe(name: &str, fields: &[&str]) -> &'static events::Schema {
    let ty = |field: &str| {
        let fmt = if field == "ustack" { Fmt::Stack } else { Fmt::Dec };
        Type::Int(Int { size: 8, signed: false, fmt })
    };
    let fields: Vec<Field> = fields.iter().map(|f| Field { name: (*f).into(), ty: ty(f) }).collect();
    dynamic::class(name, &fields).expect("a class")
}

/// Of each table a few rows, with everything that a traced program could do to them.
fn usual() -> Vec<Call> {
    let call = |name: &str, from: u64, to: u64| Call::new(name).times(at(from), at(to)).who(7, 7);
    let process = |name: &str, time: u64| Call::process(name).times(at(time), at(time)).who(7, 7);
    let point = |schema, time: u64| Call::of(schema).times(at(time), at(time)).who(7, 7);
    let function = |schema, number: u64, time: u64| point(schema, time).arg("number", number);
    let malloc = probe("heap:malloc", &["address", "size", "ustack"]);
    let free = probe("heap:free", &["address", "ustack"]);
    vec![
        process("exec", 0).str("comm", b"app").arg("uid", 1000),
        call("execve", 0, 1).str("filename", b"/usr/bin/app").strv("argv", &[b"app", b"--all \"x\""]).ret(0),
        call("openat", 1, 2).arg("dfd", (-100i64) as u64).str("filename", b"data/\xc3\xa9").ret(3),
        call("openat", 2, 4).str("filename", b"/tmp/\xff\x1b[0m").ret(-2),
        call("write", 4, 5).arg("fd", 3).arg("count", 42).ret(42),
        call("renameat2", 5, 6).str("oldname", b"/a").str("newname", b"/b").ret(0),
        call("exit_group", 99, 100).arg("error_code", 1).flags(CAP_NO_RESULT),
        function(functions::entry(), 1, 10),
        function(functions::entry(), 2, 11),
        function(functions::exit(), 2, 13),
        point(probe("profile:hz:99", &["ustack"]), 15).arg("ustack", 1),
        point(probe("profile:hz:99", &["ustack"]), 16).arg("ustack", 1),
        point(malloc, 17).arg("address", 0x1000).arg("size", 4096).arg("ustack", 1),
        point(free, 18).arg("address", 0x1000),
        point(functions::lost(), 19).arg("records", 17),
        process("fork", 20).arg("child", 8).arg("tid", 8),
        Call::new("getppid").times(at(21), at(22)).who(8, 8).ret(7),
        process("signal", 23).arg("signo", 15).arg("pid", 1),
        process("exit", 24).arg("signo", 9),
    ]
}

/// What `each` table has, as bytes.
fn written(calls: impl IntoIterator<Item = Call>) -> Vec<(&'static str, Vec<u8>)> {
    let about =
        About { trace: "t1".into(), host: "web-1".into(), begin: at(0), realtime_offset: 1_700_000_000_000_000_123 };
    let stats = TraceStats::new(Trace { command: "app --all".into(), ended: true, ..Trace::default() });
    let (mut view, mut out) = (Parquet::new(about, stats), Vec::new());
    let mut tables: Vec<(&str, Vec<u8>)> = ALL.iter().map(|table| (table.name, Vec::new())).collect();
    let mut take = |view: &mut Parquet| {
        view.take(|name, bytes| {
            let table = tables.iter_mut().find(|table| table.0 == name);
            table.expect("a table of the schema").1.extend_from_slice(&bytes);
        });
    };
    for bytes in calls.into_iter().map(|call| call.encode()) {
        let ev = Event::parse(&bytes).expect("an event");
        view.see(&ev);
        view.event(&ev, &Known, &mut out);
        take(&mut view);
    }
    view.lost(17);
    view.end(&mut out);
    take(&mut view);
    assert!(out.is_empty());
    tables
}

/// The tables, as DuckDB and pyarrow read them; none without these.
#[track_caller]
fn read(tables: &[(&str, Vec<u8>)], name: &str) -> Option<Value> {
    let python = testkit::python("duckdb", "duckdb, pytz, pyarrow.parquet")?;
    let dir = testkit::dir().join(name);
    fs::create_dir(&dir).expect("a directory");
    for (name, bytes) in tables {
        fs::write(dir.join(format!("{name}.parquet")), bytes).expect("a file");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet/read.py");
    let said = Command::new(python).arg(script).arg(&dir).output().expect("python3");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Some(serde_json::from_slice(&said.stdout).expect("JSON"))
}

/// docs/PARQUET.md has all columns, with their types and what they mean.
#[test]
fn the_page_has_the_schema() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/PARQUET.md");
    let page = fs::read_to_string(page).expect("docs/PARQUET.md");
    assert!(page.contains(&format!("This is version {VERSION}.")), "the page is of another version");
    for table in ALL {
        let part = page.split("\n## ").find(|part| part.starts_with(&format!("`{}`", table.name)));
        let part = part.unwrap_or_else(|| panic!("docs/PARQUET.md has no table {}", table.name));
        assert!(part.replace('\n', " ").contains(table.about), "{}: the page lacks: {}", table.name, table.about);
        let rows: Vec<&str> = part.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(rows.len(), table.columns.len(), "{}: {rows:#?}", table.name);
        for (row, column) in rows.iter().zip(table.columns) {
            let null = if column.optional { ", NULL" } else { "" };
            assert_eq!(*row, format!("| `{}` | {}{null} | {} |", column.name, column.kind.name(), column.about));
        }
    }
}

/// The schema of a version does not change, but for columns behind the others.
#[test]
fn the_schema_is_that_of_its_version() {
    let mut text = String::new();
    for table in ALL {
        let columns = table.columns.iter();
        let columns = columns.map(|c| format!("{} {}{}", c.name, c.kind.name(), if c.optional { "?" } else { "" }));
        let _ = writeln!(text, "{}: {}", table.name, columns.collect::<Vec<_>>().join(", "));
    }
    expect_file![format!("golden/parquet.{VERSION}.txt")].assert_eq(&text);
}

#[test]
fn duckdb_and_pyarrow_read_every_table() {
    let Some(read) = read(&written(usual()), "usual") else { return };
    let mut text = String::new();
    for table in ALL {
        let found = &read[table.name];
        assert_eq!(found["about"], json!({ "trapline.schema": VERSION.to_string(), "trapline.trace": "t1" }));
        let _ = writeln!(text, "{}", table.name);
        for row in found["rows"].as_array().expect("rows") {
            let _ = writeln!(text, "  {row}");
        }
    }
    expect![[r#"
        calls
          ["2023-11-14 22:13:25+00:00",1700000005000000123,1000000,"t1","web-1","execve",7,7,"app","/usr/bin/app",1000,null,0,null,null,"/usr/bin/app",null,null,null,null,null,"{\"filename\":\"/usr/bin/app\",\"argv\":[\"app\",\"--all \\\"x\\\"\"],\"envp\":null}"]
          ["2023-11-14 22:13:25.001000+00:00",1700000005001000123,1000000,"t1","web-1","openat",7,7,"app","/usr/bin/app",1000,null,3,null,3,"/home/app/data/é",null,null,null,null,null,"{\"dfd\":\"AT_FDCWD\",\"filename\":\"data/é\",\"flags\":[\"O_RDONLY\"]}"]
          ["2023-11-14 22:13:25.002000+00:00",1700000005002000123,2000000,"t1","web-1","openat",7,7,"app","/usr/bin/app",1000,null,-1,"ENOENT",0,"/tmp/\\377\\33[0m",null,null,null,null,null,"{\"dfd\":0,\"filename\":{\"hex\":\"2f746d702fff1b5b306d\"},\"flags\":[\"O_RDONLY\"]}"]
          ["2023-11-14 22:13:25.004000+00:00",1700000005004000123,1000000,"t1","web-1","write",7,7,"app","/usr/bin/app",1000,null,42,null,3,"TCP:[127.0.0.1:4000->10.1.2.3:80]",null,42,"10.1.2.3",80,null,"{\"fd\":3,\"buf\":null,\"count\":42}"]
          ["2023-11-14 22:13:25.005000+00:00",1700000005005000123,1000000,"t1","web-1","renameat2",7,7,"app","/usr/bin/app",1000,null,0,null,0,"/a","/b",null,null,null,null,"{\"olddfd\":0,\"oldname\":\"/a\",\"newdfd\":0,\"newname\":\"/b\",\"flags\":[]}"]
          ["2023-11-14 22:13:25.099000+00:00",1700000005099000123,1000000,"t1","web-1","exit_group",7,7,"app","/usr/bin/app",1000,null,null,null,null,null,null,null,null,null,null,"{\"error_code\":1}"]
          ["2023-11-14 22:13:25.021000+00:00",1700000005021000123,1000000,"t1","web-1","getppid",8,8,null,"/usr/bin/app",null,null,7,null,null,null,null,null,null,null,null,"{}"]
        functions
          ["2023-11-14 22:13:25.011000+00:00",1700000005011000123,2000000,2000000,"t1","web-1","parse","/usr/bin/app",7,7,"app",1,"returned",false,true]
          ["2023-11-14 22:13:25.010000+00:00",1700000005010000123,14000000,12000000,"t1","web-1","main","/usr/bin/app",7,7,"app",0,"unfinished",true,true]
        samples
          ["2023-11-14 22:13:25.015000+00:00",1700000005015000123,"t1","web-1","profile:hz:99",7,7,"app","/usr/bin/app",1]
          ["2023-11-14 22:13:25.016000+00:00",1700000005016000123,"t1","web-1","profile:hz:99",7,7,"app","/usr/bin/app",1]
        allocations
          ["2023-11-14 22:13:25.017000+00:00",1700000005017000123,"t1","web-1","heap:malloc",7,7,"app","/usr/bin/app",4096,4096,1]
          ["2023-11-14 22:13:25.018000+00:00",1700000005018000123,"t1","web-1","heap:free",7,7,"app","/usr/bin/app",4096,null,1]
        events
          ["2023-11-14 22:13:25+00:00",1700000005000000123,null,"t1","web-1","process:exec",7,7,"app",null,null,null,null,"{\"comm\":\"app\",\"old_tid\":0,\"uid\":1000,\"gid\":0}"]
          ["2023-11-14 22:13:25.019000+00:00",1700000005019000123,null,"t1","web-1","functions:lost",7,7,"app","/usr/bin/app",null,null,null,"{\"records\":17}"]
          ["2023-11-14 22:13:25.020000+00:00",1700000005020000123,null,"t1","web-1","process:fork",7,7,"app","/usr/bin/app",null,null,null,"{\"child\":8,\"child_tid\":8,\"flags\":[]}"]
          ["2023-11-14 22:13:25.023000+00:00",1700000005023000123,null,"t1","web-1","process:signal",7,7,"app","/usr/bin/app",null,null,null,"{\"signal\":\"SIGTERM\",\"si_code\":\"SI_USER\",\"si_pid\":1,\"si_uid\":0}"]
          ["2023-11-14 22:13:25.024000+00:00",1700000005024000123,null,"t1","web-1","process:exit",7,7,"app","/usr/bin/app",null,null,null,"{\"signal\":\"SIGKILL\",\"core\":false}"]
        processes
          ["2023-11-14 22:13:25+00:00",1700000005000000123,1700000005100000123,"t1","web-1",7,null,"app","/usr/bin/app","[\"app\",\"--all \\\"x\\\"\"]","/home/app",1000,null,9]
          ["2023-11-14 22:13:25.020000+00:00",1700000005020000123,1700000005022000123,"t1","web-1",8,7,"app","/usr/bin/app","[\"app\",\"--all \\\"x\\\"\"]","/home/app",1000,null,null]
        stacks
          ["t1","web-1",1,0,"parse","/usr/bin/app","src/app.c",12,4112,false,true,false]
          ["t1","web-1",1,1,"main","/usr/bin/app","src/app.c",null,4128,false,false,false]
        traces
          ["2023-11-14 22:13:25+00:00",1700000005000000123,1700000005100000123,"t1","web-1",null,"app --all",null,null,null,true,19,17,null,null,0]
    "#]].assert_eq(&text);
}

/// More rows than a row group has, values of all lengths, and columns that have nothing for long.
#[test]
fn row_groups_end_and_begin() {
    let path = |n: u64| format!("/{}", "x".repeat((n % 40) as usize)).into_bytes();
    let calls = (0..80_000u64).map(|n| match n % 7 {
        0 => Call::new("openat").times(n * 1000, n * 1001).who(7, 7).str("filename", &path(n)).ret(-2),
        1 if n > 30_000 => Call::new("write").times(n * 1000, n * 1000).who(n as u32 % 9, 9).arg("fd", 3).ret(n as i64),
        _ => Call::new("getppid").times(n * 1000, n * 1000 + n % 100).who(n as u32, n as u32).ret((n as i64) << 20),
    });
    let Some(read) = read(&written(calls), "long") else { return };
    let calls = &read["calls"];
    assert_eq!((calls["groups"].as_u64(), calls["rows"].as_array().map(Vec::len)), (Some(2), Some(80_000)));
    let columns: Vec<&str> = calls["columns"].as_array().expect("columns").iter().filter_map(Value::as_str).collect();
    let nth = |name: &str| columns.iter().position(|c| *c == name).expect("a column");
    let [time, length, name, ret, bytes, path_at] = ["time_ns", "dur_ns", "name", "ret", "bytes", "path"].map(nth);
    for (n, row) in (0..).zip(calls["rows"].as_array().expect("rows")) {
        assert_eq!(row[time], json!(1_700_000_000_000_000_123i64 + n as i64 * 1000));
        match n % 7 {
            0 => {
                let path = String::from_utf8(path(n)).expect("UTF-8");
                assert_eq!([&row[name], &row[length], &row[ret]], [&json!("openat"), &json!(n), &json!(-1)]);
                assert_eq!([&row[bytes], &row[path_at]], [&Value::Null, &json!(path)]);
            }
            1 if n > 30_000 => assert_eq!([&row[name], &row[bytes]], [&json!("write"), &json!(n)]),
            _ => assert_eq!([&row[length], &row[ret]], [&json!(n % 100), &json!(n << 20)]),
        }
    }
}

/// A trace without events has all tables, and each can be read.
#[test]
fn an_empty_trace_has_all_tables() {
    let Some(read) = read(&written([]), "empty") else { return };
    let rows = ALL.map(|table| read[table.name]["rows"].as_array().map(Vec::len));
    assert_eq!(rows, [Some(0), Some(0), Some(0), Some(0), Some(0), Some(0), Some(0), Some(1)]);
}

/// A part is in a directory of its day and its host, whatever that is called.
#[test]
fn hosts_are_no_paths() {
    let place = |host: &str| {
        let begin = 86_400_000_000_000 * 20_421 - 1;
        About { host: host.into(), begin: 0, realtime_offset: begin, ..About::default() }.place()
    };
    assert_eq!(place("web-1.example.org"), "date=2025-11-28/host=web-1.example.org");
    assert_eq!(place("../../a b=ü\n"), "date=2025-11-28/host=..%2F..%2Fa%20b%3D%C3%BC%0A");
    assert_eq!(place(""), "date=2025-11-28/host=__HIVE_DEFAULT_PARTITION__");
}
