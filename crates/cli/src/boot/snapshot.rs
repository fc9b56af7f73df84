//! Snapshots: a run in a file, from which it goes on as if it had not been interrupted.
//!
//! All of it is in the file but the disk's image, of which what the guest has written is. The image
//! is to be the same as when the snapshot was saved.
//!
//! The format of the file is in `snapshot_file.rs`; this is its version table. It grows with any
//! change of what is written: of a struct here or of what it is made of, such as
//! [`Cpu`], the devices of [`State`] (see `STATE_VERSION`).
//!
//! | version | what |
//! |---|---|
//! | 1 | the first |

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU8;

use realmode::{Cpu, PAGE_SIZE, Profile};
use realmode_pc::{MAX_RAM, State};
use serde::{Deserialize, Serialize};

use super::arguments::Typing;
use super::disk::SavedDisk;
use super::inbox::Waiting;
use super::machine::{Firmware, Machine};
use super::options::ClockKind;
use super::snapshot_file::{Source, Target};
use super::turns::Turns;
use super::watch::Watch;
use crate::processor;

/// The version of the format.
const VERSION: u32 = 1;

/// What a file holds, RAM aside.
#[derive(Serialize, Deserialize)]
struct Snapshot {
    made_of: MadeOf,
    cpu: Cpu,
    state: State,
    run: Run,
}

/// What the machine was put together from.
#[derive(Serialize, Deserialize)]
struct MadeOf {
    /// Bytes.
    ram: u64,
    /// As for `--cpu`.
    processor: String,
    exit_port: u16,
    clock: ClockKind,
    firmware: Option<Firmware>,
    disk: Option<SavedDisk>,
}

/// How far the run has come, and what was to come into the machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) instructions: u64,
    pub(super) faults: u64,
    pub(super) turns: Turns,
    pub(super) waiting: Waiting,
    /// What is still to be typed, and at which texts.
    pub(super) typing: Vec<Typing>,
    pub(super) awaited: Watch,
    /// How often the text awaited was on the screen already.
    pub(super) known: u64,
    /// What makes a terminal on COM1 show what it showed.
    #[serde(with = "serde_bytes")]
    pub(super) com1: Vec<u8>,
}

/// Saves a machine that is between two runs.
pub(super) fn save(target: &Target, machine: &Machine<'_>, run: Run) -> Result<(), String> {
    let profile = machine.emulator.profile();
    let made_of = MadeOf {
        ram: machine.ram.len() as u64,
        processor: processor::text(profile),
        exit_port: machine.pc.exit_port(),
        clock: machine.clock,
        firmware: machine.firmware.cloned(),
        disk: machine.disk.as_ref().map(|disk| disk.saved()).transpose()?,
    };
    let (cpu, state) = (machine.cpu.clone(), machine.pc.save());
    target.write(VERSION, &Snapshot { made_of, cpu, state, run }, machine.ram)
}

/// A snapshot that was read, to build a machine from.
pub(super) struct Loaded {
    source: Source<Snapshot>,
    path: PathBuf,
    profile: Profile,
}

impl Loaded {
    /// Reads a file.
    pub(super) fn open(path: &Path) -> Result<Loaded, String> {
        let source = Source::<Snapshot>::open(path, VERSION)?;
        let Snapshot { made_of, run, .. } = &source.contents;
        let is_ram =
            (1..=MAX_RAM).contains(&made_of.ram) && made_of.ram.is_multiple_of(PAGE_SIZE as u64);
        let is_sound =
            is_ram && made_of.disk.as_ref().is_none_or(SavedDisk::is_sound) && run.turns.is_sound();
        match processor::with_features(&made_of.processor) {
            Ok(profile) if is_sound => Ok(Loaded { source, path: path.to_owned(), profile }),
            _ => Err(source.contradiction()),
        }
    }

    /// How much RAM the machine has, in bytes.
    pub(super) fn ram(&self) -> u64 {
        self.source.contents.made_of.ram
    }

    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(super) fn clock(&self) -> ClockKind {
        self.source.contents.made_of.clock
    }

    /// The machine's time, which a real clock goes on from.
    pub(super) fn now(&self) -> u64 {
        self.source.contents.state.now()
    }

    pub(super) fn exit_port(&self) -> u16 {
        self.source.contents.made_of.exit_port
    }

    pub(super) fn disk(&self) -> Option<&SavedDisk> {
        self.source.contents.made_of.disk.as_ref()
    }

    /// The BIOS and what goes with it; taken, since the rest needs it no more.
    pub(super) fn take_firmware(&mut self) -> Option<Firmware> {
        self.source.contents.made_of.firmware.take()
    }

    /// Its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a machine, made of the same, into the saved state.
    pub(super) fn restore(self, machine: &mut Machine<'_>) -> Result<(), String> {
        let path = self.path;
        let ram: &[AtomicU8] = machine.ram;
        let Snapshot { state, cpu, run, .. } = self.source.fill(ram)?;
        machine.pc.restore(&state).map_err(|error| format!("{}: {error}", path.display()))?;
        (machine.cpu, machine.run) = (cpu, run);
        Ok(())
    }
}
