; Counts interrupts of the timer, first running, then halted, then echoes two bytes from the
; keyboard. The time stamp of each timer interrupt is left at 0000:9000, four bytes each.
; Loaded at 0000:7C00.

bits 16
org 7C00h

stamps  equ 9000h

start:
        cli
        mov dword [8 * 4], timer
        mov dword [9 * 4], keyboard

        mov si, words
        mov cx, (words.end - words) / 2
.setup: lodsw                           ; port, value
        movzx dx, al
        mov al, ah
        out dx, al
        loop .setup

        mov di, stamps
        sti
.busy:  inc eax
        cmp di, stamps + 5 * 4
        jb .busy
.halt:  hlt
        cmp di, stamps + 10 * 4
        jb .halt

        mov al, 0FDh                    ; the keyboard alone
        out 21h, al
        mov al, '>'
        out 0E9h, al
.keys:  hlt
        cmp byte [count], 2
        jb .keys

        mov dx, 604h
        mov ax, 2000h
        out dx, ax

timer:
        push eax
        push edx
        rdtsc
        stosd
        mov al, '.'
        jmp done
keyboard:
        push eax
        push edx
        in al, 60h
        inc byte [count]
done:   out 0E9h, al
        mov al, 20h
        out 20h, al
        pop edx
        pop eax
        iret

count   db 0

words:  db 20h, 11h, 21h, 08h, 21h, 04h, 21h, 01h       ; vectors 8 to 15
        db 0A0h, 11h, 0A1h, 70h, 0A1h, 02h, 0A1h, 01h
        db 21h, 0FCh, 0A1h, 0FFh                        ; timer and keyboard
        db 43h, 34h, 40h, 0E8h, 40h, 03h                ; mode 2, every 1000 ticks
.end:
