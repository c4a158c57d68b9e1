//! The types of the functions that a program consists of: the kernel takes functions that are called back only with them.

use std::os::fd::{AsFd, OwnedFd};
use sys::bpf::prog::{LoadError, Program, ProgramSpec, btf_load};

/// The types, loaded.
pub struct Functions {
    btf: OwnedFd,
    main: u32,
    callback: u32,
}

impl Functions {
    /// Loads them.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn new() -> Result<Functions, LoadError> {
        let (blob, main, callback) = sys::btf::build::program_types();
        Ok(Functions { btf: btf_load(&blob)?, main, callback })
    }

    /// Loads a program.
    ///
    /// # Errors
    /// The verifier rejects it.
    pub fn load(&self, spec: ProgramSpec<'_>, program: &bpf::Program) -> Result<Program, LoadError> {
        let records = self.records(program);
        let mut spec = spec;
        if program.functions().len() > 1 {
            spec.functions = Some((self.btf.as_fd(), &records));
        }
        Program::load(&spec)
    }

    /// Instruction and type of every function of `program`.
    fn records(&self, program: &bpf::Program) -> Vec<u8> {
        let starts = program.functions();
        let types = std::iter::once(self.main).chain(std::iter::repeat(self.callback));
        starts.iter().zip(types).flat_map(|(at, id)| [(*at as u32).to_ne_bytes(), id.to_ne_bytes()].concat()).collect()
    }
}
