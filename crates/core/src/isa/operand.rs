//! Operand codes, in the manual's own notation (SDM vol. 2D, "Key to Abbreviations").

/// One operand of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the SDM's appendix A defines each code
pub(crate) enum Operand {
    /// No operand.
    None,
    // ModRM.rm: register or memory.
    Eb,
    Ew,
    Ed,
    Eq,
    Ev,
    /// 32 bits, or 64 with REX.W.
    Ey,
    // ModRM.rm: memory only. `M` has no size of its own.
    M,
    Mb,
    Mw,
    Md,
    Mq,
    Mdq,
    Mv,
    My,
    /// Far pointer: offset of the operand size, then a selector.
    Mp,
    /// BOUND's pair.
    Ma,
    /// Pseudo-descriptor of LGDT.
    Ms,
    // ModRM.rm: register only, whatever mod says.
    Rd,
    Rv,
    Rw,
    // ModRM.reg: general, segment, control, debug register.
    Gb,
    Gw,
    Gd,
    Gv,
    Gy,
    Sw,
    Cd,
    Dd,
    // Immediates. `Ibs` is sign-extended to the operand size; `One` is the constant 1.
    Ib,
    Ibs,
    Iw,
    Iz,
    Iv,
    One,
    // Relative displacements.
    Jb,
    Jz,
    /// Far pointer in the instruction.
    Ap,
    // Memory at an offset in the instruction.
    Ob,
    Ov,
    // Register in the low three bits of the opcode.
    Zb,
    Zv,
    // String operands at rSI and rDI.
    Xb,
    Xv,
    Yb,
    Yv,
    // Fixed registers.
    Al,
    Ah,
    Cl,
    Dx,
    /// AX, EAX or RAX by operand size.
    Rax,
    Es,
    Cs,
    Ss,
    Ds,
    Fs,
    Gs,
    // x87: ST(0), ST(i), and memory of 2, 4, 8, 10 or 14/28, 94/108 bytes.
    St0,
    Sti,
    Mf32,
    Mf64,
    Mf80,
    Mi16,
    Mi32,
    Mi64,
    Mbcd,
    Menv,
    Msave,
    // SIMD: P = MMX in reg, Q = MMX or memory, N = MMX in rm; V = XMM/YMM/ZMM in reg,
    // W = XMM.. or memory, U = XMM.. in rm, H = in VEX.vvvv, L = in imm8.
    P,
    Q,
    N,
    V,
    W,
    U,
    H,
    L,
    /// General register in VEX.vvvv, 32 or 64 bits.
    By,
    // Mask registers in reg, rm, vvvv; bound registers; tile registers.
    Kg,
    Ke,
    Kv,
    Bnd,
    Tile,
}

use Operand as O;

impl Operand {
    /// Does it need a ModRM byte?
    pub(crate) const fn has_modrm(self) -> bool {
        !matches!(
            self,
            O::None
                | O::Ib
                | O::Ibs
                | O::Iw
                | O::Iz
                | O::Iv
                | O::One
                | O::Jb
                | O::Jz
                | O::Ap
                | O::Ob
                | O::Ov
                | O::Zb
                | O::Zv
                | O::Xb
                | O::Xv
                | O::Yb
                | O::Yv
                | O::Al
                | O::Ah
                | O::Cl
                | O::Dx
                | O::Rax
                | O::Es
                | O::Cs
                | O::Ss
                | O::Ds
                | O::Fs
                | O::Gs
                | O::L
        )
    }

    /// Is ModRM.rm a memory operand, always?
    pub(crate) const fn is_memory_only(self) -> bool {
        matches!(
            self,
            O::M | O::Mb
                | O::Mw
                | O::Md
                | O::Mq
                | O::Mdq
                | O::Mv
                | O::My
                | O::Mp
                | O::Ma
                | O::Ms
                | O::Mf32
                | O::Mf64
                | O::Mf80
                | O::Mi16
                | O::Mi32
                | O::Mi64
                | O::Mbcd
                | O::Menv
                | O::Msave
        )
    }

