//! Scripts that read memory, walk objects, and use names of this machine.

use crate::lab::{self, User};
use crate::scripts::{run, script};

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
