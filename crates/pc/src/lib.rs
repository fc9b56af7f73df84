//! A small PC around the emulator.
#![no_std]
#![forbid(unsafe_code)]
