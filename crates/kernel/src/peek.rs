//! Memory of the kernel, read by a program that runs once for each read (Linux 5.10).

use bpf::peek::{MOST, ask, peek};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use sys::bpf::map::Map;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec};

/// Reads the kernel's memory.
pub struct Peek {
    value: Map,
    program: Program,
}

impl Peek {
    /// Loads the program.
    ///
    /// # Errors
    /// This kernel does not have it, or not for this user.
    pub fn load() -> io::Result<Peek> {
        let value = Map::array("trapline_peek", MOST as u32, 1, 0)?;
        let source = peek(value.as_fd().as_raw_fd()).map_err(io::Error::other)?;
        let program = Program::load(&ProgramSpec::new(ProgramKind::RawTracepoint, "trapline_peek", &source.bytes()))
            .map_err(|e| io::Error::new(e.error.kind(), e.to_string()))?;
        Ok(Peek { value, program })
    }

    /// What the program returns, and the bytes that it has left.
    fn ask(&self, address: u64, bytes: usize, what: u64) -> Option<(i32, Vec<u8>)> {
        let returned = self.program.test_run(&[address, bytes as u64, what]).ok()? as i32;
        let mut value = vec![0; MOST];
        self.value.lookup(&[0; 4], &mut value).ok().filter(|found| *found && returned >= 0)?;
        Some((returned, value))
    }

    /// Bytes at an address; none where there is no memory, or of more than [`MOST`].
    pub fn bytes(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let (_, mut value) = self.ask(address, bytes, ask::BYTES)?;
        value.truncate(bytes);
        Some(value)
    }

    /// The string at an address, of at most this many bytes, without its NUL.
    pub fn text(&self, address: u64, most: usize) -> Option<Vec<u8>> {
        let (length, mut value) = self.ask(address, most.saturating_add(1).min(MOST), ask::TEXT)?;
        value.truncate((length as usize).saturating_sub(1));
        Some(value)
    }

    /// The address of the structure of the calling thread.
    pub fn task(&self) -> Option<u64> {
        let (_, value) = self.ask(0, 0, ask::TASK)?;
        value.first_chunk().map(|word| u64::from_le_bytes(*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_memory_is_what_it_says_elsewhere() {
        let Ok(peek) = Peek::load() else { return testkit::skip("kernel", "no kernel backend") };
        let btf = sys::btf::KernelBtf::kernel().expect("types of the kernel");
        let at = btf.field_of("task_struct", &["comm"]).expect("a name").offset;
        let task = peek.task().expect("a task");
        let comm = sys::proc::comm(sys::process::own_tid()).expect("a name");
        assert_eq!(peek.text(task + u64::from(at), 15), Some(comm.clone()));
        assert_eq!(peek.bytes(task + u64::from(at), comm.len()), Some(comm));
        assert_eq!((peek.bytes(8, 8), peek.text(8, 8), peek.bytes(task, MOST + 1)), (None, None, None));
    }
}
