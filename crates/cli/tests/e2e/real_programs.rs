//! Programs that nobody here wrote, with results of their own to check, under `trapline graph`: they do what they do untraced.
//! Parts are chosen so that each takes seconds.

use crate::lab::{self, Outcome, User};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What a traced command did.
struct Traced {
    outcome: Outcome,
    /// Events and lost ones.
    events: u64,
    dropped: u64,
}

/// Runs a command in a directory.
fn traced(user: User, dir: &Path, options: &[&str], command: &[&str]) -> Traced {
    let beside = lab::scratch();
    let [trace, stats] = ["trace", "stats"].map(|n| beside.join(n).display().to_string());
    let usual = ["graph", "-q", "--stats", &stats, "-o", &trace];
    let argv = [&usual[..], options, &["--"], command].concat();
    let outcome = lab::run(lab::trapline(user, &argv).current_dir(dir));
    let stats: Value = serde_json::from_slice(&fs::read(&stats).expect("statistics")).expect("JSON");
    let number = |name: &str| stats[name].as_u64().expect("a number");
    let _ = fs::remove_dir_all(beside);
    Traced { outcome, events: number("events"), dropped: number("dropped") }
}

const BLOCK: &[&str] = &["--on-full", "block"];

/// Runs a command bare and traced, without loss. Compares what it prints, how it ends, and the files that it leaves.
#[track_caller]
fn same(user: User, options: &[&str], command: &[&str]) -> u64 {
    let [first, second] = [lab::scratch(), lab::scratch()];
    let bare = lab::run(lab::as_user(user, command).current_dir(&first));
    let run = traced(user, &second, &[BLOCK, options].concat(), command);
    assert_eq!((run.outcome.code(), run.outcome.out()), (bare.code(), bare.out()), "{}", run.outcome.stderr);
    let files = |dir: &PathBuf| -> Vec<(PathBuf, Vec<u8>)> {
        let own = |path: PathBuf| path.strip_prefix(dir).expect("a file of it").to_path_buf();
        lab::contents(dir).into_iter().map(|(path, bytes)| (own(path), bytes)).collect()
    };
    let (left, right) = (files(&first), files(&second));
    let names = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&left), names(&right));
    let other = left.iter().zip(&right).find(|(a, b)| a != b);
    assert!(other.is_none(), "{:?} has other contents", other.map(|o| &o.0.0));
    assert_eq!(run.dropped, 0, "with --on-full block nothing is lost");
    run.events
}

#[track_caller]
fn there(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|p| !lab::has(p));
    missing.inspect(|p| lab::skip(&format!("package:{p}"), "not installed")).is_none()
}

// Slow: CPython's own tests run twice for each user.
#[test]
fn python_passes_its_own_tests() {
    if !there(&["python3"]) {
        return;
    }
    let has = lab::run(&mut lab::as_user(User::Me, &["python3", "-c", "import test.test_json, test.test_re"]));
    if has.code() != 0 {
        return lab::skip("package:libpython3.11-testsuite", "python3 has no tests");
    }
    lab::each_user(|user| {
        // test_signal sleeps for most of a minute.
        let quick = ["test_exceptions", "test_contextlib"];
        for (options, modules) in [(BLOCK, &quick[..]), (&[], &["test_thread", "test_threadsignals"])] {
            let dir = lab::scratch();
            let command = [&["python3", "-m", "test"], modules];
            let run = traced(user, &dir, options, &command.concat());
            let out = run.outcome.out();
            assert_eq!(run.outcome.code(), 0, "{out}\n{}", run.outcome.stderr);
            assert!(out.contains("Tests result: SUCCESS"), "{out}");
            assert!(run.events > 100_000, "{} events", run.events);
            assert!(options.is_empty() || run.dropped == 0);
        }
    });
}

#[test]
fn perl_sorts_matches_and_dies() {
    if !there(&["perl"]) {
        return;
    }
    let script = "my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1..20000; my $n = 0;\
        for (sort keys %h) { $n += () = $h{$_} =~ /(A|B)C?D*/g }\
        $SIG{ALRM} = sub { die \"late\\n\" }; eval { alarm 1; select undef, undef, undef, 5; }; print $@;\
        eval { die { a => 1 } }; print \"$n $@->{a}\\n\"; print scalar(`echo child`);\
        print join(',', (sort map { sprintf '%05d', $_ * 7919 % 10007 } 1..2000)[0..9]), \"\\n\"";
    lab::each_user(|user| assert!(same(user, &[], &["perl", "-e", script]) > 100_000));
}

#[test]
fn sqlite_keeps_its_files_whole() {
    if !there(&["sqlite3"]) {
        return;
    }
    let script = "create table t(a integer primary key, b text, c real);\
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)\
        insert into t select i, 'x' || i % 1000, i * 0.5 from n; create index i on t(b);\
        select count(*), sum(a), avg(c) from t where b > 'x5'; delete from t where a % 3 = 0; vacuum;\
        pragma integrity_check; select a from t where b = 'x77';";
    assert!(same(User::Me, &["--lib"], &["sqlite3", "file.db", script]) > 100_000);
}

