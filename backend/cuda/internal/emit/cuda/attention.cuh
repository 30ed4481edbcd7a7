// Attention in the flash form: a block has some queries in registers and goes over
// the keys and values by tiles in shared memory, with the softmax of what it has
// seen so far; scores are never in memory. While a tile is computed with, the next
// one is on its way.

// Logarithms and exponents are those of 2; scores are multiplied by log2 e before.
const f32 log2e = 1.4426950408889634f;

INLINE f32 exp2_of(f32 x) {
#ifdef __CUDA_ARCH__
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

const int attention_threads = 128; // four warps, of 16 or 32 rows each

// Tile is rows of W elements in shared memory. They are 16 bytes further apart than
// they are long, so that what a warp reads of several rows lies in several banks.
template <class T, int W> struct Tile {
  static const int step = W * sizeof(T) + 16;
  char* at;
  INLINE T* row(int r) const { return (T*)(at + r * step); }
};

// load_tile begins to fill a tile with N rows; zeros stand for what is not there.
// Packed rows begin at multiples of 16 bytes and have a multiple of 16 bytes.
template <int N, bool packed, class T, int W> INLINE void load_tile(Tile<T, W> to, const T* from, i64 row, i64 col, i64 rows, i64 cols) {
  if (packed) {
    const int each = 16 / sizeof(T), chunks = W / each;
#pragma unroll
    for (int i = threadIdx.x; i < N * chunks; i += attention_threads) {
      const int r = i / chunks, c = i % chunks * each;
      const bool there = r < rows && c < cols;
      cp_async<16>(to.row(r) + c, there ? from + r * row + c : from, there ? 16 : 0);
    }
  } else {
    for (int i = threadIdx.x; i < N * W; i += attention_threads) {
      const int r = i / W, c = i % W;
      T x = {};
      if (r < rows && c < cols) x = from[r * row + c * col];
      to.row(r)[c] = x;
    }
  }
}

// Pairs multiplies f16s or bf16s. All matrices are of mma's fragments: M times 16
// rows, in words of left operands or sums of results.
template <class E> struct Pairs {
  typedef E T;
  static const int depth = 16; // columns of a fragment

  // fragment reads a fragment of columns of M times 16 rows of a tile, from r on.
  template <int M, int W> static INLINE void fragment(u32 (&a)[M][4], Tile<T, W> x, int r, int k) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < M; m++) ldmatrix<false>(a[m], x.row(r + m * 16 + lane % 16) + k * 16 + lane / 16 * 8);
  }

  // step adds the products of a fragment with that of the N rows of a tile.
  template <int N, int M, int W> static INLINE void step(f32 (&c)[M][N / 8][4], const u32 (&a)[M][4], Tile<T, W> y, int k) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N / 16; n++) {
      u32 b[4];
      ldmatrix<false>(b, y.row(n * 16 + lane / 16 * 8 + lane % 8) + k * 16 + lane / 8 % 2 * 8);
      const u32 low[2] = {b[0], b[1]}, high[2] = {b[2], b[3]};
#pragma unroll
      for (int m = 0; m < M; m++) mma<T>(c[m][2 * n], a[m], low), mma<T>(c[m][2 * n + 1], a[m], high);
    }
  }

  // along adds the products of p with the N rows of a tile.
  template <int N, int M, int W> static INLINE void along(f32 (&c)[M][W / 8][4], const f32 (&p)[M][N / 8][4], Tile<T, W> y) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N / 16; n++) {
      u32 a[M][4];
#pragma unroll
      for (int m = 0; m < M; m++) {
#pragma unroll
        for (int i = 0; i < 4; i++) a[m][i] = pack_pair<T>(p[m][2 * n + i / 2][i % 2 * 2], p[m][2 * n + i / 2][i % 2 * 2 + 1]);
      }
#pragma unroll
      for (int k = 0; k < W / 16; k++) {
        u32 b[4];
        ldmatrix<true>(b, y.row(n * 16 + lane % 16) + k * 16 + lane / 16 * 8);
        const u32 low[2] = {b[0], b[1]}, high[2] = {b[2], b[3]};
#pragma unroll
        for (int m = 0; m < M; m++) mma<T>(c[m][2 * k], a[m], low), mma<T>(c[m][2 * k + 1], a[m], high);
      }
    }
  }
};

