    .pushsection .rodata
    .balign 4096
    .globl trapline_calls
    .hidden trapline_calls
trapline_calls:
    // r11: two words: the address behind the instruction, and where the call can be made outside of this code.
    mov rcx, qword ptr gs:[{magic_at}]
    // Without a change of the flags, which are still the program's.
    lea rcx, [rcx - {magic}]
    jrcxz 2f
    jmp qword ptr [r11 + 8]
2:
    mov qword ptr gs:[{rax}], rax
    lahf
    seto al
    mov qword ptr gs:[{flags}], rax
    mov rax, qword ptr gs:[{rax}]
    mov rcx, qword ptr [r11]
    mov qword ptr gs:[{ret}], rcx
    mov rcx, qword ptr [r11 + 8]
    mov qword ptr gs:[{raw}], rcx
    cmp rax, {rows}
    jae 90f
    mov r11, rax
    shl r11, {row_bits}
    lea rcx, [rip + trapline_calls + {rows_at}]
    add r11, rcx
    mov cl, byte ptr [r11]
    test cl, byte ptr gs:[{may}]
    jz 90f
    mov rcx, qword ptr gs:[{tail}]
    sub rcx, qword ptr gs:[{head}]
    cmp rcx, {room}
    ja 90f
    test rcx, rcx
    mov rcx, qword ptr gs:[{off}]
    jnz 7f
    cmp rcx, {little}
    jb 7f
    // All records were read: this one begins where the first did.
    mov rcx, qword ptr gs:[{tail}]
    mov qword ptr gs:[{again}], rcx
    xor ecx, ecx
    mov qword ptr gs:[{off}], rcx
7:
    add rcx, qword ptr gs:[{ring}]
    mov qword ptr gs:[{cur}], rcx
    mov qword ptr gs:[{state}], 1
    mov dword ptr [rcx + 4], eax
    mov qword ptr [rcx + 32], rdi
    mov qword ptr [rcx + 40], rsi
    mov qword ptr [rcx + 48], rdx
    mov qword ptr [rcx + 56], r10
    mov qword ptr [rcx + 64], r8
    mov qword ptr [rcx + 72], r9
    mov r8, rcx
    mov rcx, qword ptr gs:[{ret}]
    mov qword ptr [r8 + 88], rcx
    lea rdi, [r8 + {record}]
    movzx r9d, byte ptr [r11 + 1]
    lea r10, [r11 + 8]
    lea rcx, [rip + 3f]
    mov qword ptr gs:[{link}], rcx
    jmp 10f
3:
    sub rdi, r8
    mov dword ptr [r8 + 96], edi
    .globl trapline_calls_before
    .hidden trapline_calls_before
trapline_calls_before:
    rdtscp
    nop dword ptr [rax]
    shl rdx, 32
    or rax, rdx
    mov qword ptr [r8 + 8], rax
    mov dword ptr [r8 + 24], ecx
    mov qword ptr gs:[{state}], 2
    mov rax, qword ptr gs:[{flags}]
    add al, 127
    sahf
    mov rax, qword ptr gs:[{rax}]
    mov rdi, qword ptr [r8 + 32]
    mov rsi, qword ptr [r8 + 40]
    mov rdx, qword ptr [r8 + 48]
    mov r10, qword ptr [r8 + 56]
    mov r9, qword ptr [r8 + 72]
    mov r8, qword ptr [r8 + 64]
    .globl trapline_calls_site
    .hidden trapline_calls_site
trapline_calls_site:
    syscall
    .globl trapline_calls_after
    .hidden trapline_calls_after
trapline_calls_after:
    mov qword ptr gs:[{rax}], rax
    mov qword ptr gs:[{r11}], r11
    mov qword ptr gs:[{state}], 3
    mov r8, qword ptr gs:[{cur}]
    mov qword ptr [r8 + 80], rax
    .globl trapline_calls_behind
    .hidden trapline_calls_behind
trapline_calls_behind:
    rdtscp
    nop dword ptr [rax]
    shl rdx, 32
    or rax, rdx
    mov qword ptr [r8 + 16], rax
    mov dword ptr [r8 + 28], ecx
    mov edi, dword ptr [r8 + 96]
    add rdi, r8
    mov eax, dword ptr [r8 + 4]
    shl rax, {row_bits}
    lea rcx, [rip + trapline_calls + {rows_at}]
    add rax, rcx
    // Of a call that has failed nothing is read, but for what its row says.
    cmp qword ptr [r8 + 80], -4095
    jb 6f
    cmp byte ptr [rax + 3], 0
    je 4f
6:
    movzx r9d, byte ptr [rax + 2]
    movzx ecx, byte ptr [rax + 1]
    lea r10, [rax + rcx * 8 + 8]
    lea rcx, [rip + 4f]
    mov qword ptr gs:[{link}], rcx
    jmp 10f
4:
    sub rdi, r8
    mov dword ptr [r8 + 100], edi
    mov dword ptr [r8], edi
    mov rcx, qword ptr gs:[{off}]
    add rcx, rdi
    cmp rcx, {exit}
    jb 5f
    xor ecx, ecx
5:
    mov qword ptr gs:[{off}], rcx
    add qword ptr gs:[{tail}], rdi
    mov qword ptr gs:[{state}], 0
    mov rdi, qword ptr [r8 + 32]
    mov rsi, qword ptr [r8 + 40]
    mov rdx, qword ptr [r8 + 48]
    mov r10, qword ptr [r8 + 56]
    mov r9, qword ptr [r8 + 72]
    mov r8, qword ptr [r8 + 64]
    mov rax, qword ptr gs:[{flags}]
    add al, 127
    sahf
    mov rax, qword ptr gs:[{rax}]
    mov rcx, qword ptr gs:[{ret}]
    mov r11, qword ptr gs:[{r11}]
    jmp qword ptr gs:[{ret}]
    // The call is made where it stops.
90:
    mov rax, qword ptr gs:[{flags}]
    add al, 127
    sahf
    mov rax, qword ptr gs:[{rax}]
    jmp qword ptr gs:[{raw}]
    // r9d captures by the words at r10, into rdi; r8: the record.
10:
    test r9d, r9d
    jz 19f
    mov qword ptr gs:[{first}], rdi
11:
    movzx eax, byte ptr [r10 + 1]
    cmp byte ptr [r10], {field}
    jae 30f
    mov rsi, qword ptr [r8 + rax * 8 + 32]
    cmp rsi, 65536
    jb 31f
    mov qword ptr [rdi], rsi
    lea rax, [rdi + 16]
    mov r11, rax
    movzx edx, word ptr [r10 + 4]
    movzx ecx, byte ptr [r10]
    cmp ecx, {string}
    je 16f
    cmp ecx, {fixed}
    je 13f
    cmp ecx, {asked}
    je 34f
    cmp ecx, {result}
    jne 12f
    mov rsi, qword ptr [r8 + 80]
    jmp 20f
12:
    movzx esi, byte ptr [r10 + 2]
    mov rsi, qword ptr [r8 + rsi * 8 + 32]
    cmp ecx, {argument}
    je 20f
    // A signed or an unsigned number of 32 bits.
    cmp ecx, {unsigned}
    jne 21f
    mov esi, esi
    jmp 20f
21:
    movsxd rsi, esi
    test rsi, rsi
    jns 22f
    xor esi, esi
22:
    cmp ecx, {bits}
    jne 20f
    add rsi, 7
    shr rsi, 3
20:
    // This many elements, no more than the limit in bytes.
    cmp rsi, 65536
    jbe 23f
    mov esi, 65536
23:
    movzx ecx, byte ptr [r10 + 3]
    imul rsi, rcx
    movzx ecx, word ptr [r10 + 6]
    add rsi, rcx
    cmp rsi, rdx
    cmovb rdx, rsi
    mov rsi, qword ptr [rdi]
13:
    cmp rdx, 8
    jb 15f
    .globl trapline_calls_words
    .hidden trapline_calls_words
trapline_calls_words:
14:
    mov rcx, qword ptr [rsi]
    mov qword ptr [rax], rcx
    add rsi, 8
    add rax, 8
    sub rdx, 8
    cmp rdx, 8
    jae 14b
    .globl trapline_calls_rest
    .hidden trapline_calls_rest
