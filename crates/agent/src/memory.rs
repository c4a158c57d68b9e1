//! memcpy and its like, which the compiler calls. In assembly, so that their names stay inside the library: a preloaded library that
//! exported them would replace the program's.

use core::arch::global_asm;

global_asm!(
    ".text",
    ".globl memcpy",
    ".hidden memcpy",
    ".type memcpy,@function",
    "memcpy:",
    ".cfi_startproc",
    "mov rax, rdi",
    "mov rcx, rdx",
    "rep movsb",
    "ret",
    ".cfi_endproc",
    ".size memcpy, .-memcpy",
    ".globl memmove",
    ".hidden memmove",
    ".type memmove,@function",
    "memmove:",
    ".cfi_startproc",
    "mov rax, rdi",
    "mov rcx, rdx",
    "sub rdi, rsi",
    "cmp rdi, rdx",
    "mov rdi, rax",
    "jb 2f",
    "rep movsb",
    "ret",
    "2:",
    "lea rdi, [rdi + rdx - 1]",
    "lea rsi, [rsi + rdx - 1]",
    "std",
    "rep movsb",
    "cld",
    "ret",
    ".cfi_endproc",
    ".size memmove, .-memmove",
    ".globl memset",
    ".hidden memset",
    ".type memset,@function",
    "memset:",
    ".cfi_startproc",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".cfi_endproc",
    ".size memset, .-memset",
    ".globl memcmp",
    ".hidden memcmp",
    ".type memcmp,@function",
    ".globl bcmp",
    ".hidden bcmp",
    ".type bcmp,@function",
    "memcmp:",
    ".cfi_startproc",
    "bcmp:",
    "xor eax, eax",
    "mov rcx, rdx",
    "cmp rcx, rcx",
    "repe cmpsb",
    "je 3f",
    "movzx eax, byte ptr [rdi - 1]",
    "movzx ecx, byte ptr [rsi - 1]",
    "sub eax, ecx",
    "3:",
    "ret",
    ".cfi_endproc",
    ".size memcmp, .-memcmp",
    ".size bcmp, .-bcmp",
    ".globl strlen",
    ".hidden strlen",
    ".type strlen,@function",
    "strlen:",
    ".cfi_startproc",
    "xor eax, eax",
    "4:",
    "cmp byte ptr [rdi + rax], 0",
    "je 5f",
    "inc rax",
    "jmp 4b",
    "5:",
    "ret",
    ".cfi_endproc",
    ".size strlen, .-strlen",
);

/// Reads a word.
///
/// # Safety
/// It is mapped.
#[inline(always)]
pub unsafe fn load(address: u64) -> u64 {
    // SAFETY: so says the caller; other threads of the program may write it, so the compiler must not read it twice.
    unsafe { (address as *const u64).read_volatile() }
}

/// Writes a word.
///
/// # Safety
/// It is the agent's.
#[inline(always)]
pub unsafe fn store(address: u64, value: u64) {
    // SAFETY: so says the caller; a handler may look at it, so the compiler must not write it later.
    unsafe { (address as *mut u64).write_volatile(value) }
}

/// The string at an address, at most `most` bytes of it.
///
/// # Safety
/// It is a string of the program, which nobody changes meanwhile.
pub unsafe fn string<'a>(address: *const u8, most: usize) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: so says the caller.
    unsafe {
        while len < most && *address.add(len) != 0 {
            len += 1;
        }
        core::slice::from_raw_parts(address, len)
    }
}
