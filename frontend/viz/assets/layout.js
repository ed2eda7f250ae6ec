// Coordinates for what is open: rows and the order in them are given, sizes follow from what is
// open. Positions in a row are the ones nearest to the neighbours' that keep order and gaps: a
// least squares problem, which pooling neighbours solves exactly.

const GAP = { x: 18, y: 34, pad: 14, head: 26, port: 10, dummy: 8 };

const measure = (() => {
  const context = document.createElement("canvas").getContext("2d");
  const known = new Map();
  return (text, font) => {
    const key = font + text;
    if (!known.has(key)) { context.font = font; known.set(key, context.measureText(text).width); }
    return known.get(key);
  };
})();

const FONT = "600 12px system-ui, sans-serif", SMALL = "11px ui-monospace, monospace";

function clipped(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

// The lines of a box: what it is called, and what it is.
function linesOf(view, item) {
  const type = clipped(view.text(item.t).split(", ").slice(0, 2).join(", "), 34);
  if (item.k === "param" || item.k === "result") return [clipped(item.l, 34), type];
  if (item.i && item.k !== "op") {
    const count = view.counts[item.id];
    const inner = count ? `${count} op${count === 1 ? "" : "s"}` : "";
    return [clipped(item.l, 34), item.k === "region" ? `kernel${inner && ` · ${inner}`}` :
      item.k === "loop" || item.k === "branch" ? `${view.text(item.q)} · ${item.rounds || inner}` :
      inner];
  }
  const op = view.text(item.q), given = item.w ? ` ${clipped(item.w.join(", "), 16)}` : "";
  return [clipped(item.l, 34), (op === item.l ? "" : op + " ") + given + (given ? " " : "") + type];
}

function sizeOf(view, item) {
  const [first, second] = linesOf(view, item);
  const sign = item.i ? 16 : 0;
  const width = Math.max(measure(first, FONT) + sign, measure(second, SMALL)) + 26;
  return { w: Math.max(60, Math.ceil(width)), h: second ? 40 : 28 };
}

// The positions of centres in one row: as near to the wanted ones as order and gaps allow.
function settled(wanted, weights, sizes, gaps, low = -Infinity, high = Infinity) {
  const shift = [0];
  for (let at = 1; at < sizes.length; at++)
    shift.push(shift[at - 1] + sizes[at - 1] / 2 + gaps[at - 1] + sizes[at] / 2);
  const pools = [];
  wanted.forEach((want, at) => {
    let pool = { sum: (want - shift[at]) * weights[at], weight: weights[at], count: 1 };
    while (pools.length && pools.at(-1).sum / pools.at(-1).weight >= pool.sum / pool.weight) {
      const last = pools.pop();
      pool = { sum: pool.sum + last.sum, weight: pool.weight + last.weight,
               count: pool.count + last.count };
    }
    pools.push(pool);
  });
  const end = sizes.length - 1;
  const least = low + sizes[0] / 2, most = high - sizes[end] / 2 - shift[end];
  const found = [];
  for (const pool of pools)
    for (let at = 0; at < pool.count; at++)
      found.push(Math.max(least, Math.min(most, pool.sum / pool.weight)) + shift[found.length]);
  return found;
}

// What is in an open box: {w, h, boxes, edges, ports}, from its own corner.
function layout(view, item, open) {
  const children = item.i.map((id) => view.items[id]);
  const first = children.length;
  const inner = children.map((child) =>
    child.i && open.has(child.id) ? layout(view, child, open) : null);
  const places = new Map();  // "row:entry" -> place
  const rows = item.r.map((row, at) => row.map((entry) => {
    const place = { entry, row: at, x: 0, up: [], down: [] };
    if (entry < 0) Object.assign(place, { w: GAP.dummy, h: 0, kind: "dummy" });
    else if (entry >= first) Object.assign(place, { w: GAP.port, h: 0, kind: "port" });
    else {
      const { w, h } = inner[entry] || sizeOf(view, children[entry]);
      Object.assign(place, { w, h, kind: "box", inner: inner[entry], item: children[entry] });
    }
    place.lane = entry >= 0 && entry < first ? children[entry].lane ?? 0 : 0;
    places.set(`${at}:${entry}`, place);
    if (entry >= 0) places.set(entry, place);
    return place;
  }));
  // What an end is outside of this box: the child, or what is behind the port.
  const outer = (number) => number < first ? item.i[number] : item.o[number - first][1];
  const edges = item.e.map(([source, target, text, count, kind], number) => {
    const start = places.get(source), end = places.get(target);
    const chain = [start];
    for (let row = start.row + 1; row < end.row; row++) {
      const passing = places.get(`${row}:${-1 - number}`);
      passing.lane = end.lane;
      chain.push(passing);
    }
    chain.push(end);
    const ends = [portOf(start, 1, outer(target)), portOf(end, 0, outer(source))];
    for (let at = 1; at < chain.length; at++) {
      const high = chain[at - 1], low = chain[at];
      const weight = high.kind === "dummy" ? (low.kind === "dummy" ? 8 : 2)
        : low.kind === "dummy" ? 2 : 1;
      const fixed = [at === 1 ? ends[0] : null, at === chain.length - 1 ? ends[1] : null];
      high.down.push({ place: low, weight, from: fixed[0], to: fixed[1] });
      low.up.push({ place: high, weight, from: fixed[1], to: fixed[0] });
    }
    return { source: outer(source), target: outer(target), text, count, kind, chain, ends };
  });
  const width = across(rows);
  const top = GAP.head + GAP.pad;
  let y = rows.length && rows[0].some((place) => place.kind === "port") ? 0 : top;
  for (const [at, row] of rows.entries()) {
    const height = Math.max(0, ...row.map((place) => place.h));
    for (const place of row) Object.assign(place, { y: y + (height - place.h) / 2, top: y, bottom: y + height });
    const ports = row.some((place) => place.kind === "port");
    y += height + (at === 0 && ports ? top : GAP.y);
  }
  const last = rows.at(-1) || [];
  const h = Math.max(y - GAP.y + (last.some((place) => place.kind === "port") ? 0 : GAP.pad),
                     GAP.head + 2 * GAP.pad);
  const title = measure(clipped(item.l, 48), FONT) + 60 + (item.k === "region" || item.rounds ? 90 : 0);
  const w = Math.max(width + 2 * GAP.pad, title);
  const aside = (w - width) / 2;
  const flat = rows.flat();
  for (const place of flat) place.x += aside;
  const ports = new Map();
  (item.o || []).forEach(([out, id], at) => ports.set(`${out}:${id}`, places.get(first + at).x));
  return { w, h, item, ports, lanes: lanesOf(flat, item),
           boxes: flat.filter((place) => place.kind === "box"),
           edges: edges.map((edge) => traced(edge)) };
}

// Where on the border of an open child an edge goes through, from its centre; null for others.
function portOf(place, out, other) {
  if (!place.inner) return null;
  const x = place.inner.ports.get(`${out}:${other}`);
  return x === undefined ? null : x - place.inner.w / 2;
}

// Centres of all places in all rows; gives the width. Lanes stand beside each other.
function across(rows) {
  const lanes = Math.max(0, ...rows.flat().map((place) => place.lane)) + 1;
  const gap = (a, b) => a.kind === "box" && b.kind === "box" ? GAP.x : GAP.x / 2;
  const bands = Array.from({ length: lanes }, (_, lane) =>
    rows.map((row) => row.filter((place) => place.lane === lane)));
  const widths = bands.map((band) => Math.max(lanes > 1 ? 120 : 0, ...band.map((row) =>
    row.reduce((sum, place, at) => sum + place.w + (at ? gap(row[at - 1], place) : 0), 0))));
  const starts = widths.map((_, at) => widths.slice(0, at).reduce((a, b) => a + b + 60, 0));
  const settle = (row, lane, wanted, weights) => {
    if (!row.length) return;
    const gaps = row.slice(1).map((place, at) => gap(row[at], place));
    const bounds = lanes > 1 ? [starts[lane], starts[lane] + widths[lane]] : [];
    settled(wanted, weights, row.map((place) => place.w), gaps, ...bounds)
      .forEach((x, at) => { row[at].x = x; });
  };
  bands.forEach((band, lane) => band.forEach((row) =>
    settle(row, lane, row.map(() => starts[lane] + widths[lane] / 2), row.map(() => 1))));
  const pull = (place, links) => {
    let sum = 0, weight = 0;
    for (const link of links) {
      sum += link.weight * (link.place.x + (link.to || 0) - (link.from || 0));
      weight += link.weight;
    }
    return weight ? [sum / weight, weight] : [place.x, 0.05];
  };
  for (let sweep = 0; sweep < 10; sweep++) {
    const order = sweep % 2 ? [...rows.keys()].reverse() : [...rows.keys()];
    for (const at of order) for (let lane = 0; lane < lanes; lane++) {
      const row = bands[lane][at];
      const found = row.map((place) => pull(place, sweep >= 8 ? [...place.up, ...place.down]
        : sweep % 2 ? place.down : place.up));
      settle(row, lane, found.map(([x]) => x), found.map(([, weight]) => weight));
    }
  }
  const flat = rows.flat();
  const left = Math.min(...flat.map((place) => place.x - place.w / 2));
  const right = Math.max(...flat.map((place) => place.x + place.w / 2));
  for (const place of flat) place.x -= left;
  return flat.length ? right - left : 0;
}

function lanesOf(flat, item) {
  const found = new Map();
  for (const place of flat) {
    if (place.kind !== "box" || place.item.lane === undefined) continue;
    const lane = found.get(place.item.lane) || { device: place.item.d, low: Infinity, high: 0 };
    lane.low = Math.min(lane.low, place.x - place.w / 2);
    lane.high = Math.max(lane.high, place.x + place.w / 2);
    found.set(place.item.lane, lane);
  }
  return item.k === "graph" ? [...found.values()] : [];
}

// The points of an edge, from the lower border of one box to the upper one of another.
function traced(edge) {
  const { chain, ends } = edge;
  const at = (place, port, links, other) => {
    if (place.kind !== "box" || port !== null) return place.x + (port || 0);
    // Edges of a box are spread along its border, in the order of their other ends.
    const sorted = [...links].sort((a, b) => a.place.x - b.place.x);
    const index = sorted.findIndex((link) => link.place === other);
    const room = Math.min(place.w - 24, 22 * (sorted.length - 1));
    return place.x + (sorted.length > 1 ? room * (index / (sorted.length - 1) - 0.5) : 0);
  };
  const points = chain.flatMap((place, index) => {
    if (index === 0) return [[at(place, ends[0], place.down, chain[1]), place.y + place.h]];
    if (index === chain.length - 1) return [[at(place, ends[1], place.up, chain.at(-2)), place.y]];
    return [[place.x, place.top], [place.x, place.bottom]];  // straight down between its boxes
  });
  return { ...edge, points };
}
