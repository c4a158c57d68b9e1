//! Rules by number: each rule once.

use crate::rule::Rule;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::vec::Vec;

/// Keys of a hash that nobody can foresee: files are hostile, and could else be full of rules that collide.
#[derive(Clone, Debug)]
struct Keys(u64, u64);

impl Default for Keys {
    fn default() -> Keys {
        let random = || RandomState::new().build_hasher().finish();
        Keys(random(), random() | 1)
    }
}

impl BuildHasher for Keys {
    type Hasher = Folded;
    fn build_hasher(&self) -> Folded {
        Folded { hash: self.0, key: self.1 }
    }
}

/// A rule is one word, and one is looked up per row: one multiplication of 128 bits, folded, costs a fraction of the standard hash.
struct Folded {
    hash: u64,
    key: u64,
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.hash
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.hash ^ word) * u128::from(self.key);
        self.hash = product as u64 ^ (product >> 64) as u64;
    }
}

/// The rules of a session, or of a module. Numbers are never reused, so that a table that was written stays right.
#[derive(Clone, Debug)]
pub struct Rules {
    all: Vec<Rule>,
    numbers: HashMap<Rule, u16, Keys>,
}

/// The most rules: numbers have 16 bits.
pub(super) const MOST: usize = 1 << 16;
/// Number of [`Rule::NONE`].
pub(super) const NONE: u16 = 0;
/// Number of [`Rule::UNKNOWN`].
pub(super) const UNKNOWN: u16 = 1;

impl Default for Rules {
    fn default() -> Rules {
        let mut rules = Rules { all: Vec::new(), numbers: HashMap::default() };
        for (rule, number) in [(Rule::NONE, NONE), (Rule::UNKNOWN, UNKNOWN)] {
            rules.all.push(rule);
            rules.numbers.insert(rule, number);
        }
        rules
    }
}

impl Rules {
    /// The number of a rule. Where there are 65,536 already, that of [`Rule::UNKNOWN`].
    pub fn number(&mut self, rule: Rule) -> u16 {
        if let Some(number) = self.numbers.get(&rule) {
            return *number;
        }
        let Some(number) = u16::try_from(self.all.len()).ok().filter(|_| self.all.len() < MOST) else { return UNKNOWN };
        self.all.push(rule);
        self.numbers.insert(rule, number);
        number
    }

    /// All rules, by number.
    pub fn all(&self) -> &[Rule] {
        &self.all
    }
}

impl From<Rules> for Vec<Rule> {
    fn from(rules: Rules) -> Vec<Rule> {
        rules.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_one_number_and_they_are_bounded() {
        let mut rules = Rules::default();
        assert_eq!((rules.number(Rule::NONE), rules.number(Rule::UNKNOWN)), (0, 1));
        for n in 0..70_000u64 {
            let number = rules.number(Rule(n << 16 | 2));
            assert_eq!(usize::from(number), if n < 65_534 { n as usize + 2 } else { 1 });
        }
        assert_eq!((rules.number(Rule(2)), rules.all().len()), (2, MOST));
    }
}
