//! Objects of the kernel, one after the other, by iterators (Linux 5.8; areas of memory 5.12).

use bpf::objects::{Word, named};
use std::io::{self, Read};
use sys::bpf::prog::{Program, ProgramSpec};
use sys::bpf::{iter, link::Link};
use sys::btf::{KernelBtf, Kind};

/// A kind of objects.
#[derive(Debug)]
pub struct Objects {
    /// Its name.
    pub name: &'static str,
    /// What an iterator knows of each: a name, and the structure whose address it is, or a number.
    pub words: &'static [(&'static str, Option<&'static str>)],
    offsets: &'static [i16],
}

const TASK: (&str, Option<&str>) = ("task", Some("task_struct"));

/// All kinds. Offsets are those of `struct bpf_iter__NAME` (kernel/bpf/task_iter.c).
pub const ALL: &[Objects] = &[
    Objects { name: "task", words: &[TASK], offsets: &[8] },
    Objects { name: "task_file", words: &[TASK, ("fd", None), ("file", Some("file"))], offsets: &[8, 16, 24] },
    Objects { name: "task_vma", words: &[TASK, ("vma", Some("vm_area_struct"))], offsets: &[8, 16] },
];

impl Objects {
    /// By their name.
    pub fn find(name: &str) -> Option<&'static Objects> {
        ALL.iter().find(|o| o.name == name)
    }

    /// Calls `each` with the words of every object, as long as it wants more.
    ///
    /// # Errors
    /// This kernel has no such iterator, or not for this user.
    pub fn each(&self, mut each: impl FnMut(&[u64]) -> bool) -> io::Result<()> {
        let words = || self.words.iter().zip(self.offsets);
        let words: Vec<Word> = words().map(|(w, at)| Word { offset: *at, is_address: w.1.is_some() }).collect();
        let missing = || io::Error::from(io::ErrorKind::Unsupported);
        let id = KernelBtf::kernel()?.find(Kind::Func, &format!("bpf_iter_{}", self.name)).ok_or_else(missing)?;
        let source = named(&words).map_err(io::Error::other)?;
        let program = Program::load(&ProgramSpec::iterator("trapline_objects", &source.bytes(), id))
            .map_err(|e| io::Error::new(e.error.kind(), e.to_string()))?;
        let mut file = iter::open(&Link::iterator(&program, &[])?)?;
        let (mut page, mut left) = ([0; 4096], Vec::new());
        loop {
            match file.read(&mut page) {
                Ok(0) => return Ok(()),
                Ok(n) => left.extend_from_slice(&page[..n]),
                // EAGAIN: many objects without output; the next read continues.
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
                Err(e) => return Err(e),
            }
            let whole = left.len() - left.len() % (8 * words.len());
            let taken: Vec<u8> = left.drain(..whole).collect();
            for object in taken.chunks_exact(8 * words.len()) {
                let words: Vec<u64> = object.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
                if !each(&words) {
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peek::Peek;

    #[test]
    fn the_own_thread_is_among_the_tasks() {
        let Ok(peek) = Peek::load() else { return testkit::skip("kernel", "no kernel backend") };
        let own = peek.task().expect("a task");
        for objects in ALL {
            let (mut found, mut all) = (false, 0);
            let walked = objects.each(|words| {
                assert_eq!(words.len(), objects.words.len());
                (found, all) = (found || words[0] == own, all + 1);
                true
            });
            // task_file and task_vma walk processes, by their first threads.
            walked.unwrap_or_else(|e| panic!("{}: {e}", objects.name));
            assert!(all > 0 && (found || objects.name != "task"), "{}", objects.name);
        }
        let mut all = 0;
        Objects::find("task").expect("a kind").each(|_| (all += 1, false).1).expect("a walk");
        assert_eq!(all, 1);
    }
}
