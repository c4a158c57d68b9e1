//! Recordings that were killed, truncated, are still going on, or had no room left: what is on disk can be read.

use crate::babeltrace;
use crate::lab::{self, Running, User, each_user};
use crate::record::{
    Recorded, calls, each_backend, finished, lost_in_all, lost_in_words, number, record, repair, report, text,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Bytes of a packet in front of its first event.
const HEAD: usize = 96;

const MISSING: &str = "the end is missing";

/// Bytes of the streams of a trace, as far as they can be seen.
pub fn bytes_in(trace: &Path) -> u64 {
    let files = fs::read_dir(trace).into_iter().flatten().flatten();
    let streams = files.filter(|e| e.file_name() != "metadata" && e.file_name() != ".trapline");
    streams.filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
}

fn gone(pid: u32) -> bool {
    lab::status_field(pid, "State").is_none_or(|s| s.starts_with('Z'))
}

struct Case {
    dir: PathBuf,
    running: Running,
    command: u32,
    tracer: u32,
}

/// A recording that has packets on disk and will not end by itself.
fn under_way(user: User, backend: &str) -> Case {
    let dir = lab::scratch();
    let script = "echo $$ >pid.new; mv pid.new pid; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); \
        dd if=/dev/zero of=/dev/null bs=1 count=2000 status=none; sleep 0.02; done";
    let args = ["record", "-q", "--backend", backend, "-o", "trace", "sh", "-c", script];
    let running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
    lab::until("packets", || bytes_in(&dir.join("trace")) > (300 << 10));
    let command = fs::read_to_string(dir.join("pid")).expect("pid").trim().parse().expect("pid");
    let tracer = lab::tracer_of(command);
    Case { dir, running, command, tracer }
}

// Slow: five ways to be killed, at several moments, with both backends.
#[test]
fn whatever_is_killed_whole_packets_can_be_read() {
    each_backend(|user, backend| {
        for (round, victims) in
            [&["front"][..], &["command"], &["tracer"], &["command", "front"], &["front", "tracer"]].iter().enumerate()
        {
            if backend == "kernel" && victims.contains(&"tracer") {
                continue;
            }
            let c = under_way(user, backend);
            std::thread::sleep(Duration::from_millis(round as u64 * 23));
            for victim in *victims {
                let pid = match *victim {
                    "front" => c.running.pid(),
                    "command" => c.command,
                    _ => c.tracer,
                };
                lab::kill("KILL", pid.into());
            }
            lab::until("the front end's end", || gone(c.running.pid()));
            // It has the other end of stderr.
            lab::kill("KILL", c.command.into());
            let out = c.running.end();
            let trace = c.dir.join("trace");
            // Where the command was killed first, the front end may have come to its end.
            let (killed, before) = (!trace.join(".trapline/end").exists(), bytes_in(&trace));
            assert!(killed == victims.contains(&"front") || victims[0] == "command", "{victims:?}");
            // What is missing is said each time: nobody has repaired anything.
            let kept = lab::contents(&trace);
            let first = report(user, &trace, &[]);
            assert_eq!(first.code(), if killed { 125 } else { 0 }, "{victims:?} {}", first.stderr);
            assert_eq!(first.stderr.contains(MISSING), killed, "{victims:?} {} after {}", first.stderr, out.stderr);
            // What is left out is less than a packet of each stream.
            assert!(first.out().matches("= 1\n").count() > 1000, "{victims:?}");
            let again = report(user, &trace, &[]);
            assert!(again.stdout == first.stdout && again.stderr == first.stderr, "{}", again.stderr);
            assert_eq!(again.code(), first.code());
            assert!(kept == lab::contents(&trace) && before == bytes_in(&trace), "a report has changed the trace");
            let truncated = first.stderr.contains("incomplete packets");
            let repaired = repair(user, &trace);
            assert_eq!(repaired.code(), 0, "{}", repaired.stderr);
            assert_eq!(repaired.out().contains("removed"), truncated, "{}", repaired.out());
            let last = report(user, &trace, &[]);
            assert!(last.stdout == first.stdout && !last.stderr.contains("incomplete packets"), "{}", last.stderr);
            assert_eq!((last.code(), last.stderr.contains(MISSING)), (first.code(), killed), "{}", last.stderr);
            if killed {
                babeltrace::check_rest(user, &trace);
            } else {
                babeltrace::check_all(user, &trace);
            }
        }
    });
}

/// One stream of ten packets or so.
fn long(user: User) -> Recorded {
    let r = record(
        user,
        &["--backend", "ptrace"],
        &["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=7000", "status=none"],
    );
    assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
    r
}

/// Where the packets of a file end, by what they say of themselves (CTF 1.8, 5: the size is at byte 56, in bits).
fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut all = vec![0];
    let mut at = 0;
    while let Some(size) = bytes.get(at + 56..at + 64) {
        at += size.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)) / 8;
        all.push(at);
    }
    assert_eq!(at, bytes.len());
    all
}

