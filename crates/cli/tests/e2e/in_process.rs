//! Probes in files that the agent reaches in the process: what it records is what the kernel records, and the program notices nothing.

use crate::kernel::possible;
use crate::lab::{self, Outcome, User};
use crate::probes::{Recorded, options, read};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// `tests/programs/in_process.cc`, in a file of its own: probes of the kernel put breakpoints into all processes that have it.
fn program(name: &str, compiler: &str, flags: &[&str]) -> Option<String> {
    testkit::compile(compiler, &format!("in_process_{name}"), "in_process.cc", &[&["-g", "-pthread"], flags].concat())
}

/// Requests for all probes of the program.
fn all(program: &str) -> Vec<String> {
    let functions = ["many", "recursive", "named"].into_iter().flat_map(|f| ["uprobe", "uretprobe"].map(|p| (p, f)));
    let probes = functions.chain([("usdt", "in_process:*"), ("uprobe", "throws")]);
    probes.flat_map(|(provider, rest)| ["-e".into(), format!("{provider}:{program}:{rest}")]).collect()
}

/// Records them.
#[track_caller]
fn recorded(user: User, with: &[&str], program: &str, arguments: &[&str]) -> Recorded {
    let requests = all(program);
    let with: Vec<&str> = with.iter().copied().chain(requests.iter().map(String::as_str)).collect();
    let (words, dir, stats) = options(&with, &[&[program], arguments].concat());
    let out = lab::run(&mut lab::trapline(user, &words));
    assert_eq!(out.code(), 0, "{words:?}: {}", out.stderr);
    read(dir, stats, out)
}

/// Names and arguments of the events of probes, without addresses, which differ from run to run.
fn seen(of: &Recorded) -> Vec<String> {
    let is_probe = |e: &&Value| e["type"] == "probe";
    let shown = |e: &Value| {
        let mut args = e["args"].clone();
        args.as_object_mut().expect("an object").remove("arg7");
        format!("{} {args}", e["name"].as_str().expect("a name"))
    };
    of.events.iter().filter(is_probe).map(shown).collect()
}

fn untraced(program: &str, arguments: &[&str]) -> Outcome {
    lab::run(&mut lab::as_user(User::Me, &[&[program], arguments].concat()))
}

/// In a build, the agent records what the kernel does, and each static probe has a place where it is reached.
#[track_caller]
fn records_what_the_kernel_does(name: &str, compiler: &str, flags: &[&str]) {
    let (true, Some(program)) = (possible(), program(name, compiler, flags)) else { return };
    let own = untraced(&program, &["7"]).out();
    let in_process = recorded(User::Me, &["--backend", "agent"], &program, &["7"]);
    let of_kernel = recorded(User::Me, &["--force"], &program, &["7"]);
    let guarded = own.replace("guarded 0 counter 0", "guarded 1 counter 1");
    assert_eq!((in_process.out.out(), of_kernel.out.out()), (guarded.clone(), guarded), "{name}");
    assert_eq!(in_process.out.stderr.lines().count(), 1, "{name}: {}", in_process.out.stderr);
    let (found, right) = (seen(&in_process), seen(&of_kernel));
    assert_eq!(found.len(), right.len(), "{name}");
    found.iter().zip(&right).for_each(|(found, right)| assert_eq!(found, right, "{name}"));
    assert!(right.iter().any(|e| e.contains("in_process:kinds")) && right.len() > 7 * 10, "{name}: {right:?}");
}

#[test]
fn the_agent_records_what_the_kernel_does() {
    records_what_the_kernel_does("o1", "g++", &["-O1"]);
    records_what_the_kernel_does("o0", "g++", &["-O0"]);
    records_what_the_kernel_does("os", "g++", &["-Os"]);
    records_what_the_kernel_does("o3_lto", "g++", &["-O3", "-flto", "-static-libgcc", "-static-libstdc++"]);
    if testkit::has("clang++") {
        records_what_the_kernel_does("clang", "clang++", &["-O2"]);
    }
}

#[test]
fn an_ordinary_user_sees_the_same_of_a_command_and_of_a_process() {
    if !lab::is_root() || !lab::may_attach(User::Nobody) {
        return testkit::skip("root", "needs root to become nobody");
    }
    let Some(program) = program("user", "g++", &["-O1"]) else { return };
    let by_root = recorded(User::Me, &["--backend", "agent"], &program, &["5"]);
    let by_user = recorded(User::Nobody, &[], &program, &["5"]);
    assert_eq!(seen(&by_user), seen(&by_root));

    assert!(by_user.out.out().contains("guarded 1 counter 1"), "{}", by_user.out.out());
}

/// A process of an ordinary user, which makes its turns at the end.
fn waiting(program: &str) -> lab::Running {
    let mut target = lab::as_user(User::Nobody, &[program, "3", "wait"]);
    lab::start(target.stdin(Stdio::piped()).stdout(Stdio::piped()))
}

