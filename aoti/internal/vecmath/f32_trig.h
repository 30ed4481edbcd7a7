// sin and cos of floats, in floats; tan and the inverse ones are in f32_light.h.

// FAR_F is where the reductions by three floats end; a vector with a larger argument
// is computed in doubles as well.
#define FAR_F 65536

fn mf f_far(vf x) { return f_lt(f_set(FAR_F), f_abs(x)); }

#define F_FAR(x, r, half)                                                              \
    if (__builtin_expect(f_any(f_far(x)), 0)) {                                        \
        return f_sel(f_far(x), f_join(half(d_low(x)), half(d_high(x))), r);            \
    }

// f_half_turns is (-1)^n sin(x - k pi) for whole n and k beside it, |x - k pi| up to pi/2: one
// polynomial r + r^3 P(r^2), within 3.5 ulp.
fn vf f_half_turns(vf x, vf k, vi odd) {
    vf r = f_fnma(k, f_set(PI_F0), x);
    r = f_fnma(k, f_set(PI_F2), f_fnma(k, f_set(PI_F1), r));
    vf u = r * r;
    return f_flip(f_fma(r * u, POLY_F(u, sin_wide_f), r), odd << 31);
}

fn vf f_sin_fast(vf x) {
    vf n = f_nearest(x, (float)(TWO_OVER_PI_0 / 2));
    vf r = f_sel(f_eq(x, f_set(0)), x, f_half_turns(x, n, f_int(n)));
    F_FAR(x, r, l_sin)
    return r;
}

// f_cos_fast is -(-1)^n sin(x - (n + 1/2) pi).
fn vf f_cos_fast(vf x) {
    vf n = f_rint(f_fma(x, f_set((float)(TWO_OVER_PI_0 / 2)), f_set(-0.5f)));
    vf r = f_half_turns(x, n + f_set(0.5f), f_int(n) + 1);
    F_FAR(x, r, l_cos)
    return r;
}

// f_wave is d_wave in floats: x - n pi/2 as a pair, sin and cos of it with their rounding
// errors kept, the one that the quadrant says.
fn vf f_wave(vf x, int shift) {
    vf n = f_nearest(x, (float)TWO_OVER_PI_0);
    vi q = f_int(n) + shift;
    vf exact = f_fnma(n, f_set(PIO2_F0), x);
    vf p = n * f_set(PIO2_F1), pl = f_fma(n, f_set(PIO2_F1), -p);
    vf r = exact - p, back = r - exact;
    vf rl = ((exact - (r - back)) - (p + back)) - f_fma(n, f_set(PIO2_F2), pl);
    vf u = r * r, half = f_set(0.5f) * u, one = f_set(1);
    vf s = r + f_fma(r * u, POLY_F(u, sin_f), f_fnma(rl, half, rl));
    vf w = one - half;
    vf lost = f_fma(f_set(0.5f), f_fma(r, r, -u), r * rl);
    vf c = w + (((one - w) - half) + f_fma(u * u, POLY_F(u, cos_f), -lost));
    vf y = f_sel(f_eq(i_float(q & 1), f_set(0)), s, c);
    return f_flip(y, (q & 2) << 30);
}

fn vf f_sin(vf x) {
    vf r = f_sel(f_eq(x, f_set(0)), x, f_wave(x, 0));
    F_FAR(x, r, l_sin)
    return r;
}

fn vf f_cos(vf x) {
    vf r = f_wave(x, 1);
    F_FAR(x, r, l_cos)
    return r;
}

vf F(sin, _u10)(vf x) { return f_sin(x); }
vf F(sin, _u35)(vf x) { return f_sin_fast(x); }
vf F(cos, _u10)(vf x) { return f_cos(x); }
vf F(cos, _u35)(vf x) { return f_cos_fast(x); }
