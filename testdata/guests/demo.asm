; The guest that `realmode boot` runs when it is given nothing else.
;
; It checks a few things that real-mode code relies on, switches to big real mode (real mode
; with 4 GiB segment limits), tests the memory above 1 MiB, and powers off through port 604h.
; The screen shows it all; COM1 has the same as a log. If a check fails it ends through port
; 501h with value 1 instead, so that the process status is 3.
;
; Needs a 386. Loaded flat at 0000:7C00: nasm -f bin -o demo.bin demo.asm

        cpu     586
        bits    16
        org     7C00h

TEXT    equ     0B800h          ; text memory, as a segment
COM1    equ     3F8h
A20     equ     92h
STACK   equ     7C00h           ; grows down from the program
SCRATCH equ     2000h           ; a segment for the string and sieve checks: 20000h
SPARE   equ     0500h           ; a byte in low memory that nothing uses
SIEVE   equ     8192            ; primes below this are counted
PRIMES  equ     1028            ; and there are so many
MAX_MIB equ     64              ; memory test: at most so many MiB, one block each on the screen
MIB     equ     100000h

; Rows of the screen: the title is row 0, the frame's parts follow.
ROW_CPU         equ     2
ROW_CHECKS      equ     4
ROW_MEMORY      equ     14
ROW_BAR         equ     15
ROW_SUMMARY     equ     17
ROW_BOTTOM      equ     20
ROW_COLOURS     equ     22
ROW_FOOT        equ     24

; Colours: background in the high digit.
GREY    equ     07h
DIM     equ     08h
GREEN   equ     0Ah
FRAME   equ     03h
HEAD    equ     0Bh
YELLOW  equ     0Eh
WHITE   equ     0Fh
TITLE   equ     1Fh
ALARM   equ     4Fh
FOOT    equ     70h

; Writes a text at a row and column of the screen.
%macro  say     4               ; row, column, colour, text
        mov     di, ((%1) * 80 + (%2)) * 2
        mov     ah, %3
        mov     si, %4
        call    print
%endmacro

; Reports a check. ZF is set if it passed; EAX is a number to show, or 0.
%macro  report  1               ; label
        mov     si, %1
        call    verdict
%endmacro

; Points a vector at a handler in this segment.
%macro  vector  2               ; number, handler
        mov     word [%1 * 4], %2
        mov     word [%1 * 4 + 2], 0
%endmacro

start:
        cli
        cld
        xor     ax, ax
        mov     ds, ax
        mov     ss, ax
        mov     sp, STACK
        mov     ax, TEXT
        mov     es, ax

        call    draw
        mov     si, log_hello
        call    log
        call    identify

        mov     word [row], ROW_CHECKS
        call    check_arithmetic
        call    check_strings
        call    check_sieve
        call    check_interrupt
        call    check_divide
        call    check_a20
        call    check_limit
        call    check_big_real
        call    test_memory
        call    summary

        cmp     word [failed], 0
        jne     fail
        mov     dx, 604h        ; power off: SLP_EN, soft-off type 0
        mov     ax, 2000h
        out     dx, ax
stop:   cli                     ; a machine without that port
        hlt
        jmp     stop

fail:   mov     dx, 501h
        mov     al, 1
        out     dx, al
        jmp     stop

; ---------------------------------------------------------------------------------------------
; Checks

; 12! in 32 bits: operand-size prefixes in 16-bit code.
check_arithmetic:
        mov     eax, 1
        mov     ecx, 12
.next:  mul     ecx
        loop    .next
        cmp     eax, 479001600
        report  txt_arithmetic
        ret

; The program copied and compared with itself.
check_strings:
        push    es
        mov     ax, SCRATCH
        mov     es, ax
        mov     si, start
        xor     di, di
        mov     cx, PROGRAM
        rep     movsb
        mov     si, start
        xor     di, di
        mov     cx, PROGRAM
        repe    cmpsb
        mov     eax, PROGRAM
        pop     es
        report  txt_strings
        ret

; The sieve of Eratosthenes: byte n is 1 if n is composite.
check_sieve:
        push    es
        mov     ax, SCRATCH
        mov     es, ax
        xor     di, di
        xor     al, al
        mov     cx, SIEVE
        rep     stosb
        xor     eax, eax        ; EAX counts primes
        mov     si, 2
.candidate:
        cmp     byte [es:si], 0
        jne     .composite
        inc     ax
        mov     di, si
.strike:
        add     di, si
        cmp     di, SIEVE
        jae     .composite
        mov     byte [es:di], 1
        jmp     .strike
.composite:
        inc     si
        cmp     si, SIEVE
        jb      .candidate
        pop     es
        cmp     eax, PRIMES
        report  txt_sieve
        ret

