//! Operand codes, in the manual's own notation (SDM vol. 2D, "Key to Abbreviations").

/// One operand of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the SDM's appendix A defines each code
pub enum Operand {
    /// No operand.
    None,
    // ModRM.rm: register or memory.
    Eb,
    Ew,
    Ed,
    Eq,
    Ev,
    /// 32 bits, or 16 with a 16-bit operand size.
    Ez,
    /// A register of the operand size, or a word of memory.
    Evw,
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
    // ModRM.reg: general, segment, control, debug register.
    Gb,
    Gw,
    Gd,
    Gv,
    Gy,
    /// An address: of the address size.
    Ga,
    /// The same in ModRM.rm.
    Ra,
    Sw,
    Cd,
    Dd,
    // Immediates. `Ibs` is sign-extended to the operand size; `One` is the constant 1.
    Ib,
    Ibs,
    Iw,
    /// 32 bits, zero-extended.
    Id,
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
    Ax,
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
    // SIMD. P is MMX in reg, Q MMX or memory, N MMX in rm; V is XMM, YMM or ZMM in reg, W the same
    // in rm or memory, U in rm only, H in VEX.vvvv, L in the immediate. Alone they have the vector
    // length; `dq` is always XMM, `qq` YMM; `h` is half the vector length, `f` a quarter, `e` an
    // eighth. A W with a memory size is an XMM register or that memory.
    P,
    Q,
    /// MMX register or 32-bit memory.
    Qd,
    N,
    V,
    Vdq,
    Vh,
    H,
    Hdq,
    /// Four consecutive registers, of which vvvv names one.
    H4,
    H4dq,
    W,
    Wdq,
    Wqq,
    Wq,
    Wd,
    Ww,
    Wb,
    Wh,
    Wf,
    We,
    /// As many elements as the mask selects (compress, expand).
    Wn,
    U,
    Udq,
    L,
    Ldq,
    /// Register in the high half of the immediate, four more bits of immediate in the low half.
    Li,
    // Memory of the vector length, and of 256 bits.
    Mx,
    Mqq,
    // Vectors of addresses (VSIB), by the size of the index register; a tile row address.
    Mvx,
    Mvh,
    Mvdq,
    Mvqq,
    Msib,
    /// General register in VEX.vvvv, 32 or 64 bits.
    By,
    /// 64 bytes.
    Mdqq,
    // General register, or memory of 8, 16 or 32 bits.
    Edb,
    Edw,
    Edd,
    // Mask registers in reg, rm, vvvv, and rm or memory by size; bound registers in reg, and in rm
    // or memory; tile registers in reg, rm, vvvv.
    Kg,
    Kr,
    Kv,
    Keb,
    Kew,
    Ked,
    Keq,
    Bnd,
    Bnde,
    Tile,
    Te,
    Tv,
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
                | O::Id
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
                | O::Ax
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
                | O::Ldq
                | O::Li
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
                | O::Mx
                | O::Mqq
                | O::Mdqq
                | O::Msib
        ) || self.is_vsib()
    }

    /// Is it memory at a vector of addresses?
    pub(crate) const fn is_vsib(self) -> bool {
        matches!(self, O::Mvx | O::Mvh | O::Mvdq | O::Mvqq)
    }

    /// Is ModRM.rm a register operand, and mod not 3 another instruction?
    pub(crate) const fn is_register_only(self) -> bool {
        matches!(self, O::N | O::U | O::Udq | O::Kr | O::Te)
    }

    /// Is it a register of another file than the general one, if it is a register?
    pub(crate) const fn is_vector(self) -> bool {
        self as u8 >= O::P as u8 && !matches!(self, O::By | O::Edb | O::Edw | O::Edd)
    }

    /// Is it an MMX register, or one or memory?
    pub(crate) const fn is_mmx(self) -> bool {
        matches!(self, O::P | O::Q | O::Qd | O::N)
    }

    /// Is it an XMM, YMM or ZMM register, or one or memory?
    pub(crate) const fn is_xmm(self) -> bool {
        let (first, last) = (O::V as u8, O::Ldq as u8);
        self as u8 >= first && self as u8 <= last
    }

    /// Is it a mask register, or one or memory?
    pub(crate) const fn is_mask(self) -> bool {
        self as u8 >= O::Kg as u8 && self as u8 <= O::Keq as u8
    }

    /// Is it neither an immediate nor absent?
    pub(crate) const fn is_register_or_memory(self) -> bool {
        !matches!(self, O::None | O::Ib | O::Ibs | O::Iw | O::Id | O::Iz | O::Iv | O::One)
    }

    /// Does it use VEX.vvvv?
    pub(crate) const fn has_vvvv(self) -> bool {
        matches!(self, O::H | O::Hdq | O::H4 | O::H4dq | O::By | O::Kv | O::Tv)
    }

    /// Is it what ModRM.rm names?
    pub(crate) const fn is_rm(self) -> bool {
        self.is_memory_only()
            || self.is_register_only()
            || matches!(self, O::Eb | O::Ew | O::Ed | O::Eq | O::Ev | O::Ez | O::Evw | O::Ey)
            || matches!(self, O::Edb | O::Edw | O::Edd | O::Rd | O::Rv | O::Ra | O::Sti)
            || matches!(self, O::Q | O::Qd | O::Keb | O::Kew | O::Ked | O::Keq | O::Bnde)
            || matches!(self, O::W | O::Wdq | O::Wqq | O::Wq | O::Wd | O::Ww | O::Wb)
            || matches!(self, O::Wh | O::Wf | O::We | O::Wn)
    }

    /// Bytes of the memory operand, 0 if it has no size of its own, for an operand size and a
    /// vector length in bytes.
    pub(crate) const fn memory_bytes(self, vector: u16, size: u16) -> u16 {
        match self {
            O::Eb | O::Mb | O::Edb | O::Keb | O::Wb => 1,
            O::Ew | O::Evw | O::Mw | O::Edw | O::Kew | O::Ww | O::Mi16 => 2,
            O::Ed | O::Md | O::Edd | O::Ked | O::Wd | O::Qd | O::Mf32 | O::Mi32 => 4,
            O::Eq | O::Mq | O::Q | O::Keq | O::Wq | O::Mf64 | O::Mi64 => 8,
            O::Ev | O::Mv => size,
            O::Ez if size == 2 => 2,
            O::Ez => 4,
            // 16-bit code has no 16-bit form of these.
            O::Ey | O::My => {
                if size == 8 {
                    8
                } else {
                    4
                }
            }
            O::Mf80 | O::Mbcd => 10,
            O::Mdq | O::Wdq => 16,
            O::Mqq | O::Wqq => 32,
            O::Mdqq => 64,
            O::W | O::Wn | O::Mx => vector,
            O::Wh => vector / 2,
            O::Wf => vector / 4,
            O::We => vector / 8,
            _ => 0,
        }
    }

    /// Does it make the whole instruction an 8-bit one?
    pub(crate) const fn is_byte(self) -> bool {
        matches!(self, O::Eb | O::Gb | O::Zb | O::Ob | O::Xb | O::Yb | O::Al)
    }
}

