// SPDX-License-Identifier: Apache-2.0
//! A packet's action set: at most one action of each kind, executed at the end of the pipeline in OpenFlow's
//! order.

use crate::field_write::FieldWrite;
use crate::program::Step;
use crate::stateless::{KeyPush, PolkaPush, TfPush};
use arrayvec::ArrayVec;
use flow::{DropReason, Limits, PortNo};

/// Actions that run at the end of the pipeline, in the order of [`ActionSet::ordered`].
///
/// The actions are stored behind a pointer, because most packets have none and `Packet` should span few cache
/// lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet {
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
    queue: Option<u32>,
    group: Option<u32>,
    output: Option<(PortNo, u16)>,
}

/// Maximum number of steps in a set.
pub(crate) const SET_STEPS: usize = Limits::ACTION_SET_FIELDS + 24;

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

    /// Merges actions into the set. Each replaces the action of its kind.
    ///
    /// # Errors
    /// Returns `ActionSetFull` if the set would hold more than `Limits::ACTION_SET_FIELDS` set-fields.
    pub fn write(&mut self, steps: &[Step]) -> Result<(), DropReason> {
        self.used |= !steps.is_empty();
        let set = &mut *self.parts;
        for step in steps {
            match *step {
                Step::Output { port, max_len } => set.output = Some((port, max_len)),
                Step::Group(group) => set.group = Some(group),
                Step::Queue(queue) => set.queue = Some(queue),
                Step::Write(write) => set.write_field(write)?,
                Step::WriteMacs(_) => debug_assert!(false, "an action set keeps one write a field"),
                Step::PushVlan(tpid) => set.push_vlan = Some(tpid),
                Step::PopVlan => set.pop_vlan = true,
                Step::PushMpls(eth_type) => set.push_mpls = Some(eth_type),
                Step::PopMpls(eth_type) => set.pop_mpls = Some(eth_type),
                Step::PushPbb(eth_type) => set.push_pbb = Some(eth_type),
                Step::PopPbb => set.pop_pbb = true,
                Step::SetMplsTtl(ttl) => set.set_mpls_ttl = Some(ttl),
                Step::DecMplsTtl => set.dec_mpls_ttl = true,
                Step::SetNwTtl(ttl) => set.set_nw_ttl = Some(ttl),
                Step::DecNwTtl => set.dec_nw_ttl = true,
                Step::CopyTtlOut => set.copy_ttl_out = true,
                Step::CopyTtlIn => set.copy_ttl_in = true,
                Step::PushKey(key) => set.push_key = Some(key),
                Step::PushPolka(key) => set.push_polka = Some(key),
                Step::PopKey => set.pop_key = true,
                Step::PushTf(tag) => set.push_tf = Some(tag),
                Step::PushTfWide(tag) => set.push_tf_wide = Some(tag),
                Step::PopTf => set.pop_tf = true,
            }
        }
        Ok(())
    }

    /// Returns the actions in OpenFlow's order of execution. A group suppresses the output.
    pub fn ordered(&self) -> ArrayVec<Step, SET_STEPS> {
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

    fn ordered(&self) -> ArrayVec<Step, SET_STEPS> {
        let mut steps = ArrayVec::new();
        let mut put = |wanted: bool, step: Step| {
            if wanted {
                steps.push(step);
            }
        };
        put(self.copy_ttl_in, Step::CopyTtlIn);
        put(self.pop_vlan, Step::PopVlan);
        put(self.pop_pbb, Step::PopPbb);
        put(self.pop_mpls.is_some(), Step::PopMpls(self.pop_mpls.unwrap_or_default()));
        put(self.pop_key, Step::PopKey);
        put(self.pop_tf, Step::PopTf);
        put(self.push_mpls.is_some(), Step::PushMpls(self.push_mpls.unwrap_or_default()));
        put(self.push_pbb.is_some(), Step::PushPbb(self.push_pbb.unwrap_or_default()));
        put(self.push_vlan.is_some(), Step::PushVlan(self.push_vlan.unwrap_or_default()));
        put(self.push_key.is_some(), Step::PushKey(self.push_key.unwrap_or_default()));
        put(self.push_polka.is_some(), Step::PushPolka(self.push_polka.unwrap_or_default()));
        put(self.push_tf.is_some(), Step::PushTf(self.push_tf.unwrap_or_default()));
        put(self.push_tf_wide.is_some(), Step::PushTfWide(self.push_tf_wide.unwrap_or_default()));
        put(self.copy_ttl_out, Step::CopyTtlOut);
        put(self.dec_mpls_ttl, Step::DecMplsTtl);
        put(self.dec_nw_ttl, Step::DecNwTtl);
        put(self.set_mpls_ttl.is_some(), Step::SetMplsTtl(self.set_mpls_ttl.unwrap_or_default()));
        put(self.set_nw_ttl.is_some(), Step::SetNwTtl(self.set_nw_ttl.unwrap_or_default()));
        for write in &self.writes {
            put(true, Step::Write(*write));
        }
        put(self.queue.is_some(), Step::Queue(self.queue.unwrap_or_default()));
        match (self.group, self.output) {
            (Some(group), _) => put(true, Step::Group(group)),
            (None, Some((port, max_len))) => put(true, Step::Output { port, max_len }),
            (None, None) => {}
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Field, action::SetField};

    fn write(field: Field, value: u128) -> Step {
        Step::Write(FieldWrite::compile(&SetField { field, value, mask: field.full_mask() }))
    }

    #[test]
    fn one_of_each_kind_in_openflows_order() {
        let mut set = ActionSet::default();
        assert!(set.is_empty());
        set.write(&[Step::Output { port: 1, max_len: 0 }, write(Field::TcpDst, 5), Step::PushVlan(0x8100)])
            .unwrap();
        set.write(&[write(Field::EthSrc, 9), Step::Output { port: 2, max_len: 0 }, write(Field::TcpDst, 6)])
            .unwrap();
        set.write(&[Step::PopVlan, Step::DecNwTtl]).unwrap();
        assert_eq!(
            set.ordered()[..],
            [
                Step::PopVlan,
                Step::PushVlan(0x8100),
                Step::DecNwTtl,
                write(Field::EthSrc, 9),
                write(Field::TcpDst, 6),
                Step::Output { port: 2, max_len: 0 }
            ]
        );
        set.write(&[Step::Group(4)]).unwrap();
        assert_eq!(set.ordered().last(), Some(&Step::Group(4)));
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
