# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Builds the network of a plan: a process with a datapath per switch, a cable per link, and hosts.
#
# A test sources this file after lib.sh, and sets $places.
# shellcheck source=scripts/tests/lib.sh
: "${folder:?lib.sh is sourced first}" "${prefix:?lib.sh is sourced first}"
places=()
readonly python=target/tools/os-ken/bin/python
needs "$python"
export PYTHONPATH=controller/src:controller/examples

all_ready() { [ "$(grep -c 'shunt: ready' "$folder/switches.log")" -eq "$(wc -l <"$folder/names")" ]; }

# load PLAN_ARGUMENT...: makes a plan with `shunt-controller plan`, creates its network, and loads the plan
# with controller/examples/load_plan.py. $places lists the hosts as "SWITCH PORT"; host N has the address
# 10.0.0.N. Device s2p3 is port 3 of the second switch.
load() {
    "$python" -m shunt_controller.plan "$@" --json "$folder/plan.json" >"$folder/plan.log"
    make_hosts "${#places[@]}"
    "$python" - "$folder" "${places[@]}" <<'PYTHON'
import json, pathlib, sys

folder, places = pathlib.Path(sys.argv[1]), [place.rsplit(" ", 1) for place in sys.argv[2:]]
plan = json.loads((folder / "plan.json").read_text())
number = {switch["name"]: at for at, switch in enumerate(plan["switches"], 1)}
hosts = [{"address": f"10.0.0.{at}", "switch": name, "port": int(port)} for at, (name, port) in enumerate(places, 1)]
# The IDs differ from the default numbering, so the test shows that the application uses them.
datapaths = {name: 10 + at for name, at in number.items()}
(folder / "hosts.json").write_text(json.dumps({"hosts": hosts, "datapaths": datapaths}))
ports = {name: {host["port"]: f"p{at}" for at, host in enumerate(hosts, 1) if host["switch"] == name} for name in number}
links = []
for link in plan["network"]["links"]:
    ends = [(link["a"], link["a_port"]), (link["b"], link["b_port"])]
    if all(name in number for name, _ in ends):
        links.append([f"s{number[name]}p{port}" for name, port in ends])
        for (name, port), device in zip(ends, links[-1]):
            ports[name][port] = device
(folder / "links").write_text("".join(f"{a} {b}\n" for a, b in links))
config = ["[[worker]]\n"]
for name, at in number.items():
    # Some ports of a tree have no server.
    rows = "".join(
        f'[[datapath.port]]\nnumber = {port}\nname = "{device}"\ndriver = "af_packet"\ndevice = "{device}"\nworkers = [0]\n'
        for port, device in sorted(ports[name].items())
    )
    config.append(
        f'[[datapath]]\nid = {10 + at}\ncontrol = "{folder}/s{at}.sock"\n'
        f'[datapath.openflow]\ncontrollers = ["tcp:127.0.0.1:6653"]\nfail_mode = "secure"\n{rows}'
    )
(folder / "switches.toml").write_text("".join(config))
(folder / "names").write_text("".join(f"{at} {name}\n" for name, at in number.items()))
PYTHON
    local a b name
    while read -r a b; do
        # The MTU leaves space for keys and tags.
        ip -n "$prefix-sw" link add "$a" mtu 1600 type veth peer name "$b" mtu 1600
        ip -n "$prefix-sw" link set "$a" up
        ip -n "$prefix-sw" link set "$b" up
    done <"$folder/links"
    shunt=$(test_build)
    background switches sw "$shunt" run -c "$folder/switches.toml"
    wait_until 'all switches are ready' all_ready
    background app sw "$python" lab/controllers/launch.py load_plan --plan "$folder/plan.json" --hosts "$folder/hosts.json"
    while read -r _ name; do
        wait_until "switch $name has its part of the plan" logged app " $name is as planned"
    done <"$folder/names"
    if logged app 'reports error\|Traceback\|not as planned'; then fail 'the application or a switch reported an error'; fi
    "$python" scripts/tests/peers/as_planned.py "$folder" "$shunt" >"$folder/as_planned.log" 2>&1 ||
        fail 'the configuration of a switch differs from the plan'
    ok "$(wc -l <"$folder/names") switches have the sections and entries of the plan, and no others"
}
