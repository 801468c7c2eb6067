// SPDX-License-Identifier: Apache-2.0
//! Flow syntax of ovs-ofctl(8) for the OpenFlow 1.3 basic class, with Shunt's extensions.
//!
//! A flow is a list of `key=value` items, separated by commas or white space, followed by `actions=` and a
//! list of actions and instructions. Extensions of the ovs-ofctl syntax:
//!
//! | item | meaning |
//! |---|---|
//! | `low_latency`, `low_latency=false` | packets that hit only such entries are low-latency |
//! | `low_latency=learned` | ignored: dumps print it for entries that the switch has learned to be low-latency |
//! | `slice(base,offset,length)=value[/mask]` | a run of bits; bases `packet`, `metadata`, `l3`, `l4` |
//! | `index=N` | entry of a linear table |
//! | `set_field:value[/mask]->slice(base,offset,length)` | writes a run of bits |
//! | `goto_direct(table,index)` | continues with an entry of a linear table |
//! | `copy_ttl_in`, `copy_ttl_out`, `push_pbb:0x88e7`, `pop_pbb` | OpenFlow 1.3 actions that ovs-ofctl lacks |
//! | `push_key(key=0x..,width=64,hops=N,epoch=0)`, `pop_key` | KeyFlow header |
//! | `push_polka(key=0x..,ttl=N)` | freeRtr's PolKA header, which `pop_key` pops |
//! | `push_tf(qid,up,down)`, `push_tf_wide(qid,up,down)`, `pop_tf` | Tag-and-Forward header |
//!
//! Differences from `ovs-ofctl -O OpenFlow13`:
//! - A match or action that OpenFlow 1.3 cannot express exactly is refused, such as `vlan_tci` with part of
//!   the PCP bits, masks on ports, and `output(max_len=..)` to a port other than the controller.
//! - Numbers with a leading zero are refused; ovs-ofctl reads them as octal.
//! - `enqueue:P:Q` leaves the queue selected, because OpenFlow 1.3 has no action to undo it.
//! - A set-field on a header that the match does not require is accepted. Packets without the header are
//!   dropped under a named reason.
//! - Port numbers have the 32 bits of OpenFlow 1.3: 65534 is an ordinary number, not LOCAL.
//!
//! A line of a flow file may also be a group or a meter ([`parse_line`]), as in `ovs-ofctl bundle`:
//! `group [add|add_or_mod|modify|delete] group_id=1,type=select,bucket=weight:1,actions=output:2,...` and
//! `meter [..] meter=1 kbps burst stats bands=type=drop rate=1000 burst_size=100`.
//!
//! Printed text parses to the original value. Parts of a flow-mod that have no meaning for its command, such
//! as the priority of a non-strict delete, are neither printed nor accepted.

mod action_list;
mod action_names;
mod arguments;
mod edits;
mod error;
mod flow_line;
mod key_names;
mod match_list;
mod old_actions;
mod own_actions;
mod pieces;
mod print_action;
mod print_flow;
mod print_match;
mod print_record;
mod record_line;
mod refused;
mod scan;
mod set_field;
mod suggest;
mod value;

pub use error::SyntaxError;
pub use pieces::{LINE_BYTES, PIECE_BYTES, read_pieces};
pub use print_flow::{EntryStats, format_entry, format_flow};
pub use print_record::format_line;
pub use record_line::{FileLine, RecordCommand};

use crate::{FlowMod, FlowModCommand, Instructions, Match, PortNo};

/// Context in which text is parsed.
#[derive(Clone, Copy)]
pub struct ParseOptions<'a> {
    /// Returns the number of the port with this name.
    pub port_names: &'a dyn Fn(&str) -> Option<PortNo>,
}

fn no_names(_: &str) -> Option<PortNo> {
    None
}

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        Self { port_names: &no_names }
    }
}

impl std::fmt::Debug for ParseOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParseOptions").finish_non_exhaustive()
    }
}

/// Parses one flow. It may begin with a command word (`add`, `modify`, `modify_strict`, `delete`,
/// `delete_strict`), which `flow` may precede. Without one, the flow is a `default_command`. The result has
/// passed [`crate::validate::validate`].
///
/// # Errors
/// Returns the first mistake in the text, with its column.
pub fn parse_flow(
    text: &str,
    default_command: FlowModCommand,
    options: ParseOptions<'_>,
) -> Result<FlowMod, SyntaxError> {
    flow_line::parse(text, default_command, options).map_err(|fault| fault.locate(text, None))
}

/// Parses one line of a flow file. The line is one of:
/// - a flow, as for [`parse_flow`] with `add` as the default command;
/// - a group after `group`, as for `ovs-ofctl add-group`;
/// - a meter after `meter`, as for `ovs-ofctl add-meter`.
///
/// `#` starts a comment. Returns `None` for a line without other text. `number` is the line number for error
/// messages.
pub fn parse_line(
    line: &str,
    number: u32,
    options: ParseOptions<'_>,
) -> Option<Result<FileLine, SyntaxError>> {
    let text = line.split_once('#').map_or(line, |(text, _comment)| text);
    if text.trim_ascii().is_empty() {
        return None;
    }
    let parsed = record_line::parse(text, options);
    Some(parsed.map_err(|fault| fault.locate(line, Some(number))))
}

/// Parses a file of flows, one per line, like [`parse_flow`] with `add` as the default command. `#` starts a
/// comment. After an error, the iterator continues with the next line.
pub fn parse_flows<'a>(
    text: &'a str,
    options: ParseOptions<'a>,
) -> impl Iterator<Item = Result<FlowMod, SyntaxError>> + 'a {
    text.lines().zip(1u32..).filter_map(move |(line, number)| {
        let flow = line.split_once('#').map_or(line, |(flow, _comment)| flow);
        if flow.trim_ascii().is_empty() {
            return None;
        }
        let parsed = flow_line::parse(flow, FlowModCommand::Add, options);
        Some(parsed.map_err(|fault| fault.locate(line, Some(number))))
    })
}

/// Parses the conditions of a match, such as `tcp,nw_dst=10.0.0.0/8`.
///
/// # Errors
/// Returns the first mistake in the text, with its column.
pub fn parse_match(text: &str, options: ParseOptions<'_>) -> Result<Match, SyntaxError> {
    flow_line::parse_match(text, options).map_err(|fault| fault.locate(text, None))
}

/// Parses actions and instructions (the text after `actions=`). Actions whose meaning depends on the match,
/// such as `mod_tp_dst`, take their protocol from `matching`.
///
/// # Errors
/// Returns the first mistake in the text, with its column.
pub fn parse_actions(
    text: &str,
    matching: &Match,
    options: ParseOptions<'_>,
) -> Result<Instructions, SyntaxError> {
    action_list::parse(text, matching, options).map_err(|fault| fault.locate(text, None))
}
