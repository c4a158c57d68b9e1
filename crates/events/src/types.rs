//! The types of arguments and fields: how wide, how shown, what memory they lead to.
//!
//! Everything is `'static` data written by codegen from `tables/`; nothing here allocates. Sizes are bytes. Layouts are
//! those of 64-bit Linux.

/// One name of a flag or enumeration table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The constant's name in the kernel's headers.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// The bits that are compared: the entry matches where `v & mask == value`.
    pub mask: u64,
}

/// An entry as it is stored: without a pointer to its name, which would be twice as long, and be relocated at each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where the name is in [`Table::names`], and how long it is.
    pub at: u32,
    /// The length of the name, bytes.
    pub len: u8,
    /// [`Entry::value`].
    pub value: u64,
    /// [`Entry::mask`].
    pub mask: u64,
}

/// Whether a table's names can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// A set of bits, shown as `A|B`.
    Flags,
    /// One of several values. Entries are sorted by value.
    Enum,
}

/// A table of names for the values of a type.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// The table's name in `tables/flags/`.
    pub name: &'static str,
    /// The comment for a value without a name, as in `0x8000 /* O_??? */`.
    pub unknown: &'static str,
    /// Flags or enumeration.
    pub kind: TableKind,
    /// The names of all tables.
    pub names: &'static str,
    /// The entries, in the order in which they are tried and shown.
    pub rows: &'static [Row],
}

impl Table {
    /// The entry of a row of this table.
    #[inline]
    fn entry(&self, row: &Row) -> Entry {
        let at = row.at as usize;
        Entry { name: &self.names[at..at + usize::from(row.len)], value: row.value, mask: row.mask }
    }

    /// The entries, in the order in which they are tried and shown.
    #[inline]
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry> + Clone + '_ {
        self.rows.iter().map(|row| self.entry(row))
    }

    /// The name of exactly `value`, for enumerations.
    pub fn name_of(&self, value: u64) -> Option<&'static str> {
        match self.kind {
            TableKind::Enum => {
                let at = self.rows.binary_search_by_key(&value, |e| e.value).ok()?;
                Some(self.entry(&self.rows[at]).name)
            }
            TableKind::Flags => self.rows.iter().find(|e| e.value == value).map(|e| self.entry(e).name),
        }
    }

    /// Calls `each` with every name in `value`, and returns the bits that no name took.
    ///
    /// An entry of value 0 without a mask names only the whole value 0.
    pub fn split(&self, value: u64, mut each: impl FnMut(&'static str)) -> u64 {
        let mut rest = value;
        let mut taken = 0u64;
        for e in self.rows {
            let hit = if e.value == 0 && e.mask == 0 {
                value == 0
            } else if e.value == 0 {
                value & e.mask == 0 && taken & e.mask == 0
            } else if e.mask == e.value {
                rest & e.mask == e.value
            } else {
                value & e.mask == e.value && taken & e.mask == 0
            };
            if hit {
                each(self.entry(e).name);
                rest &= !e.mask;
                taken |= e.mask;
            }
        }
        rest
    }
}

/// How an integer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fmt {
    /// Decimal.
    Dec,
    /// Hexadecimal with `0x`, zero as `0`.
    Hex,
    /// Octal permission bits, at least three digits after the leading zero.
    Oct,
    /// File type and permission bits: `S_IFREG|0644`.
    ModeType,
    /// Names joined with `|`.
    Flags(&'static Table),
    /// One name.
    Enum(&'static Table),
    /// File descriptor.
    Fd,
    /// File descriptor of a directory, or `AT_FDCWD`.
    Dirfd,
    /// Index of a file that a ring of io_uring has registered.
    Registered,
    /// Process id.
    Pid,
    /// Thread id.
    Tid,
    /// User or group id; all ones is `-1`.
    Uid,
    /// Signal number.
    Signal,
    /// Address that is not followed.
    Addr,
    /// The id of a stack, which an event of `process:stack` has reported before; 0: the stack was lost.
    Stack,
    /// Device number.
    Dev,
    /// Seconds since the epoch, or a duration.
    Time,
    /// Resource limit.
    Rlim,
    /// Signal handler.
    Handler,
    /// 16 bits in network order.
    Be16,
    /// 32 bits in network order.
    Be32,
    /// IPv4 address in network order.
    Inet4,
    /// `union epoll_data`.
    EpollData,
    /// ioctl request.
    IoctlCmd,
    /// Status that `wait4` stores.
    WaitStatus,
    /// Clock ticks (`clock_t`).
    ClockTicks,
}

/// An integer: width, sign, appearance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Int {
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Sign-extended when widened.
    pub signed: bool,
    /// How it is shown.
    pub fmt: Fmt,
}

