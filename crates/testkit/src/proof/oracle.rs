//! Which forms the host's processor can judge, and why not the others.

use std::collections::BTreeMap;

use realmode::Profile;
use realmode::encodings::Encoding;

use super::case::Mode;
use super::form::Form;

/// Why the host's processor cannot be asked for an instruction, if it cannot.
pub fn reason(form: &Form) -> Option<&'static str> {
    named(&form.encoding).or_else(|| in_mode(form))
}

fn named(encoding: &Encoding) -> Option<&'static str> {
    if encoding.family() == "xsave" {
        return Some("works on what the host's kernel has enabled");
    }
    Some(match encoding.name() {
        "SGDT" | "SIDT" | "SLDT" | "SMSW" | "STR" => "CR4.UMIP is set, and Linux answers instead",
        "CPUID" => "the VMM answers",
        "RDTSC" | "RDTSCP" | "RDPRU" => "a clock",
        "RDRAND" | "RDSEED" => "a random number",
        "RDPID" => "the number of the processor it runs on",
        "XGETBV" => "what the host's kernel has enabled",
        "SYSCALL" | "SYSENTER" => "enters the host's kernel",
        "VMCALL" | "VMMCALL" => "enters the host's hypervisor, if there is one",
        "INT1" => "Linux takes it for a breakpoint of its own",
        "MONITOR" | "MWAIT" | "MONITORX" | "MWAITX" | "UMONITOR" | "UMWAIT" | "TPAUSE" => {
            "waits for other processors"
        }
        "XBEGIN" | "XABORT" | "XTEST" | "XEND" => "a transaction may always abort",
        _ => return None,
    })
}

/// A processor under an operating system is not in real mode, and neither is anyone else here.
fn in_mode(form: &Form) -> Option<&'static str> {
    (form.mode == Mode::Real).then_some("a processor under an operating system is not in real mode")
}

/// Rows that the host's processor cannot judge in any mode, by the reason.
pub fn unproved(profile: &Profile) -> BTreeMap<&'static str, Vec<String>> {
    let mut rows: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for mode in [Mode::Bits16, Mode::Bits32, Mode::Bits64] {
        for form in Form::all(mode, profile) {
            if let Some(reason) = reason(&form) {
                let list = rows.entry(reason).or_default();
                let row = form.encoding.to_string();
                if !list.contains(&row) {
                    list.push(row);
                }
            }
        }
    }
    rows
}
