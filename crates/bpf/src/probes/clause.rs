//! Where the values of a script's clause come from in the program of a probe.

use lang::script::ir::Int;

/// Where a value of a clause comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// The thread's user.
    Uid,
    /// The thread's group.
    Gid,
    /// The processor.
    Cpu,
    /// The monotonic clock.
    Nsecs,
    /// The address of the kernel's structure of the task.
    Task,
    /// Ticks of the kernel's clock.
    Jiffies,
    /// The NUMA node.
    Numa,
    /// The number of the control group.
    Cgroup,
    /// The clock that goes on while the machine sleeps.
    Boot,
    /// The clock of International Atomic Time.
    Tai,
    /// The name of the thread, in keys only.
    Comm,
    /// A field of the plan.
    Field(usize),
    /// Memory: the number of what the script reads so.
    Memory(usize),
    /// The kernel does not have it.
    Nothing,
}

/// A number of a script that is a field of an event, or the address of one that is a string.
#[derive(Debug)]
pub struct Number {
    /// The number.
    pub number: Int,
    /// Where the values come from that it names, by the numbers of the clause's leaves.
    pub leaves: Vec<From>,
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.number == other.number && self.leaves == other.leaves
    }
}
