//! Numbers of several runs: their means, how far they are spread, and whether two means differ by more than chance.
//!
//! The test is Welch's (B. L. Welch, The generalization of "Student's" problem when several different population variances are involved,
//! Biometrika 34, 1947): t = difference / sqrt(s1²/n1 + s2²/n2), with the degrees of freedom of Welch and Satterthwaite. It does not assume
//! that both sides are spread alike. A difference that chance makes in one of 100 comparisons is called chance: a table has tens of rows.

/// Numbers of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many runs.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation: of a sample, with n - 1; 0 of one run.
    pub deviation: f64,
}

impl Spread {
    /// Of these numbers.
    pub fn of(values: impl Iterator<Item = u64> + Clone) -> Spread {
        let runs = values.clone().count();
        let n = runs.max(1) as f64;
        let mean = values.clone().map(|v| v as f64).sum::<f64>() / n;
        let squares: f64 = values.map(|v| (v as f64 - mean).powi(2)).sum();
        let deviation = if runs > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        Spread { runs, mean, deviation }
    }

    /// One number that is known without a spread.
    pub fn exactly(mean: f64) -> Spread {
        Spread { runs: 1, mean, deviation: 0.0 }
    }

    /// The variance of its mean, and the degrees of freedom; of one run, the spread is that of the other side.
    fn of_mean(&self, other: &Spread) -> (f64, f64) {
        let known = if self.runs > 1 { self } else { other };
        (known.deviation.powi(2) / self.runs.max(1) as f64, known.runs.saturating_sub(1).max(1) as f64)
    }
}

/// Whether the difference of two means may be chance. Of one run on each side, nothing is known.
pub fn may_be_chance(a: &Spread, b: &Spread) -> bool {
    if a.runs < 2 && b.runs < 2 {
        return false;
    }
    let ((va, na), (vb, nb)) = (a.of_mean(b), b.of_mean(a));
    let variance = va + vb;
    let difference = (a.mean - b.mean).abs();
    if variance == 0.0 {
        return difference == 0.0;
    }
    let freedom = match a.runs.min(b.runs) {
        // One spread is known.
        0 | 1 => na.max(nb),
        _ => variance.powi(2) / (va.powi(2) / na + vb.powi(2) / nb),
    };
    difference / variance.sqrt() <= critical(freedom)
}

/// From one side to the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// The runs that are compared with.
    pub before: Spread,
    /// The runs that are compared.
    pub after: Spread,
}

impl Change {
    /// How far the means are apart.
    pub fn size(&self) -> f64 {
        (self.after.mean - self.before.mean).abs()
    }

    /// Whether the difference may be chance.
    pub fn may_be_chance(&self) -> bool {
        may_be_chance(&self.before, &self.after)
    }

    /// Changes in their order: those that are beyond the spread first, the largest in front.
    pub fn order(&self, other: &Change) -> std::cmp::Ordering {
        let key = |change: &Change| (!change.may_be_chance(), change.size());
        let ((a, of_a), (b, of_b)) = (key(self), key(other));
        b.cmp(&a).then(of_b.total_cmp(&of_a))
    }

    /// By how much the mean has changed, with its sign, and `~` where that may be chance; shown by a function.
    pub fn signed(&self, show: impl Fn(f64) -> String) -> String {
        let by = self.after.mean - self.before.mean;
        if by == 0.0 {
            return "0".into();
        }
        let chance = if self.may_be_chance() { "~" } else { "" };
        format!("{chance}{}{}", if by > 0.0 { "+" } else { "-" }, show(by.abs()))
    }

    /// As an object.
    pub fn json(&self) -> serde_json::Value {
        let side = |s: Spread| serde_json::json!({ "mean": s.mean, "deviation": s.deviation });
        serde_json::json!({
            "before": side(self.before),
            "after": side(self.after),
            "chance": self.may_be_chance(),
        })
    }
}

/// What tables of several runs begin with.
pub fn heading(before: usize, after: usize) -> String {
    format!("means of {before} and {after} runs; ~ where a change may be chance (Welch's t-test, 1 %)\n\n")
}

/// A mean of counts.
pub fn number(n: f64) -> String {
    if n.fract() == 0.0 { format!("{n:.0}") } else { format!("{n:.1}") }
}

/// Student's t that chance exceeds in one of 100 cases, on both sides together, by degrees of freedom: between two rows the larger one
/// (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.995).
const CRITICAL: [(f64, f64); 22] = [
    (1.0, 63.657),
    (2.0, 9.925),
    (3.0, 5.841),
    (4.0, 4.604),
    (5.0, 4.032),
    (6.0, 3.707),
    (7.0, 3.499),
    (8.0, 3.355),
    (9.0, 3.250),
    (10.0, 3.169),
    (11.0, 3.106),
    (12.0, 3.055),
    (13.0, 3.012),
    (14.0, 2.977),
    (15.0, 2.947),
    (17.0, 2.898),
    (20.0, 2.845),
    (25.0, 2.787),
    (30.0, 2.750),
    (40.0, 2.704),
    (60.0, 2.660),
    (100.0, 2.626),
];

fn critical(freedom: f64) -> f64 {
    // What rounding leaves of a whole number is that number.
    let row = CRITICAL.iter().rev().find(|(least, _)| *least <= freedom + 1e-9);
    row.map_or(CRITICAL[0].1, |(_, t)| *t)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Spread {
        Spread::of(values.iter().copied())
    }

    #[test]
    fn means_and_deviations() {
        let s = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((s.runs, s.mean), (8, 5.0));
        // Of a sample: sqrt(32 / 7).
        assert!((s.deviation - 2.138_089_935).abs() < 1e-9);
        assert_eq!((of(&[7]).deviation, of(&[]).mean), (0.0, 0.0));
    }

    #[test]
    fn noise_is_chance_and_a_change_is_none() {
        // t is 1.0 with 8 degrees of freedom (p = 0.35), and 17.3 with 7.2.
        let (a, noise, slower) =
            (of(&[100, 104, 98, 102, 96]), of(&[103, 99, 107, 101, 100]), of(&[130, 133, 127, 131, 129]));
        assert!(may_be_chance(&a, &noise) && may_be_chance(&noise, &a));
        assert!(!may_be_chance(&a, &slower) && !may_be_chance(&slower, &a));
    }

    #[test]
    fn numbers_that_never_vary_differ_surely() {
        assert!(!may_be_chance(&of(&[4, 4, 4]), &of(&[5, 5, 5])));
        assert!(may_be_chance(&of(&[4, 4]), &of(&[4, 4])));
    }

    #[test]
    fn one_run_is_compared_by_the_spread_of_the_others() {
        assert!(!may_be_chance(&of(&[4]), &of(&[9])));
        let many = of(&[100, 110, 90, 105, 95, 100, 102, 98]);
        assert!(may_be_chance(&many, &of(&[112])));
        assert!(!may_be_chance(&of(&[150]), &many));
    }

    /// Of two sides that are alike, about one comparison in 100 is called a change.
    #[test]
    fn chance_is_seldom_called_a_change() {
        let mut random = testkit::Random::new(33);
        let rounds = 4000;
        for runs in [3, 5, 10] {
            // The sum of twelve numbers is nearly normal.
            let mut side = || {
                let values: Vec<u64> =
                    (0..runs).map(|_| 10_000 + (0..12).map(|_| random.below(1000)).sum::<u64>()).collect();
                of(&values)
            };
            let wrong = (0..rounds).filter(|_| !may_be_chance(&side(), &side())).count();
            assert!(wrong * 100 <= rounds * 2, "{wrong} of {rounds} with {runs} runs");
        }
    }
}
