//! What inputs reached: proof that a target is about what it says.

/// Counts of one input or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Instructions decoded or executed.
    pub instructions: u64,
    /// Exceptions that the guest met.
    pub faults: u64,
    /// Blocks retired because the guest wrote to them.
    pub blocks_retired: u64,
    /// Requests of devices that the VMM answered.
    pub requests: u64,
    /// Inputs that the host's side took.
    pub accepted: u64,
    /// Inputs that the host's side refused.
    pub refused: u64,
}

impl Reached {
    /// Adds other counts.
    pub fn add(&mut self, other: &Reached) {
        self.instructions += other.instructions;
        self.faults += other.faults;
        self.blocks_retired += other.blocks_retired;
        self.requests += other.requests;
        self.accepted += other.accepted;
        self.refused += other.refused;
    }
}
