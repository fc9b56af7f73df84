//! Reading MOO suites, and running them.

#[path = "moo/builder.rs"]
mod builder;
#[path = "moo/damage.rs"]
mod damage;
#[path = "moo/directory.rs"]
mod directory;
#[path = "moo/reading.rs"]
mod reading;
#[path = "moo/suites.rs"]
mod suites;
