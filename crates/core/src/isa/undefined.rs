//! What silicon leaves in the flags that the manuals leave undefined, as data of the rows.

use crate::arch::rflags::ARITH;
use crate::profile::UndefinedFlags;

/// What becomes of a flag that the manuals leave undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlagRule {
    /// It is as it was.
    Kept = 0,
    /// It is 0.
    Cleared,
    /// It is 1.
    Set,
    /// The result decides, as it does where the flag is defined: the low half of a product, the
    /// index that a scan finds (0 if it finds none), AX.
    ByResult,
    /// The high half of the product decides.
    ByHighHalf,
    /// It is CF.
    LikeCarry,
    /// Bits are shifted one at a time, and the first step decides; without a step it is kept.
    FirstStep,
    /// So in the memory form; in the register form it is kept unless the count is 1.
    FirstStepInMemory,
    /// Bits are shifted one at a time, and the last step decides. A double shift by its width or
    /// more goes its own way.
    LastStep,
    /// The sum or difference of bytes decides that the instruction is made of.
    ByByteSum,
    /// The sum or difference of words decides.
    ByWordSum,
    /// An 80286 divides bit by bit, and the last subtraction decides, but AF is 1; its neighbours
    /// keep it.
    ByDivision,
}

impl FlagRule {
    const ALL: [FlagRule; 12] = [
        FlagRule::Kept,
        FlagRule::Cleared,
        FlagRule::Set,
        FlagRule::ByResult,
        FlagRule::ByHighHalf,
        FlagRule::LikeCarry,
        FlagRule::FirstStep,
        FlagRule::FirstStepInMemory,
        FlagRule::LastStep,
        FlagRule::ByByteSum,
        FlagRule::ByWordSum,
        FlagRule::ByDivision,
    ];
}

/// The rule of each flag on one kind of silicon, in four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlagRules(u32);

impl FlagRules {
    /// Every flag is kept.
    pub(crate) const KEPT: FlagRules = FlagRules(0);

    /// These rules with another one for `flags`.
    pub(crate) const fn with(mut self, flags: u64, rule: FlagRule) -> FlagRules {
        let mut left = flags & ARITH;
        while left != 0 {
            let at = FlagRules::place(left);
            self.0 = self.0 & !(15 << at) | (rule as u32) << at;
            left &= left - 1;
        }
        self
    }

    /// The rule of a flag, given as its mask.
    pub(crate) const fn of(self, flag: u64) -> FlagRule {
        FlagRule::ALL[(self.0 >> FlagRules::place(flag) & 15) as usize]
    }

    /// Where the rule of the lowest of these flags is: half of the flag's place is its own, too.
    const fn place(flags: u64) -> u32 {
        flags.trailing_zeros().div_ceil(2) * 4
    }
}

/// The rules on every kind of silicon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndefinedRules([FlagRules; 3]);

impl UndefinedRules {
    /// Every flag is kept.
    pub(crate) const KEPT: UndefinedRules = UndefinedRules([FlagRules::KEPT; 3]);

    /// On one kind.
    pub(crate) const fn on(self, silicon: UndefinedFlags) -> FlagRules {
        self.0[silicon as usize]
    }

    /// These rules with another one for `flags` on one kind.
    pub(crate) const fn with(
        mut self,
        silicon: UndefinedFlags,
        flags: u64,
        rule: FlagRule,
    ) -> UndefinedRules {
        self.0[silicon as usize] = self.on(silicon).with(flags, rule);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::rflags::{AF, CF, OF, PF, SF, ZF};

    #[test]
    fn each_flag_has_a_rule_of_its_own_on_each_kind_of_silicon() {
        const KINDS: [UndefinedFlags; 3] =
            [UndefinedFlags::Early, UndefinedFlags::Intel, UndefinedFlags::Amd];
        for silicon in KINDS {
            for flag in [CF, PF, AF, ZF, SF, OF] {
                for rule in FlagRule::ALL {
                    let rules = UndefinedRules::KEPT.with(silicon, ARITH, FlagRule::Set);
                    let rules = rules.with(silicon, flag, rule);
                    assert_eq!(rules.on(silicon).of(flag), rule);
                    for other in [CF, PF, AF, ZF, SF, OF].into_iter().filter(|f| *f != flag) {
                        assert_eq!(rules.on(silicon).of(other), FlagRule::Set);
                    }
                    for other in KINDS.into_iter().filter(|kind| *kind != silicon) {
                        assert_eq!(rules.on(other), FlagRules::KEPT);
                    }
                }
            }
        }
    }
}
