//! AVX and FMA4 with an immediate: VEX map 0F 3A, and map 7.

use crate::arch::cpuid::Features as F;
use crate::isa::operand::Operand::{
    Ed, Edb, Edd, Edw, Eq, Ey, H, Hdq, Ib, Id, Kg, Kr, L, Ldq, Li, V, Vdq, W, Wd, Wdq, Wh, Wq,
};
use crate::isa::row::{Modes, Row};
use crate::isa::simd::encoding;

const AES_AVX: F = F::AES.union(F::AVX);
const AVX_GFNI: F = F::AVX.union(F::GFNI);
const AVX_SM3: F = F::AVX.union(F::SM3);
const PCLMULQDQ_AVX: F = F::PCLMULQDQ.union(F::AVX);

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    // 00
    encoding("VEX.256.66.0F3A.W1 00", "VPERMQ", &[V, W, Ib], F::AVX2),
    encoding("VEX.256.66.0F3A.W1 01", "VPERMPD", &[V, W, Ib], F::AVX2),
    encoding("VEX.128-256.66.0F3A.W0 02", "VPBLENDD", &[V, H, W, Ib], F::AVX2),
    encoding("VEX.128-256.66.0F3A.W0 04", "VPERMILPS", &[V, W, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.W0 05", "VPERMILPD", &[V, W, Ib], F::AVX),
    encoding("VEX.256.66.0F3A.W0 06", "VPERM2F128", &[V, H, W, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.WIG 08", "VROUNDPS", &[V, W, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.WIG 09", "VROUNDPD", &[V, W, Ib], F::AVX),
    encoding("VEX.LIG.66.0F3A.WIG 0A", "VROUNDSS", &[Vdq, Hdq, Wd, Ib], F::AVX),
    encoding("VEX.LIG.66.0F3A.WIG 0B", "VROUNDSD", &[Vdq, Hdq, Wq, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.WIG 0C", "VBLENDPS", &[V, H, W, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.WIG 0D", "VBLENDPD", &[V, H, W, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.WIG 0E", "VPBLENDW", &[V, H, W, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.WIG 0F", "VPALIGNR", &[V, H, W, Ib], F::AVX),
    // 10
    encoding("VEX.128.66.0F3A.WIG 14", "VPEXTRB", &[Edb, Vdq, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.WIG 15", "VPEXTRW", &[Edw, Vdq, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.W1 16", "VPEXTRQ", &[Ey, Vdq, Ib], F::AVX).modes(Modes::Only64),
    encoding("VEX.128.66.0F3A.WIG 16", "VPEXTRD", &[Ed, Vdq, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.W1 17", "VEXTRACTPS", &[Edd, Vdq, Ib], F::AVX).modes(Modes::Only64),
    encoding("VEX.128.66.0F3A.WIG 17", "VEXTRACTPS", &[Ed, Vdq, Ib], F::AVX),
    encoding("VEX.256.66.0F3A.W0 18", "VINSERTF128", &[V, H, Wdq, Ib], F::AVX),
    encoding("VEX.256.66.0F3A.W0 19", "VEXTRACTF128", &[Wdq, V, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.W0 1D", "VCVTPS2PH", &[Wh, V, Ib], F::F16C),
    // 20
    encoding("VEX.128.66.0F3A.WIG 20", "VPINSRB", &[Vdq, Hdq, Edb, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.WIG 21", "VINSERTPS", &[Vdq, Hdq, Wd, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.W1 22", "VPINSRQ", &[Vdq, Hdq, Ey, Ib], F::AVX).modes(Modes::Only64),
    encoding("VEX.128.66.0F3A.WIG 22", "VPINSRD", &[Vdq, Hdq, Ed, Ib], F::AVX),
    // 30
    encoding("VEX.128.66.0F3A.W1 30", "KSHIFTRW", &[Kg, Kr, Ib], F::AVX512F),
    encoding("VEX.128.66.0F3A.W0 30", "KSHIFTRB", &[Kg, Kr, Ib], F::AVX512F),
    encoding("VEX.128.66.0F3A.W1 31", "KSHIFTRQ", &[Kg, Kr, Ib], F::AVX512F),
    encoding("VEX.128.66.0F3A.W0 31", "KSHIFTRD", &[Kg, Kr, Ib], F::AVX512F),
    encoding("VEX.128.66.0F3A.W1 32", "KSHIFTLW", &[Kg, Kr, Ib], F::AVX512F),
    encoding("VEX.128.66.0F3A.W0 32", "KSHIFTLB", &[Kg, Kr, Ib], F::AVX512F),
    encoding("VEX.128.66.0F3A.W1 33", "KSHIFTLQ", &[Kg, Kr, Ib], F::AVX512F),
    encoding("VEX.128.66.0F3A.W0 33", "KSHIFTLD", &[Kg, Kr, Ib], F::AVX512F),
    encoding("VEX.256.66.0F3A.W0 38", "VINSERTI128", &[V, H, Wdq, Ib], F::AVX2),
    encoding("VEX.256.66.0F3A.W0 39", "VEXTRACTI128", &[Wdq, V, Ib], F::AVX2),
    // 40
    encoding("VEX.128-256.66.0F3A.WIG 40", "VDPPS", &[V, H, W, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.WIG 41", "VDPPD", &[Vdq, Hdq, Wdq, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.WIG 42", "VMPSADBW", &[V, H, W, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.WIG 44", "VPCLMULQDQ", &[V, H, W, Ib], PCLMULQDQ_AVX),
    encoding("VEX.256.66.0F3A.W0 46", "VPERM2I128", &[V, H, W, Ib], F::AVX2),
    encoding("VEX.128-256.66.0F3A.W1 48", "VPERMIL2PS", &[V, H, Li, W], F::XOP),
    encoding("VEX.128-256.66.0F3A.W0 48", "VPERMIL2PS", &[V, H, W, Li], F::XOP),
    encoding("VEX.128-256.66.0F3A.W1 49", "VPERMIL2PD", &[V, H, Li, W], F::XOP),
    encoding("VEX.128-256.66.0F3A.W0 49", "VPERMIL2PD", &[V, H, W, Li], F::XOP),
    encoding("VEX.128-256.66.0F3A.W0 4A", "VBLENDVPS", &[V, H, W, L], F::AVX),
    encoding("VEX.128-256.66.0F3A.W0 4B", "VBLENDVPD", &[V, H, W, L], F::AVX),
    encoding("VEX.128-256.66.0F3A.W0 4C", "VPBLENDVB", &[V, H, W, L], F::AVX),
    // 50
    encoding("VEX.128-256.66.0F3A.W1 5C", "VFMADDSUBPS", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 5C", "VFMADDSUBPS", &[V, H, W, L], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 5D", "VFMADDSUBPD", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 5D", "VFMADDSUBPD", &[V, H, W, L], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 5E", "VFMSUBADDPS", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 5E", "VFMSUBADDPS", &[V, H, W, L], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 5F", "VFMSUBADDPD", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 5F", "VFMSUBADDPD", &[V, H, W, L], F::FMA4),
    // 60
    encoding("VEX.128.66.0F3A.WIG 60", "VPCMPESTRM", &[Vdq, Wdq, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.WIG 61", "VPCMPESTRI", &[Vdq, Wdq, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.WIG 62", "VPCMPISTRM", &[Vdq, Wdq, Ib], F::AVX),
    encoding("VEX.128.66.0F3A.WIG 63", "VPCMPISTRI", &[Vdq, Wdq, Ib], F::AVX),
    encoding("VEX.128-256.66.0F3A.W1 68", "VFMADDPS", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 68", "VFMADDPS", &[V, H, W, L], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 69", "VFMADDPD", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 69", "VFMADDPD", &[V, H, W, L], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W1 6A", "VFMADDSS", &[Vdq, Hdq, Ldq, Wd], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W0 6A", "VFMADDSS", &[Vdq, Hdq, Wd, Ldq], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W1 6B", "VFMADDSD", &[Vdq, Hdq, Ldq, Wq], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W0 6B", "VFMADDSD", &[Vdq, Hdq, Wq, Ldq], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 6C", "VFMSUBPS", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 6C", "VFMSUBPS", &[V, H, W, L], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 6D", "VFMSUBPD", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 6D", "VFMSUBPD", &[V, H, W, L], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W1 6E", "VFMSUBSS", &[Vdq, Hdq, Ldq, Wd], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W0 6E", "VFMSUBSS", &[Vdq, Hdq, Wd, Ldq], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W1 6F", "VFMSUBSD", &[Vdq, Hdq, Ldq, Wq], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W0 6F", "VFMSUBSD", &[Vdq, Hdq, Wq, Ldq], F::FMA4),
    // 70
    encoding("VEX.128-256.66.0F3A.W1 78", "VFNMADDPS", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 78", "VFNMADDPS", &[V, H, W, L], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 79", "VFNMADDPD", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 79", "VFNMADDPD", &[V, H, W, L], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W1 7A", "VFNMADDSS", &[Vdq, Hdq, Ldq, Wd], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W0 7A", "VFNMADDSS", &[Vdq, Hdq, Wd, Ldq], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W1 7B", "VFNMADDSD", &[Vdq, Hdq, Ldq, Wq], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W0 7B", "VFNMADDSD", &[Vdq, Hdq, Wq, Ldq], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 7C", "VFNMSUBPS", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 7C", "VFNMSUBPS", &[V, H, W, L], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W1 7D", "VFNMSUBPD", &[V, H, L, W], F::FMA4),
    encoding("VEX.128-256.66.0F3A.W0 7D", "VFNMSUBPD", &[V, H, W, L], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W1 7E", "VFNMSUBSS", &[Vdq, Hdq, Ldq, Wd], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W0 7E", "VFNMSUBSS", &[Vdq, Hdq, Wd, Ldq], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W1 7F", "VFNMSUBSD", &[Vdq, Hdq, Ldq, Wq], F::FMA4),
    encoding("VEX.LIG.66.0F3A.W0 7F", "VFNMSUBSD", &[Vdq, Hdq, Wq, Ldq], F::FMA4),
    // C0
    encoding("VEX.128-256.66.0F3A.W1 CE", "VGF2P8AFFINEQB", &[V, H, W, Ib], AVX_GFNI),
    encoding("VEX.128-256.66.0F3A.W1 CF", "VGF2P8AFFINEINVQB", &[V, H, W, Ib], AVX_GFNI),
    // D0
    encoding("VEX.128.66.0F3A.W0 DE", "VSM3RNDS2", &[Vdq, Hdq, Wdq, Ib], AVX_SM3),
    encoding("VEX.128.66.0F3A.WIG DF", "VAESKEYGENASSIST", &[Vdq, Wdq, Ib], AES_AVX),
    // F0
    // Map 7: MSRs by immediate.
    encoding("VEX.128.F2.MAP7.W0 F6 /0", "RDMSR", &[Eq, Id], F::MSR_IMM)
        .register()
        .modes(Modes::Only64),
    encoding("VEX.128.F3.MAP7.W0 F6 /0", "WRMSRNS", &[Id, Eq], F::MSR_IMM)
        .register()
        .modes(Modes::Only64),
    encoding("VEX.128.F2.MAP7.W0 F8 /0", "URDMSR", &[Eq, Id], F::USER_MSR)
        .register()
        .modes(Modes::Only64),
    encoding("VEX.128.F3.MAP7.W0 F8 /0", "UWRMSR", &[Id, Eq], F::USER_MSR)
        .register()
        .modes(Modes::Only64),
];
