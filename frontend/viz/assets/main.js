// The page: panes with views, what is chosen, hints, search, colours.

// Okabe and Ito's colours: told apart by people who see colours differently; names stand beside them.
const DEVICES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999933", "#882255"];

class Page {
  constructor(data) {
    this.data = data; this.colour = "family"; this.selected = null;
    this.views = data.views.map((stage) => new View(data, stage));
    this.devices = data.devices?.length ? data.devices : ["cpu:0"];
    this.panes = []; this.totals = new Map();
    this.head();
    const wide = window.innerWidth >= 1000 && this.views.length > 1;
    this.panes.push(this.pane(wide ? "trace" : this.views.at(-1).id), this.pane(this.views.at(-1).id));
    document.getElementById("panes").append(...this.panes.map((pane) => pane.element));
    this.active = this.panes[0];
    this.legend();
    this.split(wide);
    this.search();
    this.keys();
    window.addEventListener("resize", () => { clearTimeout(this.later); this.later = setTimeout(() => this.fit(), 120); });
  }

  // -- parts of the page --------------------------------------------------------------------------

  head() {
    const { data } = this, text = (id) => document.getElementById(id);
    text("title").textContent = data.title;
    const count = (view) => view.counts[0];
    const parts = [`${count(this.views[0])} operations`];
    if (this.views.length > 1) {
      parts[0] += ` → ${count(this.views[1])}`;
      const ops = data.kernels.reduce((sum, row) => sum + row.ops, 0), bytes = data.kernels.reduce((sum, row) => sum + row.bytes, 0);
      const peak = data.memory.reduce((sum, part) => sum + part.arena, 0);
      parts.push(`${data.kernels.length} kernel${data.kernels.length === 1 ? "" : "s"}`, amount(ops, "op"),
        `${amount(bytes, "B")} moved`, `peak ${amount(peak, "B")}`);
      if (this.devices.length > 1) parts.push(`${this.devices.length} devices`);
    }
    if (this.sizes()) parts.push(`for ${this.sizes()}`);
    text("summary").textContent = parts.join(" · ");
    text("colour").addEventListener("change", (event) => { this.colour = event.target.value; this.redraw(); this.legend(); });
    text("split").hidden = this.views.length < 2;
    text("split").addEventListener("click", () => this.split(!this.two));
    text("help").addEventListener("click", () => text("keys").showModal());
  }

  // Sizes that are known at run time only, as they are drawn: those of one value together.
  sizes() {
    const names = new Map();
    for (const [name, size] of Object.entries(this.data.sizes)) names.set(size, [...names.get(size) || [], name]);
    return [...names].map(([size, all]) => `${all.slice(0, 3).join(", ")}${all.length > 3 ? ", …" : ""} = ${size}`).join("; ");
  }

  pane(id) {
    const shown = [...this.views.map((view) => new Picture(view, this))];
    if (this.data.plan) shown.push(new Memory(this), new Kernels(this));
    shown.push(new Texts(this, this.views));
    const pane = { shown, tabs: html("div", { class: "tabs", role: "tablist" }), body: html("div", { class: "body" }) };
    pane.element = html("section", { class: "pane" }, pane.tabs, pane.body);
    shown.forEach((each) => {
      const tab = html("button", { type: "button", role: "tab" }, each.view ? each.view.label : each.label);
      tab.addEventListener("click", () => this.show(pane, each));
      pane.tabs.append(tab);
    });
    const tools = html("span", { class: "near" });
    for (const [sign, title, act] of [["−", "farther (-)", (p) => p.zoom(0.8)], ["+", "nearer (+)", (p) => p.zoom(1.25)],
      ["Fit", "fit (f)", (p) => p.fit(true)], ["Open", "open all (e)", (p) => p.openAll(true)], ["Close", "close all (c)", (p) => p.openAll(false)]]) {
      const button = html("button", { type: "button", title }, sign);
      button.addEventListener("click", () => pane.current.view && act(pane.current));
      tools.append(button);
    }
    pane.tabs.append(tools);
    pane.element.addEventListener("focusin", () => { this.active = pane; });
    pane.element.addEventListener("pointerdown", () => { this.active = pane; });
    pane.current = shown.find((each) => (each.view ? each.view.id : each.id) === id) || shown[0];
    return pane;
  }

