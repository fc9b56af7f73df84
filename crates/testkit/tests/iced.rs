//! Our decoder against iced-x86, which models a modern Intel processor and knows most of AMD's:
//! the same bytes are an instruction for both or for neither, with the same length and name.

#[path = "iced/compare.rs"]
mod compare;
#[path = "iced/differences.rs"]
mod differences;
#[path = "iced/spaces.rs"]
mod spaces;
