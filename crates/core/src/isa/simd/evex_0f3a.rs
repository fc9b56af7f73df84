//! AVX-512 with an immediate: EVEX map 0F 3A.

use crate::arch::cpuid::Features as F;
use crate::isa::operand::Operand::{
    Ed, Edb, Edd, Edw, Ey, H, Hdq, Ib, Kg, V, Vdq, W, Wd, Wdq, Wh, Wq, Wqq, Ww,
};
use crate::isa::row::{Modes, Row};
use crate::isa::simd::encoding;

const AVX512F_GFNI: F = F::AVX512F.union(F::GFNI);
const AVX512F_VPCLMULQDQ: F = F::AVX512F.union(F::VPCLMULQDQ);

/// The rows of this family.
pub(crate) const ROWS: &[Row] = &[
    // 00
    encoding("EVEX.256-512.66.0F3A.W1 00 {kz,b64}", "VPERMQ", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W1 01 {kz,b64}", "VPERMPD", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 03 {kz,b64}", "VALIGNQ", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 03 {kz,b32}", "VALIGND", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 04 {kz,b32}", "VPERMILPS", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 05 {kz,b64}", "VPERMILPD", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.NP.0F3A.W0 08 {kz,b16,sae}", "VRNDSCALEPH", &[V, W, Ib], F::AVX512_FP16),
    encoding("EVEX.128-512.66.0F3A.W0 08 {kz,b32,sae}", "VRNDSCALEPS", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 09 {kz,b64,sae}", "VRNDSCALEPD", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.LIG.NP.0F3A.W0 0A {kz,sae}", "VRNDSCALESH", &[Vdq, Hdq, Ww, Ib], F::AVX512_FP16),
    encoding("EVEX.LIG.66.0F3A.W0 0A {kz,sae}", "VRNDSCALESS", &[Vdq, Hdq, Wd, Ib], F::AVX512F),
    encoding("EVEX.LIG.66.0F3A.W1 0B {kz,sae}", "VRNDSCALESD", &[Vdq, Hdq, Wq, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.WIG 0F {kz}", "VPALIGNR", &[V, H, W, Ib], F::AVX512F),
    // 10
    encoding("EVEX.128.66.0F3A.WIG 14", "VPEXTRB", &[Edb, Vdq, Ib], F::AVX512F),
    encoding("EVEX.128.66.0F3A.WIG 15", "VPEXTRW", &[Edw, Vdq, Ib], F::AVX512F),
    encoding("EVEX.128.66.0F3A.W1 16", "VPEXTRQ", &[Ey, Vdq, Ib], F::AVX512F).modes(Modes::Only64),
    encoding("EVEX.128.66.0F3A.WIG 16", "VPEXTRD", &[Ed, Vdq, Ib], F::AVX512F),
    encoding("EVEX.128.66.0F3A.W1 17", "VEXTRACTPS", &[Edd, Vdq, Ib], F::AVX512F)
        .modes(Modes::Only64),
    encoding("EVEX.128.66.0F3A.WIG 17", "VEXTRACTPS", &[Ed, Vdq, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W1 18 {kz}", "VINSERTF64X2", &[V, H, Wdq, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W0 18 {kz}", "VINSERTF32X4", &[V, H, Wdq, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W1 19 {kz}", "VEXTRACTF64X2", &[Wdq, V, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W0 19 {kz}", "VEXTRACTF32X4", &[Wdq, V, Ib], F::AVX512F),
    encoding("EVEX.512.66.0F3A.W1 1A {kz}", "VINSERTF64X4", &[V, H, Wqq, Ib], F::AVX512F),
    encoding("EVEX.512.66.0F3A.W0 1A {kz}", "VINSERTF32X8", &[V, H, Wqq, Ib], F::AVX512F),
    encoding("EVEX.512.66.0F3A.W1 1B {kz}", "VEXTRACTF64X4", &[Wqq, V, Ib], F::AVX512F),
    encoding("EVEX.512.66.0F3A.W0 1B {kz}", "VEXTRACTF32X8", &[Wqq, V, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 1D {kz,sae}", "VCVTPS2PH", &[Wh, V, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 1E {k,b64}", "VPCMPUQ", &[Kg, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 1E {k,b32}", "VPCMPUD", &[Kg, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 1F {k,b64}", "VPCMPQ", &[Kg, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 1F {k,b32}", "VPCMPD", &[Kg, H, W, Ib], F::AVX512F),
    // 20
    encoding("EVEX.128.66.0F3A.WIG 20", "VPINSRB", &[Vdq, Hdq, Edb, Ib], F::AVX512F),
    encoding("EVEX.128.66.0F3A.W0 21", "VINSERTPS", &[Vdq, Hdq, Wd, Ib], F::AVX512F),
    encoding("EVEX.128.66.0F3A.W1 22", "VPINSRQ", &[Vdq, Hdq, Ey, Ib], F::AVX512F)
        .modes(Modes::Only64),
    encoding("EVEX.128.66.0F3A.WIG 22", "VPINSRD", &[Vdq, Hdq, Ed, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W1 23 {kz,b64}", "VSHUFF64X2", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W0 23 {kz,b32}", "VSHUFF32X4", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 25 {kz,b64}", "VPTERNLOGQ", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 25 {kz,b32}", "VPTERNLOGD", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.NP.0F3A.W0 26 {kz,b16,sae}", "VGETMANTPH", &[V, W, Ib], F::AVX512_FP16),
    encoding("EVEX.128-512.66.0F3A.W1 26 {kz,b64,sae}", "VGETMANTPD", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 26 {kz,b32,sae}", "VGETMANTPS", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.LIG.NP.0F3A.W0 27 {kz,sae}", "VGETMANTSH", &[Vdq, Hdq, Ww, Ib], F::AVX512_FP16),
    encoding("EVEX.LIG.66.0F3A.W1 27 {kz,sae}", "VGETMANTSD", &[Vdq, Hdq, Wq, Ib], F::AVX512F),
    encoding("EVEX.LIG.66.0F3A.W0 27 {kz,sae}", "VGETMANTSS", &[Vdq, Hdq, Wd, Ib], F::AVX512F),
    // 30
    encoding("EVEX.256-512.66.0F3A.W1 38 {kz}", "VINSERTI64X2", &[V, H, Wdq, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W0 38 {kz}", "VINSERTI32X4", &[V, H, Wdq, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W1 39 {kz}", "VEXTRACTI64X2", &[Wdq, V, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W0 39 {kz}", "VEXTRACTI32X4", &[Wdq, V, Ib], F::AVX512F),
    encoding("EVEX.512.66.0F3A.W1 3A {kz}", "VINSERTI64X4", &[V, H, Wqq, Ib], F::AVX512F),
    encoding("EVEX.512.66.0F3A.W0 3A {kz}", "VINSERTI32X8", &[V, H, Wqq, Ib], F::AVX512F),
    encoding("EVEX.512.66.0F3A.W1 3B {kz}", "VEXTRACTI64X4", &[Wqq, V, Ib], F::AVX512F),
    encoding("EVEX.512.66.0F3A.W0 3B {kz}", "VEXTRACTI32X8", &[Wqq, V, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 3E {k}", "VPCMPUW", &[Kg, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 3E {k}", "VPCMPUB", &[Kg, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 3F {k}", "VPCMPW", &[Kg, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 3F {k}", "VPCMPB", &[Kg, H, W, Ib], F::AVX512F),
    // 40
    encoding("EVEX.128-512.66.0F3A.W0 42 {kz}", "VDBPSADBW", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W1 43 {kz,b64}", "VSHUFI64X2", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.256-512.66.0F3A.W0 43 {kz,b32}", "VSHUFI32X4", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.WIG 44", "VPCLMULQDQ", &[V, H, W, Ib], AVX512F_VPCLMULQDQ),
    // 50
    encoding("EVEX.128-512.66.0F3A.W1 50 {kz,b64,sae}", "VRANGEPD", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 50 {kz,b32,sae}", "VRANGEPS", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.LIG.66.0F3A.W1 51 {kz,sae}", "VRANGESD", &[Vdq, Hdq, Wq, Ib], F::AVX512F),
    encoding("EVEX.LIG.66.0F3A.W0 51 {kz,sae}", "VRANGESS", &[Vdq, Hdq, Wd, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 54 {kz,b64,sae}", "VFIXUPIMMPD", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 54 {kz,b32,sae}", "VFIXUPIMMPS", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.LIG.66.0F3A.W1 55 {kz,sae}", "VFIXUPIMMSD", &[Vdq, Hdq, Wq, Ib], F::AVX512F),
    encoding("EVEX.LIG.66.0F3A.W0 55 {kz,sae}", "VFIXUPIMMSS", &[Vdq, Hdq, Wd, Ib], F::AVX512F),
    encoding("EVEX.128-512.NP.0F3A.W0 56 {kz,b16,sae}", "VREDUCEPH", &[V, W, Ib], F::AVX512_FP16),
    encoding("EVEX.128-512.66.0F3A.W1 56 {kz,b64,sae}", "VREDUCEPD", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 56 {kz,b32,sae}", "VREDUCEPS", &[V, W, Ib], F::AVX512F),
    encoding("EVEX.LIG.NP.0F3A.W0 57 {kz,sae}", "VREDUCESH", &[Vdq, Hdq, Ww, Ib], F::AVX512_FP16),
    encoding("EVEX.LIG.66.0F3A.W1 57 {kz,sae}", "VREDUCESD", &[Vdq, Hdq, Wq, Ib], F::AVX512F),
    encoding("EVEX.LIG.66.0F3A.W0 57 {kz,sae}", "VREDUCESS", &[Vdq, Hdq, Wd, Ib], F::AVX512F),
    // 60
    encoding("EVEX.128-512.NP.0F3A.W0 66 {k,b16}", "VFPCLASSPH", &[Kg, W, Ib], F::AVX512_FP16),
    encoding("EVEX.128-512.66.0F3A.W1 66 {k,b64}", "VFPCLASSPD", &[Kg, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 66 {k,b32}", "VFPCLASSPS", &[Kg, W, Ib], F::AVX512F),
    encoding("EVEX.LIG.NP.0F3A.W0 67 {k}", "VFPCLASSSH", &[Kg, Ww, Ib], F::AVX512_FP16),
    encoding("EVEX.LIG.66.0F3A.W1 67 {k}", "VFPCLASSSD", &[Kg, Wq, Ib], F::AVX512F),
    encoding("EVEX.LIG.66.0F3A.W0 67 {k}", "VFPCLASSSS", &[Kg, Wd, Ib], F::AVX512F),
    // 70
    encoding("EVEX.128-512.66.0F3A.W1 70 {kz}", "VPSHLDW", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 71 {kz,b64}", "VPSHLDQ", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 71 {kz,b32}", "VPSHLDD", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 72 {kz}", "VPSHRDW", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W1 73 {kz,b64}", "VPSHRDQ", &[V, H, W, Ib], F::AVX512F),
    encoding("EVEX.128-512.66.0F3A.W0 73 {kz,b32}", "VPSHRDD", &[V, H, W, Ib], F::AVX512F),
    // C0
    encoding("EVEX.128-512.NP.0F3A.W0 C2 {k,b16,sae}", "VCMPPH", &[Kg, H, W, Ib], F::AVX512_FP16),
    encoding("EVEX.LIG.F3.0F3A.W0 C2 {k,sae}", "VCMPSH", &[Kg, Hdq, Ww, Ib], F::AVX512_FP16),
    encoding("EVEX.128-512.66.0F3A.W1 CE {kz,b64}", "VGF2P8AFFINEQB", &[V, H, W, Ib], AVX512F_GFNI),
    encoding(
        "EVEX.128-512.66.0F3A.W1 CF {kz,b64}",
        "VGF2P8AFFINEINVQB",
        &[V, H, W, Ib],
        AVX512F_GFNI,
    ),
];
