//! How much was allocated over time: at most [`POINTS`] points at equal distances for the whole, [`COARSE`] for each stack.
//!
//! When the points are used up, every second one goes and the distance doubles. A point has what was allocated just before its
//! time. The points of a stack are every 32nd of those of the whole; they are filled in when the stack changes, or is read, so that a
//! point costs nothing for the stacks that have not changed.

use super::numbers::Sum;

/// The most points of the whole.
pub const POINTS: usize = 1024;
/// The most points of a stack.
pub const COARSE: usize = 32;
/// Points of the whole for one of a stack.
const EACH: usize = POINTS / COARSE;
/// The first distance of two points, ns.
const FIRST_STEP: u64 = 1 << 14;

/// What was allocated at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Malloc'd blocks of running processes.
    pub malloc: Sum,
    /// Their mappings.
    pub mapped: Sum,
}

/// How far a stack's series is filled: the number of points, and of halvings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    halvings: u32,
    points: u32,
}

impl Mark {
    /// How many points are filled.
    pub fn points(self) -> usize {
        self.points as usize
    }
}

/// The points of the whole.
#[derive(Clone, Debug)]
pub struct Series {
    start: u64,
    step: u64,
    halvings: u32,
    points: Vec<Point>,
}

impl Series {
    /// A series that begins at `start`, ns.
    pub(super) fn new(start: u64) -> Series {
        Series { start, step: FIRST_STEP, halvings: 0, points: Vec::new() }
    }

    /// The time of the first point, ns.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The time between two points, ns.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The time between two points of a stack, ns.
    pub fn coarse_step(&self) -> u64 {
        self.step.saturating_mul(EACH as u64)
    }

    /// The points.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Adds the points up to `time`; nothing has changed since the last one but to `now`. Returns the time of the next point.
    pub(super) fn fill(&mut self, time: u64, now: Point) -> u64 {
        let past = time.saturating_sub(self.start);
        while past / self.step >= POINTS as u64 {
            let mut nth = 0;
            self.points.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.step *= 2;
            self.halvings += 1;
        }
        let points = (past / self.step) as usize + 1;
        self.points.resize(points, now);
        self.start.saturating_add(self.step.saturating_mul(points as u64))
    }

    /// How far the series of a stack is filled that has been brought up to date.
    pub(super) fn mark(&self) -> Mark {
        Mark { halvings: self.halvings, points: self.points.len().div_ceil(EACH) as u32 }
    }
}

/// The points of a stack: bytes.
pub(super) type Coarse = [u64; COARSE];

/// Brings the points of a stack up to date, which has held `value` bytes since `mark`.
pub(super) fn catch_up(points: &mut Coarse, mark: &mut Mark, now: Mark, value: u64) {
    while mark.halvings < now.halvings && mark.points > 0 {
        mark.points = mark.points.div_ceil(2);
        for i in 0..mark.points as usize {
            points[i] = points[2 * i];
        }
        mark.halvings += 1;
        if mark.points == 1 {
            // Only the first point is left, which stays.
            break;
        }
    }
    let (from, to) = (mark.points as usize, now.points as usize);
    if from < to {
        points[from..to].fill(value);
    }
    *mark = now;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bytes: u64) -> Point {
        Point { malloc: Sum { blocks: 1, bytes }, mapped: Sum::default() }
    }

    #[test]
    fn points_stay_at_equal_distances_however_long_it_takes() {
        let mut s = Series::new(1000);
        let mut next = 0;
        // The value before time t is t - 1.
        for t in (1000..1000 + 40_000_000u64).step_by(7000) {
            if t >= next {
                next = s.fill(t, point(t - 1));
                assert!(next > t && next - t <= s.step());
            }
        }
        assert!((512..=1024).contains(&s.points().len()), "{}", s.points().len());
        assert_eq!(s.step(), FIRST_STEP << 2);
        for (i, p) in s.points().iter().enumerate() {
            let time = s.start() + i as u64 * s.step();
            assert!((time..time + 7000).contains(&(p.malloc.bytes + 1)), "{i}: {time} {}", p.malloc.bytes);
        }
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut s = Series::new(0);
        assert_eq!(s.fill(0, point(0)), FIRST_STEP);
        s.fill(u64::MAX, point(3));
        assert!(s.points().len() <= POINTS);
        assert_eq!((s.points()[0].malloc.bytes, s.points()[1].malloc.bytes), (0, 3));
    }

    #[test]
    fn rare_updates_give_the_points_of_frequent_ones() {
        for every in [1, 2, 5, 40, 1000] {
            let (mut s, mut next) = (Series::new(0), 0);
            let (mut often, mut often_mark) = ([0; COARSE], Mark::default());
            let (mut rare, mut rare_mark) = ([0; COARSE], Mark::default());
            let mut value = 0;
            for n in 0..4000u64 {
                let time = n * 31_000;
                if time >= next {
                    next = s.fill(time, Point::default());
                }
                catch_up(&mut often, &mut often_mark, s.mark(), value);
                if n % every == 0 {
                    catch_up(&mut rare, &mut rare_mark, s.mark(), value);
                    value = n + 1;
                }
            }
            catch_up(&mut rare, &mut rare_mark, s.mark(), value);
            let n = s.points().len().div_ceil(EACH);
            assert_eq!(often[..n], rare[..n], "{every}");
            assert!(n > 15, "{n}");
        }
    }
}
