// hypot, fmod, nextafter, copysign of doubles.

// d_hypot is the root of a sum of squares in pairs, of operands scaled by the larger
// one's power of two.
fn vd d_hypot(vd x, vd y) {
    vd a = d_abs(x), b = d_abs(y), inf = d_set(INFINITY);
    vd e = d_exponent(d_sel(d_lt(a, b), b, a));
    vd power = d_exp2(-d_int(e));
    vd p = a * power, q = b * power;
    dd s = dd_sqrt(dd_add(two_product(p, p), two_product(q, q)));
    vd r = dd_sum(s) * d_exp2(d_int(e));
    return d_sel(d_or(d_eq(a, inf), d_eq(b, inf)), inf, r);
}

// d_fmod is a - trunc(a/b) b, exact while the quotient is below 2^53: it is at most one
// too large, which leaves a remainder in [-b, b). Other lanes go to the C library.
fn vd d_fmod(vd x, vd y) {
    vd a = d_abs(x), b = d_abs(y);
    vd q = d_trunc(a / b);
    vd r = d_fnma(q, b, a);
    r = d_sel(d_lt(r, d_set(0)), r + b, r);
    md easy = d_and(d_lt(q, d_set(0x1p53)), d_and(d_lt(d_set(0), b), d_lt(b, d_set(INFINITY))));
    return d_rare2(d_not(easy), d_flip(r, d_sign(x)), x, y, fmod);
}

// d_nextafter steps the bits: away from zero where y lies there, and from zero to
// the smallest number of y's sign.
fn vd d_nextafter(vd x, vd y) {
    vl bits = (vl)x;
    md below = d_negative(x);
    md out = d_or(d_and(below, d_lt(y, x)), d_and(d_not(below), d_lt(x, y)));
    vd r = d_sel(out, (vd)(bits + 1), (vd)(bits - 1));
    r = d_sel(d_eq(x, d_set(0)), (vd)(d_sign(y) | 1), r);
    r = d_sel(d_eq(x, y), y, r);
    return d_sel(d_or(d_isnan(x), d_isnan(y)), x + y, r);
}

vd D(hypot, _u05)(vd x, vd y) { return d_hypot(x, y); }
vd D(fmod, )(vd x, vd y) { return d_fmod(x, y); }
vd D(nextafter, )(vd x, vd y) { return d_nextafter(x, y); }
vd D(copysign, )(vd x, vd y) { return (vd)((vl)d_abs(x) | d_sign(y)); }
