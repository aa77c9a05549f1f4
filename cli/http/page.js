"use strict";
// The stream clusters itself: everything is asked again when the model's epoch changes.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e0a800", "#56b4e9", "#8c564b",
  "#7f6bd6", "#b5bd2c", "#e377c2"];
const EVENTS_SHOWN = 14;
const FADE_MS = 1500;
const RETRY_MS = 3000;
const SECONDS_BACK = 60;
const at = (id) => document.getElementById(id);
let points = [];
let colours = new Map();
let seen = new Map();
let place = null;

const colour = (cluster) => colours.get(cluster) || "#8a939c";

function headers() {
  const token = sessionStorage.getItem("token");
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function open(address, more) {
  const answer = await fetch(address, { headers: { ...headers(), ...more } });
  if (answer.ok) return answer;
  at("key").hidden = answer.status !== 401;
  throw new Error((await answer.json()).detail);
}

const ask = async (address) => (await open(address)).json();

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function number(value) {
  if (typeof value !== "number") return value ?? "";
  return Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

async function refresh() {
  const [stream, clusters, plane] = await Promise.all([
    ask("/v1/stream"), ask("/v1/clusters?limit=40"), ask("/v1/points?limit=2000"),
  ]);
  if (place === null) {
    // What led to the newest publication; from here on events come by themselves.
    const since = Math.max(0, (stream.published_at ?? 0) - SECONDS_BACK);
    const lineage = await ask(`/v1/lineage?limit=1000&since=${since}`);
    lineage.items.slice(-EVENTS_SHOWN).forEach(showEvent);
  }
  at("key").hidden = true;
  at("name").textContent = `${stream.n_clusters} clusters of ${stream.n_inserted} observations`;
  document.title = `${stream.name}: ${stream.n_clusters} clusters`;
  at("state").textContent = `stream ${stream.name}, family ${stream.family}, epoch ${stream.epoch}`;
  colours = new Map(clusters.items.map((each, i) => [each.cluster, COLOURS[i % COLOURS.length]]));
  showFacts(stream);
  showClusters(clusters.items);
  const now = performance.now();
  const before = seen;
  seen = new Map();
  points = plane.items.map(([x, y, cluster, key], i) => {
    const name = key ?? `${x} ${y} ${i}`;
    const old = before.get(name);
    const since = old && old.cluster === cluster ? old.since : now;
    seen.set(name, { cluster, since });
    return { x, y, cluster, since };
  }).filter((point) => point.x !== null && point.y !== null);
  at("axes").textContent = `${plane.axes[0]} across, ${plane.axes[1]} up. ${plane.how}`;
  requestAnimationFrame(draw);
}

function showFacts(stream) {
  const facts = { observations: stream.n_inserted, clusters: stream.n_clusters,
    ended: stream.n_clusters_retired, publication: stream.publication,
    "dead letters": stream.n_dead };
  at("facts").replaceChildren();
  for (const [name, value] of Object.entries(facts)) {
    const group = element("div", undefined, at("facts"));
    element("dt", name, group);
    element("dd", value, group);
  }
}

function showClusters(items) {
  const table = at("clusters");
  table.replaceChildren();
  if (items.length === 0) return;
  const names = Object.keys(items[0].features);
  const head = element("tr", undefined, table);
  ["cluster", "size", "stability", ...names].forEach((title) => element("th", title, head));
  for (const each of items) {
    const row = element("tr", undefined, table);
    const first = element("td", undefined, row);
    const dot = element("span", undefined, first);
    dot.className = "dot";
    dot.style.background = colour(each.cluster);
    first.append(String(each.cluster));
    element("td", each.size, row);
    element("td", each.stability === null ? "" : `${Math.round(100 * each.stability)}%`, row);
    for (const name of names) {
      const { centre, spread } = each.features[name];
      element("td", spread === null ? number(centre) : `${number(centre)} ± ${number(spread)}`, row);
    }
  }
}

function showEvent(event) {
  const list = at("events");
  const from = event.parents.length ? ` from ${event.parents.slice(0, 4).join(", ")}` : "";
  const line = document.createElement("li");
  line.textContent = `${event.time ?? ""} ${event.kind} of ${event.cluster}${from}, size ${event.size}`;
  list.prepend(line);
  while (list.children.length > EVENTS_SHOWN) list.lastChild.remove();
}

function bounds(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const low = sorted[0], high = sorted[sorted.length - 1];
  const margin = 0.05 * (high - low || 1);
  return [low - margin, high + margin];
}

function draw(now) {
  const canvas = at("plane");
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  if (points.length === 0) return;
  const [left, right] = bounds(points.map((point) => point.x));
  const [bottom, top] = bounds(points.map((point) => point.y));
  let moving = false;
  for (const point of points) {
    const fresh = Math.max(0, 1 - (now - point.since) / FADE_MS);
    moving = moving || fresh > 0;
    pen.globalAlpha = 0.75;
    pen.fillStyle = colour(point.cluster);
    pen.beginPath();
    pen.arc(width * (point.x - left) / (right - left), height * (top - point.y) / (top - bottom),
      2.5 + 4 * fresh, 0, 2 * Math.PI);
    pen.fill();
  }
  if (moving) requestAnimationFrame(draw);
}

// By fetch, because an EventSource cannot carry a token.
async function listen() {
  const last = place === null ? {} : { "Last-Event-ID": String(place) };
  const answer = await open("/v1/events", last);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) await told(part);
  }
}

async function told(part) {
  const field = (name) => part.split("\n").find((line) => line.startsWith(`${name}: `))
    ?.slice(name.length + 2);
  if (field("event") === "lineage") showEvent(JSON.parse(field("data")));
  if (field("event") === "epoch") {
    await refresh();
    place = Number(field("id"));
  }
}

async function live() {
  for (;;) {
    try {
      await listen();
    } catch (error) {
      at("state").textContent = String(error.message || error);
    }
    await new Promise((resume) => setTimeout(resume, RETRY_MS));
  }
}

at("key").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value);
});
window.addEventListener("resize", () => requestAnimationFrame(draw));
live();
