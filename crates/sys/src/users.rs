//! The user database.

use crate::process::Identity;
use std::ffi::CString;

/// Ids and groups of the user `name`, which may also be a number known to the database.
pub fn lookup(name: &str) -> Option<Identity> {
    let cname = CString::new(name).ok()?;
    // SAFETY: the returned record points to static storage of libc, which is read at once; trapline is single-threaded
    // where it looks users up.
    unsafe {
        let mut pw = libc::getpwnam(cname.as_ptr());
        if pw.is_null()
            && let Ok(uid) = name.parse()
        {
            pw = libc::getpwuid(uid);
        }
        let pw = pw.as_ref()?;
        let (uid, gid) = (pw.pw_uid, pw.pw_gid);
        let mut groups = vec![0u32; 256];
        let mut n = groups.len() as i32;
        if libc::getgrouplist(pw.pw_name, gid, groups.as_mut_ptr(), &mut n) < 0 {
            n = 0;
        }
        groups.truncate(n as usize);
        Some(Identity { uid, gid, groups })
    }
}
