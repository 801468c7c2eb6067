// SPDX-License-Identifier: Apache-2.0
//! PolKA plans in the dialect of freeRtr. A residue is the index of the next node. A residue of 0 denotes the
//! last node, which pops the header.

use super::graph::{self, Graph};
use super::keyflow::{self, Dialect, KeyflowPlan, RouteDocument, SegmentDocument};
use super::{PathPlanError, wrong};
use flow::PortNo;
use flow::stateless::{Arithmetic, Bank, Label, NodeId};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Initial TTL of freeRtr. The switch that pushes the header does not decrement it.
const TTL: u8 = 255;

const WIDTH_BITS: usize = 128;

#[derive(Debug, Deserialize)]
pub struct Document {
    ethertype: String,
    network: graph::Document,
    switches: Vec<SwitchDocument>,
    routes: Vec<Route>,
}

#[derive(Debug, Deserialize)]
struct SwitchDocument {
    name: String,
    polynomial: String,
    next: BTreeMap<u32, PortNo>,
}

#[derive(Debug, Deserialize)]
struct Route {
    from: String,
    to: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Deserialize)]
struct Segment {
    path: Vec<String>,
    out_port: PortNo,
    key: String,
}

/// Checks a document and returns its plan.
pub fn plan(document: Document) -> Result<KeyflowPlan, PathPlanError> {
    let Document { ethertype, network, switches, routes } = document;
    let ethertype = hexadecimal(&ethertype).and_then(|it| u16::try_from(it).ok()).ok_or_else(|| {
        wrong("ethertype", format!("is \"{ethertype}\"; write an EtherType in hexadecimal, such as 0x8842"))
    })?;
    let names = switches.iter().map(|switch| switch.name.clone()).collect();
    let graph = Graph::new(network, names)?;
    let mut banks = Vec::with_capacity(switches.len());
    for (at, switch) in switches.iter().enumerate() {
        let bank = bank(&graph, at, switch);
        let bank = bank.map_err(|problem| wrong(format!("switches[{at}] ({})", switch.name), problem))?;
        banks.push([Some(bank), None]);
    }
    let routes = routes.into_iter().map(|Route { from, to, segments }| RouteDocument {
        from,
        to,
        segments: segments.into_iter().map(segment).collect(),
    });
    let numbering = keyflow::numbering(&graph, &banks, "", 0, WIDTH_BITS, routes.collect())?;
    KeyflowPlan::of(graph, Dialect::Polka(ethertype), banks, vec![numbering])
}

fn bank(graph: &Graph, node: usize, switch: &SwitchDocument) -> Result<Bank, String> {
    let SwitchDocument { polynomial, next, .. } = switch;
    let id = hexadecimal(polynomial)
        .and_then(|it| u32::try_from(it).ok())
        .and_then(|it| NodeId::new(Arithmetic::Polynomial, it))
        .ok_or_else(|| {
            format!("has the polynomial \"{polynomial}\"; write a number from 0x2 to 0xffffffff")
        })?;
    let mut labels = BTreeMap::from([(0, Label::Tables)]);
    for (index, port) in next {
        if !graph.ports[node].contains(port) {
            return Err(format!("names port {port}, which the network does not have"));
        }
        if labels.insert(*index, Label::Port(*port)).is_some() {
            return Err("leads to index 0, which marks the end".into());
        }
        if *index >= id.residues() {
            return Err(format!("leads to index {index}, which is not a residue modulo {polynomial}"));
        }
    }
    Ok(Bank { id, labels, backups: BTreeMap::new() })
}

fn segment(Segment { path, out_port, key }: Segment) -> SegmentDocument {
    SegmentDocument {
        // A key that is not a number is reported later, when the key is parsed.
        bits: hexadecimal(&key).map_or(0, |key| u128::BITS - key.leading_zeros()),
        guards: vec![String::new(); path.len().saturating_sub(1)],
        backup_port: None,
        return_ports: Vec::new(),
        hop_limit: TTL - 1,
        path,
        out_port,
        key,
    }
}

fn hexadecimal(text: &str) -> Option<u128> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|it| it.is_ascii_hexdigit()))?;
    u128::from_str_radix(digits, 16).ok()
}
