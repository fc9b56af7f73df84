//! Tests of `isa/bits.rs`.

use crate::guest::{CODE, Guest};
use crate::native::{compare, long_guest};
use realmode::arch::rflags::{AF, ARITH, CF, OF, PF, SF, ZF};
use realmode::*;

const ROUNDS: usize = 3000;

macro_rules! bit_operation {
    ($name:literal, $opcode:literal, $digit:literal) => {
        [
            case!(concat!($name, " ax, dx"), [0x66, 0x0F, $opcode, 0xD0]),
            case!(concat!($name, " eax, edx"), [0x0F, $opcode, 0xD0]),
            case!(concat!($name, " rax, rdx"), [0x48, 0x0F, $opcode, 0xD0]),
            case!(concat!($name, " eax, eax"), [0x0F, $opcode, 0xC0]),
            case!(concat!($name, " ax, 19"), [0x66, 0x0F, 0xBA, 0xC0 | $digit << 3, 19]),
            case!(concat!($name, " eax, 31"), [0x0F, 0xBA, 0xC0 | $digit << 3, 31]),
            case!(concat!($name, " rax, 63"), [0x48, 0x0F, 0xBA, 0xC0 | $digit << 3, 63]),
        ]
    };
}

#[test]
fn bit_tests_agree_with_the_host() {
    for cases in [
        bit_operation!("bt", 0xA3, 4),
        bit_operation!("bts", 0xAB, 5),
        bit_operation!("btr", 0xB3, 6),
        bit_operation!("btc", 0xBB, 7),
    ] {
        compare(&cases, ROUNDS, |_| {}, |_| OF | SF | AF | PF);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn scans_and_counts_agree_with_the_host() {
    let scans = [
        case!("bsf ax, dx", [0x66, 0x0F, 0xBC, 0xC2]),
        case!("bsf eax, edx", [0x0F, 0xBC, 0xC2]),
        case!("bsf rax, rdx", [0x48, 0x0F, 0xBC, 0xC2]),
        case!("bsr ax, dx", [0x66, 0x0F, 0xBD, 0xC2]),
        case!("bsr eax, edx", [0x0F, 0xBD, 0xC2]),
        case!("bsr rax, rdx", [0x48, 0x0F, 0xBD, 0xC2]),
    ];
    // Older parts zero the upper half of a 32-bit destination when the source is 0.
    compare(&scans, ROUNDS, |state| state.rax &= 0xFFFF_FFFF, |_| OF | SF | AF | PF | CF);
    let counts = [
        case!("tzcnt ax, dx", [0x66, 0xF3, 0x0F, 0xBC, 0xC2]),
        case!("tzcnt eax, edx", [0xF3, 0x0F, 0xBC, 0xC2]),
        case!("tzcnt rax, rdx", [0xF3, 0x48, 0x0F, 0xBC, 0xC2]),
        case!("lzcnt ax, dx", [0x66, 0xF3, 0x0F, 0xBD, 0xC2]),
        case!("lzcnt eax, edx", [0xF3, 0x0F, 0xBD, 0xC2]),
        case!("lzcnt rax, rdx", [0xF3, 0x48, 0x0F, 0xBD, 0xC2]),
    ];
    if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("lzcnt") {
        compare(&counts, ROUNDS, |_| {}, |_| OF | SF | AF | PF);
    }
    let populations = [
        case!("popcnt ax, dx", [0x66, 0xF3, 0x0F, 0xB8, 0xC2]),
        case!("popcnt eax, edx", [0xF3, 0x0F, 0xB8, 0xC2]),
        case!("popcnt rax, rdx", [0xF3, 0x48, 0x0F, 0xB8, 0xC2]),
    ];
    if is_x86_feature_detected!("popcnt") {
        compare(&populations, ROUNDS, |_| {}, |_| 0);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn crc32_and_carry_chains_agree_with_the_host() {
    let crc = [
        case!("crc32 eax, dl", [0xF2, 0x0F, 0x38, 0xF0, 0xC2]),
        case!("crc32 eax, dh", [0xF2, 0x0F, 0x38, 0xF0, 0xC6]),
        case!("crc32 rax, dl", [0xF2, 0x48, 0x0F, 0x38, 0xF0, 0xC2]),
        case!("crc32 eax, dx", [0x66, 0xF2, 0x0F, 0x38, 0xF1, 0xC2]),
        case!("crc32 eax, edx", [0xF2, 0x0F, 0x38, 0xF1, 0xC2]),
        case!("crc32 rax, rdx", [0xF2, 0x48, 0x0F, 0x38, 0xF1, 0xC2]),
    ];
    if is_x86_feature_detected!("sse4.2") {
        compare(&crc, ROUNDS, |_| {}, |_| 0);
    }
    let chains = [
        case!("adcx eax, edx", [0x66, 0x0F, 0x38, 0xF6, 0xC2]),
        case!("adcx rax, rdx", [0x66, 0x48, 0x0F, 0x38, 0xF6, 0xC2]),
        case!("adox eax, edx", [0xF3, 0x0F, 0x38, 0xF6, 0xC2]),
        case!("adox rax, rdx", [0xF3, 0x48, 0x0F, 0x38, 0xF6, 0xC2]),
    ];
    if is_x86_feature_detected!("adx") {
        compare(&chains, ROUNDS, |_| {}, |_| 0);
    }
}

#[test]
fn a_bit_number_in_a_register_reaches_beyond_the_operand_both_ways() {
    // bts [0x2000], ax
    let code = [0x0F, 0xAB, 0x06, 0x00, 0x20];
    for (index, at, byte) in [
        (0u16, 0x2000, 0x01),
        (15, 0x2001, 0x80),
        (17, 0x2002, 0x02),
        (0xFFFF, 0x1FFF, 0x80),
        (0xFFF0, 0x1FFE, 0x01),
        (0x8000, 0x1000, 0x01),
        (0x7FFF, 0x2FFF, 0x80),
    ] {
        let mut guest = Guest::new(&code).with(Reg::Rax, index.into());
        // Beyond the code that lies at 1000h.
        let old = guest.peek(at, 1)[0];
        guest.step();
        assert_eq!(guest.peek(at, 1)[0], old | byte, "{index:x}");
        assert_eq!(guest.flags() & CF != 0, old & byte != 0, "{index:x}");
    }
}

#[test]
fn a_bit_number_moves_the_address_in_operands_and_wraps_in_the_segment() {
    // bt dword [0x2000], eax in 16-bit code: bit 35 is bit 3 of the dword at 2004.
    let mut guest = Guest::new(&[0x66, 0x0F, 0xA3, 0x06, 0x00, 0x20]).with(Reg::Rax, 35);
    guest.poke(0x2004, &[8]);
    guest.step();
    assert_eq!(guest.flags(), CF);
    // bt word [0x0001], ax with -32 goes to offset FFFD.
    let mut guest = Guest::new(&[0x0F, 0xA3, 0x06, 0x01, 0x00]).with(Reg::Rax, 0xFFE0);
    guest.poke(0xFFFD, &[1]);
    guest.step();
    assert_eq!(guest.flags(), CF);
    // With -16 the word at FFFF leaves the segment.
    let mut guest = Guest::new(&[0x0F, 0xA3, 0x06, 0x01, 0x00]).with(Reg::Rax, 0xFFF0);
    assert_eq!(guest.fault(), Some(13));
}

#[test]
fn an_immediate_bit_number_stays_within_the_operand() {
    // btc word [0x2000], 17 is bit 1, with and without LOCK.
    for code in [&[0x0F, 0xBA, 0x3E, 0, 0x20, 17][..], &[0xF0, 0x0F, 0xBA, 0x3E, 0, 0x20, 17]] {
        let mut guest = Guest::new(code);
        guest.poke(0x2000, &[2, 0, 0xFF]);
        guest.step();
        assert_eq!(guest.peek(0x2000, 3), [0, 0, 0xFF]);
        assert_eq!(guest.flags(), CF);
    }
}

#[test]
fn d07_lock_is_legal_with_bts_but_not_with_bt() {
    // lock bt [0x2000], ax; lock bts [0x2000], ax; lock bts bx, ax
    assert_eq!(Guest::new(&[0xF0, 0x0F, 0xA3, 0x06, 0x00, 0x20]).fault(), Some(6));
    assert_eq!(Guest::new(&[0xF0, 0x0F, 0xBA, 0x26, 0x00, 0x20, 0]).fault(), Some(6));
    assert_eq!(Guest::new(&[0xF0, 0x0F, 0xAB, 0xC3]).fault(), Some(6));
    let mut guest = Guest::new(&[0xF0, 0x0F, 0xAB, 0x06, 0x00, 0x20]).with(Reg::Rax, 33);
    guest.step();
    assert_eq!(guest.peek(0x2004, 1), [2]);
}

#[test]
fn d25_f3_counts_only_where_the_feature_is() {
    // The highest set bit of 0010h: LZCNT says 11, BSR 4.
    let code = [0xF3, 0x0F, 0xBD, 0xC3];
    let run = |profile: &Profile| {
        let mut guest = Guest::with_profile(profile, &code).with(Reg::Rbx, 0x10);
        guest.step();
        guest.reg(Reg::Rax)
    };
    assert_eq!(run(&Profile::INTEL), 11);
    assert_eq!(run(&Profile::I80486), 4);
    let mut without = Profile::INTEL;
    without.features.remove(Features::LZCNT);
    assert_eq!(run(&without), 4);
    // POPCNT without its feature is nothing.
    let popcnt = [0xF3, 0x0F, 0xB8, 0xC3];
    assert_eq!(Guest::with_profile(&Profile::I80486, &popcnt).fault(), Some(6));
    assert_eq!(Guest::new(&[0x0F, 0xB8, 0xC3]).fault(), Some(6));
}

#[test]
fn a_scan_of_zero_keeps_the_register_whole() {
    let mut guest = long_guest(&Profile::INTEL);
    guest.poke(CODE, &[0x0F, 0xBC, 0xC2]);
    guest.cpu.gpr[Reg::Rax] = u64::MAX;
    guest.cpu.gpr[Reg::Rdx] = 1 << 32;
    guest.step();
    assert_eq!(guest.reg(Reg::Rax), u64::MAX);
    assert_eq!(guest.flags(), ZF | PF);
}

#[test]
fn adcx_in_16_bit_code_adds_32_bits() {
    // adcx eax, ebx and adox eax, ebx, without any other prefix
    for prefix in [0x66, 0xF3] {
        let mut guest = Guest::new(&[prefix, 0x0F, 0x38, 0xF6, 0xC3])
            .with(Reg::Rax, 0xFFFF_FFFF)
            .with(Reg::Rbx, 1);
        guest.cpu.rflags |= ARITH;
        guest.step();
        assert_eq!(guest.reg(Reg::Rax), 1);
        assert_eq!(guest.flags(), ARITH);
    }
}
