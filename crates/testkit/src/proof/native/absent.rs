//! Hosts that cannot be the oracle.

use core::cell::Cell;
use core::convert::Infallible;

use super::{FpuImage, Unavailable};
use crate::proof::{Case, Layout, Outcome};

/// The host's processor, which is none that executes cases: nobody has one.
#[derive(Debug)]
pub struct Native(Infallible);

#[allow(missing_docs)] // as of the other one
impl Native {
    pub fn new(_: u16) -> Result<Native, Unavailable> {
        Err(Unavailable::OtherHost)
    }

    pub fn layout(&self) -> Layout {
        match self.0 {}
    }

    pub fn page(&self, _: usize) -> &[Cell<u64>; 512] {
        match self.0 {}
    }

    pub fn run(&mut self, _: &Case) -> Outcome {
        match self.0 {}
    }

    pub fn run_with_fpu(&mut self, _: &Case, _: &FpuImage) -> (Outcome, FpuImage) {
        match self.0 {}
    }
}
