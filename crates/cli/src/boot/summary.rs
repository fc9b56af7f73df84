//! What a machine is, in words and numbers that tell it from others: a record is of one machine.

use std::path::Path;

use super::files;
use super::journal::Summary;
use super::options::Args;

/// Tells all that decides what the guest does, apart from what enters it while it runs.
pub(super) fn of(args: &Args) -> Result<Summary, String> {
    let mut summary = Summary::new();
    if let Some(image) = &args.image {
        let place = format!("at {:04X}:{:04X}", image.segment, image.offset);
        summary.push(("image", format!("{}, {place}", fingerprint(&image.path)?)));
    }
    for (name, path) in [
        ("bios", &args.bios),
        ("vga", &args.vga),
        ("floppy", &args.floppy),
        ("disk", &args.disk),
        ("kernel", &args.kernel),
    ] {
        if let Some(path) = path {
            summary.push((name, fingerprint(path)?));
        }
    }
    if args.kernel.is_some() {
        summary.push(("append", args.append.clone()));
    }
    for device in &args.boot_order {
        summary.push(("boot-order", format!("{device:?}").to_lowercase()));
    }
    let features = args.cpu.features.bits();
    summary.push(("memory", format!("{} MiB", args.memory)));
    summary.push(("cpu", format!("{}, features {features:x}", args.cpu.name)));
    summary.push(("clock", format!("{:?}", args.clock).to_lowercase()));
    summary.push(("exit-port", format!("{:x}", args.exit_port)));
    for typing in &args.typing {
        let to = if typing.is_serial { "COM1" } else { "the keyboard" };
        summary.push(("type", format!("{:?} to {to} at {:?}", typing.text, typing.trigger)));
    }
    Ok(summary)
}

/// How long a file is, and a check sum of it.
fn fingerprint(path: &Path) -> Result<String, String> {
    let (bytes, sum) = files::sum(path)?;
    Ok(format!("{bytes} bytes, CRC-32 {sum:08x}"))
}
