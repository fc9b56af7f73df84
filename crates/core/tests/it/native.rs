//! The host's processor as an oracle: one instruction, executed by it and by the emulator in
//! 64-bit code, on the same registers and flags.
//!
//! Both makers' profiles have to agree with it in what the manuals define.
//! Undefined flags are compared too on the silicon they were measured on, AMD family 19h. Other
//! hosts, and Miri, compare nothing.

use crate::guest::{CODE, Guest};
use realmode::arch::rflags::ARITH;
use realmode::*;

/// The registers an instruction under test may use, and the flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub flags: u64,
}

/// Beside a flags mask: the result is undefined too.
pub const RESULT: u64 = 1 << 63;

/// One instruction on the host.
pub type Native = fn(&mut State);

/// An instruction for the host, given as text. It may use RAX, RCX, RDX, RSI and the flags.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! native {
    ($text:expr) => {{
        fn go(state: &mut $crate::native::State) {
            // SAFETY: `$text` uses no register but these, no memory and no stack; the flags it is
            // given and leaves are arithmetic ones.
            unsafe {
                core::arch::asm!(
                    "push r8",
                    "popfq",
                    $text,
                    "pushfq",
                    "pop r8",
                    inout("r8") state.flags,
                    inout("rax") state.rax,
                    inout("rcx") state.rcx,
                    inout("rdx") state.rdx,
                    inout("rsi") state.rsi,
                );
            }
        }
        go as $crate::native::Native
    }};
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
macro_rules! native {
    ($text:expr) => {
        |_: &mut $crate::native::State| unreachable!($text)
    };
}

/// One instruction: its text for messages, its bytes in 64-bit code, the host's version.
pub struct Case {
    pub text: &'static str,
    pub bytes: &'static [u8],
    pub native: Native,
}

/// A case from its text and bytes.
macro_rules! case {
    ($text:expr, [$($byte:expr),+]) => {
        $crate::native::Case { text: $text, bytes: &[$($byte),+], native: native!($text) }
    };
}

/// Random numbers with an inclination to edges; xorshift, so that a failure repeats.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn value(&mut self) -> u64 {
        match self.word() % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << (self.word() % 64),
            3 => u64::MAX << (self.word() % 64),
            4 => self.word() % 256,
            _ => self.word(),
        }
    }

    pub fn state(&mut self) -> State {
        State {
            rax: self.value(),
            rcx: self.value(),
            rdx: self.value(),
            rsi: self.value(),
            flags: self.word() & ARITH,
        }
    }
}

/// The profiles to hold against this host, and whether their undefined flags were measured on
/// silicon like it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn host_profiles() -> Vec<(&'static Profile, bool)> {
    use core::arch::x86_64::__cpuid;
    let (vendor, signature) = (__cpuid(0).ebx, __cpuid(1).eax);
    let family = (signature >> 8 & 15) + (signature >> 20 & 255);
    let is_amd = vendor == u32::from_le_bytes(*b"Auth");
    let model = (signature >> 4 & 15) | (signature >> 12 & 0xF0);
    // Of family 19h, these models are Zen 4, and the others Zen 3.
    let is_zen_4 = is_amd && family == 0x19 && matches!(model, 0x10..0x20 | 0x60..0xB0);
    vec![(&Profile::INTEL, false), (&Profile::AMD, is_zen_4)]
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn host_profiles() -> Vec<(&'static Profile, bool)> {
    Vec::new()
}

/// One of `values`.
pub fn pick<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.word() as usize % values.len()]
}

/// A guest in flat 64-bit code without paging.
pub fn long_guest(profile: &Profile) -> Guest {
    let mut guest = Guest::with_profile(profile, &[]);
    guest.cpu.msr.efer |= arch::control::EFER_LMA;
    let cs = &mut guest.cpu.seg[SegReg::Cs as usize];
    cs.attributes = Attributes(0x9B | Attributes::L);
    guest.cpu.rflags |= 0x2;
    guest
}

/// Compares `rounds` random executions of each case. `input` shapes the state; `undefined` says
/// which flags the manual leaves undefined for it, and with `RESULT` that the result is.
pub fn compare(
    cases: &[Case],
    rounds: usize,
    input: impl Fn(&mut State),
    undefined: impl Fn(&State) -> u64,
) {
    for (profile, measured) in host_profiles() {
        let mut guest = long_guest(profile);
        let mut emulator = Emulator::new(profile, &mut []);
        let mut random = Random::new(0x9E37_79B9_7F4A_7C15);
        for case in cases {
            guest.poke(CODE, case.bytes);
            emulator.flush();
            for _ in 0..rounds {
                let mut before = random.state();
                input(&mut before);
                let mask = if measured { ARITH } else { ARITH & !undefined(&before) };
                if !measured && undefined(&before) & RESULT != 0 {
                    continue;
                }
                let mut wanted = State { flags: before.flags | 0x202, ..before };
                (case.native)(&mut wanted);
                wanted.flags &= mask;
                let mut got = emulate(&mut emulator, &mut guest, case, &before);
                got.flags &= mask;
                assert_eq!(
                    got, wanted,
                    "{} as {}\nbefore {before:x?}\n   got {got:x?}\nwanted {wanted:x?}",
                    case.text, profile.name
                );
            }
        }
    }
}

fn emulate(
    emulator: &mut Emulator<'static>,
    guest: &mut Guest,
    case: &Case,
    before: &State,
) -> State {
    let cpu = &mut guest.cpu;
    cpu.rip = CODE;
    cpu.rflags = before.flags | 2;
    cpu.gpr[Reg::Rax] = before.rax;
    cpu.gpr[Reg::Rcx] = before.rcx;
    cpu.gpr[Reg::Rdx] = before.rdx;
    cpu.gpr[Reg::Rsi] = before.rsi;
    let stop = emulator.run(cpu, &mut guest.bus, 1);
    assert_eq!(stop, Ok(Stop::Budget), "{}", case.text);
    assert_eq!(cpu.rip, CODE + case.bytes.len() as u64, "{}", case.text);
    State {
        rax: cpu.gpr[Reg::Rax],
        rcx: cpu.gpr[Reg::Rcx],
        rdx: cpu.gpr[Reg::Rdx],
        rsi: cpu.gpr[Reg::Rsi],
        flags: cpu.rflags & ARITH,
    }
}

/// What the host's processor makes of an image that it loads and saves again, over EEh.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub fn fxsave(image: &[u8; 512]) -> [u8; 512] {
    #[repr(align(64))]
    struct Aligned([u8; 512]);
    let (from, mut to, mut own) = (Aligned(*image), Aligned([0xEE; 512]), Aligned([0; 512]));
    // SAFETY: the images are aligned and as large as the instructions access; what the processor
    // held before is there again after.
    unsafe {
        core::arch::asm!(
            "fxsave64 [{own}]", "fxrstor64 [{from}]", "fxsave64 [{to}]", "fxrstor64 [{own}]",
            own = in(reg) own.0.as_mut_ptr(), from = in(reg) from.0.as_ptr(),
            to = in(reg) to.0.as_mut_ptr(),
        );
    }
    to.0
}
