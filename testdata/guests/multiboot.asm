; A multiboot kernel. Prints its command line, its memory map and where it is on COM1; checks that
; what lies after it was cleared; takes interrupts of the timer and a fault in 32-bit protected
; mode through its own tables; goes to real mode and back; powers off.
;
; As it is, the header has addresses. With ELF defined it is an ELF whose data lies apart, in a
; segment that goes on after the file's bytes, and whose addresses are virtual.

BASE    equ 100000h
LOW     equ 8000h                       ; where the real-mode part is copied to
TICKS   equ 3
CLEARED equ 4096                        ; variables and the stack, after the file's bytes

; Selectors.
CODE    equ 08h
DATA    equ 10h
CODE16  equ 18h
DATA16  equ 20h
BEYOND  equ 48h                         ; not in the table

bits 32
section .text vstart=BASE
image:
%ifdef ELF
HIGHER  equ 0C0000000h                  ; virtual addresses are so much higher
FLAGS   equ 3
        db 7Fh, 'ELF', 1, 1, 1
        times 9 db 0
        dw 2, 3                         ; an executable for the 80386
        dd 1, HIGHER + start, segments - image, 0, 0
        dw 52, 32, 3, 0, 0, 0
segments:
        dd 4, 0, 0, 0, 16, 16, 4, 4     ; a note, which is not loaded
        dd 1, 0, HIGHER + BASE, BASE, text_end - image, text_end - image, 5, 4
        dd 1, section..data.start, HIGHER + data, data
        dd data_end - data, data_end + CLEARED - data, 6, 4
%else
FLAGS   equ 10003h
%endif

        align 4
header:
        dd 1BADB002h, FLAGS, -(1BADB002h + FLAGS)
%ifndef ELF
        dd header, image, data_end, data_end + CLEARED, start
%endif

start:
        cmp eax, 2BADB002h
        jne fail
        mov esp, data_end + CLEARED
        mov edi, data_end               ; cleared?
        mov ecx, CLEARED
        xor eax, eax
        repe scasb
        jne fail

        mov esi, [ebx + 16]
        call print
        mov esi, by_text
        call print
        mov esi, [ebx + 64]
        call print
        call newline

        mov esi, [ebx + 48]             ; the memory map
        mov ebp, esi
        add ebp, [ebx + 44]
.range: cmp esi, ebp
        jae .tables
        mov eax, [esi + 4]
        call hex
        mov eax, [esi + 12]
        call hex
        mov eax, [esi + 20]
        call hex
        call newline
        add esi, [esi]
        add esi, 4
        jmp .range

.tables:
        lgdt [gdt_pointer]
        jmp CODE:.flat
.flat:  call data_segments
        lidt [idt_pointer]

        mov esi, pic
        mov ecx, (pic.end - pic) / 2
        xor edx, edx
.setup: lodsw                           ; port, value
        mov dl, al
        mov al, ah
        out dx, al
        loop .setup
        call timer

        mov ax, BEYOND                  ; a fault; its handler goes on after it
        mov ds, ax
        nop
        mov esi, fault_text
        call print
        mov eax, [error_code]
        call hex
        call newline

        cld                             ; to real mode, from below 1 MiB
        mov esi, real_part
        mov edi, LOW
        mov ecx, real_part_end - real_part
        rep movsb
        mov [saved_esp], esp
        jmp CODE16:LOW
returned:
        call data_segments
        mov esp, [saved_esp]
        lidt [idt_pointer]
        mov esi, real_text
        call print
        movzx eax, word [LOW + (sum - real_part)]
        call hex
        call newline
        call timer
        mov dx, 604h
        mov ax, 2000h
        out dx, ax
fail:   mov dx, 501h
        mov al, 0Fh
        out dx, al

data_segments:
        mov ax, DATA
        mov ds, ax
        mov es, ax
        mov fs, ax
        mov gs, ax
        mov ss, ax
        ret

; Waits for interrupts of the timer.
timer:
        mov dword [ticks], 0
        sti