#[test]
fn a_truncated_packet_is_missing_wherever_it_ends_until_it_is_there_again() {
    each_user(|user| {
        let r = long(user);
        let (file, end) = (r.trace.join("tracer"), r.trace.join(".trapline/end"));
        let whole = fs::read(&file).expect("the stream");
        let ends = ends(&whole);
        assert!(ends.len() > 3, "{ends:?}");
        let text_of_all = text(user, &r.trace, &[]);
        let events = babeltrace::json(user, &r.trace).len();
        let (last, before) = (ends[ends.len() - 2], ends[ends.len() - 3]);
        let mut cuts: Vec<usize> =
            vec![last, last + 1, last + 23, last + HEAD - 1, last + HEAD, last + HEAD + 1, whole.len() - 1];
        cuts.extend((0..8).map(|i| before + (whole.len() - before) / 8 * i + i));
        for (i, cut) in cuts.into_iter().enumerate() {
            fs::write(&file, &whole[..cut]).expect("the stream");
            let out = r.report(&[]);
            assert_eq!(out.code(), 125, "cut at {cut}: {}", out.stderr);
            let kept = ends.iter().copied().filter(|e| *e <= cut).max().unwrap_or(0);
            assert!(text_of_all.as_bytes().starts_with(&out.stdout), "cut at {cut}");
            assert!(out.stdout.len() > text_of_all.len() / 4);
            assert!(fs::read(&file).expect("the stream") == whole[..cut], "cut at {cut}: it was written to");
            let said = format!("{} bytes of incomplete packets were skipped", cut - kept);
            assert_eq!(out.stderr.contains(&said), cut > kept, "cut at {cut}: {}", out.stderr);
            let gone = ends.iter().filter(|e| **e > kept).count();
            let said = format!("missing: {gone} packet{} of tracer with ", if gone == 1 { "" } else { "s" });
            assert!(out.stderr.contains(&said), "cut at {cut}: {}", out.stderr);
            if i % 5 == 0 {
                let left = babeltrace::json_of_rest(user, &r.trace).len();
                assert!(out.stderr.contains(&format!("{said}{} events", events - left)), "{}", out.stderr);
                assert_eq!(repair(user, &r.trace).code(), 0);
                assert_eq!(fs::metadata(&file).expect("the stream").len(), kept as u64, "cut at {cut}");
                assert_eq!(babeltrace::check_rest(user, &r.trace), left as u64);
                let again = r.report(&[]);
                assert_eq!((again.code(), again.stdout == out.stdout), (125, true), "{}", again.stderr);
                assert!(
                    again.stderr.contains(&said) && !again.stderr.contains("incomplete packets"),
                    "{}",
                    again.stderr
                );
            }
        }
        fs::write(&file, &whole).expect("the stream");
        assert_eq!(text(user, &r.trace, &[]), text_of_all);
        fs::remove_file(end).expect("the end");
        let out = r.report(&[]);
        assert!(out.code() == 125 && out.stderr.contains(MISSING), "{}", out.stderr);
        let quiet = r.report(&["-q"]);
        assert_eq!((quiet.code(), quiet.stderr.as_str(), quiet.out() == text_of_all), (125, "", true));
    });
}

