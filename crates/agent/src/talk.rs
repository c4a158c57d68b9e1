//! The conversation with the collector: one connection for each request, all descriptors closed at its end.

use crate::kernel::{self, MessageHeader};
use crate::loader::Module;
use crate::plain::{self, bytes};
use crate::{loader, originals, own, shared, slots, thread};
use abi::message::{HOOKS, Hello, Installed, MAGIC, Reason, SLOWS, Untraced, Verdict, Welcome};
use core::mem::size_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// The seconds that the collector has for each step; while it plans, it says that it does ([`Verdict::Wait`]).
pub const PATIENCE: u64 = 10;
/// Seconds that a message without an answer may take.
const BRIEF: u64 = 1;
/// The most text of `/proc/self/maps`, and what there is room for at first.
const MAPS: u64 = 64 << 20;
const FIRST: u64 = 64 << 10;

/// What `/proc/self/maps` had of files with code when the collector last saw it, as a hash.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Where the code is that plans lead to: the slow code of stubs, and hooks.
static SLOW: [AtomicU64; SLOWS] = [const { AtomicU64::new(0) }; SLOWS];
static HOOKED: [AtomicU64; HOOKS] = [const { AtomicU64::new(0) }; HOOKS];

/// Notes where that code is, for reports to the collector. At the start.
pub fn note_code(slow: &[u64; SLOWS], hooks: &[u64; HOOKS]) {
    SLOW.iter().zip(slow).chain(HOOKED.iter().zip(hooks)).for_each(|(to, at)| to.store(*at, Relaxed));
}

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
        // SAFETY: this many bytes have been read.
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

/// What the collector has answered.
pub struct Answer {
    socket: Descriptor,
    pub welcome: Welcome,
    shared: Option<Descriptor>,
    pub plan: Option<Descriptor>,
    pub tables: Option<Descriptor>,
}

/// Asks the collector. All signals are blocked. None: modules have not changed since; or an errno.
pub fn ask(reason: Reason) -> Result<Option<Answer>, u32> {
    let maps = Maps::read().ok_or(kernel::ENOMEM)?;
    let hash = maps.hash();
    let came = if reason == Reason::Modules { loader::came() } else { &[] };
    if SEEN.swap(hash, Relaxed) == hash && reason == Reason::Modules && came.is_empty() {
        return Ok(None);
    }
    let socket = connect(own::socket_name(), PATIENCE).ok_or_else(why_not)?;
    if !greet(&socket, reason, maps.text(), came) {
        return Err(kernel::EPROTO);
    }
    drop(maps);
    let (welcome, descriptors) = loop {
        match receive(&socket) {
            Some((welcome, _)) if welcome.verdict == Verdict::Wait as u32 => {}
            answer => break answer.ok_or(kernel::EPROTO)?,
        }
    };
    let came = descriptors.iter().filter(|d| d.0 >= 0).count() as u32;
    // Those that are not sent are left out: a process that loads modules later has its memory already.
    let mut rest = descriptors.into_iter().filter(|d| d.0 >= 0);
    let mut take = |bytes: u64| if bytes > 0 && welcome.verdict != Verdict::Leave as u32 { rest.next() } else { None };
    let (shared, plan, tables) = (take(welcome.shared), take(welcome.plan), take(welcome.tables));
    let answer = Answer { socket, welcome, shared, plan, tables };
    // Descriptors that the process has no room for do not arrive.
    if came < welcome.descriptors.min(3) {
        answer.finish(&Installed::failure(kernel::EMFILE))?;
    }
    Ok(Some(answer))
}

impl Answer {
    /// Maps the memory for records, if it has come and there is none yet. Or an errno.
    pub fn use_shared(&mut self) -> Result<(), u32> {
        let Some(file) = self.shared.take().filter(|_| shared::control().is_none()) else { return Ok(()) };
        let len = self.welcome.shared;
        let first = shared::first(len);
        let protection = kernel::PROT_READ | kernel::PROT_WRITE;
        let at = map_first(&file, (len, first), protection, kernel::MAP_SHARED).ok_or(kernel::ENOMEM)?;
        // SAFETY: it has just been mapped.
        if !unsafe { shared::attach(at, len) } {
            // SAFETY: it was refused, so nobody uses it.
            unsafe { kernel::unmap(at, len) };
            return Err(kernel::EPROTO);
        }
        shared::tell_threads(slots::table);
        Ok(())
    }