  show(pane, what) {
    pane.current = what;
    [...pane.tabs.querySelectorAll("[role=tab]")].forEach((tab, at) => tab.setAttribute("aria-selected", String(pane.shown[at] === what)));
    pane.tabs.querySelector(".near").hidden = !what.view;
    pane.body.replaceChildren(what.view ? what.svg : what.element);
    if (!what.spots || !what.view) what.draw();
    if (!what.placed) { what.fit(); what.placed = true; }
    what.mark();
  }

  split(two) {
    this.two = two;
    document.body.classList.toggle("two", two);
    document.getElementById("split").setAttribute("aria-pressed", String(two));
    this.panes[1].element.hidden = !two;
    for (const pane of this.shownPanes()) this.show(pane, pane.current);
    this.fit();
  }

  shownPanes() { return this.two ? this.panes : this.panes.slice(0, 1); }
  fit() { for (const pane of this.shownPanes()) pane.current.fit(); }
  redraw() { for (const pane of this.panes) for (const each of pane.shown) if (each.view && each.spots) each.draw(); }
  focus(picture) { this.active = this.panes.find((pane) => pane.shown.includes(picture)) || this.active; }

  // -- what is chosen ----------------------------------------------------------------------------

  choose(picture, id) {
    for (const pane of this.panes) for (const each of pane.shown) each.chosen = null;
    this.selected = id === null || id === 0 ? null : { view: picture.view, id };
    if (this.selected) picture.chosen = id;
    this.marked();
    this.detail();
    if (this.selected) for (const pane of this.shownPanes()) {
      const other = pane.current;
      if (!other.view || other === picture) continue;
      const found = [...this.linked(other.view)];
      if (found.length) other.centre(found[0]);
    }
  }

  marked() { for (const pane of this.shownPanes()) pane.current.mark(); }
  chosenItem() { return this.selected && this.selected.view.items[this.selected.id]; }

  // The items of a view that are what is chosen in another one: of its name, else of its lines.
  linked(view) {
    if (!this.selected) return new Set();
    const { view: from, id } = this.selected;
    if (from === view) return new Set([id]);
    this.links ??= new Map();
    if (this.linksOf !== this.selected) { this.links.clear(); this.linksOf = this.selected; }
    if (!this.links.has(view)) this.links.set(view, this.findLinked(from, id, view));
    return this.links.get(view);
  }

  findLinked(from, id, view) {
    const found = new Set(), pending = [id], lines = new Set();
    while (pending.length && found.size < 5000) {
      const item = from.items[pending.pop()];
      const key = item.x ?? (item.k === "param" || item.k === "result" ? `${item.k} ${item.n}` : null);
      const same = key === null ? undefined : view.byKey.get(key);
      if (same) same.forEach((each) => found.add(each));
      else if (!item.i) (item.s || []).forEach((loc) => lines.add(loc));
      if (item.i && !(same && !["scope", "region"].includes(item.k))) pending.push(...item.i);
    }
    if (!found.size) for (const loc of lines) (view.byLoc.get(loc) || []).forEach((each) => found.add(each));
    return found;
  }

  fused() { return this.views.at(-1); }

  // Launches and buffers of what is chosen.
  inPlan() {
    const kernels = new Set(), names = new Set();
    if (!this.selected || this.views.length < 2) return { kernels, names };
    const view = this.fused();
    for (const id of this.linked(view)) {
      for (const at of [id, ...view.around(id)]) if (view.items[at].kernel !== undefined) kernels.add(view.items[at].kernel);
      names.add(view.items[id].n);
    }
    const item = this.chosenItem();
    if (item.n) names.add(item.n);
    return { kernels, names };
  }

  chooseItem(view, id) {
    const pane = this.shownPanes().find((each) => each.current.view === view) || this.active;
    const picture = pane.shown.find((each) => each.view === view);
    if (pane.current.view) this.show(pane, picture);
    this.choose(picture, id);
    if (pane.current === picture) picture.reveal(id);
    picture.mark();
  }

  chooseKernel(at) {
    const view = this.fused(), item = view.items.find((each) => each.kernel === at);
    if (item) this.choose(this.panes[0].shown.find((each) => each.view === view), item.id);
    for (const pane of this.shownPanes()) if (pane.current.view === view && item) { pane.current.reveal(item.id); pane.current.mark(); }
  }

  chooseNamed(name) {
    const view = this.fused(), item = view.items.find((each) => each.n === name) || view.items.find((each) => each.l === name);
    if (item) this.choose(this.panes[0].shown.find((each) => each.view === view), item.id);
  }

  // -- facts -------------------------------------------------------------------------------------

