// log, log2, log10, log1p, asinh, acosh, atanh, pow of doubles.

// d_log_ratio is log(1 + z) for the pairs num = z, den = 2 + z with z in
// [-1/3, 1/3]: t = num/den, log = 2t + t^3 P(t^2), 2t a pair.
fn dd d_log_ratio(dd num, dd den) {
    dd t = dd_div(num, den);
    vd u = t.h * t.h;
    vd tail = t.h * u * POLY_D(u, log_d);
    return (dd){t.h + t.h, t.l + t.l + tail};
}

// d_log_join is e log 2 + r.
fn dd d_log_join(vd e, dd r) {
    dd p = two_product(e, d_set(LN2_0));
    dd s = fast_sum(p.h, r.h);
    return fast_sum(s.h, s.l + (d_fma(e, d_set(LN2_1), p.l) + r.l));
}

// d_log_split is d_frexp for any x > 0, subnormal ones too.
fn vd d_log_split(vd x, vd *e) {
    md sub = d_lt(x, d_set(0x1p-1022));
    if (__builtin_expect(d_any(sub), 0)) {
        vd m = d_frexp(d_sel(sub, x * d_set(0x1p54), x), e);
        *e = d_sel(sub, *e - d_set(54), *e);
        return m;
    }
    return d_frexp(x, e);
}

// d_log_pair is log(x) as a pair, with a relative error of about 2^-59, for 0 < x < inf.
fn dd d_log_pair(vd x) {
    vd e, m = d_log_split(x, &e);
    dd r = d_log_ratio(dd_of(m - d_set(1)), two_sum(m, d_set(1)));
    return d_log_join(e, r);
}

// d_log_edges gives a logarithm r of x its values at 0, below 0, at inf and NaN.
fn vd d_log_edges(vd x, vd r) {
    md usual = d_and(d_lt(d_set(0), x), d_lt(x, d_set(INFINITY)));
    if (__builtin_expect(!d_any(d_not(usual)), 1)) return r;
    r = d_sel(d_lt(x, d_set(INFINITY)), r, x);
    r = d_sel(d_eq(x, d_set(0)), d_set(-INFINITY), r);
    return d_sel(d_lt(x, d_set(0)), d_set(NAN), r);
}

// d_log_parts is log(1 + f) as two numbers to add. With t = f/(2 + f) it is
// f - f^2/2 + t (f^2/2 + t^2 P(t^2)); the first two terms keep their rounding errors.
fn dd d_log_parts(vd f) {
    vd t = f / (d_set(2) + f), u = t * t, half = d_set(0.5);
    dd sq = two_product(f, f);
    dd a = fast_sum(f, -half * sq.h);
    a.l = d_fma(t, d_fma(u, POLY_D(u, log_d), half * sq.h), d_fnma(half, sq.l, a.l));
    return a;
}

// d_log_scaled is p + log(1 + f) (c + low), |p| above the rest or 0: a logarithm to another base.
fn vd d_log_scaled(dd p, vd f, double c, double low) {
    dd a = d_log_parts(f), q = two_product(a.h, d_set(c));
    dd s = fast_sum(p.h, q.h);
    vd tail = d_fma(a.l, d_set(c), d_fma(a.h, d_set(low), q.l));
    return s.h + (s.l + (p.l + tail));
}

fn vd d_log(vd x) {
    vd e, f = d_log_split(x, &e) - d_set(1);
    return d_log_edges(x, dd_sum(d_log_join(e, d_log_parts(f))));
}

// d_log2 keeps e apart, so that powers of two are exact.
fn vd d_log2(vd x) {
    vd e, f = d_log_split(x, &e) - d_set(1);
    return d_log_edges(x, d_log_scaled(dd_of(e), f, LOG2E_0, LOG2E_1));
}

fn vd d_log10(vd x) {
    vd e, f = d_log_split(x, &e) - d_set(1);
    dd p = two_product(e, d_set(LOG10_2_0));
    p.l = d_fma(e, d_set(LOG10_2_1), p.l);
    return d_log_edges(x, d_log_scaled(p, f, LOG10E_0, LOG10E_1));
}

// d_log1p_pair is log(1 + z) + k log 2 as a pair, for z > -1. Where 1 + z needs no
// power of two, z itself is the numerator, so that its low bits count; from 2^1022 on
// the pair's low part counts for nothing.
fn dd d_log1p_pair(dd z, vd k) {
    dd y = two_sum(d_set(1), z.h);
    y.l = y.l + z.l;
    vd e, m = d_frexp(y.h, &e);
    vd low = y.l * d_exp2(d_int(-d_most(e, 1022)));
    md plain = d_eq(e, d_set(0));
    dd num = dd_sel(plain, z, two_sum(m - d_set(1), low));
    dd den = two_sum(m, d_set(1));
    den.l = den.l + low;
    return d_log_join(e + k, d_log_ratio(num, den));
}

fn vd d_log1p(vd x) {
    vd r = dd_sum(d_log1p_pair(dd_of(x), d_set(0)));
    r = d_sel(d_lt(x, d_set(INFINITY)), r, x);
    r = d_sel(d_eq(x, d_set(-1)), d_set(-INFINITY), r);
    r = d_sel(d_lt(x, d_set(-1)), d_set(NAN), r);
    return d_tiny(x, r);
}

