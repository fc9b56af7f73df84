//! Reading MOO suites, and running them.

#[path = "moo/builder.rs"]
mod builder;
#[path = "moo/damage.rs"]
mod damage;
#[path = "moo/directory.rs"]
mod directory;
#[path = "moo/pools.rs"]
mod pools;
#[path = "moo/reading.rs"]
mod reading;
#[path = "moo/running.rs"]
mod running;
#[path = "moo/suites.rs"]
mod suites;
