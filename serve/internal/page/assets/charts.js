// Three charts of the last two minutes of one version, drawn by uPlot.
import { $, el, number } from "./dom.js";

const length = 120;

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en", { hour12: false, minute: "2-digit", second: "2-digit" });

export class Charts {
  constructor() {
    this.history = [];
    this.make();
    addEventListener("resize", () => this.show(this.history));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.plots.forEach((p) => p.u.destroy());
      this.make(); // a chart keeps the colours that it was made with
      this.show(this.history);
    });
  }

  make() {
    this.plots = [
      this.plot("chart-rate", [["requests/s", "--accent"]]),
      this.plot("chart-latency", [["p50", "--accent"], ["p99", "--warn"]]),
      this.plot("chart-queue", [["waiting", "--warn"], ["in flight", "--accent"]]),
    ];
  }

  width(box) {
    return Math.max(box.clientWidth, 120);
  }

  plot(id, series) {
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const box = $(id);
    const u = new uPlot({
      width: this.width(box), height: 130, cursor: { show: false }, legend: { show: false },
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.15 : 1] } },
      axes: [{ ...axis, space: 60, size: 26, values: (_, at) => at.map(clock) }, { ...axis, size: 46 }],
      series: [{}, ...series.map(([label, name], i) => ({ label, stroke: colour(name), width: 2, fill: i === 0 && series.length === 1 ? colour(name) + "22" : undefined }))],
    }, [[], ...series.map(() => [])], box);
    return { box, u, labels: series.map((s) => s[0]) };
  }

  show(history) {
    this.history = history;
    const x = history.map((h) => h.at);
    const columns = [["rate"], ["p50", "p99"], ["waiting", "in_flight"]];
    this.plots.forEach((p, i) => {
      p.u.setSize({ width: this.width(p.box), height: 130 });
      p.u.setData([x, ...columns[i].map((c) => history.map((h) => h[c]))]);
      const last = history.at(-1);
      p.box.setAttribute("aria-label", last ? columns[i].map((c, k) => `${p.labels[k]} ${number(last[c])}`).join(", ") : "no data");
    });
  }
}

// remember keeps the last events of each version.
export function remember(histories, event) {
  const at = Date.now() / 1000;
  for (const m of event.models) {
    const key = `${m.name}/${m.version}`;
    const list = histories.get(key) ?? [];
    list.push({ at, rate: m.rate, p50: m.p50, p99: m.p99, waiting: m.waiting, in_flight: m.in_flight });
    if (list.length > length) list.shift();
    histories.set(key, list);
  }
}

export function batches(counts) {
  const list = Object.entries(counts).map(([rows, n]) => [Number(rows), n]).sort((a, b) => a[0] - b[0]);
  const most = Math.max(1, ...list.map((b) => b[1]));
  $("batches").replaceChildren(...list.map(([rows, n]) => el("li", {},
    el("span", {}, `${rows} row${rows === 1 ? "" : "s"}`),
    el("meter", { max: most, value: n, "aria-label": `${n} runs of ${rows} rows` }),
    el("span", { className: "number" }, n.toLocaleString("en")))));
  if (!list.length) $("batches").append(el("li", {}, el("span", {}, "none yet")));
}
