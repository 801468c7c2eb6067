// SPDX-License-Identifier: Apache-2.0
//! Rules over a scenario's fields: their text form, and a linear search for the rule that a flow hits.

use flow::TableId;
use std::fmt::Write;
use std::net::Ipv6Addr;

/// Notation of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Mac,
    Address,
    Number,
}

/// Field of a scenario's tables, in the flow syntax.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub name: &'static str,
    pub bits: u32,
    pub form: Form,
}

impl Field {
    pub const fn number(name: &'static str, bits: u32) -> Self {
        Self { name, bits, form: Form::Number }
    }

    pub const fn address(name: &'static str) -> Self {
        Self { name, bits: 128, form: Form::Address }
    }

    /// Returns the mask of all bits.
    pub fn full(self) -> u128 {
        u128::MAX >> (128 - self.bits)
    }

    /// Returns the mask of a prefix.
    pub fn prefix(self, length: u32) -> u128 {
        if length == 0 { 0 } else { self.full() >> (self.bits - length) << (self.bits - length) }
    }

    /// Formats `name=value[/mask]`.
    fn condition(self, condition: &Condition) -> String {
        let Condition { value, mask, .. } = *condition;
        let whole = mask == self.full();
        match self.form {
            Form::Mac if whole => format!("{}={}", self.name, mac(value)),
            Form::Mac => format!("{}={}/{}", self.name, mac(value), mac(mask)),
            Form::Address => format!("{}={}/{}", self.name, Ipv6Addr::from(value), mask.count_ones()),
            Form::Number if whole => format!("{}={value:#x}", self.name),
            Form::Number => format!("{}={value:#x}/{mask:#x}", self.name),
        }
    }
}

pub(super) fn mac(value: u128) -> String {
    let [a, b, c, d, e, f] = mac_bytes(value);
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

pub(super) fn mac_bytes(value: u128) -> [u8; 6] {
    let bytes = (value as u64).to_be_bytes();
    [bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]
}

/// Condition on a field, identified by its index. The mask is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Condition {
    pub field: usize,
    pub value: u128,
    pub mask: u128,
}

/// Rule of one table of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub conditions: Vec<Condition>,
    pub priority: u16,
    pub low_latency: bool,
    /// MAC address of the next hop, and output port, for rules of table 2.
    pub leaves: Option<(u128, u32)>,
}

impl Rule {
    pub fn matches(&self, values: &[u128]) -> bool {
        self.conditions.iter().all(|c| (values[c.field] ^ c.value) & c.mask == 0)
    }

    /// Returns whether values can be changed to match the rule without changing the bits in `fixed`.
    pub fn agrees(&self, values: &[u128], fixed: &[u128]) -> bool {
        self.conditions.iter().all(|c| (values[c.field] ^ c.value) & c.mask & fixed[c.field] == 0)
    }

    /// Changes values so that they match, and marks the examined bits as fixed.
    pub fn impose(&self, values: &mut [u128], fixed: &mut [u128]) {
        for c in &self.conditions {
            values[c.field] = values[c.field] & !c.mask | c.value;
            fixed[c.field] |= c.mask;
        }
    }

    /// Writes the rule as a flow of `table`. `header` matches the headers that its fields require.
    pub fn write(&self, text: &mut String, table: TableId, header: &str, fields: &[Field]) {
        let mark = if self.low_latency { "low_latency," } else { "" };
        // Formatting to a string cannot fail.
        let _ = write!(text, "{mark}table={table},priority={}{header}", self.priority);
        for condition in &self.conditions {
            let _ = write!(text, ",{}", fields[condition.field].condition(condition));
        }
        let _ = match self.leaves {
            Some((next_hop, port)) => {
                writeln!(text, ",actions=set_field:{}->eth_dst,output:{port}", mac(next_hop))
            }
            None => writeln!(text, ",actions=goto_table:{}", table.0 + 1),
        };
    }
}

/// Returns the rule that the values hit. Rules are in order of precedence.
pub(super) fn hit<'r>(rules: &'r [Rule], values: &[u128]) -> Option<&'r Rule> {
    rules.iter().find(|rule| rule.matches(values))
}

/// Assigns descending priorities to rules that are sorted best first.
pub(super) fn rank(rules: &mut [Rule]) {
    let count = rules.len().max(1);
    for (place, rule) in rules.iter_mut().enumerate() {
        rule.priority = (60_000 - place * 50_000 / count) as u16;
    }
}

/// Hashes a number to a word, independent of the platform.
pub(super) fn mix(number: u64) -> u64 {
    let mut word = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
