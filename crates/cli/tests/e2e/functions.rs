//! Functions of programs and libraries: where they may be probed, what they are called, what they take and return, and what is said of
//! those that are not there.

use crate::kernel::possible;
use crate::lab::{self, User};
use crate::probes::{Recorded, record, refused, tools};
use serde_json::Value;
use std::process::Stdio;

/// A program of any language, where functions can be probed.
#[track_caller]
fn built(name: &str, source: &str, flags: &[&str]) -> Option<String> {
    if possible() { lab::compiled(name, source, flags) } else { None }
}

/// What `trapline list` says: lines, or the error.
fn list(args: &[&str]) -> Result<Vec<String>, String> {
    let out = lab::run(&mut lab::trapline(User::Me, &[&["list"], args].concat()));
    match out.code() {
        0 => Ok(out.out().lines().map(str::to_string).collect()),
        _ => Err(out.stderr),
    }
}

/// What the program prints by itself.
fn alone(program: &str) -> String {
    lab::run(&mut lab::as_user(User::Me, &[program])).out()
}

fn strings(r: &Recorded, probe: &str, arg: &str) -> Vec<Value> {
    r.of(probe).iter().map(|e| e["args"][arg].clone()).collect()
}

/// Every offset into a function is refused, with the nearest that is not, or can be probed without harm.
#[test]
fn offsets_are_refused_inside_of_instructions_and_harmless_elsewhere() {
    let Some(p) = tools("typed") else { return };
    let want = alone(&p);
    for function in ["compute", "many", "half"] {
        let mut good = Vec::new();
        for offset in 0.. {
            let probe = format!("uprobe:{p}:{function}+{offset}");
            let said = match list(&[&probe]) {
                Ok(_) => {
                    good.push(probe);
                    continue;
                }
                Err(said) => said,
            };
            assert_eq!(said.lines().count(), 1, "{said}");
            if said.contains("the offset is outside") {
                break;
            }
            assert!(
                said.contains("would break the program") && said.contains("(the nearest instructions: +"),
                "{said}"
            );
        }
        assert!(good.len() > 3, "{good:?}");
        let (code, said) = refused(User::Me, &["-e", &format!("uprobe:{p}:{function}+1")]);
        let starts_there = good.contains(&format!("uprobe:{p}:{function}+1"));
        assert!(starts_there || code == 2 && said.contains("inside of an instruction"), "{said}");
        let all: Vec<&str> = good.iter().flat_map(|g| ["-e", g]).collect();
        let r = record(&all, &[&p]);
        assert_eq!(r.out.out(), want, "{function}: {}", r.out.stderr);
        assert!(r.count(&format!("uprobe:{p}:{function}+0"), "seen") > 0);
    }
}

/// Data that is jumped over, tables in the code, padding, no size: what is left can be probed, and the program works.
#[test]
fn what_is_no_code_takes_no_breakpoint() {
    let Some(p) = tools("odd_code") else { return };
    let good = |function: &str| -> Vec<u32> {
        (0..36).filter(|n| list(&[&format!("uprobe:{p}:{function}+{n}")]).is_ok()).collect()
    };
    assert_eq!(good("over"), [0, 6, 11]);
    // Behind the jump by a table in its own bytes, nothing is known to be code.
    assert_eq!(good("by_table"), [0, 7, 11, 14]);
    // Where the table is elsewhere, all of its places are.
    let switch = good("by_switch");
    assert!(switch.len() > 8, "{switch:?}");
    assert_eq!(good("unsized"), [0]);
    let said = list(&[&format!("uprobe:{p}:unsized+5")]).unwrap_err();
    assert!(said.contains("does not say how long"), "{said}");
    let all: Vec<String> = [("over", good("over")), ("by_table", good("by_table")), ("by_switch", switch)]
        .iter()
        .flat_map(|(f, offsets)| offsets.iter().map(|n| format!("uprobe:{p}:{f}+{n}")).collect::<Vec<_>>())
        .collect();
    let r = record(&["-e", &all.join(",")], &[&p]);
    assert_eq!(r.out.out(), alone(&p), "{}", r.out.stderr);
}

