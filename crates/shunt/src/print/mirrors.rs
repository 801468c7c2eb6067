// SPDX-License-Identifier: Apache-2.0
//! Prints mirrors.

use std::fmt::Display;
use std::io::{self, Write};
use switch::control::{MirrorRow, MirrorsReport};

/// Prints all mirrors with their counters.
pub fn mirrors(out: &mut dyn Write, report: &MirrorsReport) -> io::Result<()> {
    if report.mirrors.is_empty() {
        return writeln!(out, "there are no mirrors");
    }
    report.mirrors.iter().try_for_each(|row| mirror(out, row))
}

fn mirror(out: &mut dyn Write, row: &MirrorRow) -> io::Result<()> {
    match &row.reason {
        Some(reason) => writeln!(out, "{}: {}: {reason}", row.name, row.state)?,
        None => writeln!(out, "{}: {}", row.name, row.state)?,
    }
    let vlans = if row.vlans.is_empty() { "all".to_owned() } else { list(&row.vlans) };
    let (ingress, egress) = (list(&row.ingress), list(&row.egress));
    writeln!(out, "  sources: received at ports {ingress}, sent by ports {egress}, VLANs {vlans}")?;
    match (row.output_port, &row.file) {
        (Some(port), _) if row.other_traffic => writeln!(out, "  output: port {port}, with other traffic")?,
        (Some(port), _) => writeln!(out, "  output: port {port}, reserved")?,
        (None, Some(file)) => {
            writeln!(out, "  output: {file}, {} frames and {} bytes written", row.written, row.file_bytes)?;
        }
        (None, None) => {}
    }
    let lost: Vec<String> = row.dropped.iter().map(|(name, count)| format!("{name} {count}")).collect();
    writeln!(
        out,
        "  copied: {} frames, {} bytes; not copied: {}",
        row.mirrored,
        row.mirrored_bytes,
        lost.join(", ")
    )
}

fn list(all: &[impl Display]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(mirrors: Vec<MirrorRow>) -> String {
        let mut out = Vec::new();
        super::mirrors(&mut out, &MirrorsReport { mirrors }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_mirror_is_shown_with_its_end_and_its_losses() {
        assert_eq!(printed(Vec::new()), "there are no mirrors\n");
        let row = MirrorRow {
            name: "span".into(),
            ingress: vec![1, 2],
            vlans: vec![0, 10],
            file: Some("/x/a.pcapng".into()),
            state: "ended".into(),
            reason: Some("no space".into()),
            mirrored: 7,
            mirrored_bytes: 420,
            written: 6,
            file_bytes: 999,
            dropped: [("ring_full".to_owned(), 3)].into(),
            ..MirrorRow::default()
        };
        let expected = "span: ended: no space\n  sources: received at ports 1,2, sent by ports none, VLANs 0,10\n  \
                        output: /x/a.pcapng, 6 frames and 999 bytes written\n  \
                        copied: 7 frames, 420 bytes; not copied: ring_full 3\n";
        assert_eq!(printed(vec![row.clone()]), expected);
        let to_port =
            MirrorRow { file: None, output_port: Some(3), reason: None, state: "active".into(), ..row };
        let text = printed(vec![to_port.clone()]);
        assert!(text.starts_with("span: active\n") && text.contains("output: port 3, reserved\n"), "{text}");
        let text = printed(vec![MirrorRow { other_traffic: true, ..to_port }]);
        assert!(text.contains("output: port 3, with other traffic\n"), "{text}");
    }
}