  place(loc) {
    const [file, line, inside] = this.data.locs[loc];
    return `${this.data.files[file].split("/").pop()}:${line}${inside ? ` in ${inside}` : ""}`;
  }

  kernelFacts(at) {
    const row = this.data.kernels[at];
    return row ? [["cost", `${amount(row.ops, "op")}, ${amount(row.bytes, "B")}`]] : [];
  }

  total(view) {
    if (!this.totals.has(view)) this.totals.set(view, Math.max(1, view.cost(view.items[0])[0]));
    return this.totals.get(view);
  }

  facts(view, item) {
    const found = [["", item.n || item.l]], text = (number) => view.text(number);
    if (item.k === "region") found.push(["what", `one kernel of ${view.counts[item.id]} operation${view.counts[item.id] === 1 ? "" : "s"}`]);
    else if (item.q !== undefined) found.push(["what", text(item.q) + (item.w ? ` with ${item.w.join(", ")}` : "")]);
    if (item.t !== undefined && text(item.t)) found.push(["type", text(item.t)]);
    if (item.rounds) found.push(["rounds", item.rounds]);
    const [ops, bytes] = view.cost(item);
    if (ops || bytes) found.push(["cost", `${amount(ops, "op")}, ${amount(bytes, "B")}` +
      (ops ? ` (${(100 * ops / this.total(view)).toFixed(1)}% of all operations)` : "")]);
    else if (item.ops === 0) found.push(["cost", "none: it only says where elements are"]);
    if (item.kernel !== undefined && this.data.kernels[item.kernel]) found.push(["kernel", this.data.kernels[item.kernel].name]);
    const device = view.device(item);
    if (device) found.push(["device", device]);
    if (item.a !== undefined) found.push(["with", clipped(text(item.a), 160)]);
    for (const loc of this.lines(view, item).slice(0, 6)) found.push(["source", this.place(loc), this.data.locs[loc][3]]);
    return found;
  }

  // The user's lines that are in a box: its own, and those of all that was put into it.
  lines(view, item) {
    const found = new Set(item.s || []), pending = item.k === "op" ? [] : [...item.i || []];
    while (pending.length && found.size < 50) {
      const inner = view.items[pending.pop()];
      (inner.s || []).forEach((loc) => found.add(loc));
      pending.push(...inner.i || []);
    }
    return [...found].sort((a, b) => a - b);
  }

  edgeFacts(view, edge) {
    const name = (id) => view.items[id].n || view.items[id].l;
    return [["", edge.label || "a value"], ["from", name(edge.source)], ["to", name(edge.target)]];
  }

