// SPDX-License-Identifier: Apache-2.0
//! Checks of offloads: the work that the output port's device must still do on each copy, and the result.

use super::Replay;
use crate::Coverage;
use crate::log::Record;
use crate::offload::unfinished_frame;
use flow::PortNo;
use reference::{Unfinished, finished};
use std::collections::BTreeMap;
use wire::Depth;

/// Checks that each sent frame leaves to the device the work that the reference expects, and that completing
/// this work in software gives the reference's frame.
pub(super) fn check_offloads(
    record: &Record,
    replay: &Replay,
    coverage: &mut Coverage,
) -> Result<(), String> {
    let mut expected: BTreeMap<(PortNo, &[u8]), Vec<Unfinished>> = BTreeMap::new();
    for copy in replay.in_order().flat_map(|(_, processed)| &processed.sent) {
        expected.entry((copy.port, &copy.bytes)).or_default().push(copy.unfinished);
    }
    for ((port, _, frames), left) in record.sent.iter().zip(&record.unfinished) {
        for (bytes, unfinished) in frames.iter().zip(left) {
            let wanted = expected.get(&(*port, bytes.as_slice())).map_or(&[][..], Vec::as_slice);
            if !wanted.contains(unfinished) {
                return Err(format!(
                    "port {port}: a copy leaves {unfinished:?} to the device, expected one of {wanted:?}\n  in {bytes:02x?}"
                ));
            }
            if *unfinished != Unfinished::default() {
                check_finished(bytes, *unfinished, coverage)?;
            }
        }
    }
    Ok(())
}

/// Checks that a port without offloads sends the frames that the reference expects. Tunnelled frames have
/// separate tests.
fn check_finished(bytes: &[u8], unfinished: Unfinished, coverage: &mut Coverage) -> Result<(), String> {
    let layers = wire::locate(bytes, Depth::L4);
    let Some(open) = unfinished.checksum.filter(|open| open.start == usize::from(layers.l4)) else {
        return Ok(());
    };
    let expected = finished(bytes, unfinished);
    let actual = port::finished(unfinished_frame(bytes, unfinished));
    if expected != actual {
        return Err(format!(
            "finished in software: {actual:02x?}\n  expected {expected:02x?}\n  of {bytes:02x?}, {open:?}, {:?}",
            unfinished.cut
        ));
    }
    let name = if unfinished.cut.is_some() { "super-frames cut" } else { "open checksums completed" };
    *coverage.features.entry(name).or_default() += 1;
    Ok(())
}
