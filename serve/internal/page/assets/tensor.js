// Elements of tensors as bytes, as the protocol has them: dense, row-major, little-endian.

export const sizes = { BOOL: 1, UINT8: 1, INT8: 1, UINT16: 2, INT16: 2, FP16: 2, BF16: 2, UINT32: 4, INT32: 4, FP32: 4, UINT64: 8, INT64: 8, FP64: 8 };
const ranges = { UINT8: [0n, 8n], INT8: [1n, 8n], UINT16: [0n, 16n], INT16: [1n, 16n], UINT32: [0n, 32n], INT32: [1n, 32n], UINT64: [0n, 64n], INT64: [1n, 64n] };

export const count = (shape) => shape.reduce((a, b) => a * b, 1);
export const isFloat = (datatype) => datatype.startsWith("FP") || datatype === "BF16";

const scratch = new DataView(new ArrayBuffer(4));

// bits16 rounds a number to the nearest of a format with 5 or 8 bits of exponent, halves to even.
function bits16(value, exponentBits) {
  const mantissa = 15 - exponentBits;
  const bias = (1 << (exponentBits - 1)) - 1;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const inf = ((1 << exponentBits) - 1) << mantissa;
  if (Number.isNaN(value)) return inf | 1 << (mantissa - 1);
  const a = Math.abs(value);
  if (a === 0) return sign;
  if (a === Infinity) return sign | inf;
  const e = Math.max(Math.floor(Math.log2(a)), 1 - bias);
  const exact = a / 2 ** (e - mantissa);
  let n = Math.floor(exact);
  if (exact - n > 0.5 || (exact - n === 0.5 && n % 2 === 1)) n++;
  // What was rounded up to the next power of two carries into the exponent by itself.
  const bits = n >= 1 << mantissa ? ((e + bias) << mantissa) + (n - (1 << mantissa)) : n;
  return sign | Math.min(bits, inf);
}

function float16(bits, exponentBits) {
  const mantissa = 15 - exponentBits;
  const bias = (1 << (exponentBits - 1)) - 1;
  const sign = bits & 0x8000 ? -1 : 1;
  const e = (bits & 0x7fff) >> mantissa;
  const m = bits & ((1 << mantissa) - 1);
  if (e === (1 << exponentBits) - 1) return m ? NaN : sign * Infinity;
  return e === 0 ? sign * m * 2 ** (1 - bias - mantissa) : sign * (1 + m / (1 << mantissa)) * 2 ** (e - bias);
}

// set writes one element, a number or a text; it throws an Error for what the datatype does not have.
function set(view, i, datatype, value) {
  const at = i * sizes[datatype];
  if (datatype === "BOOL") {
    if (!["0", "1", "true", "false"].includes(String(value))) throw new Error(`element ${i}: ${value} is not true, false, 1 or 0`);
    view.setUint8(at, Number(value === true || value === "true" || Number(value) === 1));
    return;
  }
  if (isFloat(datatype)) {
    const v = Number(value);
    if (Number.isNaN(v) && String(value).toLowerCase() !== "nan") throw new Error(`element ${i}: ${value} is no number`);
    if (datatype === "FP32") view.setFloat32(at, v, true);
    else if (datatype === "FP64") view.setFloat64(at, v, true);
    else if (datatype === "FP16") view.setUint16(at, bits16(v, 5), true);
    else view.setUint16(at, bits16(v, 8), true);
    return;
  }
  let v;
  try {
    v = BigInt(value);
  } catch {
    throw new Error(`element ${i}: ${value} is no whole number`);
  }
  const [signed, bits] = ranges[datatype];
  const low = signed ? -(1n << (bits - 1n)) : 0n;
  if (v < low || v >= low + (1n << bits)) throw new Error(`element ${i}: ${value} is no ${datatype}`);
  for (let b = 0; b < sizes[datatype]; b++) view.setUint8(at + b, Number((v >> BigInt(8 * b)) & 255n));
}

// encode makes bytes of numbers or texts.
export function encode(values, datatype) {
  const view = new DataView(new ArrayBuffer(values.length * sizes[datatype]));
  for (let i = 0; i < values.length; i++) set(view, i, datatype, values[i]);
  return new Uint8Array(view.buffer);
}

// decode returns numbers, BigInts for 64-bit integers, booleans, or texts for BYTES.
export function decode(bytes, datatype) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const out = [];
  if (datatype === "BYTES") {
    for (let at = 0; at + 4 <= bytes.length;) {
      const n = view.getUint32(at, true);
      out.push(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + n)));
      at += 4 + n;
    }
    return out;
  }
  const read = {
    BOOL: (i) => view.getUint8(i) !== 0, UINT8: (i) => view.getUint8(i), INT8: (i) => view.getInt8(i),
    UINT16: (i) => view.getUint16(i, true), INT16: (i) => view.getInt16(i, true), UINT32: (i) => view.getUint32(i, true), INT32: (i) => view.getInt32(i, true),
    UINT64: (i) => view.getBigUint64(i, true), INT64: (i) => view.getBigInt64(i, true), FP32: (i) => view.getFloat32(i, true), FP64: (i) => view.getFloat64(i, true),
    FP16: (i) => float16(view.getUint16(i, true), 5), BF16: (i) => float16(view.getUint16(i, true), 8),
  }[datatype];
  for (let at = 0; at + sizes[datatype] <= bytes.length; at += sizes[datatype]) out.push(read(at));
  return out;
}

// text writes a number as short as it can be told from others of its datatype.
export function text(value, datatype) {
  if (datatype === "FP32" && Number.isFinite(value)) {
    for (let digits = 6; digits < 10; digits++) {
      const short = Number(value.toPrecision(digits));
      scratch.setFloat32(0, short);
      if (scratch.getFloat32(0) === value) return String(short);
    }
  }
  return String(value);
}
