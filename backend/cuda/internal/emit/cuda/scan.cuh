// Scans along the middle of [outer, n, inner]: running sums, products and maxima.
// A block has a line or a part of one; of a line in parts the parts are folded
// first, then what is before each is known.

template <class A> INLINE A shuffle_up(A a, int d) {
  union Words {
    A a;
    u32 w[sizeof(A) / 4];
    __device__ Words(A x) : a(x) {}
  } x(a);
#pragma unroll
  for (int k = 0; k < (int)(sizeof(A) / 4); k++) x.w[k] = __shfl_up_sync(0xffffffffu, x.w[k], d);
  return x.a;
}

// Floats are accumulated in f64, integers in i64.
INLINE f64 accumulated(f32 x) { return x; }
INLINE f64 accumulated(f64 x) { return x; }
INLINE i64 accumulated(i64 x) { return x; }
INLINE i64 accumulated(i32 x) { return x; }

struct ScanFrame {
  char *dst, *indices, *x;
  char* carry; // 16 bytes for each part of each line
  i64 lines, n, inner, parts;
};

// C is what T is computed as.
template <class T> struct Computed { typedef decltype(widen(T())) type; };
template <class T> struct CumSum {
  typedef decltype(accumulated(widen(T()))) A;
  static INLINE A zero() { return 0; }
  static INLINE A join(A a, A b) { return op_add(a, b); }
  static INLINE A lift(T x, i64) { return accumulated(widen(x)); }
  static INLINE void put(const ScanFrame& f, i64 at, A a) { set(((T*)f.dst)[at], (typename Computed<T>::type)a); }
};
template <class T> struct CumProd : CumSum<T> {
  typedef typename CumSum<T>::A A;
  static INLINE A zero() { return 1; }
  static INLINE A join(A a, A b) { return op_mul(a, b); }
};

// Of equal ones the later stands; a NaN stays the maximum.
template <class T> struct CumMax {
  typedef Place<decltype(accumulated(widen(T())))> A;
  static INLINE A zero() { return A{lowest<decltype(A::v)>(), 0}; }
  static INLINE A join(A a, A b) { return b.v >= a.v || b.v != b.v ? b : a; }
  static INLINE A lift(T x, i64 i) { return A{accumulated(widen(x)), i}; }
  static INLINE void put(const ScanFrame& f, i64 at, A a) {
    set(((T*)f.dst)[at], (typename Computed<T>::type)a.v);
    ((i64*)f.indices)[at] = a.at;
  }
};

// scan_block returns what the threads up to this one have, joined in order, and
// sets all to what all have.
template <class S> INLINE typename S::A scan_block(typename S::A a, typename S::A& all, u64* pool) {
  typedef typename S::A A;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int d = 1; d < 32; d *= 2) {
    const A b = shuffle_up(a, d);
    if (lane >= d) a = S::join(b, a);
  }
  A* const totals = (A*)pool;
  __syncthreads();
  if (lane == 31) totals[warp] = a;
  __syncthreads();
  A before = S::zero();
  all = S::zero();
  for (int w = 0; w < warps; w++) {
    if (w == warp) before = all;
    all = S::join(all, totals[w]);
  }
  return S::join(before, a);
}

// scan_parts finds what each part of each line comes to.
template <class T, template <class> class Scan> INLINE void scan_parts(const ScanFrame& f) {
  typedef Scan<T> S;
  __shared__ u64 pool[64];
  for (i64 b = blockIdx.x; b < f.lines * f.parts; b += gridDim.x) {
    const i64 line = b / f.parts, part = b % f.parts;
    const i64 lo = part * f.n / f.parts, hi = (part + 1) * f.n / f.parts;
    const T* x = (const T*)f.x + line / f.inner * f.n * f.inner + line % f.inner;
    typename S::A carry = S::zero(), all;
    for (i64 base = lo; base < hi; base += blockDim.x) {
      const i64 i = base + threadIdx.x;
      scan_block<S>(i < hi ? S::lift(x[i * f.inner], i) : S::zero(), all, pool);
      carry = S::join(carry, all);
    }
    if (threadIdx.x == 0) *(typename S::A*)(f.carry + b * 16) = carry;
  }
}

// scan_carry replaces what each part comes to by what is before it.
template <class T, template <class> class Scan> INLINE void scan_carry(const ScanFrame& f) {
  typedef typename Scan<T>::A A;
  EACH(line, f.lines) {
    A carry = Scan<T>::zero();
    for (i64 part = 0; part < f.parts; part++) {
      A* const p = (A*)(f.carry + (line * f.parts + part) * 16);
      const A own = *p;
      *p = carry;
      carry = Scan<T>::join(carry, own);
    }
  }
}

// scan scans each part, from its carry on if there are several.
template <class T, template <class> class Scan> INLINE void scan(const ScanFrame& f) {
  typedef Scan<T> S;
  __shared__ u64 pool[64];
  for (i64 b = blockIdx.x; b < f.lines * f.parts; b += gridDim.x) {
    const i64 line = b / f.parts, part = b % f.parts;
    const i64 lo = part * f.n / f.parts, hi = (part + 1) * f.n / f.parts;
    const i64 start = line / f.inner * f.n * f.inner + line % f.inner;
    const T* x = (const T*)f.x + start;
    typename S::A carry = f.parts > 1 ? *(const typename S::A*)(f.carry + b * 16) : S::zero(), all;
    for (i64 base = lo; base < hi; base += blockDim.x) {
      const i64 i = base + threadIdx.x;
      const typename S::A a = scan_block<S>(i < hi ? S::lift(x[i * f.inner], i) : S::zero(), all, pool);
      if (i < hi) S::put(f, start + i * f.inner, S::join(carry, a));
      carry = S::join(carry, all);
    }
  }
}

// scan_lines gives each thread whole lines, for many that lie side by side.
template <class T, template <class> class Scan> INLINE void scan_lines(const ScanFrame& f) {
  typedef Scan<T> S;
  EACH(line, f.lines) {
    const i64 start = line / f.inner * f.n * f.inner + line % f.inner;
    typename S::A a = S::zero();
    for (i64 i = 0; i < f.n; i++) {
      a = S::join(a, S::lift(((const T*)f.x)[start + i * f.inner], i));
      S::put(f, start + i * f.inner, a);
    }
  }
}
