//! `trapline list` of every provider.

use crate::lab::{self, Outcome, User, each_user};

fn list(user: User, args: &[&str]) -> Outcome {
    lab::run(&mut lab::trapline(user, &[&["list"], args].concat()))
}

/// Lists what must be there.
#[track_caller]
fn found(user: User, args: &[&str]) -> String {
    let out = list(user, args);
    assert_eq!(out.code(), 0, "{args:?}: {}", out.stderr);
    out.out()
}

/// Lists what must not be there: exit status and message.
fn missing(user: User, pattern: &str) -> (i32, String) {
    let out = list(user, &[pattern]);
    assert_eq!(out.out(), "");
    assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
    (out.code(), out.stderr)
}

#[test]
fn every_provider_is_listed_by_its_name() {
    each_user(|user| {
        assert_eq!(found(user, &["begin"]), "begin\n");
        assert_eq!(found(user, &["end"]), "end\n");
        assert_eq!(found(user, &["profile:hz:99"]), "profile:hz:99\n");
        assert_eq!(found(user, &["interval"]), "interval:hz:N\ninterval:ms:N\ninterval:s:N\ninterval:us:N\n");
        assert!(found(user, &["-v", "profile:ms:10"]).contains("every 10000000 ns"));
        assert_eq!(found(user, &["software:minor*:7"]), "software:minor-faults:7\n");
        assert_eq!(found(user, &["watchpoint:4096:8:wr"]), "watchpoint:0x1000:8:rw\n");
        assert!(found(user, &["-v", "watchpoint:0x1000:2:w"]).contains("(void *addr, uint16 value)"));
        let forms = "watchpoint:ADDR:LEN:MODE\nwatchpoint:PATH:FUNCTION+argN:LEN:MODE\n";
        assert_eq!(found(user, &["watchpoint"]), forms);
        assert_eq!(found(user, &["syscall"]), found(user, &[]));
        assert_eq!(found(user, &["syscall:dup?"]), "syscall:dup2\nsyscall:dup3\n");
        assert!(missing(user, "function").1.contains("trapline list 'uprobe:PROGRAM:*'"));
        let any = found(user, &["*:*minor*"]);
        assert!(any.contains("software:minor-faults:COUNT\n"), "{any}");
    });
}

#[test]
fn functions_and_static_probes_of_a_program() {
    let Some(exe) = lab::program("probes") else { return };
    each_user(|user| {
        let pattern = format!("uprobe:{exe}:work*");
        assert_eq!(found(user, &[&pattern]), format!("uprobe:{exe}:worked\n"));
        let verbose = found(user, &["-v", &pattern]);
        assert!(verbose.starts_with(&format!("uprobe:{exe}:worked(long arg0, ")), "{verbose}");
        assert_eq!(found(user, &[&format!("uretprobe:{exe}:main")]), format!("uretprobe:{exe}:main\n"));
        assert_eq!(found(user, &["-v", &format!("usdt:{exe}")]).lines().count(), 2);
        let step = found(user, &["-v", &format!("usdt:{exe}:lab:st*")]);
        let want =
            format!("usdt:{exe}:lab:step(int32 arg0, uint64 arg1, int32 arg2)  with a semaphore, file offset 0x");
        assert!(step.starts_with(&want), "{step}");
        let chosen = found(user, &["-v", &format!("uprobe:{exe}:chosen")]);
        assert!(chosen.contains("this code only selects the function"), "{chosen}");
        let (code, said) = missing(user, &format!("uprobe:{exe}:wroked"));
        assert!(code == 2 && said.contains(&format!("uprobe:{exe}:worked")), "{said}");
        let (code, said) = missing(user, &format!("usdt:{exe}:lab:stop"));
        assert!(code == 2 && said.contains("lab:step"), "{said}");
    });
}

/// Addresses of functions, as nm gives them, and those of static probes, as readelf does.
#[test]
fn places_are_those_that_other_tools_find() {
    let Some(exe) = lab::program("probes") else { return };
    if !lab::has("readelf") || !lab::has("nm") {
        return lab::skip("package:binutils", "no readelf or nm");
    }
    let text = |program: &str, args: &[&str]| {
        let argv: Vec<&str> = [&[program], args, &[&exe]].concat();
        lab::run(&mut lab::as_user(User::Me, &argv)).out()
    };
    let hex = |s: &str| u64::from_str_radix(s.trim_start_matches("0x").trim_end_matches(','), 16).expect("hex");
    // The segment with the code: where it lies in memory and in the file.
    let segments = text("readelf", &["-lW"]);
    let code: Vec<&str> = segments
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .find(|w| w.first() == Some(&"LOAD") && w.contains(&"E"))
        .expect("a segment with code");
    let moved = hex(code[2]) - hex(code[1]);
    let offset_of = |pattern: &str| {
        let line = found(User::Me, &["-v", pattern]);
        hex(line.trim().rsplit(' ').next().expect("a place")) + moved
    };
    let symbols = text("nm", &[]);
    let worked = symbols.lines().find(|l| l.ends_with(" T worked")).expect("worked");
    assert_eq!(offset_of(&format!("uprobe:{exe}:worked")), hex(&worked[..16]));
    let notes = text("readelf", &["-n"]);
    let at = notes.split("Name: plain").nth(1).expect("the note").split("Location: ").nth(1).expect("its place");
    let at = at.split_whitespace().next().expect("an address");
    assert_eq!(offset_of(&format!("usdt:{exe}:lab:plain")), hex(at));
}

