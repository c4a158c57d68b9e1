//! Rules by number: each rule once.

use crate::rule::Rule;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::vec::Vec;

/// A rule is 64 well-known bits, and is looked up once per row: one multiplication is hash enough. Whoever makes files that collide slows
/// down their own.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

/// The rules of a session, or of a module. Numbers are never reused, so that a table that was written stays right.
#[derive(Clone, Debug)]
pub struct Rules {
    all: Vec<Rule>,
    numbers: HashMap<Rule, u16, BuildHasherDefault<Multiply>>,
}

/// The most rules: numbers have 16 bits.
pub(super) const MOST: usize = 1 << 16;
/// Number of [`Rule::NONE`].
pub(super) const NONE: u16 = 0;
/// Number of [`Rule::UNKNOWN`].
const UNKNOWN: u16 = 1;

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
