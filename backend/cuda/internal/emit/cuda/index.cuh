// EACH walks through n elements with all threads along x, EACH_OF with those of a
// kernel that may share its launch.
#define EACH(i, n) for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)
#define EACH_OF(g, i, n) for (i64 i = (i64)g.block.x * g.threads.x + g.thread.x; i < (n); i += (i64)g.blocks.x * g.threads.x)

// Indexing. An index out of range is left in *fault and skipped. Where an index
// repeats, results are those of the order of the index.

struct Fault {
  u32 code;  // not 0 after a fault
  i64 value; // the index that was out of range, of several any
};

INLINE bool within(i64 i, i64 size, Fault* fault) {
  if (0 <= i && i < size) return true;
  fault->code = 1;
  fault->value = i;
  return false;
}

// Lines is the geometry of gather and scatter: where the elements of an index of
// some dimensions point along one dimension of a dense tensor.
struct Lines {
  i64 n, rank;       // elements of the index, and its dimensions
  i64 size, step;    // of the indexed dimension
  i64 dims[8];       // of the index
  i64 base[8];       // strides of the tensor, 0 for the indexed dimension
  i64 source[8];     // strides of what is scattered
  i64 strides[8];    // of the index

  // line returns where the line of element i begins, in from where its source is,
  // and in which where the index lies.
  INLINE i64 line(i64 i, i64& from, i64& which) const {
    i64 at = 0;
    from = which = 0;
    for (int d = rank - 1; d >= 0; d--) {
      const i64 c = i % dims[d];
      at += c * base[d];
      from += c * source[d];
      which += c * strides[d];
      i /= dims[d];
    }
    return at;
  }
};

struct GatherFrame {
  char *dst, *x, *index;
  Fault* fault;
  Lines lines;
};
template <class T> INLINE void gather_lines(const GatherFrame& f, const Grid& g) {
  EACH_OF(g, i, f.lines.n) {
    i64 from, which;
    const i64 at = f.lines.line(i, from, which), ix = ((const i64*)f.index)[which];
    if (within(ix, f.lines.size, f.fault)) ((T*)f.dst)[i] = ((const T*)f.x)[at + ix * f.lines.step];
  }
}

struct ScatterFrame {
  char *dst, *index, *src;
  Fault* fault;
  // winner has, by element of dst, the last element of the index that points there,
  // from 1; keys has where each element points.
  union {
    u32* winner;
    u64* keys;
  };
  Lines lines;
};

// scatter_mark finds the winners; what they are among is cleared before.
INLINE void scatter_mark(const ScatterFrame& f) {
  EACH(i, f.lines.n) {
    i64 from, which;
    const i64 at = f.lines.line(i, from, which), ix = ((const i64*)f.index)[which];
    if (within(ix, f.lines.size, f.fault)) atomicMax(&f.winner[at + ix * f.lines.step], (u32)i + 1);
  }
}
template <class T> INLINE void scatter_write(const ScatterFrame& f) {
  EACH(i, f.lines.n) {
    i64 from, which;
    const i64 at = f.lines.line(i, from, which), ix = ((const i64*)f.index)[which];
    if (ix < 0 || ix >= f.lines.size) continue;
    const i64 to = at + ix * f.lines.step;
    if (f.winner[to] == (u32)i + 1) ((T*)f.dst)[to] = ((const T*)f.src)[from];
  }
}

// scatter_all is for an index of which no two elements point at the same place.
template <class T> INLINE void scatter_all(const ScatterFrame& f, const Grid& g) {
  EACH_OF(g, i, f.lines.n) {
    i64 from, which;
    const i64 at = f.lines.line(i, from, which), ix = ((const i64*)f.index)[which];
    if (within(ix, f.lines.size, f.fault)) ((T*)f.dst)[at + ix * f.lines.step] = ((const T*)f.src)[from];
  }
}

// Ways to reduce.
enum { by_sum, by_prod, by_mean, by_max, by_min };

