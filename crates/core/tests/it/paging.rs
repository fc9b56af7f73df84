//! Paging in all four modes. What an access may do is held against a model of its own: the
//! manual's rules as one table of conditions, over every combination of rights.

use crate::guest::{CODE, Guest};
use crate::protected::{DATA32, IDT, USER_CODE, USER_DATA, gate, guest};
use realmode::arch::control::*;
use realmode::arch::paging::*;
use realmode::*;

/// Where the tables lie: the root, then one of each level below it.
const ROOT: u64 = 0x10_0000;
const FRAME: u64 = 0x15_0000;
/// The page that holds code, descriptors and stacks, mapped as it is.
const LOW: u64 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bits32,
    Pae,
    Levels4,
    Levels5,
}

const MODES: [Mode; 4] = [Mode::Bits32, Mode::Pae, Mode::Levels4, Mode::Levels5];

impl Mode {
    /// Shifts of the indices, from the root down.
    fn shifts(self) -> &'static [u32] {
        match self {
            Mode::Bits32 => &[22, 12],
            Mode::Pae => &[30, 21, 12],
            Mode::Levels4 => &[39, 30, 21, 12],
            Mode::Levels5 => &[48, 39, 30, 21, 12],
        }
    }
    /// The page that accesses go to. It shares no entry with the code.
    fn linear(self) -> u64 {
        match self {
            Mode::Bits32 | Mode::Pae => 0x8040_3000,
            Mode::Levels4 => 0x80_8040_3000,
            Mode::Levels5 => 0x1_0080_8040_3000,
        }
    }
    fn entry_size(self) -> u64 {
        if self == Mode::Bits32 { 4 } else { 8 }
    }
    fn is_long(self) -> bool {
        matches!(self, Mode::Levels4 | Mode::Levels5)
    }
}

/// A guest whose accesses go through tables; code runs at level 0 or 3.
struct Paged {
    guest: Guest,
    mode: Mode,
}

impl Paged {
    /// `code` at CODE in 32-bit code, or in 64-bit code where the mode is long.
    fn new(mode: Mode, level: u8, code: &[u8]) -> Paged {
        let mut guest = guest(code);
        let cpu = &mut guest.cpu;
        cpu.cr0 |= CR0_PG | CR0_PE;
        cpu.cr3 = ROOT;
        cpu.cr4 = match mode {
            Mode::Bits32 => 0,
            Mode::Pae | Mode::Levels4 => CR4_PAE,
            Mode::Levels5 => CR4_PAE | CR4_LA57,
        };
        if level == 3 {
            let user = |selector, attributes| Segment {
                selector,
                base: 0,
                limit: u32::MAX,
                attributes: Attributes(attributes),
            };
            cpu.seg = [user(USER_DATA, 0xC0F3); 6];
            cpu.seg[SegReg::Cs as usize] = user(USER_CODE, 0xC0FB);
        }
        if mode.is_long() {
            cpu.msr.efer = EFER_LME | EFER_LMA;
            let cs = &mut cpu.seg[SegReg::Cs as usize].attributes;
            cs.0 = cs.0 & !Attributes::DB | Attributes::L;
            long_tables(&mut guest);
        }
        let mut paged = Paged { guest, mode };
        // Code, tables and stacks: every page below 64 KiB, for everybody.
        for page in (LOW..0x1_0000).step_by(0x1000) {
            paged.map(page, page, PTE_P | PTE_W | PTE_U);
        }
        paged.map(mode.linear(), FRAME, PTE_P | PTE_W | PTE_U);
        paged.guest.poke(FRAME, &[0x90; 64]);
        paged.load_pdptes();
        paged
    }

    /// Where the entry of `linear` at `depth` below the root lies.
    fn entry(&self, linear: u64, depth: usize) -> u64 {
        let bits = if self.mode == Mode::Bits32 { 10 } else { 9 };
        let mut table = ROOT;
        let shifts = self.mode.shifts();
        for (i, shift) in shifts.iter().enumerate() {
            let index = linear >> shift & ((1 << bits) - 1);
            let index = if self.mode == Mode::Pae && i == 0 { index & 3 } else { index };
            let at = table + index * self.mode.entry_size();
            if i == depth {
                return at;
            }
            table = self.read(at) & 0xF_FFFF_F000;
        }
        unreachable!("{depth} is below the page tables")
    }

    fn leaf(&self) -> u64 {
        self.entry(self.mode.linear(), self.mode.shifts().len() - 1)
    }

