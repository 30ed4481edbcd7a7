// exp, exp2, expm1, sinh, cosh, tanh of doubles.

// d_expm1_reduced is e^r - 1 as a pair and n, for x + low = n log 2 + r with
// |r| <= log(2)/2. x - n LN2_0 is exact; r and r^2/2 are pairs, the terms from r^3
// on a minimax polynomial in double, whose rounding is 2^-60 of e^r.
fn dd d_expm1_reduced(vd x, vd low, vd *n) {
    *n = d_nearest(x, LOG2E_0);
    dd r = two_sum(d_fnma(*n, d_set(LN2_0), x), d_fnma(*n, d_set(LN2_1), low));
    dd sq = two_product(r.h, r.h);
    vd tail = r.h * sq.h * POLY_D(r.h, exp_d);
    vd half = d_set(0.5);
    vd rest = r.l + d_fma(r.h, r.l, half * sq.l);
    dd s = fast_sum(r.h, half * sq.h);
    return fast_sum(s.h, s.l + (tail + rest));
}

// d_exp_pair is e^(x + low) = (pair) 2^n: 1 + r + r^2 P(r), r = x + low - n log 2 in two parts,
// whose product is exact, summed so that only the tail of r^2 rounds: 2^-58 of the result.
fn dd d_exp_pair(vd x, vd low, vd *n) {
    *n = d_nearest(x, LOG2E_0);
    vd exact = d_fnma(*n, d_set(LN2_0), x), rest = d_fnma(*n, d_set(LN2_1), low);
    vd r = exact + rest;
    vd t = d_fma(r * r, POLY_D(r, exp_tail_d), (exact - r) + rest);
    dd s = fast_sum(d_set(1), r);
    return fast_sum(s.h, s.l + t);
}

fn vd d_exp(vd x) {
    vd n;
    dd p = d_exp_pair(d_most(d_least(x, -760), 760), d_set(0), &n);
    return d_scale(p.h, n);
}

// d_exp2_ is 2^n (1 + r log 2 + r^2 P(r)), x = n + r, r log 2 in two parts.
fn vd d_exp2_(vd x) {
    x = d_most(d_least(x, -1100), 1100);
    vd n = d_rint(x), r = x - n;
    dd p = two_product(r, d_set(LN2_0));
    vd t = d_fma(r * r, POLY_D(r, exp2_tail_d), d_fma(r, d_set(LN2_1), p.l));
    dd s = fast_sum(d_set(1), p.h);
    return d_scale(s.h + (s.l + t), n);
}

// d_expm1_part is 2^-k (e^x - 1) as a pair for k of 1 or more, so that nothing overflows up to
// x = 709.9 (1) or 710.7 (2): 2^(n-k) - 2^-k and 2^(n-k) (e^r - 1) add without an error above 2^-100.
fn dd d_expm1_part(vd x, int k) {
    vd n;
    dd e = d_expm1_reduced(x, d_set(0), &n);
    vd power = d_exp2(d_int(n) - k);
    dd s = two_sum(power, d_set(k == 1 ? -0.5 : -0.25));
    return dd_add(s, dd_by(e, power));
}

// d_tiny keeps x where |x| < 2^-60: there f(x) rounds to x, and the reduced
// forms would lose the bits of subnormal numbers.
fn vd d_tiny(vd x, vd r) { return d_sel(d_lt(d_abs(x), d_set(0x1p-60)), x, r); }

fn vd d_expm1(vd x) {
    vd r = dd_sum(d_expm1_part(d_most(d_least(x, -40), 709.9), 1));
    return d_tiny(x, r + r);
}

// d_tanh is m/(m + 2), m = e^(2|x|) - 1.
fn vd d_tanh(vd x) {
    vd a = d_most(d_abs(x), 20);
    dd m = d_expm1_part(a + a, 1);
    dd q = dd_div(m, dd_add(m, dd_set(1, 0)));
    return d_tiny(x, d_flip(dd_sum(q), d_sign(x)));
}

// d_sinh is (m + m/(m+1))/2, m = e^|x| - 1, by m/4; where m is huge the fraction, which
// counts for nothing, keeps a finite divisor.
fn vd d_sinh(vd x) {
    vd a = d_most(d_abs(x), 710.7);
    dd quarter = d_expm1_part(a, 2);
    dd m = dd_by(dd_sel(d_lt(a, d_set(600)), quarter, dd_set(0x1p800, 0)), d_set(4));
    dd r = dd_add(quarter, dd_div(quarter, dd_add(m, dd_set(1, 0))));
    return d_tiny(x, d_flip(d_set(2) * dd_sum(r), d_sign(x)));
}

// d_cosh is 4 (E + 1/(64 E)), E = e^|x|/8.
fn vd d_cosh(vd x) {
    vd a = d_most(d_abs(x), 711), n;
    dd p = d_exp_pair(a, d_set(0), &n);
    dd e = dd_by(p, d_exp2(d_int(n) - 3));
    dd r = dd_add(e, dd_div(dd_set(0x1p-6, 0), e));
    return d_set(4) * dd_sum(r);
}

vd D(exp, _u10)(vd x) { return d_exp(x); }
vd D(exp2, _u10)(vd x) { return d_exp2_(x); }
vd D(expm1, _u10)(vd x) { return d_expm1(x); }
vd D(tanh, _u10)(vd x) { return d_tanh(x); }
vd D(sinh, _u10)(vd x) { return d_sinh(x); }
vd D(cosh, _u10)(vd x) { return d_cosh(x); }
