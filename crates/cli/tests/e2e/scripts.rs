//! `trapline run`: scripts over the events of each backend, of traces, and by themselves. docs/SCRIPTS.md has more, in `cookbook.rs`.

use crate::injected;
use crate::lab::{self, Outcome, User};

fn run(user: User, args: &[&str]) -> Outcome {
    lab::run(&mut lab::trapline(user, &[&["run"], args].concat()))
}

fn script(user: User, text: &str, command: &str) -> String {
    let out = run(user, &["-q", "-e", text, "-c", command]);
    assert_eq!(out.code(), 0, "{text}: {}", out.stderr);
    out.out()
}

#[test]
fn scripts_without_probes_run_by_themselves() {
    lab::each_user(|user| {
        let out =
            run(user, &["-e", "begin { printf(\"a %d\\n\", $1); exit(3); } end { @ = 1; print((1, \"x\")); }", "7"]);
        assert_eq!((out.code(), out.out().as_str()), (3, "a 7\n(1, x)\n\n\n@: 1\n"), "{}", out.stderr);
        assert_eq!(out.stderr, "Attached 2 probes\n");
        let out = run(
            user,
            &["-e", "interval:ms:5 { @n = count(); @t[elapsed / 5000000] = count(); if ((int64)@n == 4) { exit(); } }"],
        );
        // Each tick has the time at which it was due.
        assert_eq!((out.code(), out.out().as_str()), (0, "\n\n@n: 4\n@t[1]: 1\n@t[2]: 1\n@t[3]: 1\n@t[4]: 1\n"));
        assert_eq!(out.stderr, "Attached 1 probe\n");
        // It waits for a signal.
        let mut waits = lab::start(
            lab::trapline(user, &["-e", "begin { printf(\"x\\n\"); } end { printf(\"y\\n\"); }"])
                .stdout(std::process::Stdio::piped()),
        );
        std::thread::sleep(std::time::Duration::from_millis(300));
        waits.must_run();
        lab::kill("INT", waits.pid().into());
        let out = waits.end();
        assert_eq!((out.code(), out.out().as_str()), (0, "x\ny\n\n\n"));
    });
}

#[test]
fn mistakes_are_shown_where_they_are() {
    for (text, says) in [
        ("begin { printf(\"%d\\n\", 1, 2) }", "stdin:1:9-29: ERROR: the format takes 1 value, 2 are given [S0012]"),
        (
            "syscall:opennat { @ = count(); }",
            "stdin:1:1-16: ERROR: -e opennat: no such system call (did you mean openat",
        ),
        ("heap:new { @ = count(); }", "stdin:1:1-9: ERROR: heap:new: no such probe"),
        ("process:die { @ = count(); }", "stdin:1:1-12: ERROR: process:die: no such event of processes"),
        (
            "software:page-faults:1 { @[usermode] = count(); }",
            "stdin:1:1: ERROR: 'usermode' is not known at software:page-faults:1",
        ),
        ("function:main { @ = max(dur); }", "stdin:1:1: ERROR: 'dur' is not known at function:main"),
    ] {
        let out = run(User::Me, &["-e", text, "-c", "true"]);
        assert_eq!((out.code(), out.out().as_str()), (2, ""), "{text}");
        assert!(out.stderr.starts_with(says), "{text}: {}", out.stderr);
    }
    let out = run(User::Me, &["-d", "-e", "syscall:read { @ = count(); }"]);
    assert_eq!((out.code(), out.out(), out.stderr), (0, String::new(), String::new()));
    for (args, says) in [
        (&["-e", "begin {}", "-c", "'"][..], "a quote in it is not closed"),
        (&["-e", "begin {}", "-c", "true", "-p", "1"], "given together with -p"),
        (&["/no/script"], "No such file"),
        (&["-p", "1x", "/no/script"], "-p 1x: not a process id"),
        (&["-e", "#include <lol/no.h>\nbegin {}"], "'<lol/no.h>': file not found"),
        (&[], "no script is given"),
        (&["--config", "x", "-e", "begin {}"], "it has no value"),
    ] {
        let out = run(User::Me, args);
        assert!(out.code() != 0 && out.stderr.contains(says), "{args:?}: {}", out.stderr);
    }
    if lab::is_root() {
        let out = run(User::Nobody, &["-e", "tracepoint:sched:sched_switch { @ = count(); }"]);
        assert!(out.code() == 125 && out.stderr.contains("-c COMMAND, -p PID"), "{}", out.stderr);
    }
}

/// What a program does is the same for all who look. Tracepoints begin behind the command's own execve (59); uprobes of others make calls
/// (335, 336).
#[test]
fn ptrace_and_the_kernel_give_the_same() {
    let Some(program) = testkit::compile("gcc", "cookbook_settings", "cookbook/settings.c", &["-g", "-O1", "-pthread"])
    else {
        return;
    };
    let text = "syscall:openat /retval < 0/ { @[comm, strerror(-retval), str(args.filename)] = count(); }
        tracepoint:syscalls:sys_enter_openat { @entered = count(); }
        tracepoint:syscalls:sys_exit_openat { @left[args.ret < 0] = count(); }
        tracepoint:raw_syscalls:sys_enter /args.id != 59 && args.id < 330/ { @calls[args.id] = count(); }
        process:exec { @exec[comm, args.comm] = count(); } process:exit { @exit[args.code] = count(); }
        process:fork { @fork[comm] = count(); }";
    let all = std::cell::RefCell::new(Vec::new());
    lab::each_backend(|user| {
        let asked = if let User::Ptrace = user { "ptrace" } else { "kernel" };
        let command = format!("sh -c 'true; {program}; true'");
        let out = run(User::Me, &["-q", "--backend", asked, "-e", text, "-c", &command]);
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
        all.borrow_mut().push(out.out());
    });
    let all = all.into_inner();
    assert!(all[0].contains("No such file or directory, /etc/settings/app.conf]: 1\n"), "{}", all[0]);
    assert!(all.iter().all(|text| *text == all[0]), "{all:#?}");
}

