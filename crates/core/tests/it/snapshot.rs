//! Snapshots of a processor whose instruction waits for a device.

use crate::guest::{DEVICE, Guest};
use realmode::*;

/// `movs dword [di], [si]; hlt` from offset 2 of the device, which takes two requests, to memory
/// in two pages.
fn waiting_guest() -> Guest {
    let mut guest = Guest::new(&[0x66, 0xA5, 0xF4]);
    guest.cpu.seg[SegReg::Ds as usize] = Segment::real((DEVICE >> 4) as u16);
    guest.cpu.gpr[Reg::Rsi] = 2;
    guest.cpu.gpr[Reg::Rdi] = 0x2FFE;
    guest.bus.pending = true;
    guest
}

#[cfg(feature = "serde")]
#[test]
fn a_processor_goes_on_from_json_on_another_emulator() {
    let mut guest = waiting_guest();
    let mut emulator = Emulator::new(&guest.profile, &mut []);
    for (address, word) in [(DEVICE + 2, 0x1122), (DEVICE + 4, 0x3344)] {
        let stop = emulator.run(&mut guest.cpu, &mut guest.bus, 2);
        let Ok(Stop::Mmio(request)) = stop else { panic!("no request but {stop:?}") };
        assert_eq!((request.address, request.size), (address, 2));
        let saved = serde_json::to_string(&(&guest.cpu, emulator.in_flight())).unwrap();
        let (cpu, record): (Cpu, Option<InFlight>) = serde_json::from_str(&saved).unwrap();
        assert_eq!((&cpu, record.as_ref()), (&guest.cpu, emulator.in_flight()));
        guest.cpu = cpu;
        emulator = Emulator::new(&guest.profile, &mut []);
        emulator.restore_in_flight(&record.unwrap()).unwrap();
        emulator.reply(word).unwrap();
    }
    assert_eq!(emulator.run(&mut guest.cpu, &mut guest.bus, 2), Ok(Stop::Idle));
    assert_eq!(guest.peek(0x2FFE, 4), [0x22, 0x11, 0x44, 0x33]);
    assert_eq!(guest.bus.seen.len(), 2, "each word was asked for once");
}

#[cfg(feature = "arbitrary")]
#[test]
fn an_arbitrary_processor_runs_into_no_panic() {
    use arbitrary::{Arbitrary, Unstructured};
    let mut random = crate::native::Random::new(0x0A0B_0C0D_0E0F_1011);
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..2048).map(|_| random.word() as u8).collect();
        let mut guest = Guest::new(&bytes[..64]);
        guest.cpu = Cpu::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
        let mut emulator = Emulator::new(&guest.profile, &mut []);
        // Whatever it comes to, it is a stop.
        emulator.run(&mut guest.cpu, &mut guest.bus, 20).unwrap();
    }
}

#[test]
fn a_record_that_contradicts_itself_is_refused_and_changes_nothing() {
    let Guest { mut cpu, mut bus, profile, .. } = waiting_guest();
    let mut emulator = Emulator::new(&profile, &mut []);
    assert!(matches!(emulator.run(&mut cpu, &mut bus, 1), Ok(Stop::Mmio(_))));
    let good = emulator.in_flight().unwrap().clone();
    type Damage = fn(&mut InFlight);
    let damages: [(&str, Damage); 6] = [
        ("span_count", |r| r.span_count = 200),
        ("read_count", |r| r.read_count = 641),
        ("written", |r| r.written = u32::MAX),
        ("request.size", |r| r.request.size = 3),
        ("request.size", |r| (r.is_port, r.request.size) = (true, 8)),
        ("work.len", |r| r.work = Work::Instruction { bytes: [0; 15], len: 16 }),
    ];
    for (what, damage) in damages {
        let mut bad = good.clone();
        damage(&mut bad);
        assert_eq!(emulator.restore_in_flight(&bad), Err(Error::InFlightDamaged { what }));
        assert_eq!(emulator.in_flight(), Some(&good));
    }
    let other = InFlight { version: IN_FLIGHT_VERSION + 1, ..good };
    assert!(matches!(emulator.restore_in_flight(&other), Err(Error::InFlightVersion { .. })));
}
