// Sorts along the middle of [outer, n, inner]: tiles in shared memory by a bitonic
// network, then merges of neighbouring runs, whose length doubles.

// sort_key maps numbers to integers of the same order: 0 and -0 are one, and so
// are all NaNs, above the rest.
INLINE u64 sort_key(f64 x) {
  if (x != x) return 0xffffffffffffffffull;
  const u64 b = (u64)__double_as_longlong(x + 0.0);
  return b >> 63 ? ~b : b | 1ull << 63;
}
INLINE u64 sort_key(f32 x) { return sort_key((f64)x); }
INLINE u64 sort_key(i64 x) { return (u64)x ^ 1ull << 63; }
INLINE u64 sort_key(i32 x) { return sort_key((i64)x); }
INLINE u64 sort_key(u64 x) { return x; } // is a key

struct SortFrame {
  char* x;
  u64 *keys, *merged;     // lines · n of each
  u32 *order, *reordered; // where each key came from
  char *values, *indices;
  i64 lines, n, inner, descending;
  i64 width;         // of the runs that are merged
  i64 kept;          // of each tile, if not all
  u32* given;        // where the elements of x came from, if not from there
  i64 count, stride; // of each line: the results, and the elements of order
};

const int sort_tile_size = 1024;

// sort_tile sorts runs of sort_tile_size elements of each line. If it keeps only
// the first of each, what is missing at the end is filled up.
template <class T> INLINE void sort_tile(const SortFrame& f) {
  __shared__ u64 keys[sort_tile_size];
  __shared__ u32 order[sort_tile_size];
  const i64 tiles = (f.n + sort_tile_size - 1) / sort_tile_size;
  for (i64 b = blockIdx.x; b < f.lines * tiles; b += gridDim.x) {
    const i64 line = b / tiles, start = b % tiles * sort_tile_size;
    const T* x = (const T*)f.x + line / f.inner * f.n * f.inner + line % f.inner;
    for (int i = threadIdx.x; i < sort_tile_size; i += blockDim.x) {
      const i64 at = start + i;
      keys[i] = 0xffffffffffffffffull;
      order[i] = 0xffffffffu;
      if (at < f.n) {
        const u64 k = sort_key(widen(x[at * f.inner]));
        keys[i] = f.descending ? ~k : k;
        order[i] = f.given ? f.given[line * f.n + at] : (u32)at;
      }
    }
    for (int size = 2; size <= sort_tile_size; size *= 2) {
      for (int d = size / 2; d > 0; d /= 2) {
        __syncthreads();
        for (int p = threadIdx.x; p < sort_tile_size / 2; p += blockDim.x) {
          const int i = p / d * 2 * d + p % d, j = i + d;
          const bool up = (i & size) == 0;
          const bool after = keys[i] > keys[j] || (keys[i] == keys[j] && order[i] > order[j]);
          if (after == up) {
            const u64 k = keys[i];
            const u32 o = order[i];
            keys[i] = keys[j], order[i] = order[j];
            keys[j] = k, order[j] = o;
          }
        }
      }
    }
    __syncthreads();
    const i64 to = f.kept ? b * f.kept : line * f.n + start;
    for (int i = threadIdx.x; i < (f.kept ? f.kept : least(sort_tile_size, f.n - start)); i += blockDim.x) {
      f.keys[to + i] = keys[i];
      f.order[to + i] = order[i];
    }
    __syncthreads();
  }
}

// sort_merge places each element behind those of its own run and those of the
// neighbour that go before it.
INLINE void sort_merge(const SortFrame& f) {
  EACH(e, f.lines * f.n) {
    const i64 i = e % f.n, run = i / f.width;
    const u64* keys = f.keys + (e - i);
    const u64 key = keys[i];
    const bool left = run % 2 == 0;
    const i64 start = (left ? run : run - 1) * f.width;
    i64 lo = least(left ? start + f.width : start, f.n), hi = left ? least(start + 2 * f.width, f.n) : start + f.width;
    const i64 other = lo;
    while (lo < hi) { // of equal elements those of the left run are first
      const i64 mid = (lo + hi) / 2;
      if (left ? keys[mid] < key : keys[mid] <= key) lo = mid + 1;
      else hi = mid;
    }
    const i64 to = e - i + start + (i - run * f.width) + (lo - other);
    f.merged[to] = key;
    f.reordered[to] = f.order[e];
  }
}

// sort_finish writes the first elements and their indices in the order found.
template <class T> INLINE void sort_finish(const SortFrame& f) {
  EACH(e, f.lines * f.count) {
    const i64 line = e / f.count, i = e % f.count, outer = line / f.inner, col = line % f.inner;
    const u32 from = f.order[line * f.stride + i];
    const i64 to = (outer * f.count + i) * f.inner + col;
    ((T*)f.values)[to] = ((const T*)f.x)[(outer * f.n + from) * f.inner + col];
    ((i64*)f.indices)[to] = from;
  }
}
