//! Stacks with the names of their functions: live, from a trace, from a trace that was packed and taken elsewhere.

use crate::kernel::possible;
use crate::lab::{self, Outcome, User, contents};
use crate::record::{Recorded, record, report};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use testkit::Scratch;

/// Runs a scenario with each backend.
fn each_backend(scenario: impl Fn(User)) {
    lab::each_ptracer(&scenario);
    if possible() {
        scenario(User::Kernel);
    }
}

/// The program, in a directory of its own, from which it can be moved away.
#[track_caller]
fn program() -> Option<(Scratch, String)> {
    let flags = [
        "-O2",
        "-g",
        "-fno-omit-frame-pointer",
        "-fno-shrink-wrap",
        "-fno-optimize-sibling-calls",
        "-Wl,--build-id=sha1",
    ];
    let built = lab::compiled("stack", "stack.c", &flags)?;
    let dir = Scratch::new("stacks");
    testkit::open_to_all(&dir, 0o755);
    let path = dir.join("program");
    fs::copy(built, &path).expect("copy");
    Some((dir, path.to_str().expect("UTF-8").to_string()))
}

#[track_caller]
fn recorded(user: User, program: &str) -> Recorded {
    let r = record(user, &["-e", "getppid ustack"], &[program]);
    assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
    r
}

/// The names of functions, innermost first, up to `main`; of those that the compiler has inlined with `*`.
fn names(stack: &Value) -> Vec<String> {
    let all = stack.as_array().expect("a stack").iter().map(|f| {
        let mark = if f["inlined"] == true { "*" } else { "" };
        format!("{}{mark}", f["function"].as_str().unwrap_or("?"))
    });
    let mut all: Vec<String> = all.collect();
    if let Some(at) = all.iter().position(|n| n == "main") {
        all.truncate(at + 1);
    }
    all
}

#[track_caller]
fn call(out: &Outcome) -> Value {
    let text = out.out();
    let line = text.lines().find(|l| l.contains("\"name\":\"getppid\"")).unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(line).expect("JSON")
}

#[test]
fn every_view_names_the_functions_of_a_stack() {
    each_backend(|user| {
        let Some((_dir, path)) = program() else { return };
        let r = recorded(user, &path);
        let json = call(&r.report(&["--as", "json"]));
        assert_eq!(names(&json["ustack"]), ["inlined*", "middle", "outer", "main"], "{json}");
        let first = &json["ustack"][0];
        assert_eq!((first["module"].as_str(), first["inlined"].as_bool()), (Some(path.as_str()), Some(true)), "{json}");
        assert!(
            first["file"].as_str().is_some_and(|f| f.ends_with("stack.c")) && first["line"].as_u64() > Some(5),
            "{json}"
        );
        // As strace -k shows it.
        let text = r.report(&[]).out();
        let lines: Vec<&str> = text.lines().skip_while(|l| !l.contains("getppid()")).skip(1).take(3).collect();
        assert!(
            lines[0].starts_with(&format!(" > {path}(inlined) [0x")) && lines[0].ends_with("] (inlined)"),
            "{text}"
        );
        assert!(lines[1].starts_with(&format!(" > {path}(middle+0x")) && lines[1].ends_with(']'), "{text}");
        assert!(!text.contains("ustack="), "{text}");
        let sources = r.report(&["-kk"]).out();
        assert!(sources.lines().any(|l| l.contains("(outer+0x") && l.contains("stack.c:")), "{sources}");
        let fold = r.report(&["-k=fold"]).out();
        assert!(fold.lines().any(|l| l.starts_with(" > ") && l.ends_with("main;outer;middle;inlined_[i]")), "{fold}");
        let record = r.report(&["--as", "record"]).out();
        assert!(record.lines().any(|l| l.starts_with(&format!("S ustack {path}(middle+0x"))), "{record}");
        let table = r.report(&["--by", "stack=ustack"]).out();
        assert!(table.starts_with("1 event, of 1 stack") && table.contains("(inlined)"), "{table}");
        // Nothing is looked for, and nothing named.
        let none = r.report(&["--no-stacks"]).out();
        assert!(!none.contains("middle") && none.contains("getppid("), "{none}");
        for refused in [&["-k", "--no-stacks"][..], &["--by", "call"], &["--by", "stack", "--as", "json"]] {
            let out = r.report(refused);
            assert_eq!((out.code(), out.stderr.lines().count()), (2, 1), "{}", out.stderr);
        }
    });
}

