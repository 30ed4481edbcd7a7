// Types and conversions. No headers are needed. bool8 and the narrow floats exist in memory only:
// widen gives what is computed with, set rounds back (to nearest even).

typedef unsigned char u8;
typedef signed char i8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

struct bool8 { u8 bits; };
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct f8e4m3fn { u8 bits; };
struct f8e5m2 { u8 bits; };

// What follows is as package half says.

// drop rounds the low bits of a pattern away; a carry moves into the exponent.
INLINE u32 drop(u32 b, int n) { return (b + ((1u << (n - 1)) - 1) + (b >> n & 1)) >> n; }

// in_units returns a magnitude in units of the spacing of floats at magic.
INLINE u32 in_units(u32 b, f32 magic) { return __float_as_uint(__uint_as_float(b) + magic) - __float_as_uint(magic); }

INLINE f32 widen_half(u32 h) {
#ifdef __CUDA_ARCH__
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((u16)h));
  return x;
#else
  const u32 sign = (h & 0x8000) << 16, mag = h & 0x7fff;
  if (mag < 0x0400) return __uint_as_float(sign | __float_as_uint((f32)mag * 0x1p-24f));
  if (mag < 0x7c00) return __uint_as_float(sign | ((mag << 13) + (112u << 23)));
  return __uint_as_float(sign | 0x7f800000u | (mag == 0x7c00 ? 0 : 0x400000u | mag << 13));
#endif
}

INLINE f32 widen(f16 x) { return widen_half(x.bits); }
INLINE f32 widen(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
INLINE f32 widen(f8e5m2 x) { return widen_half((u32)x.bits << 8); }
INLINE f32 widen(f8e4m3fn x) {
  const u32 sign = (u32)(x.bits & 0x80) << 24, mag = x.bits & 0x7f;
  if (mag < 0x08) return __uint_as_float(sign | __float_as_uint((f32)mag * 0x1p-9f));
  return __uint_as_float(sign | (mag < 0x7f ? (mag << 20) + (120u << 23) : 0x7fc00000u));
}
INLINE bool widen(bool8 x) { return x.bits != 0; }
template <class T> INLINE T widen(T x) { return x; }

INLINE void set(f16& y, f32 x) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  u32 b = __float_as_uint(x);
  const u32 sign = b >> 16 & 0x8000;
  b &= 0x7fffffffu;
  if (b > 0x7f800000u) y.bits = sign | 0x7e00;
  else if (b >= 143u << 23) y.bits = sign | 0x7c00;
  else if (b < 113u << 23) y.bits = sign | in_units(b, 0.5f);
  else y.bits = sign | (drop(b, 13) - (112u << 10));
#endif
}

INLINE void set(bf16& y, f32 x) {
  const u32 b = __float_as_uint(x);
  y.bits = (b & 0x7fffffffu) > 0x7f800000u ? b >> 16 | 0x40 : drop(b, 16);
}

INLINE void set(f8e4m3fn& y, f32 x) {
  u32 b = __float_as_uint(x);
  const u32 sign = b >> 24 & 0x80;
  b &= 0x7fffffffu;
  if (b > 0x7f800000u) y.bits = sign | 0x7f;
  else if (b < 121u << 23) y.bits = sign | in_units(b, 0x1p14f);
  else {
    const u32 m = drop(b, 20) - (120u << 3);
    y.bits = sign | (m < 0x7e ? m : 0x7e); // it has no infinity
  }
}

INLINE void set(f8e5m2& y, f32 x) {
  u32 b = __float_as_uint(x);
  const u32 sign = b >> 24 & 0x80;
  b &= 0x7fffffffu;
  if (b > 0x7f800000u) y.bits = sign | 0x7f;
  else if (b >= 143u << 23) y.bits = sign | 0x7c;
  else if (b < 113u << 23) y.bits = sign | in_units(b, 0x1p7f);
  else y.bits = sign | (drop(b, 21) - (112u << 2));
}
INLINE void set(bool8& y, bool x) { y.bits = x; }
template <class T> INLINE void set(T& y, T x) { y = x; }

// round_to rounds an f32 to what T can hold.
template <class T> INLINE f32 round_to(f32 x) {
  T y;
  set(y, x);
  return widen(y);
}

// Floats become integers towards zero. NaN and what is out of range give the
// least integer of 32 or 64 bits; narrower ones keep the low bits of that.
INLINE i32 trunc32(f32 x) { return x >= -0x1p31f && x < 0x1p31f ? (i32)x : (i32)0x80000000u; }
INLINE i32 trunc32(f64 x) { return x > -2147483649.0 && x < 0x1p31 ? (i32)x : (i32)0x80000000u; }
INLINE i64 trunc64(f32 x) { return x >= -0x1p63f && x < 0x1p63f ? (i64)x : (i64)0x8000000000000000ull; }
INLINE i64 trunc64(f64 x) { return x >= -0x1p63 && x < 0x1p63 ? (i64)x : (i64)0x8000000000000000ull; }
