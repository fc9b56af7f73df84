//! The examples of realmode are the `[[example]]` targets of this package.
