// The gradients of attention. Probabilities are computed again, from the logarithms
// that the softmax left, once by the blocks of queries for their gradient and once by
// the blocks of keys for those of keys and values: no two blocks add to the same
// place, so that results are the same from run to run.

struct AttentionGradFrame {
  AttentionFrame f; // out, sums: what attention left
  Strided grad, query, key, value;
  f32* delta;  // for each row what its gradient and its result have in common
  i64 shared;  // heads of query to one of key: the last dimension of the batch
  f64 scale;   // of scores
};

// GradShape is what a block works on: 64 rows, whose warps have 16 each, against
// tiles of rows of the other side, of which one is on its way.
template <int bytes> struct GradShape {
  static const int rows = 64, tile = bytes <= 128 ? 32 : 16;
};

// attention_delta sums up gradient times result of each row, by a warp.
template <class T> INLINE void attention_delta(const AttentionGradFrame& g) {
  const AttentionFrame& f = g.f;
  const int warps = blockDim.x / 32, lane = threadIdx.x % 32;
  for (i64 n = (i64)blockIdx.x * warps + threadIdx.x / 32; n < f.batch * f.queries; n += (i64)gridDim.x * warps) {
    const i64 head = n / f.queries, row = n % f.queries;
    const T* const x = in_batch<const T>(g.grad, f, head) + row * g.grad.row;
    const T* const y = in_batch<const T>(f.out, f, head) + row * f.out.row;
    f32 sum = 0;
    for (i64 c = lane; c < f.value_dim; c += 32) sum = fmaf(widen(x[c * g.grad.col]), widen(y[c * f.out.col]), sum);
    for (int d = 16; d > 0; d /= 2) sum += shuffle(sum, d);
    if (lane == 0) g.delta[n] = sum;
  }
}

// write_rows writes 16 rows of a warp's results, from row on.
template <bool packed, class T, int N> INLINE void write_rows(T* to, const Strided& s, i64 row, i64 rows, i64 cols, const f32 (&x)[1][N][4], f32 scale) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const i64 at = row + lane / 4 + r * 8;
    if (at >= rows) continue;
#pragma unroll
    for (int n = 0; n < N; n++) set_pair<packed>(to + at * s.row, n * 8 + lane % 4 * 2, cols, x[0][n][2 * r] * scale, x[0][n][2 * r + 1] * scale);
  }
}

