// SPDX-License-Identifier: Apache-2.0
//! Checks of a flow-mod that do not depend on a table. The caller checks that ports, groups, meters and
//! linear tables exist.

use crate::action::{KeyHeader, SetField, TfHeader};
use crate::{
    Action, EditError, Field, FlowMod, FlowModCommand, GroupId, Instructions, Limits, Match, MatchError,
    MeterId, PortNo, QueueId, TableId, port_no,
};

/// Highest group number (OFPG_MAX).
pub const GROUP_MAX: GroupId = GroupId(0xffff_ff00);
/// Highest meter number (OFPM_MAX).
pub const METER_MAX: MeterId = MeterId(0xffff_0000);
/// Number that stands for all queues (OFPQ_ALL). It is not a valid egress queue.
pub const QUEUE_ALL: u32 = 0xffff_ffff;

/// Reason why a flow-mod was refused. Each variant is one error of OpenFlow 1.3.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidateError {
    /// OFPET_FLOW_MOD_FAILED, OFPFMFC_BAD_TABLE_ID: table 255, or all tables instead of a single one.
    #[error("table 255 means all tables, for deletes only; tables are numbered 0 to 254")]
    Table,
    /// OFPET_BAD_INSTRUCTION, OFPBIC_BAD_TABLE_ID: goto to a table whose number is not higher.
    #[error("goto table {to} from table {from}; the next table's number must be higher, and at most 254")]
    Goto {
        /// Table of the entry.
        from: TableId,
        /// Next table of the entry.
        to: TableId,
    },
    /// OFPET_BAD_MATCH, OFPBMC_BAD_PREREQ: a match field without its prerequisite.
    #[error("{0}")]
    Prerequisite(MatchError),
    /// OFPET_METER_MOD_FAILED, OFPMMFC_INVALID_METER: a meter number out of range.
    #[error("meter {0} cannot exist; meters are numbered 1 to 0xffff0000")]
    Meter(MeterId),
    /// OFPET_BAD_ACTION, OFPBAC_TOO_MANY: a list with too many actions.
    #[error("a list has {0} actions; the maximum is {max}", max = Limits::ACTIONS_PER_LIST)]
    TooManyActions(usize),
    /// OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT: a port that does not exist or to which no flow can output.
    #[error(
        "output to port {0:#x}; a flow outputs to 1 to 0xffffff00, IN_PORT, NORMAL, FLOOD, ALL or CONTROLLER; this switch has no LOCAL port"
    )]
    OutPort(PortNo),
    /// OFPET_BAD_ACTION, OFPBAC_BAD_OUT_GROUP: a group number out of range.
    #[error("group {0:#x} cannot exist; groups are numbered 0 to 0xffffff00")]
    OutGroup(GroupId),
    /// OFPET_BAD_ACTION, OFPBAC_BAD_QUEUE: all queues instead of a single one.
    #[error("queue 0xffffffff means all queues; choose one")]
    Queue,
    /// OFPET_BAD_ACTION, OFPBAC_BAD_SET_TYPE: a field that cannot be written.
    #[error("set_field cannot write {0}")]
    SetType(Field),
    /// OFPET_BAD_ACTION, OFPBAC_BAD_SET_ARGUMENT: value and mask do not fit the field or each other.
    #[error(
        "set_field of {field}: value {value:#x} and mask {mask:#x} must fit the field; the value must lie within the mask, and the mask must not be 0"
    )]
    SetArgument {
        /// Field of the action.
        field: Field,
        /// Refused value.
        value: u128,
        /// Refused mask.
        mask: u128,
    },
    /// OFPET_BAD_ACTION, OFPBAC_BAD_ARGUMENT: a push with an EtherType that the action does not allow.
    #[error("{action} with EtherType {ethertype:#06x}; it can be {allowed}")]
    PushType {
        /// Name of the action.
        action: &'static str,
        /// Refused EtherType.
        ethertype: u16,
        /// Allowed EtherTypes.
        allowed: &'static str,
    },
    /// OFPET_BAD_ACTION, OFPBAC_BAD_ARGUMENT: an invalid KeyFlow header.
    #[error(
        "push_key with a key of {bytes} bytes and epoch {epoch}; keys have 8, 16, 24 or 32 bytes, the epoch is 0 or 1"
    )]
    Key {
        /// Length of the key in bytes.
        bytes: usize,
        /// Key epoch.
        epoch: u8,
    },
    /// OFPET_BAD_ACTION, OFPBAC_BAD_ARGUMENT: an invalid Tag-and-Forward header.
    #[error("{action}: qid has 3 bits, up {up_bits}, down {down_bits}; {header:?} does not fit")]
    Tf {
        /// Name of the action.
        action: &'static str,
        /// Width of the upward gate in bits.
        up_bits: u32,
        /// Width of the downward gate in bits.
        down_bits: u32,
        /// Refused header.
        header: TfHeader,
    },
    /// OFPET_BAD_ACTION, OFPBAC_BAD_ARGUMENT: an edit outside its bounds.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// OFPET_BAD_ACTION, OFPBAC_UNSUPPORTED_ORDER: an edit in an action set or a bucket.
    #[error("{0} needs an order; use it in apply_actions, not in write_actions or in a bucket")]
    Unordered(&'static str),
}

