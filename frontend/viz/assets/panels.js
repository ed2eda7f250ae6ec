// Views that are no graph: memory over time, kernels with their costs, texts.

function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name === "class") made.className = value; else made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function amount(value, unit) {
  const steps = unit === "B" ? [1024, ["B", "KiB", "MiB", "GiB", "TiB"]] : [1000, ["", "k", "M", "G", "T", "P"]];
  let at = 0;
  while (value >= steps[0] && at < steps[1].length - 1) { value /= steps[0]; at++; }
  const digits = at === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  const word = unit === "B" ? steps[1][at] : `${steps[1][at]}${unit}`;
  return `${value.toFixed(digits)}${unit === "B" ? " " : at ? " " : " "}${word}`.trim();
}

class Memory {
  constructor(page) {
    this.page = page; this.id = "memory"; this.label = "Memory";
    this.element = html("div", { class: "panel memory", tabindex: "0" });
    let launch = 0;
    this.parts = page.data.memory.map((part) => ({ ...part,
      launches: part.steps.map((step) => step[0] === "launch" ? launch++ : -1) }));
  }

  draw() {
    const { data } = this.page;
    const sizes = this.page.sizes();
    const peak = html("p", { class: "peak" }, "Peak of temporaries: ", html("strong", {}, data.peak), " bytes",
      sizes ? `, drawn for ${sizes}` : "", Number(data.peak) >= 1024 ? ` (${amount(Number(data.peak), "B")})` : "",
      this.parts.length > 1 ? `, in ${this.parts.length} programs with an arena each` : "");
    this.element.replaceChildren(peak, ...this.parts.map((part) => this.chart(part)));
    this.mark();
  }

  chart(part) {
    const page = this.page, steps = part.live.length;
    const title = html("h3", {}, page.swatch(part.device), ` ${part.name} on ${part.device}: arena = ${part.text}`);
    if (!part.blocks.length && !part.arena)
      return html("section", {}, title, html("p", { class: "quiet" },
        "No temporaries: every result is written where the caller gets it."));
    const left = 74, top = 18, right = 16, bottom = 26;
    const room = (this.element.clientHeight || 500) - 130;
    const width = Math.max(320, this.element.clientWidth - 40 || 900);
    const wide = Math.max(width, left + right + steps * 3);
    const high = Math.max(180, Math.min(620, room / Math.min(2, this.parts.length)));
    const arena = Math.max(1, part.arena);
    const x = (step) => left + (wide - left - right) * step / Math.max(1, steps);
    const y = (bytes) => top + high * (1 - bytes / arena);
    const svg = node("svg", { class: "chart", width: wide, height: top + high + bottom, role: "img",
      "aria-label": `memory of ${part.name}: ${part.text} bytes at most` });
    for (let tick = 0; tick <= 4; tick++) {
      const at = arena * tick / 4;
      svg.append(node("line", { class: "grid", x1: left, x2: wide - right, y1: y(at), y2: y(at) }),
        node("text", { class: "tick", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, amount(at, "B")));
    }
    part.steps.forEach(([kind, label, first, last, depth]) => {
      if (kind !== "loop" && kind !== "branch") return;
      svg.append(node("rect", { class: "span", x: x(first), y: top, width: x(last + 1) - x(first), height: high }),
        node("text", { class: "tick", x: x(first) + 4, y: top + 12 + 12 * depth }, clipped(label, 40)));
    });
    if (part.scratch) svg.append(node("rect", { class: "scratch", x: left, y: y(arena), width: wide - left - right,
      height: y(arena - part.scratch) - y(arena) }), node("text", { class: "tick", x: left + 6,
      y: Math.min(y(arena) + 14, y(arena - part.scratch) + 12) }, `scratch of kernels: ${part.scratch} bytes`));
    part.blocks.forEach(([name, type, offset, size, first, last], at) => {
      const box = node("rect", { class: `block tone${at % 6}`, x: x(first) + 0.5, width: Math.max(2, x(last + 1) - x(first) - 1),
        y: y(offset + size), height: Math.max(1.5, y(offset) - y(offset + size)), tabindex: "0", "data-name": name });
      const facts = [["", name], ["type", type], ["bytes", `${size} at ${offset}`],
        ["steps", first === last ? `${first}` : `${first} to ${last}`]];
      box.addEventListener("pointermove", (event) => page.tip(facts, event));
      box.addEventListener("pointerleave", () => page.tip(null));
      box.addEventListener("focus", () => page.tipOn(facts, box));
      box.addEventListener("click", () => page.chooseNamed(name));
      svg.append(box);
      const along = x(last + 1) - x(first);
      if (along > 60 && y(offset) - y(offset + size) > 13)
        svg.append(node("text", { class: "block-name", x: x(first) + 6, y: y(offset) - 4 }, clipped(name, Math.floor(along / 7))));
    });
    let path = `M${x(0)},${y(0)}`;
    part.live.forEach((bytes, at) => { path += `L${x(at)},${y(bytes)}L${x(at + 1)},${y(bytes)}`; });
    svg.append(node("path", { class: "live", d: path }));
    svg.append(node("line", { class: "peak-line", x1: left, x2: wide - right, y1: y(arena), y2: y(arena) }),
      node("text", { class: "peak-name", x: wide - right, y: y(arena) - 5, "text-anchor": "end" }, `peak: ${part.text} bytes`));
    part.steps.forEach(([kind, label, first, last], at) => {
      if (["loop", "branch", "group"].includes(kind)) return;
      const mark = node("rect", { class: `moment ${kind}`, x: x(first), y: top + high + 3, tabindex: "-1",
        width: Math.max(1, x(last + 1) - x(first) - 1), height: 12, "data-launch": part.launches[at] });
      mark.addEventListener("pointermove", (event) => page.tip(
        [["", label], ["step", `${first}: ${kind}`], ...page.kernelFacts(part.launches[at])], event));
      mark.addEventListener("pointerleave", () => page.tip(null));
      mark.addEventListener("click", () => page.chooseKernel(part.launches[at]));
      svg.append(mark);
    });
    return html("section", {}, title, html("div", { class: "scroll" }, svg));
  }

  mark() {
    const { kernels, names } = this.page.inPlan();
    for (const mark of this.element.querySelectorAll("[data-launch]"))
      mark.classList.toggle("linked", kernels.has(Number(mark.getAttribute("data-launch"))));
    for (const box of this.element.querySelectorAll("[data-name]"))
      box.classList.toggle("linked", names.has(box.getAttribute("data-name")));
  }

  fit() { this.draw(); }
}

class Kernels {
  constructor(page) {
    this.page = page; this.id = "kernels"; this.label = "Kernels";
    this.element = html("div", { class: "panel kernels", tabindex: "0" });
    this.text = html("pre", { class: "code", tabindex: "0" });
  }

