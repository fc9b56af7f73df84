//! Paging: linear addresses to physical ones (SDM vol. 3A, "Paging"), with the page faults, and
//! the accessed and dirty flags, of all four modes.

use crate::arch::control::{
    CR0_PG, CR0_WP, CR4_LA57, CR4_PAE, CR4_PKE, CR4_PKS, CR4_PSE, CR4_SMAP, CR4_SMEP, EFER_NXE,
};
use crate::arch::cpuid::Features;
use crate::arch::paging::{
    ERROR_FETCH, ERROR_KEY, ERROR_PRESENT, ERROR_RESERVED, ERROR_USER, ERROR_WRITE, PTE_A, PTE_D,
    PTE_G, PTE_NX, PTE_P, PTE_PS, PTE_U, PTE_W,
};
use crate::arch::rflags::AC;
use crate::arch::vector;
use crate::bus::{Access, Phys, Prepared};
use crate::fault::Fault;
use crate::machine::{Leave, Machine, Road, Step};
use crate::mem::code_map::{CodeMap, lines_of};
use crate::mem::host::PAGE_SIZE;
use crate::mem::segment::is_canonical_with;
use crate::mem::tlb::Translation;
use crate::profile::Vendor;
use crate::stop::UnimplementedReason;

/// On whose behalf memory is accessed (SDM vol. 3A, "Determination of Access Mode").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The program, at a privilege level: 3 is user mode.
    Level(u8),
    /// The processor, for a descriptor table or TSS: supervisor, whatever runs.
    Tables,
}

/// The paging modes (SDM vol. 3A, "Paging Modes and Control Bits").
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// 4-byte entries, two levels.
    Bits32,
    /// 8-byte entries, two levels below the PDPTE registers.
    Pae,
    /// 8-byte entries, four or five levels.
    Long,
}

/// What all entries on the way to a page allow together.
#[derive(Clone, Copy)]
struct Rights {
    user: bool,
    write: bool,
    execute: bool,
}

/// An access on its way through the tables.
#[derive(Clone, Copy)]
struct Wanted {
    linear: u64,
    access: Access,
    by: By,
}

/// An entry that maps a page.
#[derive(Clone, Copy)]
struct Leaf {
    raw: u64,
    /// Where it lies.
    at: u64,
    /// Bits of the offset in the page.
    shift: u32,
    rights: Rights,
}

/// How often a walk begins anew because another processor has changed an entry under it.
const RACES: u32 = 16;

/// Why a walk does not end in a translation.
enum Halt {
    Leave(Leave),
    /// An entry changed between its being read and its flag being set.
    Race,
}

impl From<Leave> for Halt {
    fn from(leave: Leave) -> Halt {
        Halt::Leave(leave)
    }
}

impl Machine<'_, '_> {
    /// Is paging on?
    #[inline(always)]
    pub(crate) fn is_paged(&self) -> bool {
        self.cpu.cr0 & CR0_PG != 0
    }

    /// Is an access a user-mode access? Without paging nothing asks.
    #[inline(always)]
    pub(crate) fn is_user(&self, by: By) -> bool {
        self.is_paged() && by == By::Level(3)
    }

    /// The program at its current privilege level.
    #[inline(always)]
    pub(crate) fn program(&self) -> By {
        By::Level(self.cpu.cpl())
    }

    /// Is an address canonical in the current paging mode?
    pub(crate) fn is_canonical(&self, linear: u64) -> bool {
        let bits = if self.cpu.cr4 & CR4_LA57 != 0 { 57 } else { 48 };
        is_canonical_with(bits, linear)
    }

    /// Where the page of `linear` is.
    pub(crate) fn translate(
        &mut self,
        linear: u64,
        access: Access,
        by: By,
    ) -> Result<Translation, Leave> {
        if !self.is_paged() {
            let phys = self.gated(linear & !0xFFF);
            return Ok(Translation { phys, writable: true, executable: true, lasts: true });
        }
        let wanted = Wanted { linear, access, by };
        for _ in 0..RACES {
            match self.walk(wanted) {
                Ok(translation) => return Ok(translation),
                Err(Halt::Leave(leave)) => return Err(leave),
                Err(Halt::Race) => {}
            }
        }
        // The program sees a translation that has been there, and that nobody has invalidated:
        // as if the page had not been present in between.
        Err(self.page_fault(wanted, 0))
    }

    /// The A20 gate is between the processor and all memory, page tables included.
    fn gated(&self, phys: u64) -> Phys {
        Phys(if self.cpu.a20 { phys } else { phys & !(1 << 20) })
    }

