// Tiles: blocks that compute BM × BN results of a product of two matrices. Of both
// a tile's rows lie in shared memory along the depth, 64 bytes at a time: four
// chunks of 16 bytes, whose order depends on the row, so that neither what comes
// from memory nor what goes to registers meets in a bank. A warp computes WM × WN of
// the results in registers, by tensor cores or one by one.
//
// A problem P says what the matrices are: m left rows and n right ones, which are
// columns of the right matrix, both of depth k. Row is a row, Digits are a place in
// the depth, Reach how far that is, and at where both meet; inside is false where
// there is nothing.

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

// Tail is what becomes of sums: they go through links, a vector or a number each,
// get an addend and go through an activation. The depth may be cut into parts,
// whose sums wait in work.
const int max_links = 9;
struct Tail {
  char *dst, *work;
  i64 total, parts;    // results, and into how many parts the depth is cut
  i64 inner, channels; // result i is of channel i / inner % channels
  char* addend;        // of dst's type and dimensions, or 0
  i64 act, links;
  struct {
    char* at;
    i64 step, op; // step is 1 for a vector along the channels, 0 for a number
  } link[max_links];
};

enum { act_none, act_relu, act_gelu, act_gelu_tanh, act_silu, act_sigmoid, act_tanh };

template <class F> INLINE F activated(F x, i64 act) {
  switch (act) {
  case act_relu: return op_relu(x);
  case act_gelu: return x * (F)0.5 * (op_erf(x * (F)0.70710678118654752440) + 1);
  case act_gelu_tanh: return x * (F)0.5 * (op_tanh((x + x * x * x * (F)0.044715) * (F)0.79788456080286535588) + 1);
  case act_silu: return x * op_sigmoid(x);
  case act_sigmoid: return op_sigmoid(x);
  case act_tanh: return op_tanh(x);
  }
  return x;
}

// finish rounds and writes result i.
template <class T, bool post, class A> INLINE void finish(const Tail& f, i64 i, i64 channel, A sum) {
  auto x = (decltype(widen(T())))sum;
  if constexpr (post) {
    for (int k = 0; k < f.links; k++) {
      const auto y = widen(((const T*)f.link[k].at)[f.link[k].step * channel]);
      switch (f.link[k].op) {
      case 0: x += y; break;
      case 1: x -= y; break;
      case 2: x *= y; break;
      default: x /= y;
      }
    }
    if (f.addend) x += widen(((const T*)f.addend)[i]);
    x = activated(x, f.act);
  }
  set(((T*)f.dst)[i], x);
}

// join adds the parts of the depth in their order.
template <class T, bool post> INLINE void join_parts(const Tail& f) {
  typedef decltype(summed(widen(T()))) A;
  EACH(i, f.total) {
    A sum = 0;
    for (i64 p = 0; p < f.parts; p++) sum += ((const A*)f.work)[p * f.total + i];
    finish<T, post>(f, i, i / f.inner % f.channels, sum);
  }
}

// How rows come to shared memory.
enum {
  by_chunks,   // 16 bytes at once, asynchronously
  across_rows, // by elements; lanes are neighbours across rows
  along_depth, // by elements; lanes are neighbours along the depth
};

struct alignas(128) Banks { char bytes[128]; };

// chunk_at returns where a chunk of a row is.
INLINE int chunk_at(int row, int chunk) { return row * 64 + ((chunk ^ (row >> 1 & 3)) << 4); }

// Walk is where a thread is in the depth, and how far it goes on after each step.
template <class P> struct Walk {
  typename P::Digits digits, by;
  i32 k;
};

