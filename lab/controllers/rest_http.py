# SPDX-License-Identifier: Apache-2.0
"""The HTTP interface: requests to switches, and their answers as JSON.

GET / lists the requests. GET /switches lists the numbers of the switches. Errors are:

- 400: the request does not have the required form.
- 404: the switch or the address does not exist.
- 409: the switch refused the request; the body is {"error": {"type", "code", "type_name", "code_name"}}.
- 504: the switch does not answer.

The answer to a change is sent when the change is active, because a barrier follows the change."""

import http.server
import json
import re
import struct
import urllib.parse

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

import rest_forms
from rest_forms import FormError, known, plain
from rest_switch import NoAnswer, SwitchError

ROUTES = []
ROLES = {"equal": ofp.OFPCR_ROLE_EQUAL, "master": ofp.OFPCR_ROLE_MASTER, "slave": ofp.OFPCR_ROLE_SLAVE}
ROLE_NAMES = {number: name for name, number in ROLES.items()}
PORT_BITS = {"down": ofp.OFPPC_PORT_DOWN, "no_recv": ofp.OFPPC_NO_RECV, "no_fwd": ofp.OFPPC_NO_FWD}
PORT_BITS["no_packet_in"] = ofp.OFPPC_NO_PACKET_IN
ASYNC = ["packet_in_mask", "port_status_mask", "flow_removed_mask"]


class Request:
    """A request to a switch."""

    def __init__(self, switch, numbers, query, body):
        self.switch = switch
        self.datapath = switch.datapath
        # The numbers in the path after the number of the switch.
        self.numbers = numbers
        self.query = query
        self.body = body

    def number(self, name, default):
        """Returns a number of the query, or the default if it is missing."""
        return int(self.query[name], 0) if name in self.query else default


def route(method, path):
    """Registers a function for a path under /switches/N. In a path, # stands for a number."""
    path = "/switches/#" + path
    pattern = re.compile(path.replace("#", "([0-9]+)"))
    return lambda function: ROUTES.append((method, path, pattern, function)) or function


@route("GET", "")
def features(request):
    """Number, buffers, tables and capabilities of the switch."""
    return request.switch.features


@route("GET", "/description")
def description(request):
    """Description of the switch: manufacturer, hardware, software and serial number."""
    return plain(request.switch.ask(parser.OFPDescStatsRequest(request.datapath, 0))[0])


@route("GET", "/echo")
def echo(request):
    """Checks whether the switch answers."""
    answer = request.switch.ask(parser.OFPEchoRequest(request.datapath, data=b"rest"))[0]
    return {"data": plain(answer.data)}


@route("GET", "/config")
def config(request):
    """Configuration: {"flags", "miss_send_len"}."""
    answer = request.switch.ask(parser.OFPGetConfigRequest(request.datapath))[0]
    return {"flags": answer.flags, "miss_send_len": answer.miss_send_len}


@route("PUT", "/config")
def set_config(request):
    """Changes the configuration: {"flags", "miss_send_len"}."""
    known(request.body, ["flags", "miss_send_len"], "a configuration")
    flags, length = request.body.get("flags", 0), request.body["miss_send_len"]
    request.switch.change(parser.OFPSetConfig(request.datapath, flags, length))


@route("GET", "/role")
def role(request):
    """Role of the application: {"role", "generation"}."""
    answer = request.switch.ask(parser.OFPRoleRequest(request.datapath, ofp.OFPCR_ROLE_NOCHANGE, 0))[0]
    return {"role": ROLE_NAMES[answer.role], "generation": answer.generation_id}


@route("PUT", "/role")
def set_role(request):
    """Changes the role: {"role": "equal", "master" or "slave", "generation": number}."""
    known(request.body, ["role", "generation"], "a role")
    wanted = ROLES[request.body["role"]], request.body.get("generation", 0)
    request.switch.ask(parser.OFPRoleRequest(request.datapath, *wanted))


@route("GET", "/async")
def asynchronous(request):
    """Masks of asynchronous messages: [as master or equal, as slave]."""
    answer = request.switch.ask(parser.OFPGetAsyncRequest(request.datapath))[0]
    return {name: getattr(answer, name) for name in ASYNC}


@route("PUT", "/async")
def set_asynchronous(request):
    """Changes the masks of asynchronous messages: [as master or equal, as slave]."""
    known(request.body, ASYNC, "the set of asynchronous messages")
    request.switch.change(parser.OFPSetAsync(request.datapath, *(request.body[name] for name in ASYNC)))


