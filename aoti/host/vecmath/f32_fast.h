// The functions of floats that models call most, in floats throughout, and the ones
// that only move bits.

// f_exp_pair is e^x = (h + l) 2^n: 1 + r + r^2 P(r) with r = x - n log 2 in two parts, summed so
// that little more than the last addition rounds.
fn vf f_exp_pair(vf x, vf *l, vf *n) {
    *n = f_rint(x * f_set((float)LOG2E_0));
    vf r = f_fnma(*n, f_set(LN2_HIGH_F), x);
    vf low = *n * f_set(LN2_LOW_F);
    vf t = f_fma(r * r, POLY_F(r, exp_f), f_fnma(low, r, -low));
    vf s = f_set(1) + r, rest = (r - (s - f_set(1))) + t;
    vf h = s + rest;
    *l = rest - (h - s);
    return h;
}

fn vf f_exp(vf x) {
    vf l, n, h = f_exp_pair(f_most(f_least(x, -110), 100), &l, &n);
    return f_scale(h, n);
}

// f_exp2 is 2^n (1 + r P(r)), n + r = x.
fn vf f_exp2_(vf x) {
    x = f_most(f_least(x, -160), 140);
    vf n = f_rint(x), r = x - n;
    return f_scale(f_fma(r, POLY_F(r, exp2_f), f_set(1)), n);
}

// f_log is e log 2 + f - f^2/2 + f^3 P(f), 1 + f in [sqrt(1/2), sqrt(2)): e times the
// short part of log 2 is exact and its sum with f keeps the rounding error.
fn vf f_log(vf x) {
    mf sub = f_lt(x, f_set(0x1p-126f));
    vf e, f = f_frexp(f_sel(sub, x * f_set(0x1p24f), x), &e) - f_set(1);
    e = f_sel(sub, e - f_set(24), e);
    vf t = f * f * f_fma(f, POLY_F(f, log_f), f_set(-0.5f));
    vf p = e * f_set(LN2_SHORT_F), s = p + f;
    vf r = s + ((f - (s - p)) + f_fma(e, f_set(LN2_REST_F), t));
    r = f_sel(f_lt(x, f_set(INFINITY)), r, x);
    r = f_sel(f_eq(x, f_set(0)), f_set(-INFINITY), r);
    return f_sel(f_lt(x, f_set(0)), f_set(NAN), r);
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

// f_erf is x + x P(x^2) below 0.9, the term of x kept with its rounding error, and
// 1 - 2^Q(|x|) from there: Q is split into a whole number and a rest before it is rounded.
// From 4 on the result is 1.
fn vf f_erf(vf x) {
    vf a = f_abs(x), u = x * x, one = f_set(1);
    vf c0 = f_set(erf_f[0]), main = f_fma(a, c0, a);
    vf tail = a * u * f_poly(u, erf_f + 1, TERMS(erf_f) - 1);
    vf small = main + (tail + f_fma(a, c0, a - main));
    vf b = f_most(a, 4);
    vf q = f_poly(b, erfc_f + 1, TERMS(erfc_f) - 1);
    vf n = f_rint(f_fma(b, q, f_set(erfc_f[0])));
    vf r = f_fma(b, q, f_set(erfc_f[0]) - n);
    vf c = f_fma(r, POLY_F(r, exp2_f), one) * f_exp2(f_int(n));
    return f_flip(f_sel(f_lt(a, f_set(0.9f)), small, one - c), f_sign(x));
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
vf F(log, _u10)(vf x) { return f_log(x); }
vf F(tanh, _u10)(vf x) { return f_tanh(x); }
vf F(erf, _u10)(vf x) { return f_erf(x); }
vf F(nextafter, )(vf x, vf y) { return f_nextafter(x, y); }
vf F(copysign, )(vf x, vf y) { return (vf)((vi)f_abs(x) | f_sign(y)); }