    fn read(&self, at: u64) -> u64 {
        let bytes = self.guest.peek(at, self.mode.entry_size() as usize);
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(&bytes);
        u64::from_le_bytes(word)
    }

    fn write(&mut self, at: u64, entry: u64) {
        self.guest.poke(at, &entry.to_le_bytes()[..self.mode.entry_size() as usize]);
    }

    /// Maps a page; what lies above it gets all rights.
    fn map(&mut self, linear: u64, frame: u64, flags: u64) {
        let depth = self.mode.shifts().len() - 1;
        for i in 0..depth {
            let at = self.entry(linear, i);
            if self.read(at) & PTE_P == 0 {
                let table = ROOT + 0x1000 * (1 + self.next_table());
                let pdpte = self.mode == Mode::Pae && i == 0;
                self.write(at, table | if pdpte { PTE_P } else { PTE_P | PTE_W | PTE_U });
                self.guest.poke(TABLES, &[self.next_table() as u8 + 1]);
            }
        }
        let at = self.entry(linear, depth);
        self.write(at, frame | flags);
    }

    fn next_table(&self) -> u64 {
        self.guest.peek(TABLES, 1)[0].into()
    }

    fn load_pdptes(&mut self) {
        if self.mode == Mode::Pae {
            self.guest.cpu.pdpte = core::array::from_fn(|i| self.read(ROOT + 8 * i as u64));
        }
    }

    /// Runs one instruction; returns the error code if it raised #PF.
    fn page_fault(&mut self) -> Option<u16> {
        let mut seen = None;
        self.guest.policy.exceptions = 1 << 14;
        match self.guest.run(1) {
            Stop::Budget => {}
            Stop::Exception(Fault { vector: 14, error_code, .. }) => seen = Some(error_code),
            stop => panic!("{:?} {stop:?}", self.mode),
        }
        seen
    }
}

/// How many tables there are.
const TABLES: u64 = 0x1F_F000;

/// The IDT of the protected-mode guest, with gates of 16 bytes.
fn long_tables(guest: &mut Guest) {
    for vector in 0..32u64 {
        let low = gate(0x08, 0x6000 + vector as u32, 0x8E);
        guest.poke(IDT + vector * 16, &[0; 16]);
        guest.poke(IDT + vector * 16, &low);
    }
    guest.poke(0x5008, &0x00AF_9B00_0000_FFFFu64.to_le_bytes());
    assert_eq!(DATA32, 0x10);
}

/// MOV EAX, [EBX]; MOV [EBX], EAX; JMP EBX.
const ACCESSES: [(Access, &[u8]); 3] = [
    (Access::Read, &[0x8B, 0x03]),
    (Access::Write, &[0x89, 0x03]),
    (Access::Execute, &[0xFF, 0xE3]),
];

/// The manual's rules for one access (SDM vol. 3A, "Access Rights"), from the combined rights of
/// all entries.
fn allowed(cpu: &Cpu, access: Access, user_page: bool, writable: bool, nx: bool) -> bool {
    let user_mode = cpu.cpl() == 3;
    let smap = cpu.cr4 & CR4_SMAP != 0 && cpu.rflags & arch::rflags::AC == 0;
    let smep = cpu.cr4 & CR4_SMEP != 0;
    let wp = cpu.cr0 & CR0_WP != 0;
    let nx = nx && cpu.msr.efer & EFER_NXE != 0;
    match (user_mode, access) {
        (true, _) if !user_page => false,
        (true, Access::Read) => true,
        (true, Access::Write) => writable,
        (_, Access::Execute) if nx => false,
        (true, Access::Execute) => true,
        (false, Access::Execute) => !(user_page && smep),
        (false, Access::Read) => !(user_page && smap),
        (false, Access::Write) => !(user_page && smap) && (writable || !wp),
    }
}

#[test]
fn every_combination_of_rights_at_every_level_allows_what_the_manual_says() {
    let mut checked = 0;
    for mode in MODES {
        for level in [0, 3] {
            for (access, code) in ACCESSES {
                let mut paged = Paged::new(mode, level, code);
                checked += check_rights(&mut paged, access);
            }
        }
    }
    assert!(checked > 5000, "only {checked}");
}

