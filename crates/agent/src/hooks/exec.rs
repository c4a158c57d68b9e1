//! Following a process into the program that it executes: the agent's variables are put back into the environment that is passed.
//!
//! The collector is notified before. So it knows which program the agent could not follow into, and why; and where it was notified that the agent
//! follows, that none has come. Where nobody listens any more, the program is executed as it would be without the agent.
//!
//! The environment is made on the stack where it is small, for a child of vfork(2) or posix_spawn(3) runs in its parent's memory, which
//! would keep whatever it mapped. The attempt is a bare call. Where that fails, the program's own call is made, which fails in
//! the same way and sets errno; so nothing needs to be undone.

use crate::originals::original;
use crate::thread::local;
use crate::{kernel, memory, own, permits, record, shared, talk};
use abi::message::{Hook, Untraced};

/// Variables, and bytes of text, of an environment that is made on the stack.
const VARIABLES: usize = 384;
const TEXT: usize = 2048;
/// The most variables that are looked at: the kernel allows 6 MB of pointers and text.
const MOST: usize = 1 << 20;
/// Scripts that lead to scripts, as the kernel counts them.
const SCRIPTS: u32 = 5;

/// `execve(path, arguments, environment)`.
pub extern "C" fn execve(path: u64, arguments: u64, environment: u64) -> i32 {
    // SAFETY: so says the caller.
    unsafe { attempt(kernel::AT_FDCWD, path, arguments, environment, 0, false) };
    // SAFETY: the plan has put a relocated `execve` there.
    let original: extern "C" fn(u64, u64, u64) -> i32 = unsafe { core::mem::transmute(original(Hook::Execve)) };
    original(path, arguments, environment)
}

/// `execveat(directory, path, arguments, environment, flags)`.
pub extern "C" fn execveat(directory: i32, path: u64, arguments: u64, environment: u64, flags: i32) -> i32 {
    // SAFETY: so says the caller.
    unsafe { attempt(directory, path, arguments, environment, flags as usize, true) };
    // SAFETY: the plan has put a relocated `execveat` there.
    let original: extern "C" fn(i32, u64, u64, u64, i32) -> i32 =
        unsafe { core::mem::transmute(original(Hook::Execveat)) };
    original(directory, path, arguments, environment, flags)
}

/// `fexecve(file, arguments, environment)`.
pub extern "C" fn fexecve(file: i32, arguments: u64, environment: u64) -> i32 {
    // SAFETY: so says the caller.
    unsafe { attempt(file, c"".as_ptr() as u64, arguments, environment, kernel::AT_EMPTY_PATH, true) };
    // SAFETY: the plan has put a relocated `fexecve` there.
    let original: extern "C" fn(i32, u64, u64) -> i32 = unsafe { core::mem::transmute(original(Hook::Fexecve)) };
    original(file, arguments, environment)
}

/// What the agent's variables say.
#[derive(Clone, Copy)]
struct Own {
    agent: &'static [u8],
    socket: &'static [u8],
}

