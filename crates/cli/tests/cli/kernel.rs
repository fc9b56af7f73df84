//! Kernels: started by themselves or by a BIOS, by their headers.

use crate::{file, realmode};

const FLAT: &[u8] = include_bytes!("../../../../testdata/guests/multiboot.bin");
const ELF: &[u8] = include_bytes!("../../../../testdata/guests/multiboot.elf");

/// A BIOS that halts at once.
fn halting_bios(name: &str) -> String {
    let mut bios = vec![0x90; 0x1_0000];
    bios[0xFFF0..0xFFF2].copy_from_slice(&[0xFA, 0xF4]);
    file(name, &bios)
}

/// A bzImage with setup code of one sector, before something.
fn bzimage(then: &[u8]) -> Vec<u8> {
    let mut image = vec![0x90; 1024];
    image[0x1F1] = 1;
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&[0x0C, 0x02]);
    image[0x211] = 1;
    image.extend(then);
    image
}

#[test]
fn a_multiboot_kernel_is_started_without_a_bios() {
    for (name, kernel) in [("multiboot.bin", FLAT), ("multiboot.elf", ELF)] {
        let kernel = file(name, kernel);
        let arguments = ["boot", "--kernel", &kernel, "--append", "one two", "--memory", "8"];
        let said = realmode(&arguments).expect(0, &[]);
        for text in ["one two by realmode\r\n", "00100000 00700000 00000001", "real 0000B002"] {
            assert!(said.stdout.contains(text), "{}", said.stdout);
        }
    }
}

#[test]
fn a_kernel_with_both_headers_is_multiboot_unless_there_is_a_bios() {
    let kernel = file("both.bin", &bzimage(FLAT));
    let said = realmode(&["boot", "--kernel", &kernel]).expect(0, &[]);
    assert!(said.stdout.starts_with(" by realmode"), "{}", said.stdout);
    let bios = halting_bios("both-bios.bin");
    let said = realmode(&["boot", "--kernel", &kernel, "--bios", &bios]).expect(4, &[]);
    assert!(!said.stdout.contains("by realmode"), "{}", said.stdout);
}

#[test]
fn a_kernel_is_refused_where_it_cannot_be_started() {
    let bios = halting_bios("kernel-bios.bin");
    let (multiboot, linux) = (file("refused.elf", ELF), file("refused.bz", &bzimage(&[0; 512])));
    let neither = file("neither.bin", &[0x90; 4096]);
    for (kernel, more, words) in [
        (&neither, &["--bios", &bios][..], ["1BADB002h", "HdrS"]),
        (&neither, &[], ["1BADB002h", "HdrS"]),
        (&multiboot, &["--bios", &bios], ["multiboot", "leave out --bios"]),
        (&linux, &[], ["bzImage", "add --bios"]),
        (&multiboot, &["--cpu", "286"], ["needs 32 bits", "--cpu 286"]),
        (&multiboot, &["--floppy", &linux], ["no floppy", "leave out --floppy"]),
        (&multiboot, &["--memory", "2"], ["0x200000", "bytes of RAM"]),
    ] {
        let arguments = [&["boot", "--kernel", kernel][..], more].concat();
        let said = realmode(&arguments).expect(2, &words);
        assert!(said.stdout.is_empty(), "{}", said.stdout);
    }
}
