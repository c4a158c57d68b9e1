//! What the programs of `tests/programs/heap*` say of their heap is what valgrind says of them, and `trapline heap` agrees with both;
//! programs that nobody here wrote have the same blocks for valgrind and for trapline.

use crate::heap_accounts::{
    Account, CPP, PLAIN, PROCESSES, Program, RUST, SIGNALS, Shown, Sum, THREADS, Totals, Valgrind, bare,
};
use crate::lab::{self, User};

/// A scenario, and who allocates in it beside the functions of its account.
struct Case {
    program: &'static Program,
    scenario: &'static [&'static str],
    others: Others,
}

enum Others {
    Nobody,
    /// The pool for exceptions, which libstdc++ allocates at its start.
    Pool,
    Some,
    /// It refuses: valgrind counts the resizing that failed.
    Refused,
    /// Several processes: those of valgrind inherit their parents' counts.
    Processes,
}

const fn case(program: &'static Program, scenario: &'static [&'static str], others: Others) -> Case {
    Case { program, scenario, others }
}

// Not "pages" and "bad_allocs": valgrind has no pvalloc, and no operator that throws.
const CASES: &[Case] = &[
    case(&PLAIN, &["leaks"], Others::Nobody),
    case(&PLAIN, &["resizes"], Others::Nobody),
    case(&PLAIN, &["refused"], Others::Refused),
    case(&PLAIN, &["aligned"], Others::Nobody),
    case(&PLAIN, &["nothing"], Others::Nobody),
    case(&PLAIN, &["deep"], Others::Nobody),
    case(&PLAIN, &["jumps"], Others::Nobody),
    case(&PLAIN, &["coroutines"], Others::Nobody),
    case(&PLAIN, &["libraries"], Others::Some),
    case(&PLAIN, &["statics"], Others::Nobody),
    case(&THREADS, &["crossing"], Others::Some),
    case(&THREADS, &["storm"], Others::Some),
    case(&THREADS, &["short_lives"], Others::Some),
    case(&THREADS, &["cancellations"], Others::Some),
    case(&SIGNALS, &["timer"], Others::Nobody),
    case(&SIGNALS, &["other_stack"], Others::Nobody),
    case(&SIGNALS, &["jumps_out"], Others::Nobody),
    case(&SIGNALS, &["jumps_out", "on another stack"], Others::Nobody),
    case(&SIGNALS, &["nested"], Others::Nobody),
    case(&SIGNALS, &["killed"], Others::Nobody),
    case(&SIGNALS, &["aborted"], Others::Nobody),
    case(&PROCESSES, &["forks"], Others::Processes),
    case(&PROCESSES, &["generations"], Others::Processes),
    case(&PROCESSES, &["execs"], Others::Processes),
    case(&PROCESSES, &["spawns"], Others::Processes),
    case(&CPP, &["news"], Others::Pool),
    case(&CPP, &["containers"], Others::Pool),
    case(&CPP, &["usual_containers"], Others::Some),
    case(&CPP, &["exceptions"], Others::Some),
    case(&CPP, &["statics"], Others::Pool),
    case(&RUST, &[], Others::Some),
];

/// Checks these cases. Two tests go through them from both ends, so that each waits for half of valgrind's runs.
fn each<'c>(cases: impl Iterator<Item = &'c Case>, mut check: impl FnMut(&Case, &[&str], &Account, &Valgrind)) {
    for case in cases {
        let Some(program) = case.program.build() else { continue };
        let command = [&[&*program], case.scenario].concat();
        let Some(valgrind) = Valgrind::of(&command, &[]) else { return };
        let alone = bare(User::Me, &command, &[]);
        assert_eq!((valgrind.outcome.code(), valgrind.outcome.out()), (alone.code(), alone.out()), "{command:?}");
        check(case, &command, &Account::of(&alone.out()), &valgrind);
    }
}

