//! The running kernel's own BTF, and that of its modules.

use super::raw::word;
use super::{Btf, BtfError, Kind};
use crate::mapping::{Mapping, Mode};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

const PATH: &str = "/sys/kernel/btf/vmlinux";
/// Bytes of the header: magic, flags, length; offset and length of types; of strings.
const HEADER: usize = 24;

/// Bytes of a file that does not change: mapped where the kernel allows it (Linux 6.16), else read.
pub struct Blob(Bytes);

enum Bytes {
    /// The mapping, and the file's length.
    Mapped(Mapping, usize),
    Read(Vec<u8>),
}

// SAFETY: the mapping is private, and only read.
unsafe impl Sync for Blob {}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            // SAFETY: readable up to the file's length, which is at most the mapping's; the kernel never writes its BTF, and
            // the mapping is private.
            Bytes::Mapped(mapping, len) => unsafe { std::slice::from_raw_parts(mapping.base(), *len) },
            Bytes::Read(bytes) => bytes,
        }
    }
}

/// The types of the running kernel.
pub type KernelBtf = Btf<Blob>;

impl Btf<Blob> {
    /// Opens the running kernel's types. `NotFound`: a kernel without BTF.
    pub fn kernel() -> io::Result<KernelBtf> {
        Btf::kernel_for(&[])
    }

    /// Opens the running kernel's types and finds `wanted` in the same pass: see [`Btf::parse_for`].
    pub fn kernel_for(wanted: &[(Kind, &str)]) -> io::Result<KernelBtf> {
        let mut file = File::open(PATH)?;
        let len = file.metadata()?.len() as usize;
        let blob = match Mapping::new(file.as_fd(), 0, len, Mode::PrivateRead) {
            Ok(mapping) => Bytes::Mapped(mapping, len),
            Err(_) => {
                let mut bytes = Vec::with_capacity(len);
                file.read_to_end(&mut bytes)?;
                Bytes::Read(bytes)
            }
        };
        Btf::parse_for(Blob(blob), wanted).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    /// The types of a module, behind those of the kernel: its ids, and its offsets of names, continue theirs. `NotFound`: no such module, or
    /// one without types.
    pub fn with_module(&self, module: &str) -> io::Result<KernelBtf> {
        if module.contains('/') {
            return Err(io::ErrorKind::NotFound.into());
        }
        let own = std::fs::read(format!("/sys/kernel/btf/{module}"))?;
        let joined = self.joined(&own).and_then(|all| Btf::parse(Blob(Bytes::Read(all))));
        joined.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }
}

impl<D: AsRef<[u8]>> Btf<D> {
    /// One blob of these types and of those that continue them.
    pub(super) fn joined(&self, own: &[u8]) -> Result<Vec<u8>, BtfError> {
        let second = Btf::parse(own)?;
        let types = [self.types(), second.types()];
        let strings = [self.strings(), second.strings()];
        let length =
            |parts: [&[u8]; 2]| u32::try_from(parts[0].len() + parts[1].len()).map_err(|_| BtfError::Truncated);
        let (of_types, of_strings) = (length(types)?, length(strings)?);
        let first = word(own, 0).ok_or(BtfError::Truncated)?;
        let header = [first, HEADER as u32, 0, of_types, of_types, of_strings].map(u32::to_ne_bytes);
        Ok([header.as_flattened(), types[0], types[1], strings[0], strings[1]].concat())
    }
}
