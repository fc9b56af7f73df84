#!/bin/bash -eu
# Builds every fuzz target with its seeds: docs/FUZZING.md.
cd "$SRC/realmode"

# The builder's toolchain, whatever rust-toolchain.toml says.
toolchain=$(cd / && rustup show active-toolchain | cut -d ' ' -f 1)
export RUSTUP_TOOLCHAIN=$toolchain

cargo fuzz build -O --debug-assertions --fuzz-dir fuzz
for seeds in fuzz/seeds/*; do
    target=$(basename "$seeds")
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    (cd "$seeds" && zip -q "$OUT/${target}_seed_corpus.zip" ./*)
done