/// The accounts are right: what the tests compare trapline with is compared with something else first.
// Slow: each program runs under valgrind, once for all tests.
#[test]
fn the_programs_know_their_heap() {
    each(CASES.iter(), |case, command, account, valgrind| {
        // Where a program executes another, valgrind sees no end of the first.
        if !matches!(case.scenario, ["execs"]) {
            assert_eq!(valgrind.by_function(account), account.with_inherited(), "{command:?}");
        }
        let own = account.totals();
        let [theirs] = valgrind.processes[..] else {
            assert!(matches!(case.others, Others::Processes), "{command:?}: {:?}", valgrind.processes);
            return;
        };
        let pool = Totals {
            outstanding: Sum { blocks: own.outstanding.blocks + 1, bytes: own.outstanding.bytes + 72704 },
            allocated: Sum { blocks: own.allocated.blocks + 1, bytes: own.allocated.bytes + 72704 },
            ..own
        };
        match case.others {
            Others::Nobody => assert_eq!(theirs, own, "{command:?}"),
            Others::Pool => assert_eq!(theirs, pool, "{command:?}"),
            Others::Refused => {
                assert_eq!((theirs.outstanding, theirs.frees), (own.outstanding, own.frees + 1), "{command:?}");
            }
            Others::Processes => panic!("{command:?}: one process"),
            Others::Some => {
                assert!(theirs.outstanding.bytes >= own.outstanding.bytes, "{command:?}: {theirs:?}");
                assert!(theirs.allocated.blocks >= own.allocated.blocks && theirs.frees >= own.frees, "{command:?}");
            }
        }
    });
}

/// The most threads that a program has in all.
const THREADS_MOST: u64 = 256;

/// trapline counts what valgrind counts, libc's own blocks too.
// Slow: the same runs under valgrind.
#[test]
fn heaps_are_those_of_valgrind() {
    each(CASES.iter().rev(), |case, command, account, valgrind| {
        let shown = Shown::of(User::Me, &[], command, &[]);
        match (&valgrind.processes[..], &case.others) {
            (_, Others::Refused) => assert_eq!(shown.totals(), account.totals(), "{command:?}"),
            ([theirs], _) => {
                let (ours, theirs) = (shown.totals(), *theirs);
                // A thread's table of thread-local storage has a place of 16 bytes for the agent.
                let is_near = |a: Sum, b: Sum| {
                    a.blocks == b.blocks && (0..=16 * THREADS_MOST).contains(&a.bytes.wrapping_sub(b.bytes))
                };
                let near = is_near(ours.outstanding, theirs.outstanding) && is_near(ours.allocated, theirs.allocated);
                let threads = !std::ptr::eq(case.program, &PLAIN);
                let may_be_near = threads && near && ours.frees == theirs.frees;
                assert!(ours == theirs || may_be_near, "{command:?}: {ours:?} {theirs:?}");
            }
            // Inherited blocks are their parent's, and are counted once.
            _ => assert_eq!(shown.outstanding(account), account.outstanding, "{command:?}"),
        }
    });
}

/// Takes what tools put into the environment out of it, so that programs which read it all have the same.
fn same_environment() -> Option<String> {
    testkit::compile("gcc", "heap_environment.so", "heap_environment.c", &["-O2", "-shared", "-fPIC"])
}

/// How much of a real program's heap is the same for each tool.
enum Same {
    All,
    /// The counts; sizes differ a little, for Python's number of an address takes more room where the address is large.
    Counts,
    /// Nearly all: tables whose keys are addresses grow when they happen to.
    Nearly,
}