; INT and IRET through a vector of our own.
check_interrupt:
        vector  60h, .service
        mov     ax, 1234h
        int     60h
        cmp     ax, 3412h
        mov     eax, 0
        report  txt_interrupt
        ret
.service:
        xchg    al, ah
        iret

; A divide error arrives at vector 0, pointing at the DIV.
check_divide:
        vector  0, caught
        mov     word [resume], .after
        mov     byte [faults], 0
        mov     ax, 1
        xor     dx, dx
        xor     cx, cx
        div     cx
.after: cmp     byte [faults], 1
        mov     eax, 0
        report  txt_divide
        ret

; FFFF:0510 is 100500h. With the gate closed that is 500h; with the gate open it is not.
check_a20:
        mov     ax, 0FFFFh
        mov     fs, ax
        in      al, A20
        and     al, 0FCh        ; bit 1 the gate, bit 0 would reset
        out     A20, al
        mov     byte [SPARE], 0A5h
        mov     byte [fs:SPARE + 10h], 5Ah
        cmp     byte [SPARE], 5Ah
        mov     eax, 0
        report  txt_a20_closed
        in      al, A20
        or      al, 2
        and     al, 0FEh
        out     A20, al
        mov     byte [SPARE], 11h
        mov     byte [fs:SPARE + 10h], 22h
        cmp     byte [SPARE], 11h
        mov     eax, 0
        report  txt_a20_open
        ret

; The ordinary limit of a segment is FFFFh: offset 10000h raises #GP, vector 13.
check_limit:
        vector  13, caught
        mov     word [resume], .after
        mov     byte [faults], 0
        mov     ebx, 10000h
        mov     al, [ebx]
.after: cmp     byte [faults], 1
        mov     eax, 0
        report  txt_limit
        ret

; Big real mode: in protected mode, load DS and ES with a 4 GiB descriptor; back in real mode
; their limit stays. Then read the first character of the screen at its address.
check_big_real:
        push    es
        lgdt    [gdtr]
        mov     eax, cr0
        or      al, 1
        mov     cr0, eax
        jmp     short .protected
.protected:
        mov     bx, 8
        mov     ds, bx
        mov     es, bx
        and     al, 0FEh
        mov     cr0, eax
        jmp     short .real
.real:  xor     ax, ax
        mov     ds, ax
        pop     es              ; the base changes, the limit stays
        mov     byte [faults], 0
        mov     word [resume], .after
        mov     ebx, 0B8000h
        mov     ax, [ebx]
        cmp     ax, [es:0]
.after: jne     .done
        cmp     byte [faults], 0
.done:  mov     eax, 0
        report  txt_big_real
        ret

; Handler of the exceptions that checks provoke: goes on at [resume].
caught:
        push    bp
        mov     bp, sp
        push    ax
        mov     ax, [cs:resume]
        mov     [bp + 2], ax
        inc     byte [cs:faults]
        pop     ax
        pop     bp
        iret

; ---------------------------------------------------------------------------------------------
; Memory above 1 MiB: every MiB is filled with a number of its own, then all are verified, so
; that two addresses that lead to one place are found too.

test_memory:
        mov     edi, MIB
        xor     bp, bp          ; BP: the number of MiB
.fill:  cmp     bp, MAX_MIB
        jae     .verify
        call    pattern
        mov     [edi], eax      ; is there memory? Nothing reads all ones.
        cmp     [edi], eax
        jne     .verify
        push    edi
        push    es
        push    ds
        pop     es              ; base 0
        mov     ecx, MIB / 4
        a32 rep stosd
        pop     es
        pop     edi
        mov     cx, 0B1h | YELLOW << 8
        call    block
        inc     bp
        add     edi, MIB
        jmp     .fill
.verify:
        mov     [mib], bp
        mov     edi, MIB
        xor     bp, bp
.next:  cmp     bp, [mib]
        jae     .done
        call    pattern
        push    edi
        push    es
        push    ds
        pop     es
        mov     ecx, MIB / 4
        a32 repe scasd
        pop     es
        pop     edi
        mov     cx, 0DBh | GREEN << 8
        je      .good
        inc     word [bad]
        mov     cx, 0DBh | 0Ch << 8
.good:  call    block
        inc     bp
        add     edi, MIB
        jmp     .next
.done:  movzx   eax, word [mib]
        mov     word [row], ROW_MEMORY
        cmp     word [bad], 0
        report  txt_memory
        ret

; EAX = the number that fills MiB number BP.
pattern:
        movzx   eax, bp
        inc     eax
        imul    eax, eax, 9E3779B1h
        ret