/// The lines of JSON that are of this type.
fn of_type(out: &str, kind: &str) -> Vec<Value> {
    let all = out.lines().filter(|l| l.starts_with('{')).map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
    all.filter(|v| v["type"] == kind).collect()
}

/// Built with frame pointers, and without.
fn at_the_end(mut scenario: impl FnMut(&str)) {
    for (name, frames) in
        [("stack-at-the-end", "-fno-omit-frame-pointer"), ("stack-at-the-end-o", "-fomit-frame-pointer")]
    {
        let flags = ["-O2", "-g", frames, "-fno-optimize-sibling-calls", "-fno-delete-null-pointer-checks"];
        let Some(path) = lab::compiled(name, "stack_at_the_end.c", &flags) else { return };
        scenario(&path);
    }
}

/// Where a program was when it was killed, in every view, live and from the trace, whatever else is selected.
#[test]
fn a_fatal_signal_has_the_stack_of_the_fault() {
    each_backend(|user| {
        at_the_end(|path| {
            let expected = ["innermost", "outermost", "main"];
            let live =
                lab::run(&mut lab::trapline(user, &["trace", "-k", "-e", "none", "--as", "json", "--", path, "x"]));
            let signal = of_type(&live.stderr, "signal");
            assert_eq!(names(&signal[0]["ustack"]), expected, "{}", live.stderr);
            let r = record(user, &["--ustack=64", "-e", "getppid"], &[path, "x"]);
            let json = r.report(&["--as", "json"]).out();
            let signal = of_type(&json, "signal");
            assert_eq!((signal.len(), &signal[0]["signal"]), (1, &Value::from("SIGSEGV")), "{json}");
            assert_eq!(names(&signal[0]["ustack"]), expected, "{json}");
            assert!(signal[0]["ustack"][0]["line"].as_u64() == Some(11), "{json}");
            let text = r.report(&[]).out();
            let below: Vec<&str> = text.lines().skip_while(|l| !l.contains("--- SIGSEGV")).skip(1).take(2).collect();
            assert!(below[0].contains("(innermost+0x") && below[1].contains("(outermost+0x"), "{text}");
            let lines = r.report(&["--as", "record"]).out();
            assert!(
                lines.contains(&format!("\nS ustack {path}(innermost+0x")) && !lines.contains("ustack="),
                "{lines}"
            );
            assert!(!r.report(&["--no-stacks"]).out().contains("innermost"));
            // Without -k there is none.
            let plain = record(user, &["-e", "getppid"], &[path, "x"]).report(&["--as", "json"]).out();
            assert!(of_type(&plain, "signal")[0].get("ustack").is_none(), "{plain}");
        });
    });
}

/// A call that has not ended: in its notice, where it is found at attach, and where its thread is killed in it.
#[test]
fn calls_in_flight_have_stacks() {
    each_backend(|user| {
        at_the_end(|path| {
            let expected = ["pause", "innermost", "outermost", "main"];
            for signal in ["KILL", "SEGV"] {
                let script = format!("{path} & p=$!; sleep 0.5; kill -{signal} $p; wait");
                let r = record(user, &["--ustack=64", "-e", "pause"], &["sh", "-c", &script]);
                let json = r.report(&["--as", "json"]).out();
                for kind in ["inflight", "syscall"] {
                    let found = of_type(&json, kind);
                    assert_eq!(
                        (found.len(), names(&found[0]["ustack"])),
                        (1, expected.map(String::from).to_vec()),
                        "{signal} {json}"
                    );
                }
                let text = r.report(&[]).out();
                let below: Vec<&str> =
                    text.lines().skip_while(|l| !l.contains("<in flight>")).skip(1).take(2).collect();
                assert!(below[0].contains("(pause+0x") && below[1].contains("(innermost+0x"), "{text}");
            }
            if !lab::may_attach(user) {
                return;
            }
            let running = lab::start(&mut lab::as_user(user, &[path]));
            let pid = running.pid();
            lab::until("the call", || {
                fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|s| s.starts_with("34 "))
            });
            let options = ["trace", "-k", "-e", "pause", "--as", "json", "--duration", "50ms"];
            let live = lab::run(&mut lab::trapline(user, &[&options[..], &["-p", &pid.to_string()]].concat()));
            lab::kill("KILL", pid.into());
            running.end();
            let found = of_type(&live.stderr, "inflight");
            assert!(found.len() == 2 && found[0]["attach"] == true && found[1]["detach"] == true, "{}", live.stderr);
            found.iter().for_each(|f| assert_eq!(names(&f["ustack"]), expected, "{}", live.stderr));
        });
    });
}

