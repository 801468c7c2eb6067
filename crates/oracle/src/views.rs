// SPDX-License-Identifier: Apache-2.0
//! Checks of `shunt trace`: compares the model's simulated processing of a packet with the reference.

use super::log::Recorder;
use dataplane::DataPlane;
use flow::PortNo;
use model::Model;
use model::trace::TraceComparison;
use reference::Reference;

/// Compares the workers' records of packets with simulated traces, unless the rules have changed since.
/// Returns the number of packets compared.
pub(super) fn compare_traces(model: &mut Model<Recorder>) -> Result<usize, String> {
    let mut judged = 0;
    while let Some(record) = model.plane_mut().plane.next_record() {
        match model.compare(&record).1 {
            TraceComparison::Agrees => judged += 1,
            TraceComparison::Disagrees(differences) => {
                return Err(format!(
                    "a recorded packet differs from its trace: {differences:?}\n  {record:?}"
                ));
            }
            TraceComparison::Changed { .. } | TraceComparison::Unclear(_) => {}
        }
    }
    Ok(judged)
}

/// Traces a packet, and compares the trace with the reference's result under the same operations.
pub(super) fn compare<D: DataPlane>(
    model: &Model<D>,
    reference: &mut Reference,
    port: PortNo,
    bytes: &[u8],
) -> Result<(), String> {
    let trace = model.trace(port, bytes);
    let processed = reference.process(port, bytes);
    if trace.processed != processed {
        return Err(format!(
            "the trace differs from the reference\n  expected {processed:?}\n  actual   {:?}\n  in {bytes:02x?} at port {port}",
            trace.processed
        ));
    }
    let reported: Vec<_> =
        trace.steps.iter().map(|step| (step.table, step.entry.as_ref().map(|entry| entry.id))).collect();
    if reported != processed.hits {
        return Err(format!("a trace reports {reported:?}, but its packet hits {:?}", processed.hits));
    }
    for step in &trace.steps {
        let rank = step.entry.as_ref().map_or(0, |entry| entry.priority);
        if let Some(near) =
            step.near_misses.iter().find(|near| near.entry.priority < rank || near.excluded.is_empty())
        {
            return Err(format!("table {}: {near:?} is no near miss of {:?}", step.table, step.entry));
        }
    }
    Ok(())
}
