// The form to try a model, and its answer.
import { $, el, size } from "./dom.js";
import { call, json, modelPath } from "./api.js";
import { count, decode, encode, isFloat, sizes, text } from "./tensor.js";
import { sample } from "./sample.js";

const shownRows = 20, shownColumns = 12;
const imagenet = { mean: "0.485, 0.456, 0.406", std: "0.229, 0.224, 0.225" };
const list = (s) => s.split(/[\s,\[\]]+/).filter((w) => w !== "");

// Input is the part of the form for one input.
class Input {
  constructor(meta, i) {
    Object.assign(this, meta, { id: `input-${i}` });
    this.picture = meta.datatype === "FP32" && this.imageDims() !== null;
    this.sizes = meta.shape.map((d, j) => (d >= 0 ? d : el("input", {
      type: "number", min: 0, value: this.picture ? (j === 0 ? 1 : this.imageDims().c === j ? 3 : 224) : j === 0 ? 1 : 8, "aria-label": `size of dimension ${j} of ${meta.name}`,
    })));
    this.field = el("div");
    const ways = [["numbers", "Numbers"], ["random", "Random"], ["zeros", "Zeros"], ["file", "File"], ...(this.picture ? [["image", "Image"]] : [])];
    this.radios = ways.map(([value, label], k) => el("label", {}, el("input", { type: "radio", name: this.id, value, checked: k === 0, onchange: () => this.way(value) }), ` ${label}`));
    const dims = this.sizes.flatMap((d, j) => [j ? " × " : "", typeof d === "number" ? String(d) : d]);
    this.box = el("fieldset", {}, el("legend", {}, meta.name), el("div", { className: "row" }, el("span", { className: "muted" }, `${meta.datatype || "datatype not known"}`), el("span", {}, ...dims)),
      el("div", { className: "row" }, ...this.radios), this.field);
    this.way("numbers");
  }

  // imageDims says which dimensions are an image's, with the channels first; null if none can be.
  imageDims() {
    const n = this.shape.length;
    if (n !== 3 && n !== 4) return null;
    const c = this.shape[n - 3];
    return c === 1 || c === 3 || c === -1 ? { c: n - 3, h: n - 2, w: n - 1 } : null;
  }

  way(name) {
    this.chosen = name;
    this.file = null;
    const pick = (accept) => el("input", { type: "file", accept, id: `${this.id}-file`, onchange: (e) => { this.file = e.target.files[0] ?? null; if (name === "image") this.preview(); } });
    const field = (label, props) => el("label", {}, `${label} `, el("input", props));
    if (name === "numbers") {
      this.area = el("textarea", { id: `${this.id}-numbers`, spellcheck: false, placeholder: "1, 2, 3 … (fewer than there are elements are repeated)", value: "1" });
      this.field.replaceChildren(el("label", { for: this.area.id }, "Elements, by rows"), this.area);
    } else if (name === "file") {
      this.field.replaceChildren(el("label", { for: `${this.id}-file` }, "The elements as bytes, little-endian "), pick(""));
    } else if (name === "image") {
      this.mean = el("input", { className: "short", value: imagenet.mean, "aria-label": "mean of each channel" });
      this.std = el("input", { className: "short", value: imagenet.std, "aria-label": "standard deviation of each channel" });
      this.canvas = el("canvas", { className: "preview", hidden: true });
      this.field.replaceChildren(el("div", { className: "row" }, el("label", { for: `${this.id}-file` }, "Picture "), pick("image/*"), "mean ", this.mean, " deviation ", this.std), this.canvas);
    } else this.field.replaceChildren(...(name === "random" ? [field("Largest", { type: "number", value: isFloat(this.datatype) ? 1 : 2, step: "any", className: "short", oninput: (e) => { this.most = Number(e.target.value); } })] : []));
    this.most = isFloat(this.datatype) ? 1 : 2;
  }

  shapeNow() {
    return this.sizes.map((d) => (typeof d === "number" ? d : Number(d.value)));
  }

  async preview() {
    if (!this.file) return;
    const { c, h, w } = this.imageDims();
    const shape = this.shapeNow();
    const bitmap = await createImageBitmap(this.file);
    this.canvas.width = shape[w];
    this.canvas.height = shape[h];
    this.canvas.getContext("2d", { willReadFrequently: true }).drawImage(bitmap, 0, 0, shape[w], shape[h]);
    this.canvas.hidden = false;
    return shape[c];
  }