template <class T> INLINE T combined(i64 how, T a, T b) {
  switch (how) {
  case by_prod: return (T)op_mul(a, b);
  case by_max: return b > a || b != b ? b : a;
  case by_min: return b < a || b != b ? b : a;
  }
  return (T)op_add(a, b);
}

INLINE f32 average(f32 x, i64 n) { return x / (f32)n; }
INLINE f64 average(f64 x, i64 n) { return x / (f64)n; }
template <class T> INLINE T average(T x, i64 n) { return (T)((i64)x / n - ((i64)x % n < 0)); }

// FoldFrame folds elements of src into dst, those for one place in their order.
// Places are keys, sorted; order has the number of each key's element.
struct FoldFrame {
  char *dst, *src;
  u64* keys;
  u32* order;
  i64 n, how, self; // self: what dst has takes part
  Lines lines;
};

const u64 nowhere = 0xffffffffffffffffull; // the key of an index out of range

INLINE void scatter_keys(const ScatterFrame& f) {
  EACH(i, f.lines.n) {
    i64 from, which;
    const i64 at = f.lines.line(i, from, which), ix = ((const i64*)f.index)[which];
    f.keys[i] = within(ix, f.lines.size, f.fault) ? at + ix * f.lines.step : nowhere;
  }
}

template <class T> INLINE void scatter_fold(const FoldFrame& f) {
  EACH(i, f.n) {
    const u64 key = f.keys[i];
    if (key == nowhere || (i > 0 && f.keys[i - 1] == key)) continue;
    T& y = ((T*)f.dst)[key];
    auto acc = widen(y);
    i64 count = f.self != 0;
    for (i64 k = i; k < f.n && f.keys[k] == key; k++) {
      i64 from, which;
      f.lines.line(f.order[k], from, which);
      const auto x = widen(((const T*)f.src)[from]);
      acc = count == 0 ? x : combined(f.how, acc, x);
      count++;
    }
    if (f.how == by_mean && count > 1) acc = average(acc, count);
    set(y, acc);
  }
}

// Rows: x is [outer, size, inner], dst [outer, n, inner].
struct RowsFrame {
  char *dst, *x, *index;
  Fault* fault;
  i64 outer, n, size, inner;
};
template <class T> INLINE void index_select(const RowsFrame& f, const Grid& g) {
  for (i64 r = (i64)g.block.y * g.threads.y + g.thread.y; r < f.outer * f.n; r += (i64)g.blocks.y * g.threads.y) {
    const i64 ix = ((const i64*)f.index)[r % f.n];
    if (!within(ix, f.size, f.fault)) continue;
    const T* from = (const T*)f.x + (r / f.n * f.size + ix) * f.inner;
    T* to = (T*)f.dst + r * f.inner;
    EACH_OF(g, c, f.inner) to[c] = from[c];
  }
}

// index_keys makes keys of an index.
INLINE void index_keys(const RowsFrame& f) {
  EACH(i, f.n) {
    const i64 ix = ((const i64*)f.index)[i];
    ((u64*)f.dst)[i] = within(ix, f.size, f.fault) ? ix : nowhere;
  }
}

// AddFrame adds rows: source is [outer, n, inner], dst [outer, size, inner]; keys
// are the index, sorted.
struct AddFrame {
  char *dst, *src;
  u64* keys;
  u32* order;
  i64 outer, n, size, inner;
};
template <class T> INLINE void index_add(const AddFrame& f) {
  for (i64 i = (i64)blockIdx.y * blockDim.y + threadIdx.y; i < f.n; i += (i64)gridDim.y * blockDim.y) {
    const u64 key = f.keys[i];
    if (key == nowhere || (i > 0 && f.keys[i - 1] == key)) continue;
    EACH(c, f.outer * f.inner) {
      const i64 o = c / f.inner, col = c % f.inner;
      T& y = ((T*)f.dst)[(o * f.size + key) * f.inner + col];
      auto acc = widen(y);
      for (i64 k = i; k < f.n && f.keys[k] == key; k++) {
        acc = combined(by_sum, acc, widen(((const T*)f.src)[(o * f.n + f.order[k]) * f.inner + col]));
      }
      set(y, acc);
    }
  }
}
