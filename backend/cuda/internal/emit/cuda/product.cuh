// Products of matrices, and convolutions, which are products of what a filter sees
// with the filters. A block computes a square of results; the rows and columns that
// it needs pass through shared memory, some of the depth at a time.

// What products are summed in: floats in their own type or f32, integers modulo
// 2ⁿ, and bools as numbers.
INLINE f32 summed(f32 x) { return x; }
INLINE f64 summed(f64 x) { return x; }
INLINE u32 summed(i32 x) { return (u32)x; }
INLINE u64 summed(i64 x) { return (u64)x; }
INLINE u64 summed(bool x) { return x; }

INLINE f32 fused(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
INLINE f64 fused(f64 x, f64 y, f64 z) { return fma(x, y, z); }
INLINE u32 fused(u32 x, u32 y, u32 z) { return x * y + z; }
INLINE u64 fused(u64 x, u64 y, u64 z) { return x * y + z; }

const int tile_edge = 64, tile_depth = 16, tile_threads = 256;
const int tile_lanes = 16, tile_each = tile_edge / tile_lanes; // results of a thread along each side

// product computes m × n results of depth k for each of a batch. P says what the
// operands are: row, col and depth of a number, left of a row and a depth, right of
// a depth and a col, and where results go.
template <class P> INLINE void product(const typename P::Frame& f) {
  typedef typename P::A A;
  __shared__ A left[tile_depth][tile_edge], right[tile_depth][tile_edge];
  const i64 down = (f.m + tile_edge - 1) / tile_edge, across = (f.n + tile_edge - 1) / tile_edge;
  const int t = threadIdx.x, own = t % tile_edge;
  // Threads side by side have results that are side by side in memory.
  const int r = P::by_columns ? t % tile_lanes : t / tile_lanes, c = P::by_columns ? t / tile_lanes : t % tile_lanes;
  for (i64 b = blockIdx.x; b < f.batch * down * across; b += gridDim.x) {
    const P p(f, b / (down * across));
    const i64 m0 = b / across % down * tile_edge, n0 = b % across * tile_edge;
    const bool has_row = m0 + own < f.m, has_col = n0 + own < f.n;
    const typename P::Row row = p.row(has_row ? m0 + own : 0);
    const typename P::Col col = p.col(has_col ? n0 + own : 0);
    A acc[tile_each][tile_each] = {};
    for (i64 k0 = 0; k0 < f.k; k0 += tile_depth) {
#pragma unroll
      for (int k = t / tile_edge; k < tile_depth; k += tile_threads / tile_edge) {
        A x = 0, y = 0;
        if (k0 + k < f.k) {
          const typename P::Depth depth = p.depth(k0 + k);
          if (has_row) x = p.left(row, depth);
          if (has_col) y = p.right(depth, col);
        }
        left[k][own] = x, right[k][own] = y;
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < tile_depth; k++) {
        A x[tile_each], y[tile_each];
#pragma unroll
        for (int i = 0; i < tile_each; i++) x[i] = left[k][r + i * tile_lanes], y[i] = right[k][c + i * tile_lanes];
#pragma unroll
        for (int i = 0; i < tile_each; i++) {
#pragma unroll
          for (int j = 0; j < tile_each; j++) acc[i][j] = fused(x[i], y[j], acc[i][j]);
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < tile_each; i++) {
#pragma unroll
      for (int j = 0; j < tile_each; j++) {
        const i64 m = m0 + r + i * tile_lanes, n = n0 + c + j * tile_lanes;
        if (m < f.m && n < f.n) p.put(m, n, acc[i][j]);
      }
    }
  }
}

// ProductFrame is a batch of products of matrices that lie in any way; the result
// is dense. Strides are in elements.
struct ProductFrame {
  char *dst, *x, *y;
  i64 batch, m, n, k;
  i64 x_row, x_col, y_row, y_col;
  i64 rank, dims[8], x_batch[8], y_batch[8]; // of the batch
};

template <class T> struct Matrices {
  typedef ProductFrame Frame;
  typedef decltype(summed(widen(T()))) A;
  typedef const T* Row;
  typedef const T* Col;
  typedef i64 Depth;
  static const bool by_columns = false;
  const Frame& f;
  const T *x, *y;
  T* dst;
  INLINE Matrices(const Frame& frame, i64 b) : f(frame), x((const T*)frame.x), y((const T*)frame.y), dst((T*)frame.dst + b * frame.m * frame.n) {
    for (int d = f.rank - 1; d >= 0; d--) {
      const i64 c = b % f.dims[d];
      b /= f.dims[d];
      x += c * f.x_batch[d], y += c * f.y_batch[d];
    }
  }
  INLINE Row row(i64 m) const { return x + m * f.x_row; }
  INLINE Col col(i64 n) const { return y + n * f.y_col; }
  INLINE Depth depth(i64 k) const { return k; }
  INLINE A left(Row r, Depth k) const { return summed(widen(r[k * f.x_col])); }
  INLINE A right(Depth k, Col c) const { return summed(widen(c[k * f.y_row])); }
  INLINE void put(i64 m, i64 n, A a) const { set(dst[m * f.n + n], (decltype(widen(T())))a); }
};

// ConvFrame is a convolution with three spatial dimensions: for each group, rows
// are the positions of all images, columns the channels of results, and the depth
// is channels times taps of the filter. Strides are in elements, and for
// dimensions those of the input.
struct ConvFrame {
  char *dst, *x, *w, *bias; // no bias is 0
  i64 batch, m, n, k;       // batch has the groups
  i64 in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
  i64 channels;             // of the input in a group
  i64 x_image, x_channel, x_at[3];
  i64 w_group, w_out, w_in, w_at[3];
};

template <class T, bool transposed> struct Convolution {
  typedef ConvFrame Frame;
  typedef decltype(summed(widen(T()))) A;
  struct Row {
    const T* image;
    i64 at[3];
  };
  typedef const T* Col;
  struct Depth {
    i64 x, w, at[3];
  };
  static const bool by_columns = true;
  const Frame& f;
  const T *x, *w;
  i64 group;
  INLINE Convolution(const Frame& frame, i64 g)
      : f(frame), x((const T*)frame.x + g * frame.channels * frame.x_channel), w((const T*)frame.w + g * frame.w_group), group(g) {}
  INLINE Row row(i64 m) const {
    Row r;
    for (int d = 2; d >= 0; d--) {
      const i64 o = m % f.out[d];
      m /= f.out[d];
      r.at[d] = transposed ? o + f.pad[d] : o * f.stride[d] - f.pad[d];
    }
    r.image = x + m * f.x_image;
    return r;
  }
  INLINE Col col(i64 n) const { return w + n * f.w_out; }
  INLINE Depth depth(i64 number) const {
    Depth p;
    u32 k = (u32)number;
    p.x = p.w = 0;
    for (int d = 2; d >= 0; d--) {
      const u32 q = k % (u32)f.kernel[d];
      k /= (u32)f.kernel[d];
      p.at[d] = q * f.dilation[d];
      p.w += q * f.w_at[d];
    }
    p.x = k * f.x_channel;
    p.w += k * f.w_in;
    return p;
  }
  // left is the element that a tap of the filter meets, 0 in the padding.
  INLINE A left(const Row& r, const Depth& p) const {
    i64 at = p.x;
    for (int d = 0; d < 3; d++) {
      i64 i = transposed ? r.at[d] - p.at[d] : r.at[d] + p.at[d];
      if (transposed && f.stride[d] != 1) {
        if (i % f.stride[d] != 0) return 0;
        i /= f.stride[d];
      }
      if (i < 0 || i >= f.in[d]) return 0;
      at += i * f.x_at[d];
    }
    return summed(widen(r.image[at]));
  }
  INLINE A right(const Depth& p, Col c) const { return summed(widen(c[p.w])); }
  INLINE void put(i64 m, i64 n, A a) const {
    const i64 size = f.out[0] * f.out[1] * f.out[2], channel = group * f.n + n;
    if (f.bias) a += summed(widen(((const T*)f.bias)[channel]));
    set(((T*)f.dst)[(m / size * f.batch * f.n + channel) * size + m % size], a);
  }
};

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