/// Checks a flow-mod. The instructions of a delete are not checked.
///
/// # Errors
/// Returns the first violation of OpenFlow 1.3 or of [`Limits`].
pub fn validate(flow: &FlowMod) -> Result<(), ValidateError> {
    check_prerequisites(&flow.matching)?;
    if flow.table == Some(TableId(u8::MAX)) {
        return Err(ValidateError::Table);
    }
    if matches!(flow.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict) {
        return Ok(());
    }
    validate_instructions(flow.table.ok_or(ValidateError::Table)?, &flow.instructions)
}

/// Checks the instructions of an entry of `table`, like [`validate`].
///
/// # Errors
/// Returns the first violation of OpenFlow 1.3 or of [`Limits`].
pub fn validate_instructions(table: TableId, instructions: &Instructions) -> Result<(), ValidateError> {
    if let Some(next) = instructions.next {
        let to = next.table();
        if to <= table || to == TableId(u8::MAX) {
            return Err(ValidateError::Goto { from: table, to });
        }
    }
    if let Some(meter) = instructions.meter
        && (meter == MeterId(0) || meter > METER_MAX)
    {
        return Err(ValidateError::Meter(meter));
    }
    validate_actions(&instructions.apply)?;
    validate_action_set(&instructions.write)
}

fn check_prerequisites(matching: &Match) -> Result<(), ValidateError> {
    matching.check_prerequisites().map_err(ValidateError::Prerequisite)
}

/// Checks actions that are executed as an action set: those of a write-actions instruction or of a bucket.
///
/// # Errors
/// Returns an error for the first action that violates OpenFlow 1.3 or [`Limits`].
pub fn validate_action_set(actions: &[Action]) -> Result<(), ValidateError> {
    match actions.iter().find(|action| matches!(action, Action::Edit(_))) {
        Some(Action::Edit(edit)) => Err(ValidateError::Unordered(edit.name())),
        _ => validate_actions(actions),
    }
}

/// Checks actions that are executed in their order.
///
/// # Errors
/// Returns an error for the first action that violates OpenFlow 1.3 or [`Limits`].
pub fn validate_actions(actions: &[Action]) -> Result<(), ValidateError> {
    if actions.len() > Limits::ACTIONS_PER_LIST {
        return Err(ValidateError::TooManyActions(actions.len()));
    }
    actions.iter().try_for_each(validate_action)
}

fn validate_action(action: &Action) -> Result<(), ValidateError> {
    let push = |action, ethertype, right: bool, allowed| {
        if right { Ok(()) } else { Err(ValidateError::PushType { action, ethertype, allowed }) }
    };
    match action {
        Action::Output { port, .. } => match *port {
            // Shunt has no LOCAL port.
            port_no::TABLE | port_no::ANY | port_no::LOCAL => Err(ValidateError::OutPort(PortNo(port.0))),
            real if port_no::is_real(real) || port_no::reserved_name(real).is_some() => Ok(()),
            other => Err(ValidateError::OutPort(PortNo(other.0))),
        },
        Action::Group(group) if *group > GROUP_MAX => Err(ValidateError::OutGroup(*group)),
        Action::SetQueue(QueueId(QUEUE_ALL)) => Err(ValidateError::Queue),
        Action::SetField(SetField { field, value, mask }) => {
            if !field.settable() {
                return Err(ValidateError::SetType(*field));
            }
            if *mask == 0 || mask & !field.full_mask() != 0 || value & !mask != 0 {
                return Err(ValidateError::SetArgument { field: *field, value: *value, mask: *mask });
            }
            Ok(())
        }
        Action::PushVlan(t) => push("push_vlan", *t, matches!(t, 0x8100 | 0x88a8), "0x8100 or 0x88a8"),
        Action::PushMpls(t) => push("push_mpls", *t, matches!(t, 0x8847 | 0x8848), "0x8847 or 0x8848"),
        Action::PushPbb(t) => push("push_pbb", *t, *t == 0x88e7, "0x88e7"),
        Action::PushKey(KeyHeader { key, epoch, .. }) => {
            if matches!(key.len(), 8 | 16 | 24 | 32) && *epoch <= 1 {
                return Ok(());
            }
            Err(ValidateError::Key { bytes: key.len(), epoch: *epoch })
        }
        Action::Edit(edit) => Ok(edit.check()?),
        Action::PushTf(header) => validate_tf("push_tf", *header, 32, 13),
        Action::PushTfWide(header) => validate_tf("push_tf_wide", *header, 29, 16),
        _ => Ok(()),
    }
}

