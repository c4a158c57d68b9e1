    // Several messages.
80:
    cmp byte ptr [r10], {message}
    je 82f
    jb 81f
    cmp byte ptr [r10], {next}
    jne 83f
    sub r10, 8 * {body}
    add r9d, {body}
    jmp 11b
81:
    mov rsi, qword ptr [r8 + rax * 8 + 32]
    mov qword ptr gs:[{message_at}], rsi
    movzx ecx, byte ptr [r10 + 2]
    mov ecx, dword ptr [r8 + rcx * 8 + 32]
    mov qword ptr gs:[{messages_left}], rcx
    jmp 18b
82:
    cmp qword ptr gs:[{messages_left}], 0
    je 19b
    movzx ecx, word ptr [r10 + 4]
    shl ecx, {unit}
    mov rax, rdi
    sub rax, r8
    cmp rax, rcx
    ja 19b
    dec qword ptr gs:[{messages_left}]
    mov rsi, qword ptr gs:[{message_at}]
    add qword ptr gs:[{message_at}], {mm_len}
    mov qword ptr gs:[{first}], rdi
    mov qword ptr [rdi], rsi
    lea rax, [rdi + 16]
    mov r11, rax
    mov edx, {mm_len}
    jmp 13b
    // How much will be captured of all of them: edx.
83:
    mov rsi, qword ptr [r8 + rax * 8 + 32]
    movzx ecx, byte ptr [r10 + 2]
    mov ecx, dword ptr [r8 + rcx * 8 + 32]
    test ecx, ecx
    jz 18b
    movzx edx, byte ptr [r10 + 3]
    cmp ecx, edx
    ja 89f
    cmp rsi, 65536
    jb 89f
    xor edx, edx
    movzx r11d, word ptr [r10 + 6]
    .globl trapline_calls_count
    .hidden trapline_calls_count
trapline_calls_count:
84:
    add edx, {of_message}
    mov rax, qword ptr [rsi + {m_iov_len}]
    cmp rax, {most_iov}
    ja 89f
    imul eax, r11d
    add edx, eax
    mov rax, qword ptr [rsi + {m_control_len}]
    test rax, rax
    jz 86f
    cmp byte ptr [r10], {few}
    jne 89f
    cmp rax, {most_control}
    jbe 85f
    mov eax, {most_control}
85:
    add edx, eax
86:
    movzx eax, word ptr [r10 + 4]
    shl eax, {unit}
    cmp edx, eax
    ja 89f
    add rsi, {mm_len}
    dec ecx
    jnz 84b
    jmp 18b
    // They are too many, or too long: the call is made where it stops.
    .globl trapline_calls_counted
    .hidden trapline_calls_counted
trapline_calls_counted:
89:
    mov qword ptr gs:[{state}], 0
    mov rdi, qword ptr [r8 + 32]
    mov rsi, qword ptr [r8 + 40]
    mov rdx, qword ptr [r8 + 48]
    mov r10, qword ptr [r8 + 56]
    mov r9, qword ptr [r8 + 72]
    mov r8, qword ptr [r8 + 64]
    jmp 90b
