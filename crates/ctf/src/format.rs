//! The version of the format that traces of trapline are written in.
//!
//! | version | `trace_format` in the environment | since then |
//! |---|---|---|
//! | 1 | absent | |
//! | 2 | 2 | packets name their stream ([`StreamId`]); capture bits for more than six arguments |
//! | 3 | 3 | streams of function records; written where there are any, else version 2 is |
//! | 4 | 4 | function records may have values; written where values are captured |
//! | 5 | 5 | packets are compressed ([`crate::packed`]), and none has function records; written of the heap |

use crate::model::Metadata;
use events::StreamId;

/// A version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// A number of 32 bits says which stream a packet is of.
    V1,
    /// The context of each packet names its stream.
    V2,
    /// There is a second class of streams, with function records.
    V3,
    /// Function records may have values.
    V4,
    /// Packets are compressed.
    V5,
}

/// A trace of a version that this trapline does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its format has version {0}, and this trapline reads up to {last}", last = Format::V5.version())]
pub struct Unknown(pub i64);

/// 1 in the environment of a trace whose calls have no start: what is in its place is the time of their end.
pub const NO_DURATION: &str = "no_duration";
/// Where the environment of a trace has the version.
pub const KEY: &str = "trace_format";

/// The number of the stream of mappings, in version 1.
const MAPS: u64 = u32::MAX as u64 - 1;
/// The number of the stream of trapline's own events, in version 1.
const TRACER: u64 = u32::MAX as u64;

impl Format {
    /// The version of packets without values: what else is in them is the same in later ones.
    pub const NOW: Format = Format::V3;

    /// Its number.
    pub const fn version(self) -> i64 {
        match self {
            Format::V1 => 1,
            Format::V2 => 2,
            Format::V3 => 3,
            Format::V4 => 4,
            Format::V5 => 5,
        }
    }

    /// The version of a trace of trapline.
    ///
    /// # Errors
    /// A version that this trapline does not know.
    pub fn of(metadata: &Metadata) -> Result<Format, Unknown> {
        match metadata.env_int(KEY) {
            None | Some(1) => Ok(Format::V1),
            Some(2) => Ok(Format::V2),
            Some(3) => Ok(Format::V3),
            Some(4) => Ok(Format::V4),
            Some(5) => Ok(Format::V5),
            Some(n) => Err(Unknown(n)),
        }
    }

    /// Bytes of a packet before the first event. Of function records: [`crate::packet::FUNCTIONS_HEADER`].
    pub const fn head(self) -> usize {
        match self {
            Format::V1 => 88,
            Format::V2 | Format::V3 | Format::V4 | Format::V5 => 96,
        }
    }

    /// The stream with this number; `None` where the number is invalid. In version 1 the lower 16 bits are the processor, the upper 16
    /// the enabling.
    pub fn stream(self, number: u64) -> Option<StreamId> {
        match (self, number) {
            (Format::V1, TRACER) => Some(StreamId::TRACER),
            (Format::V1, MAPS) => Some(StreamId::MAPS),
            (Format::V1, _) => StreamId::from_parts(0, u32::try_from(number >> 16).ok()?, number as u32 & 0xffff),
            (Format::V2 | Format::V3 | Format::V4 | Format::V5, _) => StreamId::from_number(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::stream::Scope;

    #[test]
    fn streams_of_the_first_version_are_found_by_their_numbers() {
        for (number, wanted) in [
            (0, StreamId::cpu(0)),
            (3, StreamId::cpu(3)),
            (2 << 16 | 7, StreamId::new(Scope::Cpu(7), 2)),
            (u32::MAX.into(), StreamId::TRACER),
            (u64::from(u32::MAX) - 1, StreamId::MAPS),
        ] {
            assert_eq!(Format::V1.stream(number), Some(wanted));
            assert_eq!(Format::V2.stream(wanted.number()), Some(wanted));
        }
        assert_eq!((Format::V1.stream(1 << 32), Format::V1.stream(u64::MAX)), (None, None));
    }
}
