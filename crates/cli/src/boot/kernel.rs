//! Kernels: which headers one has decides how it is started.

use std::path::Path;

use realmode::{Generation, Profile};
use realmode_pc::{is_bzimage, is_multiboot};

/// Refuses what a BIOS cannot boot. A kernel that is a bzImage and multiboot too is a bzImage to
/// it.
pub(super) fn check_with_bios(kernel: &[u8], path: &Path) -> Result<(), String> {
    match (is_bzimage(kernel), is_multiboot(kernel)) {
        (true, _) => Ok(()),
        (false, true) => Err(format!(
            "{} is a multiboot kernel, which is started without a BIOS: leave out --bios",
            path.display()
        )),
        (false, false) => Err(neither(path)),
    }
}

/// Refuses what is not started without a BIOS.
pub(super) fn check_alone(kernel: &[u8], path: &Path, profile: &Profile) -> Result<(), String> {
    match (is_multiboot(kernel), is_bzimage(kernel)) {
        (true, _) if profile.generation < Generation::I80386 => Err(format!(
            "{} is a multiboot kernel, which needs 32 bits; --cpu {} has 16",
            path.display(),
            profile.name
        )),
        (true, _) => Ok(()),
        (false, true) => {
            Err(format!("{} is a bzImage, which calls a BIOS: add --bios FILE", path.display()))
        }
        (false, false) => Err(neither(path)),
    }
}

fn neither(path: &Path) -> String {
    format!(
        "{} is no kernel: it has neither a multiboot header (1BADB002h in its first 8 KiB) nor \
         that of a bzImage (`HdrS` at 202h)",
        path.display()
    )
}
