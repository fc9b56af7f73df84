; Reads eleven sectors in pieces that end within a sector, with HLT between them, adds them up and
; writes one back, eight times over, while the timer interrupts. Then waits until six bytes
; have come from the keyboard, and powers off. Prints a dot a sector, what the keyboard sent, and
; the sum.
; Loaded at 0000:7C00.

bits 16
org 7C00h

buffer  equ 8000h
sectors equ 11
words   equ sectors * 256
rounds  equ 8

start:
        cli
        mov dword [8 * 4], timer
        mov dword [9 * 4], keyboard

        mov si, ports
        mov cx, (ports.end - ports) / 2
.setup: lodsw                           ; port, value
        movzx dx, al
        mov al, ah
        out dx, al
        loop .setup
        in al, 60h                      ; what came before it could interrupt
        out 0E9h, al
        sti

.round: mov ax, 0120h                   ; READ SECTORS from 1
        mov bl, sectors
        call command
        mov di, buffer
        mov cx, 100
        rep insw
        hlt
        mov cx, 2600                    ; more than a slice of REP, from within a sector
        rep insw
        hlt
        mov cx, words - 2700
        rep insw

        mov si, buffer
        mov cx, 2 * words
.add:   lodsb
        cbw
        add [sum], ax
        loop .add

        mov al, 30h                     ; WRITE SECTORS to 16 and up
        mov ah, [round]
        add ah, 16
        mov bl, 1
        call command
        mov si, sum                     ; and what follows it
        mov cx, 50
        rep outsw
        hlt
        mov cx, 206
        rep outsw
        mov al, '.'
        out 0E9h, al
        inc byte [round]
        cmp byte [round], rounds
        jb .round

.keys:  hlt
        cmp byte [count], 5
        jb .keys
        mov ax, [sum]
        out 0E9h, al
        mov al, ah
        out 0E9h, al
        mov dx, 604h
        mov ax, 2000h
        out dx, ax

timer:  push ax
        inc word [ticks]
        jmp done
keyboard:
        push ax
        in al, 60h
        out 0E9h, al
        inc byte [count]
done:   mov al, 20h
        out 20h, al
        pop ax
        iret

%define SECTORS bl
%include "ata_command.inc"

ports:  db 20h, 11h, 21h, 08h, 21h, 04h, 21h, 01h       ; vectors 8 to 15
        db 0A0h, 11h, 0A1h, 70h, 0A1h, 02h, 0A1h, 01h
        db 21h, 0FCh, 0A1h, 0FFh                        ; timer and keyboard
        db 43h, 34h, 40h, 0E8h, 40h, 03h                ; mode 2, every 1000 ticks
.end:
count   db 0
round   db 0
ticks   dw 0
sum     dw 0