    fn paging_mode(&self) -> Mode {
        if self.is_long_mode() {
            Mode::Long
        } else if self.cpu.cr4 & CR4_PAE != 0 {
            Mode::Pae
        } else {
            Mode::Bits32
        }
    }

    /// A page fault. CR2 is written when it is raised.
    fn page_fault(&mut self, wanted: Wanted, code: u16) -> Leave {
        let mut code = code;
        match wanted.access {
            Access::Write => code |= ERROR_WRITE,
            Access::Execute if self.reports_fetches() => code |= ERROR_FETCH,
            _ => {}
        }
        if self.is_user(wanted.by) {
            code |= ERROR_USER;
        }
        self.fault_address = wanted.linear;
        Fault::with_code(vector::PF, code).into()
    }

    /// Does an error code tell fetches from loads? (SDM vol. 3A, "Page-Fault Exceptions")
    fn reports_fetches(&self) -> bool {
        self.cpu.cr4 & CR4_SMEP != 0 || self.cpu.cr4 & CR4_PAE != 0 && self.has_nx()
    }

    fn has_nx(&self) -> bool {
        self.cpu.msr.efer & EFER_NXE != 0
    }

    fn walk(&mut self, wanted: Wanted) -> Result<Translation, Halt> {
        let leaf = self.find_leaf(wanted)?;
        self.check_rights(wanted, &leaf)?;
        let write = wanted.access == Access::Write;
        let flags = PTE_A | if write { PTE_D } else { 0 };
        self.set_flags(wanted, leaf.at, leaf.raw, flags)?;
        let dirty = write || leaf.raw & PTE_D != 0;
        let Wanted { linear, by, .. } = wanted;
        let allowed = |access| self.denied(Wanted { linear, access, by }, &leaf) == 0;
        // What AC decides changes too often to be kept.
        let lasts = self.is_user(by) || !leaf.rights.user || self.cpu.cr4 & CR4_SMAP == 0;
        Ok(Translation {
            phys: self.gated(self.frame(&leaf, linear)),
            writable: dirty && allowed(Access::Write),
            executable: allowed(Access::Execute),
            // A page that can be fetched from but not read has no place in the TLB.
            lasts: lasts && allowed(Access::Read),
        })
    }

    /// The physical page that a leaf maps `linear` to.
    fn frame(&self, leaf: &Leaf, linear: u64) -> u64 {
        let offset = linear & ((1 << leaf.shift) - 1) & !0xFFF;
        let base = if self.paging_mode() == Mode::Bits32 {
            // PSE-36: bits 13 to 20 of a large page are its address bits 32 to 39.
            let high = if leaf.shift == 22 { leaf.raw >> 13 & 0xFF } else { 0 };
            leaf.raw & 0xFFFF_FFFF | high << 32
        } else {
            leaf.raw & self.address_bits()
        };
        base >> leaf.shift << leaf.shift | offset
    }

    /// The address bits of an 8-byte entry.
    fn address_bits(&self) -> u64 {
        ((1 << self.profile.physical_bits) - 1) & !0xFFF
    }

    /// Goes down the tables to the entry that maps the page. Entries passed are marked accessed.
    fn find_leaf(&mut self, wanted: Wanted) -> Result<Leaf, Halt> {
        let mode = self.paging_mode();
        let mut rights = Rights { user: true, write: true, execute: true };
        let (mut table, mut level) = self.root(mode, wanted)?;
        loop {
            let (at, shift) = entry_place(mode, table, level, wanted.linear);
            let raw = self.read_entry(at)?;
            if raw & PTE_P == 0 {
                return Err(self.page_fault(wanted, 0).into());
            }
            if raw & self.reserved(mode, level, raw) != 0 {
                return Err(self.page_fault(wanted, ERROR_PRESENT | ERROR_RESERVED).into());
            }
            rights.user &= raw & PTE_U != 0;
            rights.write &= raw & PTE_W != 0;
            rights.execute &= mode == Mode::Bits32 || raw & PTE_NX == 0;
            if level == 1 || self.is_large(mode, level, raw) {
                return Ok(Leaf { raw, at, shift, rights });
            }
            self.set_flags(wanted, at, raw, PTE_A)?;
            table = match mode {
                Mode::Bits32 => raw & 0xFFFF_F000,
                _ => raw & self.address_bits(),
            };
            level -= 1;
        }
    }

