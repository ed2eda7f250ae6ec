// A stage as a picture: boxes that open, edges, pan and zoom, hover, keys.

const SVG = "http://www.w3.org/2000/svg";

function node(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== "") made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// The tables of the data, with what is found in them by name.
class View {
  constructor(data, stage) {
    this.data = data; this.id = stage.id; this.label = stage.label; this.words = stage.text;
    this.items = stage.items;
    this.byKey = new Map(); this.byLoc = new Map();
    this.counts = this.items.map((item) => item.k === "op" ? 1 : 0);
    this.items.forEach((item, id) => { item.id = id; });
    for (const item of [...this.items].reverse())
      if (item.p !== undefined) this.counts[item.p] += this.counts[item.id];
    for (const item of this.items) {
      const key = item.x ?? (item.k === "param" || item.k === "result" ? `${item.k} ${item.n}` : null);
      if (key !== null) this.byKey.set(key, [...this.byKey.get(key) || [], item.id]);
      if (item.k === "op" || item.k === "region" || item.rounds)
        for (const loc of item.s || [])
          this.byLoc.set(loc, [...this.byLoc.get(loc) || [], item.id]);
    }
    this.readers = new Map(); this.operands = new Map();
    for (const box of this.items) for (const [source, target] of box.e || []) {
      const end = (number) => number < box.i.length ? box.i[number] : null;
      const a = end(source), b = end(target);
      if (a === null || b === null) continue;
      this.readers.set(a, [...this.readers.get(a) || [], b]);
      this.operands.set(b, [...this.operands.get(b) || [], a]);
    }
    this.most = Math.max(1, ...this.items.filter((item) => !item.i).map((item) => item.ops || 0));
  }

  text(number) { return number === undefined || number < 0 ? "" : this.data.texts[number]; }
  device(item) {
    for (let here = item; here; here = this.items[here.p])
      if (here.d !== undefined) return this.text(here.d);
    return "";
  }
  // Costs of a box: its own, or what is in it.
  cost(item) {
    if (item.ops !== undefined) return [item.ops, item.b || 0];
    let ops = 0, bytes = 0;
    for (const child of item.i || []) {
      const inner = this.items[child];
      if (inner.k === "param" || inner.k === "result") continue;
      const [more, moved] = this.cost(inner);
      ops += more; bytes += moved;
    }
    return [ops, bytes];
  }
  around(id) {
    const found = [];
    for (let at = this.items[id].p; at !== undefined; at = this.items[at].p) found.push(at);
    return found;
  }
  // Open from outside in, as long as what is seen is little enough to be read.
  opened(room) {
    const open = new Set([0]);
    let seen = (this.items[0].i || []).length;
    let level = this.items[0].i || [];
    while (level.length) {
      const next = [];
      for (const id of level) {
        const item = this.items[id];
        if (!item.i) continue;
        const inside = item.i.length, widest = Math.max(...item.r.map((row) => row.length));
        if (seen + inside > room || (item.k === "scope" && (inside > room / 2 || widest > 7))) continue;
        if (item.k === "scope" && item.i.every((child) => ["param", "result"].includes(this.items[child].k))) continue;
        seen += item.i.length;
        open.add(id);
        next.push(...item.i);
      }
      level = next;
    }
    return open;
  }
  all() { return new Set(this.items.filter((item) => item.i).map((item) => item.id)); }
}

const FAMILIES = {
  map: "map", view: "view", alias: "view", reduce: "reduce", scan: "reduce", contract: "contract",
  gather: "move", scatter: "move", sort: "move", search: "move", host: "host", resource: "host",
  effect: "state", complex: "map", region: "region" };

class Picture {
  constructor(view, page) {
    this.view = view; this.page = page;
    this.open = view.opened(36);
    this.scale = 1; this.x = 0; this.y = 0;
    this.space = node("g");
    this.svg = node("svg", { class: "graph", tabindex: "0", role: "application",
      "aria-label": `${view.label}: a graph; arrow keys go along its edges` },
      node("defs", {}, arrow("send"), arrow("value")), this.space);
    this.chosen = null;
    this.listen();
  }

  // -- drawing -----------------------------------------------------------------------------------