// Singles multiplies f32s: rounded to tf32, or, if exact, each as the sum of two
// tf32s, which leaves 2⁻²² of a product. An infinite operand makes NaNs then.
template <bool exact> struct Singles {
  typedef f32 T;
  static const int depth = 8;

  // Parts are numbers as tf32s and what that leaves.
  template <int N> struct Parts {
    u32 big[N], rest[N];
    INLINE void set(int i, f32 x) {
      big[i] = to_tf32(x);
      rest[i] = exact ? to_tf32(x - __uint_as_float(big[i])) : 0;
    }
  };
  static INLINE void add(f32 (&c)[4], const Parts<4>& a, const Parts<2>& b) {
    if (exact) mma_tf32(c, a.rest, b.big), mma_tf32(c, a.big, b.rest);
    mma_tf32(c, a.big, b.big);
  }

  template <int M, int W> static INLINE void fragment(u32 (&a)[M][4], Tile<T, W> x, int r, int k) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
      for (int i = 0; i < 4; i++) a[m][i] = __float_as_uint(x.row(r + m * 16 + lane / 4 + i % 2 * 8)[k * 8 + lane % 4 + i / 2 * 4]);
    }
  }

  template <int N, int M, int W> static INLINE void step(f32 (&c)[M][N / 8][4], const u32 (&a)[M][4], Tile<T, W> y, int k) {
    const int lane = threadIdx.x % 32;
    Parts<4> x[M];
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
      for (int i = 0; i < 4; i++) x[m].set(i, __uint_as_float(a[m][i]));
    }
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
      Parts<2> b;
#pragma unroll
      for (int i = 0; i < 2; i++) b.set(i, y.row(n * 8 + lane / 4)[k * 8 + lane % 4 + i * 4]);
#pragma unroll
      for (int m = 0; m < M; m++) add(c[m][n], x[m], b);
    }
  }

  // A column of p is the number of a row of the tile. Which goes by which name in
  // mma does not matter, so that the lanes' own two beside each other do.
  template <int N, int M, int W> static INLINE void along(f32 (&c)[M][W / 8][4], const f32 (&p)[M][N / 8][4], Tile<T, W> y) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
      Parts<4> x[M];
#pragma unroll
      for (int m = 0; m < M; m++) {
#pragma unroll
        for (int i = 0; i < 4; i++) x[m].set(i, p[m][n][i % 2 * 2 + i / 2]);
      }
#pragma unroll
      for (int k = 0; k < W / 8; k++) {
        Parts<2> b;
#pragma unroll
        for (int i = 0; i < 2; i++) b.set(i, y.row(n * 8 + lane % 4 * 2 + i)[k * 8 + lane / 4]);
#pragma unroll
        for (int m = 0; m < M; m++) add(c[m][k], x[m], b);
      }
    }
  }
};

// fragments reads M times 16 rows of a tile, from r on.
template <class P, int M, int W> INLINE void fragments(u32 (&a)[W / P::depth][M][4], Tile<typename P::T, W> x, int r) {
#pragma unroll
  for (int k = 0; k < W / P::depth; k++) P::fragment(a[k], x, r, k);
}

// across adds the products of the rows of a with the N rows of a tile.
template <class P, int N, int M, int W> INLINE void across(f32 (&c)[M][N / 8][4], const u32 (&a)[W / P::depth][M][4], Tile<typename P::T, W> y) {
#pragma unroll
  for (int k = 0; k < W / P::depth; k++) P::template step<N>(c, a[k], y, k);
}

// Strided is an operand: where it begins, and strides in elements, of the batch and
// of its rows and columns.
struct Strided {
  char* at;
  i64 row, col, batch[6];
};

// AttentionFrame is attention of a batch, of which some heads may share keys.
struct AttentionFrame {
  Strided out, q, k, v, mask;
  f32* sums;        // for each row log2 of the sum of exponentials, or 0
  f32 *part, *logs; // of each of several splits the rows' results and sums
  i64 rank, dims[6];
  i64 batch, queries, keys, dim, value_dim;
  i64 causal;
  f64 scale; // with log2 e
  i64 splits, share; // and how many keys one has
};

// in_batch returns where an operand begins for a number of the batch.
template <class T> INLINE T* in_batch(const Strided& s, const AttentionFrame& f, i64 b) {
  T* p = (T*)s.at;
  for (int d = f.rank - 1; d >= 0; d--) {
    p += b % f.dims[d] * s.batch[d];
    b /= f.dims[d];
  }
  return p;
}