/// The ptracer unwinds by `.eh_frame`, so that programs without frame pointers have whole stacks; what is not asked for is not taken.
#[test]
fn the_ptracer_needs_no_frame_pointers() {
    lab::each_ptracer(|user| {
        let flags = ["-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
        let Some(path) = lab::compiled("stack-plain", "stack.c", &flags) else { return };
        let r = record(user, &["-e", "getppid ustack", "-e", "exit_group ustack=2", "-e", "brk"], &[&path]);
        assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
        let out = r.report(&["--as", "json"]);
        let json = call(&out);
        assert_eq!(names(&json["ustack"]), ["inlined*", "middle", "outer", "main"], "{json}");
        let last = json["ustack"].as_array().and_then(|all| all.last()).expect("frames");
        assert_eq!(last["function"], "_start", "{json}");
        assert!(json["args"].get("ustack").is_none(), "{json}");
        let all = out.out();
        let of = |name: &str| all.lines().find(|l| l.contains(&format!("\"name\":\"{name}\""))).map(str::to_string);
        let exit: Value = serde_json::from_str(&of("exit_group").expect("the end")).expect("JSON");
        let outermost = exit["ustack"].as_array().map_or(0, |s| s.iter().filter(|f| f["inlined"] != true).count());
        assert_eq!(outermost, 2, "{exit}");
        assert!(of("brk").is_some_and(|l| !l.contains("ustack")), "{all}");
        r.check();
    });
}

/// The stack of the command's own execve is that of the new program, and none is lost.
#[test]
fn no_stack_is_lost_when_programs_begin_and_end() {
    lab::each_ptracer(|user| {
        let out = lab::run(&mut lab::trapline(
            user,
            &["trace", "-k", "-f", "sh", "-c", "cat /dev/null; (exit 3); exec true"],
        ));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let stacks = out.stderr.lines().filter(|l| l.starts_with(" > "));
        let (all, unknown): (Vec<&str>, Vec<&str>) =
            (stacks.clone().collect(), stacks.filter(|l| l.contains("[unknown]")).collect());
        assert!(all.len() > 100 && unknown.is_empty() && !out.stderr.contains("(lost)"), "{}", out.stderr);
        let below =
            |call: &str| out.stderr.lines().skip_while(|l| !l.contains(call)).nth(1).unwrap_or_default().to_string();
        assert!(below("execve(").contains("(_start"), "{}", below("execve("));
    });
}

/// A just-in-time compiler lists its functions in a file, which is believed if it is the process's own.
#[test]
fn functions_of_just_in_time_compilers_are_named_while_they_run() {
    each_backend(|user| {
        let Some(path) = lab::compiled("jitted", "jitted.c", &["-fno-omit-frame-pointer", "-g"]) else { return };
        let out = lab::run(&mut lab::trapline(user, &["trace", "-k", "-e", "getppid", &path]));
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let named = out.stderr.lines().any(|l| l.starts_with(" > /tmp/perf-") && l.contains("(jitted function+0xb)"));
        assert!(named, "{}", out.stderr);
        let refused = lab::run(&mut lab::trapline(user, &["trace", "-k", "-e", "getppid", &path, "writable"]));
        assert!(!refused.stderr.contains("(jitted function"), "{}", refused.stderr);
        assert!(refused.stderr.contains("others than its owner may write to it"), "{}", refused.stderr);
    });
}

/// What the list says of the addresses in a trace is packed, also when the process has ended.
#[test]
fn functions_of_just_in_time_compilers_are_packed() {
    each_backend(|user| {
        let Some(path) = lab::compiled("jitted", "jitted.c", &["-fno-omit-frame-pointer", "-g"]) else { return };
        let is_named = |r: &Recorded| {
            let text = r.report(&[]).out();
            text.lines().any(|l| l.starts_with(" > /tmp/perf-") && l.contains("(jitted function+0xb)"))
        };
        let list = |r: &Recorded| {
            let json = call(&r.report(&["--as", "json"]));
            Path::new("/tmp").join(format!("perf-{}.map", json["pid"].as_u64().expect("a process")))
        };
        let pack = |r: &Recorded| lab::run(&mut lab::trapline(user, &["pack", r.trace.to_str().expect("UTF-8")]));
        let at_end = record(user, &["--pack", "-e", "getppid ustack"], &[&path, "keep"]);
        assert_eq!(at_end.outcome.code(), 0, "{}", at_end.outcome.stderr);
        fs::remove_file(list(&at_end)).expect("the list");
        assert!(is_named(&at_end), "{}", at_end.report(&[]).out());
        let later = record(user, &["-e", "getppid ustack"], &[&path, "keep"]);
        let list = list(&later);
        assert!(!is_named(&later), "{}", later.report(&[]).out());
        let mode = |bits| fs::set_permissions(&list, fs::Permissions::from_mode(bits)).expect("chmod");
        mode(0o666);
        let refused = pack(&later);
        assert!(refused.stderr.contains("others than its owner may write to it"), "{}", refused.stderr);
        mode(0o644);
        let out = pack(&later);
        assert!(out.out().contains(&format!("{}: 1 addresses", list.display())), "{} {}", out.out(), out.stderr);
        fs::remove_file(&list).expect("the list");
        assert!(is_named(&later), "{}", later.report(&[]).out());
        let packed = later.trace.join(format!(".trapline/symbols/{}.pack", list.file_stem().unwrap().display()));
        let text = fs::read_to_string(packed).expect("a pack");
        assert!(text.lines().count() == 1 && text.ends_with(" d jitted function\n"), "{text}");
    });
}

/// Code that was written over keeps the name that it had at the time, as the dump of its compiler has it.
#[test]
fn functions_of_a_dump_have_the_names_of_their_time() {
    each_backend(|user| {
        let Some(path) = lab::compiled("dumped", "dumped.c", &["-fno-omit-frame-pointer", "-g"]) else { return };
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let names = |text: &str| -> Vec<&'static str> {
            let jitted = text.lines().filter(|l| l.contains("/jit-") || l.starts_with(" > jit-"));
            let name = |l: &str| ["(first name+0xb)", "(second name+0xb)"].into_iter().find(|n| l.contains(n));
            jitted.filter_map(name).collect()
        };
        let both = ["(first name+0xb)", "(second name+0xb)"];
        let out = lab::run(lab::trapline(user, &["trace", "-k", "-e", "getppid", &path]).current_dir(&dir));
        assert_eq!((out.code(), names(&out.stderr)), (0, both.to_vec()), "{}", out.stderr);
        let args = ["record", "-q", "-e", "getppid ustack", "-o", "trace", &path];
        assert_eq!(lab::run(lab::trapline(user, &args).current_dir(&dir)).code(), 0);
        let report = || lab::run(lab::trapline(user, &["report", "-k", "trace"]).current_dir(&dir)).out();
        assert_eq!(names(&report()), both, "{}", report());
        // Packed, it needs the dump no more.
        assert_eq!(lab::run(lab::trapline(user, &["pack", "trace"]).current_dir(&dir)).code(), 0);
        for entry in fs::read_dir(&dir).expect("the directory").flatten() {
            if entry.file_name().to_string_lossy().ends_with(".dump") {
                fs::remove_file(entry.path()).expect("the dump");
            }
        }
        assert_eq!(names(&report()), both, "{}", report());
    });
}

