// What the page offers beside its plots: their samples as a table to be saved, and the diagram at another size.
const TIMES_LARGER = [1, 1.5, 2, 3, 4];

// The rows of a plot: names first, then the samples as they are in the page; empty where a trace has none.
function table(pane) {
  if (pane.xs) return [["t [s]", pane.pane.labels[0] || "x", pane.pane.labels[1] || "y"], ...Array.from(pane.t, (t, k) => [t, pane.xs[k], pane.ys[k]])];
  const traces = pane.traces || [];
  const rows = new Map();
  let again = 0;
  traces.forEach((trace, k) => trace.t.forEach((t, i) => {
    // samples of one time, before and after a jump, are rows of their own
    again = i && trace.t[i - 1] === t ? again + 1 : 0;
    const key = `${t} ${again}`;
    if (!rows.has(key)) rows.set(key, [t, ...traces.map(() => "")]);
    rows.get(key)[k + 1] = trace.y[i];
  }));
  const unit = pane.pane.unit ? ` [${pane.pane.unit}]` : "";
  return [["t [s]", ...pane.pane.labels.map((label) => label + unit)], ...[...rows.values()].sort((a, b) => a[0] - b[0])];
}

const cell = (value) => (typeof value === "number" ? String(value) : `"${String(value).replace(/"/g, '""')}"`);

function download(pane, name) {
  const text = table(pane).map((row) => row.map((value) => (value === "" ? "" : cell(value))).join(",") + "\n").join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = `${name.replace(/[^\w.-]+/g, "_") || "signals"}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function tool(text, title, parent, act) {
  const button = element("button", "tool", parent, text);
  button.type = "button";
  button.title = title;
  button.addEventListener("click", act);
}

function offerDownloads(panes) {
  panes.forEach((pane, k) => {
    const heading = document.querySelector(`#pane-${k} > h2`);
    if (heading && (pane.traces || pane.xs)) {
      const name = heading.textContent;
      tool("CSV", "Save the samples of this plot as a table", heading, () => download(pane, name));
    }
  });
}

// A diagram is as large as it can be read at first, and scrolled where it is wider than the page; or all of it is shown.
// There is a picture of it for each way of opening its subsystems, of which one is seen.
function offerZoom() {
  const views = [...document.querySelectorAll("svg.diagram")];
  if (!views.length) return;
  const heading = views[0].closest(".card").querySelector("h2");
  const scroll = views[0].closest(".scroll");
  let svg = views[0];
  let size = 0;
  let base = 0;
  let fitted = false;
  // At another size the point in the middle, or under the pointer, stays where it is.
  const show = (wanted, at) => {
    const [x, y] = at || [scroll.clientWidth / 2, scroll.clientHeight / 2];
    const across = (scroll.scrollLeft + x) / scroll.scrollWidth;
    const down = (scroll.scrollTop + y) / scroll.scrollHeight;
    size = Math.max(0, Math.min(TIMES_LARGER.length - 1, wanted));
    if (!size) svg.style.width = "";
    base = base || svg.getBoundingClientRect().width;
    scroll.classList.toggle("large", size > 0);
    svg.style.minWidth = size || fitted ? "0" : `${svg.dataset.narrowest}px`;
    svg.style.maxWidth = size ? "none" : "";
    svg.style.width = size ? `${TIMES_LARGER[size] * base}px` : "";
    scroll.scrollLeft = across * scroll.scrollWidth - x;
    scroll.scrollTop = down * scroll.scrollHeight - y;
  };
  const resize = (wanted, at) => { fitted = false; show(wanted, at); };
  for (const view of views) view.dataset.narrowest = parseFloat(view.style.minWidth) || 0;
  tool("+", "Larger", heading, () => resize(size + 1));
  tool("−", "Smaller", heading, () => resize(size - 1));
  tool("fit", "The whole diagram", heading, () => { fitted = true; show(0); });
  scroll.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = scroll.getBoundingClientRect();
    resize(size + (event.deltaY < 0 ? 1 : -1), [event.clientX - box.left, event.clientY - box.top]);
  }, { passive: false });
  offerPanning(scroll);
  offerFolding(views, heading, (view) => {
    svg.setAttribute("hidden", "hidden");
    view.removeAttribute("hidden");
    svg = view;
    base = 0;
    svg.style.width = "";
    show(size);
  });
}

// A diagram that is larger than its place follows the pointer.
function offerPanning(scroll) {
  let from = null;
  scroll.addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType === "touch" || event.target.closest(".switch")) return;
    from = [event.clientX + scroll.scrollLeft, event.clientY + scroll.scrollTop];
    scroll.classList.add("held");
  });
  addEventListener("pointermove", (event) => {
    if (from) [scroll.scrollLeft, scroll.scrollTop] = [from[0] - event.clientX, from[1] - event.clientY];
  });
  addEventListener("pointerup", () => { from = null; scroll.classList.remove("held"); });
}

// A click on a subsystem shows the picture in which it is open, or closed, and the others are as they were.
function offerFolding(views, heading, change) {
  if (views.length < 2) return;
  const open = views.map((view) => new Set(view.dataset.open.split(" ").filter(Boolean)));
  let now = 0;
  const differing = (a, b) => [...a].filter((k) => !b.has(k)).length + [...b].filter((k) => !a.has(k)).length;
  const toView = (k) => { now = k; change(views[k]); };
  const fold = (subsystem) => {
    const wanted = !open[now].has(subsystem);
    const fitting = [...views.keys()].filter((k) => open[k].has(subsystem) === wanted);
    toView(fitting.reduce((best, k) => (differing(open[k], open[now]) < differing(open[best], open[now]) ? k : best)));
    const again = views[now].querySelector(`.switch[data-subsystem="${subsystem}"]`);
    if (again) again.focus({ preventScroll: true });
  };
  for (const part of document.querySelectorAll(".diagram .switch")) {
    part.addEventListener("click", () => fold(part.dataset.subsystem));
    part.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      fold(part.dataset.subsystem);
    });
  }
  const most = (better) => [...views.keys()].reduce((best, k) => (better(open[k].size, open[best].size) ? k : best));
  tool("fold", "Close all subsystems", heading, () => toView(most((a, b) => a < b)));
  tool("unfold", "Open all subsystems", heading, () => toView(most((a, b) => a > b)));
}
