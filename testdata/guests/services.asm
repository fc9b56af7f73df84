; A boot sector for any BIOS and any drive: prints through INT 10h, reads the sector after it
; through INT 13h, lists memory through INT 15h E820h, takes a key through INT 16h, reads a byte
; above 1 MiB in big real mode, and powers off. What it prints also goes to port E9h.

bits 16
org 7C00h

buffer  equ 8000h

start:
        xor ax, ax
        mov ds, ax
        mov es, ax
        mov ss, ax
        mov sp, 7C00h
        sti
        mov si, hello
        call print

        mov ax, 0201h                   ; one sector: cylinder 0, head 0, sector 2
        mov bx, buffer
        mov cx, 0002h
        xor dh, dh
        int 13h
        mov si, failed
        jc .tell
        mov si, buffer
.tell:  call print

        xor ebx, ebx                    ; how many ranges of memory
        xor bp, bp
.range: mov eax, 0E820h
        mov edx, 534D4150h
        mov ecx, 20
        mov di, buffer
        int 15h
        jc .listed
        inc bp
        test ebx, ebx
        jnz .range
.listed:
        mov ax, bp
        add al, '0'
        call put

        cli                             ; big real mode and back
        lgdt [table]
        mov eax, cr0
        or al, 1
        mov cr0, eax
        mov bx, 8
        mov fs, bx
        and al, 0FEh
        mov cr0, eax
        sti
        mov ebx, 180000h
        mov byte [fs:ebx], 'B'
        mov al, [fs:ebx]
        call put

        mov al, '?'
        call put
        xor ah, ah
        int 16h
        call put

        mov dx, 604h
        mov ax, 2000h
        out dx, ax

print:  lodsb
        test al, al
        jz .end
        call put
        jmp print
.end:   ret

put:    out 0E9h, al
        mov ah, 0Eh
        mov bx, 7
        int 10h
        ret

hello   db 'hello ', 0
failed  db 'no sector ', 0

gdt     dq 0, 00CF92000000FFFFh         ; data, 0 to 4 GiB
table   dw table - gdt - 1
        dd gdt

        times 510 - ($ - $$) db 0
        dw 0AA55h
        db 'sector 2 ', 0
        times 1024 - ($ - $$) db 0
