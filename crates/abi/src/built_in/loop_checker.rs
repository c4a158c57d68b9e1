//! `loop_checker`: callees of a function on the main thread that take too long.

use super::{BuiltIn, Call, Choice, Ended, Results};

const CALLER: usize = 0;
const BUDGET: usize = 2;

pub struct Tracer;

impl BuiltIn for Tracer {
    const NAME: &'static str = "loop_checker";
    const ABOUT: &'static str = "callees of a loop on the main thread that take too long";
    const RESULTS: Results = Results::Violations;
    const OPTIONS: [Choice; 8] = {
        use Choice::{Budget, Caller, Flags, Unused};
        [Caller, Flags, Budget, Unused, Unused, Unused, Unused, Unused]
    };

    fn is_timed(_: u64) -> bool {
        true
    }

    #[inline(always)]
    fn at_exit(call: &impl Call, ended: Ended) -> bool {
        let is_watched = ended.caller != 0 && u64::from(ended.caller) == call.option(CALLER);
        is_watched && ended.took > call.option(BUDGET) && call.is_main()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Called;
    use super::*;

    #[test]
    fn only_slow_callees_of_the_loop_on_the_main_thread_are_violations() {
        let mut call = Called { options: [7, 0, 100, 0, 0, 0, 0, 0], main: true, ..Called::default() };
        let at_exit = |call: &Called, took, caller| Tracer::at_exit(call, Ended { took, caller });
        assert!(at_exit(&call, 101, 7));
        assert!(!at_exit(&call, 100, 7), "as long as the budget");
        assert!(!at_exit(&call, 101, 8), "another caller");
        call.main = false;
        assert!(!at_exit(&call, 101, 7), "another thread");
        call = Called { main: true, ..Called::default() };
        assert!(!at_exit(&call, 101, 0), "no caller");
    }
}
