//! What a collector has the agent do in a running process, by a call of the library's entry point. All other threads are stopped
//! meanwhile, and all signals of this one are blocked.

use crate::install::Spared;
use crate::{
    areas, child, command, debugger, heap, hooks, kernel, originals, own, plans, record, session, shared, sites, slots,
    talk, thread, tracers,
};
use abi::message::{FREE, HOOKED, Hello, Invocation, MAGIC, Order, Reason, TRACED};
use core::arch::global_asm;
use core::mem::size_of;

// The entry point that the ELF header names: the library offers no symbols.
global_asm!(
    ".text",
    ".globl trapline_invoke",
    ".hidden trapline_invoke",
    ".type trapline_invoke,@function",
    "trapline_invoke:",
    "jmp {invoke}",
    ".size trapline_invoke, .-trapline_invoke",
    invoke = sym invoke,
);

/// Carries an order out. 0, or an errno.
extern "C" fn invoke(at: *mut Invocation) -> u64 {
    // SAFETY: the collector has put it there, with the texts behind it, and nobody else knows of it.
    let (invocation, texts) = unsafe { (&mut *at, at.add(1).cast::<u8>()) };
    if invocation.magic != MAGIC || invocation.version != abi::VERSION {
        return u64::from(kernel::EPROTO);
    }
    let result = match invocation.order {
        o if o == Order::Look as u32 => {
            // SAFETY: the collector has left room for it behind the invocation, which ends at a multiple of 8.
            unsafe { texts.cast::<Hello>().write(talk::hello(Reason::Attach, 0)) };
            Ok(())
        }
        o if o == Order::Attach as u32 => attach(invocation, texts),
        // One that was loaded with the program has perhaps not kept what it would have to restore.
        o if o == Order::Detach as u32 && !plans::are_kept() => Ok(()),
        o if o == Order::Detach as u32 => {
            invocation.left = end(is_free(invocation));
            Ok(())
        }
        o if o == Order::Tracers as u32 => serve(invocation, texts),
        _ => Err(kernel::EPROTO),
    };
    if is_free(invocation) && session::state() == 0 && !slots::owe() && sites::release() {
        // SAFETY: the collector has found no thread in the agent or in a stub, and none will return to one.
        unsafe { free() };
    }
    answer(invocation);
    result.map_or_else(u64::from, |()| 0)
}

/// Whether no thread needs areas or memory any more. Threads that run again, because the collector is gone, may be anywhere.
fn is_free(invocation: &Invocation) -> bool {
    invocation.flags & FREE != 0 && own::is_held()
}

fn answer(invocation: &mut Invocation) {
    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
    invocation.flags = flag(originals::are_in(), HOOKED) | flag(tracers::are_enabled(), TRACED);
    (invocation.areas_at, invocation.areas) = areas::table();
    invocation.session = session::state();
    invocation.tls = thread::tls_offset();
    invocation.stride = thread::ENTRY;
}

fn attach(invocation: &Invocation, texts: *const u8) -> Result<(), u32> {
    match session::state() {
        0 => {}
        1 => return Err(kernel::EBUSY),
        // The hooks of tracers.
        _ if tracers::are_enabled() && shared::control().is_none() => {}
        _ => drop(end(is_free(invocation))),
    }
    if is_free(invocation) && !slots::owe() && !plans::any() && sites::release() {
        // SAFETY: as in `invoke`.
        unsafe { free() };
    }
    // Where plans have stayed, a thread may still be where they have led it.
    let whole = !plans::any();
    let (socket, path) = (invocation.socket_len as usize, invocation.path_len as usize);
    // SAFETY: the collector says that so many bytes follow.
    let texts = unsafe { core::slice::from_raw_parts(texts, socket.saturating_add(path)) };
    let (socket, path) = texts.split_at_checked(socket).ok_or(kernel::EPROTO)?;
    if !(child::begin() && areas::begin() && slots::begin() && plans::begin() && own::name(socket, path)) {
        return Err(kernel::ENOMEM);
    }
    hooks::begin();
    session::begin(false);
    let done = session::attempt(Reason::Attach);
    match done {
        Ok(true) => hooks::adopt(),
        _ => drop(end(whole)),
    }
    done.map(drop)
}

/// Serves requests for tracers.
fn serve(invocation: &Invocation, texts: *const u8) -> Result<(), u32> {
    // SAFETY: the collector says that so many bytes follow.
    let socket = unsafe { core::slice::from_raw_parts(texts, (invocation.socket_len as usize).min(100)) };
    if !(child::begin() && areas::begin() && slots::begin()) {
        return Err(kernel::ENOMEM);
    }
    if command::serve(socket) { Ok(()) } else { Err(kernel::ECONNREFUSED) }
}

/// Ends the session: everything is as it was, but for what threads and other tracers may still need. How many patches could not be undone.
fn end(free: bool) -> u64 {
    record::end();
    let spared = match (tracers::are_enabled(), free) {
        (true, _) => Spared::Hooks,
        (false, true) => Spared::Nothing,
        (false, false) => Spared::Unwinder,
    };
    let left = plans::undo(spared);
    if spared != Spared::Hooks {
        hooks::end();
    }
    shared::leave();
    heap::leave(free);
    left
}

/// Gives memory back that no thread needs.
///
/// # Safety
/// No thread is in the agent or in a stub, or will return to one.
unsafe fn free() {
    // SAFETY: so says the caller.
    unsafe {
        debugger::forget();
        areas::free();
        shared::free();
        own::free();
    }
}

const _: () = assert!(size_of::<Invocation>().is_multiple_of(8));