/// Linux carries some instructions of AVX out as others when a breakpoint is on them: they take none. Where the processor has no AVX,
/// they are not reached either.
#[test]
fn instructions_that_linux_misreads_take_no_breakpoint() {
    let Some(p) = tools("odd_code") else { return };
    for place in ["avx_or+8", "avx_or+12", "avx_first"] {
        let argv = ["record", "-e", &format!("uprobe:{p}:{place}"), "--", &p];
        let out = lab::run(&mut lab::trapline(User::Me, &argv));
        assert_eq!(out.code(), 125, "{}", out.stderr);
        assert!(out.stderr.contains("the kernel can put no breakpoint at this instruction"), "{}", out.stderr);
    }
    let r = record(
        &["-e", &format!("uprobe:{p}:avx_or+4,uprobe:{p}:avx_or"), "-e", &format!("uretprobe:{p}:avx_*")],
        &[&p],
    );
    assert_eq!(r.out.out(), alone(&p));
    let said = format!("uretprobe:{p}:avx_first: the kernel can put no breakpoint at 1 of its places");
    assert!(r.out.stderr.contains(&said), "{}", r.out.stderr);
}

/// Symbols and notes that lead into the midst of an instruction.
#[test]
fn tables_that_lie_are_not_believed() {
    let Some(p) = tools("odd_code") else { return };
    let says = |probe: &str, part: &str| {
        let (code, said) = refused(User::Me, &["-e", probe]);
        assert!(code == 2 && said.contains("inside of an instruction") && said.contains(part), "{said}");
    };
    says(&format!("uprobe:{p}:lying"), "symbol is damaged");
    says(&format!("usdt:{p}:odd:inside"), "notes are damaged");
    let second = format!("uprobe:{p}:second_entry");
    let start = format!("usdt:{p}:odd:start");
    // Of a pattern, the others are set.
    let r = record(&["-e", &format!("uprobe:{p}:*i*"), "-e", &second, "-e", &format!("usdt:{p}:odd:*")], &[&p]);
    assert_eq!(r.out.out(), alone(&p));
    assert_eq!((r.count(&second, "seen"), r.count(&start, "seen")), (1, 1), "{}", r.out.stderr);
    for lost in [format!("uprobe:{p}:lying"), format!("usdt:{p}:odd:inside")] {
        let want =
            format!("trapline: skipped, because no instruction begins at the places that the file gives: {lost}");
        assert!(r.out.stderr.lines().any(|l| l == want), "no '{want}' in {}", r.out.stderr);
    }
}

#[test]
fn debug_information_gives_names_and_types() {
    let Some(p) = built("typed_g", "typed.c", &["-g"]) else { return };
    let [entry, back] = ["uprobe", "uretprobe"].map(|kind| format!("{kind}:{p}:compute"));
    let verbose = list(&["-v", &entry]).unwrap();
    let want = "(int n, const char *what, char *room, short unsigned int s, _Bool ok, enum color c, enum sign g)  file";
    assert!(verbose[0].starts_with(&format!("{entry}{want}")), "{verbose:?}");
    assert!(list(&["-v", &back]).unwrap()[0].starts_with(&format!("{back}(int retval)")));
    let r = record(&["-e", &entry, "-e", &format!("uretprobe:{p}:*")], &[&p]);
    assert_eq!(r.out.out(), alone(&p));
    assert_eq!(r.numbers(&entry, "n"), [-1, 0, 1]);
    assert_eq!(strings(&r, &entry, "what"), ["below", "above", "above"]);
    assert_eq!((r.numbers(&entry, "g"), r.numbers(&entry, "s")), (vec![-1; 3], vec![7; 3]));
    // -5 + 0 + 7 + 1 + 1 - 1
    assert_eq!(r.numbers(&back, "retval"), [-1, 3, 4]);
    assert_eq!(r.numbers(&format!("uretprobe:{p}:mixed"), "retval"), [5]);
    assert_eq!(r.of(&format!("uretprobe:{p}:nothing"))[0]["args"], serde_json::json!({}));
    let verbose = list(&["-v", &format!("uprobe:{p}:mixed")]).unwrap();
    assert!(verbose[0].contains(":mixed(double d, struct small s, int i, struct large l, "), "{verbose:?}");
    // What lies on the stack, and behind what registers of other kinds hold.
    let (many, mixed) = (format!("uprobe:{p}:many"), format!("uprobe:{p}:mixed"));
    let r = record(&["--explain", "-e", &many, "-e", &format!("{mixed} /args.c == -2 && args.i == 2/")], &[&p]);
    for lost in ["d", "s", "l", "t", "x"] {
        let want = format!("trapline:   lost: {lost}: no program can find it");
        assert!(r.out.stderr.lines().any(|l| l == want), "no '{want}' in {}", r.out.stderr);
    }
    let args: Vec<i64> = "abcdefgh".chars().map(|c| r.numbers(&many, &c.to_string())[0]).collect();
    assert_eq!(args, [1, 2, 3, 4, 5, 6, -7, 8]);
    assert_eq!(strings(&r, &mixed, "name"), ["x"]);
}