/// Executes a program with the agent in it. Comes back where that fails or would be wrong.
///
/// # Safety
/// Path and environment are what execve(2) takes.
pub unsafe fn attempt(directory: i32, path: u64, arguments: u64, environment: u64, flags: usize, at: bool) {
    if !permits::talk() {
        return shared::count_left();
    }
    // Once: another session may have other names at any moment.
    let own = Own { agent: own::agent_path(), socket: own::socket_name() };
    if !kernel::is_readable(environment) && environment != 0 || own.agent.is_empty() {
        return;
    }
    let why = match follows(directory, path as *const u8, flags) {
        Some(Ok(())) if !kernel::is_loadable(own.agent.as_ptr()) => Some(Untraced::Unreachable),
        Some(Ok(())) => None,
        Some(Err(why)) => Some(why),
        None => return,
    };
    // SAFETY: the kernel has just found a file by it.
    let name = unsafe { memory::string(path as *const u8, own::PATH) };
    record::write_open(local());
    if !talk::tell_exec(name, why) {
        // Nobody would answer the agent: the collector is gone, or in another network namespace.
        return shared::count_left();
    }
    if why.is_some() {
        return;
    }
    // SAFETY: so says the caller.
    let count = unsafe { count(environment as *const *const u8) };
    let execute = |environment: u64| {
        let path = path as usize;
        let (arguments, environment) = (arguments as usize, environment as usize);
        // SAFETY: the program's own call, with an environment that lives as long as the call.
        unsafe {
            if at {
                kernel::call(kernel::EXECVEAT, [directory as usize, path, arguments, environment, flags, 0]);
            } else {
                kernel::call(kernel::EXECVE, [path, arguments, environment, 0, 0, 0]);
            }
        }
    };
    // SAFETY: this many variables are there.
    let need = unsafe { text_len(environment as *const *const u8, count, own) };
    if count + 3 <= VARIABLES && need <= TEXT {
        // SAFETY: as above, and both tables are large enough.
        unsafe { small(environment, count, own, execute) };
    } else if count < MOST {
        let len = ((count + 3) * 8 + need + 4095) as u64 & !4095;
        let Some(memory) = kernel::reserve(len) else { return };
        // SAFETY: pointers, then text, in new memory.
        unsafe {
            let (pointers, text) = (memory as *mut u64, (memory as usize + (count + 3) * 8) as *mut u8);
            build(environment as *const *const u8, count, own, pointers, text);
        }
        execute(memory);
        // SAFETY: the call has failed, and nothing uses it.
        unsafe { kernel::unmap(memory, len) };
    }
    talk::tell_failed();
}

/// Executes with an environment on the stack.
///
/// # Safety
/// This many variables are there, and [`VARIABLES`] and [`TEXT`] are enough for them and two more.
#[inline(never)]
unsafe fn small(environment: u64, count: usize, own: Own, execute: impl Fn(u64)) {
    let mut pointers = [0u64; VARIABLES];
    let mut text = [0u8; TEXT];
    // SAFETY: so says the caller.
    unsafe { build(environment as *const *const u8, count, own, pointers.as_mut_ptr(), text.as_mut_ptr()) };
    execute(pointers.as_ptr() as u64);
}

/// How many variables there are.
///
/// # Safety
/// An array of strings that ends with a null pointer, or null.
unsafe fn count(environment: *const *const u8) -> usize {
    let mut count = 0;
    // SAFETY: so says the caller.
    while count < MOST && !environment.is_null() && unsafe { !(*environment.add(count)).is_null() } {
        count += 1;
    }
    count
}

const PRELOAD: &[u8] = b"LD_PRELOAD=";

/// The variables of an environment, of each no more than what is looked at.
///
/// # Safety
/// This many are there, and stay as they are.
unsafe fn variables<'a>(environment: *const *const u8, count: usize) -> impl Iterator<Item = (*const u8, &'a [u8])> {
    (0..count).map(move |i| {
        // SAFETY: so says the caller.
        unsafe {
            let text = *environment.add(i);
            (text, memory::string(text, PRELOAD.len().max(abi::SOCKET.len() + 1)))
        }
    })
}

fn is_socket(text: &[u8]) -> bool {
    text.strip_suffix(b"=") == Some(abi::SOCKET.as_bytes())
        || text.get(..abi::SOCKET.len()) == Some(abi::SOCKET.as_bytes()) && text.get(abi::SOCKET.len()) == Some(&b'=')
}

/// The user's own entries of `LD_PRELOAD`.
///
/// # Safety
/// A string that begins with `LD_PRELOAD=`, and stays as it is.
unsafe fn preload(text: *const u8) -> &'static [u8] {
    // SAFETY: so says the caller.
    unsafe { memory::string(text.add(PRELOAD.len()), 1 << 17) }
}

/// Bytes of the two variables that [`build`] makes.
///
/// # Safety
/// As of [`variables`].
unsafe fn text_len(environment: *const *const u8, count: usize, own: Own) -> usize {
    // SAFETY: so says the caller.
    let all = unsafe { variables(environment, count) };
    // SAFETY: they begin with that.
    let users: usize = all.filter(|(_, v)| *v == PRELOAD).map(|(t, _)| unsafe { preload(t) }.len() + 1).sum();
    PRELOAD.len() + own.agent.len() + users + abi::SOCKET.len() + own.socket.len() + 8
}

