//! The one integration binary of the core: whole instructions through the public API.
#![allow(missing_docs, unreachable_pub)]

#[macro_use]
mod native;

mod guest;
mod hostile;

mod alu;
mod bcd;
mod bits;
mod blocks;
mod branch;
mod breakpoint;
mod cases;
mod condition;
mod disasm;
mod exchange;
mod facts;
mod far;
mod long;
mod mov;
mod muldiv;
mod native_string;
mod no_std;
mod paging;
mod privilege;
mod protected;
mod restart;
mod shift;
mod snapshot;
mod string;
mod system;
mod task;
mod virtual_8086;
