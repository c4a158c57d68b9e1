//! Numbers and JSON into byte buffers, for all views.

pub mod json;
pub mod number;