/// A script over a trace prints what it has printed while the trace was recorded.
#[test]
fn a_recording_gives_what_the_session_gave() {
    let Some(program) = testkit::compile("gcc", "cookbook_shop", "cookbook/shop.c", &["-g", "-O1"]) else { return };
    let text = "syscall:write { @bytes[args.fd] = sum(retval); @h = hist(retval); } syscall:clock_nanosleep { @n[dur > 10000] = count(); }";
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let live = lab::run(lab::trapline(user, &["run", "-q", "-e", text, "-c", &program]).current_dir(&dir));
        let args = ["record", "-q", "-o", "trace", "-e", "write,clock_nanosleep", &program];
        assert_eq!(lab::run(lab::trapline(user, &args).current_dir(&dir)).code(), 0);
        let past = lab::run(lab::trapline(user, &["run", "--trace", "trace", "-e", text]).current_dir(&dir));
        assert_eq!((past.code(), past.out()), (0, live.out()), "{}", past.stderr);
        let out = lab::run(
            lab::trapline(user, &["run", "--trace", "trace", "-e", "uprobe:libc:malloc { @ = count(); }"])
                .current_dir(&dir),
        );
        assert!(out.code() == 2 && out.stderr.contains("the trace has no such probe"), "{}", out.stderr);
        // An interval is one of the trace's time.
        let out = lab::run(
            lab::trapline(user, &["run", "--trace", "trace", "-e", "interval:ms:10 { @ = count(); }"])
                .current_dir(&dir),
        );
        assert!(out.code() == 0 && out.out().starts_with("\n\n@: "), "{} {}", out.out(), out.stderr);
    });
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

/// Whether clauses take the records of each thread, or each call as an event in the order of all, what they collect is the same.
#[test]
fn calls_that_are_only_collected_are_those_that_are_seen_one_by_one() {
    let programs = ["jumps.c", "throws.cc", "forked_threads.c", "tail_chains.c"];
    for program in programs.into_iter().filter_map(|s| testkit::compiled(&format!("collected_{s}"), s, &[])) {
        let text = "function:* { @in[func, probe] = count(); @all++; } function:*:return /pid != tid/ { @out[func] = count(); }
            function:*:return { @took = sum(dur >> 62); }";
        let one_by_one = format!("{text} function:main {{ printf(\"\"); }}");
        lab::each_user(|user| {
            let (all, seen) = (script(user, text, &program), script(user, &one_by_one, &program));
            assert!(all.contains("@in[main, function:*]: 1") && all == seen, "{program}: {all}{seen}");
        });
    }
    let explained = |text: &str| {
        let command = ["run", "-q", "--explain", "-e", text, "-c", "/bin/true"];
        lab::run(&mut lab::trapline(User::Me, &command)).stderr
    };
    let of_threads = "over the records of each thread";
    assert!(explained("function:* { @[tid] = count(); } interval:s:1 { print(@); }").contains(of_threads));
    for text in ["function:* { @[comm] = count(); }", "function:* { @ = count(); } process:exec { exit(); }"] {
        assert!(!explained(text).contains(of_threads), "{text}");
    }
}

/// However many calls a running program makes, its session ends in time.
#[test]
fn busy_programs_do_not_hold_a_session() {
    let Some(program) = injected::program() else { return };
    if !lab::may_attach(User::Me) {
        return;
    }
    let running = injected::started(User::Me, &[&program, "600", "2", "1000"]);
    let pid = running.pid().to_string();
    let text = "function:* { @[func] = count(); } interval:ms:50 { print(@, 1); }";
    let out = run(User::Me, &["-q", "-p", &pid, "--duration", "0.2", "-e", text]);
    assert!(out.code() == 0 && out.out().contains("@["), "{} {}", out.out(), out.stderr);
    injected::is_right(running);
}

