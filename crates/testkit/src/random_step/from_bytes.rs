//! Cases that a fuzzer makes: every choice is taken from its bytes, so that what it learns to
//! reach it can reach again.

use std::sync::LazyLock;

use realmode::{Attributes, Cpu, InFlight, Profile, SegReg};

use crate::prng::Prng;

use super::code::Code;
use super::drive::{Bench, Caches, Way};
use super::memory::{Arena, PAGES};
use super::state::{self, Case, DEVICES};
use super::{SKEWS, Tally, background, compare, policy};

/// What becomes of a processor that waits for a device: it comes back as it was, whatever it went
/// through.
pub type Carry = fn(&Cpu, &InFlight) -> (Cpu, InFlight);

/// What cases are about.
#[derive(Clone, Copy, Debug)]
pub enum Focus {
    /// All ways to run a case.
    EveryWay,
    /// Longer runs, most of them in a loop that writes into itself: cached against uncached.
    Blocks,
    /// Devices nearly everywhere: at every access the processor is carried elsewhere.
    Restart(Carry),
}

/// Cases of one input at most: they share memory and caches, as those of a group do.
const MOST_CASES: u64 = 3;
/// Bytes of a loop at most, so that a short jump leads back.
const LOOP: usize = 96;

/// Runs the cases that `bytes` describe.
///
/// ```
/// use realmode_testkit::random_step::{Focus, from_bytes};
/// let tally = from_bytes(&[0x5A; 64], Focus::EveryWay).expect("all ways end alike");
/// assert!(tally.cases > 0);
/// ```
///
/// # Errors
/// Two ways to run a case came to different ends, or one broke a rule: what, in one line.
pub fn from_bytes(bytes: &[u8], focus: Focus) -> Result<Tally, String> {
    let mut random = Prng::from_bytes(bytes);
    let profile = random.pick(&Profile::ALL);
    let arena = Arena::new(random.pick(&SKEWS));
    arena.fill(&BACKGROUND);
    let mut caches = Caches::new(&mut random);
    let policy = policy(&mut random, profile, &arena);
    let mut bench = Bench::new(&arena, profile, &mut caches, policy);
    let mut tally = Tally::default();
    while tally.cases < MOST_CASES && (tally.cases == 0 || !random.is_at_end()) {
        match focus {
            Focus::EveryWay => {
                let case = state::case(&mut random, profile, &arena, &DEVICES);
                compare(&mut bench, &case, &Way::OTHERS, &mut tally)?;
            }
            Focus::Blocks => {
                let mut case = state::case(&mut random, profile, &arena, &[0, 0, 4]);
                case.budget = 1 + random.below(400);
                if !random.one_in(4) {
                    loop_over_itself(&mut random, profile, &mut case, &arena);
                }
                compare(&mut bench, &case, &[Way::Cached], &mut tally)?;
            }
            Focus::Restart(carry) => {
                bench.carry = Some(carry);
                let case = state::case(&mut random, profile, &arena, &[16, 40]);
                compare(&mut bench, &case, &[Way::Pending], &mut tally)?;
            }
        }
    }
    bench.count(&mut tally);
    Ok(tally)
}

/// The same code in all cases, as words.
static BACKGROUND: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut random = Prng::new(0);
    let bytes: Vec<u8> = (0..PAGES).flat_map(|page| background(&mut random, page)).collect();
    let words = bytes.chunks_exact(8);
    words.map(|word| word.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))).collect()
});

/// Puts a loop where execution begins, with stores to its own bytes in it.
fn loop_over_itself(random: &mut Prng, profile: &Profile, case: &mut Case, arena: &Arena) {
    let cpu = &mut case.cpu;
    let cs = *cpu.segment(SegReg::Cs);
    let kept = cs.attributes.0 & !0x1F & !Attributes::UNUSABLE;
    // The same bytes as data that can be written.
    *cpu.segment_mut(SegReg::Ds) = realmode::Segment { attributes: Attributes(kept | 0x93), ..cs };
    let bits = state::code_bits(cpu);
    let mut code = Code::new(cpu.rip, bits, None);
    while code.bytes.len() < LOOP {
        if random.one_in(3) { code.store_near(random) } else { code.instruction(random) }
    }
    let back = code.bytes.len().min(LOOP + 24);
    code.bytes.truncate(back);
    code.bytes.extend([0xEB, (back as u8 + 2).wrapping_neg()]);
    let linear = cs.base.wrapping_add(cpu.rip) & state::linear_mask(cpu, profile);
    state::poke(cpu, case.map, arena, linear, &code.bytes);
}
