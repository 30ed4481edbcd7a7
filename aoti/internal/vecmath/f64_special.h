// erf, erfc, lgamma of doubles.

// d_piece is a table's polynomial at x + low as two numbers to add: eight pieces in a
// binade, rows of the middle, the low part of the first term, and 12 terms, of which the
// first few serve where less accuracy is asked. An x outside, or NaN, reads some row.
#define PIECE_TERMS 12

fn dd d_piece(const double *table, int first, int binades, int terms, vd x, vd low) {
    vl row = (vl)((vul)(vl)x >> 49) - ((1023LL + first) << 3);
    row = d_int(d_min(d_max(l_double(row), d_set(0)), d_set(8 * binades - 1)));
    row = (row << 4) - (row << 1);
    vd h = (x - d_gather(table, row)) + low;
    vd r = d_gather(table + 1 + terms, row);
#pragma GCC unroll 16
    for (int i = terms; i > 2; i--) r = d_fma(r, h, d_gather(table + i, row));
    return (dd){d_gather(table + 2, row), d_fma(r, h, d_gather(table + 1, row))};
}

// d_erfc_pair is erfc(x) = e^(-x^2) g(x) = (pair) 2^n for x in [1/4, 32): x^2 is a pair and g in pieces.
fn dd d_erfc_pair(vd x, vd *n) {
    dd sq = two_product(x, x);
    dd e = d_exp_pair(-sq.h, -sq.l, n);
    return dd_mul(e, dd_tidy(d_piece(erfcx_d, ERFCX_D_FIRST, ERFCX_D_BINADES, PIECE_TERMS, x, d_set(0))));
}

// d_erf_rest is erf(x) - x = x P(x^2) for |x| <= 1/2 as a pair, the term of x exact.
fn dd d_erf_rest(vd x) {
    vd u = x * x;
    dd t = two_product(x, d_set(erf_d[0]));
    return (dd){t.h, d_fma(x * u, d_poly(u, erf_d + 1, TERMS(erf_d) - 1), t.l)};
}

// d_erf takes |x| from 1/2 on as 1 - erfc|x|.
fn vd d_erf(vd x) {
    vd a = d_abs(x), n;
    dd c = d_erfc_pair(d_most(d_least(a, 0.25), 6.5), &n);
    vd power = d_exp2(d_int(n));
    dd f = fast_sum(d_set(1), -c.h * power);
    vd large = f.h + (f.l - c.l * power);
    dd rest = d_erf_rest(d_most(a, 0.5));
    dd s = fast_sum(a, rest.h);
    vd small = s.h + (s.l + rest.l);
    return d_flip(d_sel(d_lt(a, d_set(0.5)), small, large), d_sign(x));
}

// d_erfc is the pair above 1/4, 2 less the pair below -1/4, and 1 - x - (erf(x) - x)
// between.
fn vd d_erfc(vd x) {
    vd a = d_abs(x), n;
    dd c = d_erfc_pair(d_most(d_least(a, 0.25), 28), &n);
    vd high = d_scale(dd_sum(c), n);
    dd t = fast_sum(d_set(2), -d_scale(c.h, n));
    vd low = t.h + (t.l - d_scale(c.l, n));
    dd s = two_sum(d_set(1), -x);
    dd rest = d_erf_rest(d_most(d_least(x, -0.5), 0.5));
    vd mid = s.h + (s.l - (rest.h + rest.l));
    vd r = d_sel(d_lt(a, d_set(0.25)), mid, d_sel(d_negative(x), low, high));
    return d_sel(d_isnan(x), x, r);
}

// d_gamma_mid is lgamma(y) = (y-1)(y-2) g(y) for the pair y in [1/2, 8), g in pieces: exact
// zeros at 1 and 2 and no cancellation beside them.
fn dd d_gamma_mid(dd y) {
    vd h = d_most(d_least(y.h, 0.5), 0x1.fffffffffffffp2);
    dd g = dd_tidy(d_piece(lgamma_d, LGAMMA_D_FIRST, LGAMMA_D_BINADES, PIECE_TERMS, h, y.l));
    dd one = two_sum(h, d_set(-1)), two = two_sum(h, d_set(-2));
    one = fast_sum(one.h, one.l + y.l);
    two = fast_sum(two.h, two.l + y.l);
    return dd_mul(dd_mul(one, two), g);
}

// d_gamma_far is Stirling's a (log a - 1) - log(a)/2 + log(2 pi)/2 + s(1/a^2)/a for a >= 8,
// given log a.
fn dd d_gamma_far(vd a, dd log) {
    vd w = d_set(1) / a;
    vd tail = w * POLY_D(w * w, stirling_d);
    dd less = dd_add(log, dd_set(-1, 0));
    dd r = two_product(a, less.h);
    r = fast_sum(r.h, d_fma(a, less.l, r.l));
    r = dd_sub(r, (dd){d_set(0.5) * log.h, d_set(0.5) * log.l});
    return dd_add(r, dd_add(dd_set(HALF_LOG_2PI_0, HALF_LOG_2PI_1), dd_of(tail)));
}

// d_sinpi_pair is |sin(pi a)|: of pi times the distance to the nearest whole number.
fn dd d_sinpi_pair(vd a) {
    vd d = d_abs(a - d_rint(a));
    md low = d_lt(d, d_set(0.25));
    vd f = d_sel(low, d, d_set(0.5) - d);
    dd r = two_product(f, d_set(PI_0));
    r = fast_sum(r.h, d_fma(f, d_set(PI_1), r.l));
    return dd_tidy(dd_sel(low, d_sin_parts(r), d_cos_parts(r)));
}

// d_log_of_pair is the log of a pair: log1p of what the low part adds.
fn dd d_log_of_pair(dd y) { return dd_add(d_log_pair(y.h), dd_of(y.l / y.h)); }

// d_lgamma takes |x| < 1/2 by lgamma(1 + x) - log|x|, and x <= -1/2 by reflection,
// log(pi / (a |sin(pi a)|)) - lgamma(a) with a = |x|.
fn vd d_lgamma(vd x) {
    vd a = d_abs(x), one = d_set(1), inf = d_set(INFINITY);
    md small = d_lt(a, d_set(0.5));
    md under = d_and(d_negative(x), d_not(small));
    dd log = d_log_pair(a);
    dd mid = d_gamma_mid(dd_sel(small, two_sum(one, x), dd_of(a)));
    mid = dd_sel(small, dd_sub(mid, log), mid);
    dd r = dd_sel(d_lt(a, d_set(8)), mid, d_gamma_far(a, log));
    vd y = dd_sum(r);
    y = d_sel(d_lt(r.h, inf), y, inf);
    if (d_any(under)) {
        dd s = d_sinpi_pair(a);
        dd t = dd_sub(dd_set(LOG_PI_0, LOG_PI_1), dd_add(d_log_of_pair(s), log));
        vd mirrored = dd_sum(dd_sub(t, r));
        mirrored = d_sel(d_eq(s.h, d_set(0)), inf, mirrored);
        y = d_sel(under, mirrored, y);
    }
    md pole = d_or(d_eq(a, d_set(0)), d_eq(a, inf));
    y = d_sel(pole, inf, y);
    return d_sel(d_isnan(x), x, y);
}

vd D(erf, _u10)(vd x) { return d_erf(x); }
vd D(erfc, _u15)(vd x) { return d_erfc(x); }
vd D(lgamma, _u10)(vd x) { return d_lgamma(x); }
