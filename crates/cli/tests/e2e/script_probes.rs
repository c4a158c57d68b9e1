//! Scripts over each kind of probes: functions, allocations, static probes, the kernel, files.

use crate::lab::{self, User};
use crate::scripts::{run, script};

/// `strace` is the line of `trace`, without its columns.
#[test]
fn a_clause_has_the_line_of_its_event() {
    let Some(program) = testkit::compile("gcc", "cookbook_shop", "cookbook/shop.c", &["-g", "-O1"]) else { return };
    let seen = |user, dir: &std::path::Path, args: &[&str]| {
        let out = lab::run(lab::trapline(user, &[&["run", "-q"], args].concat()).current_dir(dir));
        assert_eq!(out.code(), 0, "{args:?} {}", out.stderr);
        out.out()
    };
    let calls = "syscall:write,syscall:close { @[strace] = count(); } process:exit { @[strace] = count(); }";
    let functions = format!("{calls} function:order {{ @[strace] = count(); }}");
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let out = seen(user, &dir, &["-e", &functions, "-c", &format!("{program} 3")]);
        let of_calls = ["write(3, \"order\\n\", 6) = 6]: 3\n", "close(3) = 0]: ", "+++ exited with 0 +++]: 1\n"];
        for line in of_calls.iter().chain(&["function:order:entry()]: 3\n"]) {
            assert!(out.contains(&format!("@[{line}")), "{line} {out}");
        }
        let entry = "tracepoint:syscalls:sys_enter_write { printf(\"%s\\n\", strace); exit(); }";
        let out = seen(user, &dir, &["-e", entry, "-c", &format!("{program} 1")]);
        let starts = ["write(3, \"order\\n\", 6)\n", "tracepoint:syscalls:sys_enter_write("];
        assert!(starts.iter().any(|line| out.starts_with(line)), "{out}");
        let args = ["record", "-q", "-o", "trace", "-e", "write,close", &program, "3"];
        assert_eq!(lab::run(lab::trapline(user, &args).current_dir(&dir)).code(), 0);
        let out = seen(user, &dir, &["--trace", "trace", "-e", calls]);
        assert!(of_calls.iter().all(|line| out.contains(&format!("@[{line}"))), "{out}");
        let short = "config = { max_strlen = 12 } syscall:write { @[strace] = count(); }";
        let out = seen(user, &dir, &["-e", short, "-c", &program]);
        assert!(out.contains("@[write(3, \"or]: 20\n"), "{out}");
    });
}

/// In the kernel, in trapline, and where it is known without looking.
#[test]
fn whether_the_processor_was_in_user_mode() {
    let out = run(
        User::Me,
        &["-q", "-e", "begin { @[usermode] = count(); } interval:ms:1 { @[usermode] = count(); exit(); }"],
    );
    assert_eq!(out.out(), "\n\n@[true]: 2\n");
    if lab::is_root() {
        let out = run(User::Nobody, &["-e", "profile:hz:99 { @[usermode] = count(); }", "-c", "true"]);
        assert!(out.code() == 2 && out.stderr.contains("registers of the kernel are for root"), "{}", out.stderr);
    }
    let Some(program) = testkit::compile("gcc", "cookbook_hot", "cookbook/hot.c", &["-g", "-O1", "-pthread"]) else {
        return;
    };
    if !lab::kernel_backend_is_possible() {
        return;
    }
    let text = "profile:hz:199 { @samples[usermode] = count(); }
        software:page-faults:1 /usermode/ { @faults = count(); } software:context-switches:1 { @switches[usermode] = count(); }";
    for failures in [&["-q"][..], &["-q", "-k"]] {
        let out = run(User::Me, &[failures, &["-e", text, "-c", &program]].concat()).out();
        let [samples, faults, switches] = ["@samples[true]: ", "@faults: ", "@switches[false]: "];
        assert!([samples, faults, switches].iter().all(|line| out.contains(line)), "{out}");
        // A thread is switched by the kernel alone.
        assert!(!out.contains("@switches[true]"), "{out}");
    }
}

