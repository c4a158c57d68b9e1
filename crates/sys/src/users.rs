//! The user database.

use crate::process::Identity;
use std::ffi::{CStr, CString};

/// The most groups that a process can have (`NGROUPS_MAX`, include/uapi/linux/limits.h, 6.18).
const MAX_GROUPS: usize = 65536;

/// Ids and groups of the user `name`, which may also be a number known to the database.
pub fn lookup(name: &str) -> Option<Identity> {
    let cname = CString::new(name).ok()?;
    // SAFETY: the returned record points to static storage of libc, which is read at once; trapline is single-threaded
    // where it looks users up.
    let (name, uid, gid) = unsafe {
        let mut pw = libc::getpwnam(cname.as_ptr());
        if pw.is_null()
            && let Ok(uid) = name.parse()
        {
            pw = libc::getpwuid(uid);
        }
        let pw = pw.as_ref()?;
        (CStr::from_ptr(pw.pw_name).to_owned(), pw.pw_uid, pw.pw_gid)
    };
    Some(Identity { uid, gid, groups: groups(&name, gid, 256)? })
}

/// The groups of a user, `gid` among them. `room` is how many are expected; none where there are more than a process can have.
fn groups(name: &CStr, gid: u32, room: usize) -> Option<Vec<u32>> {
    let mut groups = vec![0u32; room.max(1)];
    while groups.len() <= MAX_GROUPS {
        let mut n = groups.len() as i32;
        // SAFETY: a NUL-terminated name, and room for as many groups as said.
        let fits = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut n) } >= 0;
        if fits {
            groups.truncate(n as usize);
            return Some(groups);
        }
        // glibc says how many there are, musl too; the database may have grown since.
        let more = usize::try_from(n).unwrap_or(0).max(2 * groups.len());
        groups.resize(more, 0);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_all_of_them_however_many_were_expected() {
        let all = |room| groups(c"root", 0, room).unwrap();
        assert!(all(256).contains(&0));
        assert_eq!((all(1), all(0)), (all(256), all(256)));
        // Not even one fits: root with a group that is not its own.
        assert!(groups(c"root", 4711, 1).unwrap().contains(&4711));
        let root = lookup("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(lookup("0").unwrap(), root);
        assert_eq!(lookup("no such user"), None);
    }
}