; Draws character CL in colour CH as block BP of the memory bar.
block:  mov     si, bp
        shl     si, 1
        mov     [es:si + (ROW_BAR * 80 + 8) * 2], cx
        ret

; ---------------------------------------------------------------------------------------------
; Screen

draw:   xor     di, di
        mov     ax, GREY << 8 | ' '
        mov     cx, 80 * 25
        rep     stosw
        xor     di, di
        mov     ah, TITLE
        mov     cx, 80
        rep     stosw
        mov     di, ROW_FOOT * 160
        mov     ah, FOOT
        mov     cx, 80
        rep     stosw
        say     0, 1, TITLE, txt_title
        say     ROW_FOOT, 1, FOOT, txt_foot

        mov     bx, (ROW_CPU - 1) * 160 ; the frame: its top, its sides, its bottom
        mov     si, edge_top
        call    edge
.side:  add     bx, 160
        mov     si, edge_side
        call    edge
        cmp     bx, (ROW_BOTTOM - 1) * 160
        jb      .side
        add     bx, 160
        mov     si, edge_bottom
        call    edge
        mov     bx, (ROW_CHECKS - 1) * 160
        mov     si, edge_rule
        call    edge
        mov     bx, (ROW_MEMORY - 1) * 160
        mov     si, edge_rule
        call    edge
        mov     bx, (ROW_SUMMARY - 1) * 160
        mov     si, edge_rule
        call    edge
        say     ROW_CPU - 1, 4, HEAD, txt_processor
        say     ROW_CHECKS - 1, 4, HEAD, txt_checks
        say     ROW_MEMORY - 1, 4, HEAD, txt_memory_head
        say     ROW_SUMMARY - 1, 4, HEAD, txt_summary

        mov     di, (ROW_BAR * 80 + 8) * 2
        mov     ax, DIM << 8 | 0FAh
        mov     cx, MAX_MIB
        rep     stosw

        mov     di, (ROW_COLOURS * 80 + 8) * 2  ; all sixteen colours, four columns each
        xor     bx, bx
.colour:
        mov     ah, bl
        mov     al, 0DBh
        mov     cx, 4
        rep     stosw
        inc     bx
        cmp     bl, 16
        jb      .colour
        ret

; One row of the frame at offset BX: left, middle and right character at SI; a space leaves the
; middle alone.
edge:   mov     di, bx
        mov     ah, FRAME
        mov     al, [si]
        stosw
        mov     al, [si + 1]
        mov     cx, 78
        cmp     al, ' '
        je      .open
        rep     stosw
        jmp     .right
.open:  add     di, 78 * 2
.right: mov     al, [si + 2]
        stosw
        ret

; Writes the text at SI in colour AH from DI on.
print:  lodsb
        test    al, al
        jz      .done
        stosw
        jmp     print
.done:  ret

; Writes EAX in decimal, in colour CH, so that it ends before column DI.
number: push    ebx
        mov     ebx, 10
.digit: xor     edx, edx
        div     ebx
        mov     cl, dl
        add     cl, '0'
        sub     di, 2
        mov     [es:di], cx
        test    eax, eax
        jnz     .digit
        pop     ebx
        ret

; A check's line: label SI, number EAX unless 0, passed if ZF.
verdict:
        setz    [passed]
        push    eax
        push    si
        imul    di, [row], 160
        add     di, 3 * 2
        mov     ah, GREY
        call    print
        imul    bx, [row], 160
        lea     dx, [bx + 56 * 2]       ; a dotted leader to column 56
        add     di, 2
        mov     ax, DIM << 8 | '.'
.leader:
        stosw
        cmp     di, dx
        jb      .leader
        pop     si
        call    log
        pop     eax
        lea     di, [bx + 68 * 2]
        mov     ch, WHITE
        test    eax, eax
        jz      .plain
        call    number
.plain: lea     di, [bx + 71 * 2]
        inc     word [row]
        mov     si, txt_ok
        mov     ah, GREEN
        inc     word [good]
        cmp     byte [passed], 0
        jne     .show
        dec     word [good]
        inc     word [failed]
        mov     si, txt_failed
        mov     ah, ALARM
.show:  push    si
        call    print
        mov     si, log_colon
        call    log
        pop     si
        call    log
        mov     si, log_end
        jmp     log

summary:
        say     ROW_SUMMARY, 3, GREY, txt_passed
        movzx   eax, word [good]
        mov     di, (ROW_SUMMARY * 80 + 68) * 2
        mov     ch, WHITE
        call    number
        say     ROW_SUMMARY + 1, 3, GREY, txt_not_passed
        movzx   eax, word [failed]
        mov     di, ((ROW_SUMMARY + 1) * 80 + 68) * 2
        mov     ch, WHITE
        call    number
        cmp     byte [has_tsc], 0
        je      .no_tsc
        say     ROW_SUMMARY + 2, 3, GREY, txt_tsc
        rdtsc
        mov     di, ((ROW_SUMMARY + 2) * 80 + 68) * 2
        mov     ch, WHITE
        call    number
