//! Why things are as they are: what works on this machine, what a plan does and loses, and why a probe has recorded nothing.

pub mod doctor;
mod explain;
pub mod probes;
