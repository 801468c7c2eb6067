// SPDX-License-Identifier: Apache-2.0
//! The control side of the express path's keys: tracks which tables packets can reach and which bits their
//! rules examine, and makes a new plan when the keys no longer hold enough bits.
//!
//! A rule that examines more bits causes a new plan at once. The new plan also holds all bits of the plan
//! before it, so that rules which come and go do not change it again and again. Bits that rules do not
//! examine are dropped when the rules have not changed for a while ([`NARROW_AFTER_NS`]), or after a longer
//! time while they change ([`KEPT_NS`]).

use crate::edit_lists::{EditListId, EditLists};
use crate::table_compiler::TableCompiler;
use actions::Shift;
use flow::group::Group;
use flow::operation::MAC_TABLE;
use flow::{
    Action, EntryChange, EntryId, Field, FlowEntry, GroupId, Instructions, Nanos, PortNo, TableId, port_no,
};
use keys::{ExpressPlan, KeyFit, PlanVersion, View, port_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// Time without changes after which a plan is made narrower, in nanoseconds.
const NARROW_AFTER_NS: Nanos = Nanos(1_000_000_000);

/// Minimum time in nanoseconds for which a plan keeps bits that no rule examines, while rules change. The
/// maximum is twice as long.
const KEPT_NS: Nanos = Nanos(5_000_000_000);

/// Maximum number of states in which packets reach a table. With more, paths on which entries shift packets
/// have no record.
const VIEWS_MAX: usize = 8;

/// Examined bits of each field.
type Bits = BTreeMap<Field, u128>;

fn add_bits(to: &mut Bits, bits: impl IntoIterator<Item = (Field, u128)>) {
    bits.into_iter().for_each(|(field, mask)| *to.entry(field).or_default() |= mask);
}

/// Bits that NORMAL examines: it looks up both addresses, each with the VLAN ID, in the table of learned
/// addresses.
const BY_NORMAL: [(Field, u128); 3] =
    [(Field::EthDst, 0xffff_ffff_ffff), (Field::EthSrc, 0xffff_ffff_ffff), (Field::VlanVid, 0xfff)];

/// Bits that NORMAL examines if ports have settings for it. It then depends on whether there is a tag, too.
const BY_BRIDGE: (Field, u128) = (Field::VlanVid, 0x1fff);

/// Where packets that hit an entry may be looked up next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Leads {
    next: Option<TableId>,
    /// How the entry shifts packets before the next table.
    edits: EditListId,
    normal: bool,
    group: bool,
}

impl Leads {
    fn of(instructions: &Instructions, lists: &mut EditLists) -> Self {
        let actions = || instructions.apply.iter().chain(&instructions.write);
        Self {
            next: instructions.next.map(flow::Next::table),
            edits: lists.number(instructions),
            normal: actions().any(is_normal),
            group: actions().any(|action| matches!(action, Action::Group(_))),
        }
    }
}

fn is_normal(action: &Action) -> bool {
    matches!(action, Action::Output { port: port_no::NORMAL, .. })
}

/// How many of a table's entries lead to each table with each list of edits, to NORMAL and to groups.
#[derive(Debug, Default)]
struct LeadCounts {
    next: BTreeMap<(TableId, EditListId), usize>,
    normal: usize,
    group: usize,
}

impl LeadCounts {
    /// Counts an entry. Returns whether the entry leads to a destination to which no other entry of the table
    /// leads.
    fn add(&mut self, leads: Leads) -> bool {
        let count = |count: &mut usize, counts: bool| {
            *count += usize::from(counts);
            counts && *count == 1
        };
        let next = leads.next.map(|next| self.next.entry((next, leads.edits)).or_default());
        let next = next.is_some_and(|counted| count(counted, true));
        count(&mut self.normal, leads.normal) | count(&mut self.group, leads.group) | next
    }

    /// Removes an entry from the counts.
    fn remove(&mut self, leads: Leads) {
        if let Some(next) = leads.next
            && let Some(count) = self.next.get_mut(&(next, leads.edits))
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.next.remove(&(next, leads.edits));
            }
        }
        self.normal = self.normal.saturating_sub(leads.normal.into());
        self.group = self.group.saturating_sub(leads.group.into());
    }
}

