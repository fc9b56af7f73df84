//! The RFLAGS register: masks by their names in SDM vol. 1, "EFLAGS Register".

/// Carry.
pub const CF: u64 = 1 << 0;
/// Bit 1, which always reads as one.
pub const FIXED: u64 = 1 << 1;
/// Parity of the low byte of the result.
pub const PF: u64 = 1 << 2;
/// Carry out of bit 3.
pub const AF: u64 = 1 << 4;
/// Zero.
pub const ZF: u64 = 1 << 6;
/// Sign.
pub const SF: u64 = 1 << 7;
/// Trap: single-step.
pub const TF: u64 = 1 << 8;
/// Interrupts enabled.
pub const IF: u64 = 1 << 9;
/// Direction of string instructions.
pub const DF: u64 = 1 << 10;
/// Signed overflow.
pub const OF: u64 = 1 << 11;
/// I/O privilege level, two bits.
pub const IOPL: u64 = 3 << 12;
/// Nested task.
pub const NT: u64 = 1 << 14;
/// Bit 15: one on the 8086, zero later.
pub const BIT15: u64 = 1 << 15;
/// Resume: hold off instruction breakpoints for one instruction.
pub const RF: u64 = 1 << 16;
/// Virtual-8086 mode.
pub const VM: u64 = 1 << 17;
/// Alignment check, or access control under SMAP.
pub const AC: u64 = 1 << 18;
/// Virtual interrupt flag.
pub const VIF: u64 = 1 << 19;
/// Virtual interrupt pending.
pub const VIP: u64 = 1 << 20;
/// CPUID can be executed.
pub const ID: u64 = 1 << 21;

/// The six flags that arithmetic sets.
pub const ARITH: u64 = CF | PF | AF | ZF | SF | OF;

/// The flags that are set in `rflags`, by name, most significant first; for people.
pub const NAMES: [(u64, &str); 17] = [
    (ID, "ID"),
    (VIP, "VIP"),
    (VIF, "VIF"),
    (AC, "AC"),
    (VM, "VM"),
    (RF, "RF"),
    (NT, "NT"),
    (IOPL, "IOPL"),
    (OF, "OF"),
    (DF, "DF"),
    (IF, "IF"),
    (TF, "TF"),
    (SF, "SF"),
    (ZF, "ZF"),
    (AF, "AF"),
    (PF, "PF"),
    (CF, "CF"),
];
