//! Ids of threads as events have them.

/// Real user and group of a thread as arguments of an event; (uid_t)-1 where they are not known.
pub fn ids(tid: i32) -> (u64, u64) {
    let (uid, gid) = sys::proc::ids(tid).unwrap_or((u32::MAX, u32::MAX));
    (uid.into(), gid.into())
}
