//! A value for each function: an array for the numbers that a collector gives, which count up from 1, and a map for any others.

use std::collections::HashMap;

/// Numbers below this are indices of the array.
const DENSE: usize = 1 << 20;

/// Values by the numbers of functions.
#[derive(Clone, Debug, Default)]
pub struct ByFunction<T> {
    dense: Vec<T>,
    sparse: HashMap<u32, T>,
}

impl<T: Clone + Default> ByFunction<T> {
    /// All have their default.
    pub fn new() -> ByFunction<T> {
        ByFunction { dense: Vec::new(), sparse: HashMap::new() }
    }

    /// The value of a function.
    #[inline]
    pub fn of(&mut self, function: u32) -> &mut T {
        let index = function as usize;
        if index < self.dense.len() {
            return &mut self.dense[index];
        }
        self.further(function)
    }

    /// The value of a function; none where it was never asked for with [`ByFunction::of`].
    #[inline]
    pub fn get(&self, function: u32) -> Option<&T> {
        self.dense.get(function as usize).or_else(|| self.sparse.get(&function))
    }

    #[cold]
    fn further(&mut self, function: u32) -> &mut T {
        let index = function as usize;
        if index >= DENSE {
            return self.sparse.entry(function).or_default();
        }
        self.dense.resize((index + 1).next_power_of_two().max(256), T::default());
        &mut self.dense[index]
    }

    /// All values, those that are still the default too, with their functions.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let dense = self.dense.iter().enumerate().map(|(i, v)| (i as u32, v));
        dense.chain(self.sparse.iter().map(|(f, v)| (*f, v)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_take_no_more_memory_than_small_ones() {
        let mut all = ByFunction::<u32>::new();
        for f in [1, 300, u32::MAX, u32::MAX - 1, DENSE as u32] {
            *all.of(f) += f / 2;
        }
        assert_eq!((all.dense.len(), all.sparse.len()), (512, 3));
        let set: Vec<_> = all.iter().filter(|(_, v)| **v > 0).map(|(f, _)| f).collect();
        assert_eq!((set.len(), all.get(300), all.get(u32::MAX)), (4, Some(&150), Some(&(u32::MAX / 2))));
        assert_eq!(all.get(5000), None);
    }
}
