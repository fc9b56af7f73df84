//! Processor state beside the registers: shadow stacks, bounds, wrapped keys.

use crate::arch::cpuid::Features as F;
use crate::isa::operand::Operand::{Bnd, Bnde, Ed, Ey, Gd, Gy, M, Mdqq, Mq, My, Udq, Vdq};
use crate::isa::row::{Modes, Row, Size64};
use crate::isa::simd::encoding;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    // Shadow stacks.
    encoding("F3.0F 01 /5", "RSTORSSP", &[Mq], F::CET_SS).modes(Modes::Protected),
    encoding("F3.0F 01 EA", "SAVEPREVSSP", &[], F::CET_SS).modes(Modes::Protected),
    encoding("F3.0F 01 E8", "SETSSBSY", &[], F::CET_SS).modes(Modes::Protected),
    encoding("F3.0F 1E /1", "RDSSP", &[Ey], F::CET_SS).register(),
    encoding("F3.0F AE /5", "INCSSP", &[Ey], F::CET_SS).register().modes(Modes::Protected),
    encoding("F3.0F AE /6", "CLRSSBSY", &[Mq], F::CET_SS).modes(Modes::Protected),
    encoding("66.0F38 F5", "WRUSS", &[My, Gy], F::CET_SS).modes(Modes::Protected),
    encoding("NP.0F38 F6", "WRSS", &[My, Gy], F::CET_SS).modes(Modes::Protected),
    // Bounds. Addresses have 64 bits in 64-bit code, whatever REX.W says.
    encoding("NP.0F 1A", "BNDLDX", &[Bnd, M], F::MPX),
    encoding("66.0F 1A", "BNDMOV", &[Bnd, Bnde], F::MPX),
    encoding("F3.0F 1A", "BNDCL", &[Bnd, Ey], F::MPX).size64(Size64::Force64),
    encoding("F2.0F 1A", "BNDCU", &[Bnd, Ey], F::MPX).size64(Size64::Force64),
    encoding("NP.0F 1B", "BNDSTX", &[M, Bnd], F::MPX),
    encoding("66.0F 1B", "BNDMOV", &[Bnde, Bnd], F::MPX),
    encoding("F3.0F 1B", "BNDMK", &[Bnd, M], F::MPX),
    encoding("F2.0F 1B", "BNDCN", &[Bnd, Ey], F::MPX).size64(Size64::Force64),
    // Wrapped keys.
    encoding("F3.0F38 D8 /0", "AESENCWIDE128KL", &[M], F::KEYLOCKER),
    encoding("F3.0F38 D8 /1", "AESDECWIDE128KL", &[M], F::KEYLOCKER),
    encoding("F3.0F38 D8 /2", "AESENCWIDE256KL", &[Mdqq], F::KEYLOCKER),
    encoding("F3.0F38 D8 /3", "AESDECWIDE256KL", &[Mdqq], F::KEYLOCKER),
    encoding("F3.0F38 DC", "AESENC128KL", &[Vdq, M], F::KEYLOCKER),
    encoding("F3.0F38 DC", "LOADIWKEY", &[Vdq, Udq], F::KEYLOCKER),
    encoding("F3.0F38 DD", "AESDEC128KL", &[Vdq, M], F::KEYLOCKER),
    encoding("F3.0F38 DE", "AESENC256KL", &[Vdq, Mdqq], F::KEYLOCKER),
    encoding("F3.0F38 DF", "AESDEC256KL", &[Vdq, Mdqq], F::KEYLOCKER),
    encoding("F3.0F38 FA", "ENCODEKEY128", &[Gd, Ed], F::KEYLOCKER).register(),
    encoding("F3.0F38 FB", "ENCODEKEY256", &[Gd, Ed], F::KEYLOCKER).register(),
];
