//! Requests for tracers (`abi::tracer`): one connection, to a socket that trapline has made for it. All other threads are stopped, wherever
//! they were; this one may have been anywhere too. So nothing here waits for a thread, or touches what belongs to one.

use crate::plain::{self, Plain, bytes};
use crate::plan::Plan;
use crate::talk::{self, Descriptor};
use crate::tracers::{self, Own, Slot, Tracer};
use crate::{checks, kernel, session, shared, sites, thread};
use abi::built_in::Kind;
use abi::message::{MAGIC, Reason};
use abi::tracer::{Counted, Known, NAME, Operation, PRELOADED, Printed, Refused, Reply, Request, State, Target};
use core::mem::size_of;
use core::sync::atomic::Ordering::Relaxed;

/// What the program, or trapline in its name, may ask of the agent. `argument`: 1: a tracer (`trapline_tracer`), to register it; 2: the
/// name of a socket, to serve requests; 3: a tracer that reports a failure; 4: a tracer that has panicked. Returns 0 if that was done.
///
/// # Safety
/// A tracer stays where it is, for good; a name has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trapline_agent(operation: u32, argument: *const u8, len: u64) -> i64 {
    let done = match operation {
        // SAFETY: so says the caller.
        1 => unsafe { tracers::register(argument.cast::<Own>()) },
        2 if len <= 100 => {
            // SAFETY: so says the caller.
            serve(unsafe { core::slice::from_raw_parts(argument, len as usize) })
        }
        3 | 4 => {
            // SAFETY: so says the caller.
            unsafe { tracers::report(argument.cast::<Own>(), operation == 4) };
            true
        }
        _ => false,
    };
    if done { 0 } else { -1 }
}

/// Serves requests until the socket is closed.
pub fn serve(socket: &[u8]) -> bool {
    let mask = kernel::block();
    let served =
        talk::connect(socket, talk::PATIENCE).filter(|s| talk::greet(s, Reason::Tracers, &[], &[])).is_some_and(|s| {
            while one(&s) {}
            true
        });
    kernel::set_mask(mask);
    served
}

/// The most targets of a request.
const TARGETS: u32 = abi::thread::ROWS;

/// Serves one request. False: there is none, or it is not what it should be.
fn one(socket: &Descriptor) -> bool {
    let mut message = [0u8; size_of::<Request>()];
    let Some([plan, ..]) = talk::receive_all(socket, &mut message) else { return false };
    let Some(request) = plain::read::<Request>(&message) else { return false };
    if request.magic != MAGIC || request.version != abi::VERSION || request.count > TARGETS {
        return false;
    }
    let len = (u64::from(request.count) * size_of::<Target>() as u64 + 4096) & !4095;
    let Some(targets) = kernel::reserve(len) else { return false };
    let count = request.count as usize;
    // SAFETY: this many bytes were reserved.
    let text = unsafe { core::slice::from_raw_parts_mut(targets as *mut u8, count * size_of::<Target>()) };
    let served = talk::receive_all(socket, text).is_some()
        && plain::slice(text, count).is_some_and(|targets| obey(socket, &request, targets, plan));
    // SAFETY: nothing of it is borrowed any more.
    unsafe { kernel::unmap(targets, len) };
    served
}

fn obey(socket: &Descriptor, request: &Request, targets: &[Target], plan: Descriptor) -> bool {
    let mut reply = Reply { magic: MAGIC, ..Reply::default() };
    let tracer = tracers::find(&request.name);
    let known = |reply: &mut Reply| {
        reply.error = if tracer.is_none() { Refused::NoSuch as u32 } else { 0 };
        tracer
    };
    match request.operation {
        o if o == Operation::Status as u32 => return status(socket, reply),
        o if o == Operation::Enable as u32 => {
            if let Some(tracer) = known(&mut reply) {
                let enabled = enable(tracer, request, targets, plan, &mut reply);
                reply.error = enabled.map_or_else(|refused| refused as u32, |()| 0);
            }
        }
        o if o == Operation::Disable as u32 => {
            if let Some(tracer) = known(&mut reply) {
                reply.error = disable(tracer, &mut reply).map_or_else(|refused| refused as u32, |()| 0);
            }
        }
        o if o == Operation::Join as u32 => reply.error = join(request, targets, plan, &mut reply),
        o if o == Operation::Print as u32 => {
            if let Some(tracer) = known(&mut reply) {
                return print(socket, reply, tracer);
            }
        }
        _ => reply.error = Refused::Wrong as u32,
    }
    talk::send_all(socket, bytes(&reply))
}

fn enable(
    tracer: &Tracer,
    request: &Request,
    targets: &[Target],
    file: Descriptor,
    reply: &mut Reply,
) -> Result<(), Refused> {
    if tracer.slot().is_some() {
        return Err(Refused::Already);
    }
    if tracer.kind() == Kind::Graph as u32 {
        return Err(Refused::Wrong);
    }
    // Threads have rows of one kind.
    if shared::sums() != 0 {
        return Err(Refused::Sums);
    }
    extend(request, targets, file, reply)?;
    forget(tracer.kind());
    if !checks::begin(tracer.kind()) {
        return Err(Refused::Memory);
    }
    let slot = tracer.enable(&request.options)?;
    for site in targets.iter().filter_map(|t| sites::get(t.number)) {
        site.tracers.fetch_or(slot.bit(), Relaxed);
    }
    sites::apply_all(reply);
    Ok(())
}

