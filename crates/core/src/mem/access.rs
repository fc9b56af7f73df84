//! Memory operands: prepared first, then read and written. The hot road for plain memory is
//! inline; everything else goes through an [`Operand`].

use crate::arch::registers::{Reg, SegReg};
use crate::arch::vector;
use crate::bus::{Access, Linear, Phys, Prepared, Reply};
use crate::fault::Fault;
use crate::flags::Flags;
use crate::flight::Span;
use crate::machine::{Leave, Machine, Road, Step};
use crate::mem::code_map::{CodeMap, lines_of};
use crate::mem::host::{HostPage, PAGE_SIZE};
use crate::mem::tlb::Translation;
use crate::mem::walk::By;
use crate::op::Op;
use crate::policy::SplitLock;
use crate::profile::{Generation, Vendor};
use crate::stop::{Direction, Request, UnimplementedReason};
use crate::width::Width;

/// The most bytes of one operand that may lie in a device.
const MMIO_OPERAND: usize = 512;

/// A logical address: the number of a segment register, and an offset.
pub(crate) type Logical = (u8, u64);

/// What a part of an operand is.
#[derive(Clone, Copy)]
enum Place<'m> {
    /// Memory, with the slot of its code lines.
    Host { page: HostPage<'m>, slot: u16 },
    /// Memory for reading; a store goes to the device.
    Rom { page: HostPage<'m> },
    /// A device.
    Mmio,
    /// Nothing.
    Unmapped,
}

/// The bytes of an operand in one page.
#[derive(Clone, Copy)]
struct Part<'m> {
    linear: u64,
    phys: u64,
    len: usize,
    place: Place<'m>,
}

/// A prepared operand: every check is made, every page known. One or two pages, or the two ends
/// of a segment on an 8086.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'m> {
    parts: [Part<'m>; 2],
}

impl<'m> Operand<'m> {
    /// The page, the offset in it and the slot of its code lines, if the operand is plain memory
    /// in one page.
    pub(crate) fn is_one_host_page(&self) -> Option<(&HostPage<'m>, usize, u16)> {
        match &self.parts {
            [Part { place: Place::Host { page, slot }, phys, .. }, Part { len: 0, .. }] => {
                Some((page, *phys as usize % PAGE_SIZE, *slot))
            }
            _ => None,
        }
    }
}

