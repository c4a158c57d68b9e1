//! The clauses of scripts in the program of a probe: where their values come from, and what is in their expressions.

use lang::script::ir::{Cond, Int, Kind};

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
    /// The address of the program's context.
    Context,
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

/// A clause, and where its values come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// Its number in the script.
    pub number: usize,
    /// By the numbers of its leaves.
    pub leaves: Vec<From>,
}

/// Calls `each` with the number and all numbers in it.
pub(super) fn ints(i: &Int, each: &mut dyn FnMut(&Int)) {
    each(i);
    match i {
        Int::Const(_) => {}
        Int::Value(v) => {
            if let Kind::Load(address, _) = &v.kind {
                ints(address, each);
            }
        }
        Int::Cast(_, x) | Int::Minus(x) | Int::Complement(x) => ints(x, each),
        Int::Binary(_, a, b) | Int::Or(a, b) => [a, b].into_iter().for_each(|x| ints(x, each)),
        Int::Choice(c, a, b) => {
            conditions(c, &mut |i| ints(i, each));
            [a, b].into_iter().for_each(|x| ints(x, each));
        }
        Int::Truth(c) => conditions(c, &mut |i| ints(i, each)),
    }
}

/// Calls `each` with the outermost numbers of a condition.
pub(super) fn conditions(c: &Cond, each: &mut dyn FnMut(&Int)) {
    match c {
        Cond::Const(_) | Cond::Test(_) => {}
        Cond::Compare(_, a, b) => [a, b].into_iter().for_each(&mut *each),
        Cond::Not(c) => conditions(c, each),
        Cond::All(list) | Cond::Any(list) => list.iter().for_each(|c| conditions(c, each)),
    }
}
