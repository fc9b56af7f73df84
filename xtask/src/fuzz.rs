//! `cargo xtask fuzz`: builds the fuzz targets once, and runs them.

mod course;
mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use course::Course;
use programs::{Programs, Sanitizer};

/// Runs the fuzz targets of fuzz/, each with the seeds and with what it has found so far
/// (docs/FUZZING.md says what each checks).
///
/// Needs cargo-fuzz (cargo install cargo-fuzz --locked), a C++ compiler, and a nightly toolchain
/// or the stable one of this repository.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask fuzz --minutes 10                           all targets, sharing ten minutes
  cargo xtask fuzz --minutes 60 --target run --target step
  cargo xtask fuzz --seconds-each 20 --json               what the gate does
  cargo xtask fuzz --target boot --input FILE             replay a crash
  cargo xtask fuzz --seeds                                write the seed corpora anew

A crash is made as small as can be and printed as the command that replays it. Exit code 1 if there
was one.")]
pub(crate) struct Options {
    /// How long to go on, for all targets together
    #[arg(long, default_value_t = 5.0, value_name = "N")]
    minutes: f64,
    /// How long to run each target, instead of --minutes
    #[arg(long, value_name = "N")]
    seconds_each: Option<u64>,
    /// A target to run, instead of all; several can be given
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Targets that run at the same time, as many as there are processors if not given
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Run one input of one target, and show what happens
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Write the seed corpora anew
    #[arg(long = "seeds")]
    writes_seeds: bool,
    /// Only build
    #[arg(long = "build")]
    only_builds: bool,
    /// What watches over memory
    #[arg(long, value_enum, default_value_t = Sanitizer::Address)]
    sanitizer: Sanitizer,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn main(options: &Options) -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent")?;
    let fuzz = root.join("fuzz");
    if options.writes_seeds {
        return write_seeds(&fuzz);
    }
    let targets = chosen(&fuzz, &options.targets)?;
    if let Some(input) = &options.input {
        let [target] = &targets[..] else {
            return Err("--input is of one target: say which with --target NAME".into());
        };
        let programs = Programs::build(&fuzz, options.sanitizer, &targets)?;
        return Ok(if programs.replay(target, input)? {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let programs = Programs::build(&fuzz, options.sanitizer, &targets)?;
    if options.only_builds {
        return Ok(ExitCode::SUCCESS);
    }
    let jobs = crate::jobs(options.jobs).min(targets.len());
    let each = options.seconds_each.map_or_else(
        || {
            Duration::from_secs_f64(
                60.0 * options.minutes.max(0.0) * jobs as f64 / targets.len() as f64,
            )
        },
        Duration::from_secs,
    );
    let courses = run_all(&programs, &targets, jobs, each.max(Duration::from_secs(1)))?;
    if options.json {
        println!("{:#}", as_json(&courses));
    } else {
        print(&courses);
    }
    let is_clean = courses.iter().all(|course| course.crash.is_none());
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The targets that were asked for, or all there are seeds for.
fn chosen(fuzz: &Path, asked: &[String]) -> Result<Vec<String>, String> {
    let seeds = fuzz.join("seeds");
    let entries = seeds.read_dir().map_err(|e| format!("cannot list {}: {e}", seeds.display()))?;
    let mut all: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    if let Some(unknown) = asked.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no target {unknown}: give one of {}", all.join(", ")));
    }
    Ok(if asked.is_empty() { all } else { asked.to_vec() })
}

fn write_seeds(fuzz: &Path) -> Result<ExitCode, String> {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--example", "write_seeds", "--manifest-path"])
        .arg(fuzz.join("Cargo.toml"))
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the targets, some of them at the same time.
fn run_all(
    programs: &Programs,
    targets: &[String],
    jobs: usize,
    each: Duration,
) -> Result<Vec<Course>, String> {
    let waiting = Mutex::new(targets.iter());
    let bar = crate::bar(targets.len() as u64);
    bar.enable_steady_tick(Duration::from_secs(1));
    let work = || {
        let next = || waiting.lock().expect("nothing panics with it").next();
        let mut done = Vec::new();
        while let Some(target) = next() {
            bar.set_message(format!("{target}, {} s", each.as_secs()));
            done.push(programs.run(target, each)?);
            bar.inc(1);
        }
        Ok::<_, String>(done)
    };
    let mut courses = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            courses.extend(thread.join().expect("a target is a process of its own")?);
        }
        Ok::<_, String>(())
    })?;
    bar.finish_and_clear();
    courses.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(courses)
}

fn print(courses: &[Course]) {
    println!(
        "{:20} {:>12} {:>10} {:>10} {:>7}",
        "target", "executions", "a second", "new", "crashes"
    );
    for Course { target, executions, per_second, new, crash } in courses {
        let crashes = u8::from(crash.is_some());
        println!("{target:20} {executions:>12} {per_second:>10} {new:>10} {crashes:>7}");
    }
    for (course, crash) in courses.iter().filter_map(|c| Some((c, c.crash.as_ref()?))) {
        println!("CRASH {}: {}\n  {}", course.target, crash.what, crash.replay(&course.target));
    }
    let failed = courses.iter().filter(|course| course.crash.is_some()).count();
    println!("{} passed, {failed} failed", courses.len() - failed);
}

fn as_json(courses: &[Course]) -> Value {
    let targets: Vec<Value> = courses
        .iter()
        .map(|course| {
            let crash = course
                .crash
                .as_ref()
                .map(|crash| json!({ "what": crash.what, "replay": crash.replay(&course.target) }));
            json!({
                "target": course.target,
                "executions": course.executions,
                "per_second": course.per_second,
                "new": course.new,
                "crash": crash,
            })
        })
        .collect();
    let failed = courses.iter().filter(|course| course.crash.is_some()).count();
    json!({ "targets": targets, "passed": courses.len() - failed, "failed": failed })
}
