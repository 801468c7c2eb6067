# SPDX-License-Identifier: Apache-2.0
"""JSON forms of OpenFlow 1.3 messages. The same forms are used in both directions, so a form that was read
can be sent again.

    match    {"in_port": 1, "eth_type": 2048, "ipv4_dst": ["10.0.0.0", "255.0.0.0"]}
             a list is a value and its mask
    actions  [{"set_field": {"eth_dst": "02:00:00:00:00:01"}}, "dec_ttl", {"output": 2}]
             {"output": "controller", "max_len": 128}; ports have OpenFlow's names or numbers, see PORTS
    flow     {"table": 0, "priority": 1, "match": match, "meter": 1, "apply": actions, "clear": true,
             "write": actions, "metadata": [value, mask], "goto": 1, "cookie": 1, "idle_timeout": 5,
             "hard_timeout": 9, "flags": 1}
    group    {"id": 1, "type": "select",
             "buckets": [{"weight": 1, "watch_port": 2, "watch_group": 3, "actions": ...}]}
    meter    {"id": 1, "flags": 4, "bands": [{"type": "drop", "rate": 5, "burst": 5},
             {"type": "dscp_remark", "rate": 5, "burst": 5, "level": 1}]}
"""

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

PORTS = {
    "in_port": ofp.OFPP_IN_PORT,
    "table": ofp.OFPP_TABLE,
    "normal": ofp.OFPP_NORMAL,
    "flood": ofp.OFPP_FLOOD,
    "all": ofp.OFPP_ALL,
    "controller": ofp.OFPP_CONTROLLER,
    "local": ofp.OFPP_LOCAL,
    "any": ofp.OFPP_ANY,
}
PORT_NAMES = {number: name for name, number in PORTS.items()}
# Actions without argument, and actions with one argument, whose name in os-ken is given.
BARE = {
    "pop_vlan": parser.OFPActionPopVlan,
    "pop_pbb": parser.OFPActionPopPbb,
    "dec_ttl": parser.OFPActionDecNwTtl,
    "dec_mpls_ttl": parser.OFPActionDecMplsTtl,
    "copy_ttl_out": parser.OFPActionCopyTtlOut,
    "copy_ttl_in": parser.OFPActionCopyTtlIn,
}
WITH_NUMBER = {
    "group": (parser.OFPActionGroup, "group_id"),
    "set_queue": (parser.OFPActionSetQueue, "queue_id"),
    "push_vlan": (parser.OFPActionPushVlan, "ethertype"),
    "push_pbb": (parser.OFPActionPushPbb, "ethertype"),
    "push_mpls": (parser.OFPActionPushMpls, "ethertype"),
    "pop_mpls": (parser.OFPActionPopMpls, "ethertype"),
    "set_ttl": (parser.OFPActionSetNwTtl, "nw_ttl"),
    "set_mpls_ttl": (parser.OFPActionSetMplsTtl, "mpls_ttl"),
}
GROUP_TYPES = {"all": ofp.OFPGT_ALL, "select": ofp.OFPGT_SELECT, "indirect": ofp.OFPGT_INDIRECT, "ff": ofp.OFPGT_FF}
GROUP_NAMES = {number: name for name, number in GROUP_TYPES.items()}


class FormError(Exception):
    """The received JSON does not have the required form."""


def known(form, keys, what):
    """Raises FormError for unknown keys, which would be ignored otherwise."""
    if not isinstance(form, dict):
        raise FormError("%s is an object, not %r" % (what, form))
    other = sorted(set(form) - set(keys))
    if other:
        raise FormError("%s has no %s; it can have %s" % (what, ", ".join(other), ", ".join(keys)))


def port(form):
    """Returns the port number of a form."""
    if form in PORTS:
        return PORTS[form]
    if isinstance(form, int):
        return form
    raise FormError("a port is a number or one of %s, not %r" % (", ".join(PORTS), form))


