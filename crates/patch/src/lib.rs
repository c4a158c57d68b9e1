//! Patches of functions: from code, symbols and FDEs to stubs and the bytes that lead into them. Pure: bytes in, bytes out.

pub mod stub;
