// A request as a program that sends it.
import { decode, text } from "./tensor.js";

const short = 64; // elements that stand in the code; more of them are in files
const quote = JSON.stringify;

// sample returns the code in a language, and the files that it reads.
export function sample(language, location, model, inputs, body) {
  const base = new URL(".", location.href).href.replace(/\/$/, "");
  return { curl, go, python }[language](base, model, inputs, body);
}

const inline = (t) => t.datatype !== "FP16" && t.datatype !== "BF16" && t.shape.reduce((a, b) => a * b, 1) <= short;
const fits = (t) => decode(t.data, t.datatype).every((v) => typeof v !== "number" || Number.isFinite(v));
const elements = (t) => decode(t.data, t.datatype).map((v) => text(v, t.datatype));
const fileOf = (t) => ({ name: `${t.name.replace(/[^\w.-]/g, "_")}.bin`, blob: new Blob([t.data]) });

function curl(base, model, inputs, body) {
  const url = `${base}/v2/models/${encodeURIComponent(model.name)}/versions/${model.version}/infer`;
  if (inputs.every((t) => inline(t) && fits(t))) {
    const parts = inputs.map((t) => `{"name":${quote(t.name)},"shape":[${t.shape}],"datatype":"${t.datatype}","data":[${elements(t).join(",")}]}`);
    return { code: `curl -s ${url} -d '${`{"inputs":[${parts.join(",\n  ")}]}`.replaceAll("'", "'\\''")}'`, files: [] };
  }
  return {
    code: `curl -s ${url} \\\n  -H 'Content-Type: application/octet-stream' -H 'Inference-Header-Content-Length: ${body.length}' \\\n  --data-binary @request.bin -o answer.bin`,
    files: [{ name: "request.bin", blob: body.blob }],
  };
}

const goTypes = { BOOL: "bool", UINT8: "uint8", INT8: "int8", UINT16: "uint16", INT16: "int16", UINT32: "uint32", INT32: "int32", UINT64: "uint64", INT64: "int64", FP32: "float32", FP64: "float64" };

function go(base, model, inputs) {
  const files = [], made = [];
  let reads = "";
  inputs.forEach((t, i) => {
    if (inline(t) && fits(t)) made.push(`client.FromSlice(${quote(t.name)}, []${goTypes[t.datatype]}{${elements(t).join(", ")}}, ${t.shape.join(", ")})`.replace(", )", ")"));
    else {
      const f = fileOf(t);
      files.push(f);
      reads += `\tdata${i}, err := os.ReadFile(${quote(f.name)})\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n`;
      made.push(`{Name: ${quote(t.name)}, Datatype: "${t.datatype}", Shape: []int64{${t.shape.join(", ")}}, Data: data${i}}`);
    }
  });
  return {
    files,
    code: `package main

import (
\t"context"
\t"fmt"
\t"log"
${reads ? '\t"os"\n' : ""}
\t"github.com/loris-ml/loris/serve/client"
)

func main() {
\tc, err := client.New(${quote(base)}, client.Options{})
\tif err != nil {
\t\tlog.Fatal(err)
\t}
\tdefer c.Close()
${reads}\tr, err := c.Infer(context.Background(), &client.Request{
\t\tModel: ${quote(model.name)}, Version: ${quote(model.version)},
\t\tInputs: []client.Tensor{
${made.map((m) => `\t\t\t${m},\n`).join("")}\t\t},
\t})
\tif err != nil {
\t\tlog.Fatal(err)
\t}
\tdefer r.Release()
\tfor _, o := range r.Outputs {
\t\tfmt.Println(o.Name, o.Datatype, o.Shape, len(o.Data))
\t}
}
`,
  };
}

const numpyTypes = { BOOL: "bool", UINT8: "uint8", INT8: "int8", UINT16: "uint16", INT16: "int16", UINT32: "uint32", INT32: "int32", UINT64: "uint64", INT64: "int64", FP16: "float16", BF16: "uint16", FP32: "float32", FP64: "float64" };

function python(base, model, inputs) {
  const files = [];
  const address = base.replace(/^https?:\/\//, "");
  let code = `# pip install 'tritonclient[http]'\nimport numpy as np\nimport tritonclient.http as triton\n\nclient = triton.InferenceServerClient(${quote(address)}${base.startsWith("https") ? ", ssl=True" : ""})\ninputs = []\n`;
  for (const t of inputs) {
    const dtype = `np.${numpyTypes[t.datatype] === "bool" ? "bool_" : numpyTypes[t.datatype]}`;
    let values;
    if (inline(t) && fits(t)) values = `np.array([${elements(t).map((v) => ({ true: "True", false: "False" })[v] ?? v).join(", ")}], ${dtype})`;
    else {
      const f = fileOf(t);
      files.push(f);
      values = `np.fromfile(${quote(f.name)}, ${dtype})`;
    }
    code += `x = triton.InferInput(${quote(t.name)}, [${t.shape.join(", ")}], "${t.datatype}")\n`;
    code += t.datatype === "BF16" ? `x._raw_data = ${values}.tobytes()\nx._parameters["binary_data_size"] = len(x._raw_data)\n` : `x.set_data_from_numpy(${values}.reshape(${t.shape.length ? t.shape.join(", ") : "()"}))\n`;
    code += "inputs.append(x)\n";
  }
  code += `answer = client.infer(${quote(model.name)}, inputs, model_version=${quote(model.version)})\nfor o in answer.get_response()["outputs"]:\n    print(o["name"], o["shape"], answer.as_numpy(o["name"]))\n`;
  return { code, files };
}
