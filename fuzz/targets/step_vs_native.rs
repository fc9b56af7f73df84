//! The target `step_vs_native`: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    realmode_fuzz::step_vs_native(data);
});
