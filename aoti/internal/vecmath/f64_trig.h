// sin, cos, tan of doubles, and asin, acos, atan, atan2.

// FAR_D is where the reduction by three doubles of pi/2 ends: n stays below 2^30,
// n PIO2_0 is exact in the multiply-add, and what the three leave out is below
// 2^-130. Larger arguments go to the C library, a lane at a time.
#define FAR_D 1e9

// d_quadrant is x - n pi/2 as a pair within pi/4, and n modulo 4 in the low bits.
fn dd d_quadrant(vd x, vl *quadrant) {
    vd n = d_nearest(x, TWO_OVER_PI_0);
    *quadrant = d_int(n);
    vd r = d_fnma(n, d_set(PIO2_0), x);
    dd p = two_product(n, d_set(PIO2_1));
    dd s = two_sum(r, -p.h);
    return (dd){s.h, s.l - d_fma(n, d_set(PIO2_2), p.l)};
}

// d_sin_parts is sin(r) = r + r^3 P(r^2) for |r| <= pi/4 as two numbers to add; the low part of r
// counts times cos(r).
fn dd d_sin_parts(dd r) {
    vd u = r.h * r.h;
    vd tail = r.h * u * POLY_D(u, sin_d);
    return (dd){r.h, tail + d_fnma(r.l, d_set(0.5) * u, r.l)};
}

// d_cos_parts is cos(r) = 1 - r^2/2 + r^4 P(r^2), r^2 as a pair; the low part of r counts
// times -sin(r).
fn dd d_cos_parts(dd r) {
    dd u = two_product(r.h, r.h);
    vd half = d_set(0.5) * u.h;
    dd s = fast_sum(d_set(1), -half);
    vd tail = u.h * u.h * POLY_D(u.h, cos_d);
    vd low = d_fma(r.h, r.l, d_set(0.5) * u.l);
    return (dd){s.h, s.l + (tail - low)};
}

// d_wave is sin or cos of x by quadrant: an odd one swaps the two, bit 1 negates.
fn vd d_wave(vd x, long long shift) {
    vl q;
    dd r = d_quadrant(x, &q);
    q = q + shift;
    vd y = dd_sum(dd_sel(l_test(q, (q & 0) + 1), d_cos_parts(r), d_sin_parts(r)));
    return d_flip(y, (q & 2) << 62);
}

fn md d_far(vd x) { return d_lt(d_set(FAR_D), d_abs(x)); }

// d_sin keeps -0, which the reduction would turn into 0.
fn vd d_sin(vd x) { return d_rare(d_far(x), d_tiny(x, d_wave(x, 0)), x, sin); }
fn vd d_cos(vd x) { return d_rare(d_far(x), d_wave(x, 1), x, cos); }

// d_tan is sin/cos or -cos/sin, of pairs.
fn vd d_tan(vd x) {
    vl q;
    dd r = d_quadrant(x, &q);
    dd s = dd_tidy(d_sin_parts(r)), c = dd_tidy(d_cos_parts(r));
    md odd = l_test(q, (q & 0) + 1);
    vd t = dd_sum(dd_div(dd_sel(odd, c, s), dd_sel(odd, s, c)));
    return d_rare(d_far(x), d_tiny(x, d_flip(t, (q & 1) << 63)), x, tan);
}

// d_atan_pair is atan(y/x) as a pair for y, x >= 0: the smaller over the larger, from
// tan(pi/8) on less pi/4, which leaves t with t^2 <= 0.1717.
fn dd d_atan_pair(vd y, vd x) {
    md swap = d_lt(x, y);
    vd n = d_sel(swap, x, y), d = d_sel(swap, y, x);
    md big = d_lt(d_set(0.41421356) * d, n);
    dd t = dd_div(dd_sel(big, two_sum(n, -d), dd_of(n)), dd_sel(big, fast_sum(d, n), dd_of(d)));
    vd u = t.h * t.h;
    dd r = fast_sum(t.h, t.l + t.h * u * POLY_D(u, atan_d));
    // The larger angle less or plus r, or r alone: at most one of the additions has a
    // constant to add.
    md plus = d_or(big, swap);
    dd base = dd_sel(big, dd_set(PIO4_0, PIO4_1), dd_set(PIO2_0, PIO2_1));
    dd s = fast_sum(base.h, d_sel(swap, -r.h, r.h));
    s.l = s.l + (base.l + d_sel(swap, -r.l, r.l));
    return dd_sel(plus, s, r);
}

