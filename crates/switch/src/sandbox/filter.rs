// SPDX-License-Identifier: Apache-2.0
//! Compiles the lists of system calls to seccomp filters, and installs them.

use super::calls::{AllowedCall, ArgumentLimit, CALLS, OLDER_CALLS};
use super::thread_kind::ThreadKind;
use config::SeccompMode;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Compiled filters of a kind of thread.
#[derive(Clone, Debug)]
pub struct ThreadFilter {
    /// Refuses the calls that are not in the list.
    listed: BpfProgram,
    /// Makes `clone3` fail with ENOSYS, so that the C library uses `clone`.
    without_clone3: BpfProgram,
}

impl ThreadFilter {
    /// Compiles the filters of a kind of thread. Returns `None` if calls are not limited.
    ///
    /// # Errors
    ///
    /// Returns an error if this machine is not supported, or if the table of calls is wrong.
    pub fn compile(kind: ThreadKind, mode: SeccompMode) -> Result<Option<Self>, BackendError> {
        let otherwise = match mode {
            SeccompMode::Off => return Ok(None),
            SeccompMode::Log => SeccompAction::Log,
            // The kernel sends SIGSYS. It ends the process if the thread blocks or ignores the signal.
            SeccompMode::On => SeccompAction::Trap,
        };
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let mut rules = BTreeMap::<i64, Vec<SeccompRule>>::new();
        for call in CALLS.iter().chain(OLDER_CALLS).filter(|call| call.threads.contains(&kind)) {
            rules.entry(call.number).or_default().extend(rules_of(call)?);
        }
        let listed = SeccompFilter::new(rules, otherwise, SeccompAction::Allow, arch)?.try_into()?;
        let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        let missing = SeccompAction::Errno(libc::ENOSYS as u32);
        let without_clone3 = SeccompFilter::new(clone3, SeccompAction::Allow, missing, arch)?.try_into()?;
        Ok(Some(Self { listed, without_clone3 }))
    }

    /// Installs the filters for the calling thread, and for the threads that it starts. They stay until the
    /// thread ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not support filters.
    pub fn install(&self) -> Result<(), seccompiler::Error> {
        apply_filter(&self.without_clone3)?;
        apply_filter(&self.listed)
    }
}

/// Returns the rules of a call, of which one must match. A call without rules may have any arguments.
fn rules_of(call: &AllowedCall) -> Result<Vec<SeccompRule>, BackendError> {
    let rule = |argument, operator, value| {
        // Flags and commands are 32-bit numbers. The kernel ignores the upper half of their registers.
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        SeccompRule::new(vec![condition])
    };
    match call.limit {
        ArgumentLimit::Any => Ok(Vec::new()),
        ArgumentLimit::OneOf(argument, values) => {
            values.iter().map(|(value, _)| rule(argument, SeccompCmpOp::Eq, *value)).collect()
        }
        ArgumentLimit::Without(argument, bits, _) => {
            Ok(vec![rule(argument, SeccompCmpOp::MaskedEq(bits), 0)?])
        }
        ArgumentLimit::With(argument, bits, _) => {
            Ok(vec![rule(argument, SeccompCmpOp::MaskedEq(bits), bits)?])
        }
    }
}