    /// Says what was done. Whether there was anything to be done, or the errno that was said.
    pub fn finish(&self, installed: &Installed) -> Result<bool, u32> {
        send_all(&self.socket, bytes(installed));
        if installed.error != 0 { Err(installed.error) } else { Ok(self.welcome.verdict != Verdict::Leave as u32) }
    }
}

/// Reports to the collector that the process is about to execute a program, and why the agent cannot follow into it, if so. False: nobody
/// listens. Runs in children of vfork(2): nothing of the process is changed.
pub fn tell_exec(path: &[u8], why: Option<Untraced>) -> bool {
    let Some(socket) = connect(own::socket_name(), BRIEF) else { return false };
    let path = path.get(..path.len().min(own::PATH)).unwrap_or(&[]);
    let why = [why.map_or(0, |w| w as u8)];
    send_all(&socket, bytes(&hello(Reason::Exec, 1 + path.len()))) && send_all(&socket, &why) && send_all(&socket, path)
}

/// Reports to it that the kernel has refused the program.
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

/// Why there is no connection: no more files may be open, or nobody answers.
fn why_not() -> u32 {
    match kernel::unix_socket() {
        fd @ 0.. => {
            drop(Descriptor(fd as i32));
            kernel::ECONNREFUSED
        }
        errno => errno.unsigned_abs() as u32,
    }
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
        slow: core::array::from_fn(|i| SLOW.get(i).map_or(0, |at| at.load(Relaxed))),
        hooks: core::array::from_fn(|i| HOOKED.get(i).map_or(0, |at| at.load(Relaxed))),
        originals: originals::address(),
    }
}

/// The answer, and its descriptors.
fn receive(socket: &Descriptor) -> Option<(Welcome, [Descriptor; 3])> {
    let mut welcome = [0u8; size_of::<Welcome>()];
    let descriptors = receive_all(socket, &mut welcome)?;
    let welcome: Welcome = plain::read(&welcome)?;
    (welcome.magic == MAGIC && welcome.version == abi::VERSION).then_some((welcome, descriptors))
}

/// Says who asks, and why: with mappings, and modules that have come since.
pub fn greet(socket: &Descriptor, reason: Reason, maps: &[u8], came: &[Module]) -> bool {
    let is_sent = send_all(socket, bytes(&hello(reason, maps.len() + CAME * came.len()))) && send_all(socket, maps);
    is_sent && came.iter().all(|module| send_all(socket, &line(module.inside())))
}

/// Bytes of a line for a module that has come.
const CAME: usize = abi::message::CAME.len() + 17;

/// The line for an address in such a module.
fn line(address: u64) -> [u8; CAME] {
    let mut line = [b'\n'; CAME];
    let (word, number) = line.split_at_mut(abi::message::CAME.len());
    word.copy_from_slice(abi::message::CAME);
    for (i, digit) in number.iter_mut().take(16).enumerate() {
        *digit = *b"0123456789abcdef".get((address >> (60 - 4 * i) & 15) as usize).unwrap_or(&0);
    }
    line
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

/// Maps a file that has at least this many bytes.
pub fn map_file(file: &Descriptor, len: u64, protection: usize, flags: usize) -> Option<u64> {
    map_first(file, (len, len), protection, flags)
}

/// Maps the first `len` bytes of a file that has at least `whole`, where it can grow.
pub fn map_first(file: &Descriptor, (whole, len): (u64, u64), protection: usize, flags: usize) -> Option<u64> {
    let size = kernel::size(file.0);
    let has = size > 0 && size as u64 >= whole;
    has.then(|| kernel::map_first(whole, len, protection, flags, file.0)).flatten()
}
