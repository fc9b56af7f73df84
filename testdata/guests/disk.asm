; Reads sector 1 of the disk, adds 1 to each byte, writes it to sector 2, and exits with the
; status register. Polls, and waits for IRQ 14 never. Loaded at 0000:7C00.

bits 16
org 7C00h

buffer  equ 9000h

start:
        mov al, 20h                     ; READ SECTORS
        mov ah, 1
        call command
        mov di, buffer
        mov cx, 256
        rep insw

        mov si, buffer
        mov cx, 512
.add:   inc byte [si]
        inc si
        loop .add

        mov al, 30h                     ; WRITE SECTORS
        mov ah, 2
        call command
        mov si, buffer
        mov cx, 256
        rep outsw

        mov dl, 0F7h
        in al, dx
        mov dx, 501h
        out dx, al
        hlt

%define SECTORS 1
%include "ata_command.inc"
