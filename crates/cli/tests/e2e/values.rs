//! `trapline graph --args`: arguments and results of programs in C, C++ and Rust, with and without optimisation.

use crate::lab::{self, User};
use serde_json::Value;

const OPTIMISED: [&str; 2] = ["-O0", "-O2"];

/// The lines of the tree of a program, without threads and indentation, and without a warning.
#[track_caller]
fn tree(program: &str, more: &[&str]) -> Vec<String> {
    let first = ["graph", "-q", "--args", "--as", "tree", "--no-time", "--on-full", "block"];
    let args = [&first[..], more, &["--", program]].concat();
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    assert_eq!(out.code(), 0, "{}", out.stderr);

    out.out().lines().filter_map(|l| Some(l.split_once("] | ")?.1.trim().to_string())).collect()
}

#[track_caller]
fn has(lines: &[String], wanted: &[&str], what: &str) {
    for want in wanted {
        assert!(lines.iter().any(|l| l == want), "{what}: no line {want}\n{}", lines.join("\n"));
    }
}

#[test]
fn values_of_c_are_exact_and_pointers_that_lead_nowhere_are_addresses() {
    for level in OPTIMISED {
        let Some(program) =
            testkit::compile("gcc", &format!("values-c{level}"), "values.c", &["-g", level, "-pthread"])
        else {
            return;
        };
        let lines = tree(&program, &[]);
        let exact = [
            "integers(a=-1, b=200, c=-300, d=4000000000, e=-5, f=true, g='g', h=18446744073709551615) = 5;",
            "floats(a=1.5, b=-2.25, c=3.5) = -0.75;",
            "wide(n=3) = 0.75;",
            r#"text(s="hello", t="a text that is longer than thirt"...) = "hello";"#,
            r#"text(s=NULL, t="") = NULL;"#,
            r#"text(s=0x10, t="edge"...) = 0x10;"#,
            "text(s=0xffff800000000000, t=0xffffffffffffffff) = 0xffff800000000000;",
            "colors(a=GREEN, b=BLUE) = GREEN;",
            "colors(a=77, b=RED) = 77;",
            r#"pointed(p={x=7, name="origin\n\33[0m", tag="tag"}, q=0x1234) = {x=7, name="origin\n\33[0m", tag="tag"};"#,
            "pointed(p=0x10, q=NULL) = 0x10;",
            "pointed(p=NULL, q=NULL) = NULL;",
            "by_value(p={d=0.5, n=9}, l={a=1, b=2, c=3}) = {d=1.5, n=10};",
            "large(n=4) = {a=4, b=5, c=6};",
            "huge(n=1267650600228229401496703205376) = -1267650600228229401496703205376;",
            "nothing();",
            "} = 0 /* main */",
        ];
        has(&lines, &exact, level);
        // A structure of which a part is not there is not shown in part.
        let half = lines.iter().any(|l| l.starts_with("pointed(p=0x") && l.contains("ff8, q=NULL) = 0x"));
        assert!(half, "{level}: {}", lines.join("\n"));
        // Whatever another thread writes meanwhile: this many characters, and nothing behind them.
        let changing: Vec<&String> = lines.iter().filter(|l| l.starts_with("changing(")).collect();
        let is_text = |l: &&String| {
            let text = l.strip_prefix("changing(s=\"").and_then(|l| l.strip_suffix("\") = 1;"));
            text.is_some_and(|t| t.len() == 24 && t.bytes().all(|b| b.is_ascii_lowercase()))
        };
        assert!(changing.len() == 200 && changing.iter().all(is_text), "{level}: {changing:?}");
    }
}

#[test]
fn values_of_cpp_are_exact() {
    for level in OPTIMISED {
        let Some(program) = testkit::compile("g++", &format!("values-cc{level}"), "values.cc", &["-g", level]) else {
            return;
        };
        let lines = tree(&program, &["-F", "shop::*"]);
        let exact = [
            r#"shop::Item::cost(this={price=12, name="pear"}, n=3) = 36;"#,
            "shop::grow(n=&40, by=&2) = &42;",
            r#"shop::length(s="short", copy="a string that does not fit into "...) = 5;"#,
            "shop::size(s=Large, b=false) = Large;",
            "shop::twice(n=1.25) = 2.5;",
            "shop::twice(n=9) = 18;",
        ];
        has(&lines, &exact, level);
    }
}

#[test]
fn values_of_rust_are_exact_or_left_out() {
    for level in ["-Copt-level=0", "-Copt-level=2"] {
        let flags = ["--edition=2021", "-g", level];
        let Some(program) = testkit::compile("rustc", &format!("values-rs{level}"), "values.rs", &flags) else {
            return;
        };
        let lines = tree(&program, &["-F", "values::*", "-D", "2"]);
        let starts = [
            "values::numbers(a=-1, b=4000000000, c=-5, d=true, e='x', f=1.5, g=7)",
            r#"values::texts(s="hello", t="world", empty="")"#,
            "values::moods(m=Wild, n=&77)",
            r#"values::pointed(p={x=-7, y=8, name="here"}, m={__0=2.5}, q="#,
        ];
        for start in starts {
            assert!(lines.iter().any(|l| l.starts_with(start)), "{level}: no {start}\n{}", lines.join("\n"));
        }
        // With calls inside, results are in the line of the end.
        for result in ["= -6", r#"= "ello""#, r#"= "own!""#, "= Wild"] {
            let has = |l: &String| l.contains(&format!("{result};")) || l.contains(&format!("{result} /*"));
            assert!(lines.iter().any(has), "{level}: no {result}\n{}", lines.join("\n"));
        }
        // An enumeration whose values have parts is not guessed at.
        let unknown =
            |l: &String| l.starts_with("values::unknown()") || l.starts_with("values::unknown(o=?, r=?, last=");
        assert!(lines.iter().any(unknown), "{level}: {}", lines.join("\n"));
    }
}