.wait:  hlt
        cmp dword [ticks], TICKS
        jb .wait
        cli
        mov esi, timer_text
        call print
        mov eax, [ticks]
        call hex

newline:
        mov al, 13
        call put
        mov al, 10
        jmp put

; Prints EAX and a space.
hex:
        push ecx
        mov ecx, 8
.digit: rol eax, 4
        push eax
        and al, 0Fh
        cmp al, 10
        sbb al, 69h                     ; to a hexadecimal digit
        das
        call put
        pop eax
        loop .digit
        pop ecx
        mov al, ' '

; Prints AL on COM1.
put:
        push edx
        push eax
        mov dx, 3FDh
.busy:  in al, dx
        test al, 20h
        jz .busy
        pop eax
        mov dx, 3F8h
        out dx, al
        pop edx
        ret

; Prints the text at ESI.
print:
        lodsb
        test al, al
        jz .end
        call put
        jmp print
.end:   ret

on_timer:
        push eax
        inc dword [ticks]
        mov al, 20h
        out 20h, al
        pop eax
        iretd

; A load of DS at fault is two bytes long.
on_fault:
        pop dword [error_code]
        add dword [esp], 2
        iretd

; Copied to LOW, and run there with 16-bit segments, whose limits are those of real mode.
real_part:
bits 16
        mov ax, DATA16
        mov ds, ax
        mov es, ax
        mov fs, ax
        mov gs, ax
        mov ss, ax
        mov esp, LOW
        mov eax, cr0
        and al, 0FEh
        mov cr0, eax
        jmp 0:LOW + (in_real_mode - real_part)
in_real_mode:
        xor ax, ax
        mov ds, ax
        mov es, ax
        mov ss, ax
        lidt [LOW + (vectors - real_part)]
        mov word [60h * 4], LOW + (service - real_part)
        mov word [60h * 4 + 2], 0
        mov ax, 0FFFFh                  ; 1 MiB, as only real mode reaches it
        mov fs, ax
        mov ax, [fs:header - BASE + 10h]
        int 60h
        lgdt [LOW + (table - real_part)]
        mov eax, cr0
        or al, 1
        mov cr0, eax
        jmp dword CODE:returned
service:
        mov [LOW + (sum - real_part)], ax
        iret
vectors dw 3FFh
        dd 0
table   dw gdt.end - gdt - 1
        dd gdt
sum     dw 0
real_part_end:
bits 32
        align 4
text_end:

%ifdef ELF
section .data follows=.text vstart=200000h
%else
section .data follows=.text vfollows=.text
%endif
data:
gdt     dq 0
        dq 00CF9B000000FFFFh            ; code and data, 0 to 4 GiB
        dq 00CF93000000FFFFh
        dq 00009B000000FFFFh            ; 16-bit code and data
        dq 000093000000FFFFh
.end:
gdt_pointer:
        dw gdt.end - gdt - 1
        dd gdt

; Interrupt gates of the fault and the timer; only their lower halves depend on the address.
idt:    times 0Dh dq 0
        dw on_fault - BASE, CODE, 8E00h, BASE >> 16
        times 20h - 0Eh dq 0
        dw on_timer - BASE, CODE, 8E00h, BASE >> 16
.end:
idt_pointer:
        dw idt.end - idt - 1
        dd idt

pic:    db 20h, 11h, 21h, 20h, 21h, 04h, 21h, 01h       ; vectors 20h to 2Fh
        db 0A0h, 11h, 0A1h, 28h, 0A1h, 02h, 0A1h, 01h
        db 21h, 0FEh, 0A1h, 0FFh                        ; the timer alone
        db 43h, 34h, 40h, 0E8h, 40h, 03h                ; mode 2, every 1000 ticks
.end:

by_text db ' by ', 0
timer_text db 'timer ', 0
fault_text db 'fault ', 0
real_text db 'real ', 0
        align 4
data_end:

; What follows is not in the file.
ticks   equ data_end
error_code equ data_end + 4
saved_esp equ data_end + 8
