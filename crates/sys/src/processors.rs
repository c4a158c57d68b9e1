//! The processors of this machine, and those that a thread may run on.

use crate::check::check;
use std::io;

/// A set of processors (sched_setaffinity(2)): those that the thread which asked for it could run on then.
#[derive(Clone, Copy)]
pub struct Processors(libc::cpu_set_t);

impl Processors {
    /// Those that the calling thread may run on.
    ///
    /// # Errors
    /// The kernel knows more than 1024.
    pub fn allowed() -> io::Result<Processors> {
        // SAFETY: a set of zeros is the empty one.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is valid for the call, with its size; 0 is the calling thread.
        check(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) }.into())?;
        Ok(Processors(set))
    }

    /// All but this one; none where there is no other.
    pub fn without(mut self, cpu: u32) -> Option<Processors> {
        let cpu = usize::try_from(cpu).ok().filter(|cpu| *cpu < libc::CPU_SETSIZE as usize)?;
        // SAFETY: the number is one of the set's.
        unsafe { libc::CPU_CLR(cpu, &mut self.0) };
        // SAFETY: the set is a valid one.
        (unsafe { libc::CPU_COUNT(&self.0) } > 0).then_some(self)
    }

    /// This one and no other; none where there can be no such.
    pub fn only(cpu: u32) -> Option<Processors> {
        let cpu = usize::try_from(cpu).ok().filter(|cpu| *cpu < libc::CPU_SETSIZE as usize)?;
        // SAFETY: a set of zeros is the empty one.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the number is one of the set's.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        Some(Processors(set))
    }

    /// Has the calling thread run on these only.
    ///
    /// # Errors
    /// None of them can be used any more.
    pub fn restrict(&self) -> io::Result<()> {
        // SAFETY: the set is valid for the call, with its size; 0 is the calling thread.
        check(unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), &self.0) }.into()).map(drop)
    }
}

/// Those that this machine may ever have, in order: their numbers may have gaps. A block of values of a map has one for each.
///
/// # Errors
/// The list cannot be read.
pub fn possible() -> io::Result<Vec<u32>> {
    listed("possible")
}

/// Those that are on line, in order.
///
/// # Errors
/// The list cannot be read.
pub fn online() -> io::Result<Vec<u32>> {
    listed("online")
}

fn listed(which: &str) -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/{which}"))?;
    parse(text.trim()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `/proc` lists them.
    fn allowed() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("it is there");
        let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list:")).expect("a line");
        line.split_whitespace().last().expect("a list").to_string()
    }

    #[test]
    fn a_thread_stays_off_a_processor_and_comes_back() {
        std::thread::spawn(|| {
            let all = Processors::allowed().expect("a set");
            let before = allowed();
            let first: u32 = before.split(['-', ',']).next().and_then(|n| n.parse().ok()).expect("a number");
            match all.without(first) {
                Some(others) => {
                    others.restrict().expect("there are others");
                    assert_ne!(allowed().split(['-', ',']).next(), Some(&first.to_string()[..]));
                }
                None => assert_eq!(before, first.to_string(), "there is one"),
            }
            all.restrict().expect("they were allowed");
            assert_eq!(allowed(), before);
            assert!(all.without(u32::MAX).is_none());
        })
        .join()
        .expect("it passes");
    }

    #[test]
    fn lists_are_parsed() {
        assert_eq!(parse("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse("0"), Some(vec![0]));
        assert_eq!(parse("0-"), None);
        assert_eq!(parse("3-1"), None);
        assert_eq!(parse("0-4294967295"), None);
    }
}