#[test]
fn counters_of_a_running_process_are_raised_and_lowered() {
    if !lab::is_root() || !lab::may_attach(User::Nobody) {
        return testkit::skip("root", "needs root to become nobody");
    }
    let Some(program) = program("waits", "g++", &["-O1"]) else { return };
    let request = format!("usdt:{program}:in_process:guarded");
    for stays in [true, false] {
        let mut target = waiting(&program);
        let pid = target.pid().to_string();
        let shown = lab::scratch().join("json");
        let view = format!("json={}", shown.display());
        let argv = ["record", "-e", &request, "--as", &view, "-p", &pid];
        let mut recorder = lab::start(lab::trapline(User::Nobody, &argv).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let events = || std::fs::read_to_string(&shown).unwrap_or_default();
        lab::until("the counter is raised", || {
            recorder.child.try_wait().expect("wait").is_some() || events().contains("1000")
        });
        let mut end = || target.child.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        let out = if stays {
            end();
            recorder.end()
        } else {
            lab::kill("INT", recorder.pid().into());
            let out = recorder.end();
            end();
            out
        };
        let of_program = target.end();
        let counter = format!("wrong 0 guarded 1 counter {}\n", u8::from(stays));
        assert!(of_program.code() == 0 && of_program.out().starts_with(&counter), "{stays}: {}", of_program.out());
        let turns = |text: &str| text.lines().filter(|l| l.contains(":guarded\"") && !l.contains("1000")).count();
        assert_eq!(turns(&events()), if stays { 3 } else { 0 }, "{}", out.stderr);
    }
}

// Slow: a handler walks the stack every 300 µs until it has done so often, with and without stacks of the probes.
#[test]
fn handlers_walk_the_stack_through_probes() {
    let Some(program) = program("walks", "g++", &["-O2"]) else { return };
    for with in [&["--backend", "agent"][..], &["--backend", "agent", "--ustack"]] {
        let r = recorded(User::Me, with, &program, &["1", "walks"]);
        assert!(r.out.out().starts_with("wrong 0 "), "{}", r.out.out());
        let below = r.of(&format!("usdt:{program}:in_process:below")).len();
        let carries = r.of(&format!("usdt:{program}:in_process:carries")).len();
        assert!(below > 0 && below == carries, "{below} {carries}");
    }
}

#[test]
fn stacks_begin_at_the_probe() {
    let Some(program) = program("stacks", "g++", &["-O1"]) else { return };
    let requests = [format!("uprobe:{program}:recursive"), format!("usdt:{program}:in_process:below")];
    let with = ["--backend", "agent", "--ustack", "-e", &requests[0], "-e", &requests[1]];
    let (words, dir, stats) = options(&with, &[&program, "4"]);
    let out = lab::run(&mut lab::trapline(User::Me, &words));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let r = read(dir, stats, out);
    let functions = |e: &Value| -> Vec<String> {
        let frames = e["ustack"].as_array().unwrap_or_else(|| panic!("{e}"));
        frames
            .iter()
            .filter_map(|f| Some(f["function"].as_str()?.to_string()))
            .take_while(|f| !f.starts_with("__"))
            .collect()
    };
    let recursive: Vec<Vec<String>> = r.of(&requests[0]).into_iter().map(functions).collect();
    let right = |depth: usize| [vec!["recursive"; depth], vec!["main"]].concat();
    // 0 and 1 go no deeper; 2 and 3 call themselves once more each time.
    assert_eq!(recursive, [right(1), right(1), right(1), right(2), right(1), right(2), right(3)], "{recursive:?}");
    assert!(
        r.of(&requests[1]).into_iter().map(functions).all(|f| f.last().is_some_and(|l| l == "main") && f.len() == 2)
    );
}

#[test]
fn instructions_within_a_function_are_reached_one_by_one() {
    let (true, Some(program)) = (possible(), program("offsets", "g++", &["-O1"])) else { return };
    let own = untraced(&program, &["3"]).out();
    let (mut reached, mut refused) = (0, 0);
    for offset in 1..48 {
        let request = format!("uprobe:{program}:many+{offset}");
        let argv = ["record", "--backend", "agent", "--as", "json", "-e", &request, "--", &program, "3"];
        let out = lab::run(&mut lab::trapline(User::Me, &argv));
        if out.stderr.contains("would break the program") || out.stderr.contains("the offset is outside") {
            continue;
        }
        let events = out.out().lines().filter(|l| l.contains("\"probe\"")).count();
        let of_program: String = out.out().lines().filter(|l| !l.starts_with('{')).map(|l| format!("{l}\n")).collect();
        assert_eq!((out.code(), of_program), (0, own.clone()), "{request}: {}", out.stderr);
        if out.stderr.contains("no jump can be put") {
            refused += 1;
            assert_eq!(events, 0, "{request}");
        } else {
            reached += 1;
            assert_eq!(events, 3, "{request}: {}", out.stderr);
        }
    }
    assert!(reached > 5 && reached > refused, "{reached} {refused}");
}

#[test]
fn filters_and_captures_are_those_of_the_kernel() {
    let Some(program) = program("filters", "g++", &["-O1"]) else { return };
    let request = format!(
        "usdt:{program}:in_process:kinds /args.arg6 > 1 && args.arg2 < -300 && comm == \"in_process_filt\"/ str(arg7)"
    );
    let named = format!("uretprobe:{program}:named /str(args.retval) == \"odd\"/");
    let with = ["--backend", "agent", "--comm", "-e", &request, "-e", &named];
    let (words, dir, stats) = options(&with, &[&program, "6"]);
    let out = lab::run(&mut lab::trapline(User::Me, &words));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let r = read(dir, stats, out);
    let kinds = format!("usdt:{program}:in_process:kinds");
    assert_eq!(r.numbers(&kinds, "arg6"), [2, 3, 4, 5]);
    let first = r.of(&kinds)[0];
    assert_eq!((&first["args"]["str_arg7"], &first["args"]["comm"]), (&"a text".into(), &"in_process_filt".into()));
    assert_eq!(r.of(&format!("uretprobe:{program}:named")).len(), 3);
}