#[test]
fn json_has_values_and_another_reader_takes_the_trace() {
    let flags = ["-g", "-O0", "-pthread"];
    let Some(program) = testkit::compile("gcc", "values-json", "values.c", &flags) else { return };
    let dir = lab::scratch().join("trace");
    let dir = dir.to_str().expect("UTF-8");
    let out = lab::run(&mut lab::trapline(User::Me, &["graph", "-q", "--args", "-o", dir, "--", &program]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let out = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "--as", "calls-json", dir]));
    let calls: Vec<Value> = out.out().lines().map(|l| serde_json::from_str(l).expect(l)).collect();
    let of = |name: &str| calls.iter().find(|c| c["function"] == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(of("floats")["args"], serde_json::json!({"a": 1.5, "b": -2.25, "c": 3.5}));
    assert_eq!((&of("floats")["result"], &of("colors")["result"]), (&(-0.75).into(), &"GREEN".into()));
    let point = serde_json::json!({"x": 7, "name": "origin\n\u{1b}[0m", "tag": "tag"});
    assert_eq!((&of("pointed")["args"]["p"], &of("pointed")["args"]["q"]), (&point, &"0x1234".into()));
    assert_eq!(of("text")["args"]["t"]["truncated"], true);
    assert_eq!(of("huge")["result"], "-1267650600228229401496703205376");
    assert!(of("nothing").get("args").is_none() && of("nothing").get("result").is_none());
    // As events, too.
    let line = |json: &str| {
        let out = lab::run(&mut lab::trapline(User::Me, &["report", "-q", "-e", "function:floats", "--as", json, dir]));
        out.out().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let text: Vec<String> =
        line("text").iter().filter_map(|l| Some(l.split_once(' ')?.1.trim_start().into())).collect();
    assert_eq!(text[..2], ["function:floats:entry(a=1.5, b=-2.25, c=3.5)", "function:floats:exit() = -0.75"]);
    let events = line("json").into_iter().map(|l| serde_json::from_str::<Value>(&l).expect(&l));
    let events: Vec<Value> = events.filter(|e| e["type"] == "probe").collect();
    assert_eq!(events[0]["values"], serde_json::json!({"a": 1.5, "b": -2.25, "c": 3.5}));
    assert_eq!((&events[0]["args"]["values"], &events[1]["result"]), (&Value::Null, &(-0.75).into()));
    if !testkit::has("babeltrace2") {
        return testkit::skip("package", "no babeltrace2");
    }
    let read = lab::run(std::process::Command::new("babeltrace2").arg(dir));
    assert_eq!((read.code(), read.stderr.as_str()), (0, ""));
    let entries = read.out().lines().filter(|l| l.contains(" function:entry: ")).count();
    assert_eq!(entries, calls.iter().filter(|c| c["type"] == "call").count());
    assert!(read.out().contains("values_length = "));
}

#[test]
fn a_live_text_has_values_and_so_has_a_running_process() {
    let Some(program) = testkit::compile("gcc", "values-live", "values.c", &["-g", "-O1", "-pthread"]) else { return };
    let args = ["record", "-q", "-e", "function:floats", "--args", "--", &program];
    let out = lab::run(&mut lab::trapline(User::Me, &args));
    assert!(out.out().contains(" function:floats:entry(a=1.5, b=-2.25, c=3.5)\n"), "{}", out.out());
    assert!(out.out().contains(" function:floats:exit() = -0.75\n"), "{}", out.out());
    if !lab::may_attach(User::Me) {
        return;
    }
    let flags = ["-g", "-O1", "-fno-inline", "-pthread"];
    let Some(program) = testkit::compile("gcc", "values-attached", "attached_states.c", &flags) else { return };
    let run = lab::start(&mut lab::as_user(User::Me, &[&program, "busy", "100"]));
    let pid = run.pid().to_string();
    let attach = ["graph", "-q", "--args", "-F", "fib", "-p", &pid, "--duration", "0.1", "--as", "cat"];
    let out = lab::run(&mut lab::trapline(User::Me, &attach));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert!(out.out().contains("fib(n=2)") && out.out().contains("= 1"), "{}", out.out());
}

/// Builds a program of two parts whose debug information is in a package beside it, each type in a unit of its own; none where a tool is missing.
fn packaged(compiler: &str, version: &str, tool: &str) -> Option<String> {
    for needed in [compiler, tool] {
        if !testkit::has(needed) {
            testkit::skip("package", &format!("no {needed}"));
            return None;
        }
    }
    let dir = lab::scratch();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/shared_types.cc");
    let run = |command: &str, args: &[&str]| {
        let out = lab::run(std::process::Command::new(command).current_dir(&dir).args(args));
        assert_eq!(out.code(), 0, "{command} {args:?}: {}", out.stderr);
    };
    for part in ["0", "1"] {
        let (part, object) = (format!("-DPART={part}"), format!("{part}.o"));
        let flags =
            ["-O1", "-g", version, "-gsplit-dwarf", "-fdebug-types-section", "-c", &part, "-o", &object, source];
        run(compiler, &flags);
    }
    run(compiler, &["0.o", "1.o", "-o", "shapes"]);
    run(tool, &["-e", "shapes", "-o", "shapes.dwp"]);
    ["0.dwo", "1.dwo"].iter().for_each(|file| std::fs::remove_file(dir.join(file)).expect("a split file"));
    Some(dir.join("shapes").display().to_string())
}

#[test]
fn types_in_units_of_a_package_have_their_members_and_names() {
    for (compiler, version, tool) in [
        ("g++", "-gdwarf-4", "dwp"),
        ("g++", "-gdwarf-5", "llvm-dwp"),
        ("clang++", "-gdwarf-4", "dwp"),
        ("clang++", "-gdwarf-5", "llvm-dwp"),
    ] {
        let Some(program) = packaged(compiler, version, tool) else { continue };
        let of = format!("{compiler} {version}");
        let point = r#"p={x=1, y=2, name="hello", shade=dark}"#;
        let exact = [
            &format!(r#"first({point}, pair={{a=2, b=9}}, s="label") = {{a=3, b=5}};"#),
            &format!("second({point}, pair={{a=3, b=5}}) {{"),
            "wide(w={d=1.5, parts=?, either=?}, shade=dark) = 10;",
            r#"third(d={label="label"}, shade=light) {"#,
        ];
        has(&tree(&program, &[]), &exact, &of);
        // In the kernel.
        if !lab::kernel_backend_is_possible() {
            continue;
        }
        let probes = ["wide /args.shade == -3/", "second"].map(|f| format!("uprobe:{program}:{f}"));
        let args = ["record", "-q", "-e", &probes[0], "-e", &probes[1], "--", &program];
        let out = lab::run(&mut lab::trapline(User::Kernel, &args));
        let count = |text: &str| out.out().lines().filter(|l| l.contains(text)).count();
        assert_eq!((count(", shade=-3)"), count(":second(p=0x")), (3, 3), "{of}: {}{}", out.out(), out.stderr);
    }
}
