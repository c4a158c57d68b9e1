//! Metadata for tests: that of the corpus.

/// As LTTng-UST 2.13 describes its events: compact headers of 27 and of 32 bits, contexts, text arrays.
pub const LTTNG: &str = include_str!("../corpus/lttng/metadata");

/// Big-endian, packed to bits, with everything that can be nested, and a second clock.
pub const PACKED: &str = include_str!("../corpus/packed/metadata");

/// One stream with one event, in bytes.
pub const SMALL: &str = include_str!("../corpus/small/metadata");
