//! The rings of probes: each enabling has its own, up to [`OWN`] enablings, so that a flood of one drops no event of another. Further ones
//! share one set, because memory is bounded.
//!
//! Enablings whose events are of one class never share rings, so that what comes out of them is counted for each.

use super::ring::Ring;
use engine::request::probe_enabling::ProbeEnabling;
use engine::stats::Passed;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use sys::bpf::map::Map;
use sys::bpf::ring::Ring as KernelRing;

/// The most enablings that have rings of their own.
pub const OWN: usize = 256;

/// The smallest ring of a set, unless a smaller one was asked for.
const SMALLEST: usize = 256 << 10;

/// Bytes of the rings of each of `n` sets, per CPU: a share of what was asked for.
pub fn share(buffer: usize, n: usize) -> usize {
    (buffer / n.next_power_of_two().max(1)).max(buffer.min(SMALLEST))
}

/// A ring per CPU.
pub struct RingSet {
    maps: Vec<Map>,
    /// The rings, by CPU.
    pub rings: Vec<Ring>,
    /// What was taken out of each.
    pub passed: Vec<Passed>,
    /// Of a set that enablings share: events that were taken out, by class.
    by_class: Option<HashMap<u16, u64>>,
    /// Reports of stacks among them.
    stacks: u64,
}

/// Whether an event reports a stack.
pub fn is_stack(event: &[u8]) -> bool {
    event.get(8..10) == Some(&events::generated::P_STACK.id.to_le_bytes())
}

impl RingSet {
    /// Rings of `size` bytes; `shared`: by enablings of different classes.
    pub fn new(cpus: u32, size: usize, shared: bool) -> io::Result<RingSet> {
        let size = size.max(4096) as u32;
        let maps: Vec<Map> = (0..cpus).map(|_| Map::ring("trapline_probe", size)).collect::<io::Result<_>>()?;
        let rings = maps.iter().map(|map| KernelRing::new(map).map(Ring::Kernel)).collect::<io::Result<_>>()?;
        let by_class = shared.then(HashMap::new);
        Ok(RingSet { maps, rings, passed: vec![Passed::default(); cpus as usize], by_class, stacks: 0 })
    }

    /// Of rings that the programs of one enabling write themselves.
    pub fn of(rings: Vec<Ring>) -> RingSet {
        RingSet { maps: Vec::new(), passed: vec![Passed::default(); rings.len()], rings, by_class: None, stacks: 0 }
    }

    /// The descriptors of the kernel's rings, by CPU.
    pub fn descriptors(&self) -> Vec<i32> {
        self.maps.iter().map(|m| m.as_fd().as_raw_fd()).collect()
    }

    /// Empties the rings; `each` gets the number of the CPU and the event. Returns the number of events.
    pub fn drain(&mut self, mut each: impl FnMut(u32, &[u8])) -> usize {
        let RingSet { rings, passed, by_class, stacks, .. } = self;
        let mut n = 0;
        for ((cpu, ring), passed) in (0..).zip(rings).zip(passed) {
            n += ring.drain(|event| {
                passed.add(event);
                *stacks += u64::from(is_stack(event));
                if let (Some(by_class), Some([low, high])) = (by_class.as_mut(), event.get(8..10)) {
                    *by_class.entry(u16::from_le_bytes([*low, *high])).or_default() += 1;
                }
                each(cpu, event);
            });
        }
        n
    }

    /// Whether nothing is in the rings.
    pub fn is_drained(&self) -> bool {
        !self.rings.is_empty() && self.rings.iter().all(|r| r.available() == 0)
    }

    /// Gives the memory of the rings back; what was counted stays.
    pub fn free(&mut self) {
        self.rings.clear();
        self.maps.clear();
    }

    /// Events of an enabling that were taken out.
    pub fn recorded(&self, classes: &[u16]) -> u64 {
        match &self.by_class {
            None => self.passed.iter().map(|p| p.events).sum::<u64>() - self.stacks,
            Some(by_class) => classes.iter().filter_map(|id| by_class.get(id)).sum(),
        }
    }
}

/// Which set each of these enablings uses. Those of the session's own beginning and end use none, whatever their number.
pub fn numbers(probes: &[Arc<ProbeEnabling>]) -> Vec<usize> {
    let shared = are_shared(probes);
    let mut before = 0;
    let mut taken: HashMap<u16, usize> = HashMap::new();
    let number = |e: &Arc<ProbeEnabling>| {
        if e.point.is_none() {
            return 0;
        }
        if !shared {
            before += 1;
            return before - 1;
        }
        let first = e.classes().iter().filter_map(|s| taken.get(&s.id)).max().copied().unwrap_or(0);
        taken.extend(e.classes().iter().map(|s| (s.id, first + 1)));
        first
    };
    probes.iter().map(number).collect()
}

/// Whether enablings share sets.
pub fn are_shared(probes: &[Arc<ProbeEnabling>]) -> bool {
    probes.len() > OWN
}

/// How many sets these enablings use, and how large each ring is.
pub fn sizes(probes: &[Arc<ProbeEnabling>], buffer: usize) -> (usize, usize) {
    let used = probes.iter().zip(numbers(probes)).filter(|(e, _)| e.point.is_some());
    let n = used.map(|(_, number)| number + 1).max().unwrap_or(0);
    (n, share(buffer, n))
}

/// The sets that these enablings share; none where each makes its own.
pub fn make_shared(probes: &[Arc<ProbeEnabling>], cpus: u32, buffer: usize) -> io::Result<Vec<RingSet>> {
    let (n, size) = sizes(probes, buffer);
    let n = if are_shared(probes) { n } else { 0 };
    (0..n).map(|_| RingSet::new(cpus, size, true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::capture::captures::Captures;
    use engine::request::parse::Request;
    use engine::request::probe_enabling::enable;
    use engine::target::Target;

    fn enabled(of: &[String]) -> Vec<Arc<ProbeEnabling>> {
        let requests: Vec<Request> = of.iter().map(|text| Request::parse(text).unwrap()).collect();
        let enabled = enable(&requests, Captures::default(), &Target::Pids(Vec::new())).unwrap();
        enabled.into_iter().map(Arc::new).collect()
    }

    #[test]
    fn many_enablings_share_rings_but_not_those_of_one_class() {
        let few: Vec<String> = (1..=OWN).map(|n| format!("software:context-switches:{n}")).collect();
        let all = enabled(&few);
        assert_eq!(numbers(&all), (0..OWN).collect::<Vec<_>>());
        assert_eq!(sizes(&all, 4 << 20), (OWN, 256 << 10));
        let again = ["software:context-switches:1 /pid == 1/", "software:context-switches:1 /pid == 2/"];
        let all = enabled(&[few, again.map(String::from).to_vec()].concat());
        assert_eq!(numbers(&all)[..OWN], [0; OWN]);
        assert_eq!(numbers(&all)[OWN..], [1, 2]);
        assert_eq!(sizes(&all, 4 << 20), (3, 1 << 20));
    }
}