#[test]
fn what_is_around_damage_is_shown() {
    each_user(|user| {
        let r = long(user);
        let file = r.trace.join("tracer");
        let whole = fs::read(&file).expect("the stream");
        let ends = ends(&whole);
        let all = text(user, &r.trace, &[]);
        // The class of the first event of the second packet that has events; the head of that packet.
        for (at, what) in [(HEAD + 8, "class 65535"), (0, "magic number")] {
            let mut bytes = whole.clone();
            let packet = ends[ends.len() - 3];
            bytes[packet + at..][..2].fill(0xff);
            fs::write(&file, &bytes).expect("the stream");
            let out = r.report(&[]);
            assert_eq!(out.code(), 125, "{}", out.stderr);
            let said = format!("tracer at byte {}: ", packet + at / (HEAD + 8) * HEAD);
            assert!(out.stderr.contains(&said) && out.stderr.contains(what), "{}", out.stderr);
            let shown: Vec<&str> = std::str::from_utf8(&out.stdout).expect("text").lines().collect();
            let mut rest = all.lines();
            assert!(shown.iter().all(|line| rest.any(|l| l == *line)), "lines of the whole, in its order");
            assert!(shown.len() > all.lines().count() / 4 && shown.len() < all.lines().count());
            assert_eq!(shown.last(), all.lines().last().as_ref());
        }
        // What a filesystem leaves of a write that the machine did not live to see.
        let mut bytes = whole.clone();
        bytes.resize(whole.len() + 5000, 0);
        fs::write(&file, &bytes).expect("the stream");
        let out = r.report(&[]);
        assert_eq!((out.code(), out.out() == all), (125, true), "{}", out.stderr);
        assert!(out.stderr.contains("5000 bytes of incomplete packets were skipped"), "{}", out.stderr);
        assert!(fs::read(&file).expect("the stream") == bytes, "it was written to");
        let repaired = repair(user, &r.trace);
        assert_eq!(repaired.code(), 0, "{}", repaired.stderr);
        assert!(repaired.out().contains("tracer: removed 5000 bytes"), "{}", repaired.out());
        assert!(fs::read(&file).expect("the stream") == whole);
        assert_eq!(text(user, &r.trace, &[]), all);
        babeltrace::check_all(user, &r.trace);
    });
}

#[test]
fn a_trace_that_cannot_be_written_is_shown_as_it_is() {
    if !lab::is_root() || !lab::has("setpriv") {
        return lab::skip("root", "only root can hand a trace to somebody else");
    }
    let r = long(User::Me);
    let file = r.trace.join("tracer");
    let whole = fs::read(&file).expect("the stream");
    let script = "chmod -R a+rX trace";
    assert_eq!(lab::run(lab::as_user(User::Me, &["sh", "-c", script]).current_dir(&r.dir)).code(), 0);
    let all = text(User::Nobody, &r.trace, &[]);
    assert_eq!(all, text(User::Me, &r.trace, &[]));
    let cut = whole.len() as u64 - 100;
    fs::OpenOptions::new().write(true).open(&file).and_then(|f| f.set_len(cut)).expect("cut");
    let out = report(User::Nobody, &r.trace, &[]);
    assert_eq!(out.code(), 125, "{}", out.stderr);
    assert!(out.stderr.contains("incomplete packets"), "{}", out.stderr);
    assert!(all.as_bytes().starts_with(&out.stdout) && !out.stdout.is_empty());
    assert!(r.report(&[]).stdout == out.stdout);
    assert_eq!(fs::metadata(&file).expect("the stream").len(), cut, "it was written to");
}

// Slow: a report must find what is written once a second.
#[test]
fn a_recording_that_goes_on_can_be_reported() {
    each_backend(|user, backend| {
        let dir = lab::scratch();
        let script = "i=0; while [ ! -e go ] && [ $i -lt 2000 ]; do dd if=/dev/zero of=/dev/null bs=1 count=500 status=none; sleep 0.02; i=$((i+1)); done";
        let args = [
            "record",
            "--backend",
            backend,
            "--buffer",
            "32M",
            "--as",
            "text=live",
            "--stats",
            "stats",
            "-o",
            "trace",
            "sh",
            "-c",
            script,
        ];
        let running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
        let trace = dir.join("trace");
        let mut reports = Vec::new();
        for round in 1..=6u64 {
            lab::until("more packets", || bytes_in(&trace) > round * (300 << 10));
            let options: &[&str] = if round % 3 == 0 { &["-y"] } else { &[] };
            let out = report(user, &trace, options);
            assert_eq!(out.code(), 0, "{}", out.stderr);
            assert!(out.stderr.contains("the recording is still running"), "{}", out.stderr);
            assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
            if options.is_empty() {
                reports.push(out.stdout);
            }
        }
        let force = ["record", "--force", "-o", "trace", "echo", "ran"];
        let out = lab::run(lab::trapline(user, &force).current_dir(&dir));
        assert_eq!((out.code(), out.out().as_str(), out.stderr.lines().count()), (125, "", 1), "{}", out.stderr);
        assert!(out.stderr.contains("still being recorded"), "{}", out.stderr);
        fs::write(dir.join("go"), "").expect("go");
        let r = finished(user, dir.clone(), running.end());
        assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
        let all = text(user, &r.trace, &[]);
        assert_eq!(all, fs::read_to_string(dir.join("live")).expect("the live view"), "a report has damaged the trace");
        // Streams of several processors are not equally far.
        for part in reports.iter().filter(|_| backend == "ptrace") {
            assert!(all.as_bytes().starts_with(part) && part.len() > 100_000);
        }
        r.check();
    });
}

