// SPDX-License-Identifier: Apache-2.0
//! A packet's action set: at most one action of each kind, executed at the end of the pipeline in OpenFlow's
//! order.

use crate::field_write::FieldWrite;
use crate::program::ProgramStep;
use crate::stateless::{KeyPush, PolkaPush, TfPush};
use arrayvec::ArrayVec;
use flow::{DropReason, GroupId, Limits, PortNo, QueueId};

/// Actions that run at the end of the pipeline, in the order of [`ActionSet::ordered`].
///
/// The actions are behind a pointer to keep `Packet` small: most packets have none.
#[derive(Clone, Debug, Default)]
pub struct ActionSet {
    used: bool,
    parts: Box<Parts>,
}

#[derive(Clone, Debug, Default)]
struct Parts {
    copy_ttl_in: bool,
    pop_vlan: bool,
    pop_pbb: bool,
    pop_mpls: Option<u16>,
    pop_key: bool,
    pop_tf: bool,
    push_mpls: Option<u16>,
    push_pbb: Option<u16>,
    push_vlan: Option<u16>,
    push_key: Option<KeyPush>,
    push_polka: Option<PolkaPush>,
    push_tf: Option<TfPush>,
    push_tf_wide: Option<TfPush>,
    copy_ttl_out: bool,
    dec_mpls_ttl: bool,
    dec_nw_ttl: bool,
    set_mpls_ttl: Option<u8>,
    set_nw_ttl: Option<u8>,
    writes: ArrayVec<FieldWrite, { Limits::ACTION_SET_FIELDS }>,
    queue: Option<QueueId>,
    group: Option<GroupId>,
    output: Option<(PortNo, u16)>,
}

/// Maximum number of steps in a set.
pub const SET_STEPS: usize = Limits::ACTION_SET_FIELDS + 24;

impl ActionSet {
    /// Removes all actions.
    #[inline]
    pub fn clear(&mut self) {
        if self.used {
            self.used = false;
            *self.parts = Parts::default();
        }
    }

    /// Returns whether the set has no action.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.used
    }

    /// Merges actions into the set. An action replaces an earlier action of the same kind.
    ///
    /// # Errors
    /// Returns `ActionSetFull` if the set would hold more than `Limits::ACTION_SET_FIELDS` set-fields.
    pub fn write(&mut self, steps: &[ProgramStep]) -> Result<(), DropReason> {
        self.used |= !steps.is_empty();
        let set = &mut *self.parts;
        for step in steps {
            match *step {
                ProgramStep::Output { port, max_len } => set.output = Some((port, max_len)),
                ProgramStep::Group(group) => set.group = Some(group),
                ProgramStep::Queue(queue) => set.queue = Some(queue),
                ProgramStep::Write(write) => set.write_field(write)?,
                ProgramStep::WriteMacs(_) => debug_assert!(false, "an action set keeps one write per field"),
                ProgramStep::PushVlan(tpid) => set.push_vlan = Some(tpid),
                ProgramStep::PopVlan => set.pop_vlan = true,
                ProgramStep::PushMpls(eth_type) => set.push_mpls = Some(eth_type),
                ProgramStep::PopMpls(eth_type) => set.pop_mpls = Some(eth_type),
                ProgramStep::PushPbb(eth_type) => set.push_pbb = Some(eth_type),
                ProgramStep::PopPbb => set.pop_pbb = true,
                ProgramStep::SetMplsTtl(ttl) => set.set_mpls_ttl = Some(ttl),
                ProgramStep::DecMplsTtl => set.dec_mpls_ttl = true,
                ProgramStep::SetNwTtl(ttl) => set.set_nw_ttl = Some(ttl),
                ProgramStep::DecNwTtl => set.dec_nw_ttl = true,
                ProgramStep::CopyTtlOut => set.copy_ttl_out = true,
                ProgramStep::CopyTtlIn => set.copy_ttl_in = true,
                ProgramStep::PushKey(key) => set.push_key = Some(key),
                ProgramStep::PushPolka(key) => set.push_polka = Some(key),
                ProgramStep::PopKey => set.pop_key = true,
                ProgramStep::PushTf(tag) => set.push_tf = Some(tag),
                ProgramStep::PushTfWide(tag) => set.push_tf_wide = Some(tag),
                ProgramStep::PopTf => set.pop_tf = true,
                ProgramStep::Edit(_) => debug_assert!(false, "edits are refused in action sets"),
            }
        }
        Ok(())
    }

    /// Returns the actions in OpenFlow's order of execution. A group suppresses the output.
    pub fn ordered(&self) -> ArrayVec<ProgramStep, SET_STEPS> {
        self.parts.ordered()
    }
}

