// Functions of floats by way of doubles: a vector is widened into two halves, each
// half is computed to about 2^-36, and the result rounded once, which is within
// 0.51 ulp. Reduced arguments need no pairs here, and ranges can't overflow.

fn vd l_expm1_reduced(vd x, vd *n) {
    *n = d_nearest(x, LOG2E_0);
    vd r = d_fnma(*n, d_set(LN2_0), x);
    return d_fma(r * r, POLY_D(r, exp_l), r);
}

fn vd l_exp(vd x) {
    vd n, e = l_expm1_reduced(d_most(d_least(x, -200), 200), &n);
    vd power = d_exp2(d_int(n));
    return d_fma(power, e, power);
}

// l_tiny keeps x where |x| < 2^-20, and with it the sign of 0.
fn vd l_tiny(vd x, vd r) { return d_sel(d_lt(d_abs(x), d_set(0x1p-20)), x, r); }

fn vd l_sinh(vd x) {
    vd e = l_exp(x);
    return l_tiny(x, d_set(0.5) * (e - d_set(1) / e));
}

fn vd l_cosh(vd x) {
    vd e = l_exp(x);
    return d_set(0.5) * (e + d_set(1) / e);
}

// l_log_ratio is e log 2 + log((2 + f)/2 …) by atanh's series, for m = 1 + f.
fn vd l_log_ratio(vd num, vd den, vd e) {
    vd t = num / den, u = t * t;
    vd r = d_fma(t * u, POLY_D(u, log_l), t + t);
    return d_fma(e, d_set(LN2_0), r);
}

// l_log takes any float x >= 0: all are normal doubles.
fn vd l_log_plain(vd x) {
    vd e, m = d_frexp(x, &e);
    return l_log_ratio(m - d_set(1), m + d_set(1), e);
}

// l_log1p_plain is log(1 + z) for z > -1; z counts in full where 1 + z lies about 1.
fn vd l_log1p_plain(vd z) {
    vd e, m = d_frexp(d_set(1) + z, &e);
    vd num = d_sel(d_eq(e, d_set(0)), z, m - d_set(1));
    return l_log_ratio(num, m + d_set(1), e);
}

fn vd l_asinh(vd x) {
    vd a = d_abs(x), one = d_set(1), sq = a * a;
    vd r = l_log1p_plain(a + sq / (one + d_sqrt(one + sq)));
    r = d_sel(d_lt(a, d_set(INFINITY)), r, a);
    return d_flip(r, d_sign(x));
}

fn vd l_acosh(vd x) {
    vd less = x - d_set(1);
    vd r = l_log1p_plain(less + d_sqrt(less * (x + d_set(1))));
    r = d_sel(d_lt(x, d_set(INFINITY)), r, x);
    return d_sel(d_lt(x, d_set(1)), d_set(NAN), r);
}

fn vd l_atanh(vd x) {
    vd a = d_abs(x), one = d_set(1);
    vd r = d_set(0.5) * l_log1p_plain((a + a) / (one - a));
    r = d_sel(d_lt(a, one), r, d_sel(d_eq(a, one), d_set(INFINITY), d_set(NAN)));
    return d_flip(r, d_sign(x));
}

fn vd l_pow(vd x, vd y) {
    vd a = d_abs(x), inf = d_set(INFINITY);
    vd l = l_log_plain(a);
    l = d_sel(d_eq(a, d_set(0)), -inf, d_sel(d_eq(a, inf), inf, l));
    return d_pow_edges(x, y, l_exp(y * l));
}

// l_quadrant is d_quadrant without pairs; beyond FAR_D the C library serves lanes.
fn vd l_quadrant(vd x, vl *quadrant) {
    vd n = d_nearest(x, TWO_OVER_PI_0);
    *quadrant = d_int(n);
    return d_fnma(n, d_set(PIO2_1), d_fnma(n, d_set(PIO2_0), x));
}

fn vd l_sin_of(vd r, vd u) { return d_fma(r * u, POLY_D(u, sin_l), r); }
fn vd l_cos_of(vd u) { return d_fma(u, POLY_D(u, cos_l), d_set(1)); }

fn vd l_wave(vd x, long long shift) {
    vl q;
    vd r = l_quadrant(x, &q), u = r * r;
    q = q + shift;
    vd y = d_sel(l_test(q, (q & 0) + 1), l_cos_of(u), l_sin_of(r, u));
    return d_flip(y, (q & 2) << 62);
}

fn vd l_sin(vd x) {
    vd r = d_sel(d_eq(x, d_set(0)), x, l_wave(x, 0));
    return d_rare(d_far(x), r, x, sin);
}

fn vd l_cos(vd x) { return d_rare(d_far(x), l_wave(x, 1), x, cos); }

fn vd l_tan(vd x) {
    vl q;
    vd r = l_quadrant(x, &q), u = r * r;
    vd s = l_sin_of(r, u), c = l_cos_of(u);
    md odd = l_test(q, (q & 0) + 1);
    vd t = d_flip(d_sel(odd, c, s) / d_sel(odd, s, c), (q & 1) << 63);
    return d_rare(d_far(x), d_sel(d_eq(x, d_set(0)), x, t), x, tan);
}

