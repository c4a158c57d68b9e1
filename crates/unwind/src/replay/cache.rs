//! Rules by address, as the tables have said: two for each index, the newer one first.

use super::Space;
use super::known::Known;

/// Indices; 256 KiB in all, of which the kernel gives pages when they are used.
const SETS: usize = 1 << 12;
/// Addresses of user space have fewer bits. The number of the generation lies above.
const ADDRESS_BITS: u32 = 56;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    /// Address, and epoch above it. 0: empty.
    key: u64,
    rule: Known,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Set([Entry; 2]);

#[derive(Debug)]
#[repr(C)]
pub struct Cache {
    sets: [Set; SETS],
    /// Counts generations in the 8 bits that keys have for it; 0: none yet.
    epoch: u64,
}

impl Cache {
    pub const EMPTY: Cache = Cache { sets: [Set([Entry { key: 0, rule: Known::NONE }; 2]); SETS], epoch: 0 };

    /// Nothing was ever forgotten: [`Cache::forget`] comes before the first use.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.epoch == 0
    }

    /// Forgets all rules.
    pub fn forget(&mut self) {
        self.epoch += 1;
        if self.epoch >> (u64::BITS - ADDRESS_BITS) != 0 {
            self.sets.fill(Cache::EMPTY.sets[0]);
            self.epoch = 1;
        }
    }

    /// The rule at an address. `near` is the address or the one after it: where it is looked for.
    #[inline]
    pub fn rule(&mut self, space: &Space<'_>, address: u64, near: u64) -> Known {
        let key = address ^ self.epoch << ADDRESS_BITS;
        let [first, second] = &self.sets[index(near)].0;
        match () {
            // Other addresses could look like those of another epoch.
            () if address >> ADDRESS_BITS != 0 => Known::new(space.rule(address)),
            () if first.key == key => first.rule,
            () if second.key == key => second.rule,
            () => self.miss(space, address, near),
        }
    }

    /// The rule at the call that returns to an address, if it is the newer one of its index.
    #[inline]
    pub fn newer(&self, pc: u64) -> Option<Known> {
        let address = pc.wrapping_sub(1);
        let key = address ^ self.epoch << ADDRESS_BITS;
        let [first, _] = &self.sets[index(pc)].0;
        (first.key == key && address >> ADDRESS_BITS == 0).then_some(first.rule)
    }

    #[cold]
    #[inline(never)]
    fn miss(&mut self, space: &Space<'_>, address: u64, near: u64) -> Known {
        let rule = Known::new(space.rule(address));
        let key = address ^ self.epoch << ADDRESS_BITS;
        let set = &mut self.sets[index(near)].0;
        *set = [Entry { key, rule }, set[0]];
        rule
    }
}

/// Return addresses lie at least 2 bytes apart, mostly more than 4. Code that is near has indices that are near.
///
/// It is `(address >> 2 ^ address >> 15) % SETS`, written so that the index times the size of a set, which each step waits for, is found in three
/// instructions.
#[inline(always)]
fn index(address: u64) -> usize {
    const SIZE: u64 = size_of::<Set>() as u64;
    const MASK: u64 = (SETS as u64 - 1) * SIZE;
    (((address << 3 ^ address >> 10) & MASK) / SIZE) as usize
}