#[test]
fn filters_know_names_types_and_numbers_of_arguments() {
    let Some(p) = built("typed_g", "typed.c", &["-g"]) else { return };
    let [entry, back] = ["uprobe", "uretprobe"].map(|kind| format!("{kind}:{p}:compute"));
    let r = record(
        &[
            "-e",
            &format!("{entry} /args.n < 0 && args.what == \"below\"/"),
            "-e",
            &format!("{entry} /args.arg0 > 0 && str(args.arg2) == \"room\"/ str(room)"),
            "-e",
            &format!("{back} /retval < 0/"),
        ],
        &[&p],
    );
    assert_eq!(r.numbers(&entry, "n"), [-1, 1]);
    assert_eq!(r.of(&entry).iter().filter(|e| e["args"]["str_room"] == "room").count(), 1);
    assert_eq!(r.numbers(&back, "retval"), [-1]);
    let says = |words: &[&str], part: &str| {
        let (code, said) = refused(User::Me, words);
        assert!(code == 2 && said.contains(part), "{said}");
    };
    says(&["-e", &format!("{entry} /args.arg7 == 1/")], "has n, what, room, s, ok, c, g");
    says(&["-e", &format!("{entry} str(nobody)")], "no such argument (it has n, what");
    says(&["-e", &format!("uprobe:{p}:many str(")], "str(ARGUMENT)");
}

/// Without debug information a register has 64 bits: casts make an int of it.
#[test]
fn casts_do_where_no_types_are_known() {
    let Some(p) = tools("strings") else { return };
    let back = format!("uretprobe:{p}:worth");
    let r = record(&["-e", &format!("{back} /(int32)retval < 0/"), "-e", &format!("{back} /retval < 0/")], &[&p]);
    assert_eq!((r.count(&back, "seen"), r.count(&back, "recorded")), (6, 1));
}

#[test]
fn strings_behind_addresses_are_filtered_and_taken_along() {
    let Some(p) = tools("strings") else { return };
    let (find, back, word) =
        (format!("uprobe:{p}:find"), format!("uretprobe:{p}:find"), format!("usdt:{p}:words:word"));
    let r = record(
        &[
            "-e",
            &format!("{find} /startswith(str(args.arg0), \"be\") || str(args.arg0) == \"gamma\"/ str(arg0) comm"),
            "-e",
            &format!("{back} /retval != 0 && str(retval) != \"alpha\"/ str(retval)"),
            "-e",
            &format!("{word} /str(args.arg0) == \"gamma\" && args.arg1 == 2/ str(args.arg0)"),
            "-e",
            "uprobe:libc:puts /str(args.arg0) == \"found\"/",
        ],
        &[&p],
    );
    assert_eq!(r.out.out(), "found\n1\n");
    assert_eq!(strings(&r, &find, "str_arg0"), ["beta", "gamma"]);
    assert_eq!(strings(&r, &back, "str_retval"), ["beta", "gamma"]);
    assert_eq!(strings(&r, &word, "str_arg0"), ["gamma"]);
    assert_eq!(r.count(&find, "filtered"), 2);
    let puts = r.events.iter().filter(|e| e["name"].as_str().is_some_and(|n| n.ends_with("libc.so.6:puts")));
    assert_eq!(puts.count(), 1, "{}", r.out.stderr);
    let says = |words: &[&str], part: &str| {
        let (code, said) = refused(User::Me, words);
        assert!(code == 2 && said.contains(part), "{said}");
    };
    says(&["-e", "tracepoint:sched:sched_switch str(prev_pid)"], "not known to be addresses");
    says(&["-e", "tracepoint:sched:sched_switch /str(args.prev_pid) == \"x\"/"], "not known to be addresses");
}