impl Int {
    /// `v` as this integer: cut to its width and widened again by its sign.
    #[inline]
    pub fn fit(&self, v: u64) -> u64 {
        let shift = 64 - 8 * u32::from(self.size);
        if self.signed { ((v << shift) as i64 >> shift) as u64 } else { v << shift >> shift }
    }

    /// Reads the integer from the start of little-endian `b`; bytes that are missing count as zero.
    pub fn read(&self, b: &[u8]) -> u64 {
        let mut le = [0u8; 8];
        let n = usize::from(self.size).min(b.len());
        le[..n].copy_from_slice(&b[..n]);
        self.fit(u64::from_le_bytes(le))
    }
}

/// Something with a fixed size in memory: a struct's field or an array's element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mem {
    /// Integer.
    Int(Int),
    /// C string in a fixed number of bytes.
    Chars(u16),
    /// Raw bytes.
    Bytes(u16),
    /// IPv6 address (16 bytes).
    Inet6,
    /// Signal set of that many bytes.
    Sigset(u16),
    /// Struct.
    Struct(&'static Struct),
    /// Array.
    Array(&'static Mem, u16),
}

impl Mem {
    /// Size in bytes.
    pub fn size(&self) -> usize {
        match self {
            Mem::Int(i) => usize::from(i.size),
            Mem::Chars(n) | Mem::Bytes(n) | Mem::Sigset(n) => usize::from(*n),
            Mem::Inet6 => 16,
            Mem::Struct(s) => usize::from(s.size),
            Mem::Array(e, n) => e.size() * usize::from(*n),
        }
    }
}

/// A struct of the kernel's interface.
#[derive(Debug, PartialEq)]
pub struct Struct {
    /// Name in `tables/structs.def`.
    pub name: &'static str,
    /// Size in bytes.
    pub size: u16,
    /// Fields in the order of showing.
    pub fields: &'static [Field],
}

/// A field of a [`Struct`].
#[derive(Debug, PartialEq)]
pub struct Field {
    /// Name; a leading `_` means that only the value is shown.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: u16,
    /// Its type.
    pub mem: Mem,
    /// Shown only on request (`-v`).
    pub verbose: bool,
    /// Shown only where it holds.
    pub cond: Option<Cond>,
}

/// A condition on another argument or field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cond {
    /// Index of the argument or field that is tested.
    pub on: u8,
    /// The test.
    pub test: Test,
}

