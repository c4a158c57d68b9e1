# int80.s - a 64-bit program whose calls are those of 32-bit ones: write of "hi\n" to stdout, and exit with 7.
.globl _start
_start:
    mov $4, %eax
    mov $1, %ebx
    mov $text, %ecx
    mov $3, %edx
    int $0x80
    mov $1, %eax
    mov $7, %ebx
    int $0x80
.data
text: .ascii "hi\n"
