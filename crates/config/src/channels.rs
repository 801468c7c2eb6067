// SPDX-License-Identifier: Apache-2.0
//! Checks the settings of connections to controllers, of both protocols. Begin with [`channels`].

use crate::check::Context;
use crate::endpoint::{Endpoint, listen_address, openflow_controller, pof_controller};
use crate::file;
use crate::mistakes::Mistakes;
use crate::packet_in::packet_ins;
use crate::settings::{Datapath, OpenFlow, Pof, PofMiss};
use crate::socket::SocketPurpose;
use crate::value::in_range;
use flow::Limits;
use pof::PofDialect;

/// Maximum number of controllers of a protocol, and of addresses on which a datapath listens for it.
const ENDPOINTS: usize = 16;
/// Default number of tables of each type.
const TABLES: [u8; 4] = [10, 10, 5, 20];

/// Checks the settings of both protocols for the datapath with this ID.
pub(crate) fn channels(
    d: &file::DatapathSection,
    id: Option<u64>,
    context: &Context<'_>,
    mistakes: &mut Mistakes,
) -> (OpenFlow, Option<Pof>) {
    let openflow = openflow(&d.openflow, d.pof.is_some(), context, mistakes);
    let pof = d.pof.as_ref().and_then(|section| pof(section, id, context, mistakes));
    for (n, twice) in pof.iter().flat_map(|pof| &pof.listen).enumerate() {
        if openflow.listen.iter().any(|end| end.excludes(twice)) {
            let problem = format!(
                "\"{twice}\" is also in openflow.listen, and the first messages do not show the protocol; \
                 use another address"
            );
            mistakes.wrong(format!("{}.pof.listen[{n}]", context.key), problem);
        }
    }
    (openflow, pof)
}

/// Adds a mistake for each address on which both datapaths listen. The second is the one at `key`.
pub(crate) fn share_no_address(key: &str, one: &Datapath, other: &Datapath, mistakes: &mut Mistakes) {
    let listens = |datapath: &Datapath| {
        let pof = datapath.pof.as_ref().map(|pof| pof.listen.clone());
        [("openflow", datapath.openflow.listen.clone()), ("pof", pof.unwrap_or_default())]
    };
    let taken = listens(one);
    for (section, list) in listens(other) {
        for (n, twice) in list.iter().enumerate() {
            if taken.iter().any(|(_, taken)| taken.iter().any(|end| end.excludes(twice))) {
                let problem =
                    format!("\"{twice}\" is also used by another datapath; listen on each address once");
                mistakes.wrong(format!("{key}.{section}.listen[{n}]"), problem);
            }
        }
    }
}

fn pof(
    section: &file::PofSection,
    id: Option<u64>,
    context: &Context<'_>,
    mistakes: &mut Mistakes,
) -> Option<Pof> {
    let key = |name: &str| format!("{}.pof.{name}", context.key);
    let controllers = endpoints(&key("controllers"), &section.controllers, pof_controller, mistakes);
    let listen = endpoints(&key("listen"), &section.listen, listen_address, mistakes);
    sockets(&key("listen"), &listen, SocketPurpose::Pof, context, mistakes);
    if section.controllers.is_empty() && section.listen.is_empty() {
        let example =
            "name a controller, such as controllers = [\"tcp:127.0.0.1:6633\"], or an address in listen";
        mistakes
            .wrong(format!("{}.pof", context.key), format!("has no effect without controllers; {example}"));
    }
    let dialect = section.dialect.as_deref().unwrap_or(PofDialect::V1_4.name());
    let dialect = dialect.parse::<PofDialect>().map_err(|error| error.to_string());
    let dialect = mistakes.at(key("dialect"), dialect);
    let tables = section.tables.as_ref().map_or(Ok(TABLES), |tables| table_numbers(tables));
    let tables = mistakes.at(key("tables"), tables);
    let default = id.map_or(0, |id| i64::from(id as u32));
    let device_id = in_range(section.device_id.unwrap_or(default), 0..=i64::from(u32::MAX));
    let device_id = mistakes.at(key("device_id"), device_id);
    let miss = match section.miss.as_deref() {
        None | Some("drop") => Ok(PofMiss::Drop),
        Some("controller") => Ok(PofMiss::Controller),
        Some(other) => Err(format!("\"{other}\" is unknown; use \"drop\" or \"controller\"")),
    };
    let miss = mistakes.at(key("miss"), miss);
    Some(Pof {
        controllers,
        listen,
        dialect: dialect?,
        tables: tables?,
        device_id: device_id? as u32,
        miss: miss?,
    })
}

