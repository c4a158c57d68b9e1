//! Clauses of functions that only collect: in the process, over the records of its threads, or over events, they collect the same.

use crate::injected;
use crate::lab::{self, User};
use crate::scripts::{run, script};

/// Whether clauses take sums of each thread, its records, or each call as an event in the order of all, what they collect is the same.
#[test]
fn calls_that_are_only_collected_are_those_that_are_seen_one_by_one() {
    let programs = ["jumps.c", "throws.cc", "forked_threads.c", "tail_chains.c"];
    // Each call of forked_threads.c is an event where they are seen one by one: it makes fewer than elsewhere.
    let flags = ["-DROUNDS=5"];
    for program in programs.into_iter().filter_map(|s| testkit::compiled(&format!("collected_{s}"), s, &flags)) {
        let text = "function:* { @in[func, probe] = count(); } function:* { @all = count(); }
            function:*:return /pid != tid/ { @out[func] = count(); } function:*:return { @took = sum(dur / 100s); }
            function:*:return { @n[func] = stats(dur / 100s); } function:*:return { @h[func] = hist(dur / 100s); }
            function:*:return { @least[func] = min(dur / 100s); } function:*:return { @most = max(dur / 100s); }";
        let records = format!("{text} function:*:return {{ @shifted = sum(dur >> 62); }}");
        lab::each_user(|user| {
            for text in [text, &records] {
                let one_by_one = format!("{text} function:main {{ printf(\"\"); }}");
                let (all, seen) = (script(user, text, &program), script(user, &one_by_one, &program));
                assert!(all.contains("@in[main, function:*]: 1") && all == seen, "{program}: {all}{seen}");
            }
        });
    }
    let explained = |text: &str| {
        let command = ["run", "-q", "--explain", "-e", text, "-c", "/bin/true"];
        lab::run(&mut lab::trapline(User::Me, &command)).stderr
    };
    let (sums, records) = ("in the process, in rows of each thread", "over the records of each thread");
    for (text, how) in [
        ("function:* { @[tid] = count(); } interval:s:1 { print(@); }", Some(sums)),
        ("function:*:return { @[func] = hist(dur / 1us); } function:* { @n = count(); }", Some(sums)),
        ("function:*:return { @[func] = hist(dur, 2); }", Some(records)),
        ("function:*:return { @a = sum(dur); } function:*:return { @b = sum(dur / 1us); }", Some(records)),
        ("function:* { @[comm] = count(); }", None),
        ("function:* { @ = count(); } process:exec { exit(); }", None),
    ] {
        let said = explained(text);
        assert_eq!(how, [sums, records].into_iter().find(|how| said.contains(how)), "{text}: {said}");
    }
}

