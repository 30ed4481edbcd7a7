// Random numbers: Philox4x32-10, with the streams of package philox. The seed is
// read on the device.

struct RandomFrame {
  char *dst, *seed;
  i64 offset, n;
  i64 low;
  u64 range;
};

struct Words4 {
  u32 w[4];
  INLINE u64 half(int i) const { return (u64)w[2 * i + 1] << 32 | w[2 * i]; }
};

INLINE Words4 philox(u64 seed, u64 offset, u64 block) {
  u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = (u32)offset, c3 = (u32)(offset >> 32);
  u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const u32 hi0 = __umulhi(0xD2511F53u, c0), lo0 = 0xD2511F53u * c0;
    const u32 hi1 = __umulhi(0xCD9E8D57u, c2), lo1 = 0xCD9E8D57u * c2;
    c0 = hi1 ^ c1 ^ k0, c1 = lo1, c2 = hi0 ^ c3 ^ k1, c3 = lo0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return Words4{{c0, c1, c2, c3}};
}

// Uniform numbers have as many random bits as the significand, so that none is
// rounded up to 1.
INLINE f32 unit(u32 w, int bits) { return (f32)(w >> (32 - bits)) * __uint_as_float((u32)(127 - bits) << 23); }
INLINE f64 unit(u64 w) { return (f64)(w >> 11) * 0x1p-53; }

struct Uniform32 {
  static const int per = 4;
  template <class T> static INLINE void make(T* y, const Words4& w, const RandomFrame&) {
    const int bits = sizeof(T) == 4 ? 24 : significand(y);
    for (int i = 0; i < per; i++) set(y[i], unit(w.w[i], bits));
  }
  static INLINE int significand(f16*) { return 11; }
  static INLINE int significand(bf16*) { return 8; }
  static INLINE int significand(f32*) { return 24; }
};
struct Uniform64 {
  static const int per = 2;
  static INLINE void make(f64* y, const Words4& w, const RandomFrame&) {
    for (int i = 0; i < per; i++) y[i] = unit(w.half(i));
  }
};
// Normal is Box–Muller; 1 - u is exact and never 0.
struct Normal {
  static const int per = 2;
  template <class T> static INLINE void make(T* y, const Words4& w, const RandomFrame&) {
    const f64 r = sqrt(-2 * log(1 - unit(w.half(0)))), angle = 2 * 3.14159265358979323846 * unit(w.half(1));
    const f64 z[2] = {r * cos(angle), r * sin(angle)};
    for (int i = 0; i < per; i++) set(y[i], (decltype(widen(T())))z[i]);
  }
};
struct Integers {
  static const int per = 2;
  template <class T> static INLINE void make(T* y, const Words4& w, const RandomFrame& f) {
    for (int i = 0; i < per; i++) set(y[i], (decltype(widen(T())))(f.low + (i64)__umul64hi(w.half(i), f.range)));
  }
};

template <class T, class R> INLINE void random(const RandomFrame& f, const Grid& g) {
  const u64 seed = *(const u64*)f.seed;
  EACH_OF(g, b, (f.n + R::per - 1) / R::per) {
    T y[R::per];
    R::make(y, philox(seed, f.offset, b), f);
    T* const to = (T*)f.dst + b * R::per;
    if ((b + 1) * R::per <= f.n) {
      put<R::per>((char*)to, y);
      continue;
    }
#pragma unroll
    for (int i = 0; i < R::per; i++) {
      if (b * R::per + i < f.n) to[i] = y[i];
    }
  }
}
