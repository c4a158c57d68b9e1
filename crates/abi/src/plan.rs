//! The plan of patches of a process: what to map, and which bytes to replace by which. A file in memory, read only.
//!
//! ```text
//!  Header ── areas: [Area] ── patches: [Patch] ── originals: [Original] ── mappings ── counters: [Counter] ── bytes of the areas
//! ```
//!
//! The agent copies areas into private anonymous memory at their addresses (MAP_FIXED_NOREPLACE), makes that executable and no longer
//! writable, and then makes the patches, each only if the expected bytes are there. An area that cannot be mapped takes its patches with
//! it. Areas are never unmapped: a thread may be in a stub whenever it sleeps.

/// The first word: "plan" in ASCII.
pub const MAGIC: u32 = 0x6e61_6c70;
/// The most bytes that a patch replaces.
pub const PATCH: usize = 16;

/// The beginning.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`crate::VERSION`].
    pub version: u32,
    /// How many areas.
    pub areas: u32,
    /// How many patches.
    pub patches: u32,
    /// How many originals.
    pub originals: u32,
    /// How many mappings: all that the process has with code, in order, for its unwinder (`unwind::Mapping`, 32 bytes each).
    pub mappings: u32,
    /// Offset of the first area from the beginning of the plan; the others follow it.
    pub areas_at: u64,
    /// Offset of the first patch.
    pub patches_at: u64,
    /// Offset of the first original.
    pub originals_at: u64,
    /// Offset of the first mapping.
    pub mappings_at: u64,
    /// Offset of the first counter.
    pub counters_at: u64,
    /// How many counters.
    pub counters: u64,
}

/// Memory with stubs, near the module that they belong to.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Area {
    /// Its address: whole pages.
    pub address: u64,
    /// Its bytes: whole pages.
    pub len: u64,
    /// Offset of its contents in the plan; the rest of it is filled with int3.
    pub at: u64,
    /// Bytes of its contents.
    pub content: u64,
    /// The number of those, from the first on, that are stubs of traced functions, in which the unwinder finds a shadow frame. Hooks' beginnings and other
    /// code follow. A multiple of the size of a stub of its variant ([`crate::stub::layout`]).
    pub stubs: u64,
    /// A [`crate::stub::Variant`]. Stubs of the variant Entry have no shadow frame.
    pub variant: u32,
    /// How many steps its contents have.
    pub steps: u32,
    /// Where they are, from its beginning: a multiple of 4, the first one behind the code that the steps are of.
    pub steps_at: u64,
    /// Where the functions are that its stubs are for, from its beginning: a multiple of 4. For each stub 4 bytes (i32) have the distance of
    /// the function's first instruction from the area.
    pub entries_at: u64,
}

/// The last bytes of an area: what somebody who looks at the process from outside has to know of it, found by where its mapping ends. The
/// agent writes them before the area becomes code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Trailer {
    /// [`Trailer::MAGIC`].
    pub magic: u64,
    /// [`crate::VERSION`].
    pub version: u32,
    /// As [`Area::variant`].
    pub variant: u32,
    /// As [`Area::address`].
    pub address: u64,
    /// As [`Area::len`].
    pub len: u64,
    /// As [`Area::stubs`].
    pub stubs: u64,
    /// Distance of a thread's data ([`crate::thread::Thread`]) from its `fs` base.
    pub tls: i64,
    /// As [`Area::steps`].
    pub steps: u32,
    /// As [`Area::steps_at`].
    pub steps_at: u32,
    /// As [`Area::entries_at`].
    pub entries_at: u32,
    /// 0.
    pub reserved: u32,
}

impl Trailer {
    /// The first word: "traparea" in ASCII.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"traparea");
    /// Its bytes.
    pub const SIZE: usize = size_of::<Trailer>();

    /// Reads it; none where it is no trailer of this version, or contradicts itself.
    pub fn parse(bytes: &[u8; Trailer::SIZE]) -> Option<Trailer> {
        let long = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b));
        let trailer = Trailer {
            magic: long(0)?,
            version: word(8)?,
            variant: word(12)?,
            address: long(16)?,
            len: long(24)?,
            stubs: long(32)?,
            tls: long(40)? as i64,
            steps: word(48)?,
            steps_at: word(52)?,
            entries_at: word(56)?,
            reserved: word(60)?,
        };
        let is_one = trailer.magic == Trailer::MAGIC && trailer.version == crate::VERSION;
        (is_one && trailer.fits()).then_some(trailer)
    }

    /// Whether its parts lie within the area.
    fn fits(&self) -> bool {
        let Some(variant) = crate::stub::Variant::of(self.variant) else { return false };
        let size = u64::from(crate::stub::layout(variant).size);
        let steps = u64::from(self.steps) * size_of::<Step>() as u64;
        self.address.checked_add(self.len).is_some_and(|end| end <= 1 << 47)
            && self.stubs.is_multiple_of(size)
            && self.stubs <= u64::from(self.steps_at)
            && u64::from(self.steps_at) + steps <= u64::from(self.entries_at)
            && u64::from(self.entries_at) + self.stubs / size * 4 <= self.len
    }
}

/// From where on code of an area stands for an instruction of the program, up to the next step. In order of their places; the last one is
/// behind that code and stands for nothing.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Step {
    /// Where, from the area's beginning, and [`Step::PUSHED`], [`Step::SKIPPED`].
    pub at: u32,
    /// The instruction, from the area's beginning; 0: none.
    pub original: i32,
}

impl Step {
    /// The stack pointer is 8 lower than it was before the instruction.
    pub const PUSHED: u32 = 1 << 31;
    /// It is 128 lower: the program may have data there (the red zone of the System V ABI for x86-64, 3.2.2).
    pub const SKIPPED: u32 = 1 << 30;
    /// The place without the flags.
    pub const PLACE: u32 = !(Step::PUSHED | Step::SKIPPED);

    /// By how much the stack pointer is lower than before the instruction.
    pub const fn lowered(self) -> u64 {
        let pushed = if self.at & Step::PUSHED != 0 { 8 } else { 0 };
        pushed + if self.at & Step::SKIPPED != 0 { 128 } else { 0 }
    }
}

/// Bytes to be replaced. All lie in one module's text, and the jump that replaces them leads into the area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Patch {
    /// Where.
    pub address: u64,
    /// The area that it jumps into, by its number.
    pub area: u32,
    /// How many bytes.
    pub len: u8,
    /// 1: an instruction of the program begins in bytes 1 to 4 and is replaced too, so that no thread may be there.
    pub splits: u8,
    /// How many bytes of the function lie in front of them and stay.
    pub skipped: u8,
    /// 0.
    pub reserved: u8,
    /// The bytes that must be there.
    pub old: [u8; PATCH],
    /// The bytes that replace them.
    pub new: [u8; PATCH],
}

/// A counter (semaphore) of static probes: 16 bits. The program comes to those only while it is above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Counter {
    /// Where, in memory that the program may write.
    pub address: u64,
    /// A patch of its module, by its number: it is raised with that, and lowered where that is still there.
    pub patch: u32,
    /// 0.
    pub reserved: u32,
}

/// Where the original of a hooked function goes on.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Original {
    /// A [`crate::message::Hook`].
    pub hook: u32,
    /// The patch that hooks it, by its number: without the patch, the original is not used.
    pub patch: u32,
    /// The address of its relocated beginning, which jumps back behind the patch.
    pub address: u64,
}
