// What the page offers beside its plots: their samples as a table to be saved, and the diagram at another size.
const TIMES_LARGER = [1, 1.5, 2, 3, 4];

// The rows of a plot: names first, then the samples as they are in the page; empty where a trace has none.
function table(pane) {
  if (pane.xs) return [["t [s]", pane.pane.labels[0] || "x", pane.pane.labels[1] || "y"], ...Array.from(pane.t, (t, k) => [t, pane.xs[k], pane.ys[k]])];
  const traces = pane.traces || [];
  const rows = new Map();
  traces.forEach((trace, k) => trace.t.forEach((t, i) => {
    // two samples of one time, before and after a jump, are two rows
    const key = i && trace.t[i - 1] === t ? `${t} again` : `${t}`;
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
function offerZoom() {
  const svg = document.querySelector("svg.diagram");
  if (!svg) return;
  const heading = svg.closest(".card").querySelector("h2");
  const scroll = svg.closest(".scroll");
  let size = 0;
  let base = 0;
  const show = (wanted) => {
    const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / scroll.scrollWidth;
    size = Math.max(0, Math.min(TIMES_LARGER.length - 1, wanted));
    base = base || svg.getBoundingClientRect().width;
    svg.style.minWidth = size ? "0" : "";
    svg.style.maxWidth = size ? "none" : "";
    svg.style.width = size ? `${TIMES_LARGER[size] * base}px` : "";
    scroll.scrollLeft = middle * scroll.scrollWidth - scroll.clientWidth / 2;
  };
  tool("+", "Larger", heading, () => show(size + 1));
  tool("−", "Smaller", heading, () => show(size - 1));
  tool("fit", "The whole diagram", heading, () => { show(0); svg.style.minWidth = "0"; });
  scroll.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    show(size + (event.deltaY < 0 ? 1 : -1));
  }, { passive: false });
}