impl Parts {
    fn write_field(&mut self, write: FieldWrite) -> Result<(), DropReason> {
        let at = self.writes.partition_point(|other| other.field < write.field);
        match self.writes.get_mut(at) {
            Some(same) if same.field == write.field => *same = write,
            _ => self.writes.try_insert(at, write).map_err(|_| DropReason::ActionSetFull)?,
        }
        Ok(())
    }

    fn ordered(&self) -> ArrayVec<ProgramStep, SET_STEPS> {
        let mut steps = ArrayVec::new();
        let mut put = |wanted: bool, step: ProgramStep| {
            if wanted {
                steps.push(step);
            }
        };
        put(self.copy_ttl_in, ProgramStep::CopyTtlIn);
        put(self.pop_vlan, ProgramStep::PopVlan);
        put(self.pop_pbb, ProgramStep::PopPbb);
        put(self.pop_mpls.is_some(), ProgramStep::PopMpls(self.pop_mpls.unwrap_or_default()));
        put(self.pop_key, ProgramStep::PopKey);
        put(self.pop_tf, ProgramStep::PopTf);
        put(self.push_mpls.is_some(), ProgramStep::PushMpls(self.push_mpls.unwrap_or_default()));
        put(self.push_pbb.is_some(), ProgramStep::PushPbb(self.push_pbb.unwrap_or_default()));
        put(self.push_vlan.is_some(), ProgramStep::PushVlan(self.push_vlan.unwrap_or_default()));
        put(self.push_key.is_some(), ProgramStep::PushKey(self.push_key.unwrap_or_default()));
        put(self.push_polka.is_some(), ProgramStep::PushPolka(self.push_polka.unwrap_or_default()));
        put(self.push_tf.is_some(), ProgramStep::PushTf(self.push_tf.unwrap_or_default()));
        put(self.push_tf_wide.is_some(), ProgramStep::PushTfWide(self.push_tf_wide.unwrap_or_default()));
        put(self.copy_ttl_out, ProgramStep::CopyTtlOut);
        put(self.dec_mpls_ttl, ProgramStep::DecMplsTtl);
        put(self.dec_nw_ttl, ProgramStep::DecNwTtl);
        put(self.set_mpls_ttl.is_some(), ProgramStep::SetMplsTtl(self.set_mpls_ttl.unwrap_or_default()));
        put(self.set_nw_ttl.is_some(), ProgramStep::SetNwTtl(self.set_nw_ttl.unwrap_or_default()));
        for write in &self.writes {
            put(true, ProgramStep::Write(*write));
        }
        put(self.queue.is_some(), ProgramStep::Queue(self.queue.unwrap_or_default()));
        match (self.group, self.output) {
            (Some(group), _) => put(true, ProgramStep::Group(group)),
            (None, Some((port, max_len))) => put(true, ProgramStep::Output { port, max_len }),
            (None, None) => {}
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Field, action::SetField};

    fn write(field: Field, value: u128) -> ProgramStep {
        ProgramStep::Write(FieldWrite::compile(&SetField { field, value, mask: field.full_mask() }))
    }

    #[test]
    fn a_set_has_one_action_of_each_kind_in_openflows_order() {
        let mut set = ActionSet::default();
        assert!(set.is_empty());
        set.write(&[
            ProgramStep::Output { port: PortNo(1), max_len: 0 },
            write(Field::TcpDst, 5),
            ProgramStep::PushVlan(0x8100),
        ])
        .unwrap();
        set.write(&[
            write(Field::EthSrc, 9),
            ProgramStep::Output { port: PortNo(2), max_len: 0 },
            write(Field::TcpDst, 6),
        ])
        .unwrap();
        set.write(&[ProgramStep::PopVlan, ProgramStep::DecNwTtl]).unwrap();
        assert_eq!(
            set.ordered()[..],
            [
                ProgramStep::PopVlan,
                ProgramStep::PushVlan(0x8100),
                ProgramStep::DecNwTtl,
                write(Field::EthSrc, 9),
                write(Field::TcpDst, 6),
                ProgramStep::Output { port: PortNo(2), max_len: 0 }
            ]
        );
        set.write(&[ProgramStep::Group(GroupId(4))]).unwrap();
        assert_eq!(set.ordered().last(), Some(&ProgramStep::Group(GroupId(4))));
        set.clear();
        assert!(set.is_empty() && set.ordered().is_empty());
    }

    #[test]
    fn a_full_set_is_an_error_a_replaced_field_is_not() {
        let mut set = ActionSet::default();
        for field in &Field::NAMED[3..3 + Limits::ACTION_SET_FIELDS] {
            set.write(&[write(*field, 1)]).unwrap();
        }
        set.write(&[write(Field::NAMED[3], 2)]).unwrap();
        assert_eq!(set.write(&[write(Field::NdTll, 1)]), Err(DropReason::ActionSetFull));
    }
}
