//! The nested tails: string arrays, iovecs and messages. One cursor reads them; writers append in the same order.
//!
//! ```text
//! strv     u16 total, u16 n, n × { u64 address, u8 cap, bytes, NUL }
//! iov      u16 n, n × { u64 base, u64 length, u8 cap, u16 length, bytes }
//! msg      u16 n, n × { 56 bytes of struct msghdr, u32 msg_len, u8 caps (2 bits each: name, iov, control),
//!                       u16 length, name bytes, iov, u16 length, control bytes }
//! ```

use crate::cap::{Cap, Malformed};
use std::ffi::CStr;

/// Bytes of `struct msghdr` on 64-bit Linux (`include/linux/socket.h`, struct user_msghdr).
pub const MSGHDR: usize = 56;

/// A bounded reader over the bytes of a tail.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }
    /// Bytes read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }
    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(n).filter(|&e| e <= self.bytes.len()).ok_or(Malformed)?;
        let s = &self.bytes[self.at..end];
        self.at = end;
        Ok(s)
    }
    /// A byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }
    /// Two bytes, little-endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.take(2)?.try_into().map_err(|_| Malformed)?))
    }
    /// Four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| Malformed)?))
    }
    /// Eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Malformed)?))
    }
    /// Bytes up to a NUL, which is consumed.
    #[inline]
    pub fn cstr(&mut self) -> Result<&'a [u8], Malformed> {
        let s = CStr::from_bytes_until_nul(&self.bytes[self.at..]).map_err(|_| Malformed)?.to_bytes();
        self.at += s.len() + 1;
        Ok(s)
    }
    /// A string array.
    pub fn strv(&mut self) -> Result<Strv<'a>, Malformed> {
        let total = self.u16()?;
        let n = self.u16()?;
        let items = *self;
        for _ in 0..n {
            self.take(9)?;
            self.cstr()?;
        }
        Ok(Strv { total, n, items })
    }
    /// An iovec array.
    pub fn iov(&mut self) -> Result<Iov<'a>, Malformed> {
        let n = self.u16()?;
        let items = *self;
        for _ in 0..n {
            self.iovec()?;
        }
        Ok(Iov { n, items })
    }
    fn iovec(&mut self) -> Result<Iovec<'a>, Malformed> {
        let (base, len) = (self.u64()?, self.u64()?);
        let cap = Cap::from_bits(self.u8()?);
        let n = self.u16()?;
        Ok(Iovec { base, len, cap, bytes: self.take(usize::from(n))? })
    }
    /// A message.
    pub fn msg(&mut self) -> Result<Msg<'a>, Malformed> {
        let header = self.take(MSGHDR)?;
        let msg_len = self.u32()?;
        let caps = self.u8()?;
        let n = self.u16()?;
        let name = self.take(usize::from(n))?;
        let iov = self.iov()?;
        let n = self.u16()?;
        let control = self.take(usize::from(n))?;
        Ok(Msg { header, msg_len, caps, name, iov, control })
    }
}

/// A captured string array.
#[derive(Clone, Copy, Debug)]
pub struct Strv<'a> {
    /// Elements in the target's array, the terminating NULL not counted.
    pub total: u16,
    /// Elements captured.
    pub n: u16,
    items: Cursor<'a>,
}

impl<'a> Strv<'a> {
    /// The captured elements: address, state, bytes.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Cap, &'a [u8])> + use<'a> {
        let mut c = self.items;
        (0..self.n).map_while(move |_| Some((c.u64().ok()?, Cap::from_bits(c.u8().ok()?), c.cstr().ok()?)))
    }
}

/// A captured iovec array.
#[derive(Clone, Copy, Debug)]
pub struct Iov<'a> {
    /// Elements captured.
    pub n: u16,
    items: Cursor<'a>,
}

impl<'a> Iov<'a> {
    /// The captured elements.
    pub fn iter(&self) -> impl Iterator<Item = Iovec<'a>> + use<'a> {
        let mut c = self.items;
        (0..self.n).map_while(move |_| c.iovec().ok())
    }
}

/// One iovec and what was captured of its contents.
#[derive(Clone, Copy, Debug)]
pub struct Iovec<'a> {
    /// `iov_base`.
    pub base: u64,
    /// `iov_len`.
    pub len: u64,
    /// State of the contents.
    pub cap: Cap,
    /// The contents.
    pub bytes: &'a [u8],
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub struct Msg<'a> {
    /// `struct msghdr` as it was in memory.
    pub header: &'a [u8],
    /// `msg_len` of a `struct mmsghdr`.
    pub msg_len: u32,
    /// Two capture bits each for name, iovecs, control.
    pub caps: u8,
    /// The address.
    pub name: &'a [u8],
    /// The iovecs.
    pub iov: Iov<'a>,
    /// The control messages.
    pub control: &'a [u8],
}

impl Msg<'_> {
    /// The 64-bit word at byte `off` of the header.
    pub fn word(&self, off: usize) -> u64 {
        let mut le = [0; 8];
        le.copy_from_slice(&self.header[off..off + 8]);
        u64::from_le_bytes(le)
    }
    /// State of name (0), iovecs (1) or control messages (2).
    pub fn cap(&self, part: u8) -> Cap {
        Cap::from_bits(self.caps >> (2 * part))
    }
}
