//! The dispatcher: runs block after block, and an instruction alone where a block will not do.

use crate::arch::registers::{RIP_SLOT, SegReg};
use crate::cache::{Blocks, Place};
use crate::machine::{Leave, Machine};
use crate::observe::Counters;
use crate::op::Op;
use crate::stop::Stop;
use crate::view::{self, Views};

use super::attend::Next;
use super::code_mode::{context, decode_key};

/// One call of `run`: the processor in motion, and what it takes blocks from.
pub(super) struct Runner<'r, 'm> {
    pub(super) m: Machine<'r, 'm>,
    pub(super) blocks: &'r mut Blocks<'m>,
    pub(super) views: &'r mut Views,
    pub(super) counters: &'r mut Counters,
    pub(super) exceptions: u32,
    pub(super) fuel: u64,
    pub(super) view: u64,
    /// The block that ran last, whose links are tried first.
    pub(super) last: usize,
}

/// An instruction on its way: the op and the bytes it came from.
#[derive(Clone, Copy)]
pub(super) struct Current {
    pub(super) op: Op,
    pub(super) bytes: [u8; 15],
}

impl Current {
    /// No instruction: what failed is its fetch, or the delivery of an event.
    pub(super) const NONE: Current = Current { op: Op::EMPTY, bytes: [0; 15] };
}

/// What became of an attempt to run a block.
enum Ran {
    Block,
    NoBlock,
    Stop(Stop),
}

impl Runner<'_, '_> {
    pub(super) fn run(&mut self) -> Stop {
        if self.m.flight.is_held
            && let Some(stop) = self.resume()
        {
            return stop;
        }
        loop {
            let mut alone = false;
            if self.m.attention {
                match self.attend() {
                    Next::Go => {}
                    Next::Step => alone = true,
                    Next::Stop(stop) => return stop,
                }
            }
            if self.fuel == 0 {
                return Stop::Budget;
            }
            if !alone {
                match self.run_block() {
                    Ran::Block => continue,
                    Ran::Stop(stop) => return stop,
                    Ran::NoBlock => {}
                }
            }
            if let Some(stop) = self.step() {
                return stop;
            }
        }
    }

    /// Runs the block at RIP, if there is one and the budget covers it.
    #[inline]
    fn run_block(&mut self) -> Ran {
        if self.m.view_stale || self.m.epoch_stale {
            self.refresh_view();
        }
        let rip = self.m.cpu.rip;
        let linear = self.m.code_base.wrapping_add(rip) & self.m.linear_mask;
        let index = match self.blocks.follow(self.last, rip, self.view) {
            Some(index) => index,
            None => {
                let index = self.blocks.index(linear);
                if !self.blocks.is_proved(index, rip, self.view) && !self.prepare_block(linear) {
                    return Ran::NoBlock;
                }
                self.blocks.link(self.last, index);
                index
            }
        };
        self.last = index;
        let Some(line) = self.blocks.line(index) else {
            return Ran::NoBlock;
        };
        let ops = line.ops();
        let count = ops.len() as u64;
        if count > self.fuel {
            return Ran::NoBlock;
        }
        self.fuel -= count;
        let m = &mut self.m;
        m.control.retired += count;
        m.cpu.rip = rip.wrapping_add(u64::from(line.len()));
        *m.cpu.gpr.slot_mut(RIP_SLOT) = m.cpu.rip;
        for op in ops {
            let handler = op.handler.unwrap_or(crate::decode::undefined);
            if let Err(leave) = handler(m, op) {
                let current = Current { op: *op, bytes: line.bytes_of(op) };
                return self.leave_block(current, leave);
            }
        }
        Ran::Block
    }

    /// Puts a block for RIP in the cache. False if there can be none.
    #[cold]
    #[inline(never)]
    fn prepare_block(&mut self, linear: u64) -> bool {
        self.try_prepare_block(linear).is_some()
    }

    fn try_prepare_block(&mut self, linear: u64) -> Option<()> {
        if self.blocks.is_empty() {
            return None;
        }
        let rip = self.m.cpu.rip;
        let to_limit = if self.m.cpu.is_64_bit_code() {
            if !self.m.is_canonical(rip) {
                return None;
            }
            u64::MAX
        } else {
            (self.m.ip_limit + 1).checked_sub(rip)?
        };
        let page = self.m.code_page(linear).ok()?;
        if self.m.attention {
            // The bus changed something while it was asked for the page.
            return None;
        }
        let context = context(self.m.cpu, self.m.profile);
        let key = decode_key(self.m.cpu, self.m.profile);
        let place = Place { ip: rip, linear, key, page: &page, to_limit };
        let built = self.blocks.prove_or_build(&place, self.view, context, self.m.code_map)?;
        if built {
            self.counters.blocks_built += 1;
        } else {
            self.counters.blocks_proved += 1;
        }
        Some(())
    }

    fn refresh_view(&mut self) {
        if core::mem::take(&mut self.m.epoch_stale) {
            self.views.begin_epoch();
            self.counters.epochs += 1;
        }
        self.m.view_stale = false;
        let cs = self.m.cpu.segment(SegReg::Cs);
        self.view = self.views.view(view::Context {
            cs_base: cs.base,
            cs_limit: cs.limit,
            key: decode_key(self.m.cpu, self.m.profile),
        });
    }

    /// An op did not simply finish: the rest of the block has not been executed.
    #[inline(never)]
    fn leave_block(&mut self, current: Current, leave: Leave) -> Ran {
        let op = &current.op;
        let rest = u64::from(op.left) - 1;
        self.fuel += rest;
        self.m.control.retired -= rest;
        if leave == Leave::Branch {
            return Ran::Block;
        }
        // RIP and the budget go back to before the instruction; `settle` charges what it costs.
        self.fuel += 1;
        self.m.control.retired -= 1;
        let start = self.m.cpu.rip.wrapping_sub(op.until_end());
        let stop = if leave == Leave::Again {
            self.m.cpu.rip = start;
            self.execute_careful(&current, false)
        } else {
            self.settle(&current, start, false, leave)
        };
        stop.map_or(Ran::Block, Ran::Stop)
    }
}
