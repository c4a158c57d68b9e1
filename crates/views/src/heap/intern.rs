//! Numbers for stacks: each process knows a stack by a hash, the model by a number.
//!
//! A number is given when a stack is first named, by an event or by its definition, whichever comes first. What a parent has
//! named before a fork, its child may name too: it is the same stack. After the fork both have their own, as they may load
//! different libraries at one address.

use events::hash::Table;

/// The most stacks; all others are stack 0.
pub const MAX_STACKS: usize = super::model::MAX_STACKS;
/// The most frames of all stacks together, 8 bytes each. Stacks that do not fit have none.
pub const MAX_FRAMES: usize = 16 << 20;
/// Places of the cache.
const CACHE: usize = 4096;
/// The most forks between a process and the one that has named a stack.
const MOST_FORKS: usize = 64;

/// A stack as a process names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Name {
    hash: u64,
    process: u32,
}

/// A stack.
#[derive(Clone, Copy, Debug)]
struct Stack {
    name: Name,
    /// Where its frames are.
    first: u32,
    frames: u32,
    is_defined: bool,
}

/// A fork.
#[derive(Clone, Copy, Debug)]
struct Fork {
    parent: u32,
    /// Stacks with lower numbers were there.
    stacks: u32,
}

/// The stacks of all processes.
pub struct Intern {
    /// The numbers that were asked for last; 0: none.
    cache: Box<[(Name, u32)]>,
    ids: Table<Name, u32>,
    /// By number; 0 is the stack that is not known.
    stacks: Vec<Stack>,
    frames: Vec<u64>,
    forks: Table<u32, Fork>,
    did_not_fit: u64,
}

impl Default for Intern {
    fn default() -> Intern {
        Intern::new()
    }
}

impl Intern {
    /// Without any stack.
    pub fn new() -> Intern {
        let unknown = Stack { name: Name::default(), first: 0, frames: 0, is_defined: true };
        Intern {
            cache: vec![(Name::default(), 0); CACHE].into(),
            ids: Table::default(),
            stacks: vec![unknown],
            frames: Vec::new(),
            forks: Table::default(),
            did_not_fit: 0,
        }
    }

    /// The number of a stack; 0 where there are too many.
    #[inline]
    pub fn id(&mut self, process: u32, hash: u64) -> u32 {
        let name = Name { hash, process };
        let place = (hash ^ hash >> 32 ^ u64::from(process)) as usize % CACHE;
        match self.cache[place] {
            (cached, id) if cached == name && id != 0 => id,
            _ => {
                let id = self.find(name);
                self.cache[place] = (name, id);
                id
            }
        }
    }

    /// The number of a stack that the process itself has named; 0: it has not.
    pub fn peek(&self, process: u32, hash: u64) -> u32 {
        self.ids.get(&Name { hash, process }).copied().unwrap_or(0)
    }

    fn find(&mut self, name: Name) -> u32 {
        if let Some(&id) = self.ids.get(&name) {
            return id;
        }
        let inherited = self.inherited(name);
        if inherited.is_none() && self.stacks.len() >= MAX_STACKS {
            self.did_not_fit += 1;
            return 0;
        }
        let id = inherited.unwrap_or_else(|| {
            self.stacks.push(Stack { name, first: 0, frames: 0, is_defined: false });
            (self.stacks.len() - 1) as u32
        });
        if self.ids.len() < 4 * MAX_STACKS {
            self.ids.insert(name, id);
        }
        id
    }

    /// The number that an ancestor has given a stack before it forked.
    fn inherited(&self, name: Name) -> Option<u32> {
        let mut limit = u32::MAX;
        self.ancestors(name.process).find_map(|fork| {
            limit = limit.min(fork.stacks);
            let id = self.ids.get(&Name { process: fork.parent, ..name });
            id.copied().filter(|id| *id < limit)
        })
    }

    fn ancestors(&self, process: u32) -> impl Iterator<Item = Fork> {
        let first = self.forks.get(&process).copied();
        std::iter::successors(first, |fork| self.forks.get(&fork.parent).copied()).take(MOST_FORKS)
    }

