// Vectors of 256 bits: 8 floats or 4 doubles, masks of whole lanes.

#include <immintrin.h>

#define NF 8
#define ND 4
#define VM(func, type, ulp) Loris_##func##type##ulp
#define F(func, ulp) VM(func, f8, ulp)
#define D(func, ulp) VM(func, d4, ulp)

// As everywhere, min and max give their second operand where one is a NaN.

typedef __m256 vf;
typedef __m256d vd;
typedef int vi __attribute__((vector_size(32)));
typedef long long vl __attribute__((vector_size(32)));
typedef __m256 mf;
typedef __m256d md;

fn vf f_set(float c) { return _mm256_set1_ps(c); }
fn vf f_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
fn vf f_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
fn vf f_min(vf a, vf b) { return _mm256_min_ps(a, b); }
fn vf f_max(vf a, vf b) { return _mm256_max_ps(a, b); }
fn vf f_sqrt(vf a) { return _mm256_sqrt_ps(a); }
fn vf f_rint(vf a) { return _mm256_round_ps(a, 8); }
fn vf f_trunc(vf a) { return _mm256_round_ps(a, 11); }
fn mf f_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
fn mf f_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
fn mf f_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
fn mf f_isnan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
fn vf f_sel(mf m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
fn mf f_and(mf a, mf b) { return _mm256_and_ps(a, b); }
fn mf f_or(mf a, mf b) { return _mm256_or_ps(a, b); }
fn mf f_not(mf a) { return _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))); }
fn int f_any(mf m) { return _mm256_movemask_ps(m) != 0; }

fn vd d_set(double c) { return _mm256_set1_pd(c); }
fn vd d_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
fn vd d_fms(vd a, vd b, vd c) { return _mm256_fmsub_pd(a, b, c); }
fn vd d_fnma(vd a, vd b, vd c) { return _mm256_fnmadd_pd(a, b, c); }
fn vd d_min(vd a, vd b) { return _mm256_min_pd(a, b); }
fn vd d_max(vd a, vd b) { return _mm256_max_pd(a, b); }
fn vd d_sqrt(vd a) { return _mm256_sqrt_pd(a); }
fn vd d_rint(vd a) { return _mm256_round_pd(a, 8); }
fn vd d_trunc(vd a) { return _mm256_round_pd(a, 11); }
fn md d_lt(vd a, vd b) { return _mm256_cmp_pd(a, b, _CMP_LT_OQ); }
fn md d_le(vd a, vd b) { return _mm256_cmp_pd(a, b, _CMP_LE_OQ); }
fn md d_eq(vd a, vd b) { return _mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
fn md d_isnan(vd a) { return _mm256_cmp_pd(a, a, _CMP_UNORD_Q); }
fn md l_test(vl a, vl b) { return (md)((a & b) != 0); }
fn vd d_sel(md m, vd a, vd b) { return _mm256_blendv_pd(b, a, m); }
fn md d_and(md a, md b) { return _mm256_and_pd(a, b); }
fn md d_or(md a, md b) { return _mm256_or_pd(a, b); }
fn md d_not(md a) { return _mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_set1_epi64x(-1))); }
fn int d_any(md m) { return _mm256_movemask_pd(m) != 0; }
fn vd d_gather(const double *t, vl i) { return _mm256_i64gather_pd(t, (__m256i)i, 8); }

fn vd d_low(vf a) { return _mm256_cvtps_pd(_mm256_castps256_ps128(a)); }
fn vd d_high(vf a) { return _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)); }
fn vf f_join(vd a, vd b) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a)), _mm256_cvtpd_ps(b), 1);
}