#[test]
fn compilers_write_the_same_bytes() {
    let source = format!("{}/../../tests/programs", env!("CARGO_MANIFEST_DIR"));
    if there(&["gcc", "g++"]) {
        same(User::Me, &[], &["gcc", "-O2", "-c", &format!("{source}/hazards_library.c"), "-o", "c.o"]);
        same(User::Me, &[], &["g++", "-O2", "-c", &format!("{source}/hazards_library.cc"), "-o", "cc.o"]);
    }
    // A `rustc` in the path may be one of rustup, which finds the compiler by variables of its user.
    let usual = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let Ok(root) = Command::new(usual).args(["--print", "sysroot"]).output() else {
        return lab::skip("package:rustc", "no compiler");
    };
    let rustc = format!("{}/bin/rustc", String::from_utf8_lossy(&root.stdout).trim());
    let command = [&*rustc, "--edition=2024", "-O", "--emit=obj", "-Ccodegen-units=1", "-o", "rs.o"];
    same(User::Me, &[], &[&command[..], &[&format!("{source}/panics.rs")]].concat());
}

#[test]
fn redis_serves_what_it_was_given() {
    if !there(&["redis-server", "redis-cli", "redis-benchmark"]) {
        return;
    }
    for options in [BLOCK, &["--on-full", "drop", "--lib"]] {
        let dir = lab::scratch();
        let [socket, trace, stats] = ["socket", "trace", "stats"].map(|n| dir.join(n).display().to_string());
        let usual = ["graph", "-q", "--stats", &stats, "-o", &trace];
        let server = ["--", "redis-server", "--port", "0", "--unixsocket", &socket, "--save", "", "--dir"];
        let place = dir.display().to_string();
        let argv = [&usual[..], options, &server, &[&place]].concat();
        let running = lab::start(lab::trapline(User::Me, &argv).stdout(std::process::Stdio::null()));
        let ask = |words: &[&str]| {
            let out = lab::run(&mut lab::as_user(User::Me, &[&["redis-cli", "-s", &socket][..], words].concat()));
            out.out().trim().to_string()
        };
        lab::until("redis answers", || ask(&["ping"]) == "PONG");
        let load = ["redis-benchmark", "-s", &socket, "-q", "-n", "2000", "-c", "10", "-t", "set,get,incr,lpush,zadd"];
        assert_eq!(lab::run(&mut lab::as_user(User::Me, &load)).code(), 0);
        let script = "for i = 1, 100 do redis.call('set', 'k' .. i, i * i) end \
            local s = 0; for i = 1, 100 do s = s + redis.call('get', 'k' .. i) end return s";
        assert_eq!(ask(&["eval", script, "0"]), "338350");
        assert_eq!((ask(&["get", "k77"]), ask(&["save"])), ("5929".into(), "OK".into()));
        assert!(ask(&["bgsave"]).contains("started"));
        lab::until("it is saved", || ask(&["info", "persistence"]).contains("rdb_bgsave_in_progress:0"));
        std::thread::sleep(Duration::from_millis(50));
        ask(&["shutdown", "nosave"]);
        let end = running.end();
        assert_eq!(end.code(), 0, "{}", end.stderr);
        // An untraced server finds it all again.
        let again = ["redis-server", "--port", "0", "--unixsocket", &socket, "--save", "", "--dir", &place];
        let running = lab::start(lab::as_user(User::Me, &again).stdout(std::process::Stdio::null()));
        lab::until("redis answers", || ask(&["ping"]) == "PONG");
        assert_eq!(ask(&["get", "k77"]), "5929");
        ask(&["shutdown", "nosave"]);
        assert_eq!(running.end().code(), 0);
    }
}

#[test]
fn tools_of_every_day() {
    let archive = "mkdir d && seq 2000 > d/a && seq 5 > d/b && tar --sort=name --mtime=@0 --owner=0 --group=0 -cf - d | gzip -n > a.gz &&\
        gzip -dc a.gz | tar tf - && gzip -dc a.gz | md5sum";
    let shell = "f() { ((x--)) || return; g; }; g() { f; }; x=200; f; trap 'echo signal' USR1; kill -USR1 $$; (exit 7); echo $?;\
        for i in {1..50}; do echo $((i * i)); done | sort -n | tail -2; echo $(echo inner)";
    same(User::Me, &[], &["sh", "-c", archive]);
    if there(&["bash"]) {
        lab::each_user(|user| assert!(same(user, &[], &["bash", "-c", shell]) > 1000));
    }
    if there(&["git"]) {
        let script = "export GIT_AUTHOR_DATE='1 +0000' GIT_COMMITTER_DATE='1 +0000' HOME=. ; git init -q r && cd r &&\
            git config user.email a@b && git config user.name a && for i in 1 2 3; do echo $i > f$i; git add . && git commit -qm c$i;\
            done; git gc -q; git fsck; git log --format=%H; cd .. && git clone -q r s && git -C s fsck; rm -rf r s .config";
        same(User::Me, &[], &["sh", "-c", script]);
    }
}