// d_asinh is log1p(a + a^2/(1 + sqrt(1 + a^2))), a = |x|, and log a + log 2 above 2^60.
fn vd d_asinh(vd x) {
    vd a = d_abs(x);
    md huge = d_lt(d_set(0x1p60), a);
    vd b = d_sel(huge, d_set(1), a);
    dd sq = two_product(b, b);
    dd root = dd_sqrt(dd_add(dd_set(1, 0), sq));
    dd z = dd_add(dd_of(b), dd_div(sq, dd_add(dd_set(1, 0), root)));
    dd r = d_log1p_pair(dd_sel(huge, dd_of(a), z), d_sel(huge, d_set(1), d_set(0)));
    vd s = d_sel(d_lt(a, d_set(INFINITY)), dd_sum(r), a);
    return d_tiny(x, d_flip(s, d_sign(x)));
}

// d_acosh is log1p(d + sqrt(d (x + 1))), d = x - 1, and log x + log 2 above 2^60.
fn vd d_acosh(vd x) {
    md huge = d_lt(d_set(0x1p60), x);
    vd b = d_sel(huge, d_set(2), x);
    dd less = two_sum(b, d_set(-1));
    dd root = dd_sqrt(dd_mul(less, two_sum(b, d_set(1))));
    dd z = dd_sel(huge, dd_of(x), dd_add(less, root));
    vd r = dd_sum(d_log1p_pair(z, d_sel(huge, d_set(1), d_set(0))));
    r = d_sel(d_lt(x, d_set(INFINITY)), r, x);
    return d_sel(d_lt(x, d_set(1)), d_set(NAN), r);
}

// d_atanh is log1p(2a/(1 - a))/2, a = |x|.
fn vd d_atanh(vd x) {
    vd a = d_abs(x);
    dd z = dd_div(dd_of(a + a), two_sum(d_set(1), -a));
    vd r = d_set(0.5) * dd_sum(d_log1p_pair(z, d_set(0)));
    r = d_sel(d_lt(a, d_set(1)), r, d_sel(d_eq(a, d_set(1)), d_set(INFINITY), d_set(NAN)));
    return d_tiny(x, d_flip(r, d_sign(x)));
}

// d_log_fine is log(x) as a pair with a relative error of about 2^-68: the products that
// make the terms of t^3 and t^5 are pairs too, their low parts gathered in plain doubles.
fn dd d_log_fine(vd x) {
    vd e, m = d_log_split(x, &e);
    dd t = dd_div(dd_of(m - d_set(1)), two_sum(m, d_set(1)));
    dd u = two_product(t.h, t.h);
    u.l = d_fma(t.h + t.h, t.l, u.l);
    dd p = fast_sum(d_set(TWO_FIFTHS_0), u.h * POLY_D(u.h, log_dd));
    p.l = p.l + d_set(TWO_FIFTHS_1);
    dd q = dd_times(u, p);
    dd w = fast_sum(d_set(TWO_THIRDS_0), q.h);
    w.l = w.l + (q.l + d_set(TWO_THIRDS_1));
    dd r = dd_times(dd_times(t, u), w);
    dd a = two_product(e, d_set(LN2_0));
    dd b = fast_sum(t.h + t.h, r.h), c = fast_sum(a.h, b.h);
    vd low = (b.l + r.l) + (t.l + t.l);
    return fast_sum(c.h, c.l + (low + d_fma(e, d_set(LN2_1), a.l)));
}

// d_pow_edges gives r = |x|^y its sign and the values that C's Annex F names.
fn vd d_pow_edges(vd x, vd y, vd r) {
    vd one = d_set(1), inf = d_set(INFINITY), a = d_abs(x), half = d_set(0.5) * y;
    md whole = d_eq(d_trunc(y), y);
    md odd = d_and(whole, d_not(d_eq(d_trunc(half), half)));
    md negative = d_negative(x);
    r = d_sel(d_and(negative, odd), -r, r);
    md bad = d_and(d_and(negative, d_not(whole)), d_and(d_lt(a, inf), d_lt(d_set(0), a)));
    r = d_sel(bad, d_set(NAN), r);
    r = d_sel(d_or(d_isnan(x), d_isnan(y)), x + y, r);
    md unit = d_or(d_eq(y, d_set(0)), d_eq(x, one));
    unit = d_or(unit, d_and(d_eq(a, one), d_eq(d_abs(y), inf)));
    return d_sel(unit, one, r);
}

// d_pow is e^(y log|x|) with the product as a pair: below 1100 in size, so an error
// of 2^-68 of it is 2^-58 of the result.
fn vd d_pow(vd x, vd y) {
    vd a = d_abs(x), inf = d_set(INFINITY), n;
    dd l = d_log_fine(a);
    l.h = d_sel(d_eq(a, d_set(0)), d_set(-INFINITY), d_sel(d_eq(a, inf), inf, l.h));
    dd p = two_product(y, l.h);
    vd low = d_fma(y, l.l, p.l);
    md far = d_not(d_lt(d_abs(p.h), d_set(1000)));
    vd h = d_most(d_least(p.h, -1000), 1000);
    dd e = d_exp_pair(h, d_sel(far, d_set(0), low), &n);
    return d_pow_edges(x, y, d_scale(e.h, n));
}

vd D(log, _u10)(vd x) { return d_log(x); }
vd D(log2, _u10)(vd x) { return d_log2(x); }
vd D(log10, _u10)(vd x) { return d_log10(x); }
vd D(log1p, _u10)(vd x) { return d_log1p(x); }
vd D(asinh, _u10)(vd x) { return d_asinh(x); }
vd D(acosh, _u10)(vd x) { return d_acosh(x); }
vd D(atanh, _u10)(vd x) { return d_atanh(x); }
vd D(pow, _u10)(vd x, vd y) { return d_pow(x, y); }