/// Makes the environment with the agent's variables: `LD_PRELOAD` where the user has it, else at the end.
///
/// # Safety
/// As of [`variables`]; there is room for `count` + 3 pointers, and for the text ([`text_len`]).
unsafe fn build(environment: *const *const u8, count: usize, own: Own, pointers: *mut u64, text: *mut u8) {
    let mut used = 0;
    let mut put = |parts: &[&[u8]]| {
        let begin = used;
        for part in parts {
            // SAFETY: the caller has made room.
            unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), text.add(used), part.len()) };
            used += part.len();
        }
        text as u64 + begin as u64
    };
    let mut next = 0;
    let mut add = |pointer: u64| {
        // SAFETY: the caller has made room.
        unsafe { *pointers.add(next) = pointer };
        next += 1;
    };
    let mut found = false;
    // SAFETY: so says the caller.
    for (variable, beginning) in unsafe { variables(environment, count) } {
        if beginning == PRELOAD && !found {
            found = true;
            // SAFETY: it begins with that.
            let users = unsafe { preload(variable) };
            let separator: &[u8] = if users.is_empty() { b"" } else { b":" };
            add(put(&[PRELOAD, own.agent, separator, users, b"\0"]));
        } else if !is_socket(beginning) {
            add(variable as u64);
        }
    }
    if !found {
        add(put(&[PRELOAD, own.agent, b"\0"]));
    }
    add(put(&[abi::SOCKET.as_bytes(), b"=", own.socket, b"\0"]));
    add(0);
}

/// Whether a program can have the agent; None where there is no such program, or it cannot be executed.
fn follows(directory: i32, path: *const u8, flags: usize) -> Option<Result<(), Untraced>> {
    if !kernel::is_executable(directory, path, flags & kernel::AT_EMPTY_PATH) {
        return None;
    }
    if kernel::has_changed_user() {
        return Some(Err(Untraced::ChangesUser));
    }
    let mut file = [0u8; 256];
    let (mut directory, mut path, mut flags) = (directory, path, flags);
    for _ in 0..SCRIPTS {
        match look(directory, path, flags, &mut file)? {
            Look::Answer(answer) => return Some(answer),
            // The kernel reads the interpreter's path from the script, and ends it with NUL.
            Look::Script(at) => path = file.get(at..)?.as_ptr(),
        }
        (directory, flags) = (kernel::AT_FDCWD, 0);
    }
    None
}

enum Look {
    Answer(Result<(), Untraced>),
    /// A script; where its interpreter's path begins in what was read.
    Script(usize),
}

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o10;

/// Looks at one file.
fn look(directory: i32, path: *const u8, flags: usize, head: &mut [u8; 256]) -> Option<Look> {
    let file = kernel::file_at(directory, path, flags & kernel::AT_EMPTY_PATH)?;
    // The loader knows by AT_SECURE (ld.so(8)), which the kernel sets where the new ids are not the real ones.
    let sets_user = file.mode & SETUID != 0 && file.user != kernel::real_user();
    let sets_group = file.mode & SETGID != 0 && file.mode & GROUP_EXECUTE != 0 && file.group != kernel::real_group();
    if sets_user || sets_group {
        return Some(Look::Answer(Err(Untraced::ChangesUser)));
    }
    // Where a descriptor is executed, its capabilities cannot be asked for by path: the collector notices that no agent comes.
    if directory == kernel::AT_FDCWD && kernel::real_user() != 0 && kernel::has_capabilities(path) {
        return Some(Look::Answer(Err(Untraced::Capabilities)));
    }
    // SAFETY: the kernel has just found a file by the path.
    let empty = flags & kernel::AT_EMPTY_PATH != 0 && !path.is_null() && unsafe { *path } == 0;
    let fd = if empty { directory as isize } else { kernel::open(directory, path, kernel::O_RDONLY) };
    if fd < 0 {
        // What may be executed but not read: most likely a dynamic program.
        return Some(Look::Answer(Ok(())));
    }
    let mut read = [0u8; 256];
    let len = kernel::pread(fd as i32, &mut read, 0);
    let answer = if len < 2 {
        Look::Answer(Ok(()))
    } else if read.starts_with(b"#!") {
        *head = read;
        script(head, len as usize).map_or(Look::Answer(Ok(())), Look::Script)
    } else if read.starts_with(b"\x7fELF") {
        Look::Answer(loads(fd as i32, &read))
    } else {
        Look::Answer(Ok(()))
    };
    if !empty {
        kernel::close(fd as i32);
    }
    Some(answer)
}