  draw(keep) {
    const root = this.view.items[0];
    const before = keep === undefined ? null : this.spot(keep);
    this.spots = new Map(); this.parts = [];
    this.space.replaceChildren();
    if (!root.i || !root.i.length) {
      this.space.append(node("text", { x: 20, y: 40, class: "empty" }, "Nothing is computed here."));
      this.width = 240; this.height = 80;
      return;
    }
    const made = layout(this.view, root, this.open);
    this.width = made.w; this.height = made.h;
    const layers = { under: node("g"), edges: node("g", { class: "edges" }), over: node("g", { class: "over" }) };
    this.lanes(made, layers.under);
    this.paint(made, 0, 0, layers);
    this.space.append(layers.under, layers.edges, layers.over);
    if (before) {
      const after = this.spot(keep);
      this.x += (before.x - after.x) * this.scale;
      this.y += (before.y - after.y) * this.scale;
    }
    this.mark();
    this.move();
  }

  // A part of the picture, which is made when it comes into sight.
  part(layer, x, y, w, h, make) { this.parts.push({ layer, x, y, w, h, make, made: null, on: false }); }

  // Make what is in sight, and take away what is not: thousands of boxes may be open.
  cull() {
    this.culling = 0;
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width || !this.parts) return;
    const margin = 80 / this.scale, left = -this.x / this.scale - margin, top = -this.y / this.scale - margin;
    const right = left + width / this.scale + 2 * margin, bottom = top + height / this.scale + 2 * margin;
    const least = 0.7 / this.scale;  // what is smaller than a pixel
    for (const part of this.parts) {
      const on = part.x < right && part.x + part.w > left && part.y < bottom && part.y + part.h > top
        && Math.max(part.w, part.h) > least;
      if (on === part.on) continue;
      part.on = on;
      if (!on) part.made.remove();
      else {
        if (!part.made) { part.made = part.make(); this.light(part.made); }
        part.layer.append(part.made);
      }
    }
  }

  spot(id) {
    const found = this.spots.get(this.visible(id));
    return { x: found.x + found.w / 2, y: found.y };
  }

  lanes(made, under) {
    for (const lane of made.lanes) {
      const color = this.page.deviceColor(this.view.text(lane.device));
      under.append(
        node("rect", { class: "lane", x: lane.low - 14, y: 0, width: lane.high - lane.low + 28,
                       height: made.h, rx: 10, style: `--own:${color}` }),
        node("text", { class: "lane-name", x: lane.low - 2, y: 20, style: `--own:${color}` },
             this.view.text(lane.device)));
    }
  }

  paint(made, x, y, layers) {
    for (const edge of made.edges) this.edge(edge, x, y, layers);
    for (const place of made.boxes) {
      const left = x + place.x - place.w / 2, top = y + place.y;
      this.spots.set(place.item.id, { x: left, y: top, w: place.w, h: place.h, row: place.row });
      if (place.inner) {
        layers.under.append(this.box(place, left, top, true));
        this.paint(place.inner, left, top, layers);
      } else this.part(layers.over, left, top, place.w, place.h, () => this.box(place, left, top, false));
    }
  }

  edge(edge, x, y, layers) {
    const points = edge.points.map(([px, py]) => [x + px, y + py]);
    const xs = points.map(([px]) => px), left = Math.min(...xs), top = points[0][1];
    this.part(layers.edges, left - 2, top, Math.max(...xs) - left + 4, points.at(-1)[1] - top,
              () => this.line(edge, points));
  }

  line(edge, points) {
    let path = `M${points[0]}`;
    for (let at = 1; at < points.length; at++) {
      const [ax, ay] = points[at - 1], [bx, by] = points[at];
      path += ax === bx ? `V${by}` : `C${ax},${ay + (by - ay) / 2} ${bx},${by - (by - ay) / 2} ${bx},${by}`;
    }
    const kind = ["value", "order", "send"][edge.kind];
    const made = node("path", { class: `edge ${kind}`, d: path,
      "stroke-width": 1.2 + Math.min(2.5, Math.log2(edge.count)) * 0.6,
      "marker-end": kind === "send" ? "url(#arrow-send)" : undefined });
    const text = edge.count > 1 ? `${edge.count} values` : this.view.text(edge.text);
    const label = kind === "order" ? "runs first" : kind === "send" ? `sent: ${text}` : text;
    const touch = node("path", { class: "touch", d: path });
    const group = node("g", {}, made, touch);
    group.edge = touch.edge = { source: edge.source, target: edge.target, label };
    if (kind === "send") {
      const [mx, my] = points[Math.floor(points.length / 2)], [lx, ly] = points[Math.floor((points.length - 1) / 2)];
      group.append(node("text", { class: "send-name", x: (mx + lx) / 2, y: (my + ly) / 2 - 4 }, clipped(text, 28)));
    }
    return group;
  }

  box(place, x, y, open) {
    const { item, w, h } = place, view = this.view;
    const [first, second] = linesOf(view, item);
    const pill = item.k === "param" || item.k === "result";
    const family = pill ? item.k : item.k === "op" ? FAMILIES[view.text(item.f)] || "map" : item.k;
    const color = this.color(item);
    const group = node("g", { class: `box ${item.k} ${family}${open ? " open" : ""}${item.i ? " holds" : ""}`,
      transform: `translate(${x},${y})`, tabindex: "-1", role: item.i ? "treeitem" : "img",
      "aria-label": `${item.n || item.l}, ${second}`, "aria-expanded": item.i ? String(open) : undefined,
      "data-id": item.id, style: color ? `--own:${color}` : undefined });
    if (item.i && !open) group.append(node("rect", { class: "behind", x: 4, y: 4, width: w, height: h, rx: 7 }));
    group.append(node("rect", { class: "face", width: w, height: h, rx: pill ? Math.min(h / 2, 15) : open ? 10 : 7 }));
    if (!open && !pill) group.append(node("rect", { class: "bar", x: 0, y: 0, width: 5, height: h, rx: 2.5 }));
    const sign = item.i ? (open ? "▾ " : "▸ ") : "";
    const middle = pill || !open ? w / 2 : null;
    if (open) {
      group.append(node("rect", { class: "head", width: w, height: GAP.head, rx: 10 }),
        node("text", { class: "name", x: 12, y: 17 }, sign + clipped(item.l, 48),
             node("tspan", { class: "what", dx: 8 }, item.k === "region" ? "kernel" : item.rounds || "")));
    } else {
      group.append(node("text", { class: "name", x: middle, y: second ? 17 : 18, "text-anchor": "middle" }, sign + first));
      if (second) group.append(node("text", { class: "what", x: middle, y: 32, "text-anchor": "middle" }, second));
    }
    return group;
  }

  color(item) {
    const how = this.page.colour;
    if (how === "device") return this.page.deviceColor(this.view.device(item));
    if (how === "cost") return this.page.heat(this.view.cost(item)[0] / this.page.total(this.view));
    return "";
  }

  // -- what is seen --------------------------------------------------------------------------------

  move() {
    this.space.setAttribute("transform", `translate(${this.x},${this.y}) scale(${this.scale})`);
    this.svg.classList.toggle("far", this.scale < 0.35);
    this.svg.classList.toggle("farther", this.scale < 0.16);
    this.culling ||= requestAnimationFrame(() => this.cull());
  }

  // All of it in sight; at first (not ``whole``) no smaller than can be read, from its top.
  fit(whole = false) {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width) return;
    this.scale = Math.min(1.25, (width - 24) / this.width, (height - 24) / this.height);
    if (!whole) this.scale = Math.max(this.scale, 0.42);
    this.x = (width - this.width * this.scale) / 2;
    this.y = Math.max(12, (height - this.height * this.scale) / 2);
    this.move();
  }

  zoom(by, x, y) {
    const { left, top, width, height } = this.svg.getBoundingClientRect();
    const px = x === undefined ? width / 2 : x - left, py = y === undefined ? height / 2 : y - top;
    const scale = Math.max(0.02, Math.min(4, this.scale * by));
    this.x = px - (px - this.x) * scale / this.scale;
    this.y = py - (py - this.y) * scale / this.scale;
    this.scale = scale;
    this.move();
  }

  // The box itself, or the closed one that it is in.
  visible(id) {
    const chain = [id, ...this.view.around(id)].reverse();
    for (const at of chain) if (at !== 0 && !this.open.has(at)) return at;
    return id;
  }

  reveal(id) {
    let more = false;
    for (const at of this.view.around(id)) if (!this.open.has(at)) { this.open.add(at); more = true; }
    if (more) this.draw();
    this.centre(id);
  }

  centre(id) {
    const spot = this.spots && this.spots.get(this.visible(id));
    if (!spot) return;
    const { width, height } = this.svg.getBoundingClientRect();
    if (this.scale < 0.5) this.scale = 0.8;
    const x = this.x + (spot.x + spot.w / 2) * this.scale, y = this.y + (spot.y + spot.h / 2) * this.scale;
    if (x < 40 || y < 40 || x > width - 40 || y > height - 40) {
      this.x += width / 2 - x;
      this.y += height / 2 - y;
    }
    this.move();
  }

  toggle(id) {
    if (!this.view.items[id].i || id === 0) return;
    if (!this.open.delete(id)) this.open.add(id);
    this.draw(id);
  }

  openAll(open) {
    this.open = open ? this.view.all() : new Set([0]);
    this.draw();
    this.fit(true);
  }

  // Show what is chosen here, and what was chosen elsewhere and is the same.
  mark() {
    this.same = new Set([...this.page.linked(this.view)].map((id) => this.visible(id)));
    this.at = this.chosen === null ? null : this.visible(this.chosen);
    for (const made of this.space.querySelectorAll(".box, .edges > g")) this.light(made);
  }

  light(made) {
    if (made.edge) {
      made.classList.toggle("lit", this.at !== null && this.at !== undefined &&
        (this.visible(made.edge.source) === this.at || this.visible(made.edge.target) === this.at));
      return;
    }
    const id = Number(made.dataset.id);
    made.classList.toggle("chosen", id === this.at);
    made.classList.toggle("linked", this.same !== undefined && this.same.has(id));
  }

  // -- hands and keys ----------------------------------------------------------------------------

  listen() {
    const svg = this.svg, idOf = (event) => {
      const box = event.target.closest?.(".box");
      return box ? Number(box.dataset.id) : null;
    };
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) { this.x -= event.deltaY; this.move(); }
      else this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.004), event.clientX, event.clientY);
    }, { passive: false });
    const held = new Map();
    let moved = 0;
    svg.addEventListener("pointerdown", (event) => {
      held.set(event.pointerId, event); moved = 0;
      this.page.focus(this);
    });
    svg.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      if (!before) return this.hover(event);
      const others = [...held.values()].filter((each) => each.pointerId !== event.pointerId);
      const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
      moved += Math.abs(dx) + Math.abs(dy);
      if (moved > 4 && !svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
      if (others.length) {
        const far = (a) => Math.hypot(a.clientX - others[0].clientX, a.clientY - others[0].clientY);
        this.zoom(far(event) / Math.max(1, far(before)), others[0].clientX, others[0].clientY);
      } else { this.x += dx; this.y += dy; this.move(); }
      held.set(event.pointerId, event);
      return undefined;
    });
    for (const name of ["pointerup", "pointercancel"])
      svg.addEventListener(name, (event) => held.delete(event.pointerId));
    svg.addEventListener("pointerleave", () => this.page.tip(null));
    svg.addEventListener("click", (event) => {
      if (moved > 4) return;
      const id = idOf(event), item = id === null ? null : this.view.items[id];
      const onSign = item && item.i && event.target.closest(".holds:not(.open)");
      this.page.choose(this, id);
      if (onSign || (item?.i && event.target.classList.contains("head"))) this.toggle(id);
    });
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  hover(event) {
    const box = event.target.closest?.(".box"), edge = event.target.edge;
    if (box && !(box.classList.contains("open") && event.target.classList.contains("face")))
      this.page.tip(this.page.facts(this.view, this.view.items[Number(box.dataset.id)]), event);
    else if (edge) this.page.tip(this.page.edgeFacts(this.view, edge), event);
    else this.page.tip(null);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const view = this.view, at = this.chosen === null ? null : this.visible(this.chosen);
    const go = (ids) => {
      const seen = (ids || []).map((id) => this.visible(id)).filter((id) => this.spots.has(id) && id !== at);
      if (seen.length) { this.page.choose(this, seen[0]); this.centre(seen[0]); this.page.tipAt(this, seen[0]); }
    };
    const along = (step) => {
      const here = this.spots.get(at), parent = view.items[at]?.p;
      const row = [...this.spots].filter(([id, spot]) => here && spot.row === here.row && view.items[id].p === parent)
        .sort((a, b) => a[1].x - b[1].x).map(([id]) => id);
      const next = row[row.indexOf(at) + step];
      if (next !== undefined) go([next]);
    };
    const keys = {
      "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8),
      f: () => this.fit(true), e: () => this.openAll(true), c: () => this.openAll(false),
      Enter: () => at !== null && this.toggle(at), " ": () => at !== null && this.toggle(at),
      ArrowUp: () => at === null ? go(view.items[0].i) : go(view.operands.get(at) || [view.items[at].p]),
      ArrowDown: () => at === null ? go(view.items[0].i)
        : go(this.open.has(at) ? view.items[at].i : view.readers.get(at)),
      ArrowLeft: () => along(-1), ArrowRight: () => along(1) };
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  }
}

function arrow(name) {
  return node("marker", { id: `arrow-${name}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9,
    markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
    node("path", { d: "M0,0L8,4L0,8z", class: `head-${name}` }));
}