    /// The first table of a walk, and its level: a page table has level 1.
    fn root(&mut self, mode: Mode, wanted: Wanted) -> Result<(u64, u32), Halt> {
        match mode {
            Mode::Bits32 => Ok((self.cpu.cr3 & 0xFFFF_F000, 2)),
            Mode::Long => {
                let levels = if self.cpu.cr4 & CR4_LA57 != 0 { 5 } else { 4 };
                Ok((self.cpu.cr3 & self.address_bits(), levels))
            }
            Mode::Pae => {
                let raw = self.cpu.pdpte[(wanted.linear >> 30 & 3) as usize];
                if raw & PTE_P == 0 {
                    return Err(self.page_fault(wanted, 0).into());
                }
                Ok((raw & self.address_bits(), 2))
            }
        }
    }

    /// Does an entry above the page tables map a large page?
    fn is_large(&self, mode: Mode, level: u32, raw: u64) -> bool {
        let possible = match mode {
            Mode::Bits32 => self.cpu.cr4 & CR4_PSE != 0,
            Mode::Pae => true,
            Mode::Long => level <= 3,
        };
        possible && raw & PTE_PS != 0
    }

    /// The bits that must be clear in a present entry (SDM vol. 3A, the tables "Format of ...";
    /// APM vol. 2, "Page Translation").
    fn reserved(&self, mode: Mode, level: u32, raw: u64) -> u64 {
        let is_large = level > 1 && self.is_large(mode, level, raw);
        if mode == Mode::Bits32 {
            return if is_large { self.reserved_in_4m() } else { 0 };
        }
        let top = if mode == Mode::Pae { 63 } else { 52 };
        let above = (1 << top) - (1 << self.profile.physical_bits);
        let nx = if self.has_nx() { 0 } else { PTE_NX };
        let amd = self.profile.vendor == Vendor::Amd;
        let rest = match level {
            4.. => PTE_PS | if amd { PTE_G } else { 0 },
            3 if is_large && self.profile.has(Features::GBPAGES) => 0x3FFF_E000,
            3 => PTE_PS | if amd { PTE_G } else { 0 },
            2 if is_large => 0x1F_E000,
            _ => 0,
        };
        above | nx | rest
    }

    /// Of a 4 MiB page: the bits above those that PSE-36 gives a meaning to.
    fn reserved_in_4m(&self) -> u64 {
        let width = u32::from(self.profile.physical_bits).clamp(32, 40);
        let more = if self.profile.has(Features::PSE36) { width - 32 } else { 0 };
        (1 << 22) - (1 << (13 + more))
    }

    /// Raises the page fault of an access that a leaf's rights forbid.
    fn check_rights(&mut self, wanted: Wanted, leaf: &Leaf) -> Step {
        match self.denied(wanted, leaf) {
            0 => Ok(()),
            code => Err(self.page_fault(wanted, code)),
        }
    }

    /// The error code bits that say why an access is forbidden, or 0 (SDM vol. 3A, "Access
    /// Rights").
    fn denied(&self, wanted: Wanted, leaf: &Leaf) -> u16 {
        let Rights { user, write, execute } = leaf.rights;
        let protects = self.cpu.cr0 & CR0_WP != 0;
        let is_user = self.is_user(wanted.by);
        let set = |bit: u64| self.cpu.cr4 & bit != 0;
        let forbidden = if is_user {
            !user
                || match wanted.access {
                    Access::Read => false,
                    Access::Write => !write,
                    Access::Execute => !execute,
                }
        } else if wanted.access == Access::Execute {
            !execute || user && set(CR4_SMEP)
        } else {
            let open = wanted.by != By::Tables && self.cpu.rflags & AC != 0;
            let hidden = user && set(CR4_SMAP) && !open;
            hidden || wanted.access == Access::Write && !write && protects
        };
        let key = self.is_key_forbidden(wanted, leaf, is_user || protects);
        match (forbidden, key) {
            (_, true) => ERROR_PRESENT | ERROR_KEY,
            (true, false) => ERROR_PRESENT,
            (false, false) => 0,
        }
    }

    /// Does the page's protection key forbid a load or store? (SDM vol. 3A, "Protection Keys")
    fn is_key_forbidden(&self, wanted: Wanted, leaf: &Leaf, obeys_write: bool) -> bool {
        if wanted.access == Access::Execute || !self.is_long_mode() {
            return false;
        }
        let (enable, rights) = if leaf.rights.user {
            (CR4_PKE, self.cpu.pkru)
        } else {
            (CR4_PKS, self.cpu.msr.pkrs as u32)
        };
        if self.cpu.cr4 & enable == 0 {
            return false;
        }
        let key = (leaf.raw >> 59 & 15) as u32;
        let bits = rights >> (2 * key) & 3;
        bits & 1 != 0 || bits & 2 != 0 && wanted.access == Access::Write && obeys_write
    }

    // ---- the tables in memory ----