  tip(facts, event) {
    const tip = document.getElementById("tip");
    tip.hidden = !facts;
    if (!facts) return;
    tip.replaceChildren(...this.lists(facts));
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + height > window.innerHeight ? Math.max(4, event.clientY - height - 10) : event.clientY + 18}px`;
  }

  tipOn(facts, element) {
    const { right, bottom } = element.getBoundingClientRect();
    this.tip(facts, { clientX: right - 10, clientY: bottom - 10 });
  }

  tipAt(picture, id) {
    const box = picture.space.querySelector(`[data-id="${id}"]`);
    if (box) this.tipOn(this.facts(picture.view, picture.view.items[id]), box);
  }

  lists(facts) {
    const [[, title], ...rest] = facts, list = html("dl");
    for (const [name, value, code] of rest) {
      const dd = html("dd", {}, value);
      if (code) dd.append(html("code", {}, code));
      list.append(html("dt", {}, name), dd);
    }
    return [html("strong", {}, title), list];
  }

  detail() {
    const box = document.getElementById("detail"), item = this.chosenItem();
    box.hidden = !item;
    if (!item) return;
    const { view } = this.selected;
    box.replaceChildren(html("h2", {}, `${view.label}: `), ...this.lists(this.facts(view, item)));
    for (const other of this.views) {
      if (other === view) continue;
      const ids = [...this.linked(other)];
      const where = ids.length ? "" : "nothing: it was computed while compiling, or nobody needs it";
      const line = html("p", { class: "became" }, html("b", {}, other.label), " ", where);
      const homes = [...new Set(ids.map((id) => [id, ...other.around(id)].find((at) => other.items[at].kernel !== undefined) ?? id))];
      for (const id of homes.slice(0, 6)) {
        const it = other.items[id], kernel = it.kernel !== undefined && this.data.kernels[it.kernel];
        const button = html("button", { type: "button" }, kernel ? `kernel ${kernel.name}` : clipped(it.n || it.l, 40));
        button.addEventListener("click", () => this.chooseItem(other, id));
        line.append(button, " ");
      }
      if (homes.length > 6) line.append(`and ${homes.length - 6} more`);
      box.append(line);
    }
    const close = html("button", { type: "button", class: "close", title: "Close (Esc)" }, "×");
    close.addEventListener("click", () => this.choose(this.panes[0].shown[0], null));
    box.append(close);
  }

  // -- colours -------------------------------------------------------------------------------------

  deviceColor(name) {
    const at = this.devices.indexOf(name);
    return at < 0 ? "#8884" : DEVICES[at % DEVICES.length];
  }
  heat(part) { return `color-mix(in oklab, var(--heat) ${Math.min(100, 8 + 92 * Math.sqrt(part)).toFixed(0)}%, var(--cool))`; }
  swatch(device) {
    return html("span", { class: "swatch", style: `--own:${this.deviceColor(device)}` });
  }

  legend() {
    const parts = this.colour === "device" || this.devices.length > 1
      ? this.devices.map((name) => html("span", {}, this.swatch(name), ` ${name}`)) : [];
    if (this.colour === "family") for (const [name, word] of [["param", "parameter"], ["map", "elementwise"], ["contract", "contraction"], ["reduce", "reduction, scan"],
      ["view", "view"], ["move", "gather, scatter, sort"], ["host", "host, queue"], ["region", "kernel"], ["loop", "loop, branch"], ["result", "result"]])
      parts.push(html("span", {}, html("span", { class: `swatch ${name}` }), ` ${word}`));
    if (this.colour === "cost") parts.push(html("span", {}, "few operations ", html("span", { class: "ramp" }), " most of the program"));
    parts.push(html("span", { class: "quiet" }, "click: choose, open · drag: move · wheel: nearer · ? keys"));
    document.getElementById("legend").replaceChildren(...parts);
  }

  // -- search and keys -----------------------------------------------------------------------------

  search() {
    const field = document.getElementById("search"), list = document.getElementById("found");
    let at = 0, hits = [];
    const look = () => {
      const word = field.value.trim().toLowerCase();
      const view = this.active.current.view || this.fused();
      hits = word ? view.items.filter((item) => item.id && (item.n || item.l).toLowerCase().includes(word))
        .sort((a, b) => (a.n || a.l).length - (b.n || b.l).length).slice(0, 12) : [];
      at = 0;
      list.hidden = !hits.length;
      field.setAttribute("aria-expanded", String(hits.length > 0));
      list.replaceChildren(...hits.map((item, index) => {
        const line = html("li", { role: "option", "aria-selected": String(index === 0) }, item.n || item.l, html("small", {}, ` ${view.text(item.q)} ${view.text(item.t)}`));
        line.addEventListener("pointerdown", (event) => { event.preventDefault(); take(index); });
        return line;
      }));
    };
    const take = (index) => {
      if (!hits[index]) return;
      this.chooseItem(this.active.current.view || this.fused(), hits[index].id);
      list.hidden = true;
      this.active.current.svg?.focus();
    };
    field.addEventListener("input", look);
    field.addEventListener("focus", look);
    field.addEventListener("blur", () => { list.hidden = true; });
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        at = Math.max(0, Math.min(hits.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)));
        [...list.children].forEach((line, index) => line.setAttribute("aria-selected", String(index === at)));
        event.preventDefault();
      } else if (event.key === "Enter") take(at);
      else if (event.key === "Escape") { field.value = ""; field.blur(); }
      event.stopPropagation();
    });
  }

  keys() {
    document.addEventListener("keydown", (event) => {
      if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") { document.getElementById("search").focus(); event.preventDefault(); }
      else if (event.key === "?") document.getElementById("keys").showModal();
      else if (event.key === "Escape") { this.choose(this.panes[0].shown[0], null); this.tip(null); }
      else if (event.key === "s" && this.views.length > 1) this.split(!this.two);
      else if (/^[1-9]$/.test(event.key)) {
        const what = this.active.shown[Number(event.key) - 1];
        if (what) this.show(this.active, what);
      } else if (this.active.current.view && event.target !== this.active.current.svg) this.active.current.key(event);
    });
  }
}

const start = () => { window.weftPage = new Page(JSON.parse(document.getElementById("data").textContent)); };
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start); else start();