/// Where the interpreter's path begins in a script's first line, with NUL behind it.
fn script(head: &mut [u8; 256], len: usize) -> Option<usize> {
    let line = head.get(2..len)?;
    let begin = 2 + line.iter().position(|b| !matches!(b, b' ' | b'\t'))?;
    let end = begin + head.get(begin..len)?.iter().position(|b| matches!(b, b' ' | b'\t' | b'\n' | 0))?;
    *head.get_mut(end)? = 0;
    (end > begin).then_some(begin)
}

/// Whether an ELF file is of this architecture and asks for a loader (PT_INTERP): the others are static.
fn loads(fd: i32, head: &[u8; 256]) -> Result<(), Untraced> {
    const X86_64: [u8; 2] = [62, 0];
    if head[4] != 2 || head[18..20] != X86_64 {
        return Err(Untraced::Machine);
    }
    let (at, size, count) = (number(head, 32, 8), number(head, 54, 2), number(head, 56, 2).min(64));
    let mut table = Dynamic { segments: [[0; 3]; 8], used: 0, at: 0, len: 0 };
    let mut asks = false;
    for i in 0..count {
        let mut header = [0u8; 56];
        if kernel::pread(fd, &mut header, at.wrapping_add(i * size)) != header.len() as isize {
            break;
        }
        let (offset, address, len) = (number(&header, 8, 8), number(&header, 16, 8), number(&header, 32, 8));
        match number(&header, 0, 4) {
            PT_INTERP => asks = true,
            PT_DYNAMIC => (table.at, table.len) = (offset, len),
            PT_LOAD => table.add([address, offset, len]),
            _ => {}
        }
    }
    if asks && table.has_sanitizer(fd) {
        return Err(Untraced::Sanitizer);
    }
    if asks { Ok(()) } else { Err(Untraced::Static) }
}

// elf(5)
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// A number of a table that was read.
fn number(bytes: &[u8], at: usize, n: usize) -> u64 {
    bytes.get(at..at + n).unwrap_or(&[]).iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

/// Where a file says which libraries it loads.
struct Dynamic {
    /// Address, offset and bytes of segments.
    segments: [[u64; 3]; 8],
    used: usize,
    at: u64,
    len: u64,
}

impl Dynamic {
    fn add(&mut self, segment: [u64; 3]) {
        if let Some(place) = self.segments.get_mut(self.used) {
            *place = segment;
            self.used += 1;
        }
    }

    /// Whether a sanitizer's library is among them.
    fn has_sanitizer(&self, fd: i32) -> bool {
        const ENTRY: u64 = 16;
        let entry = |i: u64| {
            let mut bytes = [0u8; ENTRY as usize];
            let read = kernel::pread(fd, &mut bytes, self.at.wrapping_add(i * ENTRY));
            let entry = (number(&bytes, 0, 8), number(&bytes, 8, 8));
            (read == ENTRY as isize && entry.0 != 0).then_some(entry)
        };
        let entries = || (0..(self.len / ENTRY).min(64)).map_while(entry);
        let Some((_, names)) = entries().find(|(tag, _)| *tag == DT_STRTAB) else { return false };
        let offset = |[address, offset, len]: &[u64; 3]| {
            let inside = names.checked_sub(*address).filter(|at| at < len)?;
            Some(offset.wrapping_add(inside))
        };
        let Some(names) = self.segments.iter().find_map(offset) else { return false };
        entries().filter(|(tag, _)| *tag == DT_NEEDED).any(|(_, at)| {
            let mut name = [0u8; 10];
            kernel::pread(fd, &mut name, names.wrapping_add(at));
            [b"libasan.so", b"libtsan.so"].contains(&&name)
        })
    }
}
