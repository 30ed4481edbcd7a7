// What a model is: its files, what they were made for, tensors and constants.
import { $, el, fill, size } from "./dom.js";
import { json } from "./api.js";

const shown = 200;

export class Package {
  // show fetches and shows what a version is; null hides it.
  async show(model) {
    $("package").hidden = true;
    const turn = this.turn = (this.turn ?? 0) + 1;
    if (!model) return;
    const d = await json(`page/models/${encodeURIComponent(model.name)}/versions/${encodeURIComponent(model.version)}`).catch((e) => ({ failed: e.message }));
    if (this.turn !== turn) return;
    this.facts(d);
    const tensors = (what, all) => (all ?? []).map((t) => row(what, t.name, t.datatype || "not known", t.shape));
    $("tensors").hidden = Boolean(d.failed);
    fill($("tensors"), [...tensors("input", d.inputs), ...tensors("output", d.outputs)]);
    this.constants(d.constants ?? []);
    $("package").hidden = false;
  }

  facts(d) {
    const all = [
      ["Cannot be read", d.failed], ["Changed", d.changed && "the files are not those any more that were loaded; this is what they are now"],
      ...(d.files ?? []).map((f) => [f.name, `${size(f.bytes)}, sha256 ${f.sha256}`]),
      ["Kind", d.kind], ["Compiled for", d.target], ["Instruction sets", d.isa?.join(", ")], ["PyTorch", d.generation], ["Instructions", d.ops],
      ["Rows of a run", d.rows], ["Runs at once", d.instances], ["This host lacks", d.missing?.join(", ")], ["Refused", d.refused], ["Note", d.note],
    ];
    $("facts").replaceChildren(...all.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]));
  }

  constants(all) {
    const box = $("constants");
    box.hidden = all.length === 0;
    box.open = false;
    box.querySelector("summary").textContent = `${all.length} constant${all.length === 1 ? "" : "s"}, ${size(all.reduce((n, k) => n + k.bytes, 0))}`;
    const rows = all.slice(0, shown).map((k) => row(k.folded ? `${k.name} (folded)` : k.name, k.datatype, `[${k.shape.join(", ")}]`, size(k.bytes)));
    if (all.length > shown) rows.push(row(`and ${all.length - shown} more`));
    fill(box.querySelector("table"), rows);
  }
}

const row = (first, ...rest) => el("tr", {}, el("th", { scope: "row" }, first), ...rest.map((text) => el("td", {}, text)));
