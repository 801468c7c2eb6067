// SPDX-License-Identifier: Apache-2.0
//! Egress queues in OpenFlow messages: QUEUE_GET_CONFIG (OpenFlow 1.3, section 7.3.6) and OFPMP_QUEUE.

use super::context::{Context, Refusal};
use crate::port::Port;
use dataplane::{DataPlane, PortQueue};
use flow::{PortNo, QueueId, port_no};
use openflow::Message;
use openflow::error;
use openflow::multipart::port_stats::QueueStats;
use openflow::queue::{QueueConfig, QueueDescription};

/// Queue number that selects all queues (OFPQ_ALL).
const ALL: QueueId = QueueId(u32::MAX);
/// Value for a rate that is not configured or cannot be computed (OFPQ_MIN_RATE_UNCFG, OFPQ_MAX_RATE_UNCFG).
const UNCONFIGURED: u16 = u16::MAX;
/// The port's full rate, in tenths of a percent.
const WHOLE: u64 = 1_000;
/// Maximum number of queues, each with both rates, that fit into one message.
const QUEUES_PER_MESSAGE: usize = (65_535 - 16) / (16 + 2 * 16);

/// Returns the configuration of a port's queues, or of all queues.
pub(super) fn config<D: DataPlane>(port: PortNo, context: &mut Context<'_, D>) -> Result<Message, Refusal> {
    let queues: Vec<QueueDescription> = found(port, context)?
        .iter()
        .flat_map(|(port, queues)| queues.iter().map(|queue| described(port, queue)))
        .collect();
    if queues.len() > QUEUES_PER_MESSAGE {
        return Err(Refusal::new(
            error::QUEUE_EPERM,
            format!("{} queues do not fit into a message; request one port at a time", queues.len()),
        ));
    }
    Ok(Message::QueueGetConfigReply(QueueConfig { port, queues }))
}

/// Returns the counters of one queue or of all queues.
pub(super) fn stats<D: DataPlane>(
    port: PortNo,
    queue: QueueId,
    context: &mut Context<'_, D>,
) -> Result<Vec<QueueStats>, Refusal> {
    (context.refresh)();
    let now = context.now;
    let mut rows = Vec::new();
    for (port, queues) in found(port, context)? {
        let asked = queues.iter().filter(|known| queue == ALL || known.settings.id == queue);
        rows.extend(asked.map(|queue| QueueStats {
            port: port.desc.number,
            queue: queue.settings.id,
            tx_bytes: queue.tx_bytes,
            tx_packets: queue.tx_packets,
            tx_errors: queue.dropped,
            duration_ns: now.saturating_sub(port.added_ns),
        }));
    }
    if rows.is_empty() && queue != ALL {
        return Err(Refusal::new(error::QUEUE_BAD_QUEUE, format!("there is no queue {queue}")));
    }
    Ok(rows)
}

/// Returns the selected ports with the selected queues.
fn found<D: DataPlane>(
    port: PortNo,
    context: &mut Context<'_, D>,
) -> Result<Vec<(Port, Vec<PortQueue>)>, Refusal> {
    let asked = |known: &&Port| port == port_no::ANY || known.desc.number == port;
    let ports: Vec<Port> = context.model.ports().filter(asked).cloned().collect();
    if ports.is_empty() && port != port_no::ANY {
        return Err(Refusal::new(error::QUEUE_BAD_PORT, format!("port {port} does not exist")));
    }
    let with_queues = |port: Port| {
        let queues = context.model.queues(port.desc.number);
        (port, queues)
    };
    Ok(ports.into_iter().map(with_queues).collect())
}

fn described(port: &Port, queue: &PortQueue) -> QueueDescription {
    let share = |rate_kbps: Option<u32>| Some(tenths(rate_kbps, port.desc.speed_kbps));
    let settings = queue.settings;
    QueueDescription {
        id: settings.id,
        port: port.desc.number,
        min_rate: share(settings.min_rate_kbps),
        max_rate: share(settings.max_rate_kbps),
    }
}

/// Returns a rate in tenths of a percent of the port's rate, rounded and at least 1.
fn tenths(rate_kbps: Option<u32>, speed_kbps: u32) -> u16 {
    match (rate_kbps, u64::from(speed_kbps)) {
        (None, _) | (_, 0) => UNCONFIGURED,
        (Some(rate), speed) => ((u64::from(rate) * WHOLE + speed / 2) / speed).clamp(1, WHOLE) as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_shares_of_the_ports() {
        let gigabit = 1_000_000;
        for (rate_kbps, speed_kbps, expected) in [
            (Some(100_000), gigabit, 100),
            (Some(1), gigabit, 1),
            (Some(1_499), gigabit, 1),
            (Some(1_500), gigabit, 2),
            (Some(2_000_000), gigabit, WHOLE as u16),
            (Some(u32::MAX), u32::MAX, WHOLE as u16),
            (Some(5), 0, UNCONFIGURED),
            (None, gigabit, UNCONFIGURED),
        ] {
            assert_eq!(tenths(rate_kbps, speed_kbps), expected, "{rate_kbps:?} of {speed_kbps}");
        }
    }
}
