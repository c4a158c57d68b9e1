//! The conversation with the collector: one connection for each request, all descriptors closed at its end.

use crate::kernel::{self, MessageHeader};
use crate::{args, calls, chunks, heap, hooks, install, originals, own, permits, plans, slow, thread};
use abi::message::{Hello, Installed, MAGIC, Reason, SLOWS, Slow, Untraced, Verdict, Welcome};
use core::mem::size_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The collector has so many seconds for each step; while it plans, it says that it does ([`Verdict::Wait`]).
pub const PATIENCE: u64 = 10;
/// Seconds that a message without an answer may take.
const BRIEF: u64 = 1;
/// The most text of `/proc/self/maps`, and what there is room for at first.
const MAPS: u64 = 64 << 20;
const FIRST: u64 = 64 << 10;
/// The most bytes of a plan.
const PLAN: u64 = 1 << 32;

/// What `/proc/self/maps` had of files with code when the collector last saw it, as a hash.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Text of `/proc/self/maps`, in memory of its own.
struct Maps {
    at: u64,
    len: usize,
    /// Bytes that are mapped.
    room: u64,
}

impl Maps {
    fn read() -> Option<Maps> {
        let mut maps = Maps { at: kernel::reserve_first(MAPS, FIRST)?, len: 0, room: FIRST };
        let fd = kernel::open_own(c"/proc/self/maps", kernel::O_RDONLY);
        if fd < 0 {
            return Some(maps);
        }
        while (maps.len as u64) < MAPS {
            if maps.len as u64 == maps.room {
                if !kernel::extend(maps.at + maps.room, maps.room) {
                    break;
                }
                maps.room *= 2;
            }
            // SAFETY: the rest of the memory that is mapped.
            let rest = unsafe {
                core::slice::from_raw_parts_mut((maps.at as usize + maps.len) as *mut u8, maps.room as usize - maps.len)
            };
            match kernel::read(fd as i32, rest) {
                kernel::EINTR => {}
                n if n > 0 => maps.len += n as usize,
                _ => break,
            }
        }
        kernel::close(fd as i32);
        Some(maps)
    }

    fn text(&self) -> &[u8] {
        // SAFETY: so many bytes have been read.
        unsafe { core::slice::from_raw_parts(self.at as *const u8, self.len) }
    }

    /// A hash of the lines of files with code (FNV-1a).
    fn hash(&self) -> u64 {
        let code = |l: &&[u8]| l.contains(&b'/') && l.windows(4).take(64).any(|w| w == b"r-xp");
        let bytes = self.text().split(|b| *b == b'\n').filter(code).flatten();
        bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
    }
}

impl Drop for Maps {
    fn drop(&mut self) {
        // SAFETY: nothing of it is borrowed any more.
        unsafe { kernel::unmap(self.at, self.room) };
    }
}

/// A descriptor that closes with this value.
pub struct Descriptor(pub i32);

impl Drop for Descriptor {
    fn drop(&mut self) {
        kernel::close(self.0);
    }
}

/// Bytes of a message.
pub fn bytes<T>(message: &T) -> &[u8] {
    // SAFETY: messages have no padding (their fields are of 4 and 8 bytes, in the right order).
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(message).cast(), size_of::<T>()) }
}

/// Asks the collector, and does what it answers. All signals are blocked. Without a collector nothing happens.
pub fn ask(reason: Reason) {
    let _ = attempt(reason);
}

/// As [`ask`]; whether there is anything to be done, or an errno.
pub fn attempt(reason: Reason) -> Result<bool, u32> {
    let maps = Maps::read().ok_or(kernel::ENOMEM)?;
    let hash = maps.hash();
    if SEEN.swap(hash, Relaxed) == hash && reason == Reason::Modules {
        return Ok(false);
    }
    let socket = connect(own::socket_name(), PATIENCE).ok_or(kernel::ECONNREFUSED)?;
    if !greet(&socket, reason, maps.text()) {
        return Err(kernel::EPROTO);
    }
    drop(maps);
    let (welcome, descriptors) = loop {
        match receive(&socket) {
            Some((welcome, _)) if welcome.verdict == Verdict::Wait as u32 => {}
            answer => break answer.ok_or(kernel::EPROTO)?,
        }
    };
    let installed = obey(&welcome, descriptors, reason);
    send_all(&socket, bytes(&installed));
    if installed.error != 0 { Err(installed.error) } else { Ok(welcome.verdict != Verdict::Leave as u32) }
}