#[test]
fn tracepoints_with_and_without_tracefs() {
    each_user(|user| {
        // Root reads it where it is not mounted, too.
        let readable = user == User::Me && lab::is_root();
        if readable {
            let switch = found(user, &["-v", "tracepoint:sched:sched_switch"]);
            assert!(switch.contains("char prev_comm[16], pid_t prev_pid"), "{switch}");
            assert!(found(user, &["tracepoint:sched:*"]).lines().count() > 5);
            let (code, said) = missing(user, "tracepoint:sched:sched_swich");
            assert!(code == 2 && said.contains("tracepoint:sched:sched_switch"), "{said}");
            let (_, said) = missing(user, "tracepoint:shced:x");
            assert!(said.contains("tracepoint:sched:*"), "{said}");
        } else if std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            let switch = found(user, &["-v", "tracepoint:sched:sched_switch"]);
            assert!(switch.starts_with("tracepoint:*:sched_switch(bool preempt, struct task_struct *prev"), "{switch}");
            let (code, said) = missing(user, "tracepoint:sched:*");
            assert!(code == 125 && said.contains("tracefs"), "{said}");
        } else {
            lab::skip("kernel:btf", "neither tracefs nor the kernel's types can be read");
        }
    });
}

#[test]
fn counters_of_the_processor_and_whether_it_has_any() {
    each_user(|user| {
        let out = list(user, &["hardware:branch*:7"]);
        assert_eq!((out.code(), out.out().as_str()), (0, "hardware:branch-instructions:7\nhardware:branch-misses:7\n"));
        assert_eq!(list(user, &["hardware:cycles:5"]).out(), "hardware:cpu-cycles:5\n");
        let missing = "trapline: hardware: this machine has no hardware counters: its probes cannot be enabled here\n";
        let wanted = if sys::perf::has_hardware_counters() { "" } else { missing };
        assert_eq!(out.stderr, wanted);
    });
}

#[test]
fn raw_tracepoints_have_typed_arguments() {
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return lab::skip("kernel:btf", "no types of the kernel");
    }
    each_user(|user| {
        let switch = found(user, &["-v", "rawtracepoint:sched_switch"]);
        assert!(switch.starts_with("rawtracepoint:sched_switch(bool arg0, struct task_struct *arg1, "), "{switch}");
        let root = user == User::Me && lab::is_root();
        assert_eq!(!switch.contains("for root only"), root, "{switch}");
        let (code, said) = missing(user, "rawtracepoint:sched_swich");
        assert!(code == 2 && said.contains("rawtracepoint:sched_switch"), "{said}");
    });
}

#[test]
fn functions_of_the_kernel() {
    if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        return lab::skip("kernel:btf", "no types of the kernel");
    }
    each_user(|user| {
        let entry = "(struct file *file, char *buf, size_t count, loff_t *pos";
        // It is said of whoever may not see it.
        let whose = match user {
            User::Me if lab::is_root() => "",
            _ => "  for root only: it shows the kernel or other users' tasks",
        };
        assert_eq!(found(user, &["-v", "fentry:vfs_read"]), format!("fentry:vfs_read{entry}){whose}\n"));
        assert_eq!(found(user, &["-v", "fexit:vfs_read"]), format!("fexit:vfs_read{entry}, ssize_t retval){whose}\n"));
        let kprobes = std::path::Path::new("/sys/bus/event_source/devices/kprobe").exists();
        let out = list(user, &["kretprobe:vfs_rea?"]);
        assert_eq!(out.out(), "kretprobe:vfs_read\n");
        assert_eq!(out.stderr.is_empty(), kprobes, "{}", out.stderr);
        let (code, said) = missing(user, "fentry:vfs_raed");
        assert!(code == 2 && said.contains("fentry:vfs_read"), "{said}");
    });
}

#[test]
fn what_is_no_probe_is_an_error_that_helps() {
    each_user(|user| {
        for (pattern, code, words) in [
            ("tracepiont:a:b", 2, "did you mean tracepoint"),
            ("uprobe:*", 2, "uprobe:PATH:SYMBOL"),
            ("uprobe:/no/such/file:main", 125, "check the path"),
            ("uprobe:/dev/zero:main", 125, "not a file"),
            ("uprobe:/etc/passwd:main", 125, "not an ELF"),
            ("profile:hz:0", 2, "at most"),
            ("profile:day:1", 2, "profile:"),
            ("software:page-fault:1", 2, "software:page-faults"),
            ("software:page-faults:x", 2, "software:EVENT:COUNT"),
            ("watchpoint:0x1000:3:w", 2, "watchpoint:ADDR:LEN:MODE"),
            ("watchpoint:0x1000:8:r", 2, "MODE rw"),
            ("begin:now", 2, "begin"),
            ("syscall:opennat", 2, "openat"),
        ] {
            let (status, said) = missing(user, pattern);
            assert!(status == code && said.contains(words), "{pattern}: {status} {said}");
        }
    });
}
