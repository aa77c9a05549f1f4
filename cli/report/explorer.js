"use strict";
// The address behind # is the whole state: what is selected, searched for, filtered, pinned. Every
// change is a change of the address, so that any view can be linked to, and Back works.
// What was there before goes when other data come, as on the live page; how people look at it stays.
let explored = null;
const seen = { sorting: { key: "typical", up: true }, manyShapes: false, longer: false, axes: "" };
const explore = (data) => {
  explored?.abort();
  explored = new AbortController();
  const { signal } = explored;
  const $ = (id) => document.getElementById(id);
  const on = (target, what, heard, how = {}) => target.addEventListener(what, heard, { signal, ...how });
  const n = data.cluster.length, rows = d3.range(n);
  const FEW_ROWS = 10, MORE_ROWS = 200, FEW_SHAPES = 12, COLOURS = 10, NEAR = 14, MANY = 100;
  const FEWEST_CALLED = 3, LEAST_CALLED = .01, FEW_LISTED = 6;
  const plural = (count) => `${count.toLocaleString("en")} ${count === 1 ? "row" : "rows"}`;
  const percent = (share) => share > 0 && share < .005 ? "<1 %" : share < 1 && share >= .995 ? ">99 %"
    : `${Math.round(100 * share)} %`;

  // Parts: clusters, and the groups that they are in.
  const groupOf = new Map(data.clusters.map((part) => [part.id, part.group]));
  const grouped = data.groups.length > 0;
  // A cluster that is in no group yet stands for itself among them.
  const alone = grouped ? data.clusters.filter((part) => part.group === null).map((part) => ({ ...part, id: `new ${part.id}` })) : [];
  const partOf = { cluster: data.cluster, group: data.cluster.map((id) => groupOf.get(id) ?? `new ${id}`) };
  const parts = { cluster: d3.index(data.clusters, (part) => part.id), group: d3.index([...data.groups, ...alone], (part) => part.id) };
  const sign = (kind, id) => parts[kind].get(id).sign;
  const svgSign = (kind, id) => {
    const [fill, shape] = sign(kind, id);
    return `<svg class="sign" viewBox="-8 -8 16 16" aria-hidden="true"><path d="${data.shapes[shape]}" ` +
      `style="fill:${fill}"/></svg>`;
  };
  const ranked = data.density.some((each) => each !== null);
  const typical = new Int32Array(n);
  const byDensity = d3.sort(rows, (i) => -(data.density[i] ?? -Infinity));

  // Values as people write them.
  const two = (value) => String(value).padStart(2, "0");
  const MONTHS = d3.timeMonths(new Date(2001, 0, 1), new Date(2002, 0, 1));
  const moment = ({ kind, dates, written }, seconds) => {
    if (kind === "moment") return new Date(seconds * 1000).toISOString().slice(0, written).replace("T", " ");
    const minutes = Math.floor(Math.round(seconds) / 60), hours = Math.floor(minutes / 60);
    if (kind === "hour") return `${two(minutes % 60)}:${two(Math.round(seconds) % 60)}`;
    if (kind === "year") return d3.timeFormat("%b %-d")(d3.timeDay.offset(MONTHS[0], Math.min(364, Math.floor(hours / 24))));
    const time = `${two(hours % 24)}:${two(minutes % 60)}`;
    if (kind === "day") return time;
    const day = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][Math.floor(hours / 24) % 7];
    return dates ? day : `${day} ${time}`;
  };
  const show = (column, value) => value === null ? "" : column.names ? column.names[value]
    : column.period || column.written ? moment(column, value) : String(value);

  // Bins, the same whatever is selected, so that an address means the same later.
  const PARTS_OF = { hour: 12, day: 24, week: 7, year: 12 };
  const binned = (column) => {
    if (column.names) {
      const counts = d3.rollup(column.values.filter((v) => v !== null), (v) => v.length, (v) => v);
      const order = d3.sort(counts.keys(), (code) => -counts.get(code));
      const shown = order.slice(0, order.length > 9 ? 8 : 9), place = new Map(shown.map((code, at) => [code, at]));
      const labels = shown.map((code) => column.names[code]);
      if (order.length > shown.length) labels.push(`${order.length - shown.length} others`);
      column.bins = column.values.map((v) => v === null ? -1 : place.get(v) ?? shown.length);
      column.labels = labels;
      return;
    }
    const known = column.values.filter((v) => v !== null).sort(d3.ascending);
    const distinct = new Set(known.slice(0, 1e5));
    let edges, whole = false;
    if (column.period) edges = d3.range(PARTS_OF[column.kind] + 1).map((at) => at * column.period / PARTS_OF[column.kind]);
    else if (column.written) {
      const scale = d3.scaleUtc([d3.min(known) * 1000, d3.max(known) * 1000 + 1000], [0, 1]).nice(20);
      edges = scale.ticks(20).map((each) => each / 1000);
    } else if (distinct.size <= 15 && [...distinct].every(Number.isInteger)) {
      const values = d3.sort(distinct);
      column.bins = column.values.map((v) => v === null ? -1 : values.indexOf(v));
      column.labels = values.map(String);
      column.ends = [column.labels[0], column.labels.at(-1)];
      return;
    } else {
      let [low, high] = [d3.quantileSorted(known, .005), d3.quantileSorted(known, .995)];
      // Where the last few are not far beyond, their bars stand where they are.
      const [least, most] = [known[0], known.at(-1)];
      if (most - least <= 1.5 * (high - low)) [low, high] = [least, most];
      whole = known.every(Number.isInteger);
      if (whole) {
        const step = Math.max(1, d3.tickStep(low, high, 20)), first = Math.floor(low / step);
        edges = d3.range(Math.floor(high / step) - first + 2).map((at) => (first + at) * step);
      } else {
        const scale = d3.scaleLinear([low, high > low ? high : low + 1], [0, 1]).nice(20);
        edges = scale.ticks(20);
        if (edges.length < 2) edges = scale.domain();
      }
    }
    // What lies beyond the ends is counted in the first and the last.
    column.bins = column.values.map((v) => v === null ? -1
      : Math.max(0, Math.min(edges.length - 2, d3.bisectRight(edges, v) - 1)));
    // A bar of whole numbers ends before the next begins.
    const last = edges.length - 2, end = (at) => whole ? edges[at + 1] - 1 : edges[at + 1];
    const higher = whole ? d3.bisectLeft(known, edges[last + 1]) : d3.bisectRight(known, edges[last + 1]);
    column.lower = d3.bisectLeft(known, edges[0]); column.higher = known.length - higher;
    const days = column.written && edges.every((each) => each % 86400 === 0);
    const written = column.period ? (v) => moment(column, v % column.period)
      : column.written ? (v) => moment(days ? { ...column, written: 10 } : column, v) : d3.format(".6~g");
    // A bar of dates is one day; one at an end that is open has no end.
    column.labels = edges.slice(0, -1).map((from, at) => {
      if (column.dates) return written(from);
      if (column.lower && at === 0) return `at most ${written(end(at))}`;
      if (column.higher && at === last) return `at least ${written(from)}`;
      return end(at) === from ? written(from) : `${written(from)} to ${written(end(at))}`;
    });
    column.ends = [written(edges[0]), written(column.period ? edges[last] : end(last))];
    if (column.lower) column.below = `${column.lower.toLocaleString("en")} lower, to ${written(known[0])}`;
    if (column.higher) column.beyond = `${column.higher.toLocaleString("en")} higher, to ${written(known.at(-1))}`;
  };
  data.columns.forEach(binned);
  const moments = new Set(data.columns.filter((column) => column.written).map((column) => column.name));

  // State, from the address and back.
  let state = {}, inside = new Uint8Array(n).fill(1), members = rows;
  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    const part = (kind) => given.has(kind) && parts[kind].has(Number(given.get(kind))) ? Number(given.get(kind)) : null;
    const filters = new Map();
    data.columns.forEach((column, at) => {
      const chosen = (given.get(`is.${column.name}`) ?? "").split(".").filter(Boolean).map(Number)
        .filter((bin) => bin < column.labels.length);
      if (chosen.length) filters.set(at, new Set(chosen));
    });
    const area = (given.get("area") ?? "").split(",").map(Number);
    const row = given.has("row") ? data.keys.indexOf(given.get("row")) : -1;
    return { cluster: part("cluster"), group: part("group"), q: given.get("q") ?? "", filters, row,
      area: area.length === 4 && area.every(Number.isFinite) ? area : null, by: given.get("by") };
  };
  const address = (next) => {
    const told = new URLSearchParams();
    for (const name of ["group", "cluster", "q", "by"]) if ((next[name] ?? "") !== "") told.set(name, next[name]);
    next.filters.forEach((bins, at) => told.set(`is.${data.columns[at].name}`, d3.sort(bins).join(".")));
    if (next.area) told.set("area", next.area.map((v) => Number(v.toPrecision(5))).join(","));
    if (next.row >= 0) told.set("row", data.keys[next.row]);
    return `#${told}`;
  };
  const go = (change, quietly = false) => {
    const to = address({ ...state, ...change });
    if (to === (location.hash || "#")) return;
    if (quietly) { history.replaceState(null, "", to); apply(); } else location.hash = to;
  };
  const clear = { group: null, cluster: null, q: "", filters: new Map(), area: null, row: -1 };
  const selected = () => state.cluster !== null ? ["cluster", state.cluster]
    : state.group !== null ? ["group", state.group] : null;
  const titled = ([kind, id]) => `${kind === "group" ? "Group" : "Cluster"} ${id}`;

  let hay = null;
  const haystack = () => hay ??= rows.map((i) => [data.keys[i], data.texts[i] ?? "",
    `cluster ${data.cluster[i]}`, grouped ? `group ${partOf.group[i]}` : "",
    ...data.columns.map((column) => show(column, column.values[i]))].join("\n").toLowerCase());

  // Names hold numbers, too, which are no values of each row.
  const calledLike = (i, wanted) => /\p{L}/u.test(wanted) && ["cluster", "group"]
    .some((kind) => parts[kind].get(partOf[kind][i])?.name.toLowerCase().includes(wanted));

  const choose = () => {
    const wanted = state.q.trim().toLowerCase(), part = selected();
    const filters = [...state.filters].map(([at, bins]) => [data.columns[at].bins, bins]);
    const [x0, y0, x1, y1] = state.area ?? [];
    inside = new Uint8Array(n);
    for (let i = 0; i < n; i++) {
      inside[i] = (!part || partOf[part[0]][i] === part[1])
        && (!wanted || haystack()[i].includes(wanted) || calledLike(i, wanted))
        && (!state.area || (data.x[i] >= x0 && data.x[i] <= x1 && data.y[i] >= y0 && data.y[i] <= y1))
        && filters.every(([bins, chosen]) => chosen.has(bins[i]));
    }
    members = rows.filter((i) => inside[i]);
    byDensity.filter((i) => inside[i]).forEach((i, rank) => { typical[i] = rank + 1; });
  };

  // The map: points on a canvas, drawn once for a place; while it moves, its picture moves.
  const plot = $("plot"), canvas = $("points"), context = canvas.getContext("2d");
  const picture = document.createElement("canvas"), brush = picture.getContext("2d");
  const over = d3.select("#over"), MARGIN = { left: 52, right: 12, top: 10, bottom: 40 };
  const located = rows.filter((i) => data.x[i] !== null && data.y[i] !== null);
  // Where one has moved to stays, while the axes do.
  if (seen.axes !== data.axes.join()) plot.__zoom = d3.zoomIdentity;
  seen.axes = data.axes.join();
  let width = 0, height = 0, baseX, baseY, px, py, tree, transform = d3.zoomTransform(plot), drawnAt = transform;
  let colourBy = "cluster", hovered = -1, preview = null, waiting = 0, settling = 0;
  // A wheel, or one finger, scrolls the page that the map is in.
  const isMeant = (event) => event.type === "wheel" ? event.ctrlKey || event.metaKey
    : event.type !== "touchstart" || event.touches.length > 1;
  const zoom = d3.zoom().scaleExtent([.5, 400])
    .filter((event) => isMeant(event) && !event.button && !event.shiftKey && !plot.classList.contains("selecting"))
    // With Ctrl a wheel comes in steps of 100, and two fingers on a pad in small ones.
    .wheelDelta((event) => -event.deltaY * (event.deltaMode === 1 ? .05 : event.deltaMode ? 1 : .002)
      * (event.ctrlKey && Math.abs(event.deltaY) < 20 ? 10 : 1))
    .on("zoom", (event) => { transform = event.transform; moved(); });

  const measure = () => {
    const padded = (values) => {
      const [low, high] = d3.extent(values), pad = .03 * ((high - low) || 1);
      return [low - pad, high + pad];
    };
    let dx = padded(located.map((i) => data.x[i])), dy = padded(located.map((i) => data.y[i]));
    width = plot.clientWidth;
    const across = width - MARGIN.left - MARGIN.right, around = MARGIN.top + MARGIN.bottom;
    // A map of the world is no higher than it needs to be.
    plot.style.maxHeight = data.land ? `${Math.ceil(Math.max(180, across * (dy[1] - dy[0]) / (dx[1] - dx[0])) + around)}px` : "";
    height = plot.clientHeight;
    const dpr = window.devicePixelRatio || 1;
    for (const [each, times] of [[canvas, 1], [picture, 2]]) {
      each.width = width * times * dpr; each.height = height * times * dpr;
      each.getContext("2d").setTransform(dpr, 0, 0, dpr, 0, 0);
    }
    const room = [across, height - around];
    if (data.land) {  // a degree is as wide as it is high
      const per = Math.max((dx[1] - dx[0]) / room[0], (dy[1] - dy[0]) / room[1]);
      const spread = ([a, b], pixels) => [(a + b - per * pixels) / 2, (a + b + per * pixels) / 2];
      dx = spread(dx, room[0]); dy = spread(dy, room[1]);
    }
    baseX = d3.scaleLinear(dx, [MARGIN.left, width - MARGIN.right]);
    baseY = d3.scaleLinear(dy, [height - MARGIN.bottom, MARGIN.top]);
    px = Float32Array.from(data.x, (v) => v === null ? NaN : baseX(v));
    py = Float32Array.from(data.y, (v) => v === null ? NaN : baseY(v));
    tree = d3.quadtree(located, (i) => px[i], (i) => py[i]);
  };

  let sprites = new Map(), colours = {};
  const themed = () => {
    const style = getComputedStyle(document.documentElement);
    colours = Object.fromEntries(["ground", "ink", "line", "land", "quiet", ...d3.range(COLOURS).map((c) => `c${c}`)]
      .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    sprites = new Map();
  };
  const sprite = (id, faint, radius) => {
    const [fill, shape] = sign(colourBy, id), key = `${fill}${shape}${faint}${radius}`;
    if (!sprites.has(key)) {
      const dpr = window.devicePixelRatio || 1, size = 2 * radius + 2, made = document.createElement("canvas");
      made.width = made.height = Math.ceil(size * dpr);
      const pen = made.getContext("2d");
      pen.scale(dpr, dpr); pen.translate(size / 2, size / 2); pen.scale(radius / 7, radius / 7);
      pen.globalAlpha = faint ? .35 : .85;
      pen.fillStyle = faint ? colours.quiet : fill.replace(/var\(--(\w+)\)/g, (_, name) => colours[name]);
      pen.fill(new Path2D(data.shapes[shape]));
      sprites.set(key, made);
    }
    return sprites.get(key);
  };

  const paint = () => {
    drawnAt = transform;
    brush.clearRect(0, 0, 2 * width, 2 * height);
    if (data.land) {
      // Cut where it goes on at the other side, as a line across the map would show there.
      const flat = d3.geoEquirectangular().scale(transform.k * (baseX(1) - baseX(0)) * 180 / Math.PI)
        .translate([transform.applyX(baseX(0)) + width / 2, transform.applyY(baseY(0)) + height / 2]);
      const path = d3.geoPath(flat, brush);
      brush.fillStyle = colours.land; brush.beginPath();
      path(topojson.feature(data.land, data.land.objects.land)); brush.fill();
    }
    const shown = preview ?? inside, ids = partOf[colourBy];
    const radius = Math.max(1.6, Math.min(6, (located.length < 2000 ? 4.5 : 60 / Math.sqrt(located.length) + 1.6)
      * Math.sqrt(Math.min(4, Math.max(1, transform.k)))));
    const size = 2 * radius + 2;
    for (const faint of [true, false]) {
      for (const i of located) {
        if (!!shown[i] === faint) continue;
        const x = transform.k * px[i] + transform.x + width / 2, y = transform.k * py[i] + transform.y + height / 2;
        if (x < 0 || y < 0 || x > 2 * width || y > 2 * height) continue;
        const r = faint ? Math.max(1.4, .7 * radius) : radius;
        brush.drawImage(sprite(ids[i], faint, r), x - r - 1, y - r - 1, 2 * r + 2, 2 * r + 2);
      }
    }
    frame();
  };

  const frame = () => {
    waiting = 0;
    if (!width || !height || signal.aborted) return;
    const k = transform.k / drawnAt.k;
    context.clearRect(0, 0, width, height);
    context.drawImage(picture, transform.x - k * (width / 2 + drawnAt.x), transform.y - k * (height / 2 + drawnAt.y),
      2 * width * k, 2 * height * k);
    for (const i of new Set([state.row, hovered])) {
      if (i < 0 || Number.isNaN(px[i])) continue;
      context.beginPath();
      context.arc(transform.applyX(px[i]), transform.applyY(py[i]), 11, 0, 2 * Math.PI);
      for (const [wide, ink] of [[7, colours.ground], [3, colours.ink]]) {
        context.lineWidth = wide; context.strokeStyle = ink; context.stroke();
      }
    }
    axes();
  };
  const moved = () => {
    waiting ||= requestAnimationFrame(frame);
    clearTimeout(settling); settling = setTimeout(() => { labels(); paint(); }, 120);
  };

  // There are no degrees beyond those of the world.
  const ticked = (axis, scale, most) => axis.ticks(6).tickSizeOuter(0)
    .tickValues(scale.ticks(6).filter((value) => !data.land || Math.abs(value) <= most));
  const axes = () => {
    const x = transform.rescaleX(baseX), y = transform.rescaleY(baseY);
    over.select(".x").attr("transform", `translate(0,${height - MARGIN.bottom})`).call(ticked(d3.axisBottom(x), x, 180));
    over.select(".y").attr("transform", `translate(${MARGIN.left},0)`).call(ticked(d3.axisLeft(y), y, 90));
    over.selectAll(".label").attr("transform", (d) => `translate(${transform.applyX(d.x)},${transform.applyY(d.y)})`);
    over.select(".area").attr("visibility", state.area ? "visible" : "hidden").each(function () {
      if (!state.area) return;
      const [x0, y0, x1, y1] = state.area;
      d3.select(this).attr("x", x(x0)).attr("y", y(y1)).attr("width", x(x1) - x(x0)).attr("height", y(y0) - y(y1));
    });
  };
  const scaffold = () => {
    over.selectAll("*").remove();
    over.append("rect").attr("class", "area");
    // Land and points go on behind the numbers of the axes.
    over.append("path").attr("class", "margin").attr("d", ["M0 0h", MARGIN.left, "v", height - MARGIN.bottom, "H", width, "V", height, "H0Z"].join(" "));
    over.append("g").attr("class", "x"); over.append("g").attr("class", "y");
    over.append("text").attr("class", "axis-name").attr("x", width - MARGIN.right).attr("y", height - 6)
      .attr("text-anchor", "end").text(data.axes[0]);
    over.append("text").attr("class", "axis-name").attr("transform", `translate(14,${MARGIN.top})rotate(-90)`)
      .attr("text-anchor", "end").text(data.axes[1]);
    over.append("g").attr("class", "labels");
  };
  // Where there are groups, a number alone is that of a group.
  const calledBy = (id) => !grouped || Number.isInteger(id) && colourBy === "group" ? String(id)
    : `cluster ${String(id).replace("new ", "")}`;
  const labels = () => {  // at the middle of each part, the largest first, where there is room
    const [x0, y0] = transform.invert([0, 0]), [x1, y1] = transform.invert([width, height]);
    const there = members.filter((i) => px[i] >= x0 && px[i] <= x1 && py[i] >= y0 && py[i] <= y1), seenRows = there.length;
    const ids = partOf[colourBy], byPart = d3.group(there, (i) => ids[i]);
    const placed = [], largest = d3.max(byPart.values(), (own) => own.length) ?? 0;
    for (const [id, own] of d3.sort(byPart, (d) => -d[1].length)) {
      // A few rows are no part of the picture; of those that are seen alone the largest are.
      if (own.length < Math.min(largest, Math.max(FEWEST_CALLED, LEAST_CALLED * seenRows))) break;
      const spot = { x: d3.median(own, (i) => px[i]), y: d3.median(own, (i) => py[i]) };
      // The middle of few pixels would be hidden by its label, which stands above them.
      const above = d3.quantile(own, .02, (i) => py[i]);
      if ((spot.y - above) * transform.k < 12) spot.y = above - 12 / transform.k;
      const { name } = parts[colourBy].get(id), number = calledBy(id);
      spot.text = name && placed.length < 8 && name.length < Math.min(40, width / 16) ? `${number} ${name}` : number;
      const wide = 3.6 * spot.text.length + 8;
      let at = transform.applyX(spot.x), high = transform.applyY(spot.y);
      if (at < 0 || at > width || high < 0 || high > height) continue;
      at = Math.max(MARGIN.left + wide, Math.min(width - MARGIN.right - wide, at));
      high = Math.max(MARGIN.top + 8, high);
      spot.x = transform.invertX(at); spot.y = transform.invertY(high);
      if (placed.some((other) => Math.abs(other.high - high) < 16 && Math.abs(other.at - at) < wide + other.wide)) continue;
      placed.push({ ...spot, at, high, wide });
      if (placed.length === 24) break;
    }
    over.select(".labels").selectAll("text").data(placed).join("text").attr("class", "label").text((d) => d.text);
  };

  const under = (event) => {
    const [x, y] = transform.invert(d3.pointer(event, plot));
    return tree.find(x, y, NEAR / transform.k) ?? -1;
  };
  const hover = (event) => {
    const at = under(event), tip = $("tip");
    if (at !== hovered) {
      hovered = at; waiting ||= requestAnimationFrame(frame);
      if (at < 0) traced(); else trace([data.cluster[at]]);
    }
    tip.hidden = at < 0;
    if (at < 0) return;
    const told = data.columns.filter((column) => column.values[at] !== null).slice(0, 8);
    tip.replaceChildren();
    const head = d3.select(tip);
    head.append("div").html(svgSign(colourBy, partOf[colourBy][at])).append("b")
      .text(` ${data.called === "row" ? "" : `${data.called} `}${data.keys[at]}`);
    head.append("div").text(`${grouped ? `group ${partOf.group[at]}, ` : ""}cluster ${data.cluster[at]}`);
    if (data.texts.length) head.append("div").attr("class", "pattern").text(data.texts[at].slice(0, MANY));
    const list = head.append("dl");
    told.forEach((column) => { list.append("dt").text(column.name); list.append("dd").text(show(column, column.values[at])); });
    const [x, y] = d3.pointer(event, plot);
    tip.style.left = `${x > width / 2 ? Math.max(0, x - tip.offsetWidth - 12) : x + 12}px`;
    tip.style.top = `${y > height / 2 ? Math.max(0, y - tip.offsetHeight - 12) : y + 12}px`;
  };
  const click = (event) => {
    const at = under(event);
    if (at < 0) return;
    const deeper = !grouped || !Number.isInteger(partOf.group[at]) || state.group === partOf.group[at] || state.cluster !== null;
    go(deeper ? { ...clear, cluster: data.cluster[at], row: at } : { ...clear, group: partOf.group[at], row: at });
  };
  const selectArea = () => {
    let from = null;
    on(plot, "pointerdown", (event) => {
      if (event.shiftKey || plot.classList.contains("selecting")) {
        from = d3.pointer(event, plot); plot.setPointerCapture(event.pointerId); }
    });
    const spanned = (to) => {
      const x = transform.rescaleX(baseX), y = transform.rescaleY(baseY);
      const xs = d3.sort([x.invert(from[0]), x.invert(to[0])]), ys = d3.sort([y.invert(from[1]), y.invert(to[1])]);
      return [xs[0], ys[0], xs[1], ys[1]];
    };
    on(plot, "pointermove", (event) => {
      if (!from) return event.buttons ? undefined : hover(event);
      state = { ...state, area: spanned(d3.pointer(event, plot)) }; axes();
    });
    on(plot, "pointerup", (event) => {
      if (!from) return;
      const to = d3.pointer(event, plot), area = spanned(to), far = Math.hypot(to[0] - from[0], to[1] - from[1]) > 4;
      from = null;
      $("area").setAttribute("aria-pressed", "false"); plot.classList.remove("selecting");
      if (far) go({ area });
    });
  };

  // A group of one cluster stands in the tree for it, too.
  const linkOf = ([kind, id]) => document.querySelector(`.part[data-kind=${kind}][data-id="${id}"]`)
    ?? document.querySelector(`.part[data-kind=group][data-id="${groupOf.get(id)}"]`);

  // A box scrolls to what is in it, and the page stays where it is.
  const within = (box, element) => {
    const [inner, outer] = [element, box].map((each) => each.getBoundingClientRect());
    if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 3;
  };

  // A link above a list that does not scroll by itself leads far down the page.
  let led = false;

  // The tree follows: what is current, and how many rows of each part are inside.
  const follow = () => {
    const part = selected(), narrowed = state.q || state.filters.size || state.area;
    const counts = { cluster: d3.rollup(members, (v) => v.length, (i) => partOf.cluster[i]),
      group: d3.rollup(members, (v) => v.length, (i) => partOf.group[i]) };
    document.querySelectorAll(".part").forEach((link) => {
      const { kind } = link.dataset, id = Number(link.dataset.id), is = part && link === linkOf(part);
      link.removeAttribute("aria-current");
      if (is) {
        link.setAttribute("aria-current", "true"); link.closest("details")?.setAttribute("open", "");
        within($("tree"), link);
        if (led) link.closest("li").scrollIntoView({ block: "nearest" });
      }
      const found = counts[kind].get(id) ?? 0;
      link.querySelector(".match").textContent = narrowed ? `${found.toLocaleString("en")} found` : "";
      // Of a long list those are shown that have what was asked for.
      link.closest("li").hidden = Boolean(narrowed && !part && !found && members.length);
    });
    led = false;
  };

  const summary = () => {
    const part = selected(), title = $("chosen-title"), facts = $("chosen-facts");
    const narrowed = [...state.filters.keys()].length + (state.q ? 1 : 0) + (state.area ? 1 : 0);
    title.innerHTML = part ? `${svgSign(...part)} ` : "";
    title.append(part ? `${titled(part)} ${parts[part[0]].get(part[1]).name}`.trim() : narrowed ? "What was found" : "All rows");
    if (part && narrowed) title.append(": what was found in it");
    facts.replaceChildren();
    const line = document.createElement("p");
    line.textContent = members.length ? `${plural(members.length)}, ${percent(members.length / n)} of all` : "no row";
    facts.append(line);
    if (part) {
      const link = linkOf(part);
      line.textContent = link.querySelector(".size").textContent;
      if (narrowed) line.textContent += `; ${plural(members.length)} of them found`;
      facts.append(link.nextElementSibling.cloneNode(true));
    } else if (!narrowed) {
      const ways = [grouped ? "a group" : "a cluster", ...(located.length ? ["a point of the map"] : []),
        ...(data.columns.length ? ["a bar below"] : [])];
      line.textContent += `. Choose ${ways.join(" or ")} to see what is in it.`;
    }
    $("count").textContent = members.length === n ? plural(n) : `${plural(members.length)} of ${n.toLocaleString("en")}`;
    d3.select("#chips").selectAll("button").data(chips()).join("button").attr("type", "button")
      .text((d) => `${d.text} ×`).attr("aria-label", (d) => `No longer: ${d.text}`).on("click", (_, d) => go(d.without));
    $("all").hidden = $("near").hidden = $("down").hidden = !part && !narrowed;
  };
  const chips = () => {
    const found = [...state.filters].map(([at, bins]) => {
      const filters = new Map(state.filters); filters.delete(at);
      return { text: `${data.columns[at].name} ${d3.sort(bins).map((bin) => data.columns[at].labels[bin]).join(" or ")}`,
        without: { filters } };
    });
    if (selected()) found.unshift({ text: titled(selected()), without: { group: null, cluster: null } });
    if (state.area) found.push({ text: "an area of the map", without: { area: null } });
    return found;
  };

  // Lines of clusters over publications: what is looked at, and all that it came from.
  const lives = document.querySelector(".lives"), lines = lives ? [...lives.querySelectorAll("a.line")] : [];
  const links = lives ? [...lives.querySelectorAll(".link")].map((path) => ({ path, from: Number(path.dataset.from),
    to: Number(path.dataset.to), moves: path.classList.contains("move") })) : [];
  const trace = (ids) => {
    if (!lives) return;
    const own = new Set(ids), all = new Set(ids);
    for (const each of all) for (const { from, to, moves } of links) if (to === each && !moves) all.add(from);
    lives.classList.toggle("some", own.size > 0);
    for (const line of lives.querySelectorAll(".line")) line.classList.toggle("on", all.has(Number(line.dataset.id)));
    for (const { path, from, to, moves } of links)
      path.classList.toggle("on", moves ? own.has(from) || own.has(to) : all.has(to) && all.has(from));
  };
  const traced = (scrolls = false) => {
    const part = selected();
    const own = part ? data.clusters.filter((each) => (part[0] === "group" ? each.group : each.id) === part[1])
      .map((each) => each.id) : [];
    trace(part ? own : members.length < n ? members.map((i) => data.cluster[i]) : []);
    for (const line of lines) {
      if (state.cluster === Number(line.dataset.id)) line.setAttribute("aria-current", "true");
      else line.removeAttribute("aria-current");
    }
    const first = scrolls && lines.find((line) => own.includes(Number(line.dataset.id)));
    if (!first || lives.contains(document.activeElement)) return;
    within(lives.closest(".wide"), first);
  };

  // Distributions inside and outside of what is selected, the most different first.
  let ordered = "", apart = [];
  const shapes = () => {
    const total = members.length, rest = n - total;
    const told = data.columns.map((column, at) => {
      const own = new Float64Array(column.labels.length), other = new Float64Array(column.labels.length);
      let missing = 0;
      for (let i = 0; i < n; i++) {
        const bin = column.bins[i];
        if (bin < 0) missing += inside[i]; else if (inside[i]) own[bin]++; else other[bin]++;
      }
      own.forEach((_, bin) => { own[bin] /= total || 1; other[bin] /= rest || 1; });
      return { column, at, own, other, missing: missing / (total || 1),
        apart: rest ? d3.sum(own, (v, bin) => Math.abs(v - other[bin])) : 0 };
    });
    // A filter leaves them where they are, so that nothing moves under the hand.
    const part = selected(), of = part ? part.join() : rest ? "some" : "all";
    if (of !== ordered && !(ordered && of === "some" && state.filters.size)) {
      apart = d3.sort(told, (d) => -d.apart).map((d) => d.at);
      ordered = of;
    }
    const order = apart.map((at) => told[at]), shown = seen.manyShapes ? order : order.slice(0, FEW_SHAPES);
    $("key").textContent = rest && total
      ? `Filled: ${part ? titled(part).toLowerCase() : "what is selected"}. Outlined: all other rows. The columns that `
        + "differ most come first. A click on a bar filters." : "A click on a bar filters.";
    const box = d3.select("#shapes").selectAll(".shape").data(shown, (d) => d.at).join("div").attr("class", "shape")
      .attr("role", "group").attr("aria-label", (d) => d.column.name).order();
    box.each(function (d) { shape(d3.select(this), d, rest > 0 && total > 0); });
    $("more-shapes").hidden = order.length <= FEW_SHAPES;
    $("more-shapes").textContent = seen.manyShapes ? "Fewer columns" : `All ${order.length} columns`;
  };
  const shape = (box, d, both) => {
    const focused = box.node().contains(document.activeElement) ? Number(document.activeElement.dataset.bin) : -1;
    box.html("");
    const { column } = d;
    box.append("h4").text(column.name).append("span").attr("class", "quiet")
      .text(d.missing > 0 ? ` (${percent(d.missing)} missing)` : "");
    const flat = Boolean(column.names), count = column.labels.length, w = 220, h = flat ? count * 17 + 4 : 92;
    const high = d3.max([...d.own, ...(both ? d.other : [])]) || 1, open = column.below || column.beyond ? 13 : 0;
    const svg = box.append("svg").attr("viewBox", `0 0 ${w} ${h + open}`);
    const along = d3.scaleBand(d3.range(count), flat ? [0, h - 4] : [4, w - 4]).paddingInner(flat ? .15 : .06);
    const size = d3.scaleLinear([0, high], [0, flat ? w - 124 : h - 24]);
    const start = Math.min(112, 8 + 5.6 * d3.max(column.labels, (label) => label.length));
    const bar = (share) => flat ? (bin) => ["M", start + 6, along(bin), "h", size(share[bin]), "v", along.bandwidth(), "h", -size(share[bin]), "Z"].join(" ")
      : (bin) => ["M", along(bin), h - 18, "v", -size(share[bin]), "h", along.bandwidth(), "v", size(share[bin]), "Z"].join(" ");
    const chosen = state.filters.get(d.at) ?? new Set();
    const bins = svg.selectAll(".bin").data(d3.range(count)).join("g").attr("class", "bin").attr("role", "button")
      .attr("data-bin", (bin) => bin).attr("tabindex", (bin) => bin === Math.max(focused, 0) ? 0 : -1)
      .attr("aria-pressed", (bin) => chosen.has(bin))
      .attr("aria-label", (bin) => `${column.labels[bin]}: ${percent(d.own[bin])}${both ? `, elsewhere ${percent(d.other[bin])}` : ""}`)
      .on("click", (_, bin) => toggle(d.at, bin))
      .on("keydown", (event, bin) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(d.at, bin); }
        else if (step && bin + step >= 0 && bin + step < count) {
          event.preventDefault(); event.stopPropagation();
          bins.attr("tabindex", (each) => each === bin + step ? 0 : -1).filter((each) => each === bin + step).node().focus();
        }
      });
    bins.append("title").text(function () { return this.parentNode.getAttribute("aria-label"); });
    bins.append("rect").attr("class", "hit").attr("x", (bin) => flat ? 0 : along(bin)).attr("y", (bin) => flat ? along(bin) : 0)
      .attr("width", flat ? w : along.bandwidth()).attr("height", flat ? along.bandwidth() : h - 18);
    bins.append("path").attr("class", "inside").attr("d", bar(d.own));
    if (both) bins.append("path").attr("class", "outside").attr("d", bar(d.other));
    if (flat) svg.selectAll(".name").data(d3.range(count)).join("text").attr("class", "name").attr("x", start)
      .attr("y", (bin) => along(bin) + 11).attr("text-anchor", "end")
      .text((bin) => column.labels[bin].length > 20 ? `${column.labels[bin].slice(0, 19)}…` : column.labels[bin]);
    else {
      svg.append("line").attr("x1", 4).attr("x2", w - 4).attr("y1", h - 17.5).attr("y2", h - 17.5);
      // Where the bars stop short of the values, what lies beyond is told below the ends.
      for (const [at, anchor, texts] of [[4, "start", [column.ends[0], column.below]], [w - 4, "end", [column.ends[1], column.beyond]]])
        texts.forEach((text, line) => {
          if (text) svg.append("text").attr("x", at).attr("y", h - 5 + 13 * line).attr("text-anchor", anchor).text(text);
        });
    }
    if (focused >= 0) bins.filter((bin) => bin === focused).node()?.focus();
  };
  const toggle = (at, bin) => {
    const filters = new Map(state.filters), bins = new Set(filters.get(at));
    if (!bins.delete(bin)) bins.add(bin);
    if (bins.size) filters.set(at, bins); else filters.delete(at);
    go({ filters });
  };

  const toMap = () => { if (located.length) plot.scrollIntoView({ block: "nearest" }); };

  // Members, the most typical first until another order is asked for.
  let most = FEW_ROWS;
  const headings = () => [
    { name: data.called, of: (i) => data.keys[i], order: (i) => i },
    ...(grouped ? [{ name: "group", of: (i) => partOf.group[i], right: true }] : []),
    { name: "cluster", of: (i) => data.cluster[i], right: true },
    ...(ranked ? [{ name: "typical", of: (i) => typical[i], right: true }] : []),
    ...(data.texts.length ? [{ name: "text", of: (i) => data.texts[i] }] : []),
    // A time as it came in says where in the day and the week it is, too.
    ...data.columns.filter((column) => !(column.period && moments.has(column.name.replace(/ \(\w+\)$/, ""))))
      .map((column) => ({ name: column.name, of: (i) => show(column, column.values[i]),
      order: (i) => column.names ? show(column, column.values[i]) : column.values[i], right: !column.names })),
  ];
  const table = () => {
    const columns = headings(), by = columns.find((each) => each.name === seen.sorting.key) ?? columns[0];
    const order = by.order ?? by.of, ordered = d3.sort(members, (a, b) => {
      const [one, other] = [order(a), order(b)], none = (v) => v === null || v === "";
      return none(one) - none(other) || (seen.sorting.up ? 1 : -1) * d3.ascending(one, other) || a - b;
    });
    // One that a link or the map leads to is there at once; one that was clicked stays where it is.
    const pinned = state.row >= 0 && inside[state.row] ? ordered.indexOf(state.row) : -1;
    if (pinned >= most) ordered.unshift(...ordered.splice(pinned, 1));
    const box = d3.select("#members");
    box.html("");
    box.append("thead").append("tr").selectAll("th").data(columns).join("th").attr("scope", "col").classed("right", (d) => d.right)
      .attr("aria-sort", (d) => d.name === by.name ? (seen.sorting.up ? "ascending" : "descending") : null)
      .append("button").attr("type", "button").attr("data-sort", (d) => d.name)
      .text((d) => d.name + (d.name === by.name ? (seen.sorting.up ? " ▲" : " ▼") : ""))
      .on("click", (_, d) => { const { key, up } = seen.sorting; seen.sorting = { key: d.name, up: d.name !== key || !up }; table();
        box.select(`[data-sort="${CSS.escape(d.name)}"]`).node().focus(); });
    const lines = box.append("tbody").selectAll("tr").data(ordered.slice(0, most)).join("tr").classed("pinned", (i) => i === state.row)
      .on("click", (event, i) => {
        // Values can be marked and copied.
        if (!getSelection().isCollapsed) return;
        if (!event.target.closest("a")) go({ row: i });
        toMap();
      });
    columns.forEach((column, at) => {
      const cell = lines.append("td").classed("right", column.right);
      if (at) cell.text(column.of).attr("title", (i) => String(column.of(i)).length > 40 ? column.of(i) : null);
      else {
        cell.html((i) => svgSign(colourBy, partOf[colourBy][i]));
        cell.append("a").attr("href", (i) => address({ ...state, row: i })).text((i) => ` ${data.keys[i]}`);
      }
    });
    sideways();
    $("more").hidden = ordered.length <= most;
    $("more").textContent = `More of the ${plural(ordered.length)}`;
  };

  // What a narrow window cuts is a swipe away, which nobody looks for.
  const sideways = () => {
    const box = $("members"), cut = box.offsetWidth > box.parentElement.clientWidth + 1;
    $("sideways").hidden = !cut;
    if (cut) $("sideways").textContent = `Scroll it sideways for all ${headings().length} columns \u2192`;
  };
  // As many of a list as come before the map on a phone, until all are asked for.
  const listed = () => {
    const tops = document.querySelectorAll(".tree > ul > li"), only = tops.length === 1;
    const n = only ? tops[0].querySelectorAll(":scope > details > ul > li").length : tops.length;
    $("tree").classList.toggle("few", !seen.longer);
    $("longer").hidden = n <= FEW_LISTED;
    $("longer").textContent = seen.longer ? "Fewer" : `All ${n} ${only || !grouped ? "clusters" : "groups"}`;
  };

  const apply = () => {
    const before = address({ ...state, filters: state.filters ?? new Map(), row: -1 });
    state = read();
    if (before !== address({ ...state, row: -1 })) most = FEW_ROWS;
    choose();
    const part = selected();
    const several = part && part[0] === "group" && data.clusters.filter((each) => each.group === part[1]).length > 1;
    const usual = data.groups.length < 2 || several || (part && part[0] === "cluster") ? "cluster" : "group";
    colourBy = grouped && parts[state.by] ? state.by : usual;
    $("by").hidden = !grouped;
    $("by").textContent = colourBy === "group" ? "Show clusters" : "Show groups";
    if ($("search").value !== state.q) $("search").value = state.q;
    follow(); traced(true); summary(); shapes(); table(); labels(); paint();
  };

  let hinting = 0;
  const hint = (text) => {
    $("hint").textContent = text; $("hint").hidden = false;
    clearTimeout(hinting); hinting = setTimeout(() => { $("hint").hidden = true; }, 1500);
  };
  const withWheel = /Mac|iP(hone|ad)/.test(navigator.platform) ? "\u2318 and wheel" : "Ctrl and wheel";

  const resized = () => { measure(); scaffold(); labels(); paint(); sideways(); };
  const shownParts = () => [...document.querySelectorAll(".part")].filter((link) => link.checkVisibility());
  const listen = () => {
    on(window, "hashchange", apply);
    on($("search"), "input", (event) => go({ q: event.target.value }, true));
    on($("find"), "submit", (event) => event.preventDefault());
    on($("all"), "click", () => go(clear));
    on($("down"), "click", () => $("chosen").scrollIntoView());
    on($("to-map"), "click", () => $("map").scrollIntoView());
    on($("longer"), "click", () => { seen.longer = !seen.longer; listed(); });
    on($("by"), "click", () => go({ by: colourBy === "group" ? "cluster" : "group" }));
    on($("more"), "click", () => { most += MORE_ROWS; table(); });
    on($("more-shapes"), "click", () => { seen.manyShapes = !seen.manyShapes; shapes(); });
    on($("area"), "click", (event) => {
      const on = plot.classList.toggle("selecting"); event.target.setAttribute("aria-pressed", String(on)); });
    const plotted = d3.select(plot).call(zoom).on("dblclick.zoom", null);
    on($("closer"), "click", () => plotted.call(zoom.scaleBy, 1.5));
    on($("further"), "click", () => plotted.call(zoom.scaleBy, 1 / 1.5));
    on($("near"), "click", () => {
      const own = members.filter((i) => !Number.isNaN(px[i]));
      if (!own.length) return;
      const span = (of) => [d3.quantile(own, .02, of), d3.quantile(own, .98, of)];
      const [[x0, x1], [y0, y1]] = [span((i) => px[i]), span((i) => py[i])];
      const k = Math.min(400, .7 * Math.min(width / Math.max(x1 - x0, 1), height / Math.max(y1 - y0, 1)));
      plotted.call(zoom.transform, d3.zoomIdentity.translate(width / 2, height / 2).scale(k).translate(-(x0 + x1) / 2, -(y0 + y1) / 2));
    });
    on($("whole"), "click", () => plotted.call(zoom.transform, d3.zoomIdentity));
    on(plot, "click", (event) => { if (!event.shiftKey) click(event); });
    on(plot, "wheel", (event) => { if (!isMeant(event)) hint(`${withWheel} zoom the map`); });
    // Before the page has begun to scroll: the map cannot stop it afterwards.
    on(plot, "touchstart", (event) => { if (event.touches.length > 1) event.preventDefault(); }, { passive: false });
    on(plot, "touchmove", (event) => {
      if (event.touches.length === 1 && !plot.classList.contains("selecting")) hint("Two fingers move and zoom the map");
    });
    on(plot, "pointerleave", () => { hovered = -1; $("tip").hidden = true; frame(); });
    on(plot, "keydown", (event) => {
      const by = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
      if (by) plotted.call(zoom.translateBy, by[0] / transform.k, by[1] / transform.k);
      else if (event.key === "+" || event.key === "=") plotted.call(zoom.scaleBy, 1.5);
      else if (event.key === "-") plotted.call(zoom.scaleBy, 1 / 1.5);
      else if (event.key === "0") plotted.call(zoom.transform, d3.zoomIdentity);
      else return;
      event.preventDefault();
    });
    selectArea();
    on($("tree"), "keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], all = shownParts(), at = all.indexOf(document.activeElement);
      if (!step || at < 0) return;
      event.preventDefault(); all[Math.max(0, Math.min(all.length - 1, at + step))].focus();
    });
    const look = (kind, id) => {
      preview = kind ? partOf[kind].map((each) => each === id ? 1 : 0) : null; paint();
      if (!kind) traced();
      else if (kind === "group") trace(data.clusters.filter((each) => each.group === id).map((each) => each.id));
      else trace([id]);
    };
    let rested = "", peeked = "";
    on(window, "mousemove", (event) => { rested = [event.clientX, event.clientY].join(); });
    const peek = (event) => {
      // What the list scrolls to under a mouse that rests is not what a person looks at.
      const moved = rested !== [event.clientX, event.clientY].join();
      const link = event.type === "mouseleave" || !moved ? null : event.target.closest(".part");
      const part = link ? `${link.dataset.kind} ${link.dataset.id}` : "";
      if (part === peeked) return;
      peeked = part;
      look(link?.dataset.kind, Number(link?.dataset.id));
    };
    on($("tree"), "click", (event) => { led = Boolean(event.target.closest(".about a")); });
    on($("tree"), "mouseover", peek);
    on($("tree"), "mousemove", peek);
    on($("tree"), "mouseleave", peek);
    const follows = (event) => {
      const line = ["mouseleave", "focusout"].includes(event.type) ? null : event.target.closest(".line");
      if (!line) { look(null); return; }
      // Of one that ended: its own line, and on the map the rows of the one it went to.
      look("cluster", Number(line.dataset.leads ?? line.dataset.id)); trace([Number(line.dataset.id)]);
    };
    // The heading of the lines stays in sight, as that of a table does.
    const box = lives?.closest(".wide"), heading = lives?.querySelector(".axis");
    if (box) on(box, "scroll", () => {
      heading.setAttribute("transform", `translate(0,${box.scrollTop * lives.viewBox.baseVal.width / lives.clientWidth})`);
    });
    if (lives) for (const what of ["mouseover", "mouseleave", "focusin", "focusout"]) on(lives, what, follows);
    lines.forEach((line, at) => line.setAttribute("tabindex", at ? -1 : 0));
    if (lives) on(lives, "keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], at = lines.indexOf(document.activeElement);
      if (!step || at < 0) return;
      event.preventDefault();
      const next = lines[Math.max(0, Math.min(lines.length - 1, at + step))];
      lines.forEach((line) => line.setAttribute("tabindex", line === next ? 0 : -1));
      next.focus();
    });
    on(window, "keydown", (event) => {
      const typing = event.target.matches("input");
      if (event.key === "/" && !typing) { event.preventDefault(); $("search").focus(); }
      else if (event.key === "Escape") go(clear);
    });
    on(matchMedia("(prefers-color-scheme: dark)"), "change", () => { themed(); paint(); });
    on(matchMedia("print"), "change", () => { themed(); resized(); });
    on(window, "beforeprint", () => document.querySelectorAll(".tree details").forEach((each) => { each.open = true; }));
    const sized = new ResizeObserver(() => { if (plot.clientWidth !== width || plot.clientHeight !== height) resized(); });
    sized.observe(plot);
    on(signal, "abort", () => { sized.disconnect(); clearTimeout(settling); clearTimeout(hinting); });
  };

  for (const id of ["find", "map", "chosen", "keys"]) $(id).hidden = false;
  document.querySelectorAll(".of-stream").forEach((each) => { each.hidden = !lives; });
  $("map").hidden = $("to-map").hidden = !located.length;
  for (const id of ["shapes-title", "key"]) $(id).hidden = !data.columns.length;
  themed(); measure(); scaffold(); listen(); listed(); apply();
  document.documentElement.dataset.ready = "yes";
};

const unpacked = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
};
// A page that asks for its data holds none.
if (document.getElementById("data").textContent) unpacked(document.getElementById("data").textContent).then(explore);