/// What decode has to do for a row, derived from its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    bits: u16,
    /// The immediate.
    pub(crate) imm: Imm,
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
    /// Four bytes, zero-extended.
    Dword,
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
    /// A ModRM byte follows the opcode.
    pub(crate) const MODRM: u16 = 1;
    /// ModRM.reg numbers an 8-bit register.
    pub(crate) const BYTE_REG: u16 = 1 << 1;
    /// ModRM.rm numbers an 8-bit register.
    pub(crate) const BYTE_RM: u16 = 1 << 2;
    /// The instruction works on bytes.
    pub(crate) const BYTE: u16 = 1 << 3;
    /// The register comes from the opcode.
    pub(crate) const OPCODE_REG: u16 = 1 << 4;
    /// The destination is ModRM.reg, the source ModRM.rm: in the register form decode exchanges
    /// them, so that one handler serves both directions.
    pub(crate) const REVERSED: u16 = 1 << 5;
    /// ModRM.mod is ignored: the operand is always a register.
    pub(crate) const REGISTER_ONLY: u16 = 1 << 6;
    /// Memory at an offset in the instruction.
    pub(crate) const MOFFS: u16 = 1 << 7;
    /// ModRM.reg is not extended by REX.R (segment registers).
    pub(crate) const SMALL_REG: u16 = 1 << 8;
    /// VEX.vvvv is an operand.
    pub(crate) const VVVV: u16 = 1 << 9;
    /// The memory operand has a vector of addresses, or a tile's rows: it needs a SIB byte.
    pub(crate) const SIB: u16 = 1 << 10;
    /// ModRM.reg numbers one of eight registers: masks, tiles, bounds.
    pub(crate) const EIGHT_REGS: u16 = 1 << 11;
    /// No 16-bit operand size: 32 bits, or 64 with REX.W, whatever the code size and 66 say. A row
    /// whose last operands have the full choice (CRC32) does not count.
    pub(crate) const SIZE_Y: u16 = 1 << 12;

    /// Does it ask for one of these?
    #[inline(always)]
    pub(crate) const fn has(self, bits: u16) -> bool {
        self.bits & bits != 0
    }

    /// The same, with these too.
    pub(crate) const fn with(mut self, bits: u16) -> Plan {
        self.bits |= bits;
        self
    }

    /// The plan of a row with these operands.
    pub(crate) const fn of(operands: &[Operand]) -> Plan {
        let mut plan = Plan { bits: 0, imm: Imm::None };
        let mut has_v = false;
        let mut i = 0;
        while i < operands.len() {
            has_v |= matches!(operands[i], O::Ev);
            let decides = i == 0 || i == 1 && matches!(operands[0], O::Ib | O::Dx);
            plan.bits |= Plan::bits_of(operands[i], i == 0, decides);
            plan.imm = match (plan.imm, operands[i]) {
                (Imm::Word, O::Ib) => Imm::WordByte,
                (Imm::Byte, O::Ib) => Imm::ByteByte,
                (_, O::Ib | O::L | O::Ldq | O::Li) => Imm::Byte,
                (_, O::Ibs) => Imm::ByteSigned,
                (_, O::Iw) => Imm::Word,
                (_, O::Id) => Imm::Dword,
                (_, O::Iz) => Imm::Z,
                (_, O::Iv) => Imm::V,
                (_, O::One) => Imm::One,
                (_, O::Jb) => Imm::Rel8,
                (_, O::Jz) => Imm::RelZ,
                (_, O::Ap) => Imm::Far,
                (imm, _) => imm,
            };
            if matches!(operands[i], O::Ev | O::Gv | O::Mv) {
                plan.bits &= !Plan::SIZE_Y;
            }
            if operands[i].is_vector() {
                plan.bits &= !Plan::REVERSED;
            }
            i += 1;
        }
        if has_v {
            // CRC32 Gy,Ev: the source may be a word.
            plan.bits &= !Plan::SIZE_Y;
        }
        plan
    }

    const fn bits_of(operand: Operand, is_first: bool, decides: bool) -> u16 {
        let mut bits = if operand.has_modrm() { Plan::MODRM } else { 0 };
        // The first operand decides the size: MOVZX Gv,Eb is not a byte instruction, but
        // IN AL,Ib and MOV Eb,Gb are. A port has no size: OUT Ib,AL is one too.
        if decides && operand.is_byte() {
            bits |= Plan::BYTE;
        }
        if is_first && matches!(operand, O::Gb | O::Gw | O::Gd | O::Gv | O::Gy) {
            bits |= Plan::REVERSED;
        }
        if operand.has_vvvv() {
            bits |= Plan::VVVV;
        }
        if operand.is_vsib() {
            bits |= Plan::SIB;
        }
        bits | match operand {
            O::Eb => Plan::BYTE_RM,
            O::Gb => Plan::BYTE_REG,
            O::Zb => Plan::OPCODE_REG | Plan::BYTE_REG,
            O::Zv => Plan::OPCODE_REG,
            O::Rd | O::Rv => Plan::REGISTER_ONLY,
            O::Ob | O::Ov => Plan::MOFFS,
            O::Sw => Plan::SMALL_REG,
            O::Msib => Plan::SIB,
            O::Kg | O::Tile | O::Bnd => Plan::EIGHT_REGS,
            O::Ey | O::Gy | O::My => Plan::SIZE_Y,
            _ => 0,
        }
    }
}
