// SPDX-License-Identifier: Apache-2.0
// Draws the network of /v1/status and updates it every second. Texts from the network are only set as the text of
// elements and as labels of the graph, which is drawn on a canvas. They are never parsed as HTML.
"use strict";

const UPDATE_MS = 1000;
const ROWS = ["core", "aggregation", "edge"];
let graph = null;
let drawn = "";

function element(id) {
  return document.getElementById(id);
}

function fill(id, rows) {
  element(id).replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    for (const cell of cells) {
      row.insertCell().textContent = cell;
    }
    return row;
  }));
}

// Returns the states of switches of all applications, by datapath ID.
function merged(applications) {
  const found = {};
  for (const application of Object.values(applications)) {
    for (const [id, state] of Object.entries(application.switches || {})) {
      found[id] = Object.assign(found[id] || {}, state);
    }
  }
  return found;
}

function short(id) {
  return id.replace(/^0+(?=.)/, "");
}

function elements(topology, states) {
  const nodes = topology.switches.map(({ id }) => {
    const layer = (states[id] || {}).layer || "switch";
    return { data: { id: "s" + id, label: short(id) }, classes: layer };
  });
  const known = new Set(topology.switches.map(({ id }) => id));
  const edges = topology.links.map(({ a, b }) => (
    { data: { id: `l${a.switch}:${a.port}-${b.switch}:${b.port}`, source: "s" + a.switch, target: "s" + b.switch } }));
  for (const { mac, at, addresses } of topology.hosts.filter((host) => known.has(host.at.switch))) {
    nodes.push({ data: { id: "h" + mac, label: addresses[0] || mac }, classes: "host" });
    edges.push({ data: { id: "e" + mac, source: "h" + mac, target: "s" + at.switch } });
  }
  return { nodes, edges };
}

// Returns the layout: rows of layers for a tree, otherwise chosen by the library.
function layout(nodes) {
  const rows = ROWS.map((layer) => nodes.filter((node) => node.classes === layer));
  if (rows.some((row) => row.length === 0)) {
    return { name: "cose", animate: false };
  }
  const positions = {};
  [...rows, nodes.filter((node) => node.classes === "host")].forEach((row, y) => {
    row.forEach((node, x) => {
      positions[node.data.id] = { x: 1000 * (x + 0.5) / row.length, y: 120 * y };
    });
  });
  return { name: "preset", positions };
}

function draw(topology, states) {
  if (typeof cytoscape === "undefined") {
    element("graph").textContent = "Cytoscape.js is not installed: run scripts/setup.sh lab";
    return;
  }
  const found = elements(topology, states);
  const text = JSON.stringify(found);
  if (text === drawn) {
    return;
  }
  drawn = text;
  if (graph) {
    graph.destroy();
  }
  graph = cytoscape({
    container: element("graph"),
    elements: found,
    layout: layout(found.nodes),
    style: [
      { selector: "node", style: { label: "data(label)", "font-size": 12, "background-color": "#4878a8" } },
      { selector: ".core", style: { "background-color": "#a84848" } },
      { selector: ".aggregation", style: { "background-color": "#a88a48" } },
      { selector: ".host", style: { shape: "rectangle", width: 16, height: 16, "background-color": "#888" } },
      { selector: "edge", style: { width: 2, "line-color": "#aaa", "curve-style": "bezier" } },
    ],
  });
}

function show(status) {
  const { topology, applications } = status;
  const states = merged(applications);
  const names = Object.keys(applications).join(", ") || "none";
  element("summary").textContent =
    `${topology.switches.length} switches, ${topology.links.length} links, ${topology.hosts.length} hosts; applications: ${names}`;
  const problems = Object.values(applications).flatMap((application) => application.problems || []);
  element("problems").replaceChildren(...problems.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  fill("switches", topology.switches.map(({ id }) => {
    const state = states[id] || {};
    return [id, state.layer || "", state.state || "", state.problem || ""];
  }));
  fill("hosts", topology.hosts.map(({ mac, at, addresses }) => [mac, at.switch, at.port, addresses.join(", ")]));
  draw(topology, states);
  document.body.dataset.drawn = graph ? `${graph.nodes().length} ${graph.edges().length}` : "";
}

async function update() {
  try {
    const response = await fetch("v1/status");
    if (!response.ok) {
      throw new Error(`the controller answers ${response.status}`);
    }
    show(await response.json());
  } catch (error) {
    element("summary").textContent = `The controller does not answer: ${error.message}`;
  }
  setTimeout(update, UPDATE_MS);
}

update();