// TileSide is the left or the right rows of a tile on their way to shared memory.
template <class P, bool right, int rows, int threads, int way> struct TileSide {
  typedef typename P::T T;
  static const int V = 16 / sizeof(T), deep = 4 * V;
  static const int each = rows * (way == by_chunks ? 4 : deep) / threads; // of chunks or elements
  static const int states = way == by_chunks ? each : 1;
  typename P::Row row[states];
  i32 first; // row of the problem
  T held[way == by_chunks ? 1 : each];

  INLINE TileSide(const P& p, i32 first) : first(first) {
    const int t = threadIdx.x;
#pragma unroll
    for (int j = 0; j < states; j++) row[j] = p.template row<right>(first + (way == by_chunks ? t / 4 + j * (threads / 4) : t % rows));
  }

  INLINE static Walk<P> walk(const P& p, i32 k0) {
    const int t = threadIdx.x, k = k0 + (way == by_chunks ? t % 4 * V : way == across_rows ? t / rows * each : t % deep);
    return Walk<P>{p.digits(k), p.digits(way == across_rows ? deep - each : deep), k};
  }

  // begin has the rows come. Lanes that are neighbours across rows move on by each
  // element.
  INLINE void begin(const P& p, Walk<P>& walk, char* to) {
    const int t = threadIdx.x;
    typename P::Reach reach = p.template reach<right>(walk.digits);
    bool inside;
    if (way == by_chunks) {
      const i32 left = (i32)p.k - walk.k;
      const int valid = (left < V ? left < 0 ? 0 : left : V) * (int)sizeof(T);
#pragma unroll
      for (int j = 0; j < states; j++) {
        const T* const from = p.template at<right>(row[j], reach, inside);
        cp_async<16>(to + chunk_at(t / 4 + j * (threads / 4), t % 4), from, inside ? valid : 0);
      }
    } else {
#pragma unroll
      for (int j = 0; j < each; j++) {
        if (way == along_depth) row[0] = p.template row<right>(first + t / deep + j * (threads / deep));
        const T* const from = p.template at<right>(row[0], reach, inside);
        held[j] = inside && walk.k + (way == across_rows ? j : 0) < (i32)p.k ? *from : T();
        if (way == across_rows) p.next(walk.digits), reach = p.template reach<right>(walk.digits);
      }
    }
  }

  // end puts what came to registers where it belongs.
  INLINE void end(char* to) const {
    const int t = threadIdx.x;
    if (way == across_rows) {
#pragma unroll
      for (int j = 0; j < each / V; j++) {
        Pack<T, V> pack;
#pragma unroll
        for (int v = 0; v < V; v++) pack.v[v] = held[j * V + v];
        *(Pack<T, V>*)(to + chunk_at(t % rows, t / rows * (each / V) + j)) = pack;
      }
    } else if (way == along_depth) {
      const int c = t % deep;
#pragma unroll
      for (int j = 0; j < each; j++) ((T*)(to + chunk_at(t / deep + j * (threads / deep), c / V)))[c % V] = held[j];
    }
  }
};

// What multiplies: units that compute one by one, tensor cores, or these with f32s
// rounded to TF32.
enum { by_fma, by_mma, by_tf32 };

// TileWarp is the WM × WN results of a warp, 16 of the rows at a time.
template <class T, int WM, int WN, int unit> struct TileWarp;

