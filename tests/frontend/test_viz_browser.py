"""Pages in a real browser, without a window: a script in the page looks at it and acts on it.

Chromium or Chrome is run where one is installed; the tests are skipped where none is.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")

WATCH = """<script>window.problems = [];
window.addEventListener("error", (event) => problems.push(String(event.message)));
console.error = (...all) => { problems.push(all.join(" ")); };
</script>"""

LOOK = """<script>document.addEventListener("DOMContentLoaded", () => setTimeout(() => {
const out = {}, page = window.weftPage, data = page.data;
const mouse = (target, kind, more = {}) => target.dispatchEvent(new PointerEvent(kind,
  { bubbles: true, clientX: 200, clientY: 200, pointerId: 1, ...more }));
const key = (target, name) => target.dispatchEvent(
  new KeyboardEvent("keydown", { key: name, bubbles: true }));
// Boxes beside each other that overlap, boxes that leave the one they are in, edges that go up.
const wrong = (picture) => {
  let found = [];
  const spots = [...picture.spots];
  const parent = (id) => picture.view.items[id].p;
  spots.forEach(([a, one], at) => {
    const outer = picture.spots.get(parent(a));
    if (outer && (one.x < outer.x || one.y < outer.y || one.x + one.w > outer.x + outer.w
        || one.y + one.h > outer.y + outer.h)) found.push(["leaves", a]);
    for (const [b, other] of spots.slice(at + 1))
      if (parent(a) === parent(b) && one.x < other.x + other.w && other.x < one.x + one.w
          && one.y < other.y + other.h && other.y < one.y + one.h) found.push(["overlap", a, b]);
  });
  for (const part of picture.parts)
    if (part.layer.classList.contains("edges") && !(part.h > 0)) found.push(["up", part.h]);
  return found;
};
try {
  const pictures = page.panes[0].shown.filter((each) => each.view);
  out.drawn = pictures.map((picture) => {
    page.show(page.panes[0], picture);
    picture.fit(true); picture.cull();
    return [picture.svg.querySelectorAll(".box").length, picture.spots.size];
  });
  out.wrong = pictures.flatMap(wrong);
  out.all = pictures.map((picture) => {
    page.show(page.panes[0], picture);
    picture.openAll(true); picture.cull();
    const whole = picture.svg.querySelectorAll(".box").length;
    out.wrong.push(...wrong(picture));
    picture.openAll(false); picture.cull();
    const closed = picture.svg.querySelector(".holds:not(.open)");
    const before = picture.spots.size;
    let opened = null;
    if (closed) {
      mouse(closed.querySelector(".face"), "pointerdown");
      mouse(closed.querySelector(".face"), "pointerup");
      mouse(closed.querySelector(".face"), "click");
      opened = picture.spots.size - before;
    }
    return [whole, picture.view.items.length - 1, opened];
  });
  const first = pictures[0];
  page.show(page.panes[0], first); first.openAll(true); first.fit(true); first.cull();
  const item = first.view.items.find((each) => each.k === "op" && each.s && each.ops > 0);
  if (item) {
    const face = first.svg.querySelector(`[data-id="${item.id}"] .face`);
    mouse(face, "pointermove");
    out.tip = document.getElementById("tip").innerText;
    mouse(face, "pointerdown"); mouse(face, "pointerup"); mouse(face, "click");
    out.chosen = first.svg.querySelectorAll(".chosen").length;
    out.detail = document.getElementById("detail").innerText;
    out.linked = pictures.slice(1).map((picture) => page.linked(picture.view).size);
    key(first.svg, "ArrowDown");
    out.moved = first.chosen !== item.id;
    key(document.body, "Escape");
    out.left = document.getElementById("detail").hidden;
    const field = document.getElementById("search");
    field.value = item.n; field.dispatchEvent(new Event("input"));
    out.hits = document.querySelectorAll("#found li").length;
    key(field, "Enter");
    out.found = first.view.items[first.chosen]?.n;
    out.wanted = item.n;
  }
  const others = page.panes[0].shown.filter((each) => !each.view);
  for (const other of others) page.show(page.panes[0], other);
  const panel = (name) => others.find((each) => each.id === name)?.element;
  out.blocks = panel("memory").querySelectorAll(".block").length;
  out.peak = panel("memory").querySelector(".peak strong").textContent;
  out.rows = panel("kernels").querySelectorAll("tbody tr").length;
  out.code = panel("kernels").querySelector("pre").textContent;
  out.lines = panel("text").querySelectorAll(".lines > div").length;
  out.sent = document.querySelectorAll("svg .send-name").length;
  const fused = pictures.at(-1);
  page.show(page.panes[0], fused); fused.openAll(false); fused.fit(true); fused.cull();
  out.lanes = [...fused.svg.querySelectorAll(".lane-name")].map((each) => each.textContent);
  out.sends = fused.svg.querySelectorAll(".edge.send").length;
  out.title = document.getElementById("title").textContent;
} catch (problem) { problems.push(String(problem.stack)); }
out.problems = problems;
const pre = document.createElement("pre");
pre.id = "results"; pre.textContent = JSON.stringify(out);
document.body.append(pre);
}, 50));</script>"""


def looked_at(text: str, folder: Path) -> dict[str, Any]:
    """What the script has seen on a page."""
    assert BROWSER is not None
    file = folder / "page.html"
    file.write_text(text.replace("<head>", f"<head>{WATCH}").replace("</body>", f"{LOOK}</body>"),
                    encoding="utf-8")
    run = subprocess.run([
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", f"--user-data-dir={folder / 'browser'}",
        "--window-size=1300,800", "--virtual-time-budget=20000", "--dump-dom", file.as_uri(),
    ], capture_output=True, text=True, timeout=300)
    found = re.search(r'<pre id="results">(.*?)</pre>', run.stdout, re.S)
    assert found is not None, run.stderr[-2000:]
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    return seen


def program(params: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        with weft.name_scope("layer <1> & \"more\""):
            h = np.maximum(x @ params["w1"] + params["b1"], 0)
        h = weft.scan(lambda h, row: (np.tanh(h + row), 0), h[0] * 0, h)[0]
        h = weft.cond(h.sum() > 0, lambda h: np.sort(h), lambda h: h - 1, h)
        return np.exp(h @ params["w2"]).sum()

    value, grads = weft.value_and_grad(loss)(params)
    return value, weft.tree.map(lambda p, g: p - g, params, grads)


def test_a_page_works(tmp_path: Path) -> None:
    lowered = weft.compile(program).lower(
        {"w1": "f32[4,16]", "b1": "f32[16]", "w2": "f32[16,2]"}, "f32[8,4]")
    seen = looked_at(lowered.as_html(), tmp_path)
    assert seen["problems"] == [] and seen["wrong"] == []
    for boxes, known in seen["drawn"]:
        assert boxes == known > 3
    for whole, items, opened in seen["all"]:
        assert whole == items and opened > 0
    assert "f32[" in seen["tip"] and "test_viz_browser.py:" in seen["tip"]
    assert "cost" in seen["tip"] and "% of all operations" in seen["tip"]
    assert seen["chosen"] == 1 and seen["moved"] and seen["left"]
    assert "Optimised" in seen["detail"] and seen["linked"] != [0, 0]
    assert seen["hits"] > 0 and seen["found"] == seen["wanted"]
    plan = lowered.stages.plan  # type: ignore[union-attr]
    assert seen["peak"] == str(lowered.compile().memory_analysis().peak_bytes) == str(plan.arena)
    assert seen["blocks"] == lowered.as_text("plan").count("alloc ")
    assert seen["rows"] == plan.launches
    assert seen["code"].startswith("kernel @")
    assert seen["lines"] == lowered.as_text("trace").count("\n") + 1
    assert seen["title"] == "program"


def test_devices_in_a_page(tmp_path: Path) -> None:
    g = weft.Graph()
    with g.as_default():
        x = weft.placeholder("f32", (8, 4), name="x")
        w = weft.Variable(np.ones((4, 4), np.float32), name="w")
        parts = []
        for at in range(3):
            with weft.device(f"cpu:{at}"), weft.name_scope("part"):
                parts.append(np.tanh(x @ w + at).sum(axis=0))
        done = w.assign_sub((parts[0] + parts[1] + parts[2]) * np.float32(0.1))
    devices = ("cpu:0", "cpu:1", "cpu:2")
    lowered = weft.Session(g, devices=devices).lower([parts[2], done], [x])
    seen = looked_at(lowered.as_html(), tmp_path)
    assert seen["problems"] == [] and seen["wrong"] == []
    assert seen["lanes"] == list(devices)
    assert seen["sends"] >= 4  # of w to two devices, and of what they made
    assert len(seen["drawn"]) == 4


def test_an_empty_page_works(tmp_path: Path) -> None:
    lowered = weft.compile(lambda: ()).lower()
    seen = looked_at(lowered.as_html(), tmp_path)
    assert seen["problems"] == [] and seen["rows"] == seen["blocks"] == 0
    assert seen["peak"] == "0"
