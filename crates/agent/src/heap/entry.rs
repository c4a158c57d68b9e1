//! Where thunks come to: they hand over the caller's frame and the original (r11), and leave the registers of arguments alone.

use super::{aligned, calloc, free, free_of_libc, malloc, mmap, mremap, munmap, posix_memalign, realloc, reallocarray};
use abi::message::{HOOKS, Hook};
use core::arch::global_asm;

/// Functions with up to three arguments: the original is the fourth, the frame the fifth.
macro_rules! three {
    ($($name:literal => $function:path;)*) => {$(
        global_asm!(
            ".text",
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ",@function"),
            ".balign 16",
            concat!($name, ":"),
            ".cfi_startproc",
            "push rbp",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset rbp, 0",
            "mov rcx, r11",
            "mov r8, rsp",
            "call {function}",
            "pop rbp",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_restore rbp",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $name, ", .-", $name),
            function = sym $function,
        );
    )*};
}

/// Functions with up to six: the original and the frame are on the stack.
macro_rules! six {
    ($($name:literal => $function:path;)*) => {$(
        global_asm!(
            ".text",
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ",@function"),
            ".balign 16",
            concat!($name, ":"),
            ".cfi_startproc",
            "push rbp",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset rbp, 0",
            "mov rax, rsp",
            "push rax",
            ".cfi_adjust_cfa_offset 8",
            "push r11",
            ".cfi_adjust_cfa_offset 8",
            "call {function}",
            "add rsp, 16",
            ".cfi_adjust_cfa_offset -16",
            "pop rbp",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_restore rbp",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $name, ", .-", $name),
            function = sym $function,
        );
    )*};
}

three! {
    "trapline_malloc" => malloc;
    "trapline_aligned" => aligned;
    "trapline_posix_memalign" => posix_memalign;
    "trapline_calloc" => calloc;
    "trapline_realloc" => realloc;
    "trapline_reallocarray" => reallocarray;
    "trapline_free" => free;
    "trapline_free_of_libc" => free_of_libc;
    "trapline_munmap" => munmap;
}

six! {
    "trapline_mmap" => mmap;
    "trapline_mremap" => mremap;
}

unsafe extern "C" {
    safe static trapline_malloc: u8;
    safe static trapline_aligned: u8;
    safe static trapline_posix_memalign: u8;
    safe static trapline_calloc: u8;
    safe static trapline_realloc: u8;
    safe static trapline_reallocarray: u8;
    safe static trapline_free: u8;
    safe static trapline_free_of_libc: u8;
    safe static trapline_mmap: u8;
    safe static trapline_munmap: u8;
    safe static trapline_mremap: u8;
}

/// Puts the addresses where those of hooks are.
pub fn addresses(out: &mut [u64; HOOKS]) {
    let all = [
        (Hook::Malloc, &raw const trapline_malloc),
        (Hook::Aligned, &raw const trapline_aligned),
        (Hook::PosixMemalign, &raw const trapline_posix_memalign),
        (Hook::Calloc, &raw const trapline_calloc),
        (Hook::Realloc, &raw const trapline_realloc),
        (Hook::Reallocarray, &raw const trapline_reallocarray),
        (Hook::Free, &raw const trapline_free),
        (Hook::FreeOfLibc, &raw const trapline_free_of_libc),
        (Hook::Mmap, &raw const trapline_mmap),
        (Hook::Munmap, &raw const trapline_munmap),
        (Hook::Mremap, &raw const trapline_mremap),
    ];
    for (hook, code) in all {
        if let Some(place) = out.get_mut(hook as usize) {
            *place = code as u64;
        }
    }
}
