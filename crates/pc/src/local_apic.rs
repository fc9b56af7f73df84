//! The local APIC: priorities, its timer, and the pin by which the interrupt controllers of a PC
//! reach the processor (SDM vol. 3A, "Advanced Programmable Interrupt Controller").
//!
//! One processor has nobody to send to but itself. Not modelled: x2APIC mode, the TSC deadline,
//! the error register, clusters of logical destinations.

/// Where it is, and the size of its registers.
pub(crate) const LOCAL_APIC: u64 = 0xFEE0_0000;
pub(crate) const PAGE: u64 = 0x1000;

/// IA32_APIC_BASE: this is the processor that starts by itself; the APIC is on.
pub(crate) const APIC_BASE_MSR: u32 = 0x1B;
const BOOTSTRAP: u64 = 1 << 8;
const GLOBAL_ENABLE: u64 = 1 << 11;

const ID: u64 = 0x20;
const VERSION: u64 = 0x30;
const TASK_PRIORITY: u64 = 0x80;
const PROCESSOR_PRIORITY: u64 = 0xA0;
const END_OF_INTERRUPT: u64 = 0xB0;
const LOGICAL_DESTINATION: u64 = 0xD0;
const DESTINATION_FORMAT: u64 = 0xE0;
const SPURIOUS: u64 = 0xF0;
const IN_SERVICE: u64 = 0x100;
const TRIGGER_MODE: u64 = 0x180;
const REQUESTS: u64 = 0x200;
const COMMAND_LOW: u64 = 0x300;
const COMMAND_HIGH: u64 = 0x310;
const LOCAL_VECTORS: u64 = 0x320;
const INITIAL_COUNT: u64 = 0x380;
const CURRENT_COUNT: u64 = 0x390;
const DIVIDE: u64 = 0x3E0;

/// Six entries of the local vector table, and version 14h.
const VERSION_VALUE: u32 = 5 << 16 | 0x14;
const SOFTWARE_ENABLE: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
const PERIODIC: u32 = 1 << 17;
/// What software may write to an entry of the local vector table.
const VECTOR_WRITABLE: u32 = 0x3_A7FF;
/// Delivery modes, bits 8 to 10.
const FIXED: u32 = 0;
const LOWEST: u32 = 1;
const NMI: u32 = 4;
const EXTERNAL: u32 = 7;

/// Entries of the local vector table, in the order of their registers.
const TIMER: usize = 0;
const LINT0: usize = 3;

/// A set of vectors.
type Vectors = [u32; 8];

