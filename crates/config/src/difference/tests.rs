// SPDX-License-Identifier: Apache-2.0
use super::*;

const HEAD: &str = "control = \"/tmp/s.sock\"\n[[worker]]\n[[worker]]\n[[datapath]]\nid = 1\n";
const PORTS: &str = "[[datapath.port]]\nnumber = 1\nname = \"p1\"\ndriver = \"af_packet\"\ndevice = \"v1\"\nworkers = [0]\n\
                     [[datapath.port]]\nnumber = 2\nname = \"p2\"\ndriver = \"af_packet\"\ndevice = \"v2\"\nworkers = [0, 1]\n";

fn file(settings: &str, ports: &str) -> String {
    format!("{HEAD}{settings}\n{PORTS}{ports}")
}

fn to_file(running: &str, text: &str) -> Result<Difference, String> {
    let (running, path) = (Config::parse_all(running).unwrap(), Path::new("s.toml"));
    let wanted = Config::parse_file(path, text).map_err(|error| error.to_string())?;
    Difference::of_file(&running, &wanted, path, text).map_err(|restarts| restarts.to_string())
}

fn between(before: &str, after: &str) -> Result<Vec<String>, String> {
    let running = Config::parse_all(before).unwrap();
    let difference = to_file(before, after)?;
    assert_eq!(difference.datapaths.len(), running.len());
    assert_eq!(difference.is_empty(), difference.datapaths.iter().all(Vec::is_empty));
    Ok(difference.datapaths.iter().flatten().map(ConfigChange::to_string).collect())
}

fn changes(before: &str, after: &str) -> Vec<String> {
    between(before, after).unwrap()
}

#[test]
fn equal_configurations_have_no_difference() {
    let text = file("[datapath.openflow]\nlisten = [\"127.0.0.1:1\", \"127.0.0.1:2\"]", "");
    assert!(changes(&text, &text).is_empty());
    // Comments, the order of lists of addresses, and defaults that are written out are no changes.
    let other = text.replace(
        "listen = [\"127.0.0.1:1\", \"127.0.0.1:2\"]",
        "# a comment\nlisten = [\"127.0.0.1:2\", \"127.0.0.1:1\"]\n[datapath.lanes]\nnormal = 2048",
    );
    assert!(changes(&text, &other).is_empty());
}

#[test]
fn ports_are_added_removed_and_changed() {
    let third =
        "[[datapath.port]]\nnumber = 3\nname = \"p3\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [1]\n";
    let (two, three) = (file("", ""), file("", third));
    assert_eq!(changes(&two, &three), ["port 3 (p3) is added, mem null"]);
    assert_eq!(changes(&three, &two), ["port 3 (p3) is removed"]);
    let reopened = ["port 3 (p3) is removed and added again under its number, "];
    for (from, to) in [
        ("workers = [1]\n", "workers = [0, 1]\n"),
        ("driver = \"mem\"\ndevice = \"null\"", "driver = \"af_packet\"\ndevice = \"v3\""),
    ] {
        let found = changes(&three, &file("", &third.replace(from, to)));
        assert!(found.len() == 1 && found[0].starts_with(reopened[0]), "{found:?}");
    }
    assert_eq!(
        changes(&three, &file("", &third.replace("\"p3\"", "\"up\""))),
        ["port 3 (p3) has the name up"]
    );
    // A port with another number is another port, and it may have the same device.
    let renumbered = three.replace("number = 2\n", "number = 9\n");
    assert_eq!(
        changes(&three, &renumbered),
        ["port 2 (p2) is removed", "port 9 (p2) is added, af_packet v2"]
    );
}

