//! Modules that come again: the same files at the same places as before get the plan that they have got before, and the collector is not asked. So a
//! program that loads and unloads a library all the time pays for its patches, and not for a conversation each time.
//!
//! Where allocations have stacks, the collector must know what was at an address when. So a plan is forgotten when something else takes the place of
//! its modules.
//!
//! Files are known by their build ids. As always, a patch is made only where the bytes are there that it replaces.

use crate::loader::Module;
use crate::{install, kernel, tables};
use abi::message::Installed;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// How many plans are kept, and the most bytes of one: small libraries are what comes and goes.
const PLANS: usize = 16;
const MOST: u64 = 256 << 10;

/// The modules, as a hash, where they lie, and the plan that they have got; no bytes: nothing of them is patched.
struct Kept {
    modules: AtomicU64,
    from: AtomicU64,
    to: AtomicU64,
    at: AtomicU64,
    len: AtomicU64,
}

static KEPT: [Kept; PLANS] = [const {
    Kept {
        modules: AtomicU64::new(0),
        from: AtomicU64::new(0),
        to: AtomicU64::new(0),
        at: AtomicU64::new(0),
        len: AtomicU64::new(0),
    }
}; PLANS];
/// The next one to be replaced.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A hash of modules that have come together. None where one of them has no build id.
fn hash(modules: &[Module]) -> Option<u64> {
    let hash = modules.iter().try_fold(modules.len() as u64, |hash, module| module.identity(hash))?;
    (hash != 0).then_some(hash)
}

/// Patches modules that have come as they were patched before. False: they were not, or not all patches could be made.
pub fn install(modules: &[Module]) -> bool {
    let Some(hash) = hash(modules) else { return false };
    let Some(kept) = KEPT.iter().find(|k| k.modules.load(Relaxed) == hash) else { return false };
    let len = kept.len.load(Relaxed) as usize;
    if len == 0 {
        return true;
    }
    // SAFETY: so much is mapped there, as long as it is kept.
    let plan = unsafe { core::slice::from_raw_parts(kept.at.load(Relaxed) as *const u8, len) };
    let done = install::install_again(plan);
    tables::map_again(install::mappings(plan), |m| modules.iter().any(|module| module.range().contains(&m.start)));
    done.error == 0 && done.other_bytes == 0 && done.no_area == 0 && done.failed == 0
}

/// Keeps what modules have got: a plan, or nothing. False: the plan is not kept.
///
/// # Safety
/// So much is mapped there, read only, for good.
pub unsafe fn keep(modules: &[Module], installed: &Installed, (at, len): (u64, u64)) -> bool {
    let Installed { error, other_bytes, no_area, failed, .. } = *installed;
    let Some(hash) = hash(modules).filter(|_| !modules.is_empty() && len <= MOST) else { return false };
    if [error, other_bytes, no_area, failed] != [0; 4] {
        return false;
    }
    let same = KEPT.iter().find(|k| k.modules.load(Relaxed) == hash);
    let next = || KEPT.get(NEXT.fetch_add(1, Relaxed) as usize % PLANS);
    let Some(kept) = same.or_else(next) else { return false };
    kept.forget();
    kept.from.store(modules.iter().map(|m| m.range().start).min().unwrap_or(0), Relaxed);
    kept.to.store(modules.iter().map(|m| m.range().end).max().unwrap_or(0), Relaxed);
    kept.len.store(len, Relaxed);
    kept.at.store(at, Relaxed);
    kept.modules.store(hash, Relaxed);
    true
}

/// Forgets the plans of modules in whose place these have come.
pub fn displace(modules: &[Module]) {
    let is_displaced = |k: &&Kept| {
        let (from, to) = (k.from.load(Relaxed), k.to.load(Relaxed));
        modules.iter().map(Module::range).any(|r| r.start < to && from < r.end)
    };
    KEPT.iter().filter(is_displaced).for_each(Kept::forget);
}

/// Forgets all. In the loader, which one thread at a time is in.
pub fn forget() {
    KEPT.iter().for_each(Kept::forget);
}

impl Kept {
    fn forget(&self) {
        self.modules.store(0, Relaxed);
        self.to.store(0, Relaxed);
        let (at, len) = (self.at.swap(0, Relaxed), self.len.swap(0, Relaxed));
        if len > 0 {
            // SAFETY: it was kept, and nobody else knows of it.
            unsafe { kernel::unmap(at, len) };
        }
    }
}