  draw() {
    const { data } = this.page, rows = data.kernels;
    const most = Math.max(1, ...rows.map((row) => row.ops)), moved = Math.max(1, ...rows.map((row) => row.bytes));
    const bar = (value, top) => html("td", { class: "bar", style: `--part:${(100 * value / top).toFixed(1)}%` });
    const body = rows.map((row, at) => {
      const ops = bar(row.ops, most), bytes = bar(row.bytes, moved);
      ops.append(amount(row.ops, "op")); ops.title = `${row.opsText} operations`;
      bytes.append(amount(row.bytes, "B")); bytes.title = `${row.bytesText} bytes`;
      const line = html("tr", { tabindex: "0", "data-launch": at }, html("td", { class: "number" }, String(at)),
        html("td", {}, html("code", {}, row.name)), html("td", {}, this.page.swatch(row.device), ` ${row.device}`),
        ops, bytes, html("td", { class: "number" }, row.bytes ? (row.ops / row.bytes).toFixed(2) : ""),
        html("td", {}, row.parallel === "False" ? "" : row.parallel === "True" ? "parallel" : `parallel if ${row.parallel}`),
        html("td", { class: "where" }, row.s.map((loc) => this.page.place(loc)).join(", ")));
      const take = () => { this.page.chooseKernel(at); this.show(at); };
      line.addEventListener("click", take);
      line.addEventListener("keydown", (event) => { if (event.key === "Enter") take(); });
      return line;
    });
    const head = html("tr", {}, ...["#", "kernel", "device", "operations", "bytes", "ops/byte", "workers", "from"]
      .map((word) => html("th", { scope: "col" }, word)));
    this.element.replaceChildren(rows.length ? html("div", { class: "scroll table" }, html("table", {}, html("thead", {}, head),
      html("tbody", {}, ...body))) : html("p", { class: "quiet" }, "No kernel is launched."), this.text);
    if (rows.length) this.show(this.shown ?? 0);
    this.mark();
  }

  show(at) {
    this.shown = at;
    this.text.textContent = this.page.data.texts[this.page.data.kernels[at].text];
  }

  mark() {
    const { kernels } = this.page.inPlan();
    let first = null;
    for (const line of this.element.querySelectorAll("[data-launch]")) {
      const on = kernels.has(Number(line.dataset.launch));
      line.classList.toggle("linked", on);
      if (on) first ??= line;
    }
    if (first) { first.scrollIntoView({ block: "nearest" }); this.show(Number(first.dataset.launch)); }
  }

  fit() {}
}

class Texts {
  constructor(page, views) {
    this.page = page; this.id = "text"; this.label = "Text";
    this.texts = [...views.map((view) => [view.label, view.words]), ...(page.data.plan ? [["Plan", page.data.plan]] : []),
      ...(page.data.placement ? [["Placement", page.data.placement]] : [])];
    this.choice = html("select", { "aria-label": "stage" }, ...this.texts.map(([label], at) => html("option", { value: at }, label)));
    this.code = html("div", { class: "code lines", tabindex: "0" });
    this.element = html("div", { class: "panel texts" }, html("p", {}, "Stage ", this.choice), this.code);
    this.choice.addEventListener("change", () => this.draw());
  }

  draw() {
    const lines = (this.texts[Number(this.choice.value)] || ["", ""])[1].split("\n");
    this.lines = lines;
    this.code.replaceChildren(...lines.map((line) => html("div", {}, line || " ")));
    this.mark();
  }

  mark() {
    const chosen = this.page.chosenItem(), name = chosen && chosen.n;
    const wanted = name === undefined || name === null ? null : [`// ${JSON.stringify(name)} `, `%${name}:`, `%${name} `];
    let first = true;
    [...this.code.children].forEach((line, at) => {
      const on = wanted !== null && wanted.some((part) => this.lines[at].includes(part));
      line.classList.toggle("linked", on);
      if (on && first) { line.scrollIntoView({ block: "nearest" }); first = false; }
    });
  }

  fit() {}
}
