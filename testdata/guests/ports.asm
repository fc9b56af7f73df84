; Reads and writes the ports of all devices for ever, which and with what a sequence of pseudo
; random numbers tells, and now and then waits for an interrupt. Every vector leads to a handler
; that acknowledges and returns. Loaded at 0000:7C00.

bits 16
org 7C00h

start:
        xor di, di
        mov cx, 256
        mov eax, handler
        rep stosd
        mov ebx, 1

next:   imul ebx, ebx, 1664525
        add ebx, 1013904223
        mov esi, ebx
        shr esi, 27                     ; one of 32
        cmp si, (table.end - table) / 2
        jae blocks
        add si, si
        mov dx, [table + si]
        mov eax, ebx
        shr eax, 20
        and al, 7
        add dl, al                      ; one of eight from there on
        mov eax, ebx
        shr eax, 10
        in al, dx
        test ebx, 1 << 19
        jz next
        shr eax, 2
        out dx, al
        jmp next

blocks: mov di, 8000h
        mov cx, 40
        mov dx, 1F0h
        rep insw
        mov cx, 40
        mov dx, 511h
        rep insb
        sti
        test ebx, 1 << 24
        jz next
        hlt
        jmp next

handler:
        push ax
        mov al, 20h
        out 0A0h, al
        out 20h, al
        pop ax
        iret

table:  dw 20h, 0A0h, 40h, 40h, 60h, 60h, 6Ch, 70h, 70h, 80h, 0E8h
        dw 1F0h, 1F0h, 3B4h, 3C0h, 3C8h, 3D4h, 3F0h, 3F8h, 3F8h, 4D0h, 508h, 50Ch
.end:
