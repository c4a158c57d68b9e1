//! The frame of the slow code of calls with tracers, which it shares with what the tracers do.

/// What the stub and the code below have pushed, from the lowest address upwards.
#[repr(C)]
pub struct Frame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbx: u64,
    _free: [u64; 7],
    pub rbp: u64,
    _resume: u64,
    _rcx: u64,
    _rdx: u64,
    _rax: u64,
    /// The slot: the return address of the function.
    pub address: u64,
}

impl Frame {
    /// Where the return address is.
    pub fn slot(&self) -> u64 {
        &raw const self.address as u64
    }
}
