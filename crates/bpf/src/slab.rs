//! Programs that keep the objects of a slab cache, from their allocation to their release.
//!
//! ```text
//! state: running? ─► this cache? ─► who, when, stack ─► objects[address] = value      at the allocation
//!                    this cache? ─► delete objects[address]                           at the release
//! ```
//!
//! All programs are at raw tracepoints, whose arguments are numbers. The table of objects is the one inner map of a map of maps, so that
//! it can be replaced as a whole: the call that replaces it returns when no program uses the old one any more. Key 0, which is
//! no object's address, has the counters of that table: a program that has the table has its counters too.
//!
//! The kernel skips a program that is running on that CPU already, as it may be when an interrupt comes. So each place has two
//! programs, one after the other: the second one does what the first one was not there for. Only an event in an interrupt
//! that has interrupted an interrupt can be missed by both.
//!
//! Not here: which cache that is, and what becomes of the objects.

mod programs;

pub(crate) use programs::is_of;
pub use programs::{MAX_NAME, allocated, listed, released};

/// Bytes of the address of an object.
pub const KEY: u32 = 8;
/// Frames of a kernel stack.
pub const FRAMES: usize = 24;
/// Offsets in the value of an object.
pub mod value {
    /// When it was allocated, ns of CLOCK_MONOTONIC: u64.
    pub const TIME: usize = 0;
    /// The thread, in the initial pid namespace: u32.
    pub const TID: usize = 8;
    /// The process, in the initial pid namespace: u32.
    pub const PID: usize = 12;
    /// The name of the thread: 16 bytes.
    pub const COMM: usize = 16;
    /// The instruction in user space at which the thread has entered the kernel: u64, 0 where it has none.
    pub const USER_PC: usize = 32;
    /// Bytes: u64.
    pub const SIZE: usize = 40;
    /// The inode of the executable: u64, 0 where it has none.
    pub const INODE: usize = 48;
    /// The place that has called the allocator: u64, 0 where the tracepoint does not have it.
    pub const CALL_SITE: usize = 56;
    /// The kernel's stack, innermost first: u64 each, 0 after the last one.
    pub const STACK: usize = 64;
    /// Bytes of a value.
    pub const BYTES: usize = STACK + 8 * super::FRAMES;
}

/// Offsets in the value of key 0: counters, u64 each.
pub mod counter {
    /// Allocations that did not fit.
    pub const FULL: usize = 0;
    /// Allocations that the table refused for another reason.
    pub const FAILED: usize = 8;
    /// Objects whose address was allocated again: their release has passed no tracepoint.
    pub const REPLACED: usize = 16;
    /// Releases that the table refused, because it was in use on that CPU. The second program may have done what the first one could not.
    pub const KEPT: usize = 24;
}

/// Offsets in the one value of the map of the state, u64 each.
pub mod state {
    /// Not 0: allocations are recorded.
    pub const RUNNING: usize = 0;
    /// The address of the cache, where a program has found it by its name; 0: not yet.
    pub const CACHE: usize = 8;
    /// Bytes that programs use.
    pub const BYTES: usize = 16;
}

/// Offsets in the kernel's structs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offsets {
    /// `task_struct.mm`.
    pub task_mm: i16,
    /// `mm_struct.exe_file`.
    pub mm_exe: i16,
    /// `file.f_inode`.
    pub file_inode: i16,
    /// `inode.i_ino`.
    pub inode_number: i16,
    /// `pt_regs.ip`.
    pub regs_ip: i16,
    /// `kmem_cache.name`.
    pub cache_name: i16,
    /// `kmem_cache.size`.
    pub cache_size: i16,
    /// `kmem_cache.object_size`.
    pub cache_object_size: i16,
}

/// Offsets in the record of a cache, which [`listed`] writes.
pub mod record {
    /// Its address: u64.
    pub const ADDRESS: usize = 0;
    /// Bytes that an object takes: u32.
    pub const SIZE: usize = 8;
    /// Bytes of an object: u32.
    pub const OBJECT_SIZE: usize = 12;
    /// Its name, which ends with NUL.
    pub const NAME: usize = 16;
    /// Bytes of a record.
    pub const BYTES: usize = NAME + 64;
}

