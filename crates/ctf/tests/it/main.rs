//! Traces written by a writer of the tests' own, read by the generic reader and by babeltrace2.

mod babeltrace;
mod corpus;
mod diagnostics;
mod encode;
mod packets;
mod property;
mod samples;
mod versions;
