// SPDX-License-Identifier: Apache-2.0
//! Prints groups and meters as lines of a flow file.

use super::record_line::{FileLine, RecordCommand};
use crate::group::{Bucket, Group, GroupType};
use crate::meter::{Band, Meter};
use std::fmt::{self, Display, Formatter, Write as _};

/// Formats a line that [`super::parse_line`] accepts.
#[must_use]
pub fn format_line(line: &FileLine) -> String {
    let mut text = String::new();
    // Formatting to a string cannot fail.
    let _ = match line {
        FileLine::Flow(flow) => write!(text, "{flow}"),
        FileLine::Group(RecordCommand::DeleteAll, _) => write!(text, "group delete group_id=all"),
        FileLine::Meter(RecordCommand::DeleteAll, _) => write!(text, "meter delete meter=all"),
        FileLine::Group(RecordCommand::Delete, group) => write!(text, "group delete group_id={}", group.id),
        FileLine::Meter(RecordCommand::Delete, meter) => write!(text, "meter delete meter={}", meter.id),
        FileLine::Group(command, group) => write!(text, "group {command} {group}"),
        FileLine::Meter(command, meter) => write!(text, "meter {command} {meter}"),
    };
    text
}

impl Display for RecordCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "add",
            Self::AddOrModify => "add_or_mod",
            Self::Modify => "modify",
            Self::Delete | Self::DeleteAll => "delete",
        })
    }
}

/// Prints the group as `ovs-ofctl dump-groups` does.
impl Display for Group {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            GroupType::All => "all",
            GroupType::Select => "select",
            GroupType::Indirect => "indirect",
            GroupType::FastFailover => "ff",
        };
        write!(f, "group_id={},type={kind}", self.id)?;
        for bucket in &self.buckets {
            f.write_str(",bucket=")?;
            write_bucket(f, bucket, self.kind)?;
        }
        Ok(())
    }
}

fn write_bucket(f: &mut Formatter<'_>, bucket: &Bucket, kind: GroupType) -> fmt::Result {
    // The parser's default weight is 1 in select groups, else 0.
    if bucket.weight != 0 || kind == GroupType::Select {
        write!(f, "weight:{},", bucket.weight)?;
    }
    if let Some(port) = bucket.watch_port {
        write!(f, "watch_port:{port},")?;
    }
    if let Some(group) = bucket.watch_group {
        write!(f, "watch_group:{group},")?;
    }
    f.write_str("actions=")?;
    if bucket.actions.is_empty() {
        return f.write_str("drop");
    }
    for (n, action) in bucket.actions.iter().enumerate() {
        write!(f, "{}{action}", if n == 0 { "" } else { "," })?;
    }
    Ok(())
}

/// Prints the meter in the syntax of `ovs-ofctl add-meter`.
impl Display for Meter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "meter={} {}", self.id, if self.packets { "pktps" } else { "kbps" })?;
        for (is_set, name) in [(self.burst, "burst"), (self.stats, "stats")] {
            if is_set {
                write!(f, " {name}")?;
            }
        }
        for (n, band) in self.bands.iter().enumerate() {
            f.write_str(if n == 0 { " bands=" } else { "," })?;
            match band.band {
                Band::Drop => write!(f, "type=drop rate={}", band.rate)?,
                Band::DscpRemark { precedence_level } => {
                    write!(f, "type=dscp_remark rate={} prec_level={precedence_level}", band.rate)?;
                }
            }
            if band.burst != 0 {
                write!(f, " burst_size={}", band.burst)?;
            }
        }
        Ok(())
    }
}