/// Keeps the plan of the express path's keys up to date.
#[derive(Debug)]
pub(crate) struct ExpressPlanner {
    tables: Vec<LeadCounts>,
    /// Where each entry leads, by entry ID.
    entries: Vec<Leads>,
    lists: EditLists,
    /// Groups with a bucket that outputs to NORMAL.
    normal_groups: BTreeSet<GroupId>,
    /// Whether ports have settings for NORMAL.
    has_bridge: bool,
    /// The highest port number, or `None` before the first port.
    highest_port: Option<PortNo>,
    plan: ExpressPlan,
    /// Whether packets can reach each table, according to the plan.
    reached: Vec<bool>,
    /// States in which packets reach each table, according to the plan.
    views: Vec<Vec<View>>,
    /// Whether the plan may hold more bits than the rules examine.
    is_wide: bool,
    /// Whether the LUT of a table that packets can reach may examine bits that the plan lacks. A LUT keeps
    /// the bits of removed rules, so this becomes true only if the plan changes or a table is newly reached.
    is_coarse: bool,
    /// Whether anything changed since the last tick.
    has_changed: bool,
    quiet_since: Nanos,
    /// Bits that rules have examined in the present period of [`KEPT_NS`].
    recent: Bits,
    period_begun: Nanos,
}

impl ExpressPlanner {
    /// Creates the planner of a data plane without rules.
    pub fn new() -> Self {
        let mut tables = Vec::new();
        tables.resize_with(MAC_TABLE.index() + 1, LeadCounts::default);
        let mut reached = vec![false; tables.len()];
        reached[0] = true;
        let mut views = vec![Vec::new(); tables.len()];
        views[0].push(View::default());
        Self {
            tables,
            entries: Vec::new(),
            lists: EditLists::default(),
            views,
            normal_groups: BTreeSet::new(),
            has_bridge: false,
            highest_port: None,
            plan: ExpressPlan::new(PlanVersion(0), Vec::new(), PortNo(0)),
            reached,
            is_wide: false,
            is_coarse: false,
            has_changed: false,
            quiet_since: Nanos(0),
            recent: Bits::new(),
            period_begun: Nanos(0),
        }
    }

    /// Returns the plan.
    pub fn plan(&self) -> &ExpressPlan {
        &self.plan
    }

    /// Returns whether packets with equal keys may have different values in a LUT.
    pub fn is_coarse(&self) -> bool {
        self.is_coarse
    }