#[test]
fn a_full_disk_ends_the_trace_but_not_the_command() {
    if !lab::is_root() || !lab::has("unshare") {
        return lab::skip("root", "only root can mount a small disk");
    }
    each_backend(|user, backend| {
        const COMMAND: [&str; 3] =
            ["sh", "-c", "dd if=/dev/zero of=/dev/null bs=1 count=15000 status=none; echo fine; exit 5"];
        let roomy = record(user, &["--backend", backend, "-E", "PWD"], &COMMAND);
        assert_eq!((roomy.outcome.code(), number(&roomy.stats, "dropped")), (5, 0), "{}", roomy.outcome.stderr);
        let dir = lab::scratch();
        let who = if user == User::Nobody { "setpriv --reuid nobody --regid nogroup --clear-groups --" } else { "" };
        // The small disk is only there for this shell and what it starts.
        let script = format!(
            "mkdir small && mount -t tmpfs -o size=1m,mode=777 none small && \
             {{ {who} {exe} record --backend {backend} -E PWD --stats stats -o small/trace sh -c '{command}'; \
             echo $? >status; cp -rp small/trace trace; }}",
            exe = lab::dir().join("trapline").display(),
            command = COMMAND[2],
        );
        let out = lab::run(lab::as_user(User::Me, &["unshare", "-m", "sh", "-c", &script]).current_dir(&dir));
        assert_eq!((out.code(), out.out().as_str()), (0, "fine\n"), "{}", out.stderr);
        assert_eq!(fs::read_to_string(dir.join("status")).expect("status"), "5\n", "{}", out.stderr);
        let said: Vec<&str> = out.stderr.lines().filter(|l| l.contains("No space left on device")).collect();
        assert_eq!((said.len(), out.stderr.lines().count()), (1, 2), "{}", out.stderr);
        assert!(said[0].contains("small/trace") && said[0].contains("the command continues"), "{}", said[0]);
        assert!(!lab::dir().join("small").exists());
        let r = finished(user, dir, out);
        let dropped = number(&r.stats, "dropped");
        assert!(dropped > 1000, "{}", r.stats);
        assert_eq!(calls(&r.stats, "seen"), calls(&roomy.stats, "seen"));
        let lost = calls(&r.stats, "dropped");
        for (name, seen) in calls(&r.stats, "seen") {
            assert_eq!(seen, calls(&r.stats, "recorded")[&name] + lost[&name], "{name} {}", r.stats);
        }
        assert_eq!(lost.values().sum::<u64>(), dropped, "{}", r.stats);
        // The rest is what trapline says of processes.
        assert!(lost_in_all(&r.stats) < dropped + 50, "{}", r.stats);
        assert!(r.outcome.stderr.contains(&format!(" {dropped} dropped")), "{}", r.outcome.stderr);
        // The trace tells what it has lost, to every reader.
        babeltrace::check_with_drops(user, &r.trace, r.events());
        if let Some(found) = babeltrace::counts(user, &r.trace) {
            assert_eq!(found, (r.events(), lost_in_all(&r.stats)));
        }
        let later = r.report(&[]);
        assert_eq!(later.code(), 0, "{}", later.stderr);
        let said = format!("{} could not be written: No space left on device", lost_in_words(&r.stats));
        assert!(later.stderr.contains(&said) && later.stderr.lines().count() == 1, "{}", later.stderr);
        let stats = r.report(&["--as", "stats"]).out();
        assert!(stats.contains("end         complete\n"), "{stats}");
        let all = lost_in_all(&r.stats);
        assert!(stats.contains(&format!("\ndiscarded   {all}\nunwritten   {all} of")), "{stats}");
    });
}