/// How a program knows that an object is one of the cache. Arguments are those of the tracepoint, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// An argument is the address of the cache.
    Cache {
        /// The argument.
        arg: u8,
        /// The address.
        address: u64,
    },
    /// An argument is the address of a cache of this name: the first one that is seen is remembered in the state.
    Named {
        /// The argument.
        arg: u8,
        /// The name.
        name: String,
    },
    /// An argument is the address of the cache that is in the state.
    Known {
        /// The argument.
        arg: u8,
    },
    /// The allocation has this size, and the allocator says that the object (argument `object`) is of the cache.
    Sized {
        /// The argument with the size.
        arg: u8,
        /// The size.
        size: u64,
        /// The BTF id of `bpf_get_kmem_cache`, and the address of the cache; none: the size decides.
        of: Option<(i32, u64)>,
    },
    /// An argument is the order of the pages.
    Order {
        /// The argument.
        arg: u8,
        /// The order; none: any.
        order: Option<u32>,
    },
    /// The allocator says that the object is of the cache.
    Asked {
        /// The BTF id of `bpf_get_kmem_cache`.
        function: i32,
        /// The address of the cache.
        address: u64,
    },
    /// The table decides: what is not in it is no object of the cache.
    Tracked,
}

/// The size of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// Of each object.
    Fixed(u64),
    /// A page, as often as two to the power of an argument.
    Pages {
        /// The argument.
        order: u8,
        /// Bytes of a page, as a power of two.
        shift: u8,
    },
}

/// A place where objects are allocated or released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// How it knows the cache.
    pub which: Which,
    /// The argument that is the object.
    pub object: u8,
    /// The argument that is the caller of the allocator.
    pub call_site: Option<u8>,
}

/// The maps, by their descriptors.
#[derive(Clone, Copy, Debug)]
pub struct Maps {
    /// The map of maps, whose only entry is the table of objects.
    pub objects: i32,
    /// An array with the state as its only value.
    pub state: i32,
    /// A word of each CPU: the object that the first program at an allocation has taken last.
    pub taken: i32,
}

/// One of the two programs at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It comes first.
    First,
    /// It does what the first one was not there for.
    Second,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(which: Which) -> Place {
        Place { which, object: 1, call_site: Some(0) }
    }

    const MAPS: Maps = Maps { objects: 3, state: 4, taken: 5 };

    #[test]
    fn every_kind_of_place_makes_programs() {
        let offsets = Offsets { cache_name: 104, ..Offsets::default() };
        let all = [
            Which::Cache { arg: 2, address: 0xffff_8880_0001_2300 },
            Which::Named { arg: 2, name: "filp".into() },
            Which::Named { arg: 2, name: "x".repeat(MAX_NAME) },
            Which::Known { arg: 2 },
            Which::Sized { arg: 3, size: 64, of: Some((17, 1)) },
            Which::Sized { arg: 3, size: 64, of: None },
            Which::Order { arg: 1, order: Some(1) },
            Which::Order { arg: 1, order: None },
            Which::Asked { function: 17, address: 1 },
            Which::Tracked,
        ];
        for which in all {
            for size in [Bytes::Fixed(64), Bytes::Pages { order: 1, shift: 12 }] {
                for turn in [Turn::First, Turn::Second] {
                    let program = allocated(&MAPS, &offsets, &place(which.clone()), size, turn).unwrap();
                    assert!(program.insns.len() > 60, "{program}");
                }
            }
            assert!(released(&MAPS, &offsets, &place(which)).unwrap().insns.len() > 8);
        }
    }

    /// The stack of a program, which is 512 bytes, has room for everything.
    #[test]
    fn the_stack_has_room() {
        const { assert!(programs::slot::NAME >= -512) };
        assert_eq!(value::BYTES, 256);
        assert!(listed(&Offsets::default()).is_ok());
    }
}
