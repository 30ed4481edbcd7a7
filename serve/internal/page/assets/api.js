// Requests to the server that the page came from, with the token that the person gave.

const key = "loris-token";

export function token() {
  return sessionStorage.getItem(key) ?? "";
}

export function setToken(text) {
  if (text) sessionStorage.setItem(key, text);
  else sessionStorage.removeItem(key);
}

export function headers(more = {}) {
  return token() ? { ...more, Authorization: `Bearer ${token()}` } : more;
}

// call returns the answer, or throws an Error with what the server says is wrong.
export async function call(path, options = {}) {
  const r = await fetch(path, { ...options, headers: headers(options.headers) });
  if (r.ok) return r;
  let text = await r.text();
  try {
    text = JSON.parse(text).error;
  } catch { /* not the server's own answer */ }
  const e = new Error(text || `status ${r.status}`);
  e.status = r.status;
  throw e;
}

export async function json(path, options) {
  return (await call(path, options)).json();
}

export function post(path, value = {}) {
  return json(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
}

export const modelPath = (m) => `v2/models/${encodeURIComponent(m.name)}/versions/${encodeURIComponent(m.version)}`;

// events calls fn with each event of the stream, and comes back to it when it ends.
export async function events(fn, failed) {
  for (;;) {
    try {
      const r = await call("page/events");
      const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) fn(JSON.parse(part.slice("data: ".length)));
      }
      failed(new Error("the server ended the stream"));
    } catch (e) {
      failed(e);
    }
    await new Promise((done) => setTimeout(done, 2000));
  }
}
