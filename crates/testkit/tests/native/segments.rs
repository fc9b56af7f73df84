//! Segments: what each kind lets code do, and what loads of selectors leave.

use realmode_testkit::proof::*;

use crate::cases::{MODES, case, exception, native, poke};

/// `mov ds, ax` and the like, by the register's number.
fn load(number: u8) -> [u8; 2] {
    [0x8E, 0xC0 | number << 3]
}

#[test]
fn loaded_selectors_are_reported_in_every_mode() {
    let Some(mut native) = native() else { return };
    let layout = native.layout();
    for mode in MODES {
        for (number, kind) in [(0, Kind::Short), (3, Kind::Wide), (4, Kind::Down), (5, Kind::Data)]
        {
            let mut case = case(&native, mode, &load(number));
            case.gpr[0] = layout.selector(kind).into();
            let outcome = native.run(&case);
            let mut expected = match mode {
                Mode::Bits64 => [0x2B, 0x33, 0x2B, 0x2B, 0, 0],
                _ => case.segments.map(|kind| layout.selector(kind)),
            };
            expected[usize::from(number)] = layout.selector(kind);
            assert_eq!((outcome.end, outcome.selectors), (End::Returned, expected), "{mode:?}");
        }
    }
}

#[test]
fn selectors_are_reported_with_an_exception_too() {
    let Some(mut native) = native() else { return };
    let layout = native.layout();
    for mode in [Mode::Bits16, Mode::Bits32] {
        let mut case = case(&native, mode, &[0x0F, 0x0B]);
        case.segments[0] = Kind::Short;
        case.segments[3] = Kind::Wide;
        case.segments[4] = Kind::Down;
        case.segments[5] = Kind::Null;
        let outcome = native.run(&case);
        assert_eq!(exception(&native, &case, &outcome), (6, 0, 0));
        assert_eq!(outcome.selectors, case.segments.map(|kind| layout.selector(kind)));
    }
}

#[test]
fn a_stack_segment_is_loaded_with_its_pointer() {
    let Some(mut native) = native() else { return };
    let layout = native.layout();
    // lss sp, [bx]
    let mut case = case(&native, Mode::Bits16, &[0x0F, 0xB2, 0x27]);
    let [low, high] = layout.selector(Kind::Stack32).to_le_bytes();
    case.pokes[0] = poke(DATA, &[0x34, 0x12, low, high]);
    let outcome = native.run(&case);
    assert_eq!((outcome.end, outcome.gpr[4]), (End::Returned, 0x1234));
    assert_eq!(outcome.selectors[2], layout.selector(Kind::Stack32));
}

#[test]
fn far_transfers_reach_other_code_segments() {
    let Some(mut native) = native() else { return };
    let layout = native.layout();
    let [low, high] = layout.selector(Kind::Code32).to_le_bytes();
    // jmp far Code32:2000h
    let case = case(&native, Mode::Bits16, &[0xEA, 0x00, 0x20, low, high]);
    let outcome = native.run(&case);
    assert_eq!(exception(&native, &case, &outcome).0, 3);
    assert_eq!(outcome.selectors[1], layout.selector(Kind::Code32));
}

/// Runs an access to an offset in DS: 16-bit code with a 32-bit address.
fn access(native: &mut Native, kind: Kind, offset: u32, access: Access) -> Option<(u8, u32)> {
    // mov ax, [ebx] / mov [ebx], ax
    let opcode = if access == Access::Read { 0x8B } else { 0x89 };
    let mut case = case(native, Mode::Bits16, &[0x67, opcode, 0x03]);
    case.segments[3] = kind;
    case.gpr[3] = offset.into();
    let outcome = native.run(&case);
    let is_returned = outcome.end == End::Returned;
    (!is_returned).then(|| exception(native, &case, &outcome)).map(|(v, e, _)| (v, e))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}
use Access::{Read, Write};

#[test]
fn data_segments_end_where_their_descriptors_say() {
    let Some(mut native) = native() else { return };
    let gp = Some((13, 0));
    for (kind, offset, way, expected) in [
        (Kind::Data, 0xFFFE, Write, None),
        (Kind::Data, 0xFFFF, Read, gp),
        (Kind::Data, 0x1_0000, Read, gp),
        // The limit FFEh is even: the word at FFDh ends on it.
        (Kind::Short, 0xFFD, Write, None),
        (Kind::Short, 0xFFE, Read, gp),
        (Kind::Down, 0xFFF, Read, gp),
        (Kind::Down, 0x1000, Write, None),
        (Kind::Down, 0xFFFE, Read, None),
        (Kind::Down, 0xFFFF, Read, gp),
        (Kind::ReadOnly, 0, Read, None),
        (Kind::ReadOnly, 0, Write, gp),
        (Kind::Wide, ARENA_SIZE - 2, Write, None),
        (Kind::Wide, ARENA_SIZE - 1, Read, gp),
        (Kind::Code16, 0x100, Read, None),
        (Kind::Code16, 0, Write, gp),
        (Kind::Null, 0, Read, gp),
    ] {
        assert_eq!(access(&mut native, kind, offset, way), expected, "{kind:?} {offset:#x}");
    }
}

#[test]
fn code_that_can_only_be_executed_is_not_read() {
    let Some(mut native) = native() else { return };
    // mov al, cs:[bx]
    let mut case = case(&native, Mode::Bits16, &[0x2E, 0x8A, 0x07]);
    assert_eq!(native.run(&case).end, End::Returned);
    case.segments[1] = Kind::ExecuteOnly;
    let outcome = native.run(&case);
    assert_eq!(exception(&native, &case, &outcome), (13, 0, 0));
}

/// LAR and LSL show what the processor sees of a descriptor.
#[test]
fn descriptors_have_the_rights_and_limits_of_their_kinds() {
    let Some(mut native) = native() else { return };
    let layout = native.layout();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Null) {
        let segment = layout.segment(kind);
        // lar eax, ecx; lsl eax, ecx
        // AMD's LAR also shows bits 19 to 16 of the limit.
        let rights = (layout.descriptor(kind) >> 32) as u32 & 0xF0_FF00;
        for (opcode, mask, expected) in [(0x02, !0xF_0000, rights), (0x03, u64::MAX, segment.limit)]
        {
            let mut case = case(&native, Mode::Bits32, &[0x0F, opcode, 0xC1]);
            case.gpr[1] = segment.selector.into();
            let outcome = native.run(&case);
            assert_eq!(outcome.rflags & 0x40, 0x40, "{kind:?}");
            assert_eq!(outcome.gpr[0] & mask, u64::from(expected), "{kind:?} {opcode:#x}");
        }
    }
}