@route("POST", "/barrier")
def barrier(request):
    """Answers when all earlier requests are complete."""
    request.switch.change()


@route("GET", "/events")
def events(request):
    """Packet-ins, removed flows and changed ports: ?after=NUMBER&wait=SECONDS."""
    return request.switch.events_after(request.number("after", 0), min(request.number("wait", 0), 60))


@route("POST", "/packets")
def packet_out(request):
    """Sends a packet: {"data": hexadecimal, or "buffer": number, "in_port": port, "actions": actions}."""
    known(request.body, ["data", "buffer", "in_port", "actions"], "a packet")
    data = bytes.fromhex(request.body["data"]) if "data" in request.body else None
    buffer = request.body.get("buffer", ofp.OFP_NO_BUFFER)
    in_port = rest_forms.port(request.body.get("in_port", "controller"))
    actions = rest_forms.actions(request.body["actions"])
    request.switch.change(parser.OFPPacketOut(request.datapath, buffer, in_port, actions, data))


@route("GET", "/ports")
def ports(request):
    """All ports."""
    return plain(request.switch.ask(parser.OFPPortDescStatsRequest(request.datapath, 0)))


@route("PUT", "/ports/#")
def set_port(request):
    """Changes flags of a port: {"down": true, ...}, with the keys of PORT_BITS."""
    known(request.body, PORT_BITS, "a port")
    number = request.numbers[0]
    found = [p for p in request.switch.ask(parser.OFPPortDescStatsRequest(request.datapath, 0)) if p.port_no == number]
    # The switch refuses an unknown port whatever its address.
    address = found[0].hw_addr if found else "00:00:00:00:00:00"
    mask = sum(PORT_BITS[name] for name in request.body)
    bits = sum(PORT_BITS[name] for name, on in request.body.items() if on)
    request.switch.change(parser.OFPPortMod(request.datapath, number, address, bits, mask))


@route("GET", "/ports/statistics")
def port_statistics(request):
    """Statistics of all ports."""
    return plain(request.switch.ask(parser.OFPPortStatsRequest(request.datapath, 0, ofp.OFPP_ANY)))


@route("GET", "/ports/#/statistics")
def one_port_statistics(request):
    """Statistics of one port."""
    return plain(request.switch.ask(parser.OFPPortStatsRequest(request.datapath, 0, request.numbers[0])))


@route("GET", "/queues")
def queues(request):
    """All queues of all ports."""
    answer = request.switch.ask(parser.OFPQueueGetConfigRequest(request.datapath, ofp.OFPP_ANY))[0]
    return plain(answer.queues)


@route("GET", "/queues/statistics")
def queue_statistics(request):
    """Statistics of all queues."""
    message = parser.OFPQueueStatsRequest(request.datapath, 0, ofp.OFPP_ANY, ofp.OFPQ_ALL)
    return plain(request.switch.ask(message))


@route("GET", "/tables")
def tables(request):
    """Statistics of all tables."""
    return plain(request.switch.ask(parser.OFPTableStatsRequest(request.datapath, 0)))


@route("GET", "/tables/features")
def table_features(request):
    """Features of all tables."""
    return plain(request.switch.ask(parser.OFPTableFeaturesStatsRequest(request.datapath, 0)))


def chosen(request):
    """Parses the selection of flows: ?table, out_port, out_group, cookie, cookie_mask, match (JSON)."""
    names = ["table", "out_port", "out_group", "cookie", "cookie_mask", "match"]
    known(request.query, names, "a selection of flows")
    defaults = [ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0]
    numbers = [request.number(name, default) for name, default in zip(names, defaults)]
    return [*numbers, rest_forms.match(json.loads(request.query.get("match", "{}")))]


@route("GET", "/flows")
def flows(request):
    """Flows with their counters, of all tables or of a selection."""
    listed = request.switch.ask(parser.OFPFlowStatsRequest(request.datapath, 0, *chosen(request)))
    return [
        {"flow": rest_forms.flow_form(f), "packets": f.packet_count, "bytes": f.byte_count, "seconds": f.duration_sec}
        for f in listed
    ]


@route("GET", "/flows/aggregate")
def aggregate(request):
    """Sums of the counters of all flows or of a selection."""
    return plain(request.switch.ask(parser.OFPAggregateStatsRequest(request.datapath, 0, *chosen(request)))[0])


