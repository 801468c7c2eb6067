// SPDX-License-Identifier: Apache-2.0
//! Parses random bytes as a frame. All offsets must be within the frame, and segmentation must give the
//! announced segments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::layers::header;
use wire::{Depth, Layers, locate, segment};

/// For each header bit, the minimum number of bytes after its offset.
const AT_L3: &[(u32, usize)] =
    &[(header::ARP, 28), (header::IPV4, 20), (header::IPV6, 40), (header::MPLS, 4)];
const AT_L4: &[(u32, usize)] =
    &[(header::TCP, 20), (header::UDP, 8), (header::SCTP, 12), (header::ICMPV4, 2), (header::ICMPV6, 2)];

fuzz_target!(|data: &[u8]| {
    // The first two bytes select sizes. The others are the frame.
    let Some((&[size, offset], frame)) = data.split_first_chunk() else { return };
    let layers = locate(frame, Depth::L4);
    within(frame, &layers);
    let shallower = [Depth::None, Depth::L2, Depth::L3].map(|depth| locate(frame, depth).present);
    assert!(shallower.is_sorted_by(|a, b| a & b == *a), "a deeper walk lost a header");
    assert_eq!(shallower[2] & !layers.present, 0, "a deeper walk lost a header");

    cut(frame, segment::tcp_segments(frame, &layers, size.into()));
    cut(frame, segment::udp_segments(frame, &layers, size.into()));
    let mut completed = frame.to_vec();
    segment::complete_partial(&mut completed, layers.l4.into(), offset.into());
    assert_eq!(completed.len(), frame.len());
});

fn within(frame: &[u8], layers: &Layers) {
    for (headers, start) in [(AT_L3, layers.l3), (AT_L4, layers.l4)] {
        for (bit, len) in headers {
            if layers.present & bit != 0 {
                assert!(usize::from(start) + len <= frame.len(), "header {bit:#x} at {start} is not whole");
            }
        }
    }
    for (bit, start) in [(header::ND_SLL, layers.nd_sll), (header::ND_TLL, layers.nd_tll)] {
        assert!(layers.present & bit == 0 || usize::from(start) + 6 <= frame.len());
    }
    assert!(layers.l4_end as usize <= frame.len());
}

/// Writes all segments, and compares their number and maximum length with the announced values.
fn cut(frame: &[u8], segments: Option<segment::Segments<'_>>) {
    let Some(mut segments) = segments else { return };
    let mut out = vec![0; segments.segment_len_max()];
    let mut left = segments.remaining();
    assert!(left > 0 && left <= frame.len() + 1);
    while let Some(len) = segments.write_next(&mut out) {
        assert!(len <= out.len());
        left -= 1;
        assert_eq!(segments.remaining(), left);
    }
    assert_eq!(left, 0);
}