#[test]
fn a_script_ends_the_session_and_the_command_runs_on() {
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let text = "syscall:write /str(args.buf, 3) == \"one\" || args.count == 4/ { printf(\"seen\\n\"); exit(5); }";
        let command = "sh -c 'echo one >one; sleep 0.2; echo two >two'";
        let out = lab::run(lab::trapline(user, &["run", "-q", "-e", text, "-c", command]).current_dir(&dir));
        assert_eq!((out.code(), out.out().as_str()), (5, "seen\n\n\n"), "{}", out.stderr);
        lab::until("the command has gone on", || dir.join("two").exists());
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
fn other_names_of_the_command_are_known() {
    let out = lab::run(&mut lab::trapline(User::Me, &["-e", "begin { printf(\"x\\n\"); exit(); }"]));
    assert_eq!((out.code(), out.out().as_str()), (0, "x\n\n\n"));
    let link = lab::scratch().join("bpftrace");
    std::os::unix::fs::symlink(lab::dir().join("trapline"), &link).expect("a link");
    let link = link.to_str().expect("UTF-8");
    let out = lab::run(&mut lab::as_user(User::Me, &[link, "-e", "BEGIN { print(1); exit(); }"]));
    assert_eq!((out.code(), out.out().as_str()), (0, "1\n\n\n"), "{}", out.stderr);
    // Its options, and its own name.
    let text = "BEGIN { @[comm, strerror(EPERM)] = 1; cat(\"/no\"); exit(); }";
    let words = [link, "--unsafe", "-v", "--no-warnings", "--include", "errno.h", "-f", "json", "-q", "-e", text];
    let out = lab::run(&mut lab::as_user(User::Me, &words));
    assert_eq!(
        out.out(),
        "{\"type\": \"map\", \"data\": {\"@\": {\"bpftrace,Operation not permitted\": 1}}}\n",
        "{}",
        out.stderr
    );
    assert_eq!(out.stderr, "ERROR: failed to open file '/no': No such file or directory\n");
    let out = lab::run(&mut lab::as_user(User::Me, &[link, "-l", "software:*"]));
    assert!(out.out().contains("software:page-faults"), "{}", out.out());
    let said = |option: &str| lab::run(&mut lab::as_user(User::Me, &[link, option])).out();
    assert_eq!(said("--version"), format!("bpftrace v0.26.1 (trapline {})\n", env!("CARGO_PKG_VERSION")));
    assert!(said("--help").contains("Usage: trapline run [OPTIONS] FILE"), "{}", said("--help"));
    assert!(said("--info").contains("kernel backend (eBPF)"), "{}", said("--info"));
}

const STRUCTURES: &str = "struct inner { int n; const char *name; char tag[8]; };
    struct outer { long a; struct inner *in; int arr[3]; unsigned bits:5; };";

#[test]
fn memory_is_read_where_the_event_happens() {
    let Some(program) = testkit::compile("gcc", "script_memory", "script_memory.c", &["-g", "-O1"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let printed = format!(
        "{STRUCTURES} uprobe:{program}:f {{ $o = (struct outer *)arg0; $i = $o->in;
            printf(\"%s %d %d %s %s %d %d\\n\", str(arg1, 4), *(int32 *)arg2, $i->n, str($i->name), $i->tag, $o->arr[1], $o->bits); }}"
    );
    let line = |n: u32| format!("a t 11 {n} inner name tagged 6 19\n");
    assert_eq!(script(User::Me, &printed, &program), format!("{}{}{}\n\n", line(0), line(1), line(2)));
    // Beside what else is captured.
    let beside =
        format!("uprobe:{program}:f {{ printf(\"%s %d %d %d\\n\", comm, cpu >= 0, uid == gid, *(int32 *)arg2); }}");
    assert_eq!(script(User::Me, &beside, &program), format!("{}\n\n", "script_memory 1 1 11\n".repeat(3)));
    // A number is an address of the process there.
    let numbers =
        format!("uprobe:{program}:f {{ $p = (int64)arg1; printf(\"%s %s\\n\", str($p), str((uint64)arg1 + 2)); }}");
    let out = script(User::Me, &numbers, &program);
    assert!(out.starts_with("a text") && out.lines().next().is_some_and(|l| l.ends_with("text")), "{out}");
    // The kernel's own structures, by its BTF.
    let kernel = format!(
        "uprobe:{program}:f {{ $t = (struct task_struct *)curtask; @[$t->pid == tid, $t->comm, $t->real_parent->pid > 0] = count(); }}
         rawtracepoint:sched_process_exit {{ @exit[args.p->comm] = count(); }}"
    );
    let out = script(User::Me, &kernel, &program);
    assert!(out.contains("@[true, script_memory, true]: 3\n") && out.contains("@exit[script_memory]: 1\n"), "{out}");
    // Arrays, structures and buffers are what is there, as keys and as values.
    let whole = format!(
        "{STRUCTURES} uprobe:{program}:f /((struct outer *)arg0)->in->n == 2/ {{ $o = (struct outer *)arg0; $i = *$o->in;
            @keys[$i, $o->arr] = (1, $o->arr); @same = $o->arr == $o->arr; $a = $o->arr;
            printf(\"%r %d %s %d\\n\", buf($o->in->name, 5), $i.n, $i.tag, $a[2]); print(buf((uint8 *)8, 2)); }}"
    );
    let out = script(User::Me, &whole, &program);
    let (lines, map) = out.split_once("@keys[{ .n = 2, .name = 0x").expect("a structure is a key");
    assert_eq!(lines, "inner 2 tagged 7\n\n\n\n");
    assert!(map.ends_with(", .tag = tagged }, [5,6,7]]: (1, [5,6,7])\n@same: true\n"), "{map}");
    let json = ["-q", "-f", "json", "-e", &whole, "-c", &program];
    let out = run(User::Me, &json).out();
    assert!(out.contains("\"@keys\": {\"{ .n = 2, ") && out.contains(": [1,[5,6,7]]}}}\n"), "{out}");
    // What is not there is zero.
    let collected = format!(
        "{STRUCTURES} uprobe:{program}:f /((struct outer *)arg0)->a == 42/ {{ $o = (struct outer *)arg0;
            @n[$o->in->n] = count(); @bits = max($o->bits); @a = sum($o->a); @none = max(*(uint64 *)1); }}"
    );
    assert_eq!(
        script(User::Me, &collected, &program),
        "\n\n@a: 126\n@bits: 19\n@n[0]: 1\n@n[1]: 1\n@n[2]: 1\n@none: 0\n"
    );
}

/// The strings of an array: of the kernel's own tracepoint, of a call that was traced otherwise, of a function, and of a trace.
#[test]
fn arrays_of_strings_are_joined() {
    let Some(program) = testkit::compile("gcc", "script_calls", "script_calls.c", &["-O1", "-pthread"]) else { return };
    let text = "tracepoint:syscalls:sys_enter_execve { join(args.argv); } syscall:execve { join(args.argv, \"+\"); }";
    let many = (1..20).map(|n| n.to_string()).collect::<Vec<_>>();
    let command = format!("sh -c 'exec /bin/true one \"\" {}'", many.join(" "));
    let line = |separator: &str| {
        [&["/bin/true", "one", ""][..], &many.iter().map(String::as_str).collect::<Vec<_>>()[..13]]
            .concat()
            .join(separator)
            + "\n"
    };
    lab::each_backend(|user| {
        let asked = if let User::Ptrace = user { "ptrace" } else { "kernel" };
        let out = run(User::Me, &["-q", "--backend", asked, "-e", text, "-c", &command]);
        let lines = out.out();
        assert!(lines.contains(&(line(" ") + &line("+"))), "{asked}: {lines} {}", out.stderr);
    });
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let of_main = format!("uprobe:{program}:main {{ join((char **)arg1, \"|\"); }}");
    assert_eq!(script(User::Me, &of_main, &format!("{program} 5 '1 c'")), format!("{program}|5|1 c\n\n\n"));
    let dir = lab::scratch();
    let of_exec = "tracepoint:syscalls:sys_enter_execve { join(args.argv, \"|\"); }";
    let recorded = ["record", "-q", "-o", "trace", "-e", of_exec, "--", "sh", "-c", "exec /bin/true \"x y\""];
    let live = lab::run(lab::trapline(User::Me, &recorded).current_dir(&dir));
    assert!(live.out().contains("/bin/true|x y\n"), "{} {}", live.out(), live.stderr);
    let past = lab::run(lab::trapline(User::Me, &["run", "--trace", "trace", "-e", of_exec]).current_dir(&dir));
    assert_eq!((past.code(), past.out()), (0, live.out()), "{}", past.stderr);
}

/// Constants and members of the running kernel's types, and functions that libraries have in several kernels and versions.
#[test]
fn names_are_those_of_this_machine() {
    let out = run(User::Me, &["-q", "-e", "begin { print(PIDTYPE_TGID); exit(); }"]);
    if out.stderr.contains("neither a value nor a constant") {
        return testkit::skip("kernel:btf", "no types of the kernel");
    }
    assert_eq!((out.code(), out.out().as_str()), (0, "1\n\n\n"), "{}", out.stderr);
    let some = "uprobe:libc:malloc, uprobe:libc:no_such_function { @ = 1; }";
    let out = run(User::Me, &["-d", "-e", some]);
    assert!(out.code() == 0 && out.stderr.contains("WARNING: uprobe:libc:no_such_function: no such"), "{}", out.stderr);
    for text in ["uprobe:libc:no_such_function { @ = 1; }", &format!("config = {{ missing_probes = error }} {some}")] {
        let out = run(User::Me, &["-d", "-e", text]);
        assert!(out.code() == 2 && out.stderr.contains("ERROR: uprobe:libc:no_such_function"), "{}", out.stderr);
    }
}

/// An address that is kept in a map or a variable has its string with it, as opensnoop.bt wants it.
#[test]
fn strings_are_kept_with_their_addresses() {
    let text = "tracepoint:syscalls:sys_enter_openat { @f[tid] = args.filename; @n = args.filename != 0; }
        tracepoint:syscalls:sys_exit_openat /@f[tid]/ {
            $f = @f[tid]; printf(\"%d %s %s %s\\n\", args.ret < 0, str(@f[tid]), str($f, 5), @f[tid]); delete(@f[tid]); }";
    lab::each_backend(|user| {
        let asked = if let User::Ptrace = user { "ptrace" } else { "kernel" };
        let out = run(User::Me, &["-q", "--backend", asked, "-e", text, "-c", "cat /no/such/file"]);
        assert!(out.out().contains("1 /no/such/file /no/ /no/such/file\n"), "{asked}: {} {}", out.out(), out.stderr);
        assert!(out.out().ends_with("@n: 1\n") || out.out().ends_with("@n: true\n"), "{asked}: {}", out.out());
    });
    // Nothing says that this argument is the address of a string, but for how the map is read.
    let text = "uprobe:libc:getaddrinfo { @f[tid] = arg0; @n[tid] = arg0 + 1; }
        uretprobe:libc:getaddrinfo /@f[tid]/ { printf(\"%s %s\\n\", str(@f[tid]), str(@n[tid], 5)); clear(@f); clear(@n); }";
    let out = run(User::Me, &["-q", "-e", text, "-c", "getent ahosts localhost"]);
    assert!(out.out().contains("localhost ocal\n"), "{} {}", out.out(), out.stderr);
}

/// Registers, addresses of symbols, probes at addresses: what the file says is what the process has.
#[test]
fn registers_and_addresses_are_those_of_the_process() {
    let Some(program) = testkit::compile("gcc", "bt_uprobe_test", "bt/uprobe_test.c", &["-O0", "-g"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let of = |at: &str, text: &str| script(User::Me, &format!("uprobe:{program}:{at} {{ {text} exit(); }}"), &program);
    let text = "printf(\"%lx %lx %s %s %d\\n\", *uaddr(\"GLOBAL_A\"), *uaddr(\"GLOBAL_C\"), usym(uaddr(\"function2\")), usym(reg(\"ip\")), uaddr(\"function1\") == reg(\"rip\"));";
    assert_eq!(of("function1", text), "55555555 33333333 function2 function1 1\n\n\n");
    // In the kernel too, and inside of a function.
    let text = "@n = sum(*(uint32 *)(reg(\"di\") + 0)); @far = max(reg(\"ip\") - (uint64)uaddr(\"function1\"));";
    assert_eq!(of("function1", text), "\n\n@far: 0\n@n: 13\n");
    assert_eq!(of("function1+4", text).lines().find(|l| l.starts_with("@far")), Some("@far: 4"));
    let listed = lab::run(&mut lab::as_user(User::Me, &["nm", &program])).out();
    let line = listed.lines().find(|l| l.ends_with(" function1")).expect("a symbol");
    let at = format!("0x{}", line.split(' ').next().expect("an address").trim_start_matches('0'));
    let text = "printf(\"%s %d %d\\n\", probe, *arg0, arg1);";
    let text = text.replace("*arg0", "*(int32 *)arg0");
    assert_eq!(of(&at, &text), format!("uprobe:{program}:{at} 13 120\n\n\n"));
    for (text, says) in [
        (format!("uprobe:{program}:{at}1 {{ }}"), "a breakpoint would break the program"),
        (
            format!("uretprobe:{program}:0x{:x} {{ }}", u64::from_str_radix(&at[2..], 16).expect("hex") + 4),
            "no function begins",
        ),
        (format!("uprobe:{program}:main {{ @ = uaddr(\"no_such\"); }}"), "the address of 'no_such' is not known at"),
        (format!("uretprobe:{program}:main {{ @ = uaddr(\"main\"); }}"), "the address of 'main' is not known at"),
        (format!("uprobe:{program}:main {{ @ = reg(\"pc\"); }}"), "'pc' is no register"),
        ("syscall:read { @ = reg(\"ip\"); }".into(), "'reg(\"ip\")' is not known at syscall:read"),
        ("begin { @ = kaddr(\"no_such_symbol\"); }".into(), "no symbol of the kernel is 'no_such_symbol'"),
        ("begin { @ = cpid; }".into(), "'cpid' is not known at begin"),
    ] {
        let out = run(User::Me, &["-q", "-e", &text, "-c", "true"]);
        assert!(out.code() == 2 && out.stderr.contains(says), "{text}: {}", out.stderr);
    }
    if lab::is_root() {
        let text = "profile:hz:999 { @ip[reg(\"ip\") != 0] = count(); @[ksym(kaddr(\"vfs_read\"))] = count(); }";
        let out = script(User::Me, text, "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'");
        assert!(out.contains("@[vfs_read]: ") && out.contains("@ip[true]: ") && !out.contains("false"), "{out}");
    }
}

/// What an interval knows, and the process that was started.
#[test]
fn intervals_know_the_command_and_where_they_run() {
    lab::each_user(|user| {
        let text = "interval:ms:20 { @[cpid, numaid < 64]++; } process:exit { @same = pid == cpid; }";
        let out = script(user, text, "sleep 0.1");
        assert!(out.contains(", true]: ") && out.ends_with("@same: true\n") && !out.contains("@[0,"), "{out}");
    });
    if lab::kernel_backend_is_possible() && lab::is_root() {
        let text =
            "begin { @[cgroup, numaid] = 1; } tracepoint:syscalls:sys_enter_exit_group { @[cgroup, (uint32)0]++; }";
        let out = script(User::Me, text, "true");
        assert!(out.ends_with("]: 2\n"), "{out}");
        let text =
            "interval:ms:5 { printf(\"%s %d %d\\n\", curtask->comm, curtask->flags != 0, *(uint64 *)8); exit(); }";
        let out = run(User::Me, &["-q", "-e", text]);
        assert_eq!((out.out().as_str(), out.stderr.as_str()), ("trapline 1 0\n\n\n", ""));
    }
}

#[test]
fn objects_of_the_kernel_are_walked_over() {
    let text = "iter:task /ctx->task->pid == pid/ { printf(\"%s\\n\", ctx->task->comm); @tasks++; }
        iter:task_file /args.task->pid == pid && ctx->fd < 3/ { @files[ctx->fd] = ctx->file != 0; }
        iter:task_vma /ctx->task->pid == pid/ { @is_mapped = ctx->vma->vm_start < ctx->vma->vm_end; }
        end { printf(\"end\\n\"); }";
    if !lab::kernel_backend_is_possible() || !lab::is_root() {
        return testkit::skip("kernel", "no kernel backend, or not root");
    }
    let out = run(User::Me, &["-e", text]);
    let expected =
        "trapline\nend\n\n\n@files[0]: true\n@files[1]: true\n@files[2]: true\n@is_mapped: true\n@tasks: 1\n";
    assert_eq!((out.out().as_str(), out.stderr.as_str()), (expected, "Attached 4 probes\n"));
    let out = run(User::Me, &["-q", "-e", "iter:task { @ = count(); exit(7); } interval:1s { printf(\"x\"); }"]);
    assert_eq!((out.code(), out.out().as_str()), (7, "\n\n@: 1\n"), "{}", out.stderr);
    for (user, args, says) in [
        (User::Me, &["run", "-e", "iter:no_such { }"][..], "no such objects (they are task, task_file, task_vma)"),
        (User::Me, &["run", "-e", "iter:task { print(ctx->fd); }"], "'iter:task' has no argument 'fd'"),
        (User::Me, &["trace", "-e", "iter:task { exit(); }", "true"], "objects of the kernel are no events"),
        (User::Nobody, &["run", "-e", "iter:task { exit(); }"], "objects of the kernel are for root"),
    ] {
        let out = lab::run(&mut lab::trapline(user, args));
        assert!(out.code() == 2 && out.stderr.contains(says), "{args:?}: {}", out.stderr);
    }
}

/// Loops whose rounds are known, arguments on the stack, and what control groups are called.
#[test]
fn arrays_are_walked_and_words_of_the_stack_are_read() {
    let Some(walk) = testkit::compile("gcc", "bt_struct_walk", "bt/struct_walk.c", &["-O0", "-g"]) else { return };
    let Some(stack) = testkit::compile("gcc", "bt_stack_args", "bt/stack_args.c", &["-O0", "-g"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let text = format!(
        "struct C {{ uint32_t a; uint64_t b; }} uprobe:{walk}:clear {{ $c = (struct C *)arg0; @p = $c; @first = @p->b;
            for ($i : 0..9) {{ if ($i == 7) {{ break; }} @a += $c->a; $c++; }} }}"
    );
    assert_eq!(
        script(User::Me, &text, &walk).split_once("@p: ").map(|parts| parts.0),
        Some("\n\n@a: 21\n@first: 100\n")
    );
    let text = format!("uprobe:{stack}:too_many_args {{ printf(\"%d %d\\n\", sarg0, sarg1); }}");
    assert_eq!(script(User::Me, &text, &stack), "32 64\n\n\n");
    let out = run(
        User::Me,
        &[
            "-q",
            "-e",
            "begin { printf(\"%s|%s|%s\\n\", cgroup_path(1), cgroup_path(1, \"x\"), str($1 + 2)); exit(); }",
            "hello",
        ],
    );
    let text = out.out();
    let root = std::path::Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    assert!(text.trim_end().ends_with("||llo") && (!root || text.starts_with("unified:/")), "{text}");
}

#[test]
fn commands_run_where_they_are_allowed() {
    let text =
        "begin { printf(\"a\\n\"); system(\"echo %d '%s'; echo x >&2\", 5, \"b c\"); printf(\"d\\n\"); exit(); }";
    lab::each_user(|user| {
        let out = run(user, &["-q", "--unsafe", "-e", text]);
        assert_eq!((out.code(), out.out().as_str(), out.stderr.as_str()), (0, "a\n5 b c\nd\n\n\n", "x\n"));
        let out = run(user, &["-q", "-e", text]);
        assert!(out.code() == 2 && out.stderr.contains("HINT: allow it with --unsafe"), "{}", out.stderr);
    });
    let out = run(User::Me, &["-q", "--unsafe", "-f", "json", "-e", "begin { system(\"echo a\"); exit(); }"]);
    assert_eq!(out.out(), "{\"type\": \"syscall\", \"data\": \"a\\n\"}\n", "{}", out.stderr);
}

/// What is printed and cleared while it is counted adds up to all that has happened; and so does what two processors count.
#[test]
fn nothing_is_counted_twice_or_lost() {
    let Some(program) = testkit::compile("gcc", "script_calls", "script_calls.c", &["-O1", "-pthread"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let text = "tracepoint:syscalls:sys_enter_getppid { @a = count(); @b++; @c[tid] = stats(1); @h[comm] = hist(args.__syscall_nr); }
        interval:ms:10 { print(@a); clear(@a); } end { printf(\"rest\\n\"); }";
    let out = script(User::Me, text, &format!("{program} 200000 2"));
    let counts = out.lines().filter_map(|l| l.strip_prefix("@a: ")?.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), 400_000, "{out}");
    assert!(
        out.contains("@b: 400000\n") && out.matches("{ .count = 200000, .average = 1, .total = 200000 }").count() == 2,
        "{out}"
    );
    assert!(out.contains("[64, 128)         400000 |@"), "{out}");
    // A map that is full refuses new keys, and says so.
    let text = "tracepoint:syscalls:sys_enter_getppid { @[nsecs] = count(); }";
    let out = run(User::Me, &["-q", "--config", "max_map_keys=10", "-e", text, "-c", &format!("{program} 100 1")]);
    assert!(out.stderr.contains("@: full: 90 new keys were refused"), "{}", out.stderr);
    assert_eq!(out.out().matches("]: 1\n").count(), 10, "{}", out.out());
}

#[test]
fn maps_are_printed_when_sigusr1_asks() {
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let seen = dir.join("seen");
        let text = "begin { @a = 1; print(@a); }";
        for more in [&[][..], &["-c", "sleep 10"]] {
            let out = [&["run", "-q", "-e", text, "-o", seen.to_str().expect("UTF-8")], more].concat();
            let mut running = lab::start(&mut lab::trapline(user, &out));
            let holds = |want: &str| std::fs::read_to_string(&seen).is_ok_and(|have| have == want);
            lab::until("begin has run", || holds("@a: 1\n"));
            lab::kill("USR1", running.pid().into());
            lab::until("the map is printed", || holds("@a: 1\n@a: 1\n"));
            running.must_run();
            lab::kill("TERM", running.pid().into());
            running.end();
            let _ = std::fs::remove_file(&seen);
        }
    });
}

#[test]
fn clauses_run_at_signals_of_trapline() {
    lab::each_user(|user| {
        let dir = lab::scratch();
        testkit::open_to_all(&dir, 0o777);
        let seen = dir.join("seen");
        let text = "begin { printf(\"ready\\n\"); } self:signal:SIGUSR1 { @n++; printf(\"%s %d\\n\", probe, @n); }
            self:signal:SIGUSR1 /@n == 2/ { exit(3); }";
        for more in [&[][..], &["-c", "sh -c 'exec sleep 10 >/dev/null 2>&1'"]] {
            let out = [&["run", "-q", "-e", text, "-o", seen.to_str().expect("UTF-8")], more].concat();
            let running = lab::start(&mut lab::trapline(user, &out));
            let holds = |want: &str| std::fs::read_to_string(&seen).is_ok_and(|have| have == want);
            lab::until("begin has run", || holds("ready\n"));
            lab::kill("USR1", running.pid().into());
            lab::until("the clause has run", || holds("ready\nself:signal:SIGUSR1 1\n"));
            lab::kill("USR1", running.pid().into());
            assert_eq!(running.end().code(), 3);
            assert!(holds("ready\nself:signal:SIGUSR1 1\nself:signal:SIGUSR1 2\n\n\n@n: 2\n"));
            let _ = std::fs::remove_file(&seen);
        }
    });
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

/// A script of the whole machine that needs no more than its events has no programs but those of its probes.
#[test]
fn tasks_are_followed_where_a_clause_asks_for_them() {
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let programs = |reads: &str, ends: &str| {
        let text = format!("tracepoint:raw_syscalls:sys_enter {{ printf(\"%d {reads}\\n\", pid{ends}); exit(); }}");
        let out = run(User::Me, &["--explain=programs", "-e", &text]);
        assert_eq!(out.code(), 0, "{}", out.stderr);
        out.stderr.lines().filter(|l| l.contains("program of")).count()
    };
    assert_eq!(programs("%s %d %s %s", ", comm, uid, username, kstack(2)"), 1);
    assert!(programs("%s", ", ustack(2)") > 1);
    let of_processes =
        "begin { @n = 0; } process:exec { @n++; } tracepoint:raw_syscalls:sys_enter /@n > 3/ { exit(); }";
    let mut running =
        lab::start(lab::trapline(User::Me, &["run", "-q", "-e", of_processes]).stdout(std::process::Stdio::null()));
    lab::until("programs are seen", || {
        let _ = std::process::Command::new("true").status();
        running.child.try_wait().expect("wait").is_some()
    });
    assert!(programs("%s", ", usym(args.id)") > 1);
}

/// Events that no clause wants take no room in rings; what a script shows is the same as where it decides that by itself.
#[test]
fn what_no_predicate_wants_is_not_reported() {
    let Some(program) = testkit::compile("gcc", "script_calls", "script_calls.c", &["-O1", "-pthread"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let ends =
        "tracepoint:raw_syscalls:sys_enter /args.id == 231 && uid >= 0/ { printf(\"%d %s\\n\", args.id, comm); }";
    let out = run(User::Me, &["-q", "--buffer", "16K", "-e", ends, "-c", &format!("{program} 200000 2")]);
    assert_eq!((out.out().as_str(), out.stderr.as_str()), ("231 script_calls\n\n\n", ""));
    let out = run(User::Me, &["--explain", "-e", ends, "-c", "true"]);
    assert!(out.stderr.contains("predicates: in its program, before"), "{}", out.stderr);
    let clauses = |more: &str| {
        let text = format!(
            "tracepoint:raw_syscalls:sys_enter /args.id % 111 == 110 {more}/ {{ printf(\"a %d\\n\", args.id); @n++; }}
             tracepoint:raw_syscalls:sys_enter /pid > 1 && (args.id > 250 || args.id < 0 || gid == -1) {more}/ {{ printf(\"b %d\\n\", args.id); }}"
        );
        script(User::Me, &text, &format!("{program} 20 1"))
    };
    let decided = clauses("");
    assert!(decided.contains("a 110\n") && decided.contains("b 257\n") && decided.contains("@n: 20\n"), "{decided}");
    assert_eq!(decided, clauses("&& nsecs > 0"));
}

/// A program that the kernel refuses, for its size or by its verifier, costs a line: its clauses run over events, and give the same.
#[test]
fn what_the_kernel_refuses_runs_in_trapline() {
    let Some(program) = testkit::compile("gcc", "script_calls", "script_calls.c", &["-O1", "-pthread"]) else { return };
    if !lab::kernel_backend_is_possible() {
        return testkit::skip("kernel", "no kernel backend");
    }
    let command = format!("{program} 20 1");
    let text = |more: &str| {
        format!(
            "tracepoint:raw_syscalls:sys_enter /args.id == 110/ {{ @n[comm] = count(); @s = sum(args.id); {more} }}
             tracepoint:raw_syscalls:sys_exit /args.id == 110/ {{ @n[comm] = count(); }}"
        )
    };
    let expected = script(User::Me, &text(""), &command);
    assert_eq!(expected, "\n\n@n[script_calls]: 40\n@s: 2200\n");
    let others = |first: u64| {
        (0..45).map(|k| format!("gid == {}", 3_000_000_000u64 + first + k)).collect::<Vec<_>>().join(" || ")
    };
    let jumps = (0..200).map(|n| format!("if ({}) {{ @s = sum(1); }}", others(45 * n))).collect::<String>();
    let long = (0..3000).map(|n| format!("if (args.id == {n} + 100000) {{ @n[comm] = count(); }}")).collect::<String>();
    let file = lab::scratch().join("script.bt");
    for (more, why) in [(jumps, "jumps is too complex"), (long, "is out of range")] {
        std::fs::write(&file, text(&more)).expect("a script");
        let out = run(User::Me, &["--explain", file.to_str().expect("UTF-8"), "-c", &command]);
        assert_eq!((out.code(), out.out()), (0, expected.clone()), "{}", out.stderr);
        let says = |start: &str, middle: &str| {
            out.stderr.lines().filter(|l| l.starts_with(start) && l.contains(middle)).count()
        };
        let start = "trapline: tracepoint:raw_syscalls:sys_enter: its clauses run in trapline, over its events: the kernel refuses";
        assert_eq!(says(start, why), 1, "{}", out.stderr);
        let place = format!("trapline: {}:", file.display());
        let there = "sys_enter: in trapline, over the events of its probes: the kernel refuses its program";
        assert_eq!((says(&place, there), says(&place, "sys_exit: in the kernel")), (1, 1), "{}", out.stderr);
    }
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

/// Other files are imported once, with the folder of the importing one, and messages name them; tests are those of the script alone.
#[test]
fn scripts_have_libraries_and_tests() {
    let dir = lab::scratch();
    std::fs::create_dir(dir.join("more")).expect("a folder");
    let put = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("a file");
    put("lib.bt", "#define BIG 100\nimport \"more/types.h\";\nfn big($n : int64) : bool { return $n > BIG; }\n");
    put("more/types.h", "import \"../lib.bt\";\nstruct pair { int a; int b; };\n");
    let body = "begin { print((a = big(101), b = sizeof(struct pair))); errorf(\"oops\\n\"); }";
    put("main.bt", &format!("import \"lib.bt\";\nimport \"more/types.h\";\n{body}\nbegin {{ exit(); }}\n"));
    let run = |user: User, args: &[&str]| lab::run(lab::trapline(user, args).current_dir(&dir));
    for user in [User::Me, User::Nobody] {
        let out = run(user, &["run", "-q", "main.bt"]);
        assert_eq!((out.code(), out.out().as_str()), (0, "{ .a = true, .b = 8 }\n\n\n"), "{}", out.stderr);
        assert!(out.stderr.contains("main.bt:3:57-73: ERROR: oops"), "{}", out.stderr);
    }
    put("wrong.bt", "import \"lib.bt\";\nimport \"more/none.h\";\nbegin { }");
    let out = run(User::Me, &["run", "wrong.bt"]);
    assert!(
        out.code() == 125 && out.stderr.contains("wrong.bt:2:1: import \"more/none.h\": No such file"),
        "{}",
        out.stderr
    );

    let tests = "import \"lib.bt\";
test:right { @[1] = 2; assert(big(101)); assert(len(@) == 1); }
test:wrong { print(41); assert(big(1), \"one is small\"); print(42); }
test:unknown { $z = 0; print(1 / $z); }
bench:map { @[rand % 10] = count(); }
begin { print(\"not run\"); }
";
    put("test.bt", tests);
    let out = run(User::Nobody, &["test", "test.bt"]);
    let text = out.out();
    let (before, after) = text.split_once("bench:map ... ").expect("a benchmark");
    let said = "test.bt: test:right ... ok
test.bt: test:wrong ... FAILED
    41
    test.bt:3:25-55: ERROR: assertion failed: one is small
test.bt: test:unknown ... FAILED
    1
    test.bt:4:30-36: a division by zero, whose result is 1 (1 times)
test.bt: ";
    assert_eq!((out.code(), before), (1, said), "{}", out.stderr);
    let (took, rest) = after.split_once(' ').expect("a time");
    assert!(
        took.parse::<f64>().is_ok_and(|ns| ns > 0.0) && rest == "ns a run\n3 tests, 2 failed, 1 benchmark\n",
        "{text}"
    );
    put("good.bt", "test:good { assert(1); }");
    assert_eq!(run(User::Me, &["test", "good.bt"]).code(), 0);
    for (file, says) in [("main.bt", "main.bt: it has no tests"), ("none.bt", "none.bt: No such file")] {
        let out = run(User::Me, &["test", file]);
        assert!(out.code() == 125 && out.stderr.contains(says), "{}", out.stderr);
    }
}

#[test]
fn operations_that_fail_are_said() {
    let text = "struct foo { int a; }; begin { @a[1] = 1; delete(@a[2]); print(@a[3]); @b = @a[3]; $x = ((struct foo *)8)->a; exit(); }";
    let run = |user, options: &[&str]| {
        let words = [&["run", "-e", text, "--config", "print_maps_on_exit=false"], options].concat();
        lab::run(&mut lab::trapline(user, &words))
    };
    let deleted = "stdin:1:43-56: WARNING: Failed to map_delete_elem: No such file or directory (-2)";
    let out = run(User::Nobody, &[]);
    assert_eq!((out.code(), out.stderr.trim()), (0, "Attached 1 probe"));
    let out = run(User::Nobody, &["-k"]);
    assert_eq!((out.code(), out.stderr.contains(deleted)), (0, true), "{}", out.stderr);
    assert!(!out.stderr.contains("lookup"), "{}", out.stderr);
    let out = run(User::Nobody, &["-kk"]);
    let read = "Failed to map_lookup_elem: 0\n";
    assert!(out.stderr.contains(deleted) && out.stderr.contains(read), "{}", out.stderr);
    assert!(out.stderr.contains("Failed to probe_read: Bad address (-14)"), "{}", out.stderr);
    let out = run(User::Nobody, &["-kk", "-q", "-f", "json"]);
    let line =
        "{\"type\": \"helper_error\", \"helper\": \"map_delete_elem\", \"retcode\": -2, \"line\": 1, \"col\": 43}";
    assert_eq!(out.out().lines().next(), Some(line));
    let full = "begin { @[1] = 1; @[2] = 1; exit(); }";
    let words = ["run", "-k", "-e", full, "--config", "max_map_keys=1"];
    let out = lab::run(&mut lab::trapline(User::Nobody, &words));
    assert!(out.stderr.contains("WARNING: Failed to map_update_elem: Argument list too long (-7)"), "{}", out.stderr);
}

#[test]
fn memory_of_events_that_is_not_there_is_said() {
    let Some(p) = super::probes::tools("hits") else { return };
    let text = format!("uprobe:{p}:rare {{ printf(\"%s\", str(arg0)); }}");
    let out = lab::run(&mut lab::trapline(User::Me, &["run", "-kk", "-e", &text, "-c", &format!("{p} flood 1 2")]));
    let said = out.stderr.matches("Failed to probe_read: Bad address (-14)").count();
    assert_eq!((out.code(), said), (0, 2), "{}", out.stderr);
}

#[test]
fn addresses_are_watched_until_they_are_not() {
    let Some(p) = super::probes::tools("hits") else { return };
    let text = "watchpoint:given+arg1:8:w { @n = count(); @last = args.value; if (args.value == 2) { unwatch(args.addr); } } end { printf(\"%d %d\\n\", (int64)@n, @last); }";
    let of = |text: &str, mode: &str| {
        let words = ["run", "-q", "--config", "print_maps_on_exit=false", "-e", text, "-c", &format!("{p} {mode}")];
        lab::run(&mut lab::trapline(User::Me, &words))
    };
    let out = of(text, "given 1");
    assert_eq!(out.code(), 0, "{}", out.stderr);
    if out.stderr.contains("debug registers") {
        return lab::skip("debug registers", out.stderr.trim());
    }
    // It may take trapline some time to come to the event.
    assert!(["2 2", "3 12"].contains(&out.out().trim()), "{}", out.out());
    let text = text.replace("watchpoint", "asyncwatchpoint");
    let out = of(&text, "given 1");
    assert_eq!(out.code(), 0, "{}", out.stderr);
}

#[test]
fn the_context_of_programs_has_an_address() {
    let Some(p) = super::probes::tools("hits") else { return };
    // Of `struct pt_regs`, the first argument is at 112 (rdi).
    let text = format!(
        "struct registers {{ uint64 before[14]; uint64 di; }}; uprobe:{p}:rare {{ @[((struct registers *)ctx)->di == arg0] = count(); @c[ctx != 0] = count(); }}"
    );
    let out = script(User::Me, &text, &format!("{p} flood 1 3"));
    assert_eq!(out.trim(), "@[true]: 3\n@c[true]: 3");
    let words = ["run", "-e", "profile:hz:99 { print(ctx); }", "-c", "true"];
    let out = lab::run(&mut lab::trapline(User::Me, &words));
    assert!(out.code() == 2 && out.stderr.contains("'ctx' is not known at profile:hz:99"), "{}", out.stderr);
}
