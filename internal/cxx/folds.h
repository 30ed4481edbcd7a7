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
