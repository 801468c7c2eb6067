// SPDX-License-Identifier: Apache-2.0
//! COUNTER_MOD and COUNTER_REQUEST.

use crate::counters::{Counter, missing};
use crate::job::{CountThen, Job};
use crate::refusal::PofRefusal;
use crate::shared::Shared;
use crate::slot;
use crate::translate::counter_group;
use dataplane::DataPlane;
use flow::group::{Group, GroupType};
use model::agent::Context;
use model::{Change, GroupCommand};
use pof::error;
use pof::message::resource::{CounterCommand, PofCounter};
use pof::value::PofCounterId;

/// Executes a COUNTER_MOD. Returns a job if the counts must be added up first.
pub fn counter_mod<D: DataPlane>(
    m: &PofCounter,
    xid: u32,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<Option<Job>, PofRefusal> {
    slot::check(m.slot)?;
    if m.counter.0 == 0 {
        let problem = "counter 0 stands for no counter; counters are numbered from 1";
        return Err(PofRefusal::new(error::COUNTER_BAD_COUNTER_ID, problem));
    }
    match m.command {
        CounterCommand::Add => {
            end_dead_entries(m.counter, shared, context);
            if shared.counters.get(m.counter).is_some() {
                let problem = format!("counter {} exists already", m.counter.0);
                return Err(PofRefusal::new(error::COUNTER_EXIST, problem));
            }
            let code = error::COUNTER_BAD_COUNTER_ID;
            shared.counters.check_room(m.counter).map_err(|refusal| PofRefusal { code, ..refusal })?;
            shared.counters.or_create(m.counter).is_kept = true;
            Ok(None)
        }
        CounterCommand::Delete => delete(m.counter, shared, context).map(|()| None),
        CounterCommand::Clear => {
            existing(m.counter, shared, context)?;
            (context.refresh)();
            Ok(Some(Job::count(xid, m.counter, CountThen::Clear)))
        }
        CounterCommand::Request | CounterCommand::Reply => {
            let problem = "COUNTER_MOD can add, delete and clear; use COUNTER_REQUEST to read a counter";
            Err(PofRefusal::new(error::COUNTER_BAD_COMMAND, problem))
        }
    }
}

/// Returns the job that answers a COUNTER_REQUEST.
pub fn request<D: DataPlane>(
    m: &PofCounter,
    xid: u32,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<Job, PofRefusal> {
    slot::check(m.slot)?;
    existing(m.counter, shared, context)?;
    (context.refresh)();
    Ok(Job::count(xid, m.counter, CountThen::Reply))
}

fn existing<'a, D: DataPlane>(
    id: PofCounterId,
    shared: &'a mut Shared,
    context: &Context<'_, D>,
) -> Result<&'a Counter, PofRefusal> {
    end_dead_entries(id, shared, context);
    shared.counters.get(id).ok_or_else(|| missing(id))
}

/// Ends the use of a counter by entries that the model has removed, up to the first that exists. Without
/// entries, the counter may end, too.
fn end_dead_entries<D: DataPlane>(id: PofCounterId, shared: &mut Shared, context: &Context<'_, D>) {
    let first = |shared: &Shared| Some(*shared.counters.get(id)?.entries.first_key_value()?.0);
    while let Some(entry) = first(shared).filter(|entry| !context.model.is_present(*entry)) {
        shared.counters.entry_removed(id, entry);
    }
}

fn delete<D: DataPlane>(
    id: PofCounterId,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    let counter = existing(id, shared, context)?;
    let own = counter_group(id).ok();
    let users = own.and_then(|own| context.model.group(context.now, own)).map_or(0, |own| own.references);
    let others = counter.groups.keys().filter(|group| Some(**group) != own).count();
    if users + others + counter.entries.len() > 0 {
        let problem = format!("entries or groups count under counter {}; delete them first", id.0);
        return Err(PofRefusal::new(error::COUNTER_BAD_COUNTER_ID, problem));
    }
    if let Some(id) = own {
        let group = Group { id, kind: GroupType::Indirect, buckets: Vec::new() };
        context.model.change(context.now, Change::Group(GroupCommand::Delete, group))?;
    }
    shared.counters.remove(id);
    Ok(())
}