/// What a write asks of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Nothing,
    Nmi,
    /// A level-triggered interrupt of this vector is over.
    End(u8),
    /// The task priority changed, which CR8 shows too.
    Priority(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct LocalApic {
    is_enabled: bool,
    id: u32,
    task_priority: u8,
    logical: u32,
    format: u32,
    spurious: u32,
    in_service: Vectors,
    level: Vectors,
    requests: Vectors,
    command: [u32; 2],
    vectors: [u32; 6],
    divide: u32,
    initial: u32,
    /// When the count began; nothing if it is not counting.
    started: Option<u64>,
}

fn highest(vectors: &Vectors) -> Option<u8> {
    let word = vectors.iter().rposition(|word| *word != 0)?;
    Some((word as u32 * 32 + vectors[word].ilog2()) as u8)
}

fn set(vectors: &mut Vectors, vector: u8, on: bool) {
    let bit = 1 << (vector & 31);
    let word = &mut vectors[usize::from(vector >> 5)];
    *word = if on { *word | bit } else { *word & !bit };
}

impl LocalApic {
    /// As firmware hands it over: the interrupt controllers' INTR comes through LINT0, NMI through
    /// LINT1.
    pub(crate) const BOOTED: LocalApic = LocalApic {
        is_enabled: true,
        id: 0,
        task_priority: 0,
        logical: 0,
        format: u32::MAX,
        spurious: SOFTWARE_ENABLE | 0xFF,
        in_service: [0; 8],
        level: [0; 8],
        requests: [0; 8],
        command: [0; 2],
        vectors: [MASKED, MASKED, MASKED, EXTERNAL << 8, NMI << 8, MASKED],
        divide: 0,
        initial: 0,
        started: None,
    };

    /// Is it at this address?
    pub(crate) fn has(&self, address: u64) -> bool {
        self.is_enabled && address & !(PAGE - 1) == LOCAL_APIC
    }

    /// IA32_APIC_BASE.
    pub(crate) fn base(&self) -> u64 {
        LOCAL_APIC | BOOTSTRAP | if self.is_enabled { GLOBAL_ENABLE } else { 0 }
    }

    /// Writes IA32_APIC_BASE. It does not move, and has no x2APIC mode. Switching it off resets it.
    pub(crate) fn set_base(&mut self, value: u64) -> bool {
        if value & !(GLOBAL_ENABLE | BOOTSTRAP) != LOCAL_APIC {
            return false;
        }
        let is_enabled = value & GLOBAL_ENABLE != 0;
        if self.is_enabled && !is_enabled {
            *self = LocalApic { is_enabled, spurious: 0xFF, vectors: [MASKED; 6], ..Self::BOOTED };
        }
        self.is_enabled = is_enabled;
        true
    }

    fn is_on(&self) -> bool {
        self.is_enabled && self.spurious & SOFTWARE_ENABLE != 0
    }

    /// The priority class that an interrupt has to be above.
    fn priority(&self) -> u8 {
        let served = highest(&self.in_service).unwrap_or(0) & 0xF0;
        if self.task_priority & 0xF0 >= served { self.task_priority } else { served }
    }

    /// The vector that it has for the processor.
    fn deliverable(&self) -> Option<u8> {
        let vector = highest(&self.requests)?;
        (self.is_on() && vector & 0xF0 > self.priority() & 0xF0).then_some(vector)
    }

    /// Do the interrupt controllers reach the processor?
    fn passes_external(&self) -> bool {
        let lint = self.vectors[LINT0];
        !self.is_enabled || self.is_on() && lint & (MASKED | 7 << 8) == EXTERNAL << 8
    }

    /// The INTR that the processor sees, given that of the interrupt controllers.
    pub(crate) fn is_requesting(&self, external: bool) -> bool {
        self.deliverable().is_some() || external && self.passes_external()
    }

    /// The processor takes an interrupt: its vector, unless it is the interrupt controllers'.
    pub(crate) fn acknowledge(&mut self) -> Option<u8> {
        if let Some(vector) = self.deliverable() {
            set(&mut self.requests, vector, false);
            set(&mut self.in_service, vector, true);
            return Some(vector);
        }
        (!self.passes_external()).then_some(self.spurious as u8)
    }

    /// An interrupt arrives. Vectors below 16 are none.
    pub(crate) fn request(&mut self, vector: u8, is_level: bool) {
        if self.is_on() && vector >= 16 {
            set(&mut self.requests, vector, true);
            set(&mut self.level, vector, is_level);
        }
    }

    /// The task priority, as CR8 has it and writes it.
    pub(crate) fn set_task_priority(&mut self, priority: u8) {
        self.task_priority = priority << 4;
    }

    /// Nanoseconds of a count.
    fn period(&self) -> u64 {
        // SDM vol. 3A, "Divide Configuration Register": 111b divides by 1, 0 by 2, 1 by 4.
        let code = self.divide & 3 | self.divide >> 1 & 4;
        let divisor = 1 << ((code + 1) & 7);
        u64::from(self.initial) * divisor
    }

    /// When the timer next expires.
    pub(crate) fn next_event(&self) -> Option<u64> {
        self.started.map(|started| started.saturating_add(self.period()))
    }

    /// Lets the timer do what is due by now.
    pub(crate) fn settle(&mut self, now: u64) {
        let Some(due) = self.next_event().filter(|due| *due <= now) else { return };
        let entry = self.vectors[TIMER];
        if entry & MASKED == 0 {
            self.request(entry as u8, false);
        }
        let (late, period) = (now - due, self.period());
        self.started = (entry & PERIODIC != 0 && period > 0).then(|| now - late % period);
    }

    fn current_count(&self, now: u64) -> u32 {
        let Some(started) = self.started else { return 0 };
        let divisor = (self.period() / u64::from(self.initial.max(1))).max(1);
        let elapsed = now.saturating_sub(started) / divisor;
        u64::from(self.initial).saturating_sub(elapsed) as u32
    }

    /// Reads the register at an offset that is a multiple of 16.
    fn register(&self, offset: u64, now: u64) -> u32 {
        let word = |vectors: &Vectors| vectors[(offset >> 4 & 7) as usize];
        match offset {
            ID => self.id,
            VERSION => VERSION_VALUE,
            TASK_PRIORITY => self.task_priority.into(),
            PROCESSOR_PRIORITY => self.priority().into(),
            LOGICAL_DESTINATION => self.logical,
            DESTINATION_FORMAT => self.format,
            SPURIOUS => self.spurious,
            IN_SERVICE..TRIGGER_MODE => word(&self.in_service),
            TRIGGER_MODE..REQUESTS => word(&self.level),
            REQUESTS..0x280 => word(&self.requests),
            COMMAND_LOW => self.command[0],
            COMMAND_HIGH => self.command[1],
            LOCAL_VECTORS..INITIAL_COUNT => self.vector(offset).copied().unwrap_or(0),
            INITIAL_COUNT => self.initial,
            CURRENT_COUNT => self.current_count(now),
            DIVIDE => self.divide,
            _ => 0,
        }
    }

    fn vector(&self, offset: u64) -> Option<&u32> {
        self.vectors.get(((offset - LOCAL_VECTORS) >> 4) as usize)
    }

    /// Reads up to eight bytes at an address of its page.
    pub(crate) fn read(&self, address: u64, now: u64) -> u64 {
        let offset = address & (PAGE - 1);
        // What lies between the registers reads as zero.
        let value = if offset & 0xC == 0 { self.register(offset & !0xF, now) } else { 0 };
        u64::from(value) >> (8 * (offset & 3))
    }

    /// Writes a register. Only aligned accesses of 32 bits are defined.
    pub(crate) fn write(&mut self, address: u64, value: u32, now: u64) -> Signal {
        let offset = address & (PAGE - 1);
        match offset {
            ID => self.id = value & 0xFF00_0000,
            TASK_PRIORITY => {
                self.task_priority = value as u8;
                return Signal::Priority(self.task_priority >> 4);
            }
            END_OF_INTERRUPT => return self.end_of_interrupt(),
            LOGICAL_DESTINATION => self.logical = value & 0xFF00_0000,
            DESTINATION_FORMAT => self.format = value | 0x0FFF_FFFF,
            SPURIOUS => {
                self.spurious = value & 0x3FF;
                if value & SOFTWARE_ENABLE == 0 {
                    self.vectors.iter_mut().for_each(|entry| *entry |= MASKED);
                }
            }
            COMMAND_LOW => {
                self.command[0] = value & !0x1000;
                return self.send();
            }
            COMMAND_HIGH => self.command[1] = value & 0xFF00_0000,
            INITIAL_COUNT => {
                self.initial = value;
                self.started = (value != 0).then_some(now);
            }
            DIVIDE => {
                // What was counted stays counted.
                let left = self.current_count(now);
                self.divide = value & 0xB;
                if self.started.is_some() {
                    let divisor = self.period() / u64::from(self.initial.max(1));
                    let done = u64::from(self.initial - left.min(self.initial)) * divisor;
                    self.started = Some(now.saturating_sub(done));
                }
            }
            LOCAL_VECTORS..INITIAL_COUNT if offset & 0xF == 0 => self.write_vector(offset, value),
            _ => {}
        }
        Signal::Nothing
    }

    fn write_vector(&mut self, offset: u64, value: u32) {
        let is_on = self.is_on();
        if let Some(entry) = self.vectors.get_mut(((offset - LOCAL_VECTORS) >> 4) as usize) {
            *entry = value & VECTOR_WRITABLE | if is_on { 0 } else { MASKED };
        }
    }

    fn end_of_interrupt(&mut self) -> Signal {
        let Some(vector) = highest(&self.in_service) else { return Signal::Nothing };
        set(&mut self.in_service, vector, false);
        if self.level[usize::from(vector >> 5)] >> (vector & 31) & 1 != 0 {
            return Signal::End(vector);
        }
        Signal::Nothing
    }

    /// Is a message with this destination for this processor?
    pub(crate) fn is_addressed(&self, destination: u8, is_logical: bool) -> bool {
        let own = if is_logical { self.logical >> 24 } else { self.id >> 24 } as u8;
        destination == 0xFF || if is_logical { destination & own != 0 } else { destination == own }
    }

    /// Sends an interprocessor interrupt, to itself if to anybody.
    fn send(&mut self) -> Signal {
        let [low, high] = self.command;
        let is_for_us = match low >> 18 & 3 {
            0 => self.is_addressed((high >> 24) as u8, low >> 11 & 1 != 0),
            1 | 2 => true,
            _ => false,
        };
        match low >> 8 & 7 {
            FIXED | LOWEST if is_for_us => self.request(low as u8, false),
            NMI if is_for_us => return Signal::Nmi,
            _ => {}
        }
        Signal::Nothing
    }

    /// Can it have come to this by `now`?
    pub(crate) fn is_sound(&self, now: u64) -> bool {
        self.started.is_none_or(|started| started <= now && self.initial != 0)
            && self.vectors.iter().all(|entry| entry & !VECTOR_WRITABLE == 0)
    }
}

#[cfg(test)]
#[path = "local_apic_tests.rs"]
mod tests;
