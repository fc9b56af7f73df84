//! Links the program without start files and libraries where there would be some.

fn main() {
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie"] {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