#[test]
fn queues_and_outstanding_bytes_leave_the_device_open() {
    let (before, after) = (
        file("", "outstanding_bytes = 1000\n[[datapath.port.queue]]\nid = 1\n"),
        file(
            "",
            "outstanding_bytes = 2000\n[[datapath.port.queue]]\nid = 1\npriority = 2\n[[datapath.port.queue]]\nid = 2\n",
        ),
    );
    let expected = ["port 2 (p2) has 2 egress queues", "port 2 (p2) has at most 2000 outstanding bytes"];
    assert_eq!(changes(&before, &after), expected);
    // The default of all ports changes both ports.
    let found = changes(&file("", ""), &file("[datapath.lanes]\noutstanding_bytes = 9216", ""));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn another_receive_ring_opens_the_port_again() {
    for before in ["receive_ring = 512", ""] {
        let found = changes(&file("", before), &file("", "receive_ring = 1024"));
        assert_eq!(found, ["port 2 (p2) is removed and added again under its number, af_packet v2"]);
    }
}

#[test]
fn channels_limits_and_marks_change_at_once() {
    let before = file(
        "[datapath.openflow]\ncontrollers = [\"tcp:10.0.0.1\", \"tcp:10.0.0.2\"]\nlisten = \"127.0.0.1:6654\"\n\
         [datapath.pof]\nlisten = \"127.0.0.1:6633\"",
        "",
    );
    let after = file(
        "flows = \"x.flows\"\n[datapath.openflow]\ncontrollers = [\"tcp:10.0.0.2\", \"tcp:10.0.0.3\"]\n\
         fail_mode = \"standalone\"\npacket_in.action = { rate = 10 }\n[datapath.pof]\n\
         listen = [\"127.0.0.1:6633\", \"127.0.0.1:6634\"]\n\
         [datapath.low_latency]\ncookie = \"1/1\"\nlearn.enabled = true\n[datapath.stateless]\ntrusted = [1]",
        "",
    );
    let expected = [
        "OpenFlow controllers: 10.0.0.3:6653 added, 10.0.0.1:6653 removed",
        "addresses for OpenFlow connections: 127.0.0.1:6654 removed",
        "the fail mode is standalone",
        "addresses for POF connections: 127.0.0.1:6634 added",
        "the rate limits of packet-ins are changed",
        "the cookie of low-latency flows is changed",
        "the learning of low-latency flows is changed",
        "stateless forwarding is changed",
        "another flow file is loaded at the next start",
    ];
    assert_eq!(changes(&before, &after), expected);
    assert_eq!(changes(&after, &before).len(), expected.len());
}

#[test]
fn each_change_that_needs_a_restart_is_named_with_its_key() {
    let before = file("[datapath.openflow]\nlisten = \"127.0.0.1:6654\"", "");
    for (from, to, key) in [
        ("control = \"/tmp/s.sock\"", "control = \"/tmp/t.sock\"", "s.toml:1:11: control: "),
        ("control", "simd = \"portable\"\ncontrol", "s.toml:1:8: simd: "),
        ("[[worker]]\n[[datapath]]", "[[worker]]\n[[worker]]\n[[datapath]]", "worker: "),
        ("[[worker]]\n[[datapath]]", "[[worker]]\ncpu = 1\n[[datapath]]", "worker[1].cpu: "),
        ("[[worker]]\n[[datapath]]", "[[worker]]\nidle = \"busy\"\n[[datapath]]", "worker[1].idle: "),
        ("[[datapath]]\nid = 1", "[[datapath]]\nid = 2", "datapath.id: "),
        ("id = 1\n", "id = 1\nffp.lut_entries = 64\n", "datapath.ffp: "),
        ("id = 1\n", "id = 1\nffp.enabled = false\n", "datapath.ffp: "),
        ("id = 1\n", "id = 1\nffp.consistency = \"lazy\"\n", "datapath.ffp.consistency: "),
        ("id = 1\n", "id = 1\nexpress.records = 64\n", "datapath.express: "),
        ("id = 1\n", "id = 1\nlanes.normal = 1\n", "datapath.lanes: "),
        ("id = 1\n", "id = 1\nport_cache.mode = \"nonblocking\"\n", "datapath.port_cache: "),
        ("listen", "packet_in.quench = [0]\nlisten", "datapath.openflow.packet_in.quench: "),
        ("id = 1\n", "id = 1\npof.listen = \"127.0.0.1:1\"\n", "datapath.pof: "),
    ] {
        let after = before.replacen(from, to, 1);
        assert_ne!(before, after);
        let found = between(&before, &after).unwrap_err();
        assert!(found.contains(key) && found.contains("; restart the switch"), "{key}: {found}");
        assert!(found.lines().all(|line| line.starts_with("s.toml:")), "{found}");
    }
}

#[test]
fn all_refusals_are_listed_and_no_change_beside_them_counts() {
    let before = file("", "");
    let after = file("express.records = 64\nlanes.hold = 7", "outstanding_bytes = 0");
    let found = between(&before, &after).unwrap_err();
    assert_eq!(found.lines().count(), 2, "{found}");
    // A file with mistakes is refused with the usual messages.
    let found = between(&before, &before.replace("number = 2", "number = 1")).unwrap_err();
    assert!(found.starts_with("s.toml:14:10: datapath.port[1].number: 1 is also that of port[0]"), "{found}");
}

#[test]
fn ports_that_cannot_be_opened_or_closed_need_a_restart() {
    let cached = |ports: &str| file("port_cache.mode = \"nonblocking\"", ports);
    let third =
        "[[datapath.port]]\nnumber = 3\nname = \"p3\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [1]\n";
    let found = between(&cached(""), &cached(third)).unwrap_err();
    assert!(
        found.contains("datapath.port[2]: port 3 (p3) cannot be opened or closed: the port cache"),
        "{found}"
    );
    assert!(between(&cached(third), &cached("")).unwrap_err().contains("datapath.port: port 3 (p3)"));
    // Queues need no other memory.
    assert_eq!(changes(&cached(""), &cached("[[datapath.port.queue]]\nid = 1\n")).len(), 1);
    let xdp = |workers: &str| {
        file(
            "",
            &third.replace(
                "mem\"\ndevice = \"null\"\nworkers = [1]",
                &format!("af_xdp\"\ndevice = \"v3\"\nworkers = {workers}"),
            ),
        )
    };
    let found = between(&xdp("[0]"), &xdp("[0, 1]")).unwrap_err();
    assert!(found.contains("af_xdp cannot use \"v3\" twice"), "{found}");
    assert_eq!(changes(&file("", ""), &xdp("[0]")).len(), 1);
    assert_eq!(changes(&xdp("[0]"), &file("", "")).len(), 1);
}

/// Two datapaths. The workers of a datapath are those that serve a port of it.
fn two(first: &str, second: &str) -> String {
    let port = |number: u32, device: &str, workers: &str| {
        format!(
            "[[datapath.port]]\nnumber = {number}\nname = \"p{number}\"\ndriver = \"af_packet\"\ndevice = \"{device}\"\nworkers = {workers}\n"
        )
    };
    let ports = |text: &str| -> String {
        text.split_whitespace()
            .map(|one| {
                let mut parts = one.split('/');
                let mut next = || parts.next().unwrap();
                port(next().parse().unwrap(), next(), next())
            })
            .collect()
    };
    format!(
        "control = \"/tmp/s.sock\"\n[[worker]]\n[[worker]]\n[[worker]]\n[[datapath]]\nid = 1\n{}[[datapath]]\nid = 2\n\
         control = \"/tmp/t.sock\"\n{}",
        ports(first),
        ports(second)
    )
}

#[test]
fn ports_of_several_datapaths_keep_the_workers_of_the_start() {
    let before = two("1/a/[0] 2/b/[2]", "1/c/[1]");
    assert!(changes(&before, &before).is_empty());
    // Worker 2 has the position 1 among the workers of the first datapath.
    let after = two("2/b/[2] 3/d/[0,2]", "1/c/[1]");
    let difference = to_file(&before, &after).unwrap();
    assert_eq!(difference.configs[0].workers.len(), 2);
    let ports = &difference.configs[0].datapath.ports;
    assert_eq!(ports.iter().map(|port| port.workers.clone()).collect::<Vec<_>>(), [vec![1], vec![0, 1]]);
    // A worker that loses its last port keeps its place.
    let smaller = two("2/b/[2]", "1/c/[1]");
    let difference = to_file(&before, &smaller).unwrap();
    assert_eq!(difference.configs[0].datapath.ports[0].workers, [1]);
    assert_eq!(changes(&before, &smaller), ["port 1 (p1) is removed"]);
    let found = between(&before, &two("1/a/[0] 2/b/[1]", "1/c/[1]")).unwrap_err();
    assert!(
        found.contains("datapath[0].port[1].workers: ") && found.contains("worker 1 has served no port"),
        "{found}"
    );
    let found = between(&before, &two("1/a/[0] 2/b/[2]", "1/c/[1] 2/e/[0]")).unwrap_err();
    assert!(found.contains("datapath[1].port[1].workers: "), "{found}");
}

#[test]
fn a_device_moves_between_datapaths_in_two_steps() {
    let before = two("1/a/[0] 2/b/[1]", "1/c/[1]");
    let found = between(&before, &two("1/a/[0]", "1/c/[1] 2/b/[1]")).unwrap_err();
    assert!(found.contains("datapath[1].port[1].device: \"b\" belongs to another datapath"), "{found}");
    let between_steps = two("1/a/[0]", "1/c/[1]");
    assert_eq!(changes(&before, &between_steps).len(), 1);
    assert_eq!(changes(&between_steps, &two("1/a/[0]", "1/c/[1] 2/b/[1]")).len(), 1);
}

#[test]
fn datapaths_are_not_created_or_removed() {
    let (one, both) = (file("", ""), two("1/v1/[0]", "1/c/[1]").replacen("[[worker]]\n", "", 1));
    let found = between(&one, &both).unwrap_err();
    assert!(found.contains("datapath[1].id: ") && found.contains("there is no datapath 2 yet"), "{found}");
    let found = between(&both, &one).unwrap_err();
    assert!(found.contains("datapath: ") && found.contains("datapath 2 is missing"), "{found}");
}

#[test]
fn certificates_change_while_the_switch_runs() {
    let listen = "[datapath.openflow]\nlisten = [\"127.0.0.1:1\"]";
    let plain = file(listen, "");
    let tls = |name: &str| {
        let files = format!("certificate = \"{name}.pem\"\nprivate_key = \"k.pem\"\nca = \"ca.pem\"\n");
        file(&format!("{}\n[datapath.tls]\n{files}", listen.replace("\"127", "\"ssl:127")), "")
    };
    let certificates = "new TLS connections use the certificates of other files";
    let found = changes(&plain, &tls("a"));
    assert!(found.len() == 2 && found.contains(&certificates.to_owned()), "{found:?}");
    assert_eq!(changes(&tls("a"), &tls("b")), [certificates]);
    assert_eq!(changes(&tls("a"), &tls("a")), [""; 0]);
}

#[test]
fn metrics_log_and_store_need_a_restart() {
    let text = file("", "");
    for (line, key) in
        [("metrics = \"127.0.0.1:9494\"\n", "metrics"), ("log = { format = \"json\" }\n", "log")]
    {
        let reasons = to_file(&text, &format!("{line}{text}")).unwrap_err();
        assert!(reasons.contains(&format!("{key}: ")), "{reasons}");
    }
    let reasons = to_file(&text, &file("[datapath.store]\npath = \"/tmp/shunt-store\"", "")).unwrap_err();
    assert!(reasons.contains("datapath.store: "), "{reasons}");
}