template <class P, class M, int E, int V, bool packed> INLINE void attention_grad_query(const AttentionGradFrame& g) {
  typedef typename P::T T;
  const int widest = E > V ? E : V;
  typedef GradShape<widest * sizeof(T)> Shape;
  const int tile = Shape::tile, step = widest * sizeof(T) / 16 + 1;
  __shared__ Pack<u32, 4> pool[(4 * tile < Shape::rows ? Shape::rows : 4 * tile) * step]; // for the block's own rows first
  const Tile<T, E> own_q = {(char*)pool}, k[2] = {{(char*)pool}, {(char*)(pool + tile * step)}};
  const Tile<T, V> own_grad = {(char*)pool}, v[2] = {{(char*)(pool + 2 * tile * step)}, {(char*)(pool + 3 * tile * step)}};
  const AttentionFrame& f = g.f;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 * 16;
  const f32 scale = f.scale;
  const i64 blocks = (f.queries + Shape::rows - 1) / Shape::rows;
  for (i64 b = blockIdx.x; b < f.batch * blocks; b += gridDim.x) {
    const i64 head = b / blocks, q0 = (blocks - 1 - b % blocks) * Shape::rows;
    const i64 last = f.causal ? least(f.keys, q0 + Shape::rows) : f.keys;
    const T* const k_rows = in_batch<const T>(f.k, f, head);
    const T* const v_rows = in_batch<const T>(f.v, f, head);
    const M* const mask = in_batch<const M>(f.mask, f, head);

    u32 q[E / P::depth][1][4], grad[V / P::depth][1][4];
    __syncthreads(); // the pool is still read for the block before
    load_tile<Shape::rows, packed>(own_q, in_batch<const T>(f.q, f, head) + q0 * f.q.row, f.q.row, f.q.col, f.queries - q0, f.dim);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    fragments<P>(q, own_q, own);
    __syncthreads();
    load_tile<Shape::rows, packed>(own_grad, in_batch<const T>(g.grad, f, head) + q0 * g.grad.row, g.grad.row, g.grad.col, f.queries - q0, f.value_dim);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    fragments<P>(grad, own_grad, own);
    __syncthreads();

    f32 log[2], delta[2], d[1][E / 8][4] = {};
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const i64 row = q0 + own + lane / 4 + r * 8;
      log[r] = row < f.queries ? f.sums[head * f.queries + row] : highest<f32>();
      delta[r] = row < f.queries ? g.delta[head * f.queries + row] : 0;
    }
    // fetch begins to read the tile at a number of keys.
    const auto fetch_tile = [&](i64 at) {
      const int side = at / tile % 2;
      if (at < last) {
        load_tile<tile, packed>(k[side], k_rows + at * f.k.row, f.k.row, f.k.col, f.keys - at, f.dim);
        load_tile<tile, packed>(v[side], v_rows + at * f.v.row, f.v.row, f.v.col, f.keys - at, f.value_dim);
      }
      cp_async_commit();
    };
    fetch_tile(0);
    for (i64 at = 0; at < last; at += tile) {
      const int side = at / tile % 2;
      cp_async_wait<0>();
      __syncthreads();
      fetch_tile(at + tile);
      f32 s[1][tile / 8][4] = {}, p[1][tile / 8][4] = {};
      across<P, tile>(s, q, k[side]);
      across<P, tile>(p, grad, v[side]);
      const bool edge = at + tile > f.keys || f.causal && at + tile > q0 + own + 1;
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const i64 row = q0 + own + lane / 4 + r * 8;
#pragma unroll
        for (int n = 0; n < tile / 8; n++) {
#pragma unroll
          for (int i = 2 * r; i < 2 * r + 2; i++) {
            const i64 col = at + n * 8 + lane % 4 * 2 + i % 2;
            f32& x = s[0][n][i];
            x *= scale;
            if (Masks<M>::any && row < f.queries && col < f.keys) x = masked(x, mask[row * f.mask.row + col * f.mask.col]);
          }
        }
        if (edge) hide(s[0], r, lane % 4 * 2, least((f.causal ? least(f.keys, row + 1) : f.keys) - at, tile));
#pragma unroll
        for (int n = 0; n < tile / 8; n++) {
#pragma unroll
          for (int i = 2 * r; i < 2 * r + 2; i++) s[0][n][i] = exp2_of(s[0][n][i] - log[r]) * (p[0][n][i] - delta[r]);
        }
      }
      P::template along<tile>(d, s, k[side]);
    }
    write_rows<packed>(in_batch<T>(g.query, f, head), g.query, q0 + own, f.queries, f.dim, d, g.scale);
  }
}

