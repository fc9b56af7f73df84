//! The core in a program that has neither std nor alloc nor libc, and no libraries at all.

use std::process::Command;

#[test]
fn the_core_links_and_runs_without_std_alloc_and_libc() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("skipped: the program without std is for x86-64 Linux");
        return;
    }
    let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-std");
    // `.ci/run` builds it optimised, and without the feature: then it also proves that nothing
    // panics.
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--features", "find-panics"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/no-std-check/Cargo.toml")])
        .args(["--target-dir", target])
        .output()
        .expect("the cargo that runs this test can be run");
    let messages = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() && messages.contains("--offline") {
        println!("skipped: cargo has to fetch something first: {}", messages.trim());
        return;
    }
    assert!(built.status.success(), "{messages}");
    let program = format!("{target}/debug/realmode-no-std-check");
    let status = Command::new(&program).status().expect("what was built can be run");
    assert_eq!(status.code(), Some(0), "{program}");
}
