//! The target `decode_vs_iced`: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    realmode_fuzz::decode_vs_iced(data);
});
