//! The target `run`: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    realmode_fuzz::run(data);
});
