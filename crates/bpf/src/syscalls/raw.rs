//! The record of a descriptor, which the programs write instead of the tails of `process:fd`: offsets from the end of the fixed
//! part, little-endian.

/// Inode number (u64).
pub const INODE: usize = 0;
/// Magic number of the file system (u64).
pub const MAGIC: usize = 8;
/// Device number in the kernel's form: 20 bits of minor (u32).
pub const DEVICE: usize = 16;
/// Type and mode (u16).
pub const MODE: usize = 20;
/// Bits below (u16).
pub const BITS: usize = 22;
/// A socket, else zeros.
pub const SOCKET: usize = 24;
/// Strings with a NUL after each, leaf first.
pub const COMPONENTS: usize = SOCKET + socket::SIZE;

/// The file has no name any more.
pub const UNLINKED: u16 = 1;
/// The file system makes up the names of its files; the only component is that of the entry.
pub const SPECIAL: u16 = 2;
/// The root was reached: the path is whole.
pub const WHOLE: u16 = 4;

/// Offsets from [`SOCKET`].
pub mod socket {
    /// `SOCK_*` (u16).
    pub const TYPE: usize = 0;
    /// `AF_*` (u16); 0 where nothing is known.
    pub const FAMILY: usize = 2;
    /// Protocol (u16).
    pub const PROTOCOL: usize = 4;
    /// `TCP_*` state (u8), of other protocols too.
    pub const STATE: usize = 6;
    /// Own port (u16).
    pub const PORT: usize = 8;
    /// Peer's port, big-endian (u16).
    pub const PEER_PORT: usize = 10;
    /// Peer's IPv4 address.
    pub const PEER4: usize = 12;
    /// Own IPv4 address.
    pub const OWN4: usize = 16;
    /// Peer's IPv6 address.
    pub const PEER6: usize = 20;
    /// Own IPv6 address.
    pub const OWN6: usize = 36;
    /// Port id of a netlink socket (u32).
    pub const NETLINK: usize = 52;
    /// Bytes of the address of a UNIX socket (u32).
    pub const UNIX_LEN: usize = 56;
    /// The address.
    pub const UNIX: usize = 60;
    /// Bytes of all.
    pub const SIZE: usize = 176;
}