/// All settings of CR0.WP, SMEP, SMAP, AC, NXE with all rights of the leaf, and each right taken
/// away at a level above it.
fn check_rights(paged: &mut Paged, access: Access) -> usize {
    let linear = paged.mode.linear();
    let depth = paged.mode.shifts().len() - 1;
    let before = paged.guest.cpu.clone();
    let mut checked = 0;
    for setting in 0..32u64 {
        for rights in 0..8u64 {
            for at_level in 0..=depth {
                let has = |bit: u64| setting >> bit & 1 != 0;
                let nxe = has(4) && paged.mode != Mode::Bits32;
                let is_pdpte = paged.mode == Mode::Pae && at_level == 0;
                let nx = rights & 4 != 0 && nxe;
                if is_pdpte || has(0) && paged.mode == Mode::Bits32 && rights & 4 != 0 {
                    continue;
                }
                let entry = paged.entry(linear, at_level);
                let old = paged.read(entry);
                let kept = old & !(PTE_U | PTE_W | PTE_A | PTE_D);
                let new = kept
                    | if rights & 1 != 0 { PTE_U } else { 0 }
                    | if rights & 2 != 0 { PTE_W } else { 0 }
                    | if nx { PTE_NX } else { 0 };
                paged.write(entry, new);
                let cpu = &mut paged.guest.cpu;
                *cpu = before.clone();
                cpu.gpr[Reg::Rbx] = linear;
                cpu.cr0 = cpu.cr0 & !CR0_WP | if has(0) { CR0_WP } else { 0 };
                // The code itself is a user page: SMEP only at level 3.
                let smep = has(1) && cpu.cpl() == 3;
                cpu.cr4 |= if smep { CR4_SMEP } else { 0 };
                cpu.cr4 |= if has(2) { CR4_SMAP } else { 0 };
                cpu.rflags |= if has(3) { arch::rflags::AC } else { 0 };
                cpu.msr.efer |= if nxe { EFER_NXE } else { 0 };
                let cpu = cpu.clone();
                let fine = allowed(&cpu, access, rights & 1 != 0, rights & 2 != 0, nx);
                let mut code = paged.page_fault();
                if access == Access::Execute && code.is_none() {
                    // The jump is done; the fetch comes next.
                    code = paged.page_fault();
                }
                let reports = smep || nxe;
                let expected = PTE_P as u16
                    | if access == Access::Write { ERROR_WRITE } else { 0 }
                    | if cpu.cpl() == 3 { ERROR_USER } else { 0 }
                    | if access == Access::Execute && reports { ERROR_FETCH } else { 0 };
                let expected = (!fine).then_some(expected);
                let what =
                    format!("{:?} {access:?} {setting:05b} {rights:03b} {at_level}", paged.mode);
                assert_eq!(code, expected, "{what}");
                let leaf = paged.read(paged.leaf());
                let accessed = leaf & PTE_A != 0;
                assert_eq!(accessed, fine, "A: {what}");
                assert_eq!(leaf & PTE_D != 0, fine && access == Access::Write, "D: {what}");
                if !fine {
                    assert_eq!(paged.guest.cpu.cr2, linear, "{what}");
                }
                paged.write(entry, old);
                let leaf = paged.leaf();
                let clean = paged.read(leaf) & !(PTE_A | PTE_D);
                paged.write(leaf, clean);
                checked += 1;
            }
        }
    }
    checked
}

#[test]
fn an_entry_that_is_not_present_faults_at_any_level_and_marks_those_above_it() {
    for mode in MODES {
        for absent in 0..mode.shifts().len() {
            let mut paged = Paged::new(mode, 3, &[0x8B, 0x03]);
            let linear = paged.mode.linear();
            paged.guest.cpu.gpr[Reg::Rbx] = linear + 0x123;
            let entry = paged.entry(linear, absent);
            let old = paged.read(entry);
            paged.write(entry, old & !PTE_P);
            paged.load_pdptes();
            assert_eq!(paged.page_fault(), Some(ERROR_USER), "{mode:?} {absent}");
            assert_eq!(paged.guest.cpu.cr2, linear + 0x123);
            for above in 0..absent {
                if mode == Mode::Pae && above == 0 {
                    continue;
                }
                let entry = paged.read(paged.entry(linear, above));
                assert_ne!(entry & PTE_A, 0, "{mode:?} {absent} {above}");
            }
        }
    }
}

#[test]
fn reserved_bits_fault_where_the_manual_has_them() {
    // Mode, depth, bits to set, and whether they are reserved.
    let cases: &[(Mode, usize, u64, bool)] = &[
        (Mode::Pae, 1, 1 << 46, true),
        (Mode::Pae, 2, 1 << 62, true),
        (Mode::Pae, 2, PTE_NX, true),
        (Mode::Levels4, 0, PTE_PS, true),
        (Mode::Levels5, 0, PTE_PS, true),
        (Mode::Levels5, 1, PTE_PS, true),
        (Mode::Levels4, 0, PTE_G, false),
        (Mode::Levels4, 3, 1 << 51, true),
        (Mode::Levels4, 3, 1 << 46, true),
        (Mode::Levels4, 3, 1 << 52, false),
        (Mode::Levels4, 3, 1 << 62, false),
        (Mode::Levels4, 3, PTE_NX, true),
        (Mode::Levels4, 2, PTE_PS | 1 << 13, true),
        (Mode::Levels4, 2, PTE_PS | 1 << 20, true),
        (Mode::Levels4, 1, PTE_PS | 1 << 29, true),
        (Mode::Bits32, 1, 1 << 7, false),
    ];
    for (mode, depth, bits, reserved) in cases {
        let mut paged = Paged::new(*mode, 0, &[0x8B, 0x03]);
        let linear = paged.mode.linear();
        paged.guest.cpu.gpr[Reg::Rbx] = linear;
        let entry = paged.entry(linear, *depth);
        let old = paged.read(entry);
        paged.write(entry, old | bits);
        let expected = reserved.then_some(ERROR_PRESENT | ERROR_RESERVED);
        assert_eq!(paged.page_fault(), expected, "{mode:?} {depth} {bits:#x}");
    }
}

#[test]
fn amd_reserves_g_in_the_upper_levels() {
    for depth in [0, 1] {
        let mut paged = Paged::new(Mode::Levels4, 0, &[0x8B, 0x03]);
        let linear = paged.mode.linear();
        paged.guest.profile = Profile::AMD;
        paged.guest.cpu.gpr[Reg::Rbx] = linear;
        let entry = paged.entry(linear, depth);
        let old = paged.read(entry);
        paged.write(entry, old | PTE_G);
        assert_eq!(paged.page_fault(), Some(ERROR_PRESENT | ERROR_RESERVED));
    }
}

#[test]
fn large_pages_map_what_their_level_spans() {
    // 2 MiB in PAE and long mode, 1 GiB in long mode, 4 MiB with PSE.
    for (mode, depth, size) in [
        (Mode::Pae, 1, 1u64 << 21),
        (Mode::Levels4, 2, 1 << 21),
        (Mode::Levels4, 1, 1 << 30),
        (Mode::Levels5, 2, 1 << 30),
        (Mode::Bits32, 0, 1 << 22),
    ] {
        let mut paged = Paged::new(mode, 0, &[0x8B, 0x03]);
        let linear = paged.mode.linear();
        // An address whose page would begin at 0 reads what lies at the same offset.
        let offset = 0x1F_0120;
        let address = linear & !(size - 1) | offset;
        let entry = paged.entry(linear, depth);
        paged.write(entry, PTE_P | PTE_PS | PTE_W | PTE_U);
        paged.guest.cpu.cr4 |= if mode == Mode::Bits32 { CR4_PSE } else { 0 };
        paged.guest.cpu.gpr[Reg::Rbx] = address;
        paged.guest.poke(offset, &0x1234_5678u32.to_le_bytes());
        assert_eq!(paged.page_fault(), None, "{mode:?}");
        assert_eq!(paged.guest.reg(Reg::Rax), 0x1234_5678, "{mode:?} {depth}");
        let raw = paged.read(entry);
        assert_eq!(raw & (PTE_A | PTE_D), PTE_A);
    }
}

#[test]
fn pse_36_takes_address_bits_from_a_large_page_and_reserves_the_one_above() {
    let mut paged = Paged::new(Mode::Bits32, 0, &[0x8B, 0x03]);
    let linear = paged.mode.linear();
    paged.guest.cpu.cr4 |= CR4_PSE;
    paged.guest.cpu.gpr[Reg::Rbx] = linear;
    let entry = paged.entry(linear, 0);
    // Address bit 32: there is no RAM, so it reads ones.
    paged.write(entry, PTE_P | PTE_PS | 1 << 13);
    assert_eq!(paged.page_fault(), None);
    assert_eq!(paged.guest.reg(Reg::Rax), 0xFFFF_FFFF);
    paged.guest.cpu.rip = CODE;
    paged.write(entry, PTE_P | PTE_PS | 1 << 21);
    assert_eq!(paged.page_fault(), Some(ERROR_PRESENT | ERROR_RESERVED));
}