#[test]
fn a_running_trace_names_them_too() {
    each_backend(|user| {
        let Some((_dir, path)) = program() else { return };
        for _ in 0..3 {
            let out = lab::run(&mut lab::trapline(user, &["trace", "-k", "-e", "getppid", &path]));
            assert_eq!(out.code(), 0, "{}", out.stderr);
            let lines: Vec<&str> =
                out.stderr.lines().skip_while(|l| !l.starts_with("getppid()")).skip(1).take(4).collect();
            assert!(lines.len() == 4 && lines.iter().all(|l| l.starts_with(" > ")), "{}", out.stderr);
            assert!(lines[1].contains("(middle+0x") && lines[2].contains("(outer+0x"), "{}", out.stderr);
            assert!(lines[3].contains("(main+0x"), "{}", out.stderr);
        }
    });
}

/// A trace that was packed says the same everywhere and for ever.
#[test]
fn a_packed_trace_needs_no_other_file() {
    each_backend(|user| {
        let Some((dir, path)) = program() else { return };
        let r = recorded(user, &path);
        let views: [&[&str]; 4] = [&["-kk"], &["--as", "json"], &["--as", "record"], &["--by", "stack"]];
        let before: Vec<(String, String)> = views.iter().map(|v| r.report(v)).map(|o| (o.out(), o.stderr)).collect();
        assert!(before[0].0.contains("(middle+0x"), "{}", before[0].0);
        let whole = contents(&r.trace);
        let pack = |trace: &Path, options: &[&str]| {
            lab::run(&mut lab::trapline(user, &[&["pack", trace.to_str().expect("UTF-8")], options].concat()))
        };
        let out = pack(&r.trace, &[]);
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{}", out.out());
        assert!(out.out().lines().any(|l| l.starts_with(&format!("{path}: "))), "{}", out.out());
        // What was there is as it was; packs are private.
        let packs = r.trace.join(".trapline/symbols");
        let mut now = contents(&r.trace);
        now.retain(|p, _| !p.starts_with(&packs) && !p.starts_with(".trapline/symbols"));
        assert!(now == whole, "packing has changed something else");
        for file in fs::read_dir(&packs).expect("packs") {
            let meta = file.and_then(|f| f.metadata()).expect("a pack");
            assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        }
        // Elsewhere, without the program.
        let copy = r.dir.join("copy");
        assert!(
            lab::run(&mut lab::as_user(user, &["cp", "-r", r.trace.to_str().unwrap(), copy.to_str().unwrap()])).code()
                == 0
        );
        fs::rename(&path, dir.join("moved")).expect("move");
        for (view, before) in views.iter().zip(&before) {
            let out = report(user, &copy, view);
            assert_eq!((out.out(), out.stderr), *before, "{view:?}");
        }
        // While it was recorded.
        let at_end = record(user, &["--pack", "-e", "getppid ustack"], &[dir.join("moved").to_str().expect("UTF-8")]);
        assert_eq!(at_end.outcome.code(), 0, "{}", at_end.outcome.stderr);
        assert!(fs::read_dir(at_end.trace.join(".trapline/symbols")).expect("packs").count() >= 1);
        // Packed again, without the program: what is known stays.
        assert_eq!(pack(&copy, &["-q"]).code(), 0);
        assert_eq!(report(user, &copy, views[0]).out(), before[0].0);
        // Nobody else's files are reached by links.
        fs::remove_dir_all(copy.join(".trapline/symbols")).expect("remove");
        symlink(&*dir, copy.join(".trapline/symbols")).expect("link");
        let out = pack(&copy, &[]);
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert!(out.stderr.contains("a symbolic link, which is not followed"), "{}", out.stderr);
        assert_eq!(fs::read_dir(&dir).expect("the directory").count(), 1);
    });
}

