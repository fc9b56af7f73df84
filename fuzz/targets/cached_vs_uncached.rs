//! The target `cached_vs_uncached`: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    realmode_fuzz::cached_vs_uncached(data);
});