// add adds the products of rows in shared memory. A lane has the rows lane%8 + 8·i and the columns lane/8 + 4·j.
template <class T, int WM, int WN> struct TileWarp<T, WM, WN, by_fma> {
  typedef decltype(summed(widen(T()))) A;
  static const int V = 16 / sizeof(T), I = WM / 8, J = WN / 4;
  A acc[I][J] = {};
  int left, right; // where the lane's first rows are; the bits of 48 number chunks
  INLINE TileWarp(int m0, int n0) : left(chunk_at(m0 + threadIdx.x % 8, 0)), right(chunk_at(n0 + threadIdx.x % 32 / 8, 0)) {}
  INLINE void add(const char* from) {
#pragma unroll 1
    for (int q = 0; q < 64; q += 16) {
      Pack<T, V> y[J];
#pragma unroll
      for (int j = 0; j < J; j++) y[j] = *(const Pack<T, V>*)(from + (right ^ j % 2 * 32 ^ q) + j * 256);
#pragma unroll
      for (int i = 0; i < I; i++) {
        const Pack<T, V> x = *(const Pack<T, V>*)(from + (left ^ q) + i * 512);
#pragma unroll
        for (int v = 0; v < V; v++) {
#pragma unroll
          for (int j = 0; j < J; j++) acc[i][j] = fused(summed(widen(x.v[v])), summed(widen(y[j].v[v])), acc[i][j]);
        }
      }
    }
  }
  // show writes the rows 16·i … 16·i+15 to shared memory.
  INLINE void show(int i, A* to, int pitch) const {
    const int m = threadIdx.x % 8, n = threadIdx.x % 32 / 8;
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
      for (int j = 0; j < J; j++) to[(m + 8 * half) * pitch + n + 4 * j] = acc[2 * i + half][j];
    }
  }
};

// mma_of multiplies 32 bytes of depth.
template <class T, int unit> INLINE void mma_of(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  if constexpr (unit == by_tf32) mma_tf32(c, a, b);
  else mma<T>(c, a, b);
}
template <int unit, int N> INLINE void rounded(u32 (&r)[N]) {
  if (unit != by_tf32) return;
#pragma unroll
  for (int i = 0; i < N; i++) r[i] = to_tf32(__uint_as_float(r[i]));
}

