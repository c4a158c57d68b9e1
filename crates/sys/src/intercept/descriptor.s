    // What a descriptor is, by calls of the thread's own; eax has the `argument`, rdi where it is written (descriptor.rs has the layout).
50:
    cmp eax, {element}
    jb 51f
    cmp eax, {passed}
    jae 70f
    // One that the first capture has.
    mov rcx, qword ptr gs:[{first}]
    cmp rdi, rcx
    je 31b
    cmp dword ptr [rcx + 8], 8
    jb 31b
    movsxd rsi, dword ptr [rcx + rax * 4 + 16 - 4 * {element}]
    jmp 53f
51:
    // An argument, or the result behind them.
    movsxd rsi, dword ptr [r8 + rax * 8 + 32]
    cmp eax, {directory}
    jne 53f
    mov rsi, {at_fdcwd}
53:
    mov qword ptr gs:[{saved}], rdi
    mov qword ptr gs:[{saved} + 8], r8
    mov qword ptr gs:[{saved} + 16], r9
    mov qword ptr gs:[{saved} + 24], r10
    mov qword ptr [rdi], 0
    mov qword ptr [rdi + 16 + {d_fd}], rsi
    mov dword ptr [rdi + 16 + {d_mode}], 0
    cmp esi, {at_fdcwd}
    je 60f
    mov r10, rdi
    mov edi, esi
    mov esi, {f_getfd}
    mov eax, {fcntl}
    syscall
    test rax, rax
    js 59f
    mov qword ptr [r10], rax
    lea rsi, [r10 + 16 + {d_stat}]
    mov eax, {fstat}
    syscall
    test rax, rax
    jnz 59f
    mov eax, dword ptr [r10 + 16 + {d_mode}]
    and eax, {s_ifmt}
    cmp eax, {s_ifsock}
    jne 60f
    // Of a socket: domain, type and protocol, and both addresses.
    mov qword ptr [r10 + 16 + {d_socket}], 0
    mov dword ptr [r10 + 16 + {d_socket} + 8], 0
    mov dword ptr [r10 + 16 + {d_socket} + 12], 4
    mov dword ptr [r10 + 16 + {d_local}], {d_address}
    mov dword ptr [r10 + 16 + {d_peer}], {d_address}
    mov esi, {sol_socket}
    lea r8, [r10 + 16 + {d_socket} + 12]
    add r10, 16 + {d_socket}
    mov edx, {so_domain}
    mov eax, {getsockopt}
    syscall
    add r10, 4
    mov edx, {so_type}
    mov eax, {getsockopt}
    syscall
    add r10, 4
    mov edx, {so_protocol}
    mov eax, {getsockopt}
    syscall
    sub r10, 8 + {d_socket}
    lea rdx, [r10 + {d_local}]
    lea rsi, [rdx + 8]
    mov eax, {getsockname}
    syscall
    test rax, rax
    jz 54f
    mov dword ptr [rdx], 0
54:
    lea rdx, [r10 + {d_peer}]
    lea rsi, [rdx + 8]
    mov eax, {getpeername}
    syscall
    test rax, rax
    jz 60f
    mov dword ptr [rdx], 0
60:
    // Its link in /proc, whose name is put together from its end.
    mov rdi, qword ptr gs:[{saved}]
    mov r8, qword ptr gs:[{ring}]
    lea r8, [r8 - {ring_at} + {name_end}]
    mov eax, dword ptr [rdi + 16 + {d_fd}]
    cmp eax, {at_fdcwd}
    je 62f
    mov byte ptr [r8], 0
    mov ecx, 10
61:
    xor edx, edx
    div ecx
    add dl, 48
    dec r8
    mov byte ptr [r8], dl
    test eax, eax
    jnz 61b
    sub r8, 3
    mov word ptr [r8], 0x6466 // fd
    mov byte ptr [r8 + 2], 0x2f // /
    jmp 63f
62:
    sub r8, 3
    mov dword ptr [r8], 0x00647763 // cwd
63:
    sub r8, 18
    movabs rax, 0x68742f636f72702f // /proc/th
    mov qword ptr [r8], rax
    movabs rax, 0x6c65732d64616572 // read-sel
    mov qword ptr [r8 + 8], rax
    mov word ptr [r8 + 16], 0x2f66 // f/
    mov r10, qword ptr gs:[{saved} + 24]
    movzx r10d, word ptr [r10 + 4]
    sub r10d, {d_path}
    lea rdx, [rdi + 16 + {d_path}]
    mov rsi, r8
    mov edi, {at_fdcwd}
    mov eax, {readlinkat}
    syscall
    test rax, rax
    jns 64f
    xor eax, eax
64:
    mov rdi, qword ptr gs:[{saved}]
    mov r8, qword ptr gs:[{saved} + 8]
    mov r9, qword ptr gs:[{saved} + 16]
    mov r10, qword ptr gs:[{saved} + 24]
    lea r11, [rdi + 16]
    lea rax, [r11 + rax + {d_path}]
    jmp 17b
59:
    mov rdi, qword ptr gs:[{saved}]
    mov r8, qword ptr gs:[{saved} + 8]
    mov r9, qword ptr gs:[{saved} + 16]
    mov r10, qword ptr gs:[{saved} + 24]
    jmp 31b
    // The descriptors that a message has brought: the captures of the message are behind that of its header, of which each has the address.
70:
    cmp qword ptr [r8 + 80], 0
    jl 31b
    lea r11d, [eax - {passed}]
    mov rcx, qword ptr gs:[{first}]
    cmp rdi, rcx
    je 31b
    cmp dword ptr [rcx + 8], {m_len}
    jb 31b
    mov rsi, qword ptr [rcx + 16 + {m_control}]
71:
    mov eax, dword ptr [rcx + 8]
    add rax, 23
    and rax, -8
    add rcx, rax
    cmp rcx, rdi
    jae 31b
    cmp qword ptr [rcx], rsi
    jne 71b
    // rcx: a control message, up to rdx.
    mov edx, dword ptr [rcx + 8]
    add rcx, 16
    add rdx, rcx
72:
    lea rsi, [rcx + {c_data}]
    cmp rsi, rdx
    ja 31b
    mov rax, qword ptr [rcx]
    sub rax, {c_data}
    jb 31b
    add rsi, rax
    jc 31b
    cmp rsi, rdx
    ja 31b
    cmp dword ptr [rcx + 8], {sol_socket}
    jne 74f
    cmp dword ptr [rcx + 12], {rights}
    je 73f
74:
    lea rcx, [rcx + rax + {c_data} + 7]
    and rcx, -8
    jmp 72b
73:
    shr rax, 2
    cmp r11, rax
    jae 31b
    movsxd rsi, dword ptr [rcx + r11 * 4 + {c_data}]
    jmp 53b
