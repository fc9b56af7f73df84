//! Exception vectors (SDM vol. 3A, "Exception and Interrupt Reference").

/// #DE, divide error.
pub const DE: u8 = 0;
/// #DB, debug.
pub const DB: u8 = 1;
/// Non-maskable interrupt.
pub const NMI: u8 = 2;
/// #BP, breakpoint.
pub const BP: u8 = 3;
/// #OF, overflow.
pub const OF: u8 = 4;
/// #BR, BOUND range exceeded.
pub const BR: u8 = 5;
/// #UD, invalid opcode.
pub const UD: u8 = 6;
/// #NM, device not available.
pub const NM: u8 = 7;
/// #DF, double fault.
pub const DF: u8 = 8;
/// #TS, invalid TSS.
pub const TS: u8 = 10;
/// #NP, segment not present.
pub const NP: u8 = 11;
/// #SS, stack fault.
pub const SS: u8 = 12;
/// #GP, general protection.
pub const GP: u8 = 13;
/// #PF, page fault.
pub const PF: u8 = 14;
/// #MF, x87 floating-point error.
pub const MF: u8 = 16;
/// #AC, alignment check.
pub const AC: u8 = 17;
/// #MC, machine check.
pub const MC: u8 = 18;
/// #XM, SIMD floating-point exception.
pub const XM: u8 = 19;
/// #VE, virtualization exception.
pub const VE: u8 = 20;
/// #CP, control protection.
pub const CP: u8 = 21;

/// The mnemonic of an exception, `#GP` and so on; `None` for a vector the manuals give no name.
pub const fn name(vector: u8) -> Option<&'static str> {
    Some(match vector {
        DE => "#DE",
        DB => "#DB",
        NMI => "NMI",
        BP => "#BP",
        OF => "#OF",
        BR => "#BR",
        UD => "#UD",
        NM => "#NM",
        DF => "#DF",
        TS => "#TS",
        NP => "#NP",
        SS => "#SS",
        GP => "#GP",
        PF => "#PF",
        MF => "#MF",
        AC => "#AC",
        MC => "#MC",
        XM => "#XM",
        VE => "#VE",
        CP => "#CP",
        _ => return None,
    })
}

/// Does delivery of this exception push an error code, outside real mode?
pub const fn has_error_code(vector: u8) -> bool {
    matches!(vector, DF | TS | NP | SS | GP | PF | AC | CP)
}
