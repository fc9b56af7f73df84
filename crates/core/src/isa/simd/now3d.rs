//! 3DNow!: FEMMS, and 0F 0F, whose opcode follows the operands (APM vol. 3, appendix A).

use crate::arch::cpuid::Features as F;
use crate::isa::operand::Operand::{P, Q};
use crate::isa::row::{Prefix, Row};
use crate::isa::simd::encoding;

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    encoding("NP.0F 0E", "FEMMS", &[], F::THREEDNOW).prefix(Prefix::Any),
    // 00
    encoding("3DNOW 0C", "PI2FW", &[P, Q], F::THREEDNOW),
    encoding("3DNOW 0D", "PI2FD", &[P, Q], F::THREEDNOW),
    // 10
    encoding("3DNOW 1C", "PF2IW", &[P, Q], F::THREEDNOW),
    encoding("3DNOW 1D", "PF2ID", &[P, Q], F::THREEDNOW),
    // 80
    encoding("3DNOW 8A", "PFNACC", &[P, Q], F::THREEDNOW),
    encoding("3DNOW 8E", "PFPNACC", &[P, Q], F::THREEDNOW),
    // 90
    encoding("3DNOW 90", "PFCMPGE", &[P, Q], F::THREEDNOW),
    encoding("3DNOW 94", "PFMIN", &[P, Q], F::THREEDNOW),
    encoding("3DNOW 96", "PFRCP", &[P, Q], F::THREEDNOW),
    encoding("3DNOW 97", "PFRSQRT", &[P, Q], F::THREEDNOW),
    encoding("3DNOW 9A", "PFSUB", &[P, Q], F::THREEDNOW),
    encoding("3DNOW 9E", "PFADD", &[P, Q], F::THREEDNOW),
    // A0
    encoding("3DNOW A0", "PFCMPGT", &[P, Q], F::THREEDNOW),
    encoding("3DNOW A4", "PFMAX", &[P, Q], F::THREEDNOW),
    encoding("3DNOW A6", "PFRCPIT1", &[P, Q], F::THREEDNOW),
    encoding("3DNOW A7", "PFRSQIT1", &[P, Q], F::THREEDNOW),
    encoding("3DNOW AA", "PFSUBR", &[P, Q], F::THREEDNOW),
    encoding("3DNOW AE", "PFACC", &[P, Q], F::THREEDNOW),
    // B0
    encoding("3DNOW B0", "PFCMPEQ", &[P, Q], F::THREEDNOW),
    encoding("3DNOW B4", "PFMUL", &[P, Q], F::THREEDNOW),
    encoding("3DNOW B6", "PFRCPIT2", &[P, Q], F::THREEDNOW),
    encoding("3DNOW B7", "PMULHRW", &[P, Q], F::THREEDNOW),
    encoding("3DNOW BB", "PSWAPD", &[P, Q], F::THREEDNOW),
    encoding("3DNOW BF", "PAVGUSB", &[P, Q], F::THREEDNOW),
];
