// Mechanisms: links at their recorded poses, drawn in their plane or in space.

// The turn between two unit quaternions that are near to each other, at a part of the way.
function turnBetween(a, b, part) {
  const cosine = Math.min(1, a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]);
  const angle = Math.acos(cosine);
  const sine = Math.sin(angle);
  const [f, g] = sine > 1e-6 ? [Math.sin((1 - part) * angle) / sine, Math.sin(part * angle) / sine] : [1 - part, part];
  const c = a.map((v, r) => f * v + g * b[r]);
  const length = Math.hypot(...c) || 1;
  return c.map((v) => v / length);
}

// The pose of link i in its parent's frame, 3 x 4 row by row, between frames k and k + 1: of its joint the turn is
// recorded, a quaternion, and where the joint's point is.
function localPose(bones, i, motion, k, part) {
  const value = (column, at) => (typeof column === "number" ? column : column[Math.min(at, column.length - 1)]);
  const turn = (at) => motion.slice(0, 4).map((column) => value(column, at));
  const [w, x, y, z] = turnBetween(turn(k), turn(k + 1), part);
  const R = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
    2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
    2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)];
  const p = bones.points[i];
  const t = [0, 1, 2].map((r) => {
    const at = value(motion[4 + r], k);
    return at + part * (value(motion[4 + r], k + 1) - at) - R[3 * r] * p[0] - R[3 * r + 1] * p[1] - R[3 * r + 2] * p[2];
  });
  return product(bones.home[i], [R[0], R[1], R[2], t[0], R[3], R[4], R[5], t[1], R[6], R[7], R[8], t[2]]);
}

function product(a, b) {
  const out = new Array(12);
  for (let r = 0; r < 12; r += 4) {
    for (let c = 0; c < 4; c++) {
      out[r + c] = a[r] * b[c] + a[r + 1] * b[4 + c] + a[r + 2] * b[8 + c] + (c === 3 ? a[r + 3] : 0);
    }
  }
  return out;
}

function moved(X, p) {
  return [0, 4, 8].map((r) => X[r] * p[0] + X[r + 1] * p[1] + X[r + 2] * p[2] + X[r + 3]);
}

function turned(X, d) {
  return [0, 4, 8].map((r) => X[r] * d[0] + X[r + 1] * d[1] + X[r + 2] * d[2]);
}

function linkPoses(bones, motions, k, part = 0) {
  const poses = new Array(bones.parents.length);
  for (const i of bones.order) {
    const local = localPose(bones, i, motions[i], k, part);
    poses[i] = bones.parents[i] < 0 ? local : product(poses[bones.parents[i]], local);
  }
  return poses;
}

