//! Values that come as bytes, and go as bytes.

use abi::message::{Hello, Installed, Welcome};
use abi::plan::{Area, Counter, Header, Original, Patch, Trailer};
use abi::tracer::{Counted, Known, Printed, Reply, Request, Site, State, Target, Violation};
use unwind::Mapping;

/// A type of which any bytes are a value, and that has no padding.
///
/// # Safety
/// It is such a type.
pub unsafe trait Plain: Copy {}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        // SAFETY: a number.
        unsafe impl Plain for $type {}
    )*};
}
numbers! { u8 u32 i64 u64 }

// SAFETY: values that lie one after the other.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Structures with all their fields.
macro_rules! structures {
    ($($type:ident { $($field:ident),* })*) => {$(
        const _: () = {
            // SAFETY: zeros are a value of each of the fields, which are plain, as is seen below.
            let $type { $($field),* } = unsafe { core::mem::zeroed::<$type>() };
            assert!(size_of::<$type>() == 0 $(+ size(&$field))*, "it has padding");
        };
        // SAFETY: its fields are plain, and nothing lies between them.
        unsafe impl Plain for $type {}
    )*};
}

const fn size<T: Plain>(_: &T) -> usize {
    size_of::<T>()
}

structures! {
    Hello { magic, version, reason, pid, parent, maps_len, tls, slow, hooks, originals }
    Installed { magic, error, patched, other_bytes, no_area, failed }
    Welcome { magic, version, verdict, descriptors, shared, plan, tables, keep }
    Area { address, len, at, content, stubs, variant, steps, steps_at, entries_at }
    Trailer { magic, version, variant, address, len, stubs, tls, steps, steps_at, entries_at, reserved }
    Header {
        magic, version, areas, patches, originals, mappings, areas_at, patches_at, originals_at, mappings_at, counters_at,
        counters
    }
    Original { hook, patch, address }
    Counter { address, patch, reserved }
    Patch { address, area, len, splits, skipped, reserved, old, new }
    Counted { number, calls, total, own }
    Known { name, kind, place, missed, nested, reported, panics }
    Printed { counted, violations, lost, begun, now }
    Reply { magic, error, patched, other_bytes, no_area, failed, len }
    Request { magic, version, operation, count, name, options, plan }
    Site { address, old, stubs, tracers }
    State { tracers, sites }
    Target { number, patch }
    Violation { state, tid, thread, number, kind, time, took, registers, len, stack }
    Mapping { start, end, bias, first_page, flags }
}

/// A value of this many bytes, wherever they lie; None: they are too few.
pub fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are as many bytes, and any are a value.
    bytes.get(..size_of::<T>()).map(|bytes| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The bytes of a value.
pub fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: it has no padding.
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// This many values that lie one after the other; None: there are fewer, or they are not aligned.
pub fn slice<T: Plain>(bytes: &[u8], count: usize) -> Option<&[T]> {
    let part = bytes.get(..count.checked_mul(size_of::<T>())?)?;
    let first = part.as_ptr().cast::<T>();
    // SAFETY: the bytes are there, and aligned; any are values.
    first.is_aligned().then(|| unsafe { core::slice::from_raw_parts(first, count) })
}
