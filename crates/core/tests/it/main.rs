//! The one integration binary of the core: whole instructions through the public API.
#![allow(missing_docs, unreachable_pub)]

mod guest;

mod alu;
mod branch;
mod far;
mod mov;
mod shift;
mod string;
mod system;
