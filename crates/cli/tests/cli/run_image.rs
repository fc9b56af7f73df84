//! What programs that compare emulators ask of `run-image`.

use crate::{file, realmode};

#[test]
fn run_image_prints_seconds_and_the_three_result_words() {
    // mov [3000h], sp; mov word [3002h], ABCDh; mov [3004h], cs; hlt
    let code =
        [0x89, 0x26, 0x00, 0x30, 0xC7, 0x06, 0x02, 0x30, 0xCD, 0xAB, 0x8C, 0x0E, 0x04, 0x30, 0xF4];
    let said = realmode(&["run-image", &file("results.bin", &code)]).expect(0, &[]);
    let fields: Vec<&str> = said.stdout.split_whitespace().collect();
    assert_eq!(fields[1..], ["0ff0", "abcd", "0000"]);
    assert!(fields[0].parse::<f64>().is_ok_and(|seconds| seconds >= 0.0));
}

#[test]
fn run_image_says_so_if_there_is_no_hlt() {
    // lidt [1010h], whose limit is 0; int3
    let mut code = [0; 32];
    code[..6].copy_from_slice(&[0x0F, 0x01, 0x1E, 0x10, 0x10, 0xCC]);
    realmode(&["run-image", &file("no-hlt.bin", &code)]).expect(1, &["did not reach HLT"]);
}