/// The same blocks for both, and what the program prints bare.
#[track_caller]
fn real(same: &Same, command: &[&str], environment: &[(&str, &str)]) {
    if !lab::has(command[0]) && !command[0].starts_with('/') {
        return lab::skip(&format!("package:{}", command[0]), "not installed");
    }
    let Some(library) = same_environment() else { return };
    let name = command[0].rsplit('/').next().expect("a name");
    let own = [("LD_PRELOAD", &*library), ("HEAP_PROGRAM", name), ("HOME", "/nonexistent")];
    let environment = [environment, &own].concat();
    let Some(valgrind) = Valgrind::of(command, &environment) else { return };
    let alone = bare(User::Me, command, &environment);
    assert_eq!((valgrind.outcome.code(), valgrind.outcome.out()), (alone.code(), alone.out()), "{command:?}");
    let [theirs] = valgrind.processes[..] else { panic!("{command:?}: {:?}", valgrind.processes) };
    assert!(theirs.allocated.blocks > 300, "{command:?}: {theirs:?}");
    let shown = Shown::of(User::Me, &[], command, &environment);
    assert_eq!((shown.outcome.code(), shown.outcome.out()), (alone.code(), alone.out()), "{}", shown.outcome.stderr);
    let ours = shown.totals();
    let (near, nearer) = match same {
        Same::All => return assert_eq!(ours, theirs, "{command:?}"),
        // valgrind sees some allocations of the loader, from before the first constructor.
        Same::Counts => (1000, 4),
        Same::Nearly => (50, 4),
    };
    let is_near = |a: u64, b: u64| a.abs_diff(b) <= b / near;
    let is_nearer = |a: u64, b: u64| a.abs_diff(b) <= nearer;
    for (ours, theirs) in [(ours.outstanding, theirs.outstanding), (ours.allocated, theirs.allocated)] {
        assert!(is_near(ours.bytes, theirs.bytes) && is_nearer(ours.blocks, theirs.blocks), "{ours:?} {theirs:?}");
    }
    assert!(is_nearer(ours.frees, theirs.frees), "{command:?}: {ours:?} {theirs:?}");
}

#[test]
fn perl_has_the_same_heap() {
    let script = "my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1..3000; eval { die { a => 1 } };\
        my @s = sort map { sprintf '%05d', $_ * 7919 % 10007 } 1..500; print scalar(keys %h), \" $s[7] $@->{a}\\n\"";
    real(&Same::All, &["perl", "-e", script], &[("PERL_HASH_SEED", "0"), ("PERL_PERTURB_KEYS", "0")]);
}

#[test]
fn sqlite_has_the_same_heap() {
    let script = "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1 from n \
        where i < 500) insert into t select i, 'x' || i % 100 from n; create index i on t(b); \
        select b, count(*) from t group by b order by 2 desc, 1 limit 3;";
    real(&Same::All, &["sqlite3", ":memory:", script], &[]);
}

#[test]
fn python_has_the_same_heap() {
    let script = "import json; d = [{'id': i, 'name': 'item %d' % i} for i in range(500)]\n\
        try: int('x')\nexcept ValueError as e: print(e, len(json.dumps(json.loads(json.dumps(d)))))";
    let environment = [("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")];
    real(&Same::Counts, &["/usr/bin/python3", "-P", "-s", "-S", "-B", "-c", script], &environment);
}

// Slow: the compiler runs under valgrind too.
#[test]
fn the_compiler_has_the_same_heap() {
    let cc1 = std::process::Command::new("gcc").arg("-print-prog-name=cc1").output();
    let Ok(cc1) = cc1 else { return lab::skip("package:gcc", "no compiler") };
    let cc1 = String::from_utf8_lossy(&cc1.stdout).trim().to_string();
    let source = lab::scratch().join("source.c");
    std::fs::write(&source, "int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * i; return s; }\n")
        .expect("a file");
    let source = source.display().to_string();
    real(&Same::Nearly, &[&cc1, "-quiet", "-O1", &source, "-o", "/dev/null"], &[]);
}

#[test]
fn git_has_the_same_heap() {
    if !lab::has("git") {
        return lab::skip("package:git", "not installed");
    }
    let repository = lab::scratch().join("r");
    let make = "git init -q \"$0\" && cd \"$0\" && for i in 1 2 3 4 5; do echo $i > f$i && git add . && \
        git -c user.name=a -c user.email=a@b -c gc.auto=0 -c maintenance.auto=false commit -qm c$i; done";
    let repository = repository.display().to_string();
    let out = lab::run(&mut lab::as_user(User::Me, &["sh", "-c", make, &repository]));
    assert_eq!(out.code(), 0, "{}", out.stderr);
    let settings = [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")];
    real(&Same::All, &["git", "--no-pager", "-C", &repository, "log", "--stat", "--format=%s"], &settings);
}
