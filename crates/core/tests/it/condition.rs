//! Tests of `isa/condition.rs`.

use crate::guest::Guest;
use crate::native::compare;
use realmode::*;

macro_rules! conditions {
    ($($name:literal $code:literal)+) => {
        [$(
            case!(concat!("set", $name, " al"), [0x0F, 0x90 | $code, 0xC0]),
            case!(concat!("set", $name, " dh"), [0x0F, 0x90 | $code, 0xC6]),
            case!(concat!("set", $name, " sil"), [0x40, 0x0F, 0x90 | $code, 0xC6]),
            case!(concat!("cmov", $name, " ax, dx"), [0x66, 0x0F, 0x40 | $code, 0xC2]),
            case!(concat!("cmov", $name, " eax, edx"), [0x0F, 0x40 | $code, 0xC2]),
            case!(concat!("cmov", $name, " rax, rdx"), [0x48, 0x0F, 0x40 | $code, 0xC2]),
        )+]
    };
}

#[test]
fn a07_every_condition_agrees_with_the_host() {
    let cases = conditions!(
        "o" 0 "no" 1 "b" 2 "ae" 3 "e" 4 "ne" 5 "be" 6 "a" 7
        "s" 8 "ns" 9 "p" 10 "np" 11 "l" 12 "ge" 13 "le" 14 "g" 15
    );
    compare(&cases, 500, |_| {}, |_| 0);
}

#[test]
fn cmov_loads_although_the_condition_does_not_hold() {
    // cmovz ax, [0xFFFF]: the word leaves the segment.
    assert_eq!(Guest::new(&[0x0F, 0x44, 0x06, 0xFF, 0xFF]).fault(), Some(13));
    let mut guest = Guest::new(&[0x0F, 0x45, 0x06, 0x00, 0x20]).with(Reg::Rax, 1);
    guest.poke(0x2000, &[0x34, 0x12]);
    guest.step();
    assert_eq!(guest.reg(Reg::Rax), 0x1234);
}

#[test]
fn setcc_stores_one_byte() {
    // setnz [0x2000]
    let mut guest = Guest::new(&[0x0F, 0x95, 0x06, 0x00, 0x20]);
    guest.poke(0x2000, &[0xAA, 0xAA]);
    guest.step();
    assert_eq!(guest.peek(0x2000, 2), [1, 0xAA]);
}

#[test]
fn setcc_came_with_the_80386_and_cmov_with_its_feature_bit() {
    let set = [0x0F, 0x94, 0xC0];
    let cmov = [0x0F, 0x44, 0xC3];
    assert_eq!(Guest::with_profile(&Profile::I80286, &set).fault(), Some(6));
    assert_eq!(Guest::with_profile(&Profile::I80386, &set).fault(), None);
    assert_eq!(Guest::with_profile(&Profile::I80486, &cmov).fault(), Some(6));
    assert_eq!(Guest::with_profile(&Profile::INTEL, &cmov).fault(), None);
    // LOCK is not legal with either.
    assert_eq!(Guest::new(&[0xF0, 0x0F, 0x94, 0x06, 0x00, 0x20]).fault(), Some(6));
}