// What a mask does to a score. Never is no mask.
struct Never {};
INLINE f32 masked(f32 x, Never) { return x; }
INLINE f32 masked(f32 x, bool8 m) { return m.bits ? x : lowest<f32>(); }
template <class M> INLINE f32 masked(f32 x, M m) { return x + widen(m) * log2e; }
template <class M> struct Masks { static const bool any = true; };
template <> struct Masks<Never> { static const bool any = false; };

// quad_max and quad_sum fold what the four lanes of a row have.
INLINE f32 quad_max(f32 x) {
  x = fmaxf(x, shuffle(x, 1));
  return fmaxf(x, shuffle(x, 2));
}
INLINE f32 quad_sum(f32 x) {
  x += shuffle(x, 1);
  return x + shuffle(x, 2);
}

// hide takes from a row of scores those from a column on; lane is the first column
// of the lane.
template <int N> INLINE void hide(f32 (&s)[N][4], int r, int lane, int from) {
#pragma unroll
  for (int n = 0; n < N; n++) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      if (n * 8 + lane + i >= from) s[n][2 * r + i] = lowest<f32>();
    }
  }
}

// set_pair writes two results beside each other, of which the row has n.
template <bool packed, class T> INLINE void set_pair(T* row, i64 col, i64 n, f32 x, f32 y) {
  T v[2];
  set(v[0], x), set(v[1], y);
  if (packed) {
    if (col < n) put<2>((char*)(row + col), v);
  } else {
    if (col < n) row[col] = v[0];
    if (col + 1 < n) row[col + 1] = v[1];
  }
}

// AttentionShape is what a block works on, by the elements and bytes of the longest
// row of an operand: as much as registers hold.
template <int W, int bytes, bool simple> struct AttentionShape {
  static const int high = bytes <= 128 && simple ? 2 : 1;       // fragments of rows to a warp
  static const int rows = 64 * high;                            // of queries
  static const int keys = W > 192 ? 16 : bytes > 256 ? 32 : 64; // in a tile
};

template <class P, class M, int E, int V, bool packed> INLINE void attention(const AttentionFrame& f) {
  typedef typename P::T T;
  const int widest = E > V ? E : V;
  typedef AttentionShape<widest, widest * sizeof(T), packed && !Masks<M>::any> Shape;
  const int high = Shape::high, keys = Shape::keys, step = widest * sizeof(T) / 16 + 1;
  __shared__ Pack<u32, 4> pool[(2 * keys < Shape::rows ? Shape::rows : 2 * keys) * step]; // for the rows of queries first
  const Tile<T, E> at_start = {(char*)pool}, k = {(char*)pool};
  const Tile<T, V> v = {(char*)(pool + keys * step)};
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 * 16 * high; // the warp's first row
  const f32 scale = f.scale;
  const i64 blocks = (f.queries + Shape::rows - 1) / Shape::rows;
  for (i64 b = blockIdx.x; b < f.batch * blocks * f.splits; b += gridDim.x) {
    // Of causal blocks those with most keys come first.
    const i64 split = b % f.splits, head = b / f.splits / blocks, q0 = (blocks - 1 - b / f.splits % blocks) * Shape::rows;
    const i64 first = split * f.share, most = least(f.keys, first + f.share), last = f.causal ? least(most, q0 + Shape::rows) : most;
    const T* const q_rows = in_batch<const T>(f.q, f, head) + q0 * f.q.row;
    const T* const k_rows = in_batch<const T>(f.k, f, head);
    const T* const v_rows = in_batch<const T>(f.v, f, head);
    const M* const mask = in_batch<const M>(f.mask, f, head);

    u32 a[E / P::depth][high][4];
    __syncthreads(); // the pool is still read for the block before
    load_tile<Shape::rows, packed>(at_start, q_rows, f.q.row, f.q.col, f.queries - q0, f.dim);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    fragments<P>(a, at_start, own);
    __syncthreads();

    f32 o[high][V / 8][4] = {}, top[high][2], sum[high][2] = {};
#pragma unroll
    for (int m = 0; m < high; m++) top[m][0] = top[m][1] = lowest<f32>();
    if (first < last) load_tile<keys, packed>(k, k_rows + first * f.k.row, f.k.row, f.k.col, f.keys - first, f.dim);
    cp_async_commit();
    for (i64 at = first; at < last; at += keys) {
      cp_async_wait<0>();
      __syncthreads();
      load_tile<keys, packed>(v, v_rows + at * f.v.row, f.v.row, f.v.col, f.keys - at, f.value_dim);
      cp_async_commit();
      f32 s[high][keys / 8][4] = {};
      across<P, keys>(s, a, k);
      cp_async_wait<0>();
      __syncthreads();
      if (at + keys < last) load_tile<keys, packed>(k, k_rows + (at + keys) * f.k.row, f.k.row, f.k.col, f.keys - at - keys, f.dim);
      cp_async_commit();

      const bool edge = at + keys > f.keys || f.causal && at + keys > q0 + own + 1;
#pragma unroll
      for (int m = 0; m < high; m++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
          const i64 row = q0 + own + m * 16 + lane / 4 + r * 8;
#pragma unroll
          for (int n = 0; n < keys / 8; n++) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
              const i64 col = at + n * 8 + lane % 4 * 2 + i;
              f32& x = s[m][n][2 * r + i];
              x *= scale;
              if (Masks<M>::any && row < f.queries && col < f.keys) x = masked(x, mask[row * f.mask.row + col * f.mask.col]);
            }
          }
          if (edge) hide(s[m], r, lane % 4 * 2, least((f.causal ? least(f.keys, row + 1) : f.keys) - at, keys));
          f32 best = top[m][r];
#pragma unroll
          for (int n = 0; n < keys / 8; n++) best = fmaxf(best, fmaxf(s[m][n][2 * r], s[m][n][2 * r + 1]));
          best = quad_max(best);
          const f32 base = best == lowest<f32>() ? 0 : best, less = exp2_of(top[m][r] - base);
          top[m][r] = best;
          f32 all = 0;
#pragma unroll
          for (int n = 0; n < keys / 8; n++) {
#pragma unroll
            for (int i = 0; i < 2; i++) all += s[m][n][2 * r + i] = exp2_of(s[m][n][2 * r + i] - base);
          }
          sum[m][r] = fmaf(sum[m][r], less, all);
#pragma unroll
          for (int n = 0; n < V / 8; n++) o[m][n][2 * r] *= less, o[m][n][2 * r + 1] *= less;
        }
      }
      P::template along<keys>(o, s, v);
    }