/// Tells the collector that the process is about to execute a program, and why the agent cannot follow into it, if so. False: nobody
/// listens. Runs in children of vfork(2): nothing of the process is changed.
pub fn tell_exec(path: &[u8], why: Option<Untraced>) -> bool {
    let Some(socket) = connect(own::socket_name(), BRIEF) else { return false };
    let path = path.get(..path.len().min(own::PATH)).unwrap_or(&[]);
    let why = [why.map_or(0, |w| w as u8)];
    send_all(&socket, bytes(&hello(Reason::Exec, 1 + path.len()))) && send_all(&socket, &why) && send_all(&socket, path)
}

/// Tells it that the kernel has refused the program.
pub fn tell_failed() {
    if let Some(socket) = connect(own::socket_name(), BRIEF) {
        send_all(&socket, bytes(&hello(Reason::Failed, 0)));
    }
}

/// Connects to a socket: beside the agent's file, and where that cannot be seen, by the abstract name.
pub fn connect(name: &[u8], patience: u64) -> Option<Descriptor> {
    let is_path = name.starts_with(b"/");
    connect_to(name, if is_path { 2 } else { 3 }, patience).or_else(|| connect_to(name, 3, patience))
}

/// Connects to a name, which begins at an offset of struct sockaddr_un: an abstract one behind NUL.
fn connect_to(name: &[u8], at: usize, patience: u64) -> Option<Descriptor> {
    let mut address = [0u8; 110];
    address[0] = 1;
    address.get_mut(at..at + name.len())?.copy_from_slice(name);
    let fd = kernel::unix_socket();
    if name.is_empty() || fd < 0 {
        return None;
    }
    let socket = Descriptor(fd as i32);
    kernel::set_timeouts(socket.0, patience);
    (kernel::connect(socket.0, address.get(..at + name.len())?) == 0).then_some(socket)
}

pub fn send_all(socket: &Descriptor, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match kernel::send(socket.0, bytes) {
            kernel::EINTR => {}
            n if n > 0 => bytes = bytes.get(n as usize..).unwrap_or(&[]),
            _ => return false,
        }
    }
    true
}

/// What a conversation begins with.
pub fn hello(reason: Reason, text: usize) -> Hello {
    Hello {
        magic: MAGIC,
        version: abi::VERSION,
        reason: reason as u32,
        pid: kernel::getpid() as u32,
        parent: kernel::getppid() as u32,
        maps_len: text as u32,
        tls: thread::tls_offset(),
        slow: slow_code(),
        hooks: hooks::addresses(),
        originals: originals::address(),
    }
}

/// Says who asks, and why.
pub fn greet(socket: &Descriptor, reason: Reason, maps: &[u8]) -> bool {
    send_all(socket, bytes(&hello(reason, maps.len()))) && send_all(socket, maps)
}

/// The answer, and its descriptors.
fn receive(socket: &Descriptor) -> Option<(Welcome, [Descriptor; 3])> {
    let mut welcome = [0u8; size_of::<Welcome>()];
    let descriptors = receive_all(socket, &mut welcome)?;
    // SAFETY: any bytes are a Welcome.
    let welcome: Welcome = unsafe { welcome.as_ptr().cast::<Welcome>().read_unaligned() };
    (welcome.magic == MAGIC && welcome.version == abi::VERSION).then_some((welcome, descriptors))
}

/// Fills a message, and takes up to three descriptors; those that were not sent are -1.
pub fn receive_all(socket: &Descriptor, message: &mut [u8]) -> Option<[Descriptor; 3]> {
    let mut descriptors = [Descriptor(-1), Descriptor(-1), Descriptor(-1)];
    let mut have = 0;
    while have < message.len() {
        let mut control = [0u64; 4];
        let vector = [message.as_mut_ptr() as u64 + have as u64, (message.len() - have) as u64];
        let mut header = MessageHeader {
            name: 0,
            name_len: 0,
            vectors: vector.as_ptr() as u64,
            vector_count: 1,
            control: control.as_mut_ptr() as u64,
            control_len: size_of_val(&control) as u64,
            flags: 0,
        };
        match kernel::receive(socket.0, &mut header) {
            kernel::EINTR => continue,
            n if n > 0 => have += n as usize,
            _ => return None,
        }
        // struct cmsghdr: length, then level (SOL_SOCKET) and type (SCM_RIGHTS), then descriptors.
        if header.control_len >= 20 && control[1] == 1 << 32 | 1 {
            let count = ((control[0].saturating_sub(16)) / 4) as usize;
            let sent = [control[2], control[2] >> 32, control[3]];
            for (descriptor, number) in descriptors.iter_mut().zip(sent).take(count) {
                *descriptor = Descriptor(number as i32);
            }
        }
    }
    Some(descriptors)
}

