//! What the two decoders see differently, and what the manual says.

use std::collections::HashMap;
use std::sync::LazyLock;

use iced_x86::{Code, Mnemonic};

use super::compare::{Difference, Seen};

/// Our spelling of iced's name.
pub(crate) fn spelling(theirs: Mnemonic) -> &'static str {
    static NAMES: LazyLock<HashMap<Mnemonic, String>> =
        LazyLock::new(|| Mnemonic::values().map(|name| (name, spell(name))).collect());
    &NAMES[&theirs]
}

fn spell(theirs: Mnemonic) -> String {
    match theirs {
        // SDM vol. 2B, "SAL/SAR/SHL/SHR": one instruction.
        Mnemonic::Sal => "shl".into(),
        Mnemonic::Wait => "fwait".into(),
        Mnemonic::Reservednop => "nop".into(),
        Mnemonic::Getsecq => "getsec".into(),
        // APM vol. 3, "VMGEXIT": VMMCALL with F2 or F3.
        Mnemonic::Vmgexit => "vmmcall".into(),
        // SDM vol. 2B, "PCMPESTRI": REX.W widens the lengths, the name stays.
        Mnemonic::Pcmpestri64 => "pcmpestri".into(),
        Mnemonic::Pcmpestrm64 => "pcmpestrm".into(),
        Mnemonic::Vpcmpestri64 => "vpcmpestri".into(),
        Mnemonic::Vpcmpestrm64 => "vpcmpestrm".into(),
        _ => format!("{theirs:?}").to_ascii_lowercase(),
    }
}

/// VIA's PadLock, which neither manual has.
pub(crate) fn is_via(name: Mnemonic) -> bool {
    matches!(
        name,
        Mnemonic::Montmul
            | Mnemonic::Xstore
            | Mnemonic::Xcryptcbc
            | Mnemonic::Xcryptcfb
            | Mnemonic::Xcryptctr
            | Mnemonic::Xcryptecb
            | Mnemonic::Xcryptofb
            | Mnemonic::Xsha1
            | Mnemonic::Xsha256
            | Mnemonic::Xsha512
            | Mnemonic::Xsha512_alt
            | Mnemonic::Xstore_alt
            | Mnemonic::Ccs_hash
            | Mnemonic::Ccs_encrypt
            | Mnemonic::Undoc
    )
}

/// Does an instruction raise #UD although it is one, outside SMM and with everything enabled?
pub(crate) fn raises_ud(code: Code, bits: u8) -> bool {
    match code.mnemonic() {
        // SDM vol. 2B, "UD": that is what they are for.
        Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2 => true,
        // SDM vol. 2B, "RSM": outside SMM.
        Mnemonic::Rsm => true,
        // SDM vol. 2B, "SYSCALL", "SYSRET": Intel's parts have them in 64-bit code alone.
        Mnemonic::Syscall | Mnemonic::Sysret => bits != 64,
        _ => false,
    }
}

/// Is this difference explained by the manual?
pub(crate) fn is_known(difference: &Difference) -> bool {
    let Difference { bits, iced, ours } = difference;
    let name = |seen: &Seen| seen.as_ref().map_or(String::new(), |(_, name)| name.clone());
    let (iced, ours) = (name(iced), name(ours));
    match (iced.as_str(), ours.as_str()) {
        // Newer than iced: SDM vol. 2B, "RDMSR" (immediate form), "URDMSR", vol. 2D "UWRMSR",
        // "WRMSRNS"; APM vol. 3, "RMPREAD".
        ("", "URDMSR" | "UWRMSR" | "RDMSR" | "WRMSRNS" | "RMPREAD") => *bits == 64,
        // SDM vol. 2B, "PREFETCHh": PREFETCHIT0 and 1 are NOPs outside 64-bit code.
        ("Prefetchit0_m8" | "Prefetchit1_m8", "NOP") => *bits != 64,
        // APM vol. 3, "PREFETCHlevel": reserved types are aliases that may not prefetch.
        (iced, "NOP") if iced.starts_with("Prefetchreserved") => true,
        // 0F A6 and 0F A7 are VIA's.
        (iced, "") => VIA.iter().any(|name| iced.starts_with(name)),
        _ => false,
    }
}

/// How the codes of [`is_via`] begin.
const VIA: [&str; 6] = ["Montmul", "Xstore", "Xcrypt", "Xsha", "Ccs_", "Via_"];