def match(form):
    """Converts a form to an OFPMatch."""
    return parser.OFPMatch(**{name: tuple(v) if isinstance(v, list) else v for name, v in form.items()})


def match_form(of):
    """Converts an OFPMatch to its form."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in of.items()}


def action(form):
    """Converts a form to an action."""
    if isinstance(form, str) and form in BARE:
        return BARE[form]()
    known(form, ["output", "max_len", "set_field", *WITH_NUMBER], "an action")
    if "output" in form:
        return parser.OFPActionOutput(port(form["output"]), form.get("max_len", ofp.OFPCML_NO_BUFFER))
    if len(form) != 1:
        raise FormError("an action has exactly one key, not %r" % (form,))
    ((name, value),) = form.items()
    if name == "set_field":
        return parser.OFPActionSetField(**value)
    kind, argument = WITH_NUMBER[name]
    return kind(**{argument: value})


def actions(forms):
    """Converts forms to actions."""
    return [action(form) for form in forms]


def action_form(of):
    """Converts an action to its form."""
    if isinstance(of, parser.OFPActionOutput):
        form = {"output": PORT_NAMES.get(of.port, of.port)}
        return {**form, "max_len": of.max_len} if of.port == ofp.OFPP_CONTROLLER else form
    if isinstance(of, parser.OFPActionSetField):
        return {"set_field": {of.key: of.value}}
    for name, kind in BARE.items():
        if isinstance(of, kind):
            return name
    for name, (kind, argument) in WITH_NUMBER.items():
        if isinstance(of, kind):
            return {name: getattr(of, argument)}
    return {"type": of.type}


INSTRUCTIONS = ["meter", "apply", "clear", "write", "metadata", "goto"]
FLOW = ["table", "priority", "match", "cookie", "cookie_mask", "idle_timeout", "hard_timeout", "flags", "buffer"]
FLOW += ["out_port", "out_group", *INSTRUCTIONS]


def instructions(form):
    """Returns the instructions of a flow's form."""
    made = []
    if "meter" in form:
        made.append(parser.OFPInstructionMeter(form["meter"]))
    if "apply" in form:
        made.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions(form["apply"])))
    if form.get("clear"):
        made.append(parser.OFPInstructionActions(ofp.OFPIT_CLEAR_ACTIONS, []))
    if "write" in form:
        made.append(parser.OFPInstructionActions(ofp.OFPIT_WRITE_ACTIONS, actions(form["write"])))
    if "metadata" in form:
        made.append(parser.OFPInstructionWriteMetadata(*form["metadata"]))
    if "goto" in form:
        made.append(parser.OFPInstructionGotoTable(form["goto"]))
    return made


def instruction_form(of):
    """Returns the part of a flow's form that an instruction contributes."""
    if isinstance(of, parser.OFPInstructionMeter):
        return {"meter": of.meter_id}
    if isinstance(of, parser.OFPInstructionGotoTable):
        return {"goto": of.table_id}
    if isinstance(of, parser.OFPInstructionWriteMetadata):
        return {"metadata": [of.metadata, of.metadata_mask]}
    if of.type == ofp.OFPIT_CLEAR_ACTIONS:
        return {"clear": True}
    name = "apply" if of.type == ofp.OFPIT_APPLY_ACTIONS else "write"
    return {name: [action_form(a) for a in of.actions]}


def flow_mod(switch, command, form):
    """Converts a flow's form to an OFPFlowMod. A delete without a table applies to all tables."""
    known(form, FLOW, "a flow")
    delete = command in (ofp.OFPFC_DELETE, ofp.OFPFC_DELETE_STRICT)
    return parser.OFPFlowMod(
        switch,
        command=command,
        table_id=form.get("table", ofp.OFPTT_ALL if delete else 0),
        priority=form.get("priority", ofp.OFP_DEFAULT_PRIORITY),
        match=match(form.get("match", {})),
        instructions=instructions(form),
        cookie=form.get("cookie", 0),
        cookie_mask=form.get("cookie_mask", 0),
        idle_timeout=form.get("idle_timeout", 0),
        hard_timeout=form.get("hard_timeout", 0),
        flags=form.get("flags", 0),
        buffer_id=form.get("buffer", ofp.OFP_NO_BUFFER),
        out_port=port(form.get("out_port", "any")),
        out_group=form.get("out_group", ofp.OFPG_ANY),
    )


