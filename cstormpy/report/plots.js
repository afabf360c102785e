// Scopes and XY plots: axes with round ticks, zoom by drag and wheel, double click to reset.
const FONT = "11px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3]];

function roundStep(rough) {
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const part = rough / power;
  return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
}

function ticks(low, high, most) {
  const step = roundStep(high / Math.max(most, 1) - low / Math.max(most, 1));
  const found = [];
  if (!isFinite(step) || step <= 0) return { step: 1, found };
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9 && found.length < 100; k++) found.push(k * step);
  if (found.length < 3 && most < 12) return ticks(low, high, most + 1);
  return { step, found };
}

function tickLabel(value, step) {
  const size = Math.abs(value);
  if (size < 1e-9 * step) return "0";
  let text;
  if (size >= 1e6 || step < 1e-5) {
    const digits = Math.max(0, Math.min(12, Math.floor(Math.log10(size)) - Math.floor(Math.log10(step) + 1e-9)));
    text = value.toExponential(digits).replace("e+", "e");
  } else {
    text = value.toFixed(Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9))));
  }
  return text.replaceAll("-", "−");
}

// What is a rounding beside the values around it, of the size `scale`, is called zero.
function valueLabel(value, scale = 0) {
  if (!isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < Math.min(1e-9, 1e-12 * scale)) return "0";
  const text = size !== 0 && (size >= 1e6 || size < 1e-4) ? value.toExponential(3) : String(Number(value.toPrecision(5)));
  return text.replaceAll("-", "−");
}

// The range of an axis. As elsewhere here, low and high may be further apart than the largest number.
function padded(low, high) {
  if (!(low <= high)) return [0, 1];
  const size = Math.max(Math.abs(low), Math.abs(high));
  const flat = high - low <= 1e-12 * size || high === low;
  const more = flat ? 0.1 * size || 0.5 : 0.06 * high - 0.06 * low;
  return [bounded(low - more), bounded(high + more)];
}

// The value at a part of the way from a to b.
function between(a, b, part) {
  return part === 0 ? a : a * (1 - part) + b * part;
}

// How far v is on the way from a to b.
function partOf(a, b, v) {
  return (v / 2 - a / 2) / (b / 2 - a / 2);
}

// Samples without a neighbour that a line could be drawn to.
function dots(pen, points) {
  pen.fillStyle = pen.strokeStyle;
  for (const [x, y] of points) {
    pen.beginPath();
    pen.arc(x, y, 2.5, 0, 7);
    pen.fill();
  }
}

class Plot extends Surface {
  constructor(parent, height) {
    super(parent, height);
    this.box = { left: 48, top: 8, right: 10, bottom: 34 };
    this.drag = null;
    this.canvas.tabIndex = -1;
    this.canvas.addEventListener("pointerdown", (event) => this.down(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.up(event));
    this.canvas.addEventListener("pointercancel", () => { this.drag = null; this.redraw(); });
    this.canvas.addEventListener("dblclick", () => this.reset());
    onWheel(this.canvas, (factor, event) => {
      const [x, y] = this.values(event.offsetX, event.offsetY);
      this.zoom(factor, x, y, event.shiftKey);
    });
  }

  get inside() {
    return { x: this.box.left, y: this.box.top, w: this.width - this.box.left - this.box.right,
      h: this.height - this.box.top - this.box.bottom };
  }

  px(x) {
    const { x: left, w } = this.inside;
    return left + w * partOf(this.x[0], this.x[1], x);
  }

  py(y) {
    const { y: top, h } = this.inside;
    return top + h * partOf(this.y[1], this.y[0], y);
  }

  values(px, py) {
    const { x, y, w, h } = this.inside;
    return [between(...this.x, (px - x) / w), between(this.y[1], this.y[0], (py - y) / h)];
  }

  down(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, y: event.offsetY, toX: event.offsetX, toY: event.offsetY };
  }

  move(event) {
    if (this.drag) {
      this.drag.toX = event.offsetX;
      this.drag.toY = event.offsetY;
      this.redraw();
    } else this.hover(event);
  }

  up(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    const wide = Math.abs(drag.toX - drag.x) > 8;
    const high = Math.abs(drag.toY - drag.y) > 14;
    if (!wide && !high) return this.click(event);
    const [a, b] = [this.values(drag.x, drag.y), this.values(drag.toX, drag.toY)];
    this.select(wide ? [Math.min(a[0], b[0]), Math.max(a[0], b[0])] : null,
      high ? [Math.min(a[1], b[1]), Math.max(a[1], b[1])] : null);
  }