fn validate_tf(
    action: &'static str,
    header: TfHeader,
    up_bits: u32,
    down_bits: u32,
) -> Result<(), ValidateError> {
    let fits =
        header.qid < 8 && u64::from(header.up) >> up_bits == 0 && u32::from(header.down) >> down_bits == 0;
    if fits { Ok(()) } else { Err(ValidateError::Tf { action, up_bits, down_bits, header }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instructions, MeterId, Next, PortNo, TableId};

    fn with(instructions: Instructions) -> Result<(), ValidateError> {
        validate(&FlowMod { table: Some(TableId(3)), instructions, ..FlowMod::default() })
    }

    fn one(action: Action) -> Result<(), ValidateError> {
        with(Instructions::apply(vec![action]))
    }

    #[test]
    fn tables() {
        let goto = |to| with(Instructions { next: Some(Next::Table(to)), ..Instructions::default() });
        assert_eq!((goto(TableId(4)), goto(TableId(254))), (Ok(()), Ok(())));
        for to in [0, 3, 255] {
            assert_eq!(goto(TableId(to)), Err(ValidateError::Goto { from: TableId(3), to: TableId(to) }));
        }
        let add = |table| validate(&FlowMod { table, ..FlowMod::default() });
        assert_eq!((add(Some(TableId(254))), add(Some(TableId(255)))), (Ok(()), Err(ValidateError::Table)));
        assert_eq!(add(None), Err(ValidateError::Table));
        assert_eq!(
            validate(&FlowMod { table: None, command: FlowModCommand::Delete, ..FlowMod::default() }),
            Ok(())
        );
    }

    #[test]
    fn actions_that_openflow_does_not_allow_are_refused() {
        for port in [PortNo(1), port_no::MAX, port_no::IN_PORT, port_no::NORMAL, port_no::CONTROLLER] {
            assert_eq!(one(Action::output(port)), Ok(()));
        }
        for port in [
            0,
            port_no::MAX.0 + 1,
            port_no::TABLE.0,
            port_no::ANY.0,
            port_no::LOCAL.0,
            port_no::IN_PORT.0 - 1,
        ] {
            let port = PortNo(port);
            assert_eq!(one(Action::output(port)), Err(ValidateError::OutPort(PortNo(port.0))));
        }
        assert_eq!(one(Action::set(Field::InPort, 1)), Err(ValidateError::SetType(Field::InPort)));
        let outside = SetField { field: Field::EthSrc, value: 3, mask: 1 };
        assert!(matches!(one(Action::SetField(outside)), Err(ValidateError::SetArgument { .. })));
        assert!(matches!(one(Action::PushVlan(0x0800)), Err(ValidateError::PushType { .. })));
        assert_eq!(one(Action::SetQueue(QueueId(QUEUE_ALL))), Err(ValidateError::Queue));
        let outside = GroupId(GROUP_MAX.0 + 1);
        assert_eq!(one(Action::Group(outside)), Err(ValidateError::OutGroup(outside)));
        let tf = TfHeader { qid: 0, up: 1 << 29, down: 0 };
        assert_eq!(one(Action::PushTf(tf)), Ok(()));
        assert!(matches!(one(Action::PushTfWide(tf)), Err(ValidateError::Tf { .. })));
        let key = KeyHeader { key: [0; 9].into(), hops: 1, epoch: 0 };
        assert!(matches!(one(Action::PushKey(key)), Err(ValidateError::Key { bytes: 9, .. })));
    }

    #[test]
    fn numbers_are_allowed_up_to_their_bounds() {
        let meter = |n| with(Instructions { meter: Some(MeterId(n)), ..Instructions::default() });
        assert_eq!(meter(0xffff_0000), Ok(()));
        assert_eq!(meter(0xffff_0001), Err(ValidateError::Meter(MeterId(0xffff_0001))));
        assert_eq!(one(Action::Group(GroupId(0))), Ok(()));
        assert_eq!(one(Action::Group(GroupId(0xffff_ff00))), Ok(()));
        assert_eq!(
            one(Action::Group(GroupId(0xffff_ff01))),
            Err(ValidateError::OutGroup(GroupId(0xffff_ff01)))
        );
        assert_eq!(one(Action::SetQueue(QueueId(0xffff_fffe))), Ok(()));
        for (action, ethertypes) in [
            (Action::PushVlan as fn(u16) -> Action, &[0x8100, 0x88a8][..]),
            (Action::PushMpls, &[0x8847, 0x8848]),
            (Action::PushPbb, &[0x88e7]),
        ] {
            for ethertype in [0x0800, 0x8100, 0x88a8, 0x8847, 0x8848, 0x88e7, 0x88e6] {
                assert_eq!(one(action(ethertype)).is_ok(), ethertypes.contains(&ethertype), "{ethertype:#x}");
            }
        }
    }

    #[test]
    fn set_field_needs_a_mask_within_the_field_and_a_value_within_the_mask() {
        for (value, mask, allowed) in [
            (0, 1, true),
            (1, 1, true),
            (0xffff_ffff_ffff, 0xffff_ffff_ffff, true),
            (0, 0, false),
            (2, 1, false),
            (0, 1 << 48, false),
        ] {
            let set = one(Action::SetField(SetField { field: Field::EthSrc, value, mask }));
            assert_eq!(set.is_ok(), allowed, "{value:#x}/{mask:#x}: {set:?}");
        }
    }

    #[test]
    fn stateless_headers_must_fit_their_bits() {
        let tf = |qid, up, down| TfHeader { qid, up, down };
        for (header, narrow, wide) in [
            (tf(0, 0, 0), true, true),
            (tf(7, u32::MAX, (1 << 13) - 1), true, false),
            (tf(7, (1 << 29) - 1, u16::MAX), false, true),
            (tf(8, 0, 0), false, false),
            (tf(0, 1 << 29, 0), true, false),
            (tf(0, 0, 1 << 13), false, true),
        ] {
            let pushes = (one(Action::PushTf(header)).is_ok(), one(Action::PushTfWide(header)).is_ok());
            assert_eq!(pushes, (narrow, wide), "{header:?}");
        }
        for bytes in 0..=40 {
            for epoch in 0..=2 {
                let key = KeyHeader { key: vec![0; bytes].into(), hops: 1, epoch };
                let fits = [8, 16, 24, 32].contains(&bytes) && epoch < 2;
                assert_eq!(one(Action::PushKey(key)).is_ok(), fits, "{bytes} bytes, epoch {epoch}");
            }
        }
    }

    #[test]
    fn edits_are_checked_and_need_an_order() {
        let edit = |bytes| Action::Edit(crate::Edit::MoveBase(bytes));
        assert_eq!(one(edit(-4)), Ok(()));
        assert_eq!(one(edit(2_000)), Err(ValidateError::Edit(EditError::Distance(2_000))));
        let write = Instructions { write: vec![edit(4)], ..Instructions::default() };
        assert_eq!(with(write), Err(ValidateError::Unordered("move_base")));
    }

    #[test]
    fn limits_hold() {
        let list = |n| vec![Action::DecNwTtl; n];
        assert_eq!(with(Instructions::apply(list(64))), Ok(()));
        assert_eq!(with(Instructions::apply(list(65))), Err(ValidateError::TooManyActions(65)));
        let write = Instructions { write: list(65), ..Instructions::default() };
        assert_eq!(with(write), Err(ValidateError::TooManyActions(65)));
        let meter = |n| with(Instructions { meter: Some(MeterId(n)), ..Instructions::default() });
        assert_eq!((meter(1), meter(0)), (Ok(()), Err(ValidateError::Meter(MeterId(0)))));
    }
}
