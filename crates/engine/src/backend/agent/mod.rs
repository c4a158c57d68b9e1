//! The agent backend: functions of programs, traced by an agent in the process.

pub mod chunks;
mod module;
mod planner;
