//! Benchmarks of realmode live in the `[[bench]]` targets of this package.