  // image returns the channels one after another, each normalised.
  async image(shape) {
    if (!this.file) throw new Error("choose a picture");
    const channels = await this.preview();
    const { width, height } = this.canvas;
    const pixels = this.canvas.getContext("2d").getImageData(0, 0, width, height).data;
    const mean = list(this.mean.value).map(Number), std = list(this.std.value).map(Number);
    const out = new Float64Array(count(shape));
    for (let ch = 0; ch < channels; ch++) {
      for (let i = 0; i < width * height; i++) {
        const v = channels === 1 ? (pixels[4 * i] + pixels[4 * i + 1] + pixels[4 * i + 2]) / 3 : pixels[4 * i + ch];
        out[ch * width * height + i] = (v / 255 - (mean[ch] ?? 0)) / (std[ch] || 1);
      }
    }
    return out;
  }

  // tensor returns what is to be sent.
  async tensor() {
    const shape = this.shapeNow(), n = count(shape);
    if (!sizes[this.datatype]) throw new Error("its datatype is not known, or has no elements to make up");
    if (n * sizes[this.datatype] > 1 << 28) throw new Error(`${n} elements are too many for this form`);
    const made = { name: this.name, datatype: this.datatype, shape };
    if (this.chosen === "file") {
      if (!this.file) throw new Error("choose a file");
      return { ...made, data: new Uint8Array(await this.file.arrayBuffer()) };
    }
    if (this.chosen === "image") return { ...made, data: encode(await this.image(shape), this.datatype) };
    if (this.chosen === "zeros") return { ...made, data: new Uint8Array(n * sizes[this.datatype]) };
    if (this.chosen === "random") {
      const draw = isFloat(this.datatype) ? () => (2 * Math.random() - 1) * this.most : () => Math.floor(Math.random() * Math.max(1, this.datatype === "BOOL" ? 2 : this.most));
      return { ...made, data: encode(Array.from({ length: n }, draw), this.datatype) };
    }
    const values = list(this.area.value);
    if (n > 0 && values.length === 0) throw new Error("give a number");
    if (values.length > n) throw new Error(`${values.length} elements are given for ${n}`);
    return { ...made, data: encode(Array.from({ length: n }, (_, i) => values[i % values.length]), this.datatype) };
  }
}

// body puts JSON and the inputs' bytes together.
function body(inputs, outputs) {
  const head = new TextEncoder().encode(JSON.stringify({
    inputs: inputs.map((t) => ({ name: t.name, shape: t.shape, datatype: t.datatype, parameters: { binary_data_size: t.data.length } })),
    outputs, parameters: { binary_data_output: true },
  }));
  return { length: head.length, blob: new Blob([head, ...inputs.map((t) => t.data)]) };
}

async function infer(model, inputs, outputs) {
  const { length, blob } = body(inputs, outputs);
  const begin = performance.now();
  const r = await call(`${modelPath(model)}/infer`, { method: "POST", body: blob, headers: { "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": String(length) } });
  const bytes = new Uint8Array(await r.arrayBuffer());
  const took = performance.now() - begin;
  const n = Number(r.headers.get("Inference-Header-Content-Length") ?? bytes.length);
  const answer = JSON.parse(new TextDecoder().decode(bytes.subarray(0, n)));
  let at = n;
  for (const o of answer.outputs) {
    o.data = bytes.slice(at, at += o.parameters.binary_data_size);
  }
  return { answer, took };
}

function table(o) {
  const values = decode(o.data, o.datatype);
  const columns = o.shape.length ? o.shape.at(-1) : 1, rows = columns ? values.length / columns : 0;
  const body = el("tbody");
  for (let r = 0; r < Math.min(rows, shownRows); r++) {
    const cells = values.slice(r * columns, r * columns + Math.min(columns, shownColumns));
    body.append(el("tr", {}, ...cells.map((v) => el("td", { className: "number" }, text(v, o.datatype))), ...(columns > shownColumns ? [el("td", {}, "…")] : [])));
  }
  const left = rows > shownRows ? `, the first ${shownRows} of ${rows} rows` : "";
  return el("div", { className: "scroll" }, el("table", {}, el("caption", { className: "muted" }, `${o.datatype} [${o.shape.join(", ")}]${left}`), body));
}

