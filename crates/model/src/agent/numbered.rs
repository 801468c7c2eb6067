// SPDX-License-Identifier: Apache-2.0
//! Lists of groups and meters in order of their numbers. Each step produces one item.

use super::context::Context;
use super::{group, meter};
use dataplane::DataPlane;
use flow::meter::Meter;
use flow::{GroupId, MeterId};
use openflow::multipart::group_stats::{GroupDescription, GroupStatsEntry};
use openflow::multipart::meter_stats::MeterStatsEntry;
use openflow::multipart::parts::Parts;
use std::ops::RangeInclusive;

#[derive(Debug)]
enum List {
    Groups(Parts<GroupDescription>),
    GroupStats(Parts<GroupStatsEntry>),
    Meters(Parts<Meter>),
    MeterStats(Parts<MeterStatsEntry>),
}

/// A list that is being sent, and the range of numbers not sent yet.
#[derive(Debug)]
pub struct Numbered {
    list: List,
    rest: RangeInclusive<u32>,
}

/// Returns the range of numbers that a request selects.
fn asked(number: u32, all: u32) -> RangeInclusive<u32> {
    if number == all { 0..=u32::MAX } else { number..=number }
}

impl Numbered {
    pub fn groups(xid: u32) -> Self {
        Self { list: List::Groups(Parts::new(xid)), rest: 0..=u32::MAX }
    }

    pub fn group_stats(xid: u32, group: GroupId) -> Self {
        Self { list: List::GroupStats(Parts::new(xid)), rest: asked(group.0, openflow::group::ALL.0) }
    }

    pub fn meters(xid: u32, meter: MeterId) -> Self {
        Self { list: List::Meters(Parts::new(xid)), rest: asked(meter.0, openflow::meter::ALL.0) }
    }

    pub fn meter_stats(xid: u32, meter: MeterId) -> Self {
        Self { list: List::MeterStats(Parts::new(xid)), rest: asked(meter.0, openflow::meter::ALL.0) }
    }

    /// Produces the next part. Returns the remaining list, or `None` at its end.
    pub fn advance<D: DataPlane>(mut self, out: &mut Vec<u8>, context: &mut Context<'_, D>) -> Option<Self> {
        let model = &mut *context.model;
        let next = match &self.list {
            List::Groups(_) | List::GroupStats(_) => model.first_group(&self.rest).map(u32::from),
            List::Meters(_) | List::MeterStats(_) => model.first_meter(&self.rest).map(u32::from),
        };
        let Some(number) = next else {
            match self.list {
                List::Groups(parts) => parts.finish(out),
                List::GroupStats(parts) => parts.finish(out),
                List::Meters(parts) => parts.finish(out),
                List::MeterStats(parts) => parts.finish(out),
            }
            return None;
        };
        // Each item fits into a message: its definition was received in one message, and its statistics are
        // bounded by the number of buckets or bands.
        let _ = match &mut self.list {
            List::Groups(parts) => model
                .group_numbered(GroupId(number))
                .map(|group| parts.push(&GroupDescription(group.clone()), out)),
            List::GroupStats(parts) => {
                model.group(context.now, GroupId(number)).map(|stats| parts.push(&group::stats(&stats), out))
            }
            List::Meters(parts) => model.meter_numbered(MeterId(number)).map(|meter| parts.push(meter, out)),
            List::MeterStats(parts) => {
                model.meter(context.now, MeterId(number)).map(|stats| parts.push(&meter::stats(&stats), out))
            }
        };
        self.rest = number.saturating_add(1)..=*self.rest.end();
        Some(self)
    }
}
