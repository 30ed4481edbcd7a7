// The page: the table of models, and what is known of the one that was chosen.
import { $, el, fill, number, size } from "./dom.js";
import { call, events, json, modelPath, post, setToken, token } from "./api.js";
import { Charts, batches, remember } from "./charts.js";
import { Package } from "./package.js";
import { Trial } from "./trial.js";

const histories = new Map();
let chosen = null; // "name/version"
let described = null; // the same with its state, when the rest was fetched
let charts = null;
let last = null;
const trial = new Trial();
const file = new Package();

const keyOf = (m) => `${m.name}/${m.version}`;
const tone = { READY: "good", LOADING: "warn", UNLOADING: "warn", UNAVAILABLE: "bad" };
const stateOf = (m) => (m.idle ? "idle" : m.state ? m.state.toLowerCase() : "not loaded");
const ms = (v) => (v ? `${number(v, 2)} ms` : "–");

function message(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
}

function row(m) {
  const key = keyOf(m);
  const cell = (value, className = "number") => el("td", { className }, value);
  return el("tr", { className: key === chosen ? "chosen" : "" },
    el("th", { scope: "row" }, el("button", { type: "button", className: "link", "data-key": key, "aria-pressed": String(key === chosen), onclick: () => choose(m) }, m.name)),
    cell(m.version || "–", ""),
    el("td", {}, el("span", { className: `badge ${m.idle ? "" : tone[m.state] ?? ""}`, title: m.reason ?? "" }, stateOf(m))),
    cell(number(m.rate)), cell(ms(m.p50)), cell(ms(m.p99)), cell(number(m.rows)),
    cell(number(m.in_flight)), cell(number(m.waiting)), cell(m.memory ? size(m.memory) : "–"), cell(m.total.toLocaleString("en")), cell(m.failed.toLocaleString("en")));
}

function show(event) {
  last = event;
  remember(histories, event);
  $("version").textContent = event.version;
  $("status").textContent = event.ready ? "ready" : "not ready";
  $("status").className = `badge ${event.ready ? "good" : "warn"}`;
  const focused = document.activeElement?.dataset?.key; // the rows are made anew
  fill($("model-table"), event.models.map(row));
  if (focused !== undefined) [...document.querySelectorAll("[data-key]")].find((b) => b.dataset.key === focused)?.focus();
  $("no-models").hidden = event.models.length > 0;
  if (chosen === null && event.models.length > 0) choose(event.models[0], false);
  detail();
}

async function choose(m, focus = true) {
  chosen = keyOf(m);
  described = null;
  message("");
  if (last) show(last);
  if (focus) $("detail-title").focus();
}

function detail() {
  const m = last.models.find((x) => keyOf(x) === chosen);
  $("detail").hidden = !m;
  if (!m) return;
  $("detail-title").textContent = m.version ? `${m.name}, version ${m.version}` : m.name;
  $("reason").textContent = m.reason ?? "";
  $("reason").hidden = !m.reason;
  charts ??= new Charts();
  charts.show(histories.get(chosen) ?? []);
  batches(m.batches);
  failures(m.failures ?? []);
  if (described === chosen + stateOf(m)) return;
  // A model that wakes or goes to sleep stays what it is, with what was typed and the answer.
  const same = m.state === "READY" && [`${chosen}idle`, `${chosen}ready`].includes(described);
  described = chosen + stateOf(m);
  actions(m);
  weights(m);
  if (!same) trial.show(m.state === "READY" ? m : null);
  file.show(m.state === "READY" ? m : null);
}

function failures(all) {
  $("failures").hidden = all.length === 0;
  fill($("failures").querySelector("table"), all.toReversed().map((f) => el("tr", {},
    el("td", {}, new Date(f.at).toLocaleTimeString()), el("td", { className: "number" }, f.count.toLocaleString("en")),
    el("td", {}, f.kind.replaceAll("_", " ")), el("td", { className: "text" }, f.message))));
}

// act runs something that changes the server, and says what went wrong.
async function act(fn, m) {
  message("");
  try {
    await fn();
  } catch (e) {
    message(e.message);
  }
  described = null;
  if (m) weights(m);
}

function actions(m) {
  const path = `v2/repository/models/${encodeURIComponent(m.name)}`;
  const button = (text, verb) => el("button", { type: "button", onclick: () => act(() => post(`${path}/${verb}`), m) }, text);
  $("actions").replaceChildren(button(m.state === "READY" ? "Load anew" : "Load", "load"), ...(m.state === "READY" ? [button("Unload", "unload")] : []));
}

async function weights(m) {
  const box = $("weights");
  box.hidden = true;
  if (m.state !== "READY" || m.idle) return; // asking for those of an idle model would load it
  let all;
  try {
    all = await json(`${modelPath(m)}/weights`);
  } catch {
    return; // not allowed, or a model without
  }
  if (keyOf(m) !== chosen) return;
  const role = (s) => (s.name === all.active ? "active" : s.name === all.traffic.canary ? `canary, ${all.traffic.canary_percent} %` : s.name === all.traffic.shadow ? "shadow" : "");
  fill(box.querySelector("table"), all.versions.map((s) => el("tr", {},
    el("th", { scope: "row" }, s.name),
    el("td", {}, role(s) ? el("span", { className: `badge ${s.name === all.active ? "good" : "warn"}` }, role(s)) : "kept"),
    el("td", { className: "number" }, size(s.bytes)), el("td", { title: s.sha256 ?? "" }, s.source), el("td", {}, new Date(s.time).toLocaleString()),
    el("td", {}, s.name === all.active ? "" : el("button", { type: "button", "aria-label": `Activate ${s.name}`,
      onclick: () => act(() => post(`${modelPath(m)}/weights/activate`, { weight_version: s.name }), m) }, "Activate")))));
  const { shadow, shadow_report: report } = all.traffic;
  $("shadow").hidden = !shadow;
  if (shadow) $("shadow").textContent = `${shadow} computes runs a second time: ${report.different} of ${report.compared} answers differ, by ${report.max_abs_difference} at most`;
  box.hidden = false;
}

$("token").value = token();
$("token-form").addEventListener("submit", async (e) => {
  e.preventDefault();
  setToken($("token").value.trim());
  try {
    await call("v2");
    $("access").open = false;
    described = null;
    message("");
  } catch (err) {
    message(err.message);
  }
});
events(show, (e) => {
  $("status").textContent = e.status === 401 || e.status === 403 ? "access needed" : "not connected";
  $("status").className = "badge bad";
  if (e.status) message(e.message);
});
