// SPDX-License-Identifier: Apache-2.0
//! Which metric has the value of which member of the reports of `shunt show --json`.

/// How a number of a report appears in the metrics.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The metric of this name has the number, multiplied by the factor.
    Metric(&'static str, f64),
    /// The metric has the number, with the last part of the path as this label.
    Named(&'static str, &'static str),
    /// No metric has the number, for this reason.
    Without(&'static str),
}

const DERIVED: Rule = Rule::Without("it follows from the histogram of latencies");
const LABEL: Rule = Rule::Without("it is a label");
const SETTING: Rule = Rule::Without("it is a setting, and is no counter");
const SUM: Rule = Rule::Without("it is the sum of samples");
const TEXT: Rule = Rule::Without("it describes the rules, and is no counter");

const fn metric(name: &'static str) -> Rule {
    Rule::Metric(name, 1.0)
}

/// Rules by report and path. `[]` stands for every element of a list, and `*` for every name.
pub const RULES: &[(&str, &str, Rule)] = &[
    ("ports", "ports[].number", LABEL),
    ("ports", "ports[].up", metric("shunt_port_up")),
    ("ports", "ports[].link_up", Rule::Without("it is a part of shunt_port_up")),
    ("ports", "ports[].speed_mbps", Rule::Metric("shunt_port_speed_bits_per_second", 1e6)),
    ("ports", "ports[].rx_packets", metric("shunt_port_rx_packets_total")),
    ("ports", "ports[].rx_bytes", metric("shunt_port_rx_bytes_total")),
    ("ports", "ports[].rx_dropped", metric("shunt_port_rx_dropped_total")),
    ("ports", "ports[].tx_packets", metric("shunt_port_tx_packets_total")),
    ("ports", "ports[].tx_bytes", metric("shunt_port_tx_bytes_total")),
    ("ports", "ports[].tx_dropped", metric("shunt_port_tx_dropped_total")),
    ("ports", "ports[].blocked", metric("shunt_port_blocked")),
    ("ports", "ports[].macs", metric("shunt_port_macs")),
    ("ports", "ports[].macs_refused", metric("shunt_port_macs_refused_total")),
    ("ports", "ports[].dropped.*", Rule::Named("shunt_port_drops_total", "reason")),
    ("ports", "ports[].queues[].queue", LABEL),
    ("ports", "ports[].queues[].min_rate_kbps", Rule::Metric("shunt_queue_min_rate_bits_per_second", 1e3)),
    ("ports", "ports[].queues[].max_rate_kbps", Rule::Metric("shunt_queue_max_rate_bits_per_second", 1e3)),
    ("ports", "ports[].queues[].priority", metric("shunt_queue_priority")),
    ("ports", "ports[].queues[].limit_frames", metric("shunt_queue_limit")),
    ("ports", "ports[].queues[].waiting", metric("shunt_queue_waiting")),
    ("ports", "ports[].queues[].tx_packets", metric("shunt_queue_tx_packets_total")),
    ("ports", "ports[].queues[].tx_bytes", metric("shunt_queue_tx_bytes_total")),
    ("ports", "ports[].queues[].dropped", metric("shunt_queue_dropped_total")),
    ("tables", "tables[].table", LABEL),
    ("tables", "tables[].entries", metric("shunt_table_entries")),
    ("tables", "tables[].lookups", metric("shunt_table_lookups_total")),
    ("tables", "tables[].matches", metric("shunt_table_matches_total")),
    ("tables", "tables[].compiled_bytes", metric("shunt_table_compiled_bytes")),
    ("ffp", "lut_entries", metric("shunt_lut_capacity")),
    ("ffp", "received", metric("shunt_packets_received_total")),
    ("ffp", "fast", metric("shunt_ffp_packets_total")),
    ("ffp", "tables[].table", LABEL),
    ("ffp", "tables[].key_bits", metric("shunt_lut_key_bits")),
    ("ffp", "tables[].bytes", metric("shunt_lut_size_bytes")),
    ("ffp", "tables[].records", metric("shunt_lut_records")),
    ("ffp", "tables[].hits", metric("shunt_lut_hits_total")),
    ("ffp", "tables[].normal_hits", metric("shunt_lut_normal_hits_total")),
    ("ffp", "tables[].misses", metric("shunt_lut_misses_total")),
    ("ffp", "tables[].verified", metric("shunt_lut_verified_total")),
    ("ffp", "tables[].walked", metric("shunt_lut_walked_total")),
    ("ffp", "tables[].learned", metric("shunt_lut_learned_total")),
    ("ffp", "tables[].evicted", metric("shunt_lut_evicted_total")),
    ("ffp", "tables[].displaced", metric("shunt_lut_displaced_total")),
    ("ffp", "tables[].refused", metric("shunt_lut_refused_total")),
    ("ffp", "tables[].cleaned", metric("shunt_lut_cleaned_total")),
    ("ffp", "tables[].extract_ps", Rule::Metric("shunt_lut_extract_mean_seconds", 1e-12)),
    ("ffp", "tables[].probe_ps", Rule::Metric("shunt_lut_probe_mean_seconds", 1e-12)),
    ("ffp", "tables[].lookup_ps", Rule::Metric("shunt_lut_lookup_mean_seconds", 1e-12)),
    ("express", "enabled", metric("shunt_express_enabled")),
    ("express", "plan.version", metric("shunt_express_plan_version")),
    ("express", "plan.previous", TEXT),
    ("express", "plan.tables[]", TEXT),
    ("express", "plan.examined[].bits", TEXT),
    ("express", "plan.examined[].whole", TEXT),
    ("express", "plan.examined_bits", metric("shunt_express_examined_bits")),
    ("express", "plan.key_bytes", metric("shunt_express_key_bytes")),
    ("express", "workers[].worker", LABEL),
    ("express", "workers[].bypassed_now", metric("shunt_express_sampling")),
    ("express", "workers[].records", metric("shunt_express_records")),
    ("express", "workers[].room", metric("shunt_express_capacity")),
    ("express", "workers[].bytes", metric("shunt_express_size_bytes")),
    ("express", "workers[].*", Rule::Metric("shunt_express_*_total", 1.0)),
    ("express", "sum.*", SUM),
    ("cache", "entries", metric("shunt_port_cache_pending_limit")),
    ("cache", "queue", metric("shunt_port_cache_queue_limit")),
    ("cache", "records", metric("shunt_port_cache_records_limit")),
    ("cache", "bytes", metric("shunt_port_cache_limit_bytes")),
    ("cache", "ports[].worker", LABEL),
    ("cache", "ports[].port", LABEL),
    ("cache", "ports[].pending", metric("shunt_port_cache_pending")),
    ("cache", "ports[].negative", metric("shunt_port_cache_negative")),
    ("cache", "ports[].waiting", metric("shunt_port_cache_waiting")),
    ("cache", "ports[].waiting_bytes", metric("shunt_port_cache_waiting_size_bytes")),
    ("cache", "ports[].*", Rule::Metric("shunt_port_cache_*_total", 1.0)),
    ("cache", "sum.*", SUM),
    ("mirrors", "mirrors[].ingress[]", SETTING),
    ("mirrors", "mirrors[].egress[]", SETTING),
    ("mirrors", "mirrors[].output_port", SETTING),
    ("mirrors", "mirrors[].other_traffic", SETTING),
    ("mirrors", "mirrors[].mirrored", metric("shunt_mirror_frames_total")),
    ("mirrors", "mirrors[].mirrored_bytes", metric("shunt_mirror_copied_bytes_total")),
    ("mirrors", "mirrors[].written", metric("shunt_mirror_file_frames")),
    ("mirrors", "mirrors[].file_bytes", metric("shunt_mirror_file_bytes")),
    ("mirrors", "mirrors[].dropped.*", Rule::Named("shunt_mirror_drops_total", "reason")),
    ("store", "recorded", metric("shunt_store_recorded_total")),
    ("store", "kept", metric("shunt_store_kept_total")),
    ("store", "queued", metric("shunt_store_queued")),
    ("store", "log_bytes", metric("shunt_store_log_bytes")),
    ("store", "snapshot_bytes", metric("shunt_store_snapshot_bytes")),
    ("store", "snapshots", metric("shunt_store_snapshots_total")),
    ("store", "skipped", metric("shunt_store_skipped")),
    ("store", "left_out", metric("shunt_store_left_out")),
    ("stateless", "received", metric("shunt_packets_received_total")),
    ("stateless", "taken", metric("shunt_packets_stateless_total")),
    ("stateless", "dropped.*", Rule::Named("shunt_drops_total", "reason")),
    ("counters", "received", metric("shunt_packets_received_total")),
    ("counters", "forwarded", metric("shunt_packets_forwarded_total")),
    ("counters", "consumed", metric("shunt_packets_consumed_total")),
    ("counters", "stateless", metric("shunt_packets_stateless_total")),
    ("counters", "held", metric("shunt_packets_held")),
    ("counters", "held_back", metric("shunt_packets_held_back_total")),
    ("counters", "dropped.*", Rule::Named("shunt_drops_total", "reason")),
    ("counters", "copies", metric("shunt_copies_total")),
    ("counters", "copies_dropped.*", Rule::Named("shunt_copies_dropped_total", "reason")),
    ("counters", "traced.*", Rule::Named("shunt_traces_total", "result")),
    ("counters", "controllers_lost.*", Rule::Named("shunt_controller_messages_lost_total", "kind")),
    ("counters", "log_lines_written", metric("shunt_log_lines_total")),
    ("counters", "log_lines_lost.*", Rule::Named("shunt_log_lines_lost_total", "reason")),
    ("counters", "limits[].used", metric("shunt_resource_used")),
    ("counters", "limits[].limit", metric("shunt_resource_limit")),
    ("counters", "lanes.*", DERIVED),
    ("counters", "gaps", metric("shunt_worker_preemptions_total")),
    ("counters", "stolen_ns", Rule::Metric("shunt_worker_preempted_seconds_total", 1e-9)),
    ("latencies", "lanes.*", DERIVED),
    ("latencies", "gaps", metric("shunt_worker_preemptions_total")),
    ("latencies", "stolen_ns", Rule::Metric("shunt_worker_preempted_seconds_total", 1e-9)),
    ("controllers", "controllers[].configured", Rule::Without("other controllers are only counted")),
    ("controllers", "controllers[].since_s", metric("shunt_controller_connected_since_seconds")),
    ("controllers", "controllers[].failures", metric("shunt_controller_failures_total")),
];

/// Returns the rule for a path, and what `*` stands for.
pub fn rule(report: &str, path: &str) -> Option<(Rule, String)> {
    RULES.iter().filter(|(of, ..)| *of == report).find_map(|(_, pattern, rule)| {
        let star = match pattern.strip_suffix('*') {
            Some(start) => path.strip_prefix(start)?,
            None if *pattern == path => "",
            None => return None,
        };
        Some((*rule, star.to_owned()))
    })
}
