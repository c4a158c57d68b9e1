//! The program's code: its bytes are read and replaced by `/proc/self/mem`, or in place where that cannot be opened.

use crate::kernel;
use abi::plan::PATCH;

/// Bytes of the program, or None where nothing is mapped. `memory`: `/proc/self/mem`, or negative.
///
/// # Safety
/// What is mapped there stays meanwhile.
pub unsafe fn read_text(memory: i32, address: u64, len: usize) -> Option<[u8; PATCH]> {
    let mut bytes = [0; PATCH];
    let part = bytes.get_mut(..len)?;
    let read = if memory >= 0 { kernel::pread(memory, part, address) } else { -1 };
    if read == len as isize {
        return Some(bytes);
    }
    let mapped = kernel::is_readable(address) && kernel::is_readable(address + len as u64 - 1);
    for (i, byte) in part.iter_mut().enumerate().filter(|_| mapped) {
        // SAFETY: it is readable; the rest says the caller.
        *byte = unsafe { ((address + i as u64) as *const u8).read_volatile() };
    }
    mapped.then_some(bytes)
}

/// Replaces bytes of the program.
///
/// # Safety
/// They are code, which stays meanwhile, and may be replaced by these: nobody is in between.
pub unsafe fn write_text(memory: i32, address: u64, bytes: &[u8]) -> bool {
    if memory >= 0 && kernel::pwrite(memory, bytes, address) == bytes.len() as isize {
        return true;
    }
    let (first, end) = (address & !4095, (address + bytes.len() as u64 + 4095) & !4095);
    let (code, all) =
        (kernel::PROT_READ | kernel::PROT_EXEC, kernel::PROT_READ | kernel::PROT_WRITE | kernel::PROT_EXEC);
    // SAFETY: text stays readable and executable; the rest says the caller.
    unsafe {
        if kernel::protect(first, end - first, all) != 0 {
            return false;
        }
        for (i, byte) in bytes.iter().enumerate() {
            ((address + i as u64) as *mut u8).write_volatile(*byte);
        }
        kernel::protect(first, end - first, code);
    }
    true
}