// Red, green and blue of a colour as "#c9d6ee".
const rgb = (colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const plus = (a, b, f = 1) => [a[0] + f * b[0], a[1] + f * b[1], a[2] + f * b[2]];

class MechanismView extends Surface {
  constructor(card, pane, clock) {
    super(card, 380);
    this.pane = pane;
    this.clock = clock;
    this.bones = pane.skeleton;
    this.motions = pane.motions.map((columns) => columns.map((c) => (typeof c === "number" ? c : unpack(c))));
    this.motors = new Set(pane.motors);
    this.trailTime = pane.options.trail;
    this.trails = this.tipTrails();
    this.out = cross(this.bones.right, this.bones.up); // towards the viewer
    this.bounds();
    this.resetView();
    clock.listeners.push(() => this.redraw());
    this.canvas.addEventListener("dblclick", () => { this.resetView(); this.redraw(); });
    onWheel(this.canvas, (factor) => { this.zoom = Math.min(20, Math.max(0.2, this.zoom / factor)); this.redraw(); });
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.held = [event.clientX, event.clientY];
    });
    this.canvas.addEventListener("pointerup", () => { this.held = null; });
    this.canvas.addEventListener("pointermove", (event) => this.orbit(event));
    this.canvas.style.cursor = "grab";
  }

  resetView() {
    this.zoom = 1;
    this.shift = [0, 0];
    this.yaw = this.bones.planar ? 0 : -0.6;
    this.pitch = this.bones.planar ? 0 : 0.35;
  }

  orbit(event) {
    if (!this.held) return;
    const [dx, dy] = [event.clientX - this.held[0], event.clientY - this.held[1]];
    this.held = [event.clientX, event.clientY];
    if (this.bones.planar) this.shift = [this.shift[0] + dx, this.shift[1] + dy];
    else {
      this.yaw += 0.01 * dx;
      this.pitch = Math.min(1.55, Math.max(-1.55, this.pitch + 0.01 * dy));
    }
    this.redraw();
  }

  // The frame before a time, and which part of the way to the next one has gone.
  frame(t) {
    const { t0, t1, frames } = this.pane;
    const place = frames > 1 ? Math.min(Math.max((t - t0) / (t1 - t0), 0), 1) * (frames - 1) : 0;
    const k = Math.min(Math.floor(place), Math.max(frames - 2, 0));
    return [k, place - k];
  }

  // Poses of all links at a time, between the frames along the shortest way.
  at(t) {
    return linkPoses(this.bones, this.motions, ...this.frame(t));
  }

  tipTrails() {
    const trails = this.bones.tips.map(() => []);
    if (!(this.trailTime > 0)) return trails;
    const { t0, t1, frames } = this.pane;
    this.fine = Math.max(1, Math.min(4, Math.floor(4e5 / (frames * this.bones.order.length)))); // points a frame
    const count = (frames - 1) * this.fine;
    for (let k = 0; k <= count; k++) {
      const poses = this.at(count ? t0 + ((t1 - t0) * k) / count : t0);
      this.bones.tips.forEach(([link, tip], j) => trails[j].push(moved(poses[link], tip)));
    }
    return trails;
  }

  // The way of each slide that was used, or may be.
  rails(poses) {
    return this.pane.rails.map(({ link, along, low, high }) => {
      const parent = this.bones.parents[link];
      const from = parent < 0 ? this.bones.starts[link] : moved(poses[parent], this.bones.starts[link]);
      const way = parent < 0 ? along : turned(poses[parent], along);
      return { link, a: plus(from, way, low), b: plus(from, way, high), along: way };
    });
  }

  // Where the picture has its middle at a time: one that goes far is followed.
  middle(t) {
    const [k, part] = this.frame(t);
    return this.middles.map((column) => (part ? column[k] + part * (column[k + 1] - column[k]) : column[k]));
  }

  bounds() {
    const low = this.pane.low.map((v) => Math.min(v, 0));
    const high = this.pane.high.map((v) => Math.max(v, 0));
    for (const rail of this.rails(this.at(this.pane.t0))) {
      for (const p of [rail.a, rail.b]) p.forEach((v, r) => { low[r] = Math.min(low[r], v); high[r] = Math.max(high[r], v); });
    }
    this.centre = low.map((v, r) => (v + high[r]) / 2);
    const corners = [];
    for (let k = 0; k < 8; k++) corners.push([0, 1, 2].map((r) => ((k >> r) & 1 ? high : low)[r] - this.centre[r]));
    const most = (axis) => Math.max(...corners.map((corner) => Math.abs(dot(corner, axis))));
    this.middles = this.pane.follow && this.pane.follow.middles.map(unpack);
    // of a mechanism whose joints are all at one point nothing tells how large it is
    const size = (this.middles ? this.pane.follow.radius : this.radius()) || this.bones.reach;
    this.half = this.bones.planar && !this.middles ? [most(this.bones.right), most(this.bones.up)] : [size, size];
    if (!Math.max(...this.half)) this.half = [size, size];
    this.size = size;
    this.floor = Math.min(0, ...corners.map((corner) => dot(plus(corner, this.centre), this.bones.up)));
  }

  // How far the mechanism gets from the middle of the picture, within the run.
  radius() {
    let most = Math.hypot(...this.centre);
    const frames = Math.min(this.pane.frames, 60);
    for (let k = 0; k < frames; k++) {
      const poses = this.at(this.pane.t0 + ((this.pane.t1 - this.pane.t0) * k) / Math.max(frames - 1, 1));
      this.bones.lines.forEach((lines, i) => {
        for (const p of [...lines.flat(), ...this.bones.solids[i].flatMap((solid) => solid.corners)]) most = Math.max(most, Math.hypot(...plus(moved(poses[i], p), this.centre, -1)));
      });
      for (const rail of this.rails(poses)) {
        for (const p of [rail.a, rail.b]) most = Math.max(most, Math.hypot(...plus(p, this.centre, -1)));
      }
    }
    return most;
  }

  // Prepare the projection of this picture.
  aim() {
    const { right, up } = this.bones;
    const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    const side = right.map((v, r) => cy * v + sy * this.out[r]);
    const front = right.map((v, r) => -sy * v + cy * this.out[r]);
    this.toRight = side;
    this.toUp = up.map((v, r) => cp * v - sp * front[r]);
    this.toEye = up.map((v, r) => sp * v + cp * front[r]);
    const room = this.bones.planar ? 38 : 26; // for the marks of joints, and what perspective adds
    this.scale = this.zoom * Math.min((this.width - 2 * room) / 2 / Math.max(this.half[0], 1e-9),
      (this.height - 2 * room) / 2 / Math.max(this.half[1], 1e-9));
  }

  project(p) {
    const d = plus(p, this.centre, -1);
    const depth = dot(d, this.toEye);
    const near = this.bones.planar ? 1 : 1 / (1 - 0.18 * Math.min(2, Math.max(-2, depth / this.size)));
    return [this.width / 2 + this.shift[0] + this.scale * near * dot(d, this.toRight),
      this.height / 2 + this.shift[1] - this.scale * near * dot(d, this.toUp), depth, near];
  }

  draw(pen) {
    if (this.middles) this.centre = this.middle(this.clock.t);
    this.aim();
    const poses = this.at(this.clock.t);
    if (this.bones.planar) this.paper(pen);
    else this.ground(pen);
    this.drawTrails(pen);
    if (!this.bones.planar) this.shadows(pen, poses);
    const width = Math.max(4, Math.min(11, (26 * this.zoom) / Math.sqrt(this.bones.parents.length)));
    const parts = [...this.basePieces(pen, width), ...this.railPieces(pen, poses, width), ...this.linkPieces(pen, poses, width),
      ...this.jointPieces(pen, poses, width), ...this.framePieces(pen, poses)];
    parts.sort((a, b) => a.depth - b.depth);
    for (const part of parts) part.draw();
    this.legend(pen);
  }

  path(pen, points) {
    pen.beginPath();
    points.forEach((p, k) => pen[k ? "lineTo" : "moveTo"](p[0], p[1]));
  }

  paper(pen) {
    const step = roundStep(42 / this.scale);
    const middle = [dot(this.centre, this.toRight), dot(this.centre, this.toUp)];
    const [wide, high] = [(this.width / 2 + Math.abs(this.shift[0])) / this.scale, (this.height / 2 + Math.abs(this.shift[1])) / this.scale];
    pen.strokeStyle = theme.get("grid");
    pen.lineWidth = 1;
    pen.beginPath();
    for (let k = Math.ceil((middle[0] - wide) / step); k * step <= middle[0] + wide; k++) {
      const x = Math.round(this.width / 2 + this.shift[0] + this.scale * (k * step - middle[0])) + 0.5;
      pen.moveTo(x, 0);
      pen.lineTo(x, this.height);
    }
    for (let k = Math.ceil((middle[1] - high) / step); k * step <= middle[1] + high; k++) {
      const y = Math.round(this.height / 2 + this.shift[1] - this.scale * (k * step - middle[1])) + 0.5;
      pen.moveTo(0, y);
      pen.lineTo(this.width, y);
    }
    pen.stroke();
    this.step = step;
  }

  ground(pen) {
    const step = roundStep(this.size / 3);
    const { right, up } = this.bones;
    const count = Math.ceil((1.3 * this.size) / step);
    const middle = [dot(this.centre, right), dot(this.centre, this.out)].map((v) => Math.round(v / step) * step);
    const at = (a, b) => this.project([0, 1, 2].map((r) => (middle[0] + a) * right[r] + (middle[1] + b) * this.out[r] + this.floor * up[r]));
    pen.strokeStyle = theme.get("line");
    pen.lineWidth = 1;
    for (let k = -count; k <= count; k++) {
      this.path(pen, [at(k * step, -count * step), at(k * step, count * step)]);
      pen.stroke();
      this.path(pen, [at(-count * step, k * step), at(count * step, k * step)]);
      pen.stroke();
    }
    this.step = step;
  }

  shadows(pen, poses) {
    const { up } = this.bones;
    const fall = (p) => this.project(plus(p, up, this.floor - dot(p, up)));
    pen.strokeStyle = theme.get("shadow");
    pen.lineWidth = 5;
    pen.lineCap = pen.lineJoin = "round";
    this.solidShadows(pen, poses, fall);
    for (const line of this.bones.base) { this.path(pen, line.map(fall)); pen.stroke(); }
    this.bones.lines.forEach((lines, i) => {
      if (this.bones.solids[i].length) return;
      for (const line of lines) { this.path(pen, line.map((p) => fall(moved(poses[i], p)))); pen.stroke(); }
    });
  }

  // The shadows of shapes, as one: of the faces that look upwards.
  solidShadows(pen, poses, fall) {
    pen.fillStyle = theme.get("shadow");
    pen.beginPath();
    this.bones.solids.forEach((solids, i) => solids.forEach((solid) => solid.faces.forEach((face, n) => {
      if (dot(turned(poses[i], solid.normals[n]), this.bones.up) <= 0) return;
      face.map((k) => fall(moved(poses[i], solid.corners[k]))).forEach((p, k) => pen[k ? "lineTo" : "moveTo"](p[0], p[1]));
      pen.closePath();
    })));
    pen.fill();
  }

  drawTrails(pen) {
    const { t0, t1, frames } = this.pane;
    if (frames < 2 || !(this.trailTime > 0)) return;
    const rate = (this.fine * (frames - 1)) / (t1 - t0);
    const last = Math.min(this.fine * (frames - 1), Math.floor((this.clock.t - t0) * rate + 1e-9));
    const first = Math.max(0, Math.ceil(last - this.trailTime * rate));
    pen.lineWidth = 2;
    pen.lineCap = "butt";
    const poses = this.at(this.clock.t);
    this.trails.forEach((trail, j) => {
      pen.strokeStyle = theme.get("c" + ((j + 1) % 8));
      const [link, tip] = this.bones.tips[j];
      for (let k = first; k <= last; k++) {
        const next = k >= last ? moved(poses[link], tip) : trail[k + 1];
        pen.globalAlpha = 0.75 * Math.pow((k - first + 1) / (last - first + 1), 1.5);
        this.path(pen, [this.project(trail[k]), this.project(next)]);
        pen.stroke();
      }
    });
    pen.globalAlpha = 1;
  }

  basePieces(pen, width) {
    const pieces = [];
    for (const line of this.bones.base) {
      const points = line.map((p) => this.project(p));
      pieces.push({ depth: -1e9, draw: () => this.bar(pen, points, width + 5, theme.get("soft"), theme.get("soft")) });
    }
    if (this.bones.planar) {
      this.bones.parents.forEach((parent, i) => {
        if (parent >= 0 || !this.bones.symbols[i].support) return;
        const p = this.project(this.bones.starts[i]);
        pieces.push({ depth: -1e9, draw: () => this.support(pen, p, width) });
      });
    } else {
      pieces.push({ depth: -1e9, draw: () => this.plate(pen) });
    }
    return pieces;
  }

  // The symbol of a fixed support: a triangle on hatched ground.
  support(pen, [x, y], width) {
    const h = 1.9 * width + 4;
    pen.strokeStyle = theme.get("soft");
    pen.fillStyle = theme.get("line");
    pen.lineWidth = 1.4;
    pen.lineJoin = "round";
    this.path(pen, [[x, y], [x - 0.75 * h, y + h], [x + 0.75 * h, y + h]]);
    pen.closePath();
    pen.fill();
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x - 1.3 * h, y + h);
    pen.lineTo(x + 1.3 * h, y + h);
    for (let k = -4; k <= 4; k++) { pen.moveTo(x + 0.3 * h * k, y + h); pen.lineTo(x + 0.3 * h * k - 5, y + h + 6); }
    pen.stroke();
  }

  plate(pen) {
    const { right, up } = this.bones;
    const r = 0.09 * this.size;
    const ring = (lift) => Array.from({ length: 33 }, (_, k) => {
      const a = (2 * Math.PI * k) / 32;
      return this.project([0, 1, 2].map((j) => r * Math.cos(a) * right[j] + r * Math.sin(a) * this.out[j] + lift * up[j]));
    });
    pen.strokeStyle = theme.get("link-edge");
    pen.fillStyle = theme.get("soft");
    pen.lineWidth = 1;
    for (const lift of [-0.03 * this.size, 0]) { this.path(pen, ring(lift)); pen.fill(); pen.stroke(); }
  }

  bar(pen, points, width, fill, edge) {
    pen.lineCap = pen.lineJoin = "round";
    this.path(pen, points);
    pen.strokeStyle = edge;
    pen.lineWidth = width;
    pen.stroke();
    if (fill !== edge) {
      pen.strokeStyle = fill;
      pen.lineWidth = width - 2.4;
      pen.stroke();
    }
  }

  railPieces(pen, poses, width) {
    return this.rails(poses).flatMap((rail) => {
      const [a, b] = [this.project(rail.a), this.project(rail.b)];
      const at = this.project(moved(poses[rail.link], this.bones.points[rail.link]));
      const angle = Math.atan2(b[1] - a[1], b[0] - a[0]);
      const way = { depth: (a[2] + b[2]) / 2 - 1e-3 * this.size, draw: () => this.bar(pen, [a, b], 5, theme.get("line"), theme.get("soft")) };
      if (this.bones.symbols[rail.link].mark !== "slider") return [way];
      return [way, { depth: at[2], draw: () => this.slider(pen, at, angle, width) }];
    });
  }

  slider(pen, [x, y], angle, width) {
    pen.save();
    pen.translate(x, y);
    pen.rotate(angle);
    pen.fillStyle = theme.get("link");
    pen.strokeStyle = theme.get("link-edge");
    pen.lineWidth = 1.4;
    pen.beginPath();
    pen.roundRect(-1.9 * width, -1.05 * width, 3.8 * width, 2.1 * width, 4);
    pen.fill();
    pen.stroke();
    pen.restore();
  }

  linkPieces(pen, poses, width) {
    const solids = this.bones.solids.flatMap((own, i) => this.solidPieces(pen, poses[i], own));
    const plain = (lines, i) => (this.bones.solids[i].length ? [] : lines);
    return solids.concat(this.bones.lines.flatMap((lines, i) => plain(lines, i).map((line) => {
      const points = line.map((p) => this.project(moved(poses[i], p)));
      const depth = points.reduce((sum, p) => sum + p[2], 0) / points.length;
      const near = points.reduce((sum, p) => sum + p[3], 0) / points.length;
      return { depth, draw: () => this.bar(pen, points, width * near, theme.get("link"), theme.get("link-edge")) };
    })));
  }

  // Shapes: of their faces those that are turned to the viewer, darker the less they are.
  solidPieces(pen, pose, solids) {
    return solids.map((solid) => ({ depth: this.project(moved(pose, solid.middle))[2], draw: () => {
      const seen = solid.corners.map((p) => this.project(moved(pose, p)));
      const colour = solid.colour || rgb(theme.get("link"));
      pen.lineJoin = "round";
      pen.lineWidth = 1;
      solid.faces.forEach((face, k) => {
        const [a, b, c] = face.map((corner) => seen[corner]);
        if ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) >= 0) return; // y points down
        const light = 1 - 0.35 * (1 - Math.max(0, dot(turned(pose, solid.normals[k]), this.toEye)));
        const paint = (part) => `rgb(${colour.map((v) => Math.round(v * part)).join(" ")})`;
        this.path(pen, face.map((corner) => seen[corner]));
        pen.closePath();
        pen.fillStyle = paint(light);
        pen.strokeStyle = paint(solid.smooth ? light : 0.6);
        pen.fill();
        pen.stroke();
      });
    } }));
  }

  jointPieces(pen, poses, width) {
    const pieces = [];
    this.bones.symbols.forEach(({ mark, rail }, i) => {
      if (!mark || (mark === "slider" && rail)) return;
      const at = moved(poses[i], this.bones.points[i]);
      const p = this.project(at);
      const motor = this.motors.has(i);
      if (mark === "slider") {
        pieces.push({ depth: p[2] + 1e-3 * this.size, draw: () => this.slider(pen, p, 0, 0.6 * width) });
        return;
      }
      if (this.bones.planar || mark === "ball") {
        pieces.push({ depth: p[2] + 1e-3 * this.size, draw: () => this.pin(pen, p, 0.62 * width, motor) });
        return;
      }
      const axis = turned(poses[i], this.bones.axes[i]);
      const half = 0.055 * this.size;
      const ends = [plus(at, axis, -half), plus(at, axis, half)].map((e) => this.project(e));
      const colour = theme.get(motor ? "accent" : "wire");
      pieces.push({ depth: p[2] + 0.02 * this.size, draw: () => this.drum(pen, ends, 1.5 * width * p[3], colour) });
    });
    this.bones.tips.forEach(([link, tip], j) => {
      const p = this.project(moved(poses[link], tip));
      pieces.push({ depth: p[2] + 0.03 * this.size, draw: () => this.spot(pen, p, 0.5 * width, theme.get("c" + ((j + 1) % 8))) });
    });
    return pieces;
  }

  framePieces(pen, poses) {
    if (!this.pane.options.frames) return [];
    const length = 0.11 * this.size;
    return poses.flatMap((X) => [0, 1, 2].map((k) => {
      const from = [X[3], X[7], X[11]];
      const [a, b] = [from, plus(from, [X[k], X[4 + k], X[8 + k]], length)].map((p) => this.project(p));
      const colour = theme.get(["c1", "c2", "c0"][k]);
      return { depth: b[2] + 0.04 * this.size, draw: () => this.bar(pen, [a, b], 2, colour, colour) };
    }));
  }

  drum(pen, ends, width, colour) {
    pen.lineCap = "butt";
    this.path(pen, ends);
    pen.strokeStyle = theme.get("card");
    pen.lineWidth = width + 3;
    pen.stroke();
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }

  pin(pen, [x, y], r, motor) {
    pen.beginPath();
    pen.arc(x, y, r, 0, 7);
    pen.fillStyle = motor ? theme.get("accent") : theme.get("card");
    pen.fill();
    pen.strokeStyle = theme.get("link-edge");
    pen.lineWidth = 1.6;
    pen.stroke();
  }

  spot(pen, [x, y], r, colour) {
    pen.beginPath();
    pen.arc(x, y, r, 0, 7);
    pen.fillStyle = colour;
    pen.fill();
  }

  legend(pen) {
    pen.font = FONT;
    pen.fillStyle = theme.get("soft");
    pen.textBaseline = "bottom";
    pen.textAlign = "left";
    pen.fillText(`grid ${tickLabel(this.step, this.step)} m`, 8, this.height - 6);
    pen.textAlign = "right";
    pen.fillText(`t = ${this.clock.t.toFixed(2)} s`, this.width - 8, this.height - 6);
  }
}