#[test]
fn functions_and_allocations_need_no_root() {
    let Some(program) = testkit::compile("gcc", "cookbook_shop", "cookbook/shop.c", &["-g", "-O1"]) else { return };
    lab::each_user(|user| {
        let text = "function:order { @in[func] = count(); } function:order:return { @out = count(); @ms = lhist(dur / 1000000, 0, 100, 20); }
            function:ask_* { @ = count(); }";
        let out = script(user, text, &program);
        for line in ["@: 20", "@in[order]: 20", "@out: 20", "[0, 20)               16 |@"] {
            assert!(out.contains(line), "{line}: {out}");
        }
        let out = script(
            user,
            "heap:malloc { @n = count(); @[ustack(1)] = sum(args.size); } heap:free { @freed = count(); }",
            "git --version",
        );
        assert!(out.contains("@n: ") && out.contains("]: "), "{out}");
    });
}

#[test]
fn probes_of_the_kernel_and_of_files_are_served() {
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let text = "tracepoint:sched:sched_process_exec { @exec[str(args.filename), comm] = count(); }
        rawtracepoint:sched_process_exit { @raw[comm] = count(); } software:page-faults:1 { @faults[comm, uid] = count(); }
        uprobe:libc:malloc /arg0 > 10/ { @malloc[comm, cpu < 1000, gid] = count(); }
        uretprobe:libc:malloc { @zero[retval == 0] = count(); @deep[ustack(1)] = count(); }";
    let out = script(User::Me, text, "ls /");
    for part in [
        "@exec[/usr/bin/ls, ls]: 1",
        "@raw[ls]: 1",
        "@faults[ls, 0]: ",
        "@malloc[ls, true, 0]: ",
        "@zero[false]: ",
        "@deep[",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn parents_are_known_at_probes() {
    if !lab::kernel_backend_is_possible() || !lab::has("perl") {
        return testkit::skip("kernel", "no kernel backend, or no perl");
    }
    let text = "tracepoint:syscalls:sys_enter_getppid { printf(\"%d %s\\n\", ppid, pcomm); } uprobe:libc:getppid { @[ppid] = count(); }
        tracepoint:syscalls:sys_enter_getppid { @parent[ppid] = count(); }";
    let out = script(User::Me, text, "perl -e '$| = 1; print getppid(), qq( perl\n)'");
    let lines: Vec<&str> = out.lines().collect();
    let parent = lines[0].split(' ').next().expect("a number");
    assert_eq!((lines[0], lines[1].ends_with(" perl")), (lines[1], true), "{out}");
    assert!(out.contains(&format!("@[{parent}]: 1")) && out.contains(&format!("@parent[{parent}]: 1")), "{out}");
}

#[test]
fn static_probes_are_found_in_the_program_of_p_and_in_files_by_a_pattern() {
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let program = lab::program("probes").expect("it compiles");
    let dir = std::path::Path::new(&program).parent().expect("a directory").display().to_string();
    let waits = lab::start(lab::as_user(User::Me, &[&program, "1"]).stdin(std::process::Stdio::piped()));
    let pid = waits.pid().to_string();
    for (text, n) in [
        ("usdt::lab:step { } end { }", 2),
        ("usdt:::* { } end { }", 3),
        (&format!("usdt:{dir}/prob*s::* {{ }} uprobe:{dir}/prob*s:worked {{ }}"), 3),
    ] {
        let out = run(User::Me, &["-e", text, "-p", &pid, "--duration", "10ms"]);
        let said = out.stderr.lines().next().unwrap_or_default();
        assert_eq!(said, format!("Attached {n} probes"), "{text}: {}", out.stderr);
    }
    let out = run(User::Me, &["-e", "usdt:/no/*::* { }"]);
    assert!(out.code() == 2 && out.stderr.contains("no file has such a probe"), "{}", out.stderr);
}

/// Arguments and results of functions, read from inside the process: live, attached and recorded, without root.
#[test]
fn functions_have_arguments_and_results() {
    let compiled = |name, args| testkit::compile("gcc", name, "script_values.c", args);
    let Some(program) = compiled("script_values", &["-g", "-O1"]) else { return };
    let Some(bare) = compiled("script_values_bare", &["-O1"]) else { return };
    let text = "function:add { printf(\"%s %s %d %d %s %d %d %d %s\\n\", probe, func, args.n, args.c, str(args.s), args.e, args.b, arg0, str(arg2)); @p[args.p != 0, arg3 == (uint64)args.p] = count(); }
        function:add:return { printf(\"%s %d of %d\\n\", probe, retval, args.n); @[args.n < 0] = sum(retval); }
        function:work { @w[arg0, str(args.s)] = count(); } function:work:return { @r[retval] = count(); }";
    let expected = "function:add add -1 200 hello 1 1 -1 hello\nfunction:add:return -1 of -1\n\
        function:add add 0 200 hello 1 1 0 hello\nfunction:add:return 112 of 0\n\
        function:add add 1 200 hello 1 1 1 hello\nfunction:add:return 113 of 1\n\
        function:add add 5 1  0 0 5 \nfunction:add:return 5 of 5\n\n\n\
        @[true]: -1\n@[false]: 230\n@p[false, true]: 1\n@p[true, true]: 3\n@r[117]: 1\n@w[3, odd]: 1\n";
    lab::each_user(|user| {
        assert_eq!(script(user, text, &program), expected);
        // Another program is started by that of -c: what its arguments are is known when they are reached.
        let later =
            "function:work { @[args.n, str(args.s)] = count(); } function:work:return { @r[retval] = count(); }";
        assert_eq!(script(user, later, &format!("sh -c {program}")), "\n\n@[3, odd]: 1\n@r[117]: 1\n");
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let within = |args: &[&str]| lab::run(lab::trapline(user, args).current_dir(&dir));
        std::fs::write(dir.join("script.bt"), text).expect("a script");
        let out = within(&["record", "-q", "--for", "script.bt", "-o", "read", &program]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        let past = within(&["run", "--trace", "read", "script.bt"]);
        assert_eq!((past.code(), past.out().as_str()), (0, expected), "{}", past.stderr);
        let out = within(&["record", "-q", "--script", "script.bt", "-o", "ran", &program]);
        assert_eq!((out.code(), out.out().as_str()), (0, expected), "{}", out.stderr);
        assert_eq!(within(&["report", "ran"]).out(), expected);
        // As graph --args has them.
        within(&["record", "-q", "--args", "-e", "function:work", "-o", "shown", &program]);
        let past = within(&["run", "--trace", "shown", "-e", later]);
        assert_eq!(past.out(), "\n\n@[3, odd]: 1\n@r[117]: 1\n", "{}", past.stderr);
        within(&["record", "-q", "-e", "function:work", "-o", "without", &program]);
        for (args, says) in [
            (&["--trace", "without", "-e", later][..], "function:work: the trace has no values of calls"),
            (&["-e", "function:add { @ = sum(args.m); }", "-c", &program], "it has n, c, s, p, e, b"),
            (&["-e", "function:add { @ = sum(retval); }", "-c", &program], "'retval' is not known at function:add"),
            (&["-e", "function:add { @ = sum(arg0); }", "-c", &bare], "no debug information says what it takes"),
        ] {
            let out = within(&[&["run"], args].concat());
            assert!(out.code() == 2 && out.stderr.contains(says), "{args:?}: {}", out.stderr);
        }
    });
    lab::each_user(|user| {
        let mut running = lab::start(&mut lab::as_user(user, &[&program, "forever"]));
        running.must_run();
        let text = "function:work:return { printf(\"%d of %d %s\\n\", retval, args.n, str(args.s)); exit(); }";
        let out = run(user, &["-q", "-e", text, "-p", &running.pid().to_string()]);
        assert_eq!((out.code(), out.out().as_str()), (0, "117 of 3 odd\n\n\n"), "{}", out.stderr);
        lab::kill("KILL", running.pid().into());
        running.end();
    });
}

/// The address of a string is a number, and a buffer is as long as the event says; addresses have names without any stack.
#[test]
fn addresses_of_arguments_are_numbers_and_have_names() {
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let text = "tracepoint:syscalls:sys_enter_write /args.fd == 1 && args.buf != 0 && comm == \"sh\"/ {
            printf(\"%d %s %r|%r|%r\\n\", args.buf > 4096, comm, buf(args.buf, args.count), buf(args.buf, args.count - 3),
                buf(args.buf, args.count - 100)); }
        tracepoint:timer:hrtimer_start { @[ksym(args.function)] = count(); }";
    let out = run(User::Me, &["-q", "-e", text, "-c", "sh -c 'echo hello; sleep 0.01'"]);
    assert!(out.out().contains("1 sh hello\\x0a|hel|\n") && out.out().contains("@[hrtimer_wakeup]: "), "{out:?}");
}
