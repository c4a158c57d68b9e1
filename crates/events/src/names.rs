//! The seam through which a view asks for names that only the collector knows.

use crate::origin::{Origin, own};

/// What is known of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdName {
    /// What `/proc/PID/fd/N` leads to: a path, `socket:[4711]`, `pipe:[1]`, `anon_inode:[eventpoll]`. Raw bytes.
    pub path: Vec<u8>,
    /// More about it, for `-yy`: `TCP:[127.0.0.1:80->127.0.0.1:4000]`, `char 1:3`. Empty where nothing is known.
    pub detail: Vec<u8>,
}

/// A set of descriptors, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptors {
    /// All but the numbers.
    pub negated: bool,
    /// The numbers.
    pub numbers: Vec<i32>,
}

impl Descriptors {
    /// Whether a descriptor belongs to it.
    pub fn contains(&self, fd: i32) -> bool {
        fd >= 0 && self.numbers.contains(&fd) != self.negated
    }
    /// Whether no descriptor belongs to it.
    pub fn is_empty(&self) -> bool {
        !self.negated && self.numbers.is_empty()
    }
}

/// Names of descriptors and processes at the moment of the event that is being shown.
pub trait Names {
    /// The name of descriptor `fd` of process `pid`; [`AT_FDCWD`] is the working directory.
    fn fd(&self, pid: u32, fd: i32) -> Option<&FdName>;
    /// The name of descriptor `fd` after the event: this call may have made it, and may have replaced another one.
    fn new_fd(&self, pid: u32, fd: i32) -> Option<&FdName> {
        self.fd(pid, fd)
    }
    /// The file that the ring of the operation of io_uring that is being shown has registered by this index.
    fn registered(&self, _index: i32) -> Option<&FdName> {
        None
    }
    /// The command name (`comm`) of process or thread `pid`.
    fn comm(&self, pid: u32) -> Option<&[u8]>;
    /// Real user and group of thread `tid`.
    fn ids(&self, _tid: u32) -> (Option<u32>, Option<u32>) {
        (None, None)
    }
    /// The processor whose stream the event is of, where it is of one.
    fn cpu(&self) -> Option<u32> {
        None
    }
    /// Where thread or process `id` was traced; none where there is one trace.
    fn origin(&self, _id: u32) -> Option<&Origin> {
        None
    }
    /// The number that thread or process `id` has in its own trace.
    fn own(&self, id: u32) -> u32 {
        if self.origin(id).is_some() { own(id) } else { id }
    }
    /// What thread or process `id` is called: its command name; of several traces, behind the label of its trace.
    fn called(&self, id: u32) -> std::borrow::Cow<'_, str> {
        let comm = String::from_utf8_lossy(self.comm(id).unwrap_or_default());
        match self.origin(id) {
            Some(origin) => format!("{}:{comm}", origin.label).into(),
            None => comm,
        }
    }
    /// The stack with this id.
    fn stack(&self, _id: u64) -> Option<Stack<'_>> {
        None
    }
    /// The traced function with this number.
    fn function(&self, _number: u32) -> Option<FunctionName<'_>> {
        None
    }
    /// What the arguments and the result of the traced function with this number are, if they were captured.
    fn signature(&self, _number: u32) -> Option<&crate::values::Signature> {
        None
    }
    /// Hands over the frames of a stack that process `pid` had at `time`, innermost first, with those that the compiler has inlined.
    fn frames(&self, _pid: u32, _time: u64, stack: &Stack<'_>, each: &mut dyn FnMut(&Frame<'_>)) {
        let (kernel, mask) = (stack.kernel, if stack.kernel { 0 } else { GUESSED | EXACT });
        for f in stack.frames {
            let guessed = !kernel && f & GUESSED != 0;
            each(&Frame { address: Some(f & !mask), kernel, guessed, ..Frame::default() });
        }
    }
}

/// A traced function, as an event of `process:function` has reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionName<'a> {
    /// Its demangled name, without parameters.
    pub name: &'a str,
    /// Its name as the linker has it.
    pub symbol: &'a str,
    /// The path of the file that contains it.
    pub module: &'a str,
    /// The file's build id; empty where it has none.
    pub build_id: &'a [u8],
    /// Its address, as the symbol table of the file has it.
    pub address: u64,
    /// The demangled names that it has beside its own.
    pub aliases: &'a [String],
}

/// A stack, as an event of `process:stack` has reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<'a> {
    /// Of the kernel, and not of the process.
    pub kernel: bool,
    /// Why there are no more frames, by the numbers of the crate `unwind`; 0 where that is not known.
    pub ended: u8,
    /// How many frames of a process are guessed.
    pub guessed: u32,
    /// The frames, innermost first: of a process with the bits of the crate `unwind`.
    pub frames: &'a [u64],
}

/// Bit of a frame of a process that was guessed (`unwind::Frame`).
pub const GUESSED: u64 = 1 << 63;
/// Bit of a frame of a process whose address is that of the next instruction, and not a return address (`unwind::Frame`).
pub const EXACT: u64 = 1 << 62;

/// A frame of a stack, with what is known of its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The demangled name of the function; empty where it is not known.
    pub function: &'a str,
    /// The file that contains the code, or the module of the kernel; empty where it is not known.
    pub module: &'a str,
    /// The source file; empty where it is not known.
    pub file: &'a str,
    /// The line in the source file; 0 where it is not known.
    pub line: u32,
    /// Bytes from the beginning of the function, where that is known.
    pub offset: Option<u64>,
    /// The offset in the module's file; in the kernel, and where the module is not known, the address.
    pub address: Option<u64>,
    /// The compiler has put the function's code into that of the next frame.
    pub inlined: bool,
    /// The unwinder has guessed it.
    pub guessed: bool,
    /// It is a function of the kernel.
    pub kernel: bool,
}

/// The descriptor that means the working directory (`include/uapi/linux/fcntl.h`).
pub const AT_FDCWD: i32 = -100;

/// Knows nothing.
pub struct NoNames;

impl Names for NoNames {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        None
    }
}
