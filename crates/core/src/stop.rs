//! Why `run` came back. Not an error: the VMM acts on it and calls `run` again.

/// Whether a request brings data to the processor or takes it to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Direction {
    /// The device supplies the data: a load or an IN.
    Read,
    /// The processor supplies the data: a store or an OUT.
    Write,
}

/// A device access that the bus answered with `Pending`. Perform it, call
/// [`Emulator::reply`](crate::Emulator::reply), and `run` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    /// The physical address, or the port number.
    pub address: u64,
    /// 1, 2, 4 or 8 bytes; ports at most 4.
    pub size: u8,
    /// Read or write.
    pub direction: Direction,
    /// What to write, in the low `size` bytes; 0 for a read.
    pub data: u64,
}

/// Why an instruction is not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnimplementedReason {
    /// The row exists, its handler does not: x87 or SIMD arithmetic, for example.
    Instruction,
    /// The instruction is executed, but not in the mode the processor is in.
    Mode,
    /// Its operand lies in MMIO and is larger than an MMIO operand may be.
    LargeMmio,
    /// Code was fetched from MMIO or unbacked memory: `address` says where.
    FetchFromMmio,
    /// A locked operand crosses a cache line and the policy is to stop.
    SplitLock,
    /// A delivery through this mode's tables is not executed.
    Delivery,
    /// A page table lies in MMIO.
    TablesInMmio,
}

impl core::fmt::Display for UnimplementedReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            UnimplementedReason::Instruction => "instruction not implemented",
            UnimplementedReason::Mode => "instruction not implemented in this mode",
            UnimplementedReason::LargeMmio => "operand in MMIO larger than 512 bytes",
            UnimplementedReason::FetchFromMmio => "instruction fetch from MMIO or unbacked memory",
            UnimplementedReason::SplitLock => "locked operand crosses a cache line",
            UnimplementedReason::Delivery => "event delivery not implemented in this mode",
            UnimplementedReason::TablesInMmio => "page table in MMIO",
        })
    }
}

/// What could not be executed, with all that a report needs. The state is as before the
/// instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unimplemented {
    /// Why.
    pub reason: UnimplementedReason,
    /// RIP of the instruction.
    pub rip: u64,
    /// Its bytes, `len` of them.
    pub bytes: [u8; 15],
    /// How many bytes were fetched: 0 to 15; 0 if it is an event that could not be delivered.
    pub len: u8,
    /// 16, 32 or 64: the size of the code.
    pub bits: u8,
    /// The physical address the reason speaks of, or 0.
    pub address: u64,
}

/// An instruction that the VMM asked to see before it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Intercepted {
    /// CPUID.
    Cpuid,
    /// HLT.
    Hlt,
    /// RDTSC or RDTSCP.
    Rdtsc,
    /// RDPMC.
    Rdpmc,
    /// RDMSR.
    Rdmsr,
    /// WRMSR.
    Wrmsr,
    /// A write of CR0 (MOV, LMSW, CLTS).
    WriteCr0,
    /// A write of CR3.
    WriteCr3,
    /// A write of CR4.
    WriteCr4,
    /// A read or write of DR0-7.
    DebugRegister,
    /// INVLPG.
    Invlpg,
    /// INVD.
    Invd,
    /// WBINVD or WBNOINVD.
    Wbinvd,
    /// LGDT, LIDT, LLDT, LTR.
    DescriptorTable,
    /// INT n, INT3, INTO, INT1.
    SoftwareInterrupt,
    /// IRET.
    Iret,
    /// PAUSE.
    Pause,
}

/// Why [`Emulator::run`](crate::Emulator::run) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The budget of instructions is used up.
    Budget,
    /// HLT executed; interrupts are enabled or an NMI can come, so the VMM waits for one.
    Halt,
    /// HLT with IF clear: nothing but NMI, SMI, INIT or reset ends it.
    Idle,
    /// The processor waits for a start-up IPI.
    WaitForSipi,
    /// Triple fault. Only reset or INIT leads on.
    Shutdown,
    /// A memory-mapped device has to act.
    Mmio(Request),
    /// A port has to act.
    Port(Request),
    /// VMCALL or VMMCALL; RIP is past it.
    Hypercall,
    /// A guest exception the VMM asked to see; it has not been delivered.
    Exception(crate::Fault),
    /// An instruction the VMM asked to see; it has not been executed.
    Intercept(Intercepted),
    /// A device asked, through `Control::stop`.
    Requested,
    /// Not executed, with the reason. Never misexecuted.
    Unimplemented(Unimplemented),
}