/// Inlined functions of split debug information are shown, or a line says why they are not.
#[test]
fn split_debug_information_is_read_or_said() {
    each_backend(|user| {
        let Some(path) = lab::compiled("stack-split", "stack.c", &["-O2", "-g", "-gsplit-dwarf"]) else { return };
        let recorded = recorded(user, &path);
        let out = recorded.report(&["-kk"]);
        assert!(out.out().contains("stack.c:") && out.out().contains("(inlined)"), "{} {}", out.stderr, out.out());
        let dwo = format!("{path}-stack.dwo");
        let kept = format!("{dwo}.kept");
        std::fs::rename(&dwo, &kept).expect("the split file");
        let out = recorded.report(&["-kk"]);
        std::fs::rename(&kept, &dwo).expect("the split file");
        let want = format!("stacks: {path}: inlined functions are not shown: its split debug information");
        assert!(out.stderr.contains(&want), "{}", out.stderr);
        assert!(out.out().contains("stack.c:") && !out.out().contains("(inlined)"), "{}", out.out());
    });
}

#[test]
fn only_the_file_that_was_mapped_is_used() {
    each_backend(|user| {
        let Some((dir, path)) = program() else { return };
        let r = recorded(user, &path);
        let want = r.report(&["-kk"]).out();
        let elsewhere = dir.join("elsewhere");
        fs::create_dir(&elsewhere).expect("mkdir");
        testkit::open_to_all(&elsewhere, 0o755);
        fs::rename(&path, elsewhere.join("program")).expect("move");
        let gone = r.report(&["-kk"]);
        assert!(gone.stderr.contains(&format!("stacks: {path}: its file was not found")), "{}", gone.stderr);
        assert!(gone.out().lines().any(|l| l.starts_with(&format!(" > {path}() [0x"))), "{}", gone.out());
        assert_eq!(r.report(&["-q"]).stderr, "");
        // Another program has its name now.
        let other = lab::compiled("stack-other", "stack.c", &["-O1", "-g", "-DOTHER", "-Wl,--build-id=sha1"])
            .expect("compiled before");
        fs::copy(other, &path).expect("copy");
        let replaced = r.report(&["-kk"]);
        assert!(
            replaced.stderr.contains(&format!("{path}: the file there has another build id")),
            "{}",
            replaced.stderr
        );
        assert!(!replaced.out().contains("(middle"), "{}", replaced.out());
        let named = r.report(&["-kk", "--symbols", elsewhere.to_str().expect("UTF-8")]);
        assert_eq!((named.out(), named.stderr.as_str()), (want, ""));
        let none = r.report(&["--symbols", "/nowhere/at/all"]);
        assert!(none.code() == 125 && none.stderr.contains("no such file"), "{}", none.stderr);
    });
}

