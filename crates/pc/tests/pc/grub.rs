//! GRUB's rescue floppy under SeaBIOS, where the system has both (Debian's packages
//! `grub-rescue-pc` and `seabios`).

use core::sync::atomic::AtomicU8;

use realmode::Profile;
use realmode_pc::Pc;

use super::firmware::{FLOPPY, file, seabios};
use super::terminal::{Terminal, converse};

const RESCUE: &str = "/usr/lib/grub-rescue/grub-rescue-floppy.img";

/// Menu, prompt, and commands: what is waited for is what the keys before it bring up. The BIOS
/// has room for 15 keys.
const STEPS: [(&str, &str); 7] = [
    ("GNU GRUB  version 2.06", "c"),
    ("grub> ", "ls\r"),
    ("(fd0)", "cat /boot/"),
    ("cat /boot/", "grub/i386-pc/"),
    ("grub/i386-pc/", "partmap.lst\r"),
    ("part_msdos", "help cat\r"),
    ("Show the contents of a file.", ""),
];

fn run(floppy: &[u8], bios: &[AtomicU8]) -> (u64, u64, String) {
    let ram: Vec<AtomicU8> = (0..32 << 20).map(|_| AtomicU8::new(0)).collect();
    let mut pc = Pc::new(&ram, Terminal::new()).expect("32 MiB of whole pages");
    pc.add_file("floppyimg/grub.img", floppy).expect("there is room");
    let instructions = converse(&mut pc, bios, &Profile::INTEL, 400_000_000, &STEPS);
    (instructions, pc.now(), pc.console().text())
}

#[test]
fn grub_shows_its_menu_and_answers_at_its_prompt_the_same_each_time() {
    let Some((mut floppy, bios)) = file(RESCUE).zip(seabios()) else { return };
    // The sizes of floppies are exact.
    floppy.resize(FLOPPY, 0);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| run(&floppy, &bios));
        let second = run(&floppy, &bios);
        assert_eq!(first.join().expect("no panic"), second);
    });
}