    /// Does it make the whole instruction an 8-bit one?
    pub(crate) const fn is_byte(self) -> bool {
        matches!(self, O::Eb | O::Gb | O::Zb | O::Ob | O::Xb | O::Yb | O::Al)
    }
}

/// What decode has to do for a row, derived from its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// A ModRM byte follows the opcode.
    pub(crate) modrm: bool,
    /// The immediate.
    pub(crate) imm: Imm,
    /// ModRM.reg numbers an 8-bit register.
    pub(crate) byte_reg: bool,
    /// ModRM.rm numbers an 8-bit register.
    pub(crate) byte_rm: bool,
    /// The instruction works on bytes.
    pub(crate) byte: bool,
    /// The register comes from the opcode.
    pub(crate) opcode_reg: bool,
    /// The destination is ModRM.reg, the source ModRM.rm: in the register form decode exchanges
    /// them, so that one handler serves both directions.
    pub(crate) reversed: bool,
    /// ModRM.mod is ignored: the operand is always a register.
    pub(crate) register_only: bool,
    /// Memory at an offset in the instruction.
    pub(crate) moffs: bool,
    /// ModRM.reg is not extended by REX.R (segment registers).
    pub(crate) small_reg: bool,
}

/// Kinds of immediates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Imm {
    None,
    /// One byte, zero-extended.
    Byte,
    /// One byte, sign-extended to 64 bits.
    ByteSigned,
    /// Two bytes.
    Word,
    /// Operand size, at most 4 bytes, sign-extended from 4.
    Z,
    /// Operand size, up to 8 bytes.
    V,
    /// A word, then a byte: ENTER, EXTRQ.
    WordByte,
    /// Two bytes, each an immediate: EXTRQ and INSERTQ.
    ByteByte,
    /// A far pointer: offset of the operand size, then a word.
    Far,
    /// One byte, sign-extended: a branch.
    Rel8,
    /// Operand size: a branch.
    RelZ,
    /// Constant 1.
    One,
}

impl Plan {
    /// The plan of a row with these operands.
    pub(crate) const fn of(operands: &[Operand]) -> Plan {
        let mut plan = Plan {
            modrm: false,
            imm: Imm::None,
            byte_reg: false,
            byte_rm: false,
            byte: false,
            opcode_reg: false,
            reversed: false,
            register_only: false,
            moffs: false,
            small_reg: false,
        };
        let mut i = 0;
        while i < operands.len() {
            let operand = operands[i];
            plan.modrm |= operand.has_modrm();
            // The first operand decides the size: MOVZX Gv,Eb is not a byte instruction, but
            // IN AL,Ib and MOV Eb,Gb are. A port has no size: OUT Ib,AL is one too.
            let decides = i == 0 || i == 1 && matches!(operands[0], O::Ib | O::Dx);
            plan.byte |= decides && operand.is_byte();
            match operand {
                O::Eb => plan.byte_rm = true,
                O::Gb => plan.byte_reg = true,
                O::Zb => (plan.opcode_reg, plan.byte_reg) = (true, true),
                O::Zv => plan.opcode_reg = true,
                O::Rd | O::Rv | O::Rw => plan.register_only = true,
                O::Ob | O::Ov => plan.moffs = true,
                O::Sw => plan.small_reg = true,
                _ => {}
            }
            if i == 0 && matches!(operand, O::Gb | O::Gw | O::Gd | O::Gv | O::Gy) {
                plan.reversed = true;
            }
            plan.imm = match (plan.imm, operand) {
                (Imm::Word, O::Ib) => Imm::WordByte,
                (Imm::Byte, O::Ib) => Imm::ByteByte,
                (_, O::Ib) | (_, O::L) => Imm::Byte,
                (_, O::Ibs) => Imm::ByteSigned,
                (_, O::Iw) => Imm::Word,
                (_, O::Iz) => Imm::Z,
                (_, O::Iv) => Imm::V,
                (_, O::One) => Imm::One,
                (_, O::Jb) => Imm::Rel8,
                (_, O::Jz) => Imm::RelZ,
                (_, O::Ap) => Imm::Far,
                (imm, _) => imm,
            };
            i += 1;
        }
        plan
    }
}