/// Adds the sites and stubs of a request's plan.
fn extend(request: &Request, targets: &[Target], file: Descriptor, reply: &mut Reply) -> Result<(), Refused> {
    let mapped = if request.plan > 0 {
        let at = talk::map_file(&file, request.plan, kernel::PROT_READ, kernel::MAP_PRIVATE);
        Some(at.ok_or(Refused::Memory)?)
    } else {
        None
    };
    drop(file);
    // SAFETY: the whole file is mapped, and sealed; it is unmapped only below.
    let plan = mapped.map(|at| unsafe { core::slice::from_raw_parts(at as *const u8, request.plan as usize) });
    let plan = plan.and_then(Plan::new);
    let right = plan.is_some() == mapped.is_some() && sites::extend(plan.as_ref(), targets, reply);
    if let Some(at) = mapped {
        // SAFETY: the plan is not used any more.
        unsafe { kernel::unmap(at, request.plan) };
    }
    if right { Ok(()) } else { Err(Refused::Wrong) }
}

/// The recording joins the tracers of sites that have its stubs. 0, or why not.
fn join(request: &Request, targets: &[Target], file: Descriptor, reply: &mut Reply) -> u32 {
    let joined = extend(request, targets, file, reply).and_then(|()| {
        let joined = sites::join(targets);
        sites::apply_all(reply);
        if joined { Ok(()) } else { Err(Refused::NotEnabled) }
    });
    joined.map_or_else(|refused| refused as u32, |()| 0)
}

/// What the last use of a tracer has left goes when it is enabled again.
fn forget(kind: u32) {
    if kind == Kind::Count as u32 {
        thread::forget_counts();
    } else {
        checks::forget(kind);
    }
}

fn disable(tracer: &Tracer, reply: &mut Reply) -> Result<(), Refused> {
    let slot: &Slot = tracer.slot().ok_or(Refused::NotEnabled)?;
    if tracer.kind() == Kind::Graph as u32 {
        return Err(Refused::Wrong);
    }
    for site in (1..=sites::used()).filter_map(sites::get) {
        site.tracers.fetch_and(!slot.bit(), Relaxed);
    }
    tracer.disable();
    sites::apply_all(reply);
    Ok(())
}

fn status(socket: &Descriptor, mut reply: Reply) -> bool {
    let known = tracers::known();
    let state = State { tracers: known.len() as u32, sites: sites::used() };
    let sizes = known.len() * size_of::<Known>() + state.sites as usize * size_of::<abi::tracer::Site>();
    reply.len = (size_of::<State>() + sizes) as u64;
    let [missed, nested] = thread::missed();
    let tracers = known.iter().map(|t| {
        let (mut place, mut reported) = (t.place(), t.reported.load(Relaxed));
        if t.kind() == Kind::Graph as u32 {
            // One whose collector is gone has ended.
            let collector = Some(shared::collector()).filter(|c| place != 0 && *c != 0);
            let began = if session::began_with_program() { PRELOADED } else { 0 };
            (place, reported) = collector.map_or((0, 0), |c| (place, u64::from(c) | began));
        }
        Known { name: t.name(), kind: t.kind(), place, missed, nested, reported, panics: t.panics.load(Relaxed) }
    });
    talk::send_all(socket, bytes(&reply))
        && talk::send_all(socket, bytes(&state))
        && tracers.into_iter().all(|t| talk::send_all(socket, bytes(&t)))
        && send_each(socket, (1..=state.sites).filter_map(sites::get).map(sites::Site::state))
}

/// Sends values, many at a time.
fn send_each<T: Plain + Default>(socket: &Descriptor, mut values: impl Iterator<Item = T>) -> bool {
    loop {
        let mut some = [T::default(); 32];
        let mut len = 0;
        for (to, from) in some.iter_mut().zip(&mut values) {
            *to = from;
            len += size_of::<T>();
        }
        if len == 0 {
            return true;
        }
        if !talk::send_all(socket, bytes(&some).get(..len).unwrap_or(&[])) {
            return false;
        }
    }
}

fn print(socket: &Descriptor, mut reply: Reply, tracer: &Tracer) -> bool {
    let begun = tracer.slot().map_or([0; 2], |s| [0, 1].map(|i| s.begun.get(i).map_or(0, |b| b.load(Relaxed))));
    let counted = || {
        let last = if tracer.kind() == Kind::Count as u32 { sites::used() } else { 0 };
        (1..=last).map(|n| (n, thread::counted(n))).filter(|(_, row)| row.calls > 0).map(|(n, row)| Counted {
            number: n.into(),
            calls: row.calls,
            total: row.total,
            own: row.own as i64,
        })
    };
    let printed = Printed {
        counted: counted().count() as u32,
        violations: checks::violations(tracer.kind()).count() as u32,
        lost: checks::lost(tracer.kind()),
        begun,
        now: [kernel::tsc(), kernel::monotonic()],
    };
    let violations = u64::from(printed.violations) * size_of::<abi::tracer::Violation>() as u64;
    reply.len = size_of::<Printed>() as u64 + u64::from(printed.counted) * size_of::<Counted>() as u64 + violations;
    talk::send_all(socket, bytes(&reply))
        && talk::send_all(socket, bytes(&printed))
        && send_each(socket, counted())
        && checks::violations(tracer.kind()).all(|v| talk::send_all(socket, bytes(v)))
}

const _: () = assert!(NAME.is_multiple_of(8));
