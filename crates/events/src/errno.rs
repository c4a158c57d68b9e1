//! Error numbers: names and texts.

use crate::generated::errno::ERRNO;

/// Name and text of error `n` (positive), for instance `("ENOENT", "No such file or directory")`.
pub fn lookup(n: i64) -> Option<(&'static str, &'static str)> {
    let at = ERRNO.binary_search_by_key(&n, |e| i64::from(e.0)).ok()?;
    Some((ERRNO[at].1, ERRNO[at].2))
}

/// The error in a raw result: -4095…-1 (`include/linux/err.h`, MAX_ERRNO).
#[inline]
pub fn of_result(ret: i64) -> Option<i64> {
    (-4095..0).contains(&ret).then(|| -ret)
}

/// The kernel-internal codes of an interrupted call that will be restarted (`include/linux/errno.h`).
pub fn is_restart(errno: i64) -> bool {
    matches!(errno, 512 | 513 | 514 | 516)
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_small_negative_results_are_errors() {
        let of = |ret| super::of_result(ret);
        assert_eq!([of(-1), of(-4095)], [Some(1), Some(4095)]);
        assert_eq!([of(0), of(1), of(-4096), of(i64::MIN), of(i64::MAX)], [None; 5]);
    }
}
