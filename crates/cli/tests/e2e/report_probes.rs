//! What of a trace with calls and other probes is shown: `-e` and `--where` select both.

use crate::kernel::possible;
use crate::lab::{self, User};
use crate::probes::record;

#[test]
fn names_and_filters_select_all_probes_of_a_trace() {
    let Some(program) = lab::program("probes").filter(|_| possible()) else { return };
    let uprobe = format!("uprobe:{program}:worked");
    let r =
        record(&["-e", &uprobe, "-e", "write,getppid", "-e", "tracepoint:syscalls:sys_enter_write"], &[&program, "6"]);
    let shown = |words: &[&str]| -> Vec<String> {
        let dir = r.dir.to_str().expect("UTF-8");
        let out = lab::run(&mut lab::trapline(User::Me, &[&["report", "-q"], words, &["--as", "json", dir]].concat()));
        assert_eq!((out.code(), out.stderr.as_str()), (0, ""), "{words:?}");
        let name = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["name"].clone();
        out.out().lines().map(name).filter_map(|n| Some(n.as_str()?.to_string())).filter(|n| n != "exit").collect()
    };
    let count = |words: &[&str], name: &str| shown(words).iter().filter(|n| n.as_str() == name).count();
    let all = shown(&[]);
    assert_eq!(count(&[], &uprobe), 6, "{all:?}");
    assert!(count(&[], "write") > 0 && count(&[], "tracepoint:syscalls:sys_enter_write") > 0, "{all:?}");
    // Patterns select probes, names of calls select calls, and nothing else is shown.
    assert_eq!(shown(&["-e", "uprobe:*"]), vec![uprobe.clone(); 6]);
    assert!(shown(&["-e", "write"]).iter().all(|n| n == "write"));
    let both = shown(&["-e", "write,tracepoint:*"]);
    assert!(both.iter().all(|n| n == "write" || n.starts_with("tracepoint:")), "{both:?}");
    assert_eq!(shown(&["-e", "all"]), all);
    // A filter holds for all, and those that lack what it names are left out.
    assert_eq!(count(&["--where", "args.arg0 >= 4"], &uprobe), 2);
    assert_eq!(shown(&["--where", "args.arg0 >= 4"]).len(), 2);
    assert_eq!(shown(&["--where", "pid == 1"]), Vec::<String>::new());
    assert_eq!(shown(&["--where", "pid != 1", "-e", "uprobe:*"]).len(), 6);
}

#[test]
fn where_holds_for_all_probes_of_a_recording() {
    let Some(program) = lab::program("probes").filter(|_| possible()) else { return };
    let uprobe = format!("uprobe:{program}:worked");
    let own = format!("{uprobe} /args.arg0 != 5/");
    let r = record(&["-e", &own, "-e", "write,getppid", "--where", "args.arg0 >= 3"], &[&program, "8"]);
    // Those with arg0 alone; of them those that the filter of the probe passes too.
    assert_eq!(r.count(&uprobe, "recorded"), 4, "{:?}", r.of(&uprobe));
    assert_eq!((r.count(&uprobe, "filtered"), r.of("write").len()), (4, 0), "{}", r.stats);
    assert_eq!(r.stats["where"][0]["rejected"], 3, "{}", r.stats);
    assert!(r.out.stderr.contains("the others are skipped"), "{}", r.out.stderr);
    // A filter that both have; nobody passes.
    let r = record(&["-e", &uprobe, "-e", "write", "--where", "pid == 1"], &[&program, "8"]);
    assert_eq!((r.count(&uprobe, "filtered"), r.count(&uprobe, "recorded")), (8, 0), "{}", r.stats);
    assert!(r.out.stderr.contains("nothing matched"), "{}", r.out.stderr);
}