    /// Returns the tables that packets can reach.
    pub fn reached(&self) -> impl Iterator<Item = TableId> + '_ {
        TableId::of_controllers().filter(|table| self.reached[table.index()])
    }

    /// Returns whether packets can reach a table.
    pub fn is_reached(&self, table: TableId) -> bool {
        self.reached[table.index()]
    }

    /// Applies changes of entries. Returns whether the keys no longer hold enough bits. Then
    /// [`ExpressPlanner::widen`] must follow, with the new rules.
    #[must_use]
    pub fn note(&mut self, changes: &[EntryChange]) -> bool {
        let mut is_narrow = false;
        // The rule that was added last. Most rules have the table and the fields of the rule before them.
        let mut last: Option<&FlowEntry> = None;
        for change in changes {
            match change {
                // Packets reach this table only through NORMAL, so its entries do not matter.
                EntryChange::Add(entry) if entry.table == MAC_TABLE => {}
                EntryChange::Modify { table: MAC_TABLE, .. }
                | EntryChange::Remove { table: MAC_TABLE, .. } => {}
                EntryChange::Add(entry) => {
                    self.has_changed = true;
                    let leads = Leads::of(&entry.instructions, &mut self.lists);
                    self.set(entry.id, leads);
                    is_narrow |= self.tables[entry.table.index()].add(leads);
                    let is_like = |last: &FlowEntry| {
                        last.table == entry.table && last.matching.has_shape_of(&entry.matching)
                    };
                    if !last.is_some_and(is_like) {
                        let fields = entry.matching.fields().map(|c| (c.field, c.mask));
                        let examined = on_arrival(&self.views[entry.table.index()], fields);
                        add_bits(&mut self.recent, examined.into_iter().flatten());
                        is_narrow |= self.examines_more(entry);
                        last = Some(entry);
                    }
                }
                EntryChange::Modify { id, table, instructions, .. } => {
                    let leads = Leads::of(instructions, &mut self.lists);
                    let before = self.set(*id, leads);
                    let counts = &mut self.tables[table.index()];
                    is_narrow |= counts.add(leads);
                    counts.remove(before);
                    if leads != before {
                        (self.has_changed, self.is_wide) = (true, true);
                    }
                }
                EntryChange::Remove { id, table } => {
                    let before = self.set(*id, Leads::default());
                    self.tables[table.index()].remove(before);
                    (self.has_changed, self.is_wide) = (true, true);
                }
            }
        }
        is_narrow
    }

    /// Applies the addition or replacement of a group.
    pub fn set_group(&mut self, group: &Group, tables: &TableCompiler) {
        if !group.buckets.iter().flat_map(|bucket| &bucket.actions).any(is_normal) {
            return self.remove_group(group.id);
        }
        if self.normal_groups.insert(group.id) {
            self.widen(tables);
        }
    }

    /// Applies the removal of a group.
    pub fn remove_group(&mut self, id: GroupId) {
        self.is_wide |= self.normal_groups.remove(&id);
    }

    /// Sets whether ports have settings for NORMAL.
    pub fn set_bridge(&mut self, has_bridge: bool, tables: &TableCompiler) {
        let before = std::mem::replace(&mut self.has_bridge, has_bridge);
        if has_bridge && !before {
            self.widen(tables);
        } else if before && !has_bridge {
            (self.has_changed, self.is_wide) = (true, true);
        }
    }

    /// Sets the highest port number. Keys have ports in 2 or 4 bytes, and a new plan is made only if this
    /// length changes.
    pub fn set_highest_port(&mut self, highest: PortNo, tables: &TableCompiler) {
        let before = self.highest_port.replace(highest);
        if before.map(port_bytes) != Some(port_bytes(highest)) {
            self.widen(tables);
        }
    }

    /// Drops bits from the plan if the rules have not changed for a while, or have not examined the bits for
    /// a longer time.
    pub fn tick(&mut self, now: Nanos, tables: &TableCompiler) {
        let has_changed = std::mem::take(&mut self.has_changed);
        if has_changed {
            self.quiet_since = now;
        }
        if self.is_wide && !has_changed && now.saturating_sub(self.quiet_since) >= NARROW_AFTER_NS {
            self.replan(tables, Bits::new());
        } else if now.saturating_sub(self.period_begun) >= KEPT_NS {
            self.period_begun = now;
            let (examined, _) = self.examined(tables);
            let kept = std::mem::replace(&mut self.recent, examined);
            if self.is_wide {
                self.replan(tables, kept);
            }
        }
        if self.is_coarse {
            self.is_coarse = self.lacks_lut_bits(tables);
        }
    }

    /// Sets where an entry leads. Returns where it led before.
    fn set(&mut self, id: EntryId, leads: Leads) -> Leads {
        let at = id.0 as usize;
        if self.entries.len() <= at {
            self.entries.resize(at + 1, Leads::default());
        }
        std::mem::replace(&mut self.entries[at], leads)
    }

    /// Returns whether an entry that packets can reach examines bits that the keys do not hold.
    fn examines_more(&self, entry: &FlowEntry) -> bool {
        self.lacks(entry.table, entry.matching.fields().map(|c| (c.field, c.mask)))
    }

    /// Returns whether a table that packets can reach examines bits that the keys do not hold.
    fn lacks(&self, table: TableId, fields: impl Iterator<Item = (Field, u128)>) -> bool {
        let examined = on_arrival(&self.views[table.index()], fields);
        examined.is_none_or(|bits| bits.iter().any(|(field, mask)| !self.plan.holds(*field, *mask)))
    }

    /// Makes a plan of the bits that the rules examine and those that the current plan holds.
    pub fn widen(&mut self, tables: &TableCompiler) {
        self.has_changed = true;
        let kept = self.plan.examined().iter().copied().collect();
        self.replan(tables, kept);
    }

    /// Makes a plan of the bits that the rules examine. Also includes the `kept` bits, unless they make the
    /// plan worse.
    fn replan(&mut self, tables: &TableCompiler, mut kept: Bits) {
        let (examined, shift) = self.examined(tables);
        add_bits(&mut self.recent, examined.clone());
        add_bits(&mut kept, examined.clone());
        let (exact, wide) = (self.plan_of(examined, shift), self.plan_of(kept, shift));
        let is_as_good = wide.fit() == exact.fit() && wide.permitted() == exact.permitted();
        self.is_wide = is_as_good && !wide.is_like(&exact);
        let next = if is_as_good { wide } else { exact };
        if !next.is_like(&self.plan) {
            self.plan = next;
        }
        self.is_coarse = self.lacks_lut_bits(tables);
    }

    /// Returns whether the LUT of a table that packets can reach examines bits that the plan lacks.
    fn lacks_lut_bits(&self, tables: &TableCompiler) -> bool {
        self.reached().any(|table| self.lacks(table, tables.luts().examined(table).iter().copied()))
    }

    fn plan_of(&self, bits: Bits, shift: Shift) -> ExpressPlan {
        let version = PlanVersion(self.plan.version().0 + 1);
        ExpressPlan::new(version, bits.into_iter().collect(), self.highest_port.unwrap_or(PortNo(0)))
            .permitting(shift)
    }

    /// Returns the bits of arriving packets that the rules examine, and the greatest shift for which they
    /// include all bits. Determines which tables packets can reach, and in which states.
    fn examined(&mut self, tables: &TableCompiler) -> (Bits, Shift) {
        let mut last = Bits::new();
        for shift in Shift::DESCENDING {
            let Some(examined) = self.examined_after(tables, shift) else { continue };
            let are_plain = self.views.iter().flatten().all(|view| *view == View::default());
            if are_plain || self.plan_of(examined.clone(), shift).fit() != KeyFit::TooLong {
                return (examined, shift);
            }
            last = examined;
        }
        (last, Shift::Nothing)
    }

    /// As [`Self::examined`], with shifts up to this level. Returns `None` if there are too many states, or
    /// if arriving packets do not determine what a table examines.
    fn examined_after(&mut self, tables: &TableCompiler, most: Shift) -> Option<Bits> {
        if most > Shift::Nothing && !self.lists.is_complete() {
            return None;
        }
        let mut examined = Bits::new();
        self.reached.fill(false);
        self.reached[0] = true;
        self.views.iter_mut().for_each(Vec::clear);
        self.views[0].push(View::default());
        // A packet can only continue in a table with a higher number.
        for number in TableId::of_controllers() {
            if !self.reached[number.index()] {
                continue;
            }
            self.spread(number, most)?;
            let counts = &self.tables[number.index()];
            if counts.normal > 0 || counts.group > 0 && !self.normal_groups.is_empty() {
                self.reached[MAC_TABLE.index()] = true;
                add_bits(&mut examined, BY_NORMAL);
                add_bits(&mut examined, self.has_bridge.then_some(BY_BRIDGE));
            }
            let fields = tables.rule_table(number).examined_fields().into_iter();
            add_bits(&mut examined, on_arrival(&self.views[number.index()], fields)?);
        }
        Some(examined)
    }

    /// Adds the tables to which entries of a table lead, and the states in which packets reach them. Returns
    /// `None` if there are too many states.
    fn spread(&mut self, from: TableId, most: Shift) -> Option<()> {
        let views = std::mem::take(&mut self.views[from.index()]);
        for &(next, list) in self.tables[from.index()].next.keys() {
            self.reached[next.index()] = true;
            let (shift, edits) = self.lists.list(list);
            let edits = if shift <= most { edits } else { &[] };
            for view in views.iter().filter_map(|view| view.after(edits)) {
                let known = &mut self.views[next.index()];
                if !known.contains(&view) {
                    known.push(view);
                }
                if known.len() > VIEWS_MAX {
                    return None;
                }
            }
        }
        self.views[from.index()] = views;
        Some(())
    }
}

/// Returns the bits of arriving packets that become these fields in at least one of the states. Returns
/// `None` if arriving packets do not determine the fields.
fn on_arrival(views: &[View], fields: impl Iterator<Item = (Field, u128)>) -> Option<Vec<(Field, u128)>> {
    let mut bits = Vec::new();
    for (field, mask) in fields {
        for view in views {
            bits.extend(view.on_arrival(field, mask)?);
        }
    }
    Some(bits)
}

#[cfg(test)]
mod tests;
