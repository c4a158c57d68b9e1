//! Tracers of functions for trapline, in Rust: something that is called when a function of the traced program begins, and when it returns.
//!
//! ```no_run
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use tracer::{Callbacks, Function};
//!
//! struct Calls(AtomicU64);
//!
//! impl Callbacks for Calls {
//!     fn enter(&self, _: &Function, _: *const (), _: u32) {
//!         self.0.fetch_add(1, Relaxed);
//!     }
//! }
//!
//! tracer::tracer!("calls", Calls, Calls(AtomicU64::new(0)));
//! ```
//!
//! That, built as a `cdylib`, is a tracer: when the library is loaded, it registers itself with the agent, and `trapline tracer enable` can enable
//! it. In a process without an agent it does nothing. Programs can have tracers in themselves in the same way.
//!
//! # What callbacks may do
//! They run between any two instructions of the program, on its stack, on every thread at once, also in signal handlers:
//!
//! - They take no lock and call nothing that may: the program may hold it. malloc, stdio, the loader and most of std are such.
//! - They return. They neither unwind nor longjmp. A panic is caught here: the tracer gets no more calls, and `trapline tracer status` says so.
//! - They use little stack: a few hundred bytes.
//! - What they call is not traced. errno stays as it is.
//! - They use vector registers of SSE and AVX, not those of AVX-512 (unless the library is compiled for it: then all are saved, which takes
//!   half a microsecond more), and none of x87 and MMX.

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A function that is traced.
#[derive(Debug)]
#[repr(C)]
pub struct Function {
    /// Where it begins.
    pub address: *const (),
    /// Its number: functions of a process are numbered from 1.
    pub number: u32,
    reserved: u32,
}

/// What a tracer does.
pub trait Callbacks: Sync {
    /// A function begins, called from `caller`; `depth` calls are open on this thread.
    fn enter(&self, function: &Function, caller: *const (), depth: u32) {
        let _ = (function, caller, depth);
    }

    /// A function returns.
    fn exit(&self, function: &Function, depth: u32) {
        let _ = (function, depth);
    }
}

/// The registration of a tracer with the agent: `struct trapline_tracer` of trapline_tracer.h.
#[derive(Debug)]
#[repr(C)]
pub struct Descriptor {
    version: u32,
    flags: u32,
    name: *const c_char,
    enter: extern "C" fn(&Function, *const (), u32),
    exit: extern "C" fn(&Function, u32),
}

// SAFETY: nothing of it is ever written.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    /// For [`tracer!`].
    pub const fn new(
        name: &'static CStr,
        enter: extern "C" fn(&Function, *const (), u32),
        exit: extern "C" fn(&Function, u32),
    ) -> Descriptor {
        Descriptor { version: 1, flags: cfg!(target_feature = "avx512f") as u32, name: name.as_ptr(), enter, exit }
    }
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dladdr(address: *const c_void, object: *mut Object) -> c_int;
}

/// Dl_info of dladdr(3).
#[repr(C)]
struct Object {
    path: *const c_char,
    rest: [*const c_void; 3],
}

/// RTLD_LAZY, RTLD_NOLOAD and RTLD_NODELETE of dlopen(3).
const STAY: c_int = 0x1 | 0x4 | 0x1000;

type Agent = unsafe extern "C" fn(u32, *const c_void, c_ulong) -> c_long;

/// The agent's function, if there is one.
fn agent() -> Option<Agent> {
    // SAFETY: the name is a string; RTLD_DEFAULT is null.
    let agent = unsafe { dlsym(std::ptr::null_mut(), c"trapline_agent".as_ptr()) };
    // SAFETY: null is None. The name is the agent's, as those of libc are libc's: a definition of it has this type.
    unsafe { std::mem::transmute::<*mut c_void, Option<Agent>>(agent) }
}

fn ask(agent: Agent, operation: u32, tracer: &'static Descriptor) -> bool {
    // SAFETY: the agent's operations 1 and 4 take a tracer that stays where it is.
    unsafe { agent(operation, std::ptr::from_ref(tracer).cast(), 0) == 0 }
}

/// Registers a tracer with the agent. False: there is no agent, or another tracer has the name.
///
/// A library that a tracer of the agent's is in stays loaded: a static of one that dlclose(3) unmaps would be none.
pub fn register(tracer: &'static Descriptor) -> bool {
    let Some(agent) = agent() else { return false };
    let mut object = Object { path: std::ptr::null(), rest: [std::ptr::null(); 3] };
    // SAFETY: the address is one of the object's, and its path a string of the loader's that stays as long as the object. Opening what is loaded
    // loads nothing, and leaves the program itself, which has no path to be found by, as it is.
    unsafe {
        if dladdr(std::ptr::from_ref(tracer).cast(), &mut object) != 0 && !object.path.is_null() {
            dlopen(object.path, STAY);
        }
    }
    ask(agent, 1, tracer)
}

/// Runs a callback, for [`tracer!`]. After a panic there is no other one, but in threads that are in one already.
#[inline]
pub fn run(tracer: &'static Descriptor, failed: &AtomicBool, callback: impl FnOnce()) {
    if failed.load(Relaxed) {
        return;
    }
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        failed.store(true, Relaxed);
        if let Some(agent) = agent() {
            ask(agent, 4, tracer);
        }
    }
}

/// Makes a tracer: its name, its type, and the value of it that gets the calls, which must be constant.
#[macro_export]
macro_rules! tracer {
    ($name:literal, $type:ty, $value:expr) => {
        const _: () = {
            static TRACER: $type = $value;
            static FAILED: ::std::sync::atomic::AtomicBool = ::std::sync::atomic::AtomicBool::new(false);
            static DESCRIPTOR: $crate::Descriptor = {
                const NAME: &::std::ffi::CStr =
                    match ::std::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("the name has a NUL"),
                    };
                $crate::Descriptor::new(NAME, enter, exit)
            };
            extern "C" fn enter(function: &$crate::Function, caller: *const (), depth: u32) {
                $crate::run(&DESCRIPTOR, &FAILED, || $crate::Callbacks::enter(&TRACER, function, caller, depth));
            }
            extern "C" fn exit(function: &$crate::Function, depth: u32) {
                $crate::run(&DESCRIPTOR, &FAILED, || $crate::Callbacks::exit(&TRACER, function, depth));
            }
            extern "C" fn begin() {
                $crate::register(&DESCRIPTOR);
            }
            #[used]
            #[unsafe(link_section = ".init_array")]
            static BEGIN: extern "C" fn() = begin;
        };
    };
}
