//! Finds a small program that still shows a difference.

use crate::program::{Op, Program, Trigger};

/// Programs up to this size are also simplified by two steps at once.
const SMALL: usize = 12;

/// Simplifies a program as long as `differs` holds.
pub(crate) fn shrink(mut program: Program, differs: impl Fn(&Program) -> bool) -> Program {
    loop {
        let mut single = steps(&program).into_iter();
        let simpler = single.find(&differs).or_else(|| {
            let firsts = steps(&program).into_iter();
            let firsts = firsts.take_while(|_| program.len() <= SMALL);
            firsts
                .flat_map(|first| steps(&first))
                .find(|second| differs(second))
        });
        match simpler {
            Some(simpler) => program = simpler,
            None => return program,
        }
    }
}

/// Returns the programs that are one step simpler: they lack a callback or an operation, do more in
/// the main function, or have a smaller number.
fn steps(program: &Program) -> Vec<Program> {
    let mut steps = Vec::new();
    for trigger in program.0.keys() {
        let mut simpler = program.clone();
        simpler.0.remove(trigger);
        steps.push(simpler);
    }
    let places = || {
        program.0.iter().flat_map(|(trigger, ops)| {
            let ops = ops.iter().enumerate();
            ops.map(move |(place, op)| (*trigger, place, *op))
        })
    };
    for (trigger, place, _) in places() {
        steps.push(without(program, trigger, place));
    }
    for (trigger, place, op) in places() {
        if trigger != Trigger::Main {
            let mut simpler = without(program, trigger, place);
            let main = simpler.0.entry(Trigger::Main).or_default();
            let run = main.iter().position(|op| matches!(op, Op::Run(_)));
            main.insert(run.unwrap_or(main.len()), op);
            steps.push(simpler);
        }
    }
    for trigger in program.0.keys() {
        if let Trigger::Called(handle, nth @ 1..) = *trigger {
            let earlier = Trigger::Called(handle, nth - 1);
            if !program.0.contains_key(&earlier) {
                let mut simpler = program.clone();
                let ops = simpler.0.remove(trigger).unwrap_or_default();
                simpler.0.insert(earlier, ops);
                steps.push(simpler);
            }
        }
    }
    for (trigger, place, op) in places() {
        for op in smaller(op) {
            let mut simpler = program.clone();
            if let Some(ops) = simpler.0.get_mut(&trigger) {
                ops[place] = op;
            }
            steps.push(simpler);
        }
    }
    steps
}

fn without(program: &Program, trigger: Trigger, place: usize) -> Program {
    let mut simpler = program.clone();
    if let Some(ops) = simpler.0.get_mut(&trigger) {
        ops.remove(place);
    }
    simpler.0.retain(|_, ops| !ops.is_empty());
    simpler
}

/// Returns the operations that are like this one with one number lowered.
fn smaller(op: Op) -> Vec<Op> {
    match op {
        Op::StartTimer(timer, timeout, repeat) => {
            let mut smaller = Vec::new();
            smaller.extend((timeout > 0).then(|| Op::StartTimer(timer, timeout - 1, repeat)));
            smaller.extend((repeat > 0).then(|| Op::StartTimer(timer, timeout, repeat - 1)));
            smaller
        }
        Op::SetRepeat(timer, repeat) if repeat > 0 => vec![Op::SetRepeat(timer, repeat - 1)],
        Op::Busy(time) if time > 1 => vec![Op::Busy(time - 1)],
        Op::Write(poll, bytes) if bytes > 1 => vec![Op::Write(poll, bytes - 1)],
        _ => Vec::new(),
    }
}