trapline_calls_rest:
15:
    test rdx, rdx
    jz 17f
    mov cl, byte ptr [rsi]
    mov byte ptr [rax], cl
    inc rsi
    inc rax
    dec rdx
    jmp 15b
16:
    mov cl, byte ptr [rsi]
    mov byte ptr [rax], cl
    inc rsi
    inc rax
    test cl, cl
    jz 17f
    dec rdx
    jnz 16b
    .globl trapline_calls_captured
    .hidden trapline_calls_captured
trapline_calls_captured:
17:
    cmp byte ptr [r10], {each}
    je 24f
    mov qword ptr gs:[{last}], r11
    mov qword ptr gs:[{last_end}], rax
24:
    sub rax, r11
    mov dword ptr [rdi + 8], eax
    add rax, 23
    and rax, -8
    add rdi, rax
    cmp byte ptr [r10], {each}
    je 33f
18:
    add r10, 8
    dec r9d
    jnz 11b
19:
    jmp qword ptr gs:[{link}]
    // What the first capture refers to, if it is whole: offsets of an address and of a number of elements are in the word.
30:
    jne 32f
    mov r11, qword ptr gs:[{first}]
    cmp rdi, r11
    je 31f
    movzx ecx, byte ptr [r10 + 2]
    lea esi, [rcx + 4]
    cmp dword ptr [r11 + 8], esi
    jb 31f
    mov esi, dword ptr [r11 + rcx + 16]
    mov rax, qword ptr [r11 + rax + 16]
    cmp rax, 65536
    jb 31f
    mov qword ptr [rdi], rax
    lea rax, [rdi + 16]
    mov r11, rax
    movzx edx, word ptr [r10 + 4]
    jmp 20b
    // Nothing is captured: no element refers to anything.
31:
    mov qword ptr gs:[{last}], rdi
    mov qword ptr gs:[{last_end}], rdi
    jmp 18b
    // What each element of the capture before refers to: at most this many.
32:
    cmp byte ptr [r10], {descriptor}
    je 50f
    ja 80f
    movzx eax, byte ptr [r10 + 3]
    shl eax, 4
    add rax, qword ptr gs:[{last}]
    cmp rax, qword ptr gs:[{last_end}]
    jae 33f
    mov qword ptr gs:[{last_end}], rax
33:
    mov rax, qword ptr gs:[{last}]
    lea rcx, [rax + 16]
    cmp rcx, qword ptr gs:[{last_end}]
    ja 18b
    mov qword ptr gs:[{last}], rcx
    mov rsi, qword ptr [rax]
    cmp rsi, 65536
    jb 33b
    mov rcx, qword ptr [rax + 8]
    movzx edx, word ptr [r10 + 4]
    cmp rcx, rdx
    cmovb rdx, rcx
    mov qword ptr [rdi], rsi
    lea rax, [rdi + 16]
    mov r11, rax
    jmp 13b
    // process_vm_readv of the thread's own memory, which reads as much as there is: the rest raises no signal.
34:
    mov qword ptr gs:[{to}], r11
    mov qword ptr gs:[{to} + 8], rdx
    mov qword ptr gs:[{from}], rsi
    mov qword ptr gs:[{from} + 8], rdx
    mov qword ptr gs:[{saved}], rdi
    mov qword ptr gs:[{saved} + 8], r8
    mov qword ptr gs:[{saved} + 16], r9
    mov qword ptr gs:[{saved} + 24], r10
    mov eax, {gettid}
    syscall
    mov edi, eax
    mov rsi, qword ptr gs:[{ring}]
    lea r10, [rsi - {ring_at} + {from}]
    lea rsi, [rsi - {ring_at} + {to}]
    mov edx, 1
    mov r8d, 1
    xor r9d, r9d
    mov eax, {readv}
    syscall
    mov rdi, qword ptr gs:[{saved}]
    mov r8, qword ptr gs:[{saved} + 8]
    mov r9, qword ptr gs:[{saved} + 16]
    mov r10, qword ptr gs:[{saved} + 24]
    lea r11, [rdi + 16]
    test rax, rax
    jns 35f
    xor eax, eax
35:
    add rax, r11
    jmp 17b