#[test]
fn functions_of_cpp_are_named_as_their_sources_name_them() {
    let Some(p) = built("typed_cc", "typed.cc", &["-g"]) else { return };
    let all = list(&[&format!("uprobe:{p}:acme::*")]).unwrap();
    for name in [
        "acme::Widget::count",
        "acme::twice<int>",
        "acme::twice<long>",
        "acme::mode",
        r#""acme::Widget::poke(int, char const*)""#,
        r#""acme::Widget::poke(double, long) const""#,
        r#""acme::Widget::operator int""#,
    ] {
        assert!(all.contains(&format!("uprobe:{p}:{name}")), "no {name} in {all:?}");
    }
    // What is listed is found again, alone.
    for name in &all {
        assert_eq!(list(&[name]).unwrap(), std::slice::from_ref(name));
    }
    // With and without parameters, mangled, by patterns of either.
    let poke = format!(r#"uprobe:{p}:"acme::Widget::poke(int, char const*)""#);
    assert_eq!(list(&[&format!("uprobe:{p}:acme::Widget::poke")]).unwrap().len(), 2);
    assert_eq!(list(&[&format!("uprobe:{p}:*poke(int*")]).unwrap(), [poke.as_str()]);
    let mangled = format!("uprobe:{p}:_ZN4acme6Widget4pokeEiPKc");
    assert_eq!(list(&[&mangled]).unwrap(), [mangled.as_str()]);
    assert_eq!(list(&[&format!("uprobe:{p}:_ZN4acme6Widget4poke*")]).unwrap(), [poke.as_str()]);
    let count = format!("uprobe:{p}:acme::Widget::count");
    let r = record(&["-e", &format!("{poke} /args.by == 1/ comm"), "-e", &format!("{count},{mangled}")], &[&p]);
    assert_eq!(r.out.out(), alone(&p));
    assert_eq!((r.numbers(&poke, "by"), r.numbers(&count, "c")), (vec![1], vec![200]));
    assert_eq!(r.count(&mangled, "seen"), 1);
    let report = lab::run(&mut lab::trapline(User::Me, &["report", r.dir.to_str().expect("UTF-8")]));
    assert!(report.out().contains(&format!("{poke}(this=0x")), "{}", report.out());
    let said = list(&[&format!("uprobe:{p}:acme::Widget::cuont")]).unwrap_err();
    assert!(said.contains(&format!("did you mean {count}")), "{said}");
    if lab::has("babeltrace2") {
        let argv = ["babeltrace2", r.dir.to_str().expect("UTF-8")];
        let out = lab::run(&mut lab::as_user(User::Me, &argv));
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""));
    }
}

#[test]
fn functions_of_rust_are_named_as_their_sources_name_them() {
    let Some(p) = built("typed_rs", "typed.rs", &["-g", "--crate-name", "typed"]) else { return };
    let compute = format!("uprobe:{p}:typed::acme::compute");
    assert_eq!(list(&[&compute]).unwrap(), [compute.as_str()]);
    // Functions made for several types are one probe.
    let shown = list(&["-v", &format!("uprobe:{p}:*acme::sh?wn")]).unwrap();
    assert!(shown.len() == 1 && shown[0].contains("file offset 0x") && shown[0].contains(", 0x"), "{shown:?}");
    let poke = format!("uprobe:{p}:typed::acme::Widget::poke");
    let r = record(&["-e", &compute, "-e", &format!("uprobe:{p}:typed::acme::shown"), "-e", &poke], &[&p]);
    assert_eq!(r.out.out(), alone(&p));
    assert_eq!((r.count(&compute, "seen"), r.numbers(&poke, "by")), (3, vec![2]));
    assert_eq!(r.count(&format!("uprobe:{p}:typed::acme::shown"), "seen"), 2);
    let said = list(&[&format!("uprobe:{p}:typed::acme::computer")]).unwrap_err();
    assert!(said.contains(&format!("did you mean {compute}")), "{said}");
}