    /// A process has forked.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if self.forks.len() < super::model::MAX_PROCESSES {
            self.forks.insert(child, Fork { parent, stacks: self.stacks.len() as u32 });
        }
    }

    /// The frames of a stack: addresses, innermost first. A second definition changes nothing.
    pub fn define(&mut self, process: u32, hash: u64, frames: &[u64]) {
        let id = self.id(process, hash);
        let Some(stack) = self.stacks.get_mut(id as usize).filter(|s| !s.is_defined) else { return };
        if self.frames.len() + frames.len() > MAX_FRAMES {
            self.did_not_fit += 1;
            return;
        }
        *stack = Stack { first: self.frames.len() as u32, frames: frames.len() as u32, is_defined: true, ..*stack };
        self.frames.extend_from_slice(frames);
    }

    /// The frames of a stack, innermost first, and the process whose addresses they are; none where they are not known.
    pub fn frames(&self, id: u32) -> Option<(u32, &[u64])> {
        let stack = self.stacks.get(id as usize).filter(|_| id != 0)?;
        let defined = if stack.is_defined { Some(stack) } else { self.defined_by_ancestor(stack.name) }?;
        let frames = self.frames.get(defined.first as usize..)?.get(..defined.frames as usize)?;
        Some((defined.name.process, frames))
    }

    /// A definition that an ancestor has made, although it was only read after the child had named the stack.
    fn defined_by_ancestor(&self, name: Name) -> Option<&Stack> {
        self.ancestors(name.process).find_map(|fork| {
            let id = self.ids.get(&Name { process: fork.parent, ..name })?;
            self.stacks.get(*id as usize).filter(|s| s.is_defined)
        })
    }

    /// How many numbers there are; they count up from 0.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether no stack was named.
    pub fn is_empty(&self) -> bool {
        self.stacks.len() == 1
    }

    /// How often a stack or its frames did not fit.
    pub fn did_not_fit(&self) -> u64 {
        self.did_not_fit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_one_number_and_its_frames_may_come_late() {
        let mut i = Intern::new();
        assert!(i.is_empty());
        let a = i.id(1, 77);
        assert_eq!((a, i.frames(a), i.frames(0)), (1, None, None));
        i.define(1, 77, &[10, 20]);
        i.define(1, 77, &[30]);
        assert_eq!((i.id(1, 77), i.frames(a)), (a, Some((1, &[10, 20][..]))));
        i.define(1, 78, &[]);
        assert_eq!(i.frames(i.len() as u32 - 1), Some((1, &[][..])));
        // A hash is that of a process.
        assert_ne!(i.id(2, 77), a);
        // Names that share a place of the cache.
        let hashes: Vec<u64> = (0..10).map(|n| n * CACHE as u64).collect();
        let ids: Vec<u32> = hashes.iter().map(|h| i.id(3, *h)).collect();
        assert_eq!(ids, hashes.iter().map(|h| i.id(3, *h)).collect::<Vec<_>>());
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 10);
        assert_ne!(i.id(0, 0), 0);
    }

    #[test]
    fn a_child_knows_what_its_ancestors_named_before_the_fork() {
        let mut i = Intern::new();
        i.define(0, 5, &[1]);
        i.fork(0, 1);
        i.fork(1, 2);
        i.define(0, 6, &[2]);
        assert_eq!(i.id(2, 5), i.id(0, 5));
        // After the fork each has its own.
        assert_ne!(i.id(2, 6), i.id(0, 6));
        i.define(2, 6, &[3]);
        let id = i.id(2, 6);
        assert_eq!(i.frames(id), Some((2, &[3][..])));
        // Named by the child, and defined by the parent, before the fork, in a chunk that was read later.
        let late = i.id(2, 7);
        i.define(0, 7, &[4]);
        assert_eq!(i.frames(late), Some((0, &[4][..])));
    }

    #[test]
    fn circles_of_forks_end() {
        let mut i = Intern::new();
        i.fork(0, 1);
        i.fork(1, 0);
        i.fork(5, 5);
        assert_ne!(i.id(0, 1), i.id(5, 1));
    }

    #[test]
    fn more_stacks_than_fit_are_the_unknown_one() {
        let mut i = Intern::new();
        for n in 0..MAX_STACKS as u64 + 10 {
            i.id(0, n);
        }
        assert_eq!((i.id(0, MAX_STACKS as u64 + 5), i.len()), (0, MAX_STACKS));
        assert!(i.did_not_fit() >= 11);
        i.define(0, MAX_STACKS as u64 + 5, &[1]);
        assert_eq!(i.frames(0), None);
    }
}