template <class P, class M, int E, int V, bool packed> INLINE void attention_grad_key(const AttentionGradFrame& g) {
  typedef typename P::T T;
  const int widest = E > V ? E : V;
  typedef GradShape<widest * sizeof(T)> Shape;
  const int tile = Shape::tile, rows = Shape::rows, step = widest * sizeof(T) / 16 + 1;
  // The block's own values stay; its keys are first where the other tiles are then.
  __shared__ Pack<u32, 4> values[rows * step], pool[(4 * tile < rows ? rows : 4 * tile) * step];
  const Tile<T, V> own_v = {(char*)values}, grad[2] = {{(char*)(pool + 2 * tile * step)}, {(char*)(pool + 3 * tile * step)}};
  const Tile<T, E> own_k = {(char*)pool}, q[2] = {{(char*)pool}, {(char*)(pool + tile * step)}};
  const AttentionFrame& f = g.f;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 * 16;
  const f32 scale = f.scale;
  const i64 blocks = (f.keys + rows - 1) / rows;
  for (i64 b = blockIdx.x; b < f.batch / g.shared * blocks; b += gridDim.x) {
    const i64 head = b / blocks * g.shared, k0 = b % blocks * rows;
    u32 k[E / P::depth][1][4];
    __syncthreads(); // the pool is still read for the block before
    load_tile<rows, packed>(own_k, in_batch<const T>(f.k, f, head) + k0 * f.k.row, f.k.row, f.k.col, f.keys - k0, f.dim);
    load_tile<rows, packed>(own_v, in_batch<const T>(f.v, f, head) + k0 * f.v.row, f.v.row, f.v.col, f.keys - k0, f.value_dim);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    fragments<P>(k, own_k, own);
    __syncthreads();

    f32 d_key[1][E / 8][4] = {}, d_value[1][V / 8][4] = {};
    const i64 first = f.causal ? k0 / tile * tile : 0; // queries before see none of these keys
    const i64 tiles = first < f.queries ? (f.queries - first + tile - 1) / tile : 0, all = tiles * g.shared;
    // fetch_tile begins to read a tile of queries and their gradients.
    const auto fetch_tile = [&](i64 n) {
      if (n < all) {
        const i64 h = head + n / tiles, at = first + n % tiles * tile;
        load_tile<tile, packed>(q[n % 2], in_batch<const T>(f.q, f, h) + at * f.q.row, f.q.row, f.q.col, f.queries - at, f.dim);
        load_tile<tile, packed>(grad[n % 2], in_batch<const T>(g.grad, f, h) + at * g.grad.row, g.grad.row, g.grad.col, f.queries - at, f.value_dim);
      }
      cp_async_commit();
    };
    fetch_tile(0);
    for (i64 t = 0; t < all; t++) {
      const int side = t % 2;
      const i64 h = head + t / tiles, at = first + t % tiles * tile;
      const M* const mask = in_batch<const M>(f.mask, f, h);
      cp_async_wait<0>();
      __syncthreads();
      fetch_tile(t + 1);
      f32 s[1][tile / 8][4] = {}, p[1][tile / 8][4] = {};
      across<P, tile>(s, k, q[side]);
#pragma unroll
      for (int c = 0; c < V / P::depth; c++) {
        u32 v[1][4];
        P::fragment(v, own_v, own, c);
        P::template step<tile>(p, v, grad[side], c);
      }
      const bool edge = k0 + rows > f.keys || f.causal && k0 + rows > at + 1;
#pragma unroll
      for (int n = 0; n < tile / 8; n++) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
          const i64 row = at + n * 8 + lane % 4 * 2 + j; // of scores: a query
          const bool there = row < f.queries;
          const f32 log = there ? f.sums[h * f.queries + row] : highest<f32>(), delta = there ? g.delta[h * f.queries + row] : 0;
#pragma unroll
          for (int r = 0; r < 2; r++) {
            const i64 col = k0 + own + lane / 4 + r * 8;
            const int i = 2 * r + j;
            f32 x = s[0][n][i] * scale;
            if (Masks<M>::any && there && col < f.keys) x = masked(x, mask[row * f.mask.row + col * f.mask.col]);
            if (edge && (col >= f.keys || f.causal && col > row)) x = lowest<f32>();
            s[0][n][i] = exp2_of(x - log);
            p[0][n][i] = s[0][n][i] * (p[0][n][i] - delta);
          }
        }
      }
      P::template along<tile>(d_value, s, grad[side]);
      P::template along<tile>(d_key, p, q[side]);
    }
    write_rows<packed>(in_batch<T>(g.key, f, head), g.key, k0 + own, f.keys, f.dim, d_key, g.scale);
    write_rows<packed>(in_batch<T>(g.value, f, head), g.value, k0 + own, f.keys, f.value_dim, d_value, 1);
  }
}
