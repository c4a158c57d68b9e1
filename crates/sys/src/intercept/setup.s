    // The memory is made: rdi, rsi and rdx have the descriptor, the address of an area of stubs (0: none), and its length. Behind it rdi has where the
    // slots are, and rsi where the area is.
    .globl trapline_calls_setup
    .hidden trapline_calls_setup
trapline_calls_setup:
    mov rbx, rdi
    mov r12, rsi
    mov r13, rdx
    movabs rdi, {slots}
    mov esi, {slots_len}
    mov edx, {read_write}
    mov r10d, {shared}
    mov r8, rbx
    mov r9d, {code_len}
    mov eax, {mmap}
    syscall
    mov r14, rax
    mov rdi, rbx
    mov eax, {close}
    syscall
    xor eax, eax
    test r12, r12
    jz 40f
    mov rdi, r12
    mov rsi, r13
    mov edx, {read_execute}
    mov r10d, {anonymous}
    mov r8, -1
    xor r9d, r9d
    mov eax, {mmap}
    syscall
40:
    mov rdi, r14
    mov rsi, rax
    // Every filter of the ptracer's stops at this one; it is not made.
    mov eax, {prctl}
    syscall
    .globl trapline_calls_end
    .hidden trapline_calls_end
trapline_calls_end:
    .popsection
