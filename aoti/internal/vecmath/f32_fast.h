// The functions of floats that models call most, in floats throughout, and the ones
// that only move bits.

// f_exp_reduced is e^r - 1 = r + tail by the terms c, r = x - n log 2 in two parts: the first product is
// exact, and what rounding the second takes from r counts in the tail.
fn vf f_exp_reduced(vf x, const float *c, int terms, vf *tail, vf *n) {
    *n = f_nearest(x, (float)LOG2E_0);
    vf exact = f_fnma(*n, f_set(LN2_HIGH_F), x), r = f_fnma(*n, f_set(LN2_LOW_F), exact);
    *tail = f_fma(r * r, f_poly(r, c, terms), f_fnma(*n, f_set(LN2_LOW_F), exact - r));
    return r;
}

// f_exp_pair is e^x = (h + l) 2^n, 1 + r + tail summed so that little more than the last
// addition rounds.
fn vf f_exp_pair(vf x, vf *l, vf *n) {
    vf tail, r = f_exp_reduced(x, exp_f, TERMS(exp_f), &tail, n);
    vf s = f_set(1) + r, rest = (r - (s - f_set(1))) + tail;
    vf h = s + rest;
    *l = rest - (h - s);
    return h;
}

fn vf f_exp(vf x) {
    vf l, n, h = f_exp_pair(f_most(f_least(x, -110), 100), &l, &n);
    return f_scale(h, n);
}

// f_expm1 is twice p - 1/2 + p r + p tail, p = 2^(n-1).
fn vf f_expm1(vf x) {
    x = f_most(f_least(x, -20), 89);
    vf n, tail, r = f_exp_reduced(x, expm1_f, TERMS(expm1_f), &tail, &n);
    vf p = f_exp2(f_int(n) - 1), half = f_set(-0.5f);
    vf s = p + half, sl = half - (s - p);
    sl = f_sel(f_lt(p, f_set(0.5f)), p - (s - half), sl);
    vf h = f_fma(p, r, s), hl = f_fma(p, r, s - h);
    vf y = h + (hl + f_fma(p, tail, sl));
    return f_sel(f_lt(f_abs(x), f_set(0x1p-30f)), x, y + y);
}

// f_exp2_ is 2^n (1 + r P(r)), n + r = x.
fn vf f_exp2_(vf x) {
    x = f_most(f_least(x, -160), 140);
    vf n = f_rint(x), r = x - n;
    return f_scale(f_fma(r, POLY_F(r, exp2_f), f_set(1)), n);
}

// f_log_edges gives a logarithm r of x its values at 0, below 0, at inf and NaN.
fn vf f_log_edges(vf x, vf r) {
    mf usual = f_and(f_lt(f_set(0), x), f_lt(x, f_set(INFINITY)));
    if (__builtin_expect(!f_any(f_not(usual)), 1)) return r;
    r = f_sel(f_lt(x, f_set(INFINITY)), r, x);
    r = f_sel(f_eq(x, f_set(0)), f_set(-INFINITY), r);
    return f_sel(f_lt(x, f_set(0)), f_set(NAN), r);
}

// f_log_tail is log(1 + f) - f = -f^2/2 + f^3 P(f).
fn vf f_log_tail(vf f) { return f * f * f_fma(f, POLY_F(f, log_f), f_set(-0.5f)); }

// f_log_split is x = 2^e (1 + f), 1 + f in [2/3, 4/3), for any x > 0.
fn vf f_log_split(vf x, vf *e) {
    mf sub = f_lt(x, f_set(0x1p-126f));
    if (__builtin_expect(f_any(sub), 0)) {
        vf m = f_frexp(f_sel(sub, x * f_set(0x1p24f), x), e);
        *e = f_sel(sub, *e - f_set(24), *e);
        return m - f_set(1);
    }
    return f_frexp(x, e) - f_set(1);
}

// f_log_join is e log 2 + f + tail: e times the short part of log 2 is exact and its sum
// with f keeps the rounding error.
fn vf f_log_join(vf e, vf f, vf tail) {
    vf p = e * f_set(LN2_SHORT_F), s = p + f;
    return s + ((f - (s - p)) + f_fma(e, f_set(LN2_REST_F), tail));
}

fn vf f_log(vf x) {
    vf e, f = f_log_split(x, &e);
    return f_log_edges(x, f_log_join(e, f, f_log_tail(f)));
}

// f_log_scaled is p + low + (f - f^2/2 + f^3 P(f)) (c + c1), |p| above the rest or 0; the first two
// terms of the logarithm and their product with c keep their rounding errors.
fn vf f_log_scaled(vf p, vf low, vf f, float c, float c1) {
    vf u = f * f, half = f_set(0.5f) * u, a = f - half;
    vf al = ((f - a) - half) - f_set(0.5f) * f_fma(f, f, -u);
    vf q = a * f_set(c), s = p + q;
    vf ql = f_fma(a, f_set(c1), f_fma(a, f_set(c), -q));
    vf rest = f_fma(f * u, POLY_F(f, log_f), al);
    return s + ((q - (s - p)) + f_fma(rest, f_set(c), ql + low));
}

