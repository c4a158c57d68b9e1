//! The agent's part of a session: it asks the collector, and does what the answer says.

use crate::loader::Change;
use crate::talk::{Answer, map_file, map_first};
use crate::{again, install, kernel, loader, permits, plans, shared, tables, talk};
use abi::message::{Installed, Reason};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

/// The most bytes of a plan.
const PLAN: u64 = 1 << 32;

/// Asks the collector, and does what it answers. All signals are blocked. Without a collector nothing happens.
pub fn ask(reason: Reason) {
    let _ = attempt(reason);
}

/// Modules may have come: those that the process has had before get what they had, and for others the collector is asked. In the loader.
pub fn modules_changed() {
    match loader::look() {
        Change::Gone => {}
        Change::Came if are_remembered() && again::install(loader::came()) => {}
        Change::Came => {
            if tables::are_used() {
                again::displace(loader::came());
            }
            ask(Reason::Modules);
        }
        Change::Unknown => {
            if tables::are_used() {
                again::forget();
            }
            ask(Reason::Modules);
        }
    }
}

/// Whether modules that come again may get what they had: in a session that goes on. Not where plans are kept, to be undone: there it may end
/// at any moment, also while a thread carries a plan out. The collector waits for threads that have asked it.
fn are_remembered() -> bool {
    !plans::are_kept() && state() == 1
}

/// Asks the collector, and installs what it answers. False: there is nothing to install. An errno where that failed.
pub fn attempt(reason: Reason) -> Result<bool, u32> {
    if reason != Reason::Modules {
        loader::note();
    }
    let Some(mut answer) = talk::ask(reason)? else { return Ok(false) };
    let installed = obey(&mut answer, reason).unwrap_or_else(Installed::failure);
    answer.finish(&installed)
}

/// Uses tables, memory and plan, those that have come. Or an errno.
fn obey(answer: &mut Answer, reason: Reason) -> Result<Installed, u32> {
    let len = if permits::grows() { answer.welcome.tables } else { tables::SIZE };
    if let Some(file) = answer.tables.take()
        && let Some(at) = map_first(&file, (tables::SIZE, len), kernel::PROT_READ, kernel::MAP_SHARED)
        // SAFETY: they have just been mapped, read only, and others write to them as the unwinder expects it.
        && !unsafe { tables::begin(at, len) }
    {
        // SAFETY: it was refused, so nobody uses it.
        unsafe { kernel::unmap(at, len) };
    }
    tables::extend(answer.welcome.tables);
    answer.use_shared()?;
    // Without memory for that, the agent stays until the program ends.
    if answer.welcome.keep != 0 {
        plans::begin();
    }
    let len = answer.welcome.plan;
    let came = if reason == Reason::Modules { loader::came() } else { &[] };
    let Some(plan) = answer.plan.take().filter(|_| len <= PLAN) else {
        let nothing = Installed::failure(0);
        if are_remembered() {
            // SAFETY: no bytes.
            unsafe { again::keep(came, &nothing, (0, 0)) };
        }
        return Ok(nothing);
    };
    let at = map_file(&plan, len, kernel::PROT_READ, kernel::MAP_PRIVATE).ok_or(kernel::ENOMEM)?;
    drop(plan);
    // SAFETY: the whole file is mapped, and sealed; it is unmapped only below.
    let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, len as usize) };
    let installed = install::install(bytes, reason);
    tables::map_of_process(install::mappings(bytes));
    // SAFETY: as above. Each of them has the mapping for itself.
    if !unsafe { plans::keep(at, len) || are_remembered() && again::keep(came, &installed, (at, len)) } {
        // SAFETY: `bytes` is not used any more.
        unsafe { kernel::unmap(at, len) };
    }
    Ok(installed)
}

/// Whether the session began with the program.
static WITH_PROGRAM: AtomicBool = AtomicBool::new(false);

/// The session begins with the program, or in one that runs.
pub fn begin(with_program: bool) {
    WITH_PROGRAM.store(with_program, Relaxed);
}

/// Whether the session began with the program.
pub fn began_with_program() -> bool {
    WITH_PROGRAM.load(Relaxed)
}

/// Whether a session is under way: 0, 1, or 2 where its collector is gone, or cannot be known because nothing is recorded.
pub fn state() -> u32 {
    match shared::control() {
        None => 2 * u32::from(plans::any()),
        Some(control) => 1 + u32::from(shared::was_left() || shared::is_gone(control)),
    }
}
