// SPDX-License-Identifier: Apache-2.0
//! Text of the flows that are added.

use std::fmt::{Display, Write};

/// Returns `count` 5-tuple flows of one mask and priority.
pub fn five_tuples(count: u32) -> String {
    (0..count).map(|n| line(100, five_tuple(n))).collect()
}

/// Returns `count` flows like those of a router with an access list. Four kinds alternate: UDP 5-tuples, TCP
/// services of a host, prefixes of 20, 24 and 28 bits, and MAC addresses behind a port. They have six masks
/// in total; each kind has eight priorities.
pub fn mixed(count: u32) -> String {
    let flow = |n: u32| {
        let (sort, of_sort) = (n % 4, n / 4);
        let priority = 100 * (4 - sort) + of_sort % 8;
        match sort {
            0 => line(priority, five_tuple(of_sort)),
            1 => {
                line(priority, format!("tcp,nw_dst={},tp_dst={}", address(10, of_sort), 1 + of_sort % 1_000))
            }
            2 => {
                let bits = 20 + 4 * (of_sort % 3);
                // Networks of one length are consecutive, starting at 128.0.0.0.
                let [a, b, c, d] = ((1 << 31) | ((of_sort / 3) << (32 - bits))).to_be_bytes();
                line(priority, format!("ip,nw_dst={a}.{b}.{c}.{d}/{bits}"))
            }
            _ => {
                let [_, b, c, d] = of_sort.to_be_bytes();
                line(priority, format!("in_port=1,dl_dst=02:00:00:{b:02x}:{c:02x}:{d:02x}"))
            }
        }
    };
    (0..count).map(flow).collect()
}

fn five_tuple(n: u32) -> String {
    format!("udp,nw_src={},nw_dst=192.168.0.1,tp_src={},tp_dst=53", address(10, n), 1_000 + n % 50_000)
}

fn address(first: u8, n: u32) -> String {
    let [_, b, c, d] = n.to_be_bytes();
    format!("{first}.{b}.{c}.{d}")
}

fn line(priority: u32, matching: impl Display) -> String {
    let mut line = String::new();
    // Formatting to a string cannot fail.
    let _ = writeln!(line, "priority={priority},{matching},actions=output:2");
    line
}
