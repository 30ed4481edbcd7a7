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
// padding alone gives the least number and index 0. I numbers the elements of the
// tensor and the results.
template <class T, class I> INLINE void max_pool(const PoolFrame& f) {
  typedef typename Unsigned<I>::type U;
  const I in0 = f.in[0], in1 = f.in[1], in2 = f.in[2];
  EACH(i, f.n) {
    U rest = (U)i;
    I from[3];
#pragma unroll
    for (int d = 2; d >= 0; d--) {
      from[d] = (I)(rest % (U)f.out[d]) * (I)f.stride[d] - (I)f.pad[d];
      rest /= (U)f.out[d];
    }
    const T* const x = (const T*)f.x + (I)rest * in0 * in1 * in2;
    I best = -1;
    auto most = least_of(widen(T()));
    for (I a = 0, p0 = from[0]; a < (I)f.kernel[0]; a++, p0 += (I)f.dilation[0]) {
      if ((U)p0 >= (U)in0) continue;
      for (I b = 0, p1 = from[1]; b < (I)f.kernel[1]; b++, p1 += (I)f.dilation[1]) {
        if ((U)p1 >= (U)in1) continue;
        const I row = (p0 * in1 + p1) * in2;
        for (I c = 0, p2 = from[2]; c < (I)f.kernel[2]; c++, p2 += (I)f.dilation[2]) {
          if ((U)p2 >= (U)in2) continue;
          const auto v = widen(x[row + p2]);
          if (best < 0 || v > most || v != v) best = row + p2, most = v;
        }
      }
    }
    set(((T*)f.dst)[i], most);
    ((i64*)f.indices)[i] = best < 0 ? 0 : best;
  }
}