#[test]
fn r10_a_store_across_two_pages_that_faults_in_the_second_writes_nothing() {
    for mode in MODES {
        let mut paged = Paged::new(mode, 0, &[0x89, 0x03]);
        let linear = paged.mode.linear();
        paged.map(linear + 0x1000, FRAME + 0x3000, 0);
        paged.guest.cpu.gpr[Reg::Rbx] = linear + 0xFFE;
        paged.guest.cpu.gpr[Reg::Rax] = 0x1122_3344;
        assert_eq!(paged.page_fault(), Some(ERROR_WRITE));
        assert_eq!(paged.guest.cpu.cr2, linear + 0x1000);
        assert_eq!(paged.guest.peek(FRAME + 0xFFE, 2), [0, 0]);
    }
}

#[test]
fn r13_an_operand_across_two_pages_reads_from_both_frames() {
    for mode in MODES {
        let mut paged = Paged::new(mode, 0, &[0x8B, 0x03]);
        let linear = paged.mode.linear();
        paged.map(linear + 0x1000, FRAME + 0x3000, PTE_P);
        paged.guest.cpu.gpr[Reg::Rbx] = linear + 0xFFE;
        paged.guest.poke(FRAME + 0xFFE, &[1, 2]);
        paged.guest.poke(FRAME + 0x3000, &[3, 4]);
        assert_eq!(paged.page_fault(), None);
        assert_eq!(paged.guest.reg(Reg::Rax), 0x0403_0201);
    }
}

#[test]
fn d01_an_instruction_across_two_pages_faults_at_the_second() {
    for mode in MODES {
        let mut paged = Paged::new(mode, 3, &[]);
        let linear = paged.mode.linear();
        paged.map(linear + 0x1000, FRAME + 0x3000, PTE_P);
        paged.guest.cpu.rip = linear + 0xFFE;
        // MOV EAX, imm32
        paged.guest.poke(FRAME + 0xFFE, &[0xB8, 1]);
        assert_eq!(paged.page_fault(), Some(ERROR_PRESENT | ERROR_USER));
        assert_eq!((paged.guest.cpu.cr2, paged.guest.cpu.rip), (linear + 0x1000, linear + 0xFFE));
        // An instruction that ends with the page needs no second one.
        paged.guest.poke(FRAME + 0xFFE, &[0x90, 0x90]);
        assert_eq!(paged.page_fault(), None);
        assert_eq!(paged.guest.cpu.rip, linear + 0xFFF);
    }
}

#[test]
fn protection_keys_close_user_pages_to_loads_or_to_stores() {
    for level in [0, 3] {
        for (access, code) in [(Access::Read, [0x8B, 0x03]), (Access::Write, [0x89, 0x03])] {
            for (rights, wp) in (0..4u32).flat_map(|r| [(r, false), (r, true)]) {
                let mut paged = Paged::new(Mode::Levels4, level, &code);
                let linear = paged.mode.linear();
                let leaf = paged.leaf();
                let old = paged.read(leaf);
                paged.write(leaf, old | 5 << 59);
                let cpu = &mut paged.guest.cpu;
                cpu.gpr[Reg::Rbx] = linear;
                cpu.cr4 |= CR4_PKE;
                cpu.cr0 = cpu.cr0 & !CR0_WP | if wp { CR0_WP } else { 0 };
                cpu.pkru = rights << 10;
                let write = access == Access::Write;
                let denied = rights & 1 != 0 || rights & 2 != 0 && write && (level == 3 || wp);
                let code = ERROR_PRESENT
                    | ERROR_KEY
                    | if write { ERROR_WRITE } else { 0 }
                    | if level == 3 { ERROR_USER } else { 0 };
                assert_eq!(
                    paged.page_fault(),
                    denied.then_some(code),
                    "{level} {access:?} {rights}"
                );
            }
        }
    }
}