.no_tsc:
        mov     si, log_good
        cmp     word [failed], 0
        je      log
        mov     si, log_bad
        jmp     log

; Who is it: CPUID's vendor and brand, on a processor that has CPUID.
identify:
        pushfd
        pop     eax
        mov     ecx, eax
        xor     eax, 1 << 21    ; EFLAGS.ID
        push    eax
        popfd
        pushfd
        pop     eax
        cmp     eax, ecx
        je      .old
        xor     eax, eax
        cpuid
        mov     [vendor], ebx
        mov     [vendor + 4], edx
        mov     [vendor + 8], ecx
        say     ROW_CPU, 3, YELLOW, vendor
        mov     eax, 1
        cpuid
        bt      edx, 4
        setc    [has_tsc]
        mov     eax, 80000000h
        cpuid
        cmp     eax, 80000004h
        jb      .done
        mov     si, brand
        mov     ebp, 80000002h
.leaf:  mov     eax, ebp
        cpuid
        mov     [si], eax
        mov     [si + 4], ebx
        mov     [si + 8], ecx
        mov     [si + 12], edx
        add     si, 16
        inc     ebp
        cmp     ebp, 80000004h
        jbe     .leaf
        say     ROW_CPU, 18, WHITE, brand
.done:  ret
.old:   say     ROW_CPU, 3, YELLOW, txt_no_cpuid
        ret

; ---------------------------------------------------------------------------------------------
; COM1: sends the text at SI, each byte once the transmitter is empty.

log:    push    ax
        push    dx
.next:  lodsb
        test    al, al
        jz      .done
        mov     ah, al
        mov     dx, COM1 + 5
.wait:  in      al, dx
        test    al, 20h
        jz      .wait
        mov     dx, COM1
        mov     al, ah
        out     dx, al
        jmp     .next
.done:  pop     dx
        pop     ax
        ret

; ---------------------------------------------------------------------------------------------
; Data

txt_title       db 'realmode                 a guest program in (big) real mode'
                db '                demo', 0
txt_foot        db 'The same as a log: COM1                          Power off: 2000h to'
                db ' port 604h', 0
txt_processor   db ' Processor ', 0
txt_checks      db ' Checks ', 0
txt_memory_head db ' Memory above 1 MiB, a block each ', 0
txt_summary     db ' Summary ', 0
txt_no_cpuid    db 'a processor without CPUID', 0
txt_arithmetic  db '32-bit arithmetic: 12 factorial', 0
txt_strings     db 'String instructions: bytes copied and compared', 0
txt_sieve       db 'Loops and memory: primes below 8192', 0
txt_interrupt   db 'Software interrupt 60h and its return', 0
txt_divide      db 'Division by zero arrives at vector 0', 0
txt_a20_closed  db 'A20 gate closed: 1 MiB wraps to 0', 0
txt_a20_open    db 'A20 gate open: it does not', 0
txt_limit       db 'Offset 10000h is beyond a real-mode segment', 0
txt_big_real    db 'Big real mode: B8000h through DS', 0
txt_memory      db 'MiB filled and verified', 0
txt_passed      db 'Checks passed', 0
txt_not_passed  db 'Checks failed', 0
txt_tsc         db 'Time stamp counter (instructions, on realmode)', 0
txt_ok          db 'ok', 0
txt_failed      db 'FAILED', 0
log_hello       db 'realmode demo guest', 13, 10, 0
log_colon       db ': ', 0
log_end         db 13, 10, 0
log_good        db 'All checks passed.', 13, 10, 0
log_bad         db 'Some checks failed.', 13, 10, 0

edge_top        db 0C9h, 0CDh, 0BBh
edge_side       db 0BAh, ' ', 0BAh
edge_rule       db 0C7h, 0C4h, 0B6h
edge_bottom     db 0C8h, 0CDh, 0BCh

        align   8, db 0
gdt:    dq      0
        dq      00CF92000000FFFFh       ; 08: data, base 0, limit 4 GiB, writable, present
gdtr:   dw      $ - gdt - 1
        dd      gdt

row     dw      0
good    dw      0
failed  dw      0
mib     dw      0
bad     dw      0
resume  dw      0
faults  db      0
passed  db      0
has_tsc db      0
vendor  times 13 db 0
brand   times 49 db 0

PROGRAM equ     $ - start