// l_atan_of is d_atan_pair without pairs.
fn vd l_atan_of(vd y, vd x) {
    md swap = d_lt(x, y);
    vd n = d_sel(swap, x, y), d = d_sel(swap, y, x);
    md big = d_lt(d_set(0.41421356) * d, n);
    vd t = d_sel(big, n - d, n) / d_sel(big, n + d, d), u = t * t;
    vd r = d_fma(t * u, POLY_D(u, atan_l), t);
    r = d_sel(big, d_set(PIO4_0) + r, r);
    return d_sel(swap, d_set(PIO2_0) - r, r);
}

fn vd l_atan(vd x) {
    vd r = l_atan_of(d_most(d_abs(x), 0x1p200), d_set(1));
    return d_flip(r, d_sign(x));
}

fn vd l_atan2(vd y, vd x) {
    vd inf = d_set(INFINITY), one = d_set(1), zero = d_set(0);
    vd a = d_abs(x), b = d_abs(y);
    md big = d_or(d_eq(a, inf), d_eq(b, inf));
    a = d_sel(big, d_sel(d_eq(a, inf), one, zero), a);
    b = d_sel(big, d_sel(d_eq(b, inf), one, zero), b);
    a = d_sel(d_and(d_eq(a, zero), d_eq(b, zero)), one, a);
    vd r = l_atan_of(b, a);
    r = d_sel(d_negative(x), d_set(PI_0) - r, r);
    return d_sel(d_or(d_isnan(x), d_isnan(y)), x + y, d_flip(r, d_sign(y)));
}

// l_asin_of is d_asin_pair without pairs.
fn vd l_asin_of(vd a, md low) {
    vd u = d_sel(low, a * a, d_set(0.5) - d_set(0.5) * a);
    vd s = d_sel(low, a, d_sqrt(u));
    return d_fma(s * u, POLY_D(u, asin_l), s);
}

fn vd l_asin(vd x) {
    vd a = d_abs(x);
    md low = d_le(a, d_set(0.5));
    vd r = l_asin_of(a, low);
    return d_flip(d_sel(low, r, d_fnma(d_set(2), r, d_set(PIO2_0))), d_sign(x));
}

fn vd l_acos(vd x) {
    vd a = d_abs(x);
    md low = d_le(a, d_set(0.5));
    vd r = l_asin_of(a, low);
    r = d_sel(low, d_set(PIO2_0) - d_flip(r, d_sign(x)), r + r);
    return d_sel(d_lt(x, d_set(-0.5)), d_set(PI_0) - r, r);
}

// l_erfc is e^(-x^2) g(|x|), 2 less that below 0; the square is exact.
fn vd l_erfc(vd x) {
    vd a = d_most(d_abs(x), 10.5), two = d_set(2);
    vd t = (a - two) / (a + two);
    vd r = l_exp(-(a * a)) * POLY_D(t, erfcx_l);
    return d_sel(d_negative(x), two - r, r);
}

// l_lgamma is d_lgamma without pairs for x >= 0; lanes below 0, where pairs have no substitute
// beside the zeros, take d_lgamma itself.
fn vd l_lgamma(vd x) {
    vd one = d_set(1), half = d_set(0.5), inf = d_set(INFINITY);
    md small = d_lt(x, half);
    vd log = l_log_plain(x), less = d_sel(small, x, d_most(x, 7.9999999) - one);
    dd g = d_piece(lgamma_d, LGAMMA_D_FIRST, LGAMMA_D_BINADES, 7, one + less, d_set(0));
    vd mid = d_fma(less * (less - one), dd_sum(g), d_set(0));
    mid = d_sel(small, mid - log, mid);
    vd w = one / x, tail = d_fma(w, POLY_D(w * w, stirling_l), d_set(HALF_LOG_2PI_0));
    vd far = d_fma(x, log - one, d_fnma(half, log, tail));
    vd r = d_sel(d_lt(x, d_set(8)), mid, far);
    r = d_sel(d_or(d_eq(x, d_set(0)), d_eq(x, inf)), inf, r);
    md under = d_lt(x, d_set(0));
    if (__builtin_expect(d_any(under), 0)) r = d_sel(under, D(lgamma, _u10)(x), r);
    return d_sel(d_isnan(x), x, r);
}

// l_hypot needs no scale: squares of floats are normal doubles, and exact.
fn vd l_hypot(vd x, vd y) {
    vd inf = d_set(INFINITY);
    vd r = d_sqrt(x * x + y * y);
    return d_sel(d_or(d_eq(d_abs(x), inf), d_eq(d_abs(y), inf)), inf, r);
}

#define HALVES(func, ulp, half) \
    vf F(func, ulp)(vf x) { return f_join(half(d_low(x)), half(d_high(x))); }
#define HALVES2(func, ulp, half) \
    vf F(func, ulp)(vf x, vf y) { return f_join(half(d_low(x), d_low(y)), half(d_high(x), d_high(y))); }

HALVES(sinh, _u10, l_sinh)
HALVES(cosh, _u10, l_cosh)
HALVES(asinh, _u10, l_asinh)
HALVES(acosh, _u10, l_acosh)
HALVES(atanh, _u10, l_atanh)
HALVES(tan, _u10, l_tan)
HALVES(asin, _u10, l_asin)
HALVES(acos, _u10, l_acos)
HALVES(atan, _u10, l_atan)
HALVES(erfc, _u15, l_erfc)
HALVES(lgamma, _u10, l_lgamma)
HALVES2(atan2, _u10, l_atan2)
HALVES2(pow, _u10, l_pow)
HALVES2(hypot, _u05, l_hypot)
HALVES2(fmod, , d_fmod)
