//! The user database.

use crate::process::Identity;
use std::ffi::{CStr, CString};

/// The most groups that a process can have (`NGROUPS_MAX`, include/uapi/linux/limits.h, 6.18).
const MAX_GROUPS: usize = 65536;

/// The most bytes that the strings of a user's record are given.
const MOST_BYTES: usize = 1 << 20;

/// Ids and groups of the user `name`, which may also be a number known to the database.
pub fn lookup(name: &str) -> Option<Identity> {
    // A static glibc would load the modules of whatever libc the machine has.
    if cfg!(target_feature = "crt-static") {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        return in_files(name, &read("/etc/passwd"), &read("/etc/group"));
    }
    let cname = CString::new(name).ok()?;
    let (name, uid, gid) = record(|r, buf, found| {
        // SAFETY: a NUL-terminated name, a record, a buffer with its length, and where to put the record's address.
        unsafe { libc::getpwnam_r(cname.as_ptr(), r, buf.as_mut_ptr().cast(), buf.len(), found) }
    })
    .or_else(|| {
        let uid = name.parse().ok()?;
        record(|r, buf, found| {
            // SAFETY: as above, with a number.
            unsafe { libc::getpwuid_r(uid, r, buf.as_mut_ptr().cast(), buf.len(), found) }
        })
    })?;
    Some(Identity { uid, gid, groups: groups(&name, gid, 256)? })
}

/// The name of a user, or the number where the database has none.
pub fn name(uid: u32) -> String {
    let record = if cfg!(target_feature = "crt-static") {
        None
    } else {
        record(|r, buf, found| {
            // SAFETY: a record, a buffer with its length, and where to put the record's address.
            unsafe { libc::getpwuid_r(uid, r, buf.as_mut_ptr().cast(), buf.len(), found) }
        })
    };
    let in_file = || {
        let all = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let mut lines = all.lines().map(|line| line.split(':'));
        lines.find_map(|mut line| {
            Some((line.next()?, line.nth(1)?)).filter(|l| l.1 == uid.to_string()).map(|l| l.0.to_string())
        })
    };
    let name = record.map(|r| r.0.to_string_lossy().into_owned());
    name.or_else(in_file).unwrap_or_else(|| uid.to_string())
}

/// Name, user and group of the record that `ask` finds: one of getpwnam_r(3), getpwuid_r(3), called with a record, room for its
/// strings, and where to put the record's address.
fn record(
    mut ask: impl FnMut(&mut libc::passwd, &mut [u8], &mut *mut libc::passwd) -> i32,
) -> Option<(CString, u32, u32)> {
    let mut buf = vec![0u8; 1024];
    loop {
        // SAFETY: a struct of integers and pointers, for which zeros are valid.
        let mut record: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        match ask(&mut record, &mut buf, &mut found) {
            libc::ERANGE if buf.len() <= MOST_BYTES => buf.resize(2 * buf.len(), 0),
            0 if !found.is_null() => {
                // SAFETY: a record that was found has a name that ends with NUL, in `buf`.
                let name = unsafe { CStr::from_ptr(record.pw_name) }.to_owned();
                return Some((name, record.pw_uid, record.pw_gid));
            }
            _ => return None,
        }
    }
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

/// Ids and groups as passwd(5) and group(5) have them.
fn in_files(name: &str, passwd: &str, group: &str) -> Option<Identity> {
    let rows =
        |text: &'_ str| text.lines().map(|l| l.split(':').map(str::to_string).collect()).collect::<Vec<Vec<_>>>();
    let users = rows(passwd);
    let named = |at: usize| users.iter().find(|u| u.get(at).is_some_and(|v| v == name));
    let user = named(0).or_else(|| named(2))?;
    let id = |at: usize| user.get(at)?.parse::<u32>().ok();
    let (uid, gid) = (id(2)?, id(3)?);
    let is_in = |g: &Vec<String>| g.get(3).is_some_and(|members| members.split(',').any(|m| *m == user[0]));
    let others = rows(group).into_iter().filter(is_in).filter_map(|g| g.get(2)?.parse().ok());
    let groups = std::iter::once(gid).chain(others.filter(|g| *g != gid)).collect();
    Some(Identity { uid, gid, groups })
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

    #[test]
    fn files_have_users_by_name_and_number_with_their_groups() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n\nann:x:1000:1001::/home/ann:/bin/sh\nodd:x\n";
        let group = "ann:x:1001:\nvideo:x:44:bob,ann\naudio:x:29:annie\nwheel:x:10:ann\n";
        let ann = Some(Identity { uid: 1000, gid: 1001, groups: vec![1001, 44, 10] });
        assert_eq!(in_files("ann", passwd, group), ann);
        assert_eq!(in_files("1000", passwd, group), ann);
        assert_eq!((in_files("eve", passwd, group), in_files("odd", passwd, group)), (None, None));
    }

    #[test]
    fn files_and_the_library_agree() {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(in_files("root", &read("/etc/passwd"), &read("/etc/group")), lookup("root"));
    }
}
