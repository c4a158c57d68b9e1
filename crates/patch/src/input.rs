//! What a plan is made of. Addresses are those of the file, before it is loaded somewhere.

use crate::Refusal;
use crate::relocate::JUMP;
use abi::message::Hook;
use std::ops::Range;

/// Executable bytes of a file.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'b> {
    /// Where they lie.
    pub address: u64,
    /// The bytes.
    pub bytes: &'b [u8],
}

/// A function that is to be traced.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Where it begins.
    pub address: u64,
    /// Its bytes; 0: unknown.
    pub size: u64,
    /// Its number in the module, which the caller chooses.
    pub number: u32,
    /// It is refused anyway: by its name ([`Refusal::of_name`]), or as an IFUNC.
    pub refusal: Option<Refusal>,
}

/// An instruction at which a probe is, or the function whose return is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Where it is.
    pub address: u64,
    /// The return of the function that begins there.
    pub at_return: bool,
    /// Its number in the module, which the caller chooses.
    pub number: u32,
    /// It is refused anyway, as [`Function::refusal`].
    pub refusal: Option<Refusal>,
}

/// An entry of the unwind information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// At the first address the CFA is rsp + 8: a function begins there, not a part of one.
    pub is_as_called: bool,
}

/// All that is known of a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Module<'b> {
    /// Its executable segments. What lies in more than one counts for the first.
    pub segments: &'b [Segment<'b>],
    /// Functions to be traced, in any order. Several may have one address.
    pub functions: &'b [Function],
    /// Its unwind information, sorted.
    pub frames: &'b [Frame],
    /// The addresses of all its symbols that lie in code, sorted.
    pub symbols: &'b [u64],
    /// Addresses of mcount, _mcount and `__fentry__`, of their entries in the PLT, and of their pointers in the GOT, sorted: calls of
    /// these at the beginning of a traced function are left out.
    pub profilers: &'b [u64],
    /// The other segments, as far as they have bytes in the file.
    pub data: &'b [Segment<'b>],
    /// Addresses in code that something else than a jump or a call leads to: relocations of pointers, landing places of exceptions. In any
    /// order.
    pub pointers: &'b [u64],
    /// It is linked to fixed addresses: they are in code and data as numbers of 32 or 64 bits, without relocations.
    pub is_fixed: bool,
    /// Stubs copy arguments: their registers must be as at the call.
    pub captures: bool,
    /// Probes, sorted.
    pub points: &'b [Point],
    /// Where debuggers put the breakpoints of functions, sorted.
    pub stops: &'b [u64],
    /// The instructions of static probes (USDT), sorted: other tools' probes may come to be there.
    pub statics: &'b [u64],
    /// Functions that the agent replaces.
    pub hooks: &'b [(Hook, u64)],
}

/// Whether one of these sorted addresses is among the bytes from an address on.
fn is_within(addresses: &[u64], from: u64, bytes: u64) -> bool {
    let next = addresses.partition_point(|a| *a < from);
    addresses.get(next).is_some_and(|a| a - from < bytes)
}

impl<'b> Module<'b> {
    /// Whether there is a probe at an address.
    pub(crate) fn has_point(&self, address: u64) -> bool {
        self.points.binary_search_by_key(&address, |p| p.address).is_ok()
    }

    /// Whether a debugger would put a breakpoint behind the prologue of a function at an address, so near that a patch may lie across it.
    pub(crate) fn stops_near(&self, address: u64) -> bool {
        is_within(self.stops, address.saturating_add(1), 2 * JUMP as u64 - 1)
    }

    /// Whether a debugger would put a breakpoint into a patch at an address, behind its first byte.
    pub(crate) fn stops_in(&self, at: u64) -> bool {
        is_within(self.stops, at.saturating_add(1), JUMP as u64 - 1)
    }

    /// Whether a static probe's instruction lies in a patch at an address. What the kernel executes for a probe there is the file's, and
    /// then goes on behind it: the first byte of a patch is no place for it either.
    pub(crate) fn statics_in(&self, at: u64) -> bool {
        is_within(self.statics, at, JUMP as u64)
    }

    /// The bytes from an address to the end of its segment.
    pub(crate) fn bytes(&self, address: u64) -> Option<&'b [u8]> {
        self.segments.iter().find_map(|s| {
            let offset = usize::try_from(address.checked_sub(s.address)?).ok()?;
            s.bytes.get(offset..).filter(|b| !b.is_empty())
        })
    }

    /// From the first to behind the last byte.
    pub(crate) fn code(&self) -> Range<u64> {
        let ends = self.segments.iter().map(|s| s.address.saturating_add(s.bytes.len() as u64));
        let start = self.segments.iter().map(|s| s.address).min().unwrap_or(0);
        start..ends.max().unwrap_or(0)
    }
}
