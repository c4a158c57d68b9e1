//! Why things are as they are: what works on this machine, and what a plan does and loses.

pub mod doctor;
pub mod explain;