  hover() {}

  click() {}

  zoomed(range, factor, about) {
    const next = range.map((end) => between(about, end, factor));
    return next.every(isFinite) && next[1] - next[0] > 1e-9 * Math.max(Math.abs(next[0]), Math.abs(next[1]), 1e-12) ? next : range;
  }

  // names: what the values 0, 1, … of the vertical axis are called, if they are not numbers
  axes(pen, xName, yName, names) {
    pen.font = FONT;
    const high = this.height - this.box.top - this.box.bottom;
    const up = names ? { found: [...names.keys()].filter((k) => this.y[0] <= k && k <= this.y[1]) }
      : ticks(this.y[0], this.y[1], Math.max(2, Math.floor(high / 34)));
    const labels = up.found.map((v) => (names ? names[v] : tickLabel(v, up.step)));
    this.box.left = Math.max(34, 14 + Math.max(0, ...labels.map((l) => pen.measureText(l).width))) + (yName ? 16 : 0);
    const { x, y, w, h } = this.inside;
    const across = ticks(this.x[0], this.x[1], Math.max(2, Math.floor(w / 80)));
    pen.strokeStyle = theme.get("grid");
    pen.lineWidth = 1;
    pen.beginPath();
    for (const v of across.found) { const at = Math.round(this.px(v)) + 0.5; pen.moveTo(at, y); pen.lineTo(at, y + h); }
    for (const v of up.found) { const at = Math.round(this.py(v)) + 0.5; pen.moveTo(x, at); pen.lineTo(x + w, at); }
    pen.stroke();
    pen.strokeStyle = theme.get("line");
    pen.strokeRect(Math.round(x) + 0.5, Math.round(y) + 0.5, Math.round(w) - 1, Math.round(h) - 1);
    pen.fillStyle = theme.get("soft");
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    up.found.forEach((v, k) => pen.fillText(labels[k], x - 6, this.py(v)));
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const v of across.found) {
      const text = tickLabel(v, across.step);
      pen.fillText(text, Math.min(this.px(v), this.width - pen.measureText(text).width / 2), y + h + 5);
    }
    pen.fillText(xName, x + w / 2, y + h + 19);
    if (yName) {
      pen.save();
      pen.translate(9, y + h / 2);
      pen.rotate(-Math.PI / 2);
      pen.textBaseline = "middle";
      pen.fillText(yName, 0, 0);
      pen.restore();
    }
  }

  clip(pen) {
    const { x, y, w, h } = this.inside;
    pen.beginPath();
    pen.rect(x, y, w, h);
    pen.clip();
  }

  selection(pen) {
    if (!this.drag) return;
    const { x, y, w, h } = this.inside;
    const wide = Math.abs(this.drag.toX - this.drag.x) > 8;
    const high = Math.abs(this.drag.toY - this.drag.y) > 14;
    if (!wide && !high) return;
    const [left, right] = wide ? [this.drag.x, this.drag.toX] : [x, x + w];
    const [top, bottom] = high ? [this.drag.y, this.drag.toY] : [y, y + h];
    pen.save();
    pen.globalAlpha = 0.15;
    pen.fillStyle = theme.get("accent");
    pen.fillRect(left, top, right - left, bottom - top);
    pen.globalAlpha = 0.8;
    pen.strokeStyle = theme.get("accent");
    pen.strokeRect(left, top, right - left, bottom - top);
    pen.restore();
  }
}

class Scope extends Plot {
  constructor(card, pane, clock, group) {
    const legend = element("div", "legend", card);
    super(card, 210);
    this.pane = pane;
    this.clock = clock;
    this.group = group; // scopes share their time axis
    group.push(this);
    let shared = null;
    this.traces = pane.traces.map((trace, k) => {
      const t = trace.t === 0 ? shared : (shared = unpack(trace.t));
      const key = element("button", "key", legend);
      key.type = "button";
      key.title = "show or hide";
      const swatch = element("span", "swatch", key);
      swatch.style.borderTopStyle = ["solid", "dashed", "dotted", "dashed"][(k >> 3) & 3];
      swatch.style.borderTopColor = `var(--c${k % 8})`;
      element("span", "label", key, pane.labels[k] || String(k));
      const value = element("output", "", key);
      const y = unpack(trace.y);
      const size = y.reduce((most, v) => Math.max(most, isFinite(v) ? Math.abs(v) : 0), 0);
      const made = { t, y, size, value, key, held: pane.held[k], shown: true, colour: "c" + (k % 8), dash: DASHES[(k >> 3) & 3] };
      key.addEventListener("click", () => {
        made.shown = !made.shown;
        key.classList.toggle("off", !made.shown);
        if (!this.chosen) this.y = this.whole();
        this.redraw();
      });
      return made;
    });
    this.y = this.whole();
    this.x = this.span();
    clock.listeners.push(() => this.redraw());
  }

  span() {
    const { begin, end } = this.clock;
    return end > begin ? [begin, end] : [begin - 0.5, begin + 0.5];
  }

  whole() {
    const limits = this.pane.options.ylim || this.pane.options.scale;
    if (limits && limits.length === 2 && limits[0] < limits[1]) return limits;
    let low = Infinity;
    let high = -Infinity;
    for (const trace of this.traces) {
      if (!trace.shown) continue;
      for (const v of trace.y) { if (v < low) low = v; if (v > high) high = v; }
    }
    return this.pane.ticks && low <= high ? [low - 0.5, high + 0.5] : padded(low, high);
  }

  text(k, value) {
    const names = this.pane.names[k];
    return names && Number.isInteger(value) && names[value] !== undefined ? names[value] : valueLabel(value, this.traces[k].size);
  }

  valueAt(trace, t) {
    const k = indexBefore(trace.t, t);
    if (k < 0 || k >= trace.t.length - 1 || trace.held) return k < 0 ? NaN : trace.y[k];
    return between(trace.y[k], trace.y[k + 1], (t - trace.t[k]) / (trace.t[k + 1] - trace.t[k]));
  }

  share(x) {
    for (const scope of this.group) { scope.x = x; scope.redraw(); }
  }

  select(x, y) {
    if (y) { this.y = y; this.chosen = true; }
    if (x) this.share(x);
    this.redraw();
  }

  zoom(factor, x, y, upwards) {
    if (upwards) this.select(null, this.zoomed(this.y, factor, y));
    else this.share(this.zoomed(this.x, factor, x));
  }

  reset() {
    this.chosen = false;
    this.y = this.whole();
    this.share(this.span());
  }

  hover(event) {
    if (!this.clock.playing) this.clock.set(this.values(event.offsetX, 0)[0]);
  }

  click(event) {
    this.clock.set(this.values(event.offsetX, 0)[0]);
  }

  draw(pen) {
    this.axes(pen, "time [s]", this.pane.unit ? `[${this.pane.unit}]` : "", this.pane.ticks);
    const { x, y, w, h } = this.inside;
    pen.save();
    this.clip(pen);
    pen.lineJoin = "round";
    pen.lineWidth = 1.5;
    for (const [k, trace] of this.traces.entries()) {
      const value = this.valueAt(trace, this.clock.t);
      trace.value.textContent = this.text(k, value);
      if (!trace.shown) continue;
      pen.strokeStyle = theme.get(trace.colour);
      pen.setLineDash(trace.dash);
      this.curve(pen, trace);
    }
    pen.setLineDash([]);
    if (this.clock.t > this.clock.begin || this.clock.playing) this.cursor(pen, y, h);
    pen.restore();
    this.selection(pen);
  }

  curve(pen, trace) {
    const first = Math.max(0, indexBefore(trace.t, this.x[0]));
    const last = Math.min(trace.t.length - 1, indexBefore(trace.t, this.x[1]) + 1);
    const missing = (k) => !(k >= 0 && k < trace.t.length) || Number.isNaN(trace.y[k]);
    const alone = [];
    let broken = true;
    pen.beginPath();
    for (let k = first; k <= last; k++) {
      if (missing(k)) { broken = true; continue; }
      const px = this.px(trace.t[k]);
      if (missing(k - 1) && missing(k + 1)) alone.push([px, this.py(trace.y[k])]);
      if (broken) pen.moveTo(px, this.py(trace.y[k]));
      else {
        if (trace.held) pen.lineTo(px, this.py(trace.y[k - 1]));
        pen.lineTo(px, this.py(trace.y[k]));
      }
      broken = false;
    }
    pen.stroke();
    dots(pen, alone);
  }

