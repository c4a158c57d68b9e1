//! Threads that wait for one another, so that none of them goes on.
//!
//! A thread goes on if it waits for nothing that is known, or only for a time, or if somebody who can end its wait goes on. All others are
//! stuck: each of them waits, perhaps through others, for a circle.

use super::{Process, Thread, Wait};
use std::collections::{BTreeMap, BTreeSet};

/// A circle of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// Its threads: each waits for the next one, and the last one for the first.
    pub circle: Vec<i32>,
    /// Threads that wait for it and are not part of it.
    pub behind: Vec<i32>,
    /// That they wait for one another is only likely.
    pub likely: bool,
}

/// The deadlocks among the threads of these processes.
pub fn find(processes: &[Process]) -> Vec<Deadlock> {
    let process_of: BTreeMap<i32, &Process> = processes.iter().map(|p| (p.pid, p)).collect();
    let threads: BTreeMap<i32, &Thread> = processes.iter().flat_map(|p| &p.threads).map(|t| (t.tid, t)).collect();
    let mut stuck: BTreeSet<i32> = threads.values().filter(|t| may_be_stuck(t)).map(|t| t.tid).collect();
    // Who can end a wait, as threads; none: somebody who is not known.
    let enders = |tid: i32, wait: &Wait| -> Option<Vec<i32>> {
        let mut all = Vec::new();
        for actor in &wait.by {
            match actor.tid {
                Some(tid) => all.push(tid),
                None => all.extend(process_of.get(&actor.pid)?.threads.iter().map(|t| t.tid).filter(|t| *t != tid)),
            }
        }
        Some(all)
    };
    loop {
        let goes_on = |tid: &i32| {
            let wait = threads.get(tid).and_then(|t| t.wait.as_ref())?;
            let all = enders(*tid, wait)?;
            all.iter().all(|ender| stuck.contains(ender)).then_some(())
        };
        let free: Vec<i32> = stuck.iter().copied().filter(|tid| goes_on(tid).is_none()).collect();
        if free.is_empty() {
            break;
        }
        free.iter().for_each(|tid| _ = stuck.remove(tid));
    }
    let next = |tid: i32| {
        let wait = threads.get(&tid)?.wait.as_ref()?;
        // One that nobody else can end is a circle of its own.
        Some(enders(tid, wait)?.into_iter().find(|t| stuck.contains(t)).unwrap_or(tid))
    };
    let mut found: Vec<Deadlock> = Vec::new();
    for start in &stuck {
        let mut way = vec![*start];
        let circle = loop {
            let Some(to) = way.last().and_then(|last| next(*last)) else { break Vec::new() };
            match way.iter().position(|t| *t == to) {
                Some(at) => break way.split_off(at),
                None => way.push(to),
            }
        };
        let first = circle.iter().min().copied();
        match found.iter_mut().find(|d| d.circle.iter().min().copied() == first) {
            Some(known) if !known.circle.contains(start) => known.behind.push(*start),
            Some(_) => {}
            None => {
                let likely = |t: &i32| threads.get(t).and_then(|t| t.wait.as_ref()).is_some_and(|w| w.likely);
                let likely = circle.iter().any(likely);
                let behind = if circle.contains(start) { Vec::new() } else { vec![*start] };
                found.push(Deadlock { circle, behind, likely });
            }
        }
    }
    found
}

/// Whether the thread waits for something known that does not end by itself.
fn may_be_stuck(t: &Thread) -> bool {
    let known = |w: &Wait| (w.complete || w.likely) && !w.timed;
    matches!(t.state, 'S' | 'D') && t.wait.as_ref().is_some_and(known)
}

#[cfg(test)]
mod tests {
    use super::super::Actor;
    use super::*;

    fn thread(tid: i32, for_: &[(i32, Option<i32>)]) -> Thread {
        let by = for_.iter().map(|(pid, tid)| Actor { pid: *pid, tid: *tid, ..Actor::default() }).collect();
        Thread { tid, state: 'S', wait: Some(Wait { by, complete: true, ..Wait::default() }), ..Thread::default() }
    }

    fn process(pid: i32, threads: Vec<Thread>) -> Process {
        Process { pid, threads, ..Process::default() }
    }

    fn circles(processes: &[Process]) -> Vec<(Vec<i32>, Vec<i32>)> {
        find(processes).into_iter().map(|d| (d.circle, d.behind)).collect()
    }

    #[test]
    fn a_circle_is_found_with_those_behind_it() {
        let on = |tid| [(1, Some(tid))];
        let p = process(1, vec![thread(1, &on(2)), thread(2, &on(3)), thread(3, &on(4)), thread(4, &on(2))]);
        assert_eq!(circles(&[p]), [(vec![2, 3, 4], vec![1])]);
    }

    #[test]
    fn who_can_be_freed_is_in_no_circle() {
        let free = Thread { tid: 3, state: 'R', ..Thread::default() };
        // Either of two can end the wait, and one of them runs.
        let p = process(1, vec![thread(1, &[(1, Some(2)), (1, Some(3))]), thread(2, &[(1, Some(1))]), free.clone()]);
        assert_eq!(circles(&[p]), []);
        let both = process(1, vec![thread(1, &[(1, Some(2))]), thread(2, &[(1, Some(1))]), free]);
        assert_eq!(circles(&[both]), [(vec![1, 2], vec![])]);
        // Somebody who was not looked at.
        let p = process(1, vec![thread(1, &[(1, Some(2))]), thread(2, &[(9, None)])]);
        assert_eq!(circles(&[p]), []);
    }

    #[test]
    fn time_and_stopped_threads_break_a_circle() {
        for how in 0..3 {
            let mut p = process(1, vec![thread(1, &[(1, Some(2))]), thread(2, &[(1, Some(1))])]);
            let second = &mut p.threads[1];
            match (how, second.wait.as_mut()) {
                (0, Some(wait)) => wait.timed = true,
                (1, Some(wait)) => wait.complete = false,
                _ => second.state = 'T',
            }
            assert_eq!(circles(&[p]), [], "{how}");
        }
    }

    #[test]
    fn processes_wait_for_each_other_and_for_themselves() {
        let a = process(1, vec![thread(1, &[(2, None)])]);
        let b = process(2, vec![thread(2, &[(1, None)])]);
        assert_eq!(circles(&[a.clone(), b]), [(vec![1, 2], vec![])]);
        // A second thread of the other one may act.
        let b = process(2, vec![thread(2, &[(1, None)]), Thread { tid: 3, state: 'S', ..Thread::default() }]);
        assert_eq!(circles(&[a, b]), []);
        let own = process(1, vec![thread(1, &[(1, None)])]);
        assert_eq!(circles(&[own]), [(vec![1], vec![])]);
        let relock = process(1, vec![thread(1, &[(1, Some(1))]), Thread { tid: 2, state: 'R', ..Thread::default() }]);
        assert_eq!(circles(&[relock]), [(vec![1], vec![])]);
    }

    #[test]
    fn likely_deadlocks_are_marked() {
        let mut p = process(1, vec![thread(1, &[(1, Some(2))]), thread(2, &[(1, Some(1))])]);
        if let Some(wait) = &mut p.threads[0].wait {
            (wait.complete, wait.likely) = (false, true);
        }
        assert!(find(&[p])[0].likely);
    }
}