def changes(path, make, commands):
    """Registers POST, PUT and DELETE to add, modify and delete. ?strict=1 selects the second command of the
    pair."""

    def answer(usual, strict):
        def change(request):
            """Adds, modifies or deletes an object, whose form rest_forms.py defines."""
            known(request.query, ["strict"], "the query")
            command = strict if request.query.get("strict") == "1" else usual
            request.switch.change(make(request.datapath, command, request.body))

        return change

    for method, (usual, strict) in zip(["POST", "PUT", "DELETE"], commands):
        route(method, path)(answer(usual, strict))


changes(
    "/flows",
    rest_forms.flow_mod,
    [
        (ofp.OFPFC_ADD, ofp.OFPFC_ADD),
        (ofp.OFPFC_MODIFY, ofp.OFPFC_MODIFY_STRICT),
        (ofp.OFPFC_DELETE, ofp.OFPFC_DELETE_STRICT),
    ],
)
changes("/groups", rest_forms.group_mod, [(c, c) for c in (ofp.OFPGC_ADD, ofp.OFPGC_MODIFY, ofp.OFPGC_DELETE)])
changes("/meters", rest_forms.meter_mod, [(c, c) for c in (ofp.OFPMC_ADD, ofp.OFPMC_MODIFY, ofp.OFPMC_DELETE)])


@route("GET", "/groups")
def groups(request):
    """All groups."""
    return [rest_forms.group_form(g) for g in request.switch.ask(parser.OFPGroupDescStatsRequest(request.datapath, 0))]


@route("GET", "/groups/statistics")
def group_statistics(request):
    """Statistics of all groups."""
    return plain(request.switch.ask(parser.OFPGroupStatsRequest(request.datapath, 0, ofp.OFPG_ALL)))


@route("GET", "/groups/features")
def group_features(request):
    """Features of groups."""
    return plain(request.switch.ask(parser.OFPGroupFeaturesStatsRequest(request.datapath, 0))[0])


@route("GET", "/meters")
def meters(request):
    """All meters."""
    listed = request.switch.ask(parser.OFPMeterConfigStatsRequest(request.datapath, 0, ofp.OFPM_ALL))
    return [rest_forms.meter_form(m) for m in listed]


@route("GET", "/meters/statistics")
def meter_statistics(request):
    """Statistics of all meters."""
    return plain(request.switch.ask(parser.OFPMeterStatsRequest(request.datapath, 0, ofp.OFPM_ALL)))


@route("GET", "/meters/features")
def meter_features(request):
    """Features of meters."""
    return plain(request.switch.ask(parser.OFPMeterFeaturesStatsRequest(request.datapath, 0))[0])


def answer(switches, method, address, body):
    """Returns the HTTP status and the JSON value for a request."""
    url = urllib.parse.urlsplit(address)
    if (method, url.path) == ("GET", "/"):
        return 200, {"%s %s" % (known_method, path): function.__doc__ for known_method, path, _, function in ROUTES}
    if (method, url.path) == ("GET", "/switches"):
        return 200, sorted(switches)
    for known_method, _, pattern, function in ROUTES:
        found = pattern.fullmatch(url.path)
        if known_method != method or not found:
            continue
        number, *numbers = map(int, found.groups())
        if number not in switches:
            return 404, {"error": "switch %d is not connected" % number}
        try:
            query = dict(urllib.parse.parse_qsl(url.query))
            request = Request(switches[number], numbers, query, json.loads(body or "{}"))
            result = function(request)
            return 200, {} if result is None else result
        except SwitchError as error:
            names = ("type", "code", "type_name", "code_name")
            return 409, {"error": {name: getattr(error, name) for name in names}}
        except NoAnswer as error:
            return 504, {"error": str(error)}
        except KeyError as error:
            return 400, {"error": "%s is missing or unknown" % error}
        # os-ken raises these for values that do not fit a field.
        except (FormError, TypeError, ValueError, AssertionError, struct.error) as error:
            return 400, {"error": "%s: %s" % (type(error).__name__, error)}
    return 404, {"error": "%s %s does not exist" % (method, url.path)}


def server(port, switches):
    """Returns an HTTP server on loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Passes HTTP requests to `answer`."""

        def handle_any(self):
            """Answers one HTTP request."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, value = answer(switches, self.command, self.path, body)
            text = json.dumps(value).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = do_DELETE = handle_any

        def log_message(self, *_):
            """Suppresses the log line of a request."""

    return http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
