//! Random strings, executed by the emulator and by the host's own string instructions.
#![cfg(all(target_arch = "x86_64", not(miri)))]

use crate::guest::CODE;
use crate::native::{Random, long_guest, pick};
use realmode::arch::rflags::{ARITH, DF};
use realmode::*;

/// What a string instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Strings {
    rax: u64,
    rcx: u64,
    rsi: u64,
    rdi: u64,
    flags: u64,
}

type Native = unsafe fn(&mut Strings);

macro_rules! string {
    ($text:expr, [$($byte:expr),+]) => {{
        /// # Safety
        /// What the registers name must be memory of the caller's.
        unsafe fn go(s: &mut Strings) {
            // SAFETY: the caller vouches for the memory; DF is cleared again.
            unsafe {
                core::arch::asm!(
                    "push r8", "popfq", $text, "pushfq", "pop r8", "cld",
                    inout("r8") s.flags, inout("rax") s.rax, inout("rcx") s.rcx,
                    inout("rsi") s.rsi, inout("rdi") s.rdi,
                );
            }
        }
        ($text, &[$($byte),+], go)
    }};
}

/// Text, bytes, the host's version.
const STRINGS: [(&str, &[u8], Native); 40] = [
    string!("movsb", [0xA4]),
    string!("movsw", [0x66, 0xA5]),
    string!("movsd", [0xA5]),
    string!("movsq", [0x48, 0xA5]),
    string!("rep movsb", [0xF3, 0xA4]),
    string!("rep movsw", [0xF3, 0x66, 0xA5]),
    string!("rep movsd", [0xF3, 0xA5]),
    string!("rep movsq", [0xF3, 0x48, 0xA5]),
    string!("stosb", [0xAA]),
    string!("stosw", [0x66, 0xAB]),
    string!("stosd", [0xAB]),
    string!("stosq", [0x48, 0xAB]),
    string!("rep stosb", [0xF3, 0xAA]),
    string!("rep stosw", [0xF3, 0x66, 0xAB]),
    string!("rep stosd", [0xF3, 0xAB]),
    string!("rep stosq", [0xF3, 0x48, 0xAB]),
    string!("lodsb", [0xAC]),
    string!("lodsw", [0x66, 0xAD]),
    string!("rep lodsd", [0xF3, 0xAD]),
    string!("rep lodsq", [0xF3, 0x48, 0xAD]),
    string!("cmpsb", [0xA6]),
    string!("cmpsd", [0xA7]),
    string!("repe cmpsb", [0xF3, 0xA6]),
    string!("repe cmpsw", [0xF3, 0x66, 0xA7]),
    string!("repe cmpsd", [0xF3, 0xA7]),
    string!("repe cmpsq", [0xF3, 0x48, 0xA7]),
    string!("repne cmpsb", [0xF2, 0xA6]),
    string!("repne cmpsw", [0xF2, 0x66, 0xA7]),
    string!("repne cmpsd", [0xF2, 0xA7]),
    string!("repne cmpsq", [0xF2, 0x48, 0xA7]),
    string!("scasb", [0xAE]),
    string!("scasq", [0x48, 0xAF]),
    string!("repe scasb", [0xF3, 0xAE]),
    string!("repe scasw", [0xF3, 0x66, 0xAF]),
    string!("repe scasd", [0xF3, 0xAF]),
    string!("repe scasq", [0xF3, 0x48, 0xAF]),
    string!("repne scasb", [0xF2, 0xAE]),
    string!("repne scasw", [0xF2, 0x66, 0xAF]),
    string!("repne scasd", [0xF2, 0xAF]),
    string!("repne scasq", [0xF2, 0x48, 0xAF]),
];

#[test]
fn strings_do_what_the_host_does() {
    const LEN: usize = 0x4000;
    const AT: u64 = 0x1_0000;
    let mut guest = long_guest(&Profile::INTEL);
    let mut memory = vec![0u8; LEN];
    let base = memory.as_mut_ptr() as u64;
    let mut random = Random::new(0x1234_5678_9ABC_DEF1);
    for round in 0..2400 {
        let (text, bytes, native) = STRINGS[round % STRINGS.len()];
        let count = pick(&mut random, &[0, 1, 3, 17, 100, 400, 500]);
        let down = random.word().is_multiple_of(2);
        let (low, high) = if down { (0x1000, 0x3000) } else { (0x100, 0x2000) };
        let rsi = low + random.word() % (high - low);
        // Near the source, so that they overlap, or anywhere.
        let near = (rsi + random.word() % 40).saturating_sub(20);
        let far = low + random.word() % (high - low);
        let rdi = pick(&mut random, &[near, far]);
        let alphabet = pick(&mut random, &[1, 2, 256]);
        for byte in &mut memory {
            *byte = (random.word() % alphabet) as u8;
        }
        let rax = pick(&mut random, &[0, 0x0101_0101_0101_0101, 1, u64::MAX]);
        let flags = random.word() & ARITH | if down { DF } else { 0 };
        guest.poke(CODE, bytes);
        guest.poke(AT, &memory);
        let start = Strings { rax, rcx: count, rsi, rdi, flags: flags | 0x202 };
        let mut wanted = Strings { rsi: rsi + base, rdi: rdi + base, ..start };
        // SAFETY: at most 500 elements of 8 bytes from an offset of 1000h to 3000h downwards, or
        // 100h to 2000h upwards, lie within the 4000h bytes of `memory`.
        unsafe { native(&mut wanted) };
        (wanted.rsi, wanted.rdi) = (wanted.rsi - base, wanted.rdi - base);
        wanted.flags &= ARITH | DF;
        let cpu = &mut guest.cpu;
        (cpu.rip, cpu.rflags) = (CODE, flags | 2);
        cpu.gpr[Reg::Rax] = rax;
        cpu.gpr[Reg::Rcx] = count;
        cpu.gpr[Reg::Rsi] = rsi + AT;
        cpu.gpr[Reg::Rdi] = rdi + AT;
        while guest.cpu.rip == CODE {
            guest.step();
        }
        let got = Strings {
            rax: guest.reg(Reg::Rax),
            rcx: guest.reg(Reg::Rcx),
            rsi: guest.reg(Reg::Rsi) - AT,
            rdi: guest.reg(Reg::Rdi) - AT,
            flags: guest.cpu.rflags & (ARITH | DF),
        };
        assert_eq!(got, wanted, "round {round}: {text} from {start:X?}");
        assert!(guest.peek(AT, LEN) == memory, "round {round}: memory of {text} from {start:X?}");
    }
}