  cursor(pen, top, height) {
    const at = this.px(this.clock.t);
    pen.strokeStyle = theme.get("soft");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(at, top);
    pen.lineTo(at, top + height);
    pen.stroke();
    for (const trace of this.traces) {
      const value = this.valueAt(trace, this.clock.t);
      if (!trace.shown || !isFinite(value)) continue;
      pen.fillStyle = theme.get(trace.colour);
      pen.beginPath();
      pen.arc(at, this.py(value), 3, 0, 7);
      pen.fill();
    }
  }
}

class XYPlot extends Plot {
  constructor(card, pane, clock) {
    const legend = element("div", "legend", card);
    super(card, 300);
    this.pane = pane;
    this.clock = clock;
    this.t = unpack(pane.t);
    this.xs = unpack(pane.x);
    this.ys = unpack(pane.y);
    this.value = element("output", "", element("span", "key", legend));
    this.reset();
    clock.listeners.push(() => this.redraw());
  }

  reset() {
    const extremes = (v) => v.reduce((r, a) => [a < r[0] ? a : r[0], a > r[1] ? a : r[1]], [Infinity, -Infinity]);
    const limits = this.pane.options.scale || [];
    this.x = limits.length === 4 ? limits.slice(0, 2) : padded(...extremes(this.xs));
    this.y = limits.length === 4 ? limits.slice(2) : limits.length === 2 ? limits : padded(...extremes(this.ys));
    this.redraw();
  }

  select(x, y) {
    if (x) this.x = x;
    if (y) this.y = y;
    this.redraw();
  }

  zoom(factor, x, y) {
    this.x = this.zoomed(this.x, factor, x);
    this.y = this.zoomed(this.y, factor, y);
    this.redraw();
  }

  equalise() {
    const { w, h } = this.inside;
    const unit = Math.max(this.x[1] / w - this.x[0] / w, this.y[1] / h - this.y[0] / h);
    for (const [range, size] of [[this.x, w], [this.y, h]]) {
      const middle = range[0] / 2 + range[1] / 2;
      range[0] = bounded(middle - (unit / 2) * size);
      range[1] = bounded(middle + (unit / 2) * size);
    }
  }

  draw(pen) {
    if (this.pane.options.equal) { this.x = [...this.x]; this.y = [...this.y]; this.equalise(); }
    const names = this.pane.labels;
    this.axes(pen, names[0] || "x", names[1] || "y");
    const now = indexBefore(this.t, this.clock.t);
    const moving = this.clock.t > this.clock.begin || this.clock.playing;
    const here = this.at(now, this.clock.t);
    pen.save();
    this.clip(pen);
    pen.lineJoin = "round";
    pen.lineWidth = 1.5;
    pen.strokeStyle = theme.get("c0");
    pen.globalAlpha = moving ? 0.3 : 1;
    this.curve(pen, this.t.length - 1);
    if (moving && now >= 0) {
      pen.globalAlpha = 1;
      this.curve(pen, now);
      pen.fillStyle = theme.get("c1");
      pen.beginPath();
      pen.arc(this.px(here[0]), this.py(here[1]), 4.5, 0, 7);
      pen.fill();
    }
    pen.restore();
    this.value.textContent = `(${valueLabel(here[0])}, ${valueLabel(here[1])})`;
    this.selection(pen);
  }

  at(k, t) {
    if (k < 0) return [this.xs[0], this.ys[0]];
    if (k >= this.t.length - 1) return [this.xs[k], this.ys[k]];
    const part = (t - this.t[k]) / (this.t[k + 1] - this.t[k]);
    return [this.xs, this.ys].map((v) => between(v[k], v[k + 1], part));
  }

  curve(pen, last) {
    const missing = (k) => !(k >= 0 && k < this.t.length) || Number.isNaN(this.xs[k]) || Number.isNaN(this.ys[k]);
    const alone = [];
    let broken = true;
    pen.beginPath();
    for (let k = 0; k <= last; k++) {
      if (missing(k)) { broken = true; continue; }
      if (missing(k - 1) && missing(k + 1)) alone.push([this.px(this.xs[k]), this.py(this.ys[k])]);
      pen[broken ? "moveTo" : "lineTo"](this.px(this.xs[k]), this.py(this.ys[k]));
      broken = false;
    }
    pen.stroke();
    dots(pen, alone);
  }
}