#[test]
fn a_stale_translation_lasts_until_invlpg_and_no_longer() {
    // mov eax,[ebx]; mov [ecx],edx; mov esi,[ebx]; invlpg [ebx]; mov edi,[ebx]
    let code = [0x8B, 3, 0x89, 0x11, 0x8B, 0x33, 0x0F, 0x01, 0x3B, 0x8B, 0x3B, 0xF4];
    for mode in MODES {
        let mut paged = Paged::new(mode, 0, &code);
        let linear = paged.mode.linear();
        let leaf = paged.leaf();
        // The table itself is mapped beside the page.
        paged.map(linear + 0x2000, leaf & !0xFFF, PTE_P | PTE_W);
        paged.guest.poke(FRAME, &1u32.to_le_bytes());
        paged.guest.poke(FRAME + 0x1000, &2u32.to_le_bytes());
        let cpu = &mut paged.guest.cpu;
        cpu.gpr[Reg::Rbx] = linear;
        cpu.gpr[Reg::Rcx] = linear + 0x2000 + (leaf & 0xFFF);
        cpu.gpr[Reg::Rdx] = (FRAME + 0x1000) | PTE_P;
        assert_eq!(paged.guest.run(100), Stop::Idle);
        let read = [Reg::Rax, Reg::Rdi].map(|reg| paged.guest.reg(reg));
        assert_eq!(read, [1, 2], "{mode:?}");
        let between = paged.guest.reg(Reg::Rsi);
        assert!(between == 1 || between == 2, "{mode:?}: {between}");
    }
}

#[test]
fn mov_cr3_loads_the_pdptes_and_refuses_reserved_bits() {
    // mov cr3, eax; mov ecx, [ebx]
    let mut paged = Paged::new(Mode::Pae, 0, &[0x0F, 0x22, 0xD8, 0x8B, 0x0B]);
    let linear = paged.mode.linear();
    let cr3 = ROOT + 0x20;
    paged.guest.cpu.gpr[Reg::Rax] = cr3;
    for i in 0..4 {
        let entry = paged.read(ROOT + 8 * i);
        paged.write(cr3 + 8 * i, entry);
    }
    paged.write(cr3 + 8 * 2, 0);
    paged.guest.cpu.gpr[Reg::Rbx] = linear;
    assert_eq!(paged.page_fault(), None);
    // The entry in memory is of no interest until the next load.
    let entry = paged.read(ROOT + 8 * 2);
    paged.write(cr3 + 8 * 2, entry);
    assert_eq!(paged.page_fault(), Some(0));

    paged.write(cr3 + 8 * 3, PTE_P | PTE_W);
    paged.guest.cpu.rip = CODE;
    paged.guest.cpu.cr3 = ROOT;
    paged.guest.policy.exceptions = 1 << 13;
    assert_eq!(paged.guest.run(1), Stop::Exception(Fault::GP));
    assert_eq!(paged.guest.cpu.cr3, ROOT);
}

#[test]
fn a_fault_while_a_page_fault_is_delivered_is_a_double_fault() {
    // The stack page is absent too: #PF, #PF, #DF, #PF is a shutdown.
    let mut paged = Paged::new(Mode::Bits32, 0, &[0x8B, 0x03]);
    paged.guest.cpu.gpr[Reg::Rbx] = 0x4000_0000;
    paged.guest.cpu.gpr[Reg::Rsp] = 0x5000_0000;
    assert_eq!(paged.guest.run(1), Stop::Shutdown);
    assert_eq!(paged.guest.cpu.cr2, 0x4FFF_FFFC);
}

#[test]
fn a_level_3_program_reads_descriptors_in_supervisor_pages() {
    // mov fs, ax
    let mut paged = Paged::new(Mode::Bits32, 3, &[0x8E, 0xE0]);
    paged.map(0x5000, 0x5000, PTE_P | PTE_W);
    paged.guest.cpu.gpr[Reg::Rax] = USER_DATA.into();
    assert_eq!(paged.page_fault(), None);
    assert_eq!(paged.guest.cpu.seg[SegReg::Fs as usize].selector, USER_DATA);
    // The accessed bit was set there.
    assert_eq!(paged.guest.peek(0x5000 + 0x35, 1)[0] & 1, 1);
}

#[test]
fn the_accessed_bit_of_a_descriptor_needs_a_writable_page() {
    // mov fs, ax
    for wp in [false, true] {
        let mut paged = Paged::new(Mode::Bits32, 0, &[0x8E, 0xE0]);
        paged.map(0x5000, 0x5000, PTE_P);
        paged.guest.cpu.cr0 |= if wp { CR0_WP } else { 0 };
        paged.guest.cpu.gpr[Reg::Rax] = DATA32.into();
        let fault = wp.then_some(ERROR_PRESENT | ERROR_WRITE);
        assert_eq!(paged.page_fault(), fault, "WP={wp}");
    }
}
