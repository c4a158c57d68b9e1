//! User stacks of programs that come and go, by tables that the unwinder of the kernel backend keeps while they run.

mod sampler;

use engine::backend::kernel::unwinder::{Counts, Handle, Room, Target, Unwinder};
use sampler::{Sample, Sampler};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::btf::KernelBtf;
use sys::perf::attach::Rate;
use testkit::skip;
use unwind::Ended;

/// One test at a time: each measures.
static ALONE: Mutex<()> = Mutex::new(());
/// The group of the programs that are sampled.
const GROUP: u32 = 54_321;
const RATE: Rate = Rate::Hz(997);

/// What a test runs with.
struct Stage {
    btf: KernelBtf,
    unwinder: Option<Unwinder>,
    _alone: MutexGuard<'static, ()>,
}

#[track_caller]
fn start(room: Room) -> Option<Stage> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if sys::process::euid() != 0 {
        skip("root", "bpf(2) needs privilege");
        return None;
    }
    if testkit::own_pid_namespace() {
        skip("root", "in a pid namespace of its own");
        return None;
    }
    let _ = sys::bpf::raise_memory_limit();
    let btf = KernelBtf::kernel().unwrap();
    if let Err(why) = Unwinder::possible(&btf) {
        skip("vm", &why);
        return None;
    }
    let began = Instant::now();
    let unwinder = Unwinder::new(&btf, room).unwrap();
    eprintln!("made in {:?}", began.elapsed());
    Some(Stage { btf, unwinder: Some(unwinder), _alone: alone })
}

impl Stage {
    fn watch(&mut self, target: Target) {
        self.unwinder.as_mut().unwrap().watch(target);
    }

    fn run(&mut self, group: Option<u32>) -> (Sampler, Handle) {
        let unwinder = self.unwinder.take().unwrap();
        let sampler = Sampler::start(&unwinder, &self.btf, group, RATE);
        (sampler, unwinder.run().unwrap())
    }
}

/// A child that is killed.
struct Running(Child);

impl Running {
    fn start(program: &str, args: &[&str]) -> Option<Running> {
        let mut command = Command::new(program);
        command.args(args).gid(GROUP).process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok().map(Running)
    }

    fn is_there(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Samples until a time has passed or the child has ended.
fn sample(sampler: &mut Sampler, child: &mut Running, lasts: Duration) -> Vec<Sample> {
    let began = Instant::now();
    let mut samples = Vec::new();
    while began.elapsed() < lasts && child.is_there() {
        std::thread::sleep(Duration::from_millis(5));
        samples.extend(sampler.take());
    }
    samples.extend(sampler.take());
    samples
}

/// The share of whole stacks in percent; with a table of the others.
fn whole(what: &str, samples: &[Sample], counts: &Counts) -> f64 {
    let mut others: BTreeMap<(Ended, bool), (u64, BTreeMap<String, u64>)> = BTreeMap::new();
    let mut good = 0;
    for s in samples {
        if s.ended == Ended::Outermost {
            good += 1;
        } else {
            let other = others.entry((s.ended, s.exiting)).or_default();
            other.0 += 1;
            *other.1.entry(format!("{} {}", s.comm, s.frames.len())).or_default() += 1;
        }
    }
    let share = 100.0 * good as f64 / samples.len().max(1) as f64;
    eprintln!("{what}: {good} of {} whole ({share:.2} %)", samples.len());
    for ((ended, exiting), (n, comms)) in others {
        eprintln!("  {n} {ended:?}{}: {comms:?}", if exiting { " while it ends" } else { "" });
    }
    eprintln!("  {counts:?}");
    eprintln!("  half of the changes within {} µs, 99 % within {} µs", counts.delay(50), counts.delay(99));
    share
}

/// Programs that last for milliseconds.
#[test]
fn short_programs_are_whole_from_their_beginning() {
    let Some(mut stage) = start(Room::SOME) else { return };
    stage.watch(Target::Children);
    let (mut sampler, mut handle) = stage.run(Some(GROUP));
    let script = "i=0; while [ $i -lt 250 ]; do python3 -c pass; i=$((i+1)); done";
    let Some(mut child) = Running::start("sh", &["-c", script]) else { return skip("package:python3", "no sh") };
    let samples = sample(&mut sampler, &mut child, Duration::from_secs(20));
    handle.stop();
    let share = whole("a loop of pythons", &samples, &handle.counts());
    assert!(samples.len() > 500);
    assert!(share >= 95.0, "{share}");
}