fn obey(welcome: &Welcome, descriptors: [Descriptor; 3], reason: Reason) -> Installed {
    // Descriptors that the process has no room for do not arrive.
    let came = descriptors.iter().filter(|d| d.0 >= 0).count() as u32;
    if came < welcome.descriptors.min(3) {
        return install::failure(kernel::EMFILE);
    }
    // Those that are not sent are left out: a process that loads modules later has its memory already.
    let mut rest = descriptors.into_iter();
    let mut take = |bytes: u64| if bytes > 0 && welcome.verdict != Verdict::Leave as u32 { rest.next() } else { None };
    let (shared, plan, tables) = (take(welcome.shared), take(welcome.plan), take(welcome.tables));
    let has_tables = reason == Reason::Fork && heap::has_tables();
    let len = if permits::grows() { welcome.tables } else { heap::TABLES_SIZE };
    if let Some(tables) = tables.filter(|t| t.0 >= 0 && !has_tables)
        && let Some(at) = map_first(&tables, (heap::TABLES_SIZE, len), kernel::PROT_READ, kernel::MAP_SHARED)
        && !heap::use_tables(at, len)
    {
        // SAFETY: it was refused, so nobody uses it.
        unsafe { kernel::unmap(at, len) };
    }
    heap::extend_tables(welcome.tables);
    if let Some(shared) = shared.filter(|s| s.0 >= 0)
        && chunks::control().is_none()
    {
        let protection = kernel::PROT_READ | kernel::PROT_WRITE;
        let whole = (welcome.shared, chunks::first(welcome.shared));
        let Some(at) = map_first(&shared, whole, protection, kernel::MAP_SHARED) else {
            return install::failure(kernel::ENOMEM);
        };
        if !chunks::attach(at, welcome.shared) {
            // SAFETY: it was refused, so nobody uses it.
            unsafe { kernel::unmap(at, welcome.shared) };
            return install::failure(kernel::EPROTO);
        }
    }
    let Some(plan) = plan.filter(|p| p.0 >= 0 && welcome.plan > 0 && welcome.plan <= PLAN) else {
        return install::failure(0);
    };
    let Some(at) = map_file(&plan, welcome.plan, kernel::PROT_READ, kernel::MAP_PRIVATE) else {
        return install::failure(kernel::ENOMEM);
    };
    drop(plan);
    // SAFETY: the whole file is mapped, and sealed; it is unmapped only below.
    let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, welcome.plan as usize) };
    let installed = install::install(bytes, reason);
    install::use_mappings(bytes);
    if !plans::keep(at, welcome.plan) {
        // SAFETY: `bytes` is not used any more.
        unsafe { kernel::unmap(at, welcome.plan) };
    }
    installed
}

/// Maps a file that has at least so many bytes.
pub fn map_file(file: &Descriptor, len: u64, protection: usize, flags: usize) -> Option<u64> {
    map_first(file, (len, len), protection, flags)
}

/// Maps the first `len` bytes of a file that has at least `whole`, where it can grow.
fn map_first(file: &Descriptor, (whole, len): (u64, u64), protection: usize, flags: usize) -> Option<u64> {
    let size = kernel::size(file.0);
    let has = size > 0 && size as u64 >= whole;
    has.then(|| kernel::map_first(whole, len, protection, flags, file.0)).flatten()
}

/// Where the slow code is, for the collector.
fn slow_code() -> [u64; SLOWS] {
    let mut out = [0; SLOWS];
    let mut set = |slow: Slow, code: &u8| {
        if let Some(place) = out.get_mut(slow as usize) {
            *place = core::ptr::from_ref(code) as u64;
        }
    };
    let [chunk, enter, exit, high, late, count] = slow::code();
    set(Slow::Chunk, chunk);
    set(Slow::Enter, enter);
    set(Slow::Exit, exit);
    set(Slow::High, high);
    set(Slow::Late, late);
    set(Slow::Count, count);
    let [call, left] = calls::code();
    set(Slow::Call, call);
    set(Slow::Return, left);
    let [arguments, result] = args::code();
    set(Slow::Arguments, arguments);
    set(Slow::Result, result);
    out
}