/// The tests that a [`Cond`] knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    /// Any of these bits is set.
    Any(u64),
    /// The value is one of these.
    OneOf(&'static [u64]),
    /// The value is none of these.
    NoneOf(&'static [u64]),
    /// The file type bits (`S_IFMT`) are one of these.
    FileType(&'static [u64]),
    /// The file type bits are none of these.
    NotFileType(&'static [u64]),
}

impl Test {
    /// Whether `v` passes.
    pub fn holds(&self, v: u64) -> bool {
        const S_IFMT: u64 = 0o170_000;
        match self {
            Test::Any(bits) => v & bits != 0,
            Test::OneOf(set) => set.contains(&v),
            Test::NoneOf(set) => !set.contains(&v),
            Test::FileType(set) => set.contains(&(v & S_IFMT)),
            Test::NotFileType(set) => !set.contains(&(v & S_IFMT)),
        }
    }
}

/// Where a length comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LenFrom {
    /// A constant.
    Const(u32),
    /// The value of an argument.
    Arg(u8),
    /// The result.
    Ret,
    /// The 32-bit integer that an argument points to.
    Deref(u8),
}

/// A length in elements (of arrays) or bytes (of everything else): `from * mul / div`, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Len {
    /// Source of the number.
    pub from: LenFrom,
    /// Multiplier.
    pub mul: u16,
    /// Divisor.
    pub div: u16,
}

/// What a C string is, which decides whether it is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrKind {
    /// A path: never shortened.
    Path,
    /// Text: shortened to the session's string length.
    Text,
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Type {
    /// In the register.
    Int(Int),
    /// NUL-terminated string.
    Str(StrKind),
    /// Buffer.
    Bytes(Len),
    /// One element (`len` is none) or several.
    Ptr {
        /// The element.
        elem: Mem,
        /// How many, none for exactly one.
        len: Option<Len>,
    },
    /// NULL-terminated array of strings, shown whole.
    Strv,
    /// NULL-terminated array of strings, shown as a count unless asked for.
    Envv,
    /// iovecs and their contents.
    Iov(Len),
    /// `struct msghdr` and all it leads to.
    Msghdr,
    /// Array of `struct mmsghdr`.
    Mmsghdr(Len),
    /// `struct msgbuf`: a type of 8 bytes ([`MTYPE`]), and a text of that many bytes behind it.
    Msgbuf(Len),
    /// Socket address.
    Sockaddr(Len),
    /// Signal set.
    Sigset(Len),
    /// `struct { const sigset_t *; size_t }` and the set that it points to (pselect6).
    SigsetPack,
    /// Bitmap of descriptors; the length is the highest descriptor + 1.
    Fdset(Len),
    /// Bitmap of processors.
    Cpuset(Len),
    /// Directory entries.
    Dirents {
        /// Length in bytes.
        len: Len,
        /// `struct linux_dirent64` (getdents64), else `struct linux_dirent`.
        wide: bool,
    },
    /// Decided by other arguments.
    Switch {
        /// The rows.
        table: &'static Switch,
        /// The selecting argument.
        on: u8,
        /// The second selecting argument.
        on2: Option<u8>,
        /// Which of the row's types is this argument's.
        nth: u8,
    },
}

/// Bytes of a System V message in front of its text (`include/uapi/linux/msg.h`, struct msgbuf).
pub const MTYPE: usize = 8;

/// When an argument's memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    /// At entry (and every scalar).
    In,
    /// At exit.
    Out,
    /// At both.
    InOut,
    /// At exit, and only when the call was interrupted (the remaining time of a sleep).
    OutIntr,
    /// At exit, and only when the call returned more than 0 (the status of a child that was there to wait for).
    OutPositive,
}

impl Dir {
    /// Read at entry.
    pub fn reads_in(self) -> bool {
        matches!(self, Dir::In | Dir::InOut)
    }
    /// Read at exit.
    pub fn reads_out(self) -> bool {
        !matches!(self, Dir::In)
    }
}

/// Types chosen by the value of another argument.
#[derive(Debug, PartialEq)]
pub struct Switch {
    /// Name in `tables/switch/`.
    pub name: &'static str,
    /// The rows, sorted by key.
    pub cases: &'static [Case],
    /// The row for all other keys.
    pub default: CaseTypes,
}

/// A row of a [`Switch`].
#[derive(Debug, PartialEq)]
pub struct Case {
    /// The selector, or `first << 32 | second` where two arguments select.
    pub key: u64,
    /// Its types.
    pub types: CaseTypes,
}

/// The types of a [`Switch`] row.
#[derive(Debug, PartialEq)]
pub struct CaseTypes {
    /// One per argument; none: the argument is not shown.
    pub args: &'static [Option<(Type, Dir)>],
    /// The result's type where it differs.
    pub ret: Option<Int>,
}

impl Switch {
    /// The row for `key`.
    pub fn find(&self, key: u64) -> &CaseTypes {
        match self.cases.binary_search_by_key(&key, |c| c.key) {
            Ok(i) => &self.cases[i].types,
            Err(_) => &self.default,
        }
    }
}
