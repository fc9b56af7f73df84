//! Writes the seed corpora anew: `cargo xtask fuzz --seeds`.
#![forbid(unsafe_code)]

use std::fs;
use std::io;

use realmode_fuzz::seeds;

fn main() -> io::Result<()> {
    let directory = seeds::directory();
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    let seeds = seeds::all();
    for seed in &seeds {
        let place = directory.join(seed.target);
        fs::create_dir_all(&place)?;
        fs::write(place.join(&seed.name), &seed.bytes)?;
    }
    let bytes: usize = seeds.iter().map(|seed| seed.bytes.len()).sum();
    println!("{} seeds, {bytes} bytes, in {}", seeds.len(), directory.display());
    Ok(())
}
