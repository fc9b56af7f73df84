//! Vector readers, case generators and oracles, for tests.
