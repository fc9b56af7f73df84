//! The target `restart`: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    realmode_fuzz::restart(data);
});