impl<'m> Machine<'_, 'm> {
    /// The offset of a memory operand.
    #[inline(always)]
    pub(crate) fn offset(&self, op: &Op) -> u64 {
        let base = self.cpu.gpr.slot(op.rm);
        let index = self.cpu.gpr.slot(op.index) << (op.scale & 3);
        let sum = base.wrapping_add(index).wrapping_add(i64::from(op.disp) as u64);
        sum & (u64::MAX >> (op.address_shift & 63))
    }

    /// Loads the memory operand.
    #[inline(always)]
    pub(crate) fn load<W: Width>(&mut self, op: &Op) -> Result<W, Leave> {
        self.load_at(op.seg, self.offset(op))
    }

    /// Stores the memory operand.
    #[inline(always)]
    pub(crate) fn store<W: Width>(&mut self, op: &Op, value: W) -> Step {
        self.store_at(op.seg, self.offset(op), value)
    }

    /// Loads from a segment.
    #[inline(always)]
    pub(crate) fn load_at<W: Width>(&mut self, seg: u8, offset: u64) -> Result<W, Leave> {
        let window = &self.windows[usize::from(seg & 7)];
        if offset.wrapping_add(W::BYTES as u64 - 1) < window.read_end {
            let linear = window.base.wrapping_add(offset) & self.linear_mask;
            let entry = self.tlb.entry(linear);
            let within = entry.read ^ linear;
            if within <= (PAGE_SIZE - W::BYTES) as u64 {
                return Ok(entry.host.load(within as usize));
            }
        }
        self.load_slow::<W>(seg, offset)?;
        Ok(W::from_u64(self.loaded))
    }

    /// Stores to a segment.
    #[inline(always)]
    pub(crate) fn store_at<W: Width>(&mut self, seg: u8, offset: u64, value: W) -> Step {
        let window = &self.windows[usize::from(seg & 7)];
        if offset.wrapping_add(W::BYTES as u64 - 1) < window.write_end {
            let linear = window.base.wrapping_add(offset) & self.linear_mask;
            let entry = self.tlb.entry(linear);
            let within = entry.write ^ linear;
            if within <= (PAGE_SIZE - W::BYTES) as u64 {
                let code = self.code_map.lines(entry.slot);
                if code == 0 || code & lines_of(within as usize, W::BYTES) == 0 {
                    entry.host.store(within as usize, value);
                    return Ok(());
                }
            }
        }
        self.store_slow(seg, offset, value)
    }

    /// Reads, changes and writes the memory operand, and sets the flags after the store.
    // The test is that of `store_at`, written out: shared as an inlined function it costs the
    // dispatcher one host instruction a block, 1.1 % of a jump.
    #[inline(always)]
    pub(crate) fn modify<W: Width>(
        &mut self,
        op: &Op,
        change: impl FnOnce(Flags, W) -> (W, Flags),
    ) -> Step {
        let offset = self.offset(op);
        let window = &self.windows[usize::from(op.seg & 7)];
        if offset.wrapping_add(W::BYTES as u64 - 1) < window.write_end {
            let linear = window.base.wrapping_add(offset) & self.linear_mask;
            let entry = self.tlb.entry(linear);
            let within = entry.write ^ linear;
            if within <= (PAGE_SIZE - W::BYTES) as u64 {
                let code = self.code_map.lines(entry.slot);
                if code == 0 || code & lines_of(within as usize, W::BYTES) == 0 {
                    let host = &entry.host;
                    let (value, flags) = change(self.flags, host.load(within as usize));
                    host.store(within as usize, value);
                    self.flags = flags;
                    return Ok(());
                }
            }
        }
        self.modify_slow(op, offset, change)
    }

    /// Copies a value from memory to memory.
    #[inline(always)]
    pub(crate) fn transfer<W: Width>(&mut self, from: Logical, to: Logical) -> Step {
        if self.road == Road::Careful {
            return self.transfer_carefully::<W>(from, to);
        }
        // Plain memory: a load that a failing store makes void has changed nothing.
        let value = self.load_at::<W>(from.0, from.1)?;
        self.store_at(to.0, to.1, value)
    }

    // The slow halves take and return registers only, so that the hot ones need no stack frame.

    /// Both operands are prepared before either is touched, so that a device is not read for a
    /// store that faults.
    #[cold]
    #[inline(never)]
    fn transfer_carefully<W: Width>(&mut self, from: Logical, to: Logical) -> Step {
        let from = self.prepare(from.0, from.1, W::BYTES, Access::Read)?;
        let to = self.prepare(to.0, to.1, W::BYTES, Access::Write)?;
        let value = self.read_value(&from)?;
        self.write_value(&to, W::from_u64(value))
    }

    #[cold]
    #[inline(never)]
    fn modify_slow<W: Width>(
        &mut self,
        op: &Op,
        offset: u64,
        change: impl FnOnce(Flags, W) -> (W, Flags),
    ) -> Step {
        let operand = self.prepare(op.seg, offset, W::BYTES, Access::Write)?;
        let old = self.read_value(&operand)?;
        let (value, flags) = change(self.flags, W::from_u64(old));
        self.write_value(&operand, value)?;
        self.flags = flags;
        Ok(())
    }

    /// Leaves the value in `loaded`.
    #[cold]
    #[inline(never)]
    fn load_slow<W: Width>(&mut self, seg: u8, offset: u64) -> Step {
        let operand = self.prepare(seg, offset, W::BYTES, Access::Read)?;
        self.loaded = self.read_value(&operand)?;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn store_slow<W: Width>(&mut self, seg: u8, offset: u64, value: W) -> Step {
        let operand = self.prepare(seg, offset, W::BYTES, Access::Write)?;
        self.write_value(&operand, value)
    }

    /// The stack pointer moved by `delta` bytes, in the bits the stack uses.
    #[inline(always)]
    pub(crate) fn stack_offset(&self, delta: i64) -> u64 {
        self.cpu.gpr[Reg::Rsp].wrapping_add(delta as u64) & self.stack_mask
    }

    /// Moves the stack pointer to `offset`; bits the stack does not use stay.
    #[inline(always)]
    pub(crate) fn set_stack_offset(&mut self, offset: u64) {
        let rsp = &mut self.cpu.gpr[Reg::Rsp];
        *rsp = *rsp & !self.stack_mask | offset & self.stack_mask;
    }

    /// Pushes a value; RSP moves after the store.
    #[inline(always)]
    pub(crate) fn push<W: Width>(&mut self, value: W) -> Step {
        let offset = self.stack_offset(-(W::BYTES as i64));
        self.store_at(SegReg::Ss as u8, offset, value)?;
        self.set_stack_offset(offset);
        Ok(())
    }

    /// Reads the value `above` bytes above the stack pointer.
    #[inline(always)]
    pub(crate) fn peek<W: Width>(&mut self, above: i64) -> Result<W, Leave> {
        let offset = self.stack_offset(above);
        self.load_at(SegReg::Ss as u8, offset)
    }

    /// How much of a stack slot of so many bytes a selector takes. Of 32 bits Intel parts write and
    /// read 16 (SDM vol. 2B, "PUSH"; far returns, seen on Raptor Cove); AMD's extend with zeros and
    /// read it all (seen on Zen 4).
    pub(crate) fn selector_bytes(&self, slot: usize) -> usize {
        if self.profile.vendor == Vendor::Intel && slot == 4 { 2 } else { slot }
    }

    /// Reads the selector in the stack slot `above` bytes above the stack pointer.
    pub(crate) fn peek_selector<W: Width>(&mut self, above: i64) -> Result<u16, Leave> {
        if self.selector_bytes(W::BYTES) == 2 {
            return self.peek::<u16>(above);
        }
        Ok(self.peek::<W>(above)?.to_u64() as u16)
    }

    /// Prepares an operand: segment check, translation, rights and host pages, before anything
    /// is read or written. `size` is 1 to 4096.
    pub(crate) fn prepare(
        &mut self,
        seg: u8,
        offset: u64,
        size: usize,
        access: Access,
    ) -> Result<Operand<'m>, Leave> {
        let linear = self.check_segment(seg, offset, size, access)?;
        if self.profile.generation < Generation::I80286 && offset + size as u64 > 0x1_0000 {
            // 8086: the rest of the operand lies at offset 0 of the segment.
            let head = 0x1_0000 - offset as usize;
            let start = linear.wrapping_sub(offset) & self.linear_mask;
            let by = self.program();
            let first = self.prepare_part(linear, head, access, by)?;
            let second = self.prepare_part(start, size - head, access, by)?;
            return self.finish_operand([first, second]);
        }
        let by = self.program();
        self.prepare_linear(linear, size, access, by)
    }

    /// Prepares an operand at a linear address: descriptor tables, interrupt vectors, frames.
    pub(crate) fn prepare_linear(
        &mut self,
        linear: u64,
        size: usize,
        access: Access,
        by: By,
    ) -> Result<Operand<'m>, Leave> {
        let head = size.min(PAGE_SIZE - linear as usize % PAGE_SIZE);
        let first = self.prepare_part(linear, head, access, by)?;
        let second = if head < size {
            let next = linear.wrapping_add(head as u64);
            let next = match by {
                By::Tables => self.table_address(next),
                By::Level(_) => next & self.linear_mask,
            };
            self.prepare_part(next, size - head, access, by)?
        } else {
            Part { linear: 0, phys: 0, len: 0, place: Place::Unmapped }
        };
        self.finish_operand([first, second])
    }

    /// An operand that the block road cannot take sends the instruction to the careful road.
    fn finish_operand(&mut self, parts: [Part<'m>; 2]) -> Result<Operand<'m>, Leave> {
        let mut device = 0;
        for part in parts.iter().filter(|part| part.len != 0) {
            if !matches!(part.place, Place::Host { .. }) {
                device += part.len;
            }
        }
        if self.road == Road::Block && (device != 0 || self.control.is_pending()) {
            return Err(Leave::Again);
        }
        if device > MMIO_OPERAND {
            return Err(Leave::Unimplemented(UnimplementedReason::LargeMmio));
        }
        Ok(Operand { parts })
    }

    fn prepare_part(
        &mut self,
        linear: u64,
        len: usize,
        access: Access,
        by: By,
    ) -> Result<Part<'m>, Leave> {
        let page = linear & !0xFFF;
        let write = access == Access::Write;
        let within = linear as usize % PAGE_SIZE;
        let entry = self.tlb.entry(linear);
        let known = (if write { entry.write } else { entry.read }) == page;
        if self.road == Road::Block && known && self.is_user(by) == self.is_user_tlb {
            let (host, slot, phys) = (entry.host, entry.slot, entry.phys);
            if write && self.code_map.lines(slot) & lines_of(within, len) != 0 {
                return Err(Leave::Again);
            }
            let place = Place::Host { page: host, slot };
            return Ok(Part { linear, phys: phys.0 + within as u64, len, place });
        }
        let translation = self.translate_recorded(linear, access, by)?;
        let phys = translation.phys;
        let place = match self.bus.prepare(phys, access, &mut self.control) {
            Prepared::Ram(host) => {
                let slot = CodeMap::slot(host.id());
                self.remember(page, by, &translation, host, slot, !host.has_dirty_bit());
                let hits_code = write && self.code_map.lines(slot) & lines_of(within, len) != 0;
                if self.road == Road::Block && (hits_code || write && host.has_dirty_bit()) {
                    return Err(Leave::Again);
                }
                Place::Host { page: host, slot }
            }
            Prepared::Rom(host) if write => Place::Rom { page: host },
            Prepared::Rom(host) => {
                let slot = CodeMap::slot(host.id());
                self.remember(page, by, &translation, host, slot, false);
                Place::Host { page: host, slot }
            }
            Prepared::Mmio => Place::Mmio,
            Prepared::Unmapped => Place::Unmapped,
        };
        self.attention |= self.control.is_pending();
        Ok(Part { linear, phys: phys.0 + within as u64, len, place })
    }

    /// Keeps a page for the block road, if that is where it was prepared. The careful road may be
    /// replaying a translation that has become old since, or that came with a foreign record.
    pub(crate) fn remember(
        &mut self,
        page: u64,
        by: By,
        translation: &Translation,
        host: HostPage<'m>,
        slot: u16,
        is_plain: bool,
    ) {
        if self.road == Road::Block && translation.lasts && self.is_user(by) == self.is_user_tlb {
            let writable = translation.writable && is_plain;
            self.tlb.fill(page, &Translation { writable, ..*translation }, host, slot);
        }
    }

    /// The translation of a page, from the restart record if it was made before.
    fn translate_recorded(
        &mut self,
        linear: u64,
        access: Access,
        by: By,
    ) -> Result<Translation, Leave> {
        if self.road == Road::Block {
            return self.translate(linear, access, by);
        }
        let page = Linear(linear & !0xFFF);
        let wanted = Span {
            linear: page,
            writable: access == Access::Write,
            user: self.is_user(by),
            ..Span::default()
        };
        if let Some(phys) = self.flight.replay_span(&wanted) {
            // Of no use beyond this instruction.
            return Ok(Translation { phys, writable: false, executable: false, lasts: false });
        }
        let translation = self.translate(linear, access, by)?;
        self.flight.note_span(Span { phys: translation.phys, ..wanted });
        Ok(translation)
    }

    /// Reads a value of at most 8 bytes.
    pub(crate) fn read_value(&mut self, operand: &Operand<'m>) -> Result<u64, Leave> {
        let mut bytes = [0; 8];
        let size = (operand.parts[0].len + operand.parts[1].len).min(8);
        self.read_operand(operand, &mut bytes[..size])?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes a value.
    pub(crate) fn write_value<W: Width>(&mut self, operand: &Operand<'m>, value: W) -> Step {
        self.write_operand(operand, &value.to_u64().to_le_bytes()[..W::BYTES])
    }

    /// The linear address of a descriptor table, which has 64 bits in compatibility mode too.
    pub(crate) fn table_address(&self, linear: u64) -> u64 {
        if self.is_long_mode() { linear } else { linear & self.profile.linear_mask }
    }

    /// Reads memory at a linear address, as the processor reads its tables.
    pub(crate) fn read_linear(&mut self, linear: u64, bytes: &mut [u8]) -> Step {
        let operand =
            self.prepare_linear(self.table_address(linear), bytes.len(), Access::Read, By::Tables)?;
        self.read_operand(&operand, bytes)
    }

    /// Reads a prepared operand whole.
    pub(crate) fn read_operand(&mut self, operand: &Operand<'m>, bytes: &mut [u8]) -> Step {
        let mut rest = bytes;
        for part in &operand.parts {
            let (bytes, tail) = rest.split_at_mut(part.len.min(rest.len()));
            rest = tail;
            self.read_part(part, bytes)?;
        }
        Ok(())
    }

    fn read_part(&mut self, part: &Part<'m>, bytes: &mut [u8]) -> Step {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.road == Road::Block {
            if let Place::Host { page, .. } = part.place {
                page.read(part.phys as usize % PAGE_SIZE, bytes);
            }
            return Ok(());
        }
        self.watch_data(part.linear, bytes.len(), Access::Read);
        let done = self.flight.replay_read(bytes);
        let (rest, phys) = (&mut bytes[done..], part.phys.wrapping_add(done as u64));
        match part.place {
            Place::Host { page, .. } | Place::Rom { page } => {
                page.read(phys as usize % PAGE_SIZE, rest);
                self.flight.note_read(rest);
            }
            Place::Unmapped => {
                rest.fill(0xFF);
                self.flight.note_read(rest);
            }
            Place::Mmio => self.read_mmio(phys, rest)?,
        }
        // The second part of most operands is empty.
        if let Some(observer) = &mut self.observer
            && !bytes.is_empty()
        {
            observer.access(Access::Read, Phys(part.phys), bytes);
        }
        Ok(())
    }

    /// Reads from a device in naturally sized pieces.
    fn read_mmio(&mut self, mut phys: u64, mut bytes: &mut [u8]) -> Step {
        while !bytes.is_empty() {
            let size = piece(phys, bytes.len());
            let Some((now, rest)) = bytes.split_at_mut_checked(size) else { break };
            let reply = self.bus.mmio_read(Phys(phys), size as u8, &mut self.control);
            self.attention |= self.control.is_pending();
            let value = self.take_reply(reply, || Stopped::Mmio(phys, size, None))?;
            now.iter_mut().zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
            self.flight.note_read(now);
            bytes = rest;
            phys = phys.wrapping_add(size as u64);
        }
        Ok(())
    }

    /// Writes a prepared operand whole.
    pub(crate) fn write_operand(&mut self, operand: &Operand<'m>, bytes: &[u8]) -> Step {
        let mut rest = bytes;
        for part in &operand.parts {
            let (bytes, tail) = rest.split_at(part.len.min(rest.len()));
            rest = tail;
            self.write_part(part, bytes)?;
        }
        Ok(())
    }

    fn write_part(&mut self, part: &Part<'m>, bytes: &[u8]) -> Step {
        if self.road == Road::Block {
            if let Place::Host { page, .. } = part.place {
                page.write(part.phys as usize % PAGE_SIZE, bytes);
            }
            return Ok(());
        }
        self.watch_data(part.linear, bytes.len(), Access::Write);
        let done = self.flight.replay_write(bytes.len());
        let (rest, phys) = (&bytes[done..], part.phys.wrapping_add(done as u64));
        if rest.is_empty() {
            return Ok(());
        }
        match part.place {
            Place::Host { page, slot } => {
                let within = phys as usize % PAGE_SIZE;
                self.attention |= self.code_map.note_store(slot, lines_of(within, rest.len()));
                page.write(within, rest);
                self.flight.note_write(rest.len());
            }
            Place::Unmapped => self.flight.note_write(rest.len()),
            Place::Mmio | Place::Rom { .. } => self.write_mmio(phys, rest)?,
        }
        if let Some(observer) = &mut self.observer {
            observer.access(Access::Write, Phys(part.phys), bytes);
        }
        Ok(())
    }

    fn write_mmio(&mut self, mut phys: u64, mut bytes: &[u8]) -> Step {
        while !bytes.is_empty() {
            let size = piece(phys, bytes.len());
            let Some((now, rest)) = bytes.split_at_checked(size) else { break };
            let mut word = [0; 8];
            word.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            let data = u64::from_le_bytes(word);
            let reply = self.bus.mmio_write(Phys(phys), size as u8, data, &mut self.control);
            self.attention |= self.control.is_pending();
            self.take_reply(reply, || Stopped::Mmio(phys, size, Some(data)))?;
            self.flight.note_write(size);
            bytes = rest;
            phys = phys.wrapping_add(size as u64);
        }
        Ok(())
    }

    /// A device's reply: data, a fault, or a request that goes to the VMM.
    fn take_reply(
        &mut self,
        reply: Reply,
        request: impl FnOnce() -> Stopped,
    ) -> Result<u64, Leave> {
        match reply {
            Reply::Ready(value) => Ok(value),
            Reply::Fault(fault) => {
                // A page fault of a device's has no address.
                self.fault_address = self.cpu.cr2;
                Err(fault.into())
            }
            Reply::Pending if self.flight.overflowed => {
                Err(Leave::Unimplemented(UnimplementedReason::LargeMmio))
            }
            Reply::Pending => {
                let (address, size, data, is_port) = match request() {
                    Stopped::Mmio(phys, size, data) => (phys, size as u8, data, false),
                    Stopped::Port(port, size, data) => (u64::from(port), size, data, true),
                };
                self.flight.record.request = Request {
                    address,
                    size,
                    direction: if data.is_some() { Direction::Write } else { Direction::Read },
                    data: data.unwrap_or(0),
                };
                self.flight.record.is_port = is_port;
                self.flight.record.answered = false;
                Err(Leave::Pending)
            }
        }
    }

    /// IN. Sends the instruction to the careful road first, where the port's answer is recorded.
    pub(crate) fn read_port(&mut self, port: u16, size: u8) -> Result<u64, Leave> {
        self.require_careful()?;
        self.watch_port(port, size);
        let mut bytes = [0; 8];
        let len = usize::from(size).min(8);
        if self.flight.replay_read(&mut bytes[..len]) == len {
            return Ok(u64::from_le_bytes(bytes));
        }
        let reply = self.bus.port_in(port, size, &mut self.control);
        self.attention |= self.control.is_pending();
        let value = self.take_reply(reply, || Stopped::Port(port, size, None))?;
        bytes[..len].copy_from_slice(&value.to_le_bytes()[..len]);
        bytes[len..].fill(0);
        self.flight.note_read(&bytes[..len]);
        Ok(u64::from_le_bytes(bytes))
    }

    /// OUT.
    pub(crate) fn write_port(&mut self, port: u16, size: u8, data: u64) -> Step {
        self.require_careful()?;
        self.watch_port(port, size);
        if self.flight.replay_write(usize::from(size)) == usize::from(size) {
            return Ok(());
        }
        let mask = u64::MAX >> (64 - 8 * u32::from(size.clamp(1, 8)));
        let data = data & mask;
        let reply = self.bus.port_out(port, size, data, &mut self.control);
        self.attention |= self.control.is_pending();
        self.take_reply(reply, || Stopped::Port(port, size, Some(data)))?;
        self.flight.note_write(usize::from(size));
        Ok(())
    }

    /// LOCK: an atomic update of an operand of at most 8 bytes. Returns the old value. On a
    /// device it is one read and one write.
    pub(crate) fn update_locked(
        &mut self,
        operand: &Operand<'m>,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, Leave> {
        let size = operand.parts[0].len + operand.parts[1].len;
        match operand.is_one_host_page() {
            Some((page, within, slot)) if page.is_atomic(within, size) => {
                let page = *page;
                self.note_locked(&operand.parts[0], slot);
                let old = exchange_loop(&page, within, size, change);
                if self.observer.is_some() {
                    let new = change(old).to_le_bytes();
                    self.show_locked(&operand.parts[0], &old.to_le_bytes(), &new);
                }
                Ok(old)
            }
            Some(_) => self.update_split(operand, size, change),
            None => self.update_plain(operand, size, change),
        }
    }

    /// LOCK CMPXCHG16B in one host operation, if the operand is memory that allows it. Returns
    /// the old value.
    pub(crate) fn compare_exchange_16(
        &mut self,
        operand: &Operand<'m>,
        old: u128,
        new: u128,
    ) -> Option<u128> {
        let (page, within, slot) = operand.is_one_host_page()?;
        let page = *page;
        self.note_locked(&operand.parts[0], slot);
        let seen = page.compare_exchange_16(within, old, new)?;
        let kept = if seen == old { new } else { seen };
        self.show_locked(&operand.parts[0], &seen.to_le_bytes(), &kept.to_le_bytes());
        Some(seen)
    }

    /// What any store does besides the store, for one that is a host operation.
    fn note_locked(&mut self, part: &Part<'m>, slot: u16) {
        self.watch_data(part.linear, part.len, Access::Write);
        if self.road == Road::Careful {
            let lines = lines_of(part.phys as usize % PAGE_SIZE, part.len);
            self.attention |= self.code_map.note_store(slot, lines);
        }
    }

    /// Shows the observer a locked update of one part.
    fn show_locked(&mut self, part: &Part<'m>, old: &[u8], new: &[u8]) {
        if let Some(observer) = &mut self.observer {
            let len = part.len.min(old.len()).min(new.len());
            observer.access(Access::Read, Phys(part.phys), &old[..len]);
            observer.access(Access::Write, Phys(part.phys), &new[..len]);
        }
    }

    /// A locked operand that no host operation covers: the VMM's policy decides.
    fn update_split(
        &mut self,
        operand: &Operand<'m>,
        size: usize,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, Leave> {
        match self.split_lock {
            SplitLock::Plain => self.update_plain(operand, size, change),
            SplitLock::Stop => Err(Leave::Unimplemented(UnimplementedReason::SplitLock)),
            SplitLock::AlignmentCheck => Err(Fault::new(vector::AC).into()),
        }
    }

    fn update_plain(
        &mut self,
        operand: &Operand<'m>,
        size: usize,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, Leave> {
        let old = self.read_value(operand)?;
        let new = change(old).to_le_bytes();
        self.write_operand(operand, &new[..size.min(8)])?;
        Ok(old)
    }
}

/// What waits for the VMM.
enum Stopped {
    Mmio(u64, usize, Option<u64>),
    Port(u16, u8, Option<u64>),
}

/// The largest naturally aligned piece of `len` bytes at `address`, at most 8 bytes.
fn piece(address: u64, len: usize) -> usize {
    let aligned = 1 << address.trailing_zeros().min(3);
    let fits = 1 << len.ilog2().min(3);
    aligned.min(fits)
}

fn exchange_loop(
    page: &HostPage<'_>,
    within: usize,
    size: usize,
    change: &mut dyn FnMut(u64) -> u64,
) -> u64 {
    fn go<W: Width>(page: &HostPage<'_>, within: usize, change: &mut dyn FnMut(u64) -> u64) -> u64 {
        let mut seen = page.load::<W>(within);
        loop {
            let new = W::from_u64(change(seen.to_u64()));
            let now = page.compare_exchange(within, seen, new);
            if now == seen {
                return seen.to_u64();
            }
            seen = now;
        }
    }
    match size {
        1 => go::<u8>(page, within, change),
        2 => go::<u16>(page, within, change),
        4 => go::<u32>(page, within, change),
        _ => go::<u64>(page, within, change),
    }
}
