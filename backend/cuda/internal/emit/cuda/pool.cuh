// Windows of pooling.

// PoolFrame finds the largest element of each window over the last three
// dimensions of a dense tensor.
struct PoolFrame {
  char *dst, *indices, *x;
  i64 n; // results
  i64 in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
};

template <class T> INLINE T least_of(T) { return (T)-1 < 0 ? (T)(1ull << (8 * sizeof(T) - 1)) : (T)0; }
INLINE f32 least_of(f32) { return lowest<f32>(); }
INLINE f64 least_of(f64) { return lowest<f64>(); }

// max_pool takes the first of equal elements, and the last NaN. A window in the
// padding alone gives the least number and index 0.
template <class T> INLINE void max_pool(const PoolFrame& f) {
  EACH(i, f.n) {
    i64 rest = i, from[3];
    for (int d = 2; d >= 0; d--) {
      from[d] = rest % f.out[d] * f.stride[d] - f.pad[d];
      rest /= f.out[d];
    }
    const T* const x = (const T*)f.x + rest * f.in[0] * f.in[1] * f.in[2];
    i64 best = -1;
    auto most = least_of(widen(T()));
    for (i64 a = 0; a < f.kernel[0]; a++) {
      const i64 p0 = from[0] + a * f.dilation[0];
      if (p0 < 0 || p0 >= f.in[0]) continue;
      for (i64 b = 0; b < f.kernel[1]; b++) {
        const i64 p1 = from[1] + b * f.dilation[1];
        if (p1 < 0 || p1 >= f.in[1]) continue;
        for (i64 c = 0; c < f.kernel[2]; c++) {
          const i64 p2 = from[2] + c * f.dilation[2];
          if (p2 < 0 || p2 >= f.in[2]) continue;
          const i64 at = (p0 * f.in[1] + p1) * f.in[2] + p2;
          const auto v = widen(x[at]);
          if (best < 0 || v > most || v != v) best = at, most = v;
        }
      }
    }
    set(((T*)f.dst)[i], most);
    ((i64*)f.indices)[i] = best < 0 ? 0 : best;
  }
}