    /// Reads the entry at a physical address.
    fn read_entry(&mut self, at: u64) -> Result<u64, Leave> {
        let size = self.entry_size();
        let place = self.gated(at);
        let page = Phys(place.0 & !0xFFF);
        let prepared = self.bus.prepare(page, Access::Read, &mut self.control);
        self.attention |= self.control.is_pending();
        let within = place.0 as usize % PAGE_SIZE;
        match prepared {
            Prepared::Ram(host) | Prepared::Rom(host) if size == 8 => Ok(host.load(within)),
            Prepared::Ram(host) | Prepared::Rom(host) => Ok(host.load::<u32>(within).into()),
            Prepared::Unmapped if size == 8 => Ok(u64::MAX),
            Prepared::Unmapped => Ok(u32::MAX.into()),
            Prepared::Mmio => Err(Leave::Unimplemented(UnimplementedReason::TablesInMmio)),
        }
    }

    fn entry_size(&self) -> usize {
        if self.paging_mode() == Mode::Bits32 { 4 } else { 8 }
    }

    /// Sets flags of the entry at a physical address by an atomic update, if it is still what it
    /// was. In ROM, and where there is nothing, stores vanish.
    fn set_flags(&mut self, wanted: Wanted, at: u64, seen: u64, flags: u64) -> Result<(), Halt> {
        if seen & flags == flags {
            return Ok(());
        }
        let place = self.gated(at);
        let page = Phys(place.0 & !0xFFF);
        let prepared = self.bus.prepare(page, Access::Write, &mut self.control);
        self.attention |= self.control.is_pending();
        let host = match prepared {
            Prepared::Ram(host) => host,
            Prepared::Rom(_) | Prepared::Unmapped => return Ok(()),
            Prepared::Mmio => {
                return Err(Leave::Unimplemented(UnimplementedReason::TablesInMmio).into());
            }
        };
        let (within, size) = (place.0 as usize % PAGE_SIZE, self.entry_size());
        let slot = CodeMap::slot(host.id());
        let lines = lines_of(within, size);
        if self.code_map.lines(slot) & lines != 0 {
            // A fetch is between two instructions, where code may change.
            if self.road == Road::Block && wanted.access != Access::Execute {
                return Err(Leave::Again.into());
            }
            self.attention |= self.code_map.note_store(slot, lines);
        }
        let new = seen | flags;
        let same = if !host.is_atomic(within, size) {
            // A host page at an odd address: nobody shares such memory with a processor.
            host.write(within, &new.to_le_bytes()[..size]);
            true
        } else if size == 8 {
            host.compare_exchange(within, seen, new) == seen
        } else {
            host.compare_exchange(within, seen as u32, new as u32) == seen as u32
        };
        if same { Ok(()) } else { Err(Halt::Race) }
    }

    /// Replaces CR3, and tells the VMM.
    pub(crate) fn load_cr3(&mut self, value: u64) -> Step {
        self.set_cr3(value)?;
        self.bus.invalidate(None);
        Ok(())
    }

    /// Replaces CR3. The VMM is told when nothing can make it happen again.
    pub(crate) fn set_cr3(&mut self, value: u64) -> Step {
        if self.is_paged() && self.cpu.cr4 & CR4_PAE != 0 && !self.is_long_mode() {
            self.cpu.pdpte = self.read_pdptes(value)?;
        }
        self.cpu.cr3 = value;
        self.flush_translations();
        Ok(())
    }

    /// Forgets every translation, and tells the VMM.
    pub(crate) fn forget_translations(&mut self) {
        self.flush_translations();
        self.bus.invalidate(None);
    }

    /// The PDPTE registers as a load of CR3 takes them from memory (SDM vol. 3A, "PDPTE
    /// Registers"). #GP(0) if one has a reserved bit set.
    pub(crate) fn read_pdptes(&mut self, cr3: u64) -> Result<[u64; 4], Leave> {
        let reserved = u64::MAX << self.profile.physical_bits | 0x1E6;
        let mut entries = [0; 4];
        for (entry, i) in entries.iter_mut().zip(0u64..) {
            *entry = self.read_entry((cr3 & 0xFFFF_FFE0) + 8 * i)?;
            if *entry & PTE_P != 0 && *entry & reserved != 0 {
                return Err(Fault::GP.into());
            }
        }
        Ok(entries)
    }
}

/// Where the entry for `linear` lies in a table of this level, and by how much its index is
/// shifted in a linear address.
fn entry_place(mode: Mode, table: u64, level: u32, linear: u64) -> (u64, u32) {
    let (bits, size) = if mode == Mode::Bits32 { (10, 4) } else { (9, 8) };
    let shift = 12 + bits * (level - 1);
    let index = linear >> shift & ((1 << bits) - 1);
    (table + index * size, shift)
}
