// Reductions: what is accumulated (A), with what it begins (zero), how two are
// joined (fold). They are joined in an order that depends on the launch alone, so
// the same launch gives the same result.

template <class T> INLINE T lowest();
template <class T> INLINE T highest();
template <> INLINE f32 lowest() { return __uint_as_float(0xff800000u); }
template <> INLINE f32 highest() { return __uint_as_float(0x7f800000u); }
template <> INLINE f64 lowest() { return __longlong_as_double((i64)0xfff0000000000000ull); }
template <> INLINE f64 highest() { return __longlong_as_double(0x7ff0000000000000ll); }
template <> INLINE i32 lowest() { return (i32)0x80000000u; }
template <> INLINE i32 highest() { return 0x7fffffff; }
template <> INLINE i64 lowest() { return (i64)0x8000000000000000ull; }
template <> INLINE i64 highest() { return 0x7fffffffffffffffll; }

// above and below compare; NaN wins over numbers.
template <class T> INLINE bool above(T x, T y) { return x > y || (x != x && y == y); }
template <class T> INLINE bool below(T x, T y) { return x < y || (x != x && y == y); }

// Sums and products of f32s are kept in f64.
template <class T> struct Sum {
  typedef T A;
  static INLINE A zero() { return 0; }
  static INLINE A fold(A a, A b) { return op_add(a, b); }
};
template <class T> struct Prod {
  typedef T A;
  static INLINE A zero() { return 1; }
  static INLINE A fold(A a, A b) { return op_mul(a, b); }
};
template <class T> INLINE T greater(T x, T y) { return above(y, x) ? y : x; }
template <class T> INLINE T less(T x, T y) { return below(y, x) ? y : x; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
INLINE f32 greater(f32 x, f32 y) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
  return x;
}
INLINE f32 less(f32 x, f32 y) {
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
  return x;
}
#endif
template <class T> struct Max {
  typedef T A;
  static INLINE A zero() { return lowest<T>(); }
  static INLINE A fold(A a, A b) { return greater(a, b); }
};
template <class T> struct Min {
  typedef T A;
  static INLINE A zero() { return highest<T>(); }
  static INLINE A fold(A a, A b) { return less(a, b); }
};
struct Any {
  typedef i32 A;
  static INLINE A zero() { return 0; }
  static INLINE A fold(A a, A b) { return a | b; }
};
struct All {
  typedef i32 A;
  static INLINE A zero() { return 1; }
  static INLINE A fold(A a, A b) { return a & b; }
};

// Place is an extremum and where it is; of equal ones the first wins.
template <class T> struct Place {
  T v;
  i64 at;
};
template <class T> INLINE bool ties(T x, T y) { return x == y || (x != x && y != y); }
template <class T> struct ArgMax {
  typedef Place<T> A;
  static INLINE A zero() { return A{lowest<T>(), highest<i64>()}; }
  static INLINE A fold(A a, A b) { return above(b.v, a.v) || (ties(b.v, a.v) && b.at < a.at) ? b : a; }
};
template <class T> struct ArgMin {
  typedef Place<T> A;
  static INLINE A zero() { return A{highest<T>(), highest<i64>()}; }
  static INLINE A fold(A a, A b) { return below(b.v, a.v) || (ties(b.v, a.v) && b.at < a.at) ? b : a; }
};

// shuffle exchanges values with the lane whose number differs by d.
template <class A> INLINE A shuffle(A a, int d) {
  union Words {
    A a;
    u32 w[(sizeof(A) + 3) / 4];
    __device__ Words(A x) : a(x) {}
  } x(a);
#pragma unroll
  for (int k = 0; k < (int)(sizeof(A) / 4); k++) x.w[k] = __shfl_xor_sync(0xffffffffu, x.w[k], d);
  return x.a;
}

// fold_group joins the accumulators of the threads that differ in thread.x, whose
// number is a power of two, and gives all of them the result. All threads of the
// block call it. pool has 16 bytes for each warp.
template <class R> INLINE typename R::A fold_group(typename R::A a, const Grid& g, u64* pool) {
  typedef typename R::A A;
  const int width = g.threads.x < 32 ? g.threads.x : 32;
  for (int d = width / 2; d > 0; d /= 2) {
    const A b = shuffle(a, d);
    a = g.thread.x & d ? R::fold(b, a) : R::fold(a, b);
  }
  if (g.threads.x <= 32) return a;
  const int warps = g.threads.x / 32;
  A* const mine = (A*)pool + g.thread.y * warps;
  __syncthreads();
  if (g.thread.x % 32 == 0) mine[g.thread.x / 32] = a;
  __syncthreads();
  a = mine[0];
  for (int w = 1; w < warps; w++) a = R::fold(a, mine[w]);
  return a;
}
template <class R> INLINE typename R::A fold_group(typename R::A a, u64* pool) { return fold_group<R>(a, own_grid(), pool); }

// fold_rows joins the accumulators of the threads that differ in thread.y. pool has
// 16 bytes for each thread.
template <class R> INLINE typename R::A fold_rows(typename R::A a, const Grid& g, u64* pool) {
  typedef typename R::A A;
  if (g.threads.y == 1) return a;
  A* const all = (A*)pool;
  __syncthreads();
  all[g.thread.y * g.threads.x + g.thread.x] = a;
  __syncthreads();
  a = all[g.thread.x];
#pragma unroll 8
  for (int y = 1; y < g.threads.y; y++) a = R::fold(a, all[y * g.threads.x + g.thread.x]);
  return a;
}

// Operand is where an operand begins and how many bytes it moves along rows,
// columns and the K dimensions around them.
template <int K> struct Operand {
  char* at;
  i64 row, col;
  i64 outer[K ? K : 1];
};

// Frame is what a launch works on, in slots of 64 bits.
template <int N, int K> struct Frame {
  i64 rows, cols;
  i64 first;  // is added to indices
  i64 outers; // the product of outer
  i64 parts;  // into how many each line is cut
  char* work; // for accumulators and line values between launches
  u32* fault; // an instruction that divided by zero
  i64 outer[K ? K : 1];
  Operand<K> arg[N];

  // at returns where operand a begins for a row of an outer index.
  INLINE char* at(int a, i64 o, i64 row) const {
    char* p = arg[a].at + row * arg[a].row;
    if (K > 0) {
#pragma unroll
      for (int d = K - 1; d >= 0; d--) {
        p += o % outer[d] * arg[a].outer[d];
        o /= outer[d];
      }
    }
    return p;
  }
};