def flow_form(of):
    """Converts a flow of a dump to its form."""
    form = {"table": of.table_id, "priority": of.priority, "match": match_form(of.match), "cookie": of.cookie}
    form.update(idle_timeout=of.idle_timeout, hard_timeout=of.hard_timeout, flags=of.flags)
    for instruction in of.instructions:
        form.update(instruction_form(instruction))
    return form


def group_mod(switch, command, form):
    """Converts a group's form to an OFPGroupMod."""
    known(form, ["id", "type", "buckets"], "a group")
    if form.get("type", "all") not in GROUP_TYPES:
        raise FormError("a group's type is one of %s" % ", ".join(GROUP_TYPES))
    buckets = []
    for bucket in form.get("buckets", []):
        known(bucket, ["weight", "watch_port", "watch_group", "actions"], "a bucket")
        watch = port(bucket.get("watch_port", "any")), bucket.get("watch_group", ofp.OFPG_ANY)
        buckets.append(parser.OFPBucket(bucket.get("weight", 0), *watch, actions(bucket.get("actions", []))))
    return parser.OFPGroupMod(switch, command, GROUP_TYPES[form.get("type", "all")], form["id"], buckets)


def group_form(of):
    """Converts a group's description to its form."""
    buckets = []
    for bucket in of.buckets:
        form = {"weight": bucket.weight, "actions": [action_form(a) for a in bucket.actions]}
        if bucket.watch_port != ofp.OFPP_ANY:
            form["watch_port"] = bucket.watch_port
        if bucket.watch_group != ofp.OFPG_ANY:
            form["watch_group"] = bucket.watch_group
        buckets.append(form)
    return {"id": of.group_id, "type": GROUP_NAMES[of.type], "buckets": buckets}


def meter_mod(switch, command, form):
    """Converts a meter's form to an OFPMeterMod."""
    known(form, ["id", "flags", "bands"], "a meter")
    bands = []
    for band in form.get("bands", []):
        known(band, ["type", "rate", "burst", "level"], "a band")
        if band["type"] == "drop":
            bands.append(parser.OFPMeterBandDrop(band["rate"], band.get("burst", 0)))
        elif band["type"] == "dscp_remark":
            bands.append(parser.OFPMeterBandDscpRemark(band["rate"], band.get("burst", 0), band["level"]))
        else:
            raise FormError("a band's type is drop or dscp_remark, not %r" % (band["type"],))
    return parser.OFPMeterMod(switch, command, form.get("flags", ofp.OFPMF_KBPS), form["id"], bands)


def meter_form(of):
    """Converts a meter's configuration to its form."""
    bands = []
    for band in of.bands:
        form = {"rate": band.rate, "burst": band.burst_size}
        if band.type == ofp.OFPMBT_DSCP_REMARK:
            bands.append({"type": "dscp_remark", **form, "level": band.prec_level})
        else:
            bands.append({"type": "drop", **form})
    return {"id": of.meter_id, "flags": of.flags, "bands": bands}


def plain(of):
    """Converts statistics to JSON under OpenFlow's names, without lengths."""
    if isinstance(of, bytes):
        return of.rstrip(b"\0").decode(errors="replace")
    if isinstance(of, (list, tuple)) and not hasattr(of, "_asdict"):
        return [plain(item) for item in of]
    fields = of._asdict() if hasattr(of, "_asdict") else getattr(of, "__dict__", None)
    if fields is None:
        return of
    return {name: plain(value) for name, value in fields.items() if name not in ("len", "length")}