#[test]
fn the_kernel_s_functions_are_named() {
    if !possible() {
        return;
    }
    let r = record(User::Kernel, &["-e", "openat kstack=8"], &["true"]);
    let out = r.report(&["--as", "json"]).out();
    let stacks: Vec<Value> =
        out.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).map(|e| e["kstack"].clone()).collect();
    let frames: Vec<&Value> = stacks.iter().filter_map(Value::as_array).flatten().collect();
    assert!(!frames.is_empty() && frames.iter().all(|f| f["kernel"] == true), "{out}");
    let named = |name: &str| frames.iter().any(|f| f["function"].as_str().is_some_and(|n| n.contains(name)));
    if named("do_syscall_64") {
        return;
    }
    // Who may not read addresses of the kernel is told.
    let said = r.report(&[]).stderr;
    assert!(said.contains("[kernel]: /proc/kallsyms"), "{said} {out}");
}

/// File and address of every frame that has code of its own.
fn places(trace: &str) -> Vec<String> {
    let frames = trace.lines().filter(|l| l.starts_with(" > ") && !l.contains("(inlined)"));
    let place = |l: &str| Some(format!("{} {}", &l[3..l.find('(')?], &l[l.rfind('[')?..=l.rfind(']')?]));
    frames.map(|l| place(l).unwrap_or_else(|| l.to_string())).collect()
}

/// A program that nobody here wrote has the frames that strace finds.
#[test]
fn frames_are_those_that_strace_finds() {
    if !lab::has("strace") {
        return testkit::skip("package:strace", "no strace");
    }
    let dir = lab::scratch();
    let command = ["sort", "/etc/passwd"];
    let strace = [&["strace", "-f", "-k", "-o", "by-strace"], &command[..]].concat();
    let out = lab::run(lab::as_user(User::Me, &strace).current_dir(&dir));
    let by_strace = places(&fs::read_to_string(dir.join("by-strace")).unwrap_or_default());
    if out.code() != 0 || by_strace.len() < 100 {
        return testkit::skip("package:strace", "it has no -k, or may not trace");
    }
    let own = [&["trace", "-q", "-k", "-o", "own"], &command[..]].concat();
    let out = lab::run(lab::trapline(User::Ptrace, &own).current_dir(&dir));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let text = fs::read_to_string(dir.join("own")).expect("the trace");
    assert_eq!(places(&text), by_strace, "{text}");
}

/// A trace comes from anywhere: whatever its bytes are, every view comes to an end of its own.
#[test]
fn damaged_traces_with_stacks_are_shown_or_refused() {
    let Some((_dir, path)) = program() else { return };
    let user = if possible() { User::Kernel } else { User::Ptrace };
    let r = recorded(user, &path);
    let views: [&[&str]; 5] =
        [&["-kk"], &["--as", "json"], &["--as", "record"], &["--by", "stack"], &["--as", "folded"]];
    let streams: Vec<_> =
        contents(&r.trace).into_iter().filter(|(p, b)| b.len() > 200 && !p.ends_with("metadata")).collect();
    assert!(!streams.is_empty());
    let mut random = testkit::Random::new(7);
    for round in 0..testkit::rounds(60) {
        for (path, bytes) in &streams {
            let mut bytes = bytes.clone();
            // What is there is little: not the zeros behind it.
            let used = bytes.iter().rposition(|b| *b != 0).map_or(1, |last| last + 1);
            for _ in 0..=random.index(6) {
                let at = random.index(used);
                bytes[at] = random.of(&[0, 1, 0x7f, 0x80, 0xff, 0x10, 0x40]);
            }
            fs::write(path, bytes).expect("write");
        }
        let view = views[round % views.len()];
        let out = r.report(view);
        assert!([0, 125].contains(&out.code()), "{round} {view:?}: {} {}", out.code(), out.stderr);
        assert!(!out.stderr.contains("panicked"), "{round} {view:?}: {}", out.stderr);
    }
}
