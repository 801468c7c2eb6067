// SPDX-License-Identifier: Apache-2.0
//! GROUP_MOD, METER_MOD and the counter messages.

use flow::{GroupId, MeterId};

use crate::action::PofAction;
use crate::error;
use crate::layout::{self, Slot, choice, record};
use crate::value::PofCounterId;

choice! {
    /// Command of GROUP_MOD.
    pub enum PofGroupCommand: "group command", else error::GROUP_BAD_COMMAND {
        /// Create the group.
        Add = 0,
        /// Change the group.
        Modify = 1,
        /// Delete the group.
        Delete = 2,
    }
}

choice! {
    /// Type of a group, with the numbers of OpenFlow 1.3.
    pub enum PofGroupType: "group type", else error::GROUP_BAD_TYPE {
        /// Runs all buckets.
        All = 0,
        /// Runs one bucket, chosen by weight.
        Select = 1,
        /// Runs the only bucket.
        Indirect = 2,
        /// Runs the first live bucket.
        FastFailover = 3,
    }
}

record! {
    /// Body of GROUP_MOD with one list of actions.
    pub struct PofGroupMod: "GROUP_MOD" [208 208] {
        /// Command.
        command: PofGroupCommand = (0 1) (0 1),
        /// Type of the group.
        group_type: PofGroupType = (1 1) (1 1),
        /// Number of the group.
        group: GroupId = (4 4) (4 4),
        /// Counter of the group.
        counter: PofCounterId = (8 4) (8 4),
        /// Slot of the switch.
        slot: u16 = (-) (12 2),
    }
    lists {
        /// Actions, in order.
        actions: PofAction = count (2 1) (2 1), slots (16 192) (16 192), else error::ACTION_TOO_MANY,
    }
}

record! {
    /// Bucket of a group.
    pub struct PofBucket: "bucket" [- 304] {
        /// Weight in a select group.
        weight: u16 = (-) (2 2),
        /// Slot of the watched port.
        watch_slot: u16 = (-) (4 2),
        /// Watched port of a fast-failover group.
        watch_port: u8 = (-) (6 1),
        /// Watched group of a fast-failover group.
        watch_group: GroupId = (-) (8 4),
    }
    lists {
        /// Actions, in order.
        actions: PofAction = count (-) (0 2), slots (-) (16 288), else error::ACTION_TOO_MANY,
    }
}

impl Slot for PofBucket {
    const STRIDES: [usize; 2] = [304, 304];
}

record! {
    /// Body of GROUP_MOD with buckets, a variant of dialect 1.4.0.015. Its size differs from that of the
    /// other variant.
    pub struct PofBucketGroupMod: "GROUP_MOD with buckets" [- 1840] {
        /// Command.
        command: PofGroupCommand = (-) (0 1),
        /// Type of the group.
        group_type: PofGroupType = (-) (1 1),
        /// Number of the group.
        group: GroupId = (-) (4 4),
        /// Counter of the group.
        counter: PofCounterId = (-) (8 4),
        /// Slot of the switch.
        slot: u16 = (-) (12 2),
    }
    lists {
        /// Buckets, in order.
        buckets: PofBucket = count (-) (2 1), slots (-) (16 1824), else error::GROUP_OUT_OF_BUCKETS,
    }
}

choice! {
    /// Command of METER_MOD.
    pub enum PofMeterCommand: "meter command", else error::METER_BAD_COMMAND {
        /// Create the meter.
        Add = 0,
        /// Change the meter.
        Modify = 1,
        /// Delete the meter.
        Delete = 2,
    }
}

record! {
    /// Body of METER_MOD.
    pub struct PofMeterMod: "METER_MOD" [8 16] {
        /// Command.
        command: PofMeterCommand = (0 1) (0 1),
        /// Slot of the switch.
        slot: u16 = (-) (2 2),
        /// Rate in kbit/s.
        rate_kbps: u32 = (2 2) (8 4),
        /// Number of the meter.
        meter: MeterId = (4 4) (4 4),
    }
}

choice! {
    /// Command of the counter messages.
    pub enum CounterCommand: "counter command", else error::COUNTER_BAD_COMMAND {
        /// Create the counter.
        Add = 0,
        /// Delete the counter.
        Delete = 1,
        /// Set the counter to 0.
        Clear = 2,
        /// Request the counter.
        Request = 3,
        /// The requested counter, from the switch.
        Reply = 4,
    }
}

record! {
    /// Body of COUNTER_MOD, COUNTER_REQUEST and COUNTER_REPLY.
    pub struct PofCounter: "COUNTER_MOD, COUNTER_REQUEST, COUNTER_REPLY" [16 24] {
        /// Command.
        command: CounterCommand = (0 1) (0 1),
        /// Slot of the switch.
        slot: u16 = (-) (2 2),
        /// Number of the counter.
        counter: PofCounterId = (4 4) (4 4),
        /// Number of packets.
        packets: u64 = (8 8) (8 8),
        /// Number of bytes.
        bytes: u64 = (-) (16 8),
    }
}
