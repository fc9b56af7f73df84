//! Bits of paging-structure entries and of page-fault error codes (SDM vol. 3A, "Paging").

/// Present.
pub const PTE_P: u64 = 1 << 0;
/// Writable.
pub const PTE_W: u64 = 1 << 1;
/// User mode may use it.
pub const PTE_U: u64 = 1 << 2;
/// Accessed.
pub const PTE_A: u64 = 1 << 5;
/// Dirty.
pub const PTE_D: u64 = 1 << 6;
/// Page size: above the page tables, the entry maps a large page.
pub const PTE_PS: u64 = 1 << 7;
/// Global.
pub const PTE_G: u64 = 1 << 8;
/// No fetches, if EFER.NXE is set.
pub const PTE_NX: u64 = 1 << 63;

/// Error code: the page is present, its rights forbid the access.
pub const ERROR_PRESENT: u16 = 1 << 0;
/// Error code: a store.
pub const ERROR_WRITE: u16 = 1 << 1;
/// Error code: a user-mode access.
pub const ERROR_USER: u16 = 1 << 2;
/// Error code: a reserved bit is set in an entry.
pub const ERROR_RESERVED: u16 = 1 << 3;
/// Error code: a fetch.
pub const ERROR_FETCH: u16 = 1 << 4;
/// Error code: a protection key forbids the access.
pub const ERROR_KEY: u16 = 1 << 5;
/// Error code: an access of a shadow stack.
pub const ERROR_SHADOW_STACK: u16 = 1 << 6;