function top(o) {
  const values = decode(o.data, o.datatype), k = o.shape.at(-1);
  const rows = Array.from({ length: Math.min(values.length / k, shownRows) }, (_, r) => values.slice(r * k, (r + 1) * k));
  return el("div", { className: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ...["Row", "Class", "Label", "Value"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...rows.flatMap((row, r) => row.map((c) => {
      const [value, index, ...label] = c.split(":");
      return el("tr", {}, el("td", {}, String(r)), el("td", {}, index), el("td", {}, label.join(":") || "–"), el("td", { className: "number" }, value));
    })))));
}

// image draws the first element of a batch, stretched from its least to its greatest value.
function image(o) {
  const n = o.shape.length;
  const [h, w] = o.shape.slice(-2);
  const channels = n > 2 && (o.shape[n - 3] === 3 || o.shape[n - 3] === 1) ? o.shape[n - 3] : 1;
  if (n < 2 || !h || !w || h * w > 1 << 24) return el("p", { className: "error" }, `[${o.shape.join(", ")}] is no image`);
  const values = decode(o.data, o.datatype).slice(0, channels * h * w).map(Number);
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  const pixels = new ImageData(w, h);
  for (let i = 0; i < w * h; i++) {
    for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = 255 * ((values[(channels === 3 ? c : 0) * w * h + i] - low) / (high - low || 1));
    pixels.data[4 * i + 3] = 255;
  }
  const canvas = el("canvas", { className: "output", width: w, height: h, role: "img", "aria-label": `${w} by ${h} pixels, from ${low} to ${high}` });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

const views = { table, top, image };

export class Trial {
  constructor() {
    $("try-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.run();
    });
    document.querySelectorAll("[name=language]").forEach((r) => r.addEventListener("change", () => this.code()));
    $("copy").addEventListener("click", () => navigator.clipboard?.writeText($("sample").textContent));
    $("code").addEventListener("toggle", () => { if ($("code").open && !this.sent) this.prepare().catch((e) => this.failed(e)); });
  }

  // show makes the form of a model; null hides it.
  async show(model) {
    $("try").hidden = true;
    $("answer").replaceChildren();
    $("took").textContent = "";
    this.sent = null;
    this.model = model;
    const turn = this.turn = (this.turn ?? 0) + 1;
    if (!model) return;
    const meta = await json(modelPath(model)).catch(() => null);
    if (!meta || this.turn !== turn) return; // no access, or one was chosen since, perhaps the same again
    this.outputs = meta.outputs;
    this.inputs = meta.inputs.map((t, i) => new Input(t, i));
    $("inputs").replaceChildren(...this.inputs.map((i) => i.box));
    $("try").hidden = false;
    $("code").open = false;
  }

  async prepare() {
    const inputs = [];
    for (const i of this.inputs) {
      try {
        inputs.push(await i.tensor());
      } catch (e) {
        throw new Error(`${i.name}: ${e.message}`);
      }
    }
    this.sent = inputs;
    this.code();
    return inputs;
  }

  async run() {
    const view = $("view").value;
    $("took").textContent = "running";
    try {
      const inputs = await this.prepare();
      const outputs = view === "top" ? this.outputs.map((o) => ({ name: o.name, parameters: { classification: 5 } })) : undefined;
      const { answer, took } = await infer(this.model, inputs, outputs);
      $("took").textContent = `${took.toFixed(1)} ms, there and back`;
      $("answer").replaceChildren(...answer.outputs.flatMap((o) => [el("h4", {}, o.name), views[view](o)]));
    } catch (e) {
      this.failed(e);
    }
  }

  failed(e) {
    $("took").textContent = "";
    $("answer").replaceChildren(el("p", { className: "error", role: "alert" }, e.message));
  }

  // code shows the request that was sent last; data that is long is in a file.
  code() {
    if (!this.sent) return;
    const language = document.querySelector("[name=language]:checked").value;
    const { code, files } = sample(language, location, this.model, this.sent, body(this.sent));
    $("sample").textContent = code;
    this.urls?.forEach((u) => URL.revokeObjectURL(u));
    this.urls = files.map((f) => URL.createObjectURL(f.blob));
    $("files").replaceChildren(...files.flatMap((f, i) => [i ? ", " : "", el("a", { href: this.urls[i], download: f.name }, f.name), ` (${size(f.blob.size)})`]));
  }
}