fn vd d_atan(vd x) {
    vd a = d_most(d_abs(x), 0x1p100);
    vd r = dd_sum(d_atan_pair(a, d_set(1)));
    return d_tiny(x, d_flip(r, d_sign(x)));
}

// d_mirror is pi - r where m.
fn vd d_mirror(md m, dd r) {
    return d_sel(m, dd_sum(dd_sub(dd_set(PI_0, PI_1), r)), dd_sum(r));
}

// d_atan2_edges replaces operands whose quotient would need numbers out of range, |y| and |x|
// in b and a: both are scaled by the larger one's power of two; infinite and zero pairs
// become the ones with the same angle.
fn void d_atan2_edges(vd *b, vd *a) {
    vd inf = d_set(INFINITY), one = d_set(1), zero = d_set(0);
    md ai = d_eq(*a, inf), bi = d_eq(*b, inf), big = d_or(ai, bi);
    vd p = d_sel(big, d_sel(ai, one, zero), *a), q = d_sel(big, d_sel(bi, one, zero), *b);
    p = d_sel(d_and(d_eq(p, zero), d_eq(q, zero)), one, p);
    vd power = d_exp2(-d_int(d_exponent(d_max(p, q))));
    *a = p * power;
    *b = q * power;
}

fn vd d_atan2(vd y, vd x) {
    vd a = d_abs(x), b = d_abs(y), low = d_set(0x1p-400), high = d_set(0x1p400);
    md usual = d_and(d_lt(low, d_min(a, b)), d_lt(d_max(a, b), high));
    if (__builtin_expect(d_any(d_not(usual)), 0)) d_atan2_edges(&b, &a);
    dd r = d_atan_pair(b, a);
    dd s = dd_sub(dd_set(PI_0, PI_1), r);
    vd t = d_flip(dd_sum(dd_sel(d_negative(x), s, r)), d_sign(y));
    return d_sel(d_or(d_isnan(x), d_isnan(y)), x + y, t);
}

// d_asin_pair is asin(s) for s = a up to 1/2, and for s = sqrt((1 - a)/2) from there, as a pair: the
// square is then exact and the root has a low part. NaN for a > 1.
fn dd d_asin_pair(vd a, md low) {
    vd u = d_sel(low, a * a, d_set(0.5) - d_set(0.5) * a);
    vd root = d_sqrt(u), s = d_sel(low, a, root);
    vd rest = d_set(0.5) * d_fnma(root, root, u) / root;
    rest = d_sel(d_or(low, d_eq(root, d_set(0))), d_set(0), rest);
    return fast_sum(s, d_fma(s * u, POLY_D(u, asin_d), rest));
}

// d_asin is pi/2 - 2 asin(sqrt((1 - |x|)/2)) above 1/2.
fn vd d_asin(vd x) {
    vd a = d_abs(x);
    md low = d_le(a, d_set(0.5));
    dd r = d_asin_pair(a, low);
    dd far = dd_sub(dd_set(PIO2_0, PIO2_1), dd_twice(r));
    return d_tiny(x, d_flip(d_sel(low, dd_sum(r), dd_sum(far)), d_sign(x)));
}

// d_acos is pi/2 - asin(x) within 1/2, and 2 asin(sqrt((1 - |x|)/2)) or pi less that beyond.
fn vd d_acos(vd x) {
    vd a = d_abs(x);
    md low = d_le(a, d_set(0.5)), negative = d_lt(x, d_set(0));
    dd r = d_asin_pair(a, low);
    r = dd_sel(low, r, dd_twice(r));
    dd base = dd_sel(low, dd_set(PIO2_0, PIO2_1), dd_set(PI_0, PI_1));
    md less = d_or(d_and(low, d_not(negative)), d_and(d_not(low), negative));
    dd far = dd_add(base, dd_sel(less, dd_neg(r), r));
    return d_sel(d_or(low, negative), dd_sum(far), dd_sum(r));
}

vd D(sin, _u10)(vd x) { return d_sin(x); }
vd D(cos, _u10)(vd x) { return d_cos(x); }
vd D(tan, _u10)(vd x) { return d_tan(x); }
vd D(atan, _u10)(vd x) { return d_atan(x); }
vd D(atan2, _u10)(vd y, vd x) { return d_atan2(y, x); }
vd D(asin, _u10)(vd x) { return d_asin(x); }
vd D(acos, _u10)(vd x) { return d_acos(x); }
