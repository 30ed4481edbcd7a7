// Vectors of 512 bits: 16 floats or 8 doubles, masks in mask registers.

#include <immintrin.h>

#define NF 16
#define ND 8
#define VM(func, type, ulp) Loris_##func##type##ulp
#define F(func, ulp) VM(func, f16, ulp)
#define D(func, ulp) VM(func, d8, ulp)

// As everywhere, min and max give their second operand where one is a NaN.

typedef __m512 vf;
typedef __m512d vd;
typedef int vi __attribute__((vector_size(64)));
typedef long long vl __attribute__((vector_size(64)));
typedef __mmask16 mf;
typedef __mmask8 md;

fn vf f_set(float c) { return _mm512_set1_ps(c); }
fn vf f_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
fn vf f_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
fn vf f_min(vf a, vf b) { return _mm512_min_ps(a, b); }
fn vf f_max(vf a, vf b) { return _mm512_max_ps(a, b); }
fn vf f_sqrt(vf a) { return _mm512_sqrt_ps(a); }
fn vf f_rint(vf a) { return _mm512_roundscale_ps(a, 8); }
fn vf f_trunc(vf a) { return _mm512_roundscale_ps(a, 11); }
fn mf f_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
fn mf f_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
fn mf f_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
fn mf f_isnan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
fn vf f_sel(mf m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
fn mf f_and(mf a, mf b) { return a & b; }
fn mf f_or(mf a, mf b) { return a | b; }
fn mf f_not(mf a) { return (mf)~a; }
fn int f_any(mf m) { return m != 0; }

fn vd d_set(double c) { return _mm512_set1_pd(c); }
fn vd d_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
fn vd d_fms(vd a, vd b, vd c) { return _mm512_fmsub_pd(a, b, c); }
fn vd d_fnma(vd a, vd b, vd c) { return _mm512_fnmadd_pd(a, b, c); }
fn vd d_min(vd a, vd b) { return _mm512_min_pd(a, b); }
fn vd d_max(vd a, vd b) { return _mm512_max_pd(a, b); }
fn vd d_sqrt(vd a) { return _mm512_sqrt_pd(a); }
fn vd d_rint(vd a) { return _mm512_roundscale_pd(a, 8); }
fn vd d_trunc(vd a) { return _mm512_roundscale_pd(a, 11); }
fn md d_lt(vd a, vd b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
fn md d_le(vd a, vd b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
fn md d_eq(vd a, vd b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
fn md d_isnan(vd a) { return _mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q); }
fn md l_test(vl a, vl b) { return _mm512_test_epi64_mask((__m512i)a, (__m512i)b); }
fn vd d_sel(md m, vd a, vd b) { return _mm512_mask_blend_pd(m, b, a); }
fn md d_and(md a, md b) { return a & b; }
fn md d_or(md a, md b) { return a | b; }
fn md d_not(md a) { return (md)~a; }
fn int d_any(md m) { return m != 0; }
fn vd d_gather(const double *t, vl i) { return _mm512_i64gather_pd((__m512i)i, t, 8); }

fn vd d_low(vf a) { return _mm512_cvtps_pd(_mm512_castps512_ps256(a)); }
fn vd d_high(vf a) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)); }
fn vf f_join(vd a, vd b) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a)), _mm512_cvtpd_ps(b), 1);
}

// The scaling that base.h has in two products.
#define VM_SCALE
fn vf f_scale(vf x, vf n) { return _mm512_scalef_ps(x, n); }
fn vd d_scale(vd x, vd n) { return _mm512_scalef_pd(x, n); }
