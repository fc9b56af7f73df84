//! GRUB's rescue floppy under SeaBIOS, where the system has both (Debian's packages
//! `grub-rescue-pc` and `seabios`).

use core::sync::atomic::AtomicU8;

use realmode::Profile;
use realmode_pc::{Ending, Pc, SECTOR};

use super::devices::InMemory;
use super::firmware::{FLOPPY, file, seabios};
use super::multiboot::ELF;
use super::terminal::{Terminal, converse};

const RESCUE: &str = "/usr/lib/grub-rescue/grub-rescue-floppy.img";

/// Menu, prompt, commands, and a multiboot kernel, which does under this loader as under ours: what
/// is waited for is what the keys before it bring up. The BIOS has room for 15 keys.
const STEPS: [(&str, &str); 10] = [
    ("GNU GRUB  version 2.06", "c"),
    ("grub> ", "ls\r"),
    ("(fd0)", "cat /boot/"),
    ("cat /boot/", "grub/i386-pc/"),
    ("grub/i386-pc/", "partmap.lst\r"),
    ("part_msdos", "help cat\r"),
    ("Show the contents of a file.", "multiboot (hd0"),
    ("multiboot (hd0", ")0+3 one two\r"),
    (")0+3 one two", "boot\r"),
    ("timer 00000003 \nfault 00000048 \nreal 0000B002 \ntimer 00000003", ""),
];

fn run(floppy: &[u8], bios: &[AtomicU8]) -> (u64, u64, String) {
    let mut image = ELF.to_vec();
    image.resize(64 * SECTOR, 0);
    let mut disk = InMemory(image);
    let ram: Vec<AtomicU8> = (0..32 << 20).map(|_| AtomicU8::new(0)).collect();
    let mut pc = Pc::new(&ram, Terminal::new()).expect("32 MiB of whole pages");
    pc.add_file("floppyimg/grub.img", floppy).expect("there is room");
    pc.attach_disk(&mut disk).expect("it has sectors");
    let instructions = converse(&mut pc, bios, &Profile::INTEL, 400_000_000, &STEPS);
    assert_eq!(pc.ending(), Some(Ending::PowerOff));
    assert!(pc.console().text().contains("one two by GRUB 2.06"), "{}", pc.console().text());
    (instructions, pc.now(), pc.console().text())
}

#[test]
fn grub_answers_at_its_prompt_and_starts_a_multiboot_kernel_the_same_each_time() {
    let Some((mut floppy, bios)) = file(RESCUE).zip(seabios()) else { return };
    // The sizes of floppies are exact.
    floppy.resize(FLOPPY, 0);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| run(&floppy, &bios));
        let second = run(&floppy, &bios);
        assert_eq!(first.join().expect("no panic"), second);
    });
}