#pragma unroll
    for (int m = 0; m < high; m++) {
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const i64 row = q0 + own + m * 16 + lane / 4 + r * 8;
        const f32 all = quad_sum(sum[m][r]);
        if (row >= f.queries) continue;
        // A row that sees nothing is 0, one whose scores are all -inf is NaN.
        const f32 log = top[m][r] + log2f(all), inverse = all != 0 ? 1 / all : Masks<M>::any || !f.keys ? 0 : 0 / all;
        const i64 number = head * f.queries + row, place = (split * f.batch + head) * f.queries + row;
        if (lane % 4 == 0 && f.sums && f.splits == 1) f.sums[number] = all != 0 ? log : highest<f32>();
        if (lane % 4 == 0 && f.splits > 1) f.logs[place] = log;
        T* const to = in_batch<T>(f.out, f, head) + row * f.out.row;
#pragma unroll
        for (int n = 0; n < V / 8; n++) {
          const i64 col = n * 8 + lane % 4 * 2;
          const f32 x = o[m][n][2 * r] * inverse, y = o[m][n][2 * r + 1] * inverse;
          if (f.splits > 1) set_pair<false>(f.part + place * f.value_dim, col, f.value_dim, x, y);
          else set_pair<packed>(to, col, f.value_dim, x, y);
        }
      }
    }
  }
}

// attention_join adds up the splits.
template <class T> INLINE void attention_join(const AttentionFrame& f) {
  const i64 rows = f.batch * f.queries;
  EACH(i, rows * f.value_dim) {
    const i64 number = i / f.value_dim, col = i % f.value_dim, row = number % f.queries;
    f32 top = lowest<f32>(), sum = 0, x = 0;
    for (i64 s = 0; s < f.splits; s++) top = fmaxf(top, f.logs[s * rows + number]);
    const f32 base = top == lowest<f32>() ? 0 : top;
    for (i64 s = 0; s < f.splits; s++) {
      const f32 weight = exp2_of(f.logs[s * rows + number] - base);
      sum += weight;
      if (weight != 0) x = fmaf(weight, f.part[(s * rows + number) * f.value_dim + col], x);
    }
    const bool dead = sum == 0;
    if (col == 0 && f.sums) f.sums[number] = dead ? highest<f32>() : top + log2f(sum);
    if (dead) x = f.mask.at ? 0 : 0 / sum;
    else x /= sum;
    set((in_batch<T>(f.out, f, number / f.queries) + row * f.out.row)[col], x);
  }
}
