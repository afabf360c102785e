// One clock for all panes: the cursor of the scopes, the pose of the mechanisms.
class Clock {
  constructor(begin, end) {
    this.begin = begin;
    this.end = end;
    this.t = begin;
    this.speed = 1;
    this.loop = true;
    this.playing = false;
    this.listeners = [];
    this.last = 0;
  }

  set(t) {
    this.t = Math.min(Math.max(t, this.begin), this.end);
    for (const listener of this.listeners) listener(this.t);
  }

  play(on) {
    if (on === this.playing || this.end <= this.begin) return;
    this.playing = on;
    if (on) {
      if (this.t >= this.end) this.t = this.begin;
      this.last = performance.now();
      requestAnimationFrame((now) => this.tick(now));
    }
    this.set(this.t);
  }

  tick(now) {
    if (!this.playing) return;
    const passed = Math.max(0, Math.min(now - this.last, 200)) / 1000;
    this.last = now;
    let t = this.t + passed * this.speed;
    if (t >= this.end) {
      if (this.loop) t = this.begin;
      else this.playing = false;
    }
    this.set(t);
    if (this.playing) requestAnimationFrame((next) => this.tick(next));
  }
}

// An array as it was packed: 32-bit floats, to be added to an offset, and scaled where they would be too large.
function unpack(packed) {
  const text = atob(packed.base64);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  const view = new DataView(bytes.buffer);
  const values = new Float64Array(packed.n);
  const scale = packed.scale || 1;
  for (let k = 0; k < packed.n; k++) values[k] = bounded(scale * (packed.offset + view.getFloat32(4 * k, true)));
  return values;
}

// A number that did not overflow in the last bit.
function bounded(value) {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, value));
}

// The last index whose time is not after t, or -1.
function indexBefore(times, t) {
  let low = -1;
  let high = times.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle;
    else high = middle;
  }
  return low;
}

function element(kind, cls, parent, text) {
  const made = document.createElement(kind);
  if (cls) made.className = cls;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

// The page's colours, which follow the reader's scheme and the printer.
const theme = {
  values: {},
  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["card", "ink", "soft", "line", "grid", "accent", "wire", "link", "link-edge", "shadow",
      "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]) {
      this.values[name] = style.getPropertyValue("--" + name).trim();
    }
  },
  get(name) {
    return this.values[name];
  },
};

// A wheel that scrolls the page shall not begin to zoom because a plot comes under the pointer.
let scrolledAt = -1e9;
addEventListener("wheel", (event) => {
  if (!event.defaultPrevented) scrolledAt = performance.now();
}, { passive: true });

function onWheel(canvas, zoom) {
  canvas.addEventListener("wheel", (event) => {
    if (performance.now() - scrolledAt < 350) return;
    event.preventDefault();
    zoom(Math.exp(0.0016 * event.deltaY * (event.deltaMode ? 16 : 1)), event);
  }, { passive: false });
}

// A canvas as sharp as the screen, drawn again when it is asked for and when its size changes.
class Surface {
  constructor(parent, height) {
    const frame = element("div", "frame", parent);
    frame.style.minHeight = (document.body.classList.contains("compact") ? 0.7 : 1) * height + "px";
    this.canvas = element("canvas", "surface", frame);
    this.pending = false;
    this.width = 0;
    this.height = 0;
    new ResizeObserver(() => this.now()).observe(this.canvas);
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => this.now());
  }

  now() {
    this.pending = false;
    const box = this.canvas.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const scale = Math.max(window.devicePixelRatio || 1, printing ? 3 : 1);
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    const wide = Math.round(this.width * scale);
    const high = Math.round(this.height * scale);
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    this.draw(pen);
  }
}
let printing = false;
