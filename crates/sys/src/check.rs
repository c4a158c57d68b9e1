//! Results of libc's functions.

use std::io;

/// Turns the -1 of a libc call into the error of `errno`.
pub fn check(ret: libc::c_long) -> io::Result<libc::c_long> {
    if ret == -1 { Err(io::Error::last_os_error()) } else { Ok(ret) }
}

/// Does not compile where a type has a trait: with both, it could be either of two impls.
#[cfg(test)]
macro_rules! has_not {
    ($type:ty: $trait:path) => {
        const _: fn() = || {
            trait Ambiguous<A> {
                fn call() {}
            }
            struct Other;
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $trait> Ambiguous<Other> for T {}
            <$type as Ambiguous<_>>::call();
        };
    };
}
#[cfg(test)]
pub(crate) use has_not;
