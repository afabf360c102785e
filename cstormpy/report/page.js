// The page: its panes on one clock, and the bar that moves it.
const data = JSON.parse(document.getElementById("data").textContent);
theme.read();
const clock = new Clock(data.t0, data.t1);
const scopes = [];
const makers = { scope: Scope, xy: XYPlot, mechanism: MechanismView };
const panes = data.panes.map((pane, k) => new makers[pane.kind](document.getElementById("pane-" + k), pane, clock, scopes));

function redrawAll() {
  theme.read();
  for (const pane of panes) pane.now();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
matchMedia("print").addEventListener("change", (query) => { printing = query.matches; redrawAll(); });

const bar = document.getElementById("transport");
if (bar) {
  const play = bar.querySelector(".play");
  const slider = bar.querySelector("input[type=range]");
  const time = bar.querySelector("output");
  play.addEventListener("click", () => clock.play(!clock.playing));
  slider.addEventListener("input", () => { clock.play(false); clock.set(data.t0 + (slider.value / 10000) * (data.t1 - data.t0)); });
  bar.querySelector("select").addEventListener("change", (event) => { clock.speed = Number(event.target.value); });
  bar.querySelector("input[type=checkbox]").addEventListener("change", (event) => { clock.loop = event.target.checked; });
  clock.listeners.push((t) => {
    play.classList.toggle("playing", clock.playing);
    play.setAttribute("aria-label", clock.playing ? "pause" : "play");
    slider.value = data.t1 > data.t0 ? (10000 * (t - data.t0)) / (data.t1 - data.t0) : 0;
    time.textContent = `${t.toFixed(2)} s`;
  });
  addEventListener("keydown", (event) => {
    if (/^(INPUT|SELECT|BUTTON|TEXTAREA|SUMMARY)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (event.shiftKey ? 0.1 : 0.01) * (data.t1 - data.t0);
    if (event.key === " ") clock.play(!clock.playing);
    else if (event.key === "ArrowRight") clock.set(clock.t + step);
    else if (event.key === "ArrowLeft") clock.set(clock.t - step);
    else return;
    event.preventDefault();
  });
}
offerDownloads(panes);
offerZoom();
clock.set(data.t0);
window.report = { clock, panes, linkPoses, table };