// f_log2 keeps e apart, so that powers of two are exact.
fn vf f_log2(vf x) {
    vf e, f = f_log_split(x, &e);
    return f_log_edges(x, f_log_scaled(e, f_set(0), f, LOG2E_F0, LOG2E_F1));
}

fn vf f_log10(vf x) {
    vf e, f = f_log_split(x, &e), c = f_set(LOG10_2_F0), p = e * c;
    vf low = f_fma(e, f_set(LOG10_2_F1), f_fma(e, c, -p));
    return f_log_edges(x, f_log_scaled(p, low, f, LOG10E_F0, LOG10E_F1));
}

// f_log1p splits 1 + x with what its rounding lost, which counts times 1/(1 + f), 1 - f + f^2
// closely enough; where 1 + x needs no power of two, f is x.
fn vf f_log1p(vf x) {
    vf y = f_set(1) + x, t = y - f_set(1);
    vf lost = (f_set(1) - (y - t)) + (x - t);
    vf e, f = f_frexp(y, &e) - f_set(1);
    mf plain = f_eq(e, f_set(0));
    lost = f_sel(plain, f_set(0), lost * f_exp2(f_int(-f_most(e, 126))));
    f = f_sel(plain, x, f);
    vf r = f_log_join(e, f, f_log_tail(f) + f_fma(lost, f_fma(f, f, -f), lost));
    r = f_sel(f_lt(x, f_set(INFINITY)), r, x);
    r = f_sel(f_eq(x, f_set(-1)), f_set(-INFINITY), r);
    r = f_sel(f_lt(x, f_set(-1)), f_set(NAN), r);
    return f_sel(f_eq(x, f_set(0)), x, r);
}

// f_tanh is x + x^3 P(x^2) below 0.6, and 1 - 2/d with d = e^(2|x|) + 1 from there: d and the
// difference keep their rounding errors, the quotient q is off by q (2 - q d)/2.
fn vf f_tanh(vf x) {
    vf a = f_abs(x), u = x * x, one = f_set(1), two = f_set(2);
    vf small = f_fma(a * u, POLY_F(u, tanh_f), a);
    vf b = f_most(a, 10), l, n, h = f_exp_pair(b + b, &l, &n);
    vf power = f_exp2(f_int(n));
    h = h * power;
    vf d = h + one, dl = f_fma(l, power, one - (d - h));
    vf q = two / d, rest = f_fnma(q, dl, f_fnma(q, d, two));
    vf s = one - q;
    vf large = s + f_fnma(f_set(0.5f) * q, rest, (one - s) - q);
    return f_flip(f_sel(f_lt(a, f_set(0.6f)), small, large), f_sign(x));
}

// f_erf is x + x P(x^2) below 0.72, the term of x kept with its rounding error, and
// 1 - 2^(Q(|x| - 1) - 3) from there: Q is split into a whole number and a rest before it is rounded,
// and 1 less the power of two is exact. From 4 on the result is 1.
fn vf f_erf(vf x) {
    vf a = f_abs(x), u = x * x, one = f_set(1);
    vf c0 = f_set(erf_f[0]), main = f_fma(a, c0, a);
    vf tail = a * u * f_poly(u, erf_f + 1, TERMS(erf_f) - 1);
    vf small = main + (tail + f_fma(a, c0, a - main));
    vf z = f_most(a, 4) - one, d0 = f_set(erfc_f[0]);
    vf q = f_poly(z, erfc_f + 1, TERMS(erfc_f) - 1);
    vf n = f_rint(f_fma(z, q, d0));
    vf r = f_fma(z, q, d0 - n);
    vf power = f_exp2(f_int(n) - 3);
    vf large = f_fnma(r * power, POLY_F(r, exp2_f), one - power);
    return f_flip(f_sel(f_lt(a, f_set(0.72f)), small, large), f_sign(x));
}

// f_nextafter is d_nextafter.
fn vf f_nextafter(vf x, vf y) {
    vi bits = (vi)x;
    mf below = f_lt(f_flip(f_set(1), f_sign(x)), f_set(0));
    mf out = f_or(f_and(below, f_lt(y, x)), f_and(f_not(below), f_lt(x, y)));
    vf r = f_sel(out, (vf)(bits + 1), (vf)(bits - 1));
    r = f_sel(f_eq(x, f_set(0)), (vf)(f_sign(y) | 1), r);
    r = f_sel(f_eq(x, y), y, r);
    return f_sel(f_or(f_isnan(x), f_isnan(y)), x + y, r);
}

vf F(exp, _u10)(vf x) { return f_exp(x); }
vf F(exp2, _u10)(vf x) { return f_exp2_(x); }
vf F(expm1, _u10)(vf x) { return f_expm1(x); }
vf F(log, _u10)(vf x) { return f_log(x); }
vf F(log2, _u10)(vf x) { return f_log2(x); }
vf F(log10, _u10)(vf x) { return f_log10(x); }
vf F(log1p, _u10)(vf x) { return f_log1p(x); }
vf F(tanh, _u10)(vf x) { return f_tanh(x); }
vf F(erf, _u10)(vf x) { return f_erf(x); }
vf F(nextafter, )(vf x, vf y) { return f_nextafter(x, y); }
vf F(copysign, )(vf x, vf y) { return (vf)((vi)f_abs(x) | f_sign(y)); }