fn table_numbers(list: &[i64]) -> Result<[u8; 4], String> {
    let most = Limits::TABLES as i64;
    let wrong = || {
        format!(
            "must be the numbers of masked, longest-prefix, exact and linear tables, with a sum of 1 to {most}; \
             write tables = [10, 10, 5, 20]"
        )
    };
    let tables = <[i64; 4]>::try_from(list).map_err(|_| wrong())?;
    let are_counts = tables.iter().all(|count| (0..=most).contains(count));
    let sum: i64 = if are_counts { tables.iter().sum() } else { 0 };
    if !(1..=most).contains(&sum) {
        return Err(wrong());
    }
    Ok(tables.map(|count| count as u8))
}

/// Checks the sockets on which a datapath listens.
fn sockets(
    key: &str,
    listen: &[Endpoint],
    purpose: SocketPurpose,
    context: &Context<'_>,
    mistakes: &mut Mistakes,
) {
    for (n, end) in listen.iter().enumerate() {
        let key = format!("{key}[{n}]");
        if context.control.is_some_and(|control| *end == Endpoint::Unix(control.into())) {
            let problem = format!("\"{end}\" is the control socket; use another path for controllers");
            mistakes.wrong(&key, problem);
        }
        context.scope.socket(&key, end, purpose, mistakes);
    }
}

fn openflow(
    o: &file::OpenFlowSection,
    has_pof: bool,
    context: &Context<'_>,
    mistakes: &mut Mistakes,
) -> OpenFlow {
    let key = |name: &str| format!("{}.openflow.{name}", context.key);
    let controllers = endpoints(&key("controllers"), &o.controllers, openflow_controller, mistakes);
    let listen = endpoints(&key("listen"), &o.listen, listen_address, mistakes);
    sockets(&key("listen"), &listen, SocketPurpose::OpenFlow, context, mistakes);
    let standalone = match o.fail_mode.as_deref() {
        Some("standalone") => true,
        Some("secure") => false,
        // A datapath of controllers starts without flows.
        None => controllers.is_empty() && !has_pof,
        Some(other) => {
            let problem = format!("\"{other}\" is unknown; use \"secure\" or \"standalone\"");
            mistakes.wrong(key("fail_mode"), problem);
            false
        }
    };
    let packet_ins = packet_ins(&key("packet_in"), &o.packet_in, mistakes);
    OpenFlow { standalone, controllers, listen, packet_ins }
}