/// Sums are those of the calls that the program has made, and an interval has what was added since the last one.
#[test]
fn sums_of_functions_are_exact_and_go_on_while_the_program_runs() {
    let Some(program) = testkit::compiled("summed_fib", "fib.c", &["-O1", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    // fib(24) makes 150,049 calls: 2 * fib(25) - 1.
    let text = "function:fib { @in[func] = count(); } function:fib:return { @h = hist(dur); }
        function:fib:return { @n = stats(dur); } function:fib:return { @least = min(dur); }";
    lab::each_user(|user| {
        let out = script(user, text, &format!("{program} 24"));
        assert!(out.contains("@in[fib]: 150049") && out.contains("@n: { .count = 150049, "), "{out}");
        let buckets = out.lines().filter(|l| l.starts_with('[')).filter_map(|l| l.split(')').nth(1));
        let counts = buckets.filter_map(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        assert_eq!(counts.sum::<u64>(), 150_049, "{out}");
        let each = "function:fib { @ = count(); } interval:ms:20 { @sum += (int64)@; clear(@); } end { @sum += (int64)@; clear(@); }";
        let in_parts = script(user, each, &format!("{program} 24"));
        assert!(in_parts.contains("@sum: 150049"), "{in_parts}");
    });
}

/// A program of processes and threads that end in every way, and how often it calls: the beginnings of calls, and their ends.
#[test]
fn processes_that_end_in_any_way_leave_what_they_have_counted() {
    let Some(program) = testkit::compiled("summed", "summed.c", &[]) else { return };
    let text = "function:work { @in[func] = count(); } function:deep { @in[func] = count(); } function:deep:return { @out[func] = count(); }
        function:work:return { @n = stats(dur / 100s); } function:work:return { @h = hist(dur / 100s); } function:forks:return { @forks++; }";
    // Six children; one has four threads, one executes the program once more. deep() returns in parent and child from each of three depths.
    let work = 1000 + 6 * (1000 + 10) + 4 * 1000 + 1000 + 16 * 1000;
    lab::each_user(|user| {
        let out = script(user, text, &program);
        for line in [
            format!("@in[work]: {work}\n"),
            format!("@n: {{ .count = {work}, "),
            format!("[0]                {work} |@"),
            "@in[deep]: 18\n".into(),
            "@out[deep]: 36\n".into(),
            "@forks: 12\n".into(),
        ] {
            assert!(out.contains(&line), "{line}: {out}");
        }
        let entries =
            script(user, "function:work { @ = count(); } function:work { @all[func, tid] = count(); }", &program);
        assert!(entries.contains(&format!("@: {work}\n")), "{entries}");
    });
}

/// A handler may interrupt what counts a call anywhere, and fork: then the thread has other rows.
#[test]
fn handlers_that_fork_lose_no_call() {
    let Some(program) = testkit::compiled("summed", "summed.c", &[]) else { return };
    for text in [
        "function:work { @in = count(); }",
        "function:work { @in = count(); } function:work:return { @out = count(); }",
    ] {
        for _ in 0..8 {
            let out = script(User::Me, text, &format!("{program} handlers"));
            let (printed, counted) = out.split_once('\n').expect("a line");
            let counts: Vec<&str> = counted.lines().filter_map(|l| Some(l.split_once(": ")?.1)).collect();
            assert!(
                counts.len() == text.matches("count()").count() && counts.iter().all(|n| *n == printed),
                "{text}: {out}"
            );
        }
    }
}

/// Libraries that come and go call functions of the program, which are those of scripts.
#[test]
fn libraries_that_come_and_go_call_what_is_counted() {
    let Some(program) = testkit::compiled("summed_with_libraries", "summed.c", &["-rdynamic"]) else { return };
    let Some(library) = testkit::compiled("summed_library.so", "summed_library.c", &["-shared", "-fPIC"]) else {
        return;
    };
    let text = "function:work { @in[func] = count(); } function:work:return { @n = stats(dur / 100s); }";
    lab::each_user(|user| {
        let out = script(user, text, &format!("{program} library {library}"));
        assert!(out.contains("@in[work]: 3000\n") && out.contains("@n: { .count = 3000, "), "{out}");
    });
}

/// What an interval prints are the calls until then; what it takes away is gone, once.
#[test]
fn intervals_take_what_was_added_since_the_last_one() {
    let Some(program) = testkit::compiled("summed_fib", "fib.c", &["-O1", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    for take in ["clear(@);", "delete(@);"] {
        let text = format!(
            "function:fib {{ @ = count(); }} function:fib:return {{ @h = hist(dur); }}
            interval:ms:20 {{ print(@h); @sum += (int64)@; {take} }} end {{ @sum += (int64)@; {take} }}"
        );
        let out = script(User::Me, &text, &format!("{program} 30"));
        // fib(30): 2 * fib(31) - 1.
        assert!(out.contains("@sum: 2692537\n"), "{take} {out}");
    }
}

/// Rows would outlive the session in a process that goes on.
#[test]
fn running_processes_have_records() {
    let Some(program) = injected::program() else { return };
    if !lab::may_attach(User::Me) {
        return;
    }
    let running = injected::started(User::Me, &[&program, "600", "2", "1000"]);
    let pid = running.pid().to_string();
    let text = "function:* { @[func] = count(); }";
    let out = run(User::Me, &["--explain", "-p", &pid, "--duration", "0.2", "-e", text]);
    assert!(out.code() == 0 && out.out().contains("@["), "{} {}", out.out(), out.stderr);
    assert!(out.stderr.contains("over the records of each thread"), "{}", out.stderr);
    injected::is_right(running);
}

/// Also while a call is counted or measured, the stack can be unwound from every instruction.
#[test]
fn the_stack_can_be_unwound_while_calls_are_counted() {
    for (name, flags) in [("summed_steps_1", &["-O1"][..]), ("summed_steps_2", &["-O2", "-fcf-protection"])] {
        let Some(program) = testkit::compile("gcc", name, "each_instruction.c", flags) else { return };
        for arguments in ["2", "2 known"] {
            for text in
                ["function:* { @ = count(); }", "function:* { @ = count(); } function:*:return { @h = hist(dur); }"]
            {
                let out = script(User::Me, text, &format!("{program} {arguments}"));
                assert!(
                    out.starts_with("20, of some hundred steps: yes, not unwound: 0\n"),
                    "{name} {arguments}: {out}"
                );
                assert!(out.contains("@: "), "{out}");
            }
        }
    }
}