#[test]
fn libraries_are_named_without_their_paths() {
    let Some(p) = tools("strings") else { return };
    let Ok(found) = list(&["-v", "uprobe:libc:puts"]) else {
        return lab::skip("package:libc", "no /etc/ld.so.cache that knows libc");
    };
    let name = found[0].split('(').next().unwrap().to_string();
    assert!(name.starts_with("uprobe:/") && name.ends_with("/libc.so.6:puts"), "{name}");
    assert_eq!(list(&["uprobe:libc.so.6:puts"]).unwrap(), [name.as_str()]);
    let r = record(&["-e", "uprobe:libc:puts"], &[&p]);
    assert_eq!(r.count(&name, "seen"), 1);
    let said = list(&["uprobe:libccc:puts"]).unwrap_err();
    assert!(said.contains("neither a program in PATH nor a library") && said.contains("libc"), "{said}");
}

#[test]
fn a_link_is_followed_and_said() {
    let Some(p) = tools("strings") else { return };
    let link = lab::scratch().join("link to it");
    std::os::unix::fs::symlink(&p, &link).expect("a link");
    let probe = format!("uprobe:\"{}\":find", link.display());
    let verbose = list(&["-v", &probe]).unwrap();
    assert!(verbose[0].starts_with(&probe) && verbose[0].contains(&format!("in {p}, file offset")), "{verbose:?}");
    let r = record(&["-e", &probe], &[link.to_str().expect("UTF-8")]);
    assert_eq!(r.count(&probe, "seen"), 4, "{}", r.out.stderr);
}

/// Why there is no probe of that name.
#[test]
fn what_is_not_there_is_said_to_be_elsewhere() {
    let Some(p) = built("typed_g", "typed.c", &["-g"]) else { return };
    let says = |probe: &str, parts: &[&str]| {
        let (code, said) = refused(User::Me, &["-e", probe]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("no such probe") && parts.iter().all(|part| said.contains(part)), "{said}");
    };
    says(&format!("uprobe:{p}:tiny"), &["inlined, into holds_tiny (typed.c:"]);
    says(&format!("uprobe:{p}:printf"), &["imported from /", "libc.so.6", "(uprobe:/", "libc.so.6:printf)"]);
    says(&format!("uprobe:{p}:coompute"), &["did you mean", "compute"]);
    let stripped = lab::scratch().join("stripped");
    let out = lab::run(&mut lab::as_user(User::Me, &["strip", "-o", stripped.to_str().expect("UTF-8"), &p]));
    if out.code() == 0 {
        says(&format!("uprobe:{}:compute", stripped.display()), &["stripped"]);
    } else {
        lab::skip("package:binutils", "no strip");
    }
}

#[test]
fn what_is_not_there_is_looked_for_in_the_process() {
    let Some(p) = tools("hits") else { return };
    let mut target = lab::as_user(User::Me, &[&p, "wait"]);
    let target = lab::start(target.stdin(Stdio::piped()).stdout(Stdio::null()));
    let pid = target.pid().to_string();
    lab::until("its libraries", || std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().contains("libc.so"));
    let argv = ["record", "-p", &pid, "--duration", "0.1", "-e", &format!("uprobe:{p}:qsort")];
    let out = lab::run(&mut lab::trapline(User::Me, &argv));
    assert_eq!(out.code(), 2, "{}", out.stderr);
    assert!(
        out.stderr.contains("the process has mapped uprobe:/") && out.stderr.contains("libc.so.6:qsort"),
        "{}",
        out.stderr
    );
    let out =
        lab::run(&mut lab::trapline(User::Me, &["record", "-p", &pid, "--duration", "0.1", "-e", "uprobe:libc:qsort"]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    drop(target);
}

/// The record of a call's entry has eight bytes for each argument, and an `int` has four of them.
#[test]
fn arguments_of_calls_are_as_wide_as_their_types() {
    if !possible() {
        return;
    }
    let open = "tracepoint:syscalls:sys_enter_openat";
    let close = "tracepoint:syscalls:sys_enter_close";
    let r = record(
        &[
            "-e",
            &format!("{open} /args.dfd == AT_FDCWD/"),
            "-e",
            &format!("{open} /args.dfd < 0 && args.flags == 0/"),
            "-e",
            close,
        ],
        &["cat", "/etc/hostname"],
    );
    assert!(r.count(open, "recorded") >= 2 && r.numbers(open, "dfd").iter().all(|n| *n == -100), "{}", r.stats);
    assert!(r.numbers(close, "fd").iter().all(|n| (0..100).contains(n)));
}
