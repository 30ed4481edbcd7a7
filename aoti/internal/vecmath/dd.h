// Pairs of doubles whose sum is the value: |l| is at most half an ulp of h.
// Sums and products are error-free transformations (Knuth, Dekker; products by
// fused multiply-add).

typedef struct {
    vd h, l;
} dd;

fn dd dd_of(vd h) { return (dd){h, d_set(0)}; }
fn dd dd_set(double h, double l) { return (dd){d_set(h), d_set(l)}; }
fn vd dd_sum(dd a) { return a.h + a.l; }
fn dd dd_neg(dd a) { return (dd){-a.h, -a.l}; }
fn dd dd_twice(dd a) { return (dd){a.h + a.h, a.l + a.l}; }
fn dd dd_by(dd a, vd power) { return (dd){a.h * power, a.l * power}; }
fn dd dd_sel(md m, dd a, dd b) { return (dd){d_sel(m, a.h, b.h), d_sel(m, a.l, b.l)}; }

// two_sum is a + b exactly.
fn dd two_sum(vd a, vd b) {
    vd s = a + b;
    vd t = s - a;
    return (dd){s, (a - (s - t)) + (b - t)};
}

// fast_sum is a + b exactly where |a| >= |b| or a is 0.
fn dd fast_sum(vd a, vd b) {
    vd s = a + b;
    return (dd){s, b - (s - a)};
}

// dd_tidy makes a pair of two numbers of which the first is the larger.
fn dd dd_tidy(dd a) { return fast_sum(a.h, a.l); }

fn dd two_product(vd a, vd b) {
    vd p = a * b;
    return (dd){p, d_fms(a, b, p)};
}

fn dd dd_add(dd a, dd b) {
    dd s = two_sum(a.h, b.h);
    return fast_sum(s.h, s.l + (a.l + b.l));
}

fn dd dd_sub(dd a, dd b) { return dd_add(a, dd_neg(b)); }

fn dd dd_mul(dd a, dd b) {
    dd p = two_product(a.h, b.h);
    return fast_sum(p.h, d_fma(a.h, b.l, d_fma(a.l, b.h, p.l)));
}

// dd_times is the product with its low part not yet below half an ulp of the high one.
fn dd dd_times(dd a, dd b) {
    dd p = two_product(a.h, b.h);
    return (dd){p.h, d_fma(a.h, b.l, d_fma(a.l, b.h, p.l))};
}

fn dd dd_div(dd a, dd b) {
    vd inverse = d_set(1) / b.h;
    vd q = a.h * inverse;
    vd rest = d_fnma(q, b.h, a.h);
    return fast_sum(q, (rest + d_fnma(q, b.l, a.l)) * inverse);
}

// dd_sqrt is the root of a >= 0; 0 where a is 0, NaN where it is negative.
fn dd dd_sqrt(dd a) {
    vd s = d_sqrt(a.h);
    vd rest = d_fnma(s, s, a.h) + a.l;
    vd low = rest / (s + s);
    return (dd){s, d_sel(d_eq(s, d_set(0)), d_set(0), low)};
}