/// Parses a list of distinct endpoints, and omits invalid endpoints.
fn endpoints(
    key: &str,
    texts: &[String],
    read: fn(&str) -> Result<Endpoint, String>,
    mistakes: &mut Mistakes,
) -> Vec<Endpoint> {
    if texts.len() > ENDPOINTS {
        mistakes.wrong(key, format!("there are {}; the maximum is {ENDPOINTS}", texts.len()));
        return Vec::new();
    }
    let mut all = Vec::with_capacity(texts.len());
    for (n, text) in texts.iter().enumerate() {
        let key = format!("{key}[{n}]");
        let Some(endpoint) = mistakes.at(&key, read(text)) else { continue };
        if all.contains(&endpoint) {
            mistakes.wrong(&key, format!("\"{text}\" is given twice; name each once"));
        }
        all.push(endpoint);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn datapath(openflow: &str, pof: &str) -> Result<Datapath, String> {
        let text = format!(
            "control = \"/tmp/s.sock\"\n[[worker]]\n[[datapath]]\nid = 0x1_0000_0005\n\
             [datapath.openflow]\n{openflow}\n[datapath.pof]\n{pof}\n"
        );
        let lines = |all: Vec<crate::Mistake>| all.iter().map(|one| format!("{one}\n")).collect::<String>();
        Config::parse(&text).map(|config| config.datapath).map_err(lines)
    }

    #[test]
    fn pof_has_the_documented_defaults() {
        let datapath = datapath("", "controllers = [\"tcp:10.0.0.1\"]").unwrap();
        let pof = datapath.pof.unwrap();
        assert_eq!(pof.controllers, [Endpoint::Tcp(([10, 0, 0, 1], 6_633).into())]);
        assert_eq!((pof.dialect, pof.tables), (PofDialect::V1_4, [10, 10, 5, 20]));
        assert_eq!((pof.device_id, pof.miss, pof.listen), (5, PofMiss::Drop, vec![]));
        assert!(!datapath.openflow.standalone);
    }

    #[test]
    fn every_key_of_pof_is_read() {
        let keys = "listen = \"127.0.0.1:6633\"\ndialect = \"1.2\"\ntables = [0, 0, 1, 254]\n\
                    device_id = 9\nmiss = \"controller\"";
        let datapath = datapath("fail_mode = \"standalone\"", keys).unwrap();
        let pof = datapath.pof.unwrap();
        assert_eq!((pof.dialect, pof.tables), (PofDialect::V1_2, [0, 0, 1, 254]));
        assert_eq!((pof.device_id, pof.miss, pof.listen.len()), (9, PofMiss::Controller, 1));
        assert!(datapath.openflow.standalone);
    }

    #[test]
    fn mistakes_of_pof_are_reported_with_their_key() {
        let listen = "listen = [\"127.0.0.1:6633\"]";
        for (keys, parts) in [
            (String::new(), ["datapath.pof: has no effect without controllers", "controllers = ["]),
            (
                format!("{listen}\ndialect = \"1.5.0\""),
                ["datapath.pof.dialect: `1.5.0`", "1.2 and 1.4.0.015"],
            ),
            (format!("{listen}\ntables = [10, 10, 5]"), ["datapath.pof.tables: must be", "[10, 10, 5, 20]"]),
            (format!("{listen}\ntables = [100, 100, 5, 51]"), ["datapath.pof.tables: must be", "1 to 255"]),
            (format!("{listen}\ntables = [0, 0, 0, 0]"), ["datapath.pof.tables: must be", "1 to 255"]),
            (format!("{listen}\ntables = [-1, 2, 0, 0]"), ["datapath.pof.tables: must be", "1 to 255"]),
            (format!("{listen}\ndevice_id = -1"), ["datapath.pof.device_id", "4294967295"]),
            (
                format!("{listen}\nmiss = \"ask\""),
                ["datapath.pof.miss: \"ask\"", "\"drop\" or \"controller\""],
            ),
            ("controllers = [\"10.0.0.1\"]".into(), ["datapath.pof.controllers[0]", "tcp:127.0.0.1:6633"]),
            ("listen = \"unix:/tmp/s.sock\"".into(), ["datapath.pof.listen[0]", "is the control socket"]),
        ] {
            let found = datapath("", &keys).unwrap_err();
            assert!(parts.iter().all(|part| found.contains(part)), "{keys}: {found}");
        }
    }

    #[test]
    fn an_address_serves_one_protocol() {
        let listen = "listen = [\"127.0.0.1:6633\", \"127.0.0.1:0\"]";
        let found = datapath(listen, listen).unwrap_err();
        assert!(
            found.contains("datapath.pof.listen[0]: \"127.0.0.1:6633\" is also in openflow.listen"),
            "{found}"
        );
        assert_eq!(found.lines().count(), 1, "{found}");
        let two = |section: &str| {
            format!(
                "[[worker]]\n[[datapath]]\nid = 1\n[datapath.pof]\n{listen}\n\
                 [[datapath]]\nid = 2\ncontrol = \"/tmp/s2.sock\"\n[datapath.{section}]\nlisten = \"127.0.0.1:6633\"\n"
            )
        };
        for section in ["openflow", "pof"] {
            let found = Config::parse_all(&two(section)).unwrap_err();
            assert_eq!(found[0].key, format!("datapath[1].{section}.listen[0]"));
        }
    }
}