#[test]
fn a_writer_that_cannot_start_ends_the_trace_but_not_the_command() {
    if !lab::is_root() || !lab::has("setpriv") || !lab::has("prlimit") {
        return lab::skip("root", "only root can become a user without processes");
    }
    // Who has no other processes: room for trapline, its tracer and the command, and for no thread.
    let uid = (61_000 + std::process::id() % 4_000).to_string();
    let exe = lab::dir().join("trapline").display().to_string();
    let dir = lab::scratch();
    let become_it = ["setpriv", "--reuid", &uid, "--regid", &uid, "--clear-groups"];
    let limited = [&["prlimit", "--nproc=3:3"][..], &become_it].concat();
    let recording =
        [exe.as_str(), "record", "-o", "trace", "--stats", "stats", "dd", "if=/dev/zero", "of=/dev/null", "bs=1"];
    let args = [&limited[..], &recording, &["count=1000", "status=none"]].concat();
    let r = finished(User::Me, dir.clone(), lab::run(lab::as_user(User::Me, &args).current_dir(&dir)));
    assert_eq!((r.outcome.code(), r.outcome.stderr.lines().count()), (0, 2), "{}", r.outcome.stderr);
    let said = "trapline: trace: cannot start a thread: Resource temporarily unavailable (";
    assert!(
        r.outcome.stderr.starts_with(said) && r.outcome.stderr.contains("the command continues"),
        "{}",
        r.outcome.stderr
    );
    let dropped = number(&r.stats, "dropped");
    assert!(dropped > 2000 && r.events() == 0, "{}", r.stats);
    assert_eq!(calls(&r.stats, "seen"), calls(&r.stats, "dropped"));
    let report = [&become_it[..], &[&exe, "report", "trace"]].concat();
    let later = lab::run(lab::as_user(User::Me, &report).current_dir(&dir));
    assert_eq!((later.code(), later.out().as_str()), (0, ""), "{}", later.stderr);
    assert!(
        later.stderr.contains(&format!("{} could not be written: cannot start", lost_in_words(&r.stats))),
        "{}",
        later.stderr
    );
}

/// Records a command with a trapline that is stopped while the command does what fills its buffers: from the file `go` on, until it
/// has made `done`. The command ends with the file `end`.
fn recorded_by_a_sleeper(user: User, options: &[&str], command: &[&str]) -> Recorded {
    let dir = lab::scratch();
    let args = [&["record", "-o", "trace", "--stats", "stats"], options, command].concat();
    let running = lab::start(lab::trapline(user, &args).current_dir(&dir).stderr(Stdio::piped()));
    lab::until("packets", || dir.join("trace/maps").exists());
    lab::kill("STOP", running.pid().into());
    fs::write(dir.join("go"), "").expect("go");
    lab::until("full buffers", || dir.join("done").exists());
    lab::kill("CONT", running.pid().into());
    fs::write(dir.join("end"), "").expect("end");
    let r = finished(user, dir, running.end());
    assert_eq!(r.outcome.code(), 0, "{}", r.outcome.stderr);
    r
}

/// What the ring of one stream has dropped is not dropped a second time by another one.
#[test]
fn drops_of_the_ptracer_are_counted_once() {
    each_user(|user| {
        let script = "while [ ! -e go ]; do sleep 0.02; done; dd if=/dev/zero of=/dev/null bs=1 count=2000 status=none; \
            touch done; while [ ! -e end ]; do sleep 0.02; done";
        let options = ["--backend", "ptrace", "--on-full", "drop", "--buffer", "4096"];
        let r = recorded_by_a_sleeper(user, &options, &["sh", "-c", script]);
        let dropped = number(&r.stats, "dropped");
        assert!(dropped > 1000, "nothing was dropped, the test shows nothing");
        if let Some(found) = babeltrace::counts(user, &r.trace) {
            assert_eq!(found, (r.events(), lost_in_all(&r.stats)));
        }
        let later = r.report(&[]);
        assert!(later.stderr.contains(&format!("{} were dropped", lost_in_words(&r.stats))), "{}", later.stderr);
    });
}

/// Mappings that the kernel could not tell of, because their ring was full, are counted in their stream.
#[test]
fn mappings_that_were_lost_are_counted() {
    if !lab::kernel_backend_is_possible() {
        return;
    }
    if !lab::has("python3") {
        return lab::skip("package:python3", "no python3");
    }
    // The kernel says how many it has lost with the next one on that processor.
    let script = "import mmap, os, time\n\
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n\
        def map(): mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()\n\
        while not os.path.exists('go'): time.sleep(0.01)\n\
        for i in range(30000): map()\n\
        open('done', 'w')\n\
        while not os.path.exists('end'): time.sleep(0.01)\n\
        for i in range(50): time.sleep(0.01); map()";
    let r = recorded_by_a_sleeper(User::Me, &["--backend", "kernel"], &["python3", "-c", script]);
    let stats = r.report(&["-q", "--as", "stats-json"]);
    let stats: serde_json::Value = serde_json::from_str(&stats.out()).expect("JSON");
    let maps = stats["streams"].as_array().into_iter().flatten().find(|s| s["name"] == "maps").expect("the stream");
    let lost = maps["discarded"].as_u64().expect("a number");
    assert!(lost > 1000, "none were lost, the test shows nothing: {stats}");
    assert!(lost <= number(&r.stats, "bookkeeping_dropped"), "{}", r.stats);
    if let Some(found) = babeltrace::counts(User::Me, &r.trace) {
        assert_eq!(found, (r.events(), lost_in_all(&r.stats)));
    }
}