template <class T, int WM, int WN, int unit> struct TileWarp {
  typedef f32 A;
  static const int I = WM / 16, J = WN / 8;
  f32 acc[I][J][4] = {};
  int left, right;
  INLINE TileWarp(int m0, int n0) {
    const int lane = threadIdx.x % 32;
    left = chunk_at(m0 + lane % 16, lane / 16);
    right = chunk_at(n0 + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  }
  INLINE void add(const char* from) {
#pragma unroll
    for (int s = 0; s < 64; s += 32) {
      u32 b[J / 2][4];
#pragma unroll
      for (int j = 0; j < J / 2; j++) {
        ldmatrix<false>(b[j], from + (right ^ s) + j * 1024);
        rounded<unit>(b[j]);
      }
#pragma unroll
      for (int i = 0; i < I; i++) {
        u32 a[4];
        ldmatrix<false>(a, from + (left ^ s) + i * 1024);
        rounded<unit>(a);
#pragma unroll
        for (int j = 0; j < J; j++) {
          const u32 pair[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
          mma_of<T, unit>(acc[i][j], a, pair);
        }
      }
    }
  }
  INLINE void show(int i, A* to, int pitch) const {
    const int m = threadIdx.x % 32 / 4, n = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < J; j++) {
#pragma unroll
      for (int e = 0; e < 4; e++) to[(m + e / 2 * 8) * pitch + 8 * j + n + e % 2] = acc[i][j][e];
    }
  }
};

// TileForm is how a tile is computed.
template <int BM_, int BN_, int left_, int right_, int unit_, bool post_> struct TileForm {
  static const int BM = BM_, BN = BN_, left = left_, right = right_, unit = unit_;
  static const bool post = post_;
  static const int WM = BM >= 64 && BM * BN >= 8192 ? 64 : 32, WN = 32;
  static const int warps = (BM / WM) * (BN / WN), threads = 32 * warps;
  static const bool copies = left == by_chunks || right == by_chunks;
  // Tiles that come asynchronously are fetched two ahead.
  static const int stages = left == by_chunks && right == by_chunks ? 3 : 2;
  static const int stage = (BM + BN) * 64, pitch = 36;
};

// tiles computes all tiles of all problems of a frame, which has f.batch of f.down ×
// f.across tiles, each cut into f.tail.parts.
template <class P, class F> INLINE void tiles(const typename P::Frame& f) {
  typedef typename P::T T;
  typedef TileWarp<T, F::WM, F::WN, F::unit> W;
  typedef typename W::A A;
  const int shown = F::warps * 16 * F::pitch * sizeof(A), all = F::stages * F::stage;
  __shared__ Banks pool[((all > shown ? all : shown) + 127) / 128];
  char* const memory = (char*)pool;
  const int warp = threadIdx.x / 32, wm = warp % (F::BM / F::WM) * F::WM, wn = warp / (F::BM / F::WM) * F::WN;
  const u32 each = f.down * f.across, all_tiles = f.batch * each;
  for (u32 item = blockIdx.x; item < all_tiles * (u32)f.tail.parts; item += gridDim.x) {
    const u32 tile = item % all_tiles, part = item / all_tiles, inner = tile % each;
    const P p(f, tile / each);
    const i32 m0 = inner % (u32)f.down * F::BM, n0 = inner / (u32)f.down * F::BN;
    if (n0 >= p.n) continue;
    const i32 deep = 64 / sizeof(T);
    const u32 steps = (p.k + deep - 1) / deep, lo = part * steps / (u32)f.tail.parts;
    const i32 count = (part + 1) * steps / (u32)f.tail.parts - lo;
    W sums(wm, F::BM + wn);
    if (count > 0) {
      typedef TileSide<P, false, F::BM, F::threads, F::left> Left;
      typedef TileSide<P, true, F::BN, F::threads, F::right> Right;
      const bool together = F::left == by_chunks && F::right == by_chunks;
      Left left(p, m0);
      Right right(p, n0);
      Walk<P> walk = Left::walk(p, lo * deep), other = Right::walk(p, lo * deep);
      auto begin = [&](char* to) {
        left.begin(p, walk, to);
        right.begin(p, together ? walk : other, to + F::BM * 64);
        p.advance(walk.digits, walk.by), walk.k += deep;
        p.advance(other.digits, other.by), other.k += deep;
      };
#pragma unroll
      for (int s = 0; s < F::stages - 1; s++) {
        char* const to = memory + s * F::stage;
        if (s < count) {
          begin(to);
          left.end(to), right.end(to + F::BM * 64);
        }
        if (F::copies) cp_async_commit();
      }
      int now = 0, next = F::stage * (F::stages - 1);
      for (int i = 0; i < count; i++) {
        if (F::copies) cp_async_wait<F::stages - 2>();
        __syncthreads();
        char* const to = memory + next;
        const bool more = i + F::stages - 1 < count;
        if (more) begin(to);
        if (F::copies) cp_async_commit();
        sums.add(memory + now);
        if (more) left.end(to), right.end(to + F::BM * 64);
        now = now == F::stage * (F::stages - 1) ? 0 : now + F::stage;
        next = next == F::stage * (F::stages - 1) ? 0 : next + F::stage;
      }
      __syncthreads();
    }
    // Sums pass through shared memory, so that lanes are neighbours along a row.
    A* const own = (A*)memory + warp * 16 * F::pitch;
    const int lane = threadIdx.x % 32;
    const i32 n = n0 + wn + lane;
    const i64 place = n < p.n ? p.place(n) : 0;
#pragma unroll
    for (int i = 0; i < F::WM / 16; i++) {
      sums.show(i, own, F::pitch);
      __syncwarp();
      const i32 m = m0 + wm + 16 * i;
      const int rows = n < p.n ? least(16, p.m - m) : 0;
      i64 at = place + m * p.apart;
      if (f.tail.parts > 1) {
        A* const to = (A*)f.tail.work + part * f.tail.total;
#pragma unroll 4
        for (int r = 0; r < rows; r++, at += p.apart) to[at] = own[r * F::pitch + lane];
      } else {
#pragma unroll(F::post ? 1 : 4)
        for (int r = 0; r < rows; r++, at += p.apart) finish<T, F::post>(f.tail, at, p.channel(m + r, n), own[r * F::pitch + lane]);
      }
      __syncwarp();
    }
    __syncthreads();
  }
}
