//! Answers that are made before a process is stopped, for what it has mapped then. Once it is stopped, they are looked through, not made.

use super::module::Known;
use super::planner::{Answer, Placed, Planner};
use abi::message::Hello;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sys::maps::{Map, PROT_EXEC};

/// Is notified of what answers report for the first time: events, files, and places of probes, by their first number.
pub type Report = Box<dyn Fn(Vec<Vec<u8>>, Vec<Arc<Known>>, Vec<(u32, Arc<Known>)>) + Send + Sync>;

/// An answer, and its plan as a file.
#[derive(Default)]
pub struct Full {
    /// The answer, whose plan is empty where there is the file.
    pub answer: Answer,
    /// The plan, and how many bytes it has.
    pub plan: Option<(OwnedFd, u64)>,
}

impl Full {
    /// # Errors
    /// Those of memfd_create(2) and write(2).
    fn of(mut answer: Answer) -> io::Result<Full> {
        let plan = std::mem::take(&mut answer.plan);
        let sealed =
            |plan: Vec<u8>| Ok::<_, io::Error>((sys::agent::sealed(c"trapline-plan", &plan)?, plan.len() as u64));
        Ok(Full { plan: Some(plan).filter(|p| !p.is_empty()).map(sealed).transpose()?, answer })
    }
}

/// An answer for a process that is about to be stopped.
struct Ready {
    hello: Hello,
    maps: Vec<Map>,
    full: Full,
}

impl Ready {
    /// Whether it is right for a process with these mappings: the same code is in the same places, and what was free for stubs is.
    fn fits(&self, maps: &[Map]) -> bool {
        let is_code = |m: &&Map| m.prot & PROT_EXEC != 0 && m.file.2 != 0;
        let free = |m: &Map| self.full.answer.areas.iter().all(|a| m.range.1 <= a.start || a.end <= m.range.0);
        self.maps.iter().filter(is_code).eq(maps.iter().filter(is_code)) && maps.iter().all(free)
    }
}

/// A planner, and what it has made beforehand.
pub struct Plans {
    planner: Mutex<Planner>,
    /// The highest number that a function has.
    numbers: Arc<AtomicU32>,
    ready: Mutex<HashMap<i32, Ready>>,
    report: Report,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plans {
    /// With a planner that may have read files.
    pub fn new(planner: Planner, report: Report) -> Plans {
        Plans { planner: Mutex::new(planner), numbers: Arc::default(), ready: Mutex::default(), report }
    }

    /// The highest number that a function has, which a process has got before.
    pub fn numbers(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.numbers)
    }

    fn make(&self, pid: i32, hello: &Hello, maps: &[Map], before: &[Placed]) -> io::Result<Full> {
        let mut planner = locked(&self.planner);
        let mut answer = planner.answer(pid, hello, maps, before);
        self.numbers.store(planner.last(), Ordering::Release);
        // Before another process gets the same numbers.
        let taken = (&mut answer.reported, &mut answer.read, &mut answer.points);
        (self.report)(std::mem::take(taken.0), std::mem::take(taken.1), std::mem::take(taken.2));
        drop(planner);
        Full::of(answer)
    }

    /// Makes the answer that a process will get which is about to be attached to, and has these mappings.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn prepare(&self, pid: i32, hello: &Hello, maps: Vec<Map>) -> io::Result<()> {
        let full = self.make(pid, hello, &maps, &[])?;
        locked(&self.ready).insert(pid, Ready { hello: *hello, maps, full });
        Ok(())
    }

    /// Whether an answer is ready for a process with these mappings.
    pub fn fits(&self, pid: i32, maps: &[Map]) -> bool {
        locked(&self.ready).get(&pid).is_some_and(|r| r.fits(maps))
    }

    /// The answer to a process that says this: the one that is ready, if it is right.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn answer(&self, pid: i32, hello: &Hello, maps: &[Map], before: &[Placed]) -> io::Result<Full> {
        let says_so = |r: &Ready| (r.hello.tls, r.hello.slow, r.hello.hooks) == (hello.tls, hello.slow, hello.hooks);
        let ready = locked(&self.ready).remove(&pid);
        match ready.filter(|r| before.is_empty() && says_so(r) && r.fits(maps)) {
            Some(ready) => Ok(ready.full),
            None => self.make(pid, hello, maps, before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::message::{HOOKS, MAGIC, Reason, SLOWS};
    use engine::request::functions::Functions;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn what_was_made_for_other_mappings_is_made_anew() {
        let pid = sys::process::own_pid();
        let hello = Hello {
            magic: MAGIC,
            version: abi::VERSION,
            reason: Reason::Attach as u32,
            pid: 1,
            parent: 0,
            maps_len: 0,
            tls: -512,
            slow: [0x10; SLOWS],
            hooks: [0x20; HOOKS],
            originals: 0,
        };
        let functions = Functions { wanted: vec!["*agent*".into()], ..Functions::default() };
        let reported = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reported);
        let report = move |events: Vec<Vec<u8>>, _, _| {
            count.fetch_add(events.len(), Ordering::Relaxed);
        };
        let plans = Plans::new(Planner::new(functions, 1_000_000), Box::new(report));
        let maps = sys::maps::of(pid).unwrap();
        let prepare = || plans.prepare(pid, &hello, maps.clone()).unwrap();
        let files = |full: &Full| full.plan.as_ref().map(|(file, _)| std::os::fd::AsRawFd::as_raw_fd(file));
        assert!(!plans.fits(pid, &maps));
        prepare();
        let (first, ready) = (reported.load(Ordering::Relaxed), files(&plans.ready.lock().unwrap()[&pid].full));
        assert!(first > 10 && ready.is_some());
        // The same mappings, and others that are in nobody's way.
        let more = Map { range: (0x1000, 0x2000), prot: 3, flags: 2, offset: 0, file: (0, 0, 0), path: vec![] };
        let others = [&[more.clone()][..], &maps].concat();
        assert!(plans.fits(pid, &maps) && plans.fits(pid, &others));
        let kept = plans.answer(pid, &hello, &others, &[]).unwrap();
        assert_eq!(files(&kept), ready);
        // It is used once.
        assert!(!plans.fits(pid, &maps));
        // A module that has gone, and memory where stubs were to be.
        let code = maps.iter().position(|m| m.prot & PROT_EXEC != 0 && m.path.ends_with(b"libc.so.6")).unwrap_or(0);
        let without = [&maps[..code], &maps[code + 1..]].concat();
        let area = kept.answer.areas[0].clone();
        let taken = [&maps[..], &[Map { range: (area.start, area.start + 1), ..more }]].concat();
        for changed in [without, taken] {
            prepare();
            assert!(!plans.fits(pid, &changed) && plans.fits(pid, &maps));
            let made = plans.answer(pid, &hello, &changed, &[]).unwrap();
            assert!(
                made.answer.areas.iter().all(|a| changed.iter().all(|m| m.range.1 <= a.start || a.end <= m.range.0))
            );
            assert!(made.answer.functions > 0);
        }
        // An agent at another place.
        prepare();
        let moved = plans.answer(pid, &Hello { slow: [0x30; SLOWS], ..hello }, &maps, &[]).unwrap();
        assert!(moved.plan.is_some() && !plans.fits(pid, &maps));
        assert_eq!(reported.load(Ordering::Relaxed), first);
    }
}
