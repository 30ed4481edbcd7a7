#!/usr/bin/env python3
"""Writes aoti/internal/vecmath/coefficients.h: every polynomial of the package.

Each polynomial is the minimax approximation (Remez exchange in 50 digits) of
the function in its comment over the interval in its comment, with respect to
the weight in its comment. The tables of pieces are interpolated at Chebyshev
nodes, which is within a factor of two of the best.

    python3 -m venv .venv && .venv/bin/pip install mpmath==1.3.0
    .venv/bin/python scripts/vecmath_coefficients.py > aoti/internal/vecmath/coefficients.h
"""

import struct
import sys

from mpmath import mp, mpf

mp.dps = 50


def f64(v):
    return float(v)


def f32(v):
    return struct.unpack("f", struct.pack("f", float(v)))[0]


def solve(nodes, f, w, n):
    """The polynomial of n terms and the level of its equal errors at n+1 nodes."""
    a = mp.matrix(n + 1, n + 1)
    b = mp.matrix(n + 1, 1)
    for i, x in enumerate(nodes):
        for j in range(n):
            a[i, j] = x**j
        a[i, n] = (-1) ** i / w(x)
        b[i] = f(x)
    s = mp.lu_solve(a, b)
    return [s[j] for j in range(n)], abs(s[n])


def remez(f, lo, hi, n, w, rounds=8, grid=600):
    """Minimax polynomial of n terms for f on [lo, hi], weight w: (terms, error)."""
    lo, hi = mpf(lo), mpf(hi)
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    nodes = [mid - half * mp.cos(mp.pi * i / n) for i in range(n + 1)]
    points = [mid - half * mp.cos(mp.pi * i / grid) for i in range(grid + 1)]
    values = [(x, f(x), w(x)) for x in points]
    for _ in range(rounds):
        c, _ = solve(nodes, f, w, n)
        err = [wx * (mp.polyval(c[::-1], x) - fx) for x, fx, wx in values]
        peaks, start = [], 0
        for i in range(1, len(err) + 1):
            if i == len(err) or (err[i] > 0) != (err[start] > 0):
                peaks.append(max(range(start, i), key=lambda k: abs(err[k])))
                start = i
        if len(peaks) < n + 1:
            break
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(err[peaks[0]]) < abs(err[peaks[-1]]) else -1)
        nodes = [points[k] for k in peaks]
    return c, max(abs(e) for e in err)


def emit(name, doc, terms, single=False):
    print(f"// {doc}")
    kind = "float" if single else "double"
    print(f"static const {kind} {name}[] = {{")
    for c in terms:
        v = f32(c) if single else f64(c)
        print(f"    {v.hex()}{'f' if single else ''},")
    print("};\n")


def poly(name, doc, f, lo, hi, n, w, single=False):
    lo = mpf(lo) if lo else mpf(10) ** -6
    terms, _ = remez(f, lo, hi, n, w)
    worst = max(
        abs(w(x) * (mp.polyval([mpf((f32 if single else f64)(c)) for c in terms][::-1], x) - f(x)))
        for x in (lo + (mpf(hi) - lo) * i / 500 for i in range(501))
    )
    bits = mp.log(worst, 2)
    print(f"{name}: 2^{mp.nstr(bits, 4)}", file=sys.stderr)
    emit(name, f"{doc} Error 2^{mp.nstr(bits, 4)}.", terms, single)


def pieces(name, doc, f, first, last, n):
    """Eight pieces in each binade [2^e, 2^(e+1)), e from first to last-1; each row
    is the middle, the low part of the first term, and n terms in x - middle."""
    print(f"// {doc}")
    print(f"#define {name.upper()}_FIRST {first}")
    print(f"#define {name.upper()}_BINADES {last - first}")
    print(f"static const double {name}[] = {{")
    worst = mpf(0)
    for e in range(first, last):
        for k in range(8):
            width = mpf(2) ** (e - 3)
            mid = mpf(2) ** e + (k + mpf(1) / 2) * width
            nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * n)) * width / 2 for i in range(n)]
            a = mp.matrix(n, n)
            b = mp.matrix(n, 1)
            for i, h in enumerate(nodes):
                for j in range(n):
                    a[i, j] = h**j
                b[i] = f(mid + h)
            c = mp.lu_solve(a, b)
            low = c[0] - mpf(f64(c[0]))
            row = [mid, low] + [c[j] for j in range(n)]
            print("    " + ", ".join(f64(v).hex() for v in row) + ",")
            for s in (mpf("-0.9999"), mpf("-0.97"), mpf("0.95"), mpf("0.9999")):
                h = s * width / 2
                err = abs(mp.polyval([c[j] for j in range(n)][::-1], h) / f(mid + h) - 1)
                worst = max(worst, err)
    print("};\n")
    print(f"{name}: 2^{mp.nstr(mp.log(worst, 2), 4)}", file=sys.stderr)


def split(name, doc, value, parts):
    print(f"// {doc}")
    for i in range(parts):
        v = f64(value)
        print(f"#define {name}{i} {v.hex()}")
        value = value - mpf(v)
    print()


def constants():
    split("LN2_", "log(2) in three doubles.", mp.log(2), 3)
    high = mpf(int(mp.log(2) * 2**16)) / 2**16
    print("// log(2) in two floats, and in two of which the first has 16 bits.")
    for name, v in (("LN2_HIGH_F", mp.log(2)), ("LN2_LOW_F", mp.log(2) - mpf(f32(mp.log(2)))),
                    ("LN2_SHORT_F", high), ("LN2_REST_F", mp.log(2) - high)):
        print(f"#define {name} {f32(v).hex()}f")
    print()
    for name, v, parts in (("PI_F", mp.pi, 3), ("PIO2_F", mp.pi / 2, 3), ("LOG2E_F", 1 / mp.log(2), 2),
                           ("LOG10E_F", 1 / mp.log(10), 2), ("LOG10_2_F", mp.log10(2), 2)):
        print(f"// {name[:-2]} in {parts} floats.")
        for i in range(parts):
            print(f"#define {name}{i} {f32(v).hex()}f")
            v = v - mpf(f32(v))
        print()
    split("LOG2E_", "1/log(2).", 1 / mp.log(2), 2)
    split("LOG10E_", "1/log(10).", 1 / mp.log(10), 2)
    split("LOG10_2_", "log10(2).", mp.log10(2), 2)
    split("PIO2_", "pi/2 in three doubles.", mp.pi / 2, 3)
    split("PIO4_", "pi/4.", mp.pi / 4, 2)
    split("PI_", "pi.", mp.pi, 2)
    split("TWO_OVER_PI_", "2/pi.", 2 / mp.pi, 1)
    split("HALF_LOG_2PI_", "log(2 pi)/2.", mp.log(2 * mp.pi) / 2, 2)
    split("LOG_PI_", "log(pi).", mp.log(mp.pi), 2)
    split("TWO_THIRDS_", "2/3.", mpf(2) / 3, 2)
    split("TWO_FIFTHS_", "2/5.", mpf(2) / 5, 2)


def log_tail(u):
    return mpf(2) / 3 + u * (mpf(2) / 5 + u * log_rest(u))


def log_rest(u):
    """(log((1+t)/(1-t)) - 2t - 2t^3/3 - 2t^5/5)/t^7 at u = t^2, by its series."""
    total, term = mpf(0), mpf(1)
    for k in range(45):
        total += term / (2 * k + 7)
        term *= u
    return 2 * total


def exp_rest(r, skip):
    """(e^r - sum of r^k/k! below skip)/r^skip by its series."""
    total, term = mpf(0), 1 / mp.factorial(skip)
    for k in range(40):
        total += term
        term = term * r / (skip + k + 1)
    return total


def stirling(u):
    x = 1 / mp.sqrt(u)
    return (mp.loggamma(x) - (x - mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x


def doubles():
    w_exp = lambda k: (lambda r: abs(r) ** k + mpf(10) ** -9)
    poly("exp_d", "(e^r - 1 - r - r^2/2)/r^3 on |r| <= 0.3475, weight r^3.",
         lambda r: exp_rest(r, 3), "-0.3475", "0.3475", 10, w_exp(3))
    poly("exp_tail_d", "(e^r - 1 - r)/r^2 on |r| <= 0.3475, weight r^2.",
         lambda r: exp_rest(r, 2), "-0.3475", "0.3475", 11, w_exp(2))
    log2 = mp.log(2)
    poly("exp2_tail_d", "(2^r - 1 - r log 2)/r^2 on |r| <= 0.5, weight r^2.",
         lambda r: exp_rest(r * log2, 2) * log2**2, "-0.5", "0.5", 11, w_exp(2))
    poly("asin_d", "(asin(s)/s - 1)/s^2 in u = s^2 <= 1/4, weight u.",
         lambda u: (mp.asin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, mpf(1) / 4, 13, lambda u: u)
    u_log = mpf("0.04001")
    poly("log_d", "(log((1+t)/(1-t)) - 2t)/t^3 in u = t^2 <= 0.04, weight u.",
         log_tail, 0, u_log, 10, lambda u: u)
    poly("log_dd", "(log((1+t)/(1-t)) - 2t - 2t^3/3 - 2t^5/5)/t^7 in u = t^2 <= 0.04, weight u^3.",
         log_rest, 0, u_log, 10, lambda u: u**3)
    u_sin = mpf("0.618")
    poly("sin_d", "(sin r - r)/r^3 in u = r^2 <= 0.618, weight u.",
         lambda u: (mp.sin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, u_sin, 7, lambda u: u)
    poly("cos_d", "(cos r - 1 + r^2/2)/r^4 in u = r^2 <= 0.618, weight u^2.",
         lambda u: (mp.cos(mp.sqrt(u)) - 1 + u / 2) / u**2, 0, u_sin, 7, lambda u: u**2)
    poly("atan_d", "(atan t - t)/t^3 in u = t^2 <= 0.1717, weight u.",
         lambda u: (mp.atan(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, mpf("0.1717"), 13, lambda u: u)
    poly("erf_d", "erf(x)/x - 1 in u = x^2 <= 1/4, weight 1.",
         lambda u: mp.erf(mp.sqrt(u)) / mp.sqrt(u) - 1, 0, mpf(1) / 4, 11, lambda u: mpf(1))
    poly("stirling_d", "(lgamma(x) - (x-1/2) log x + x - log(2 pi)/2) x in u = 1/x^2 <= 1/64, weight 1.",
         stirling, mpf(10) ** -5, mpf(1) / 64, 8, lambda u: mpf(1))
    pieces("erfcx_d", "e^(x^2) erfc(x): 8 pieces in each binade of [1/4, 32).",
           erfcx, -2, 5, 12)
    pieces("lgamma_d", "lgamma(x)/((x-1)(x-2)): 8 pieces in each binade of [1/2, 8).",
           lambda x: mp.loggamma(x) / ((x - 1) * (x - 2)), -1, 3, 12)


def lights():
    poly("exp_l", "(e^r - 1 - r)/r^2 on |r| <= 0.3475, weight r^2.",
         lambda r: exp_rest(r, 2), "-0.3475", "0.3475", 7, lambda r: r * r + mpf(10) ** -9)
    poly("log_l", "(log((1+t)/(1-t)) - 2t)/t^3 in u = t^2 <= 0.04, weight u.",
         log_tail, 0, mpf("0.04001"), 5, lambda u: u)
    u_sin = mpf("0.618")
    poly("sin_l", "(sin r - r)/r^3 in u = r^2 <= 0.618, weight u.",
         lambda u: (mp.sin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, u_sin, 4, lambda u: u)
    poly("cos_l", "(cos r - 1)/r^2 in u = r^2 <= 0.618, weight u.",
         lambda u: (mp.cos(mp.sqrt(u)) - 1) / u, 0, u_sin, 5, lambda u: u)
    poly("stirling_l", "The same as stirling_d.", stirling, mpf(10) ** -5, mpf(1) / 64, 4, lambda u: mpf(1))
    poly("asin_l", "(asin(s)/s - 1)/s^2 in u = s^2 <= 1/4, weight u.",
         lambda u: (mp.asin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, mpf(1) / 4, 8, lambda u: u)
    poly("erfcx_l", "e^(x^2) erfc(x) in t = (x - 2)/(x + 2), x in [0, 10.5], weight 1/erfcx.",
         lambda t: erfcx(2 * (1 + t) / (1 - t)), -1, mpf("0.681"), 13, lambda t: 1 / erfcx(2 * (1 + t) / (1 - t)))
    poly("atan_l", "(atan t - t)/t^3 in u = t^2 <= 0.1717, weight u.",
         lambda u: (mp.atan(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, mpf("0.1717"), 7, lambda u: u)


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def log1p_tail(f):
    """(log(1+f) - f + f^2/2)/f^3."""
    if abs(f) < mpf(10) ** -10:
        return mpf(1) / 3 - f / 4
    return (mp.log1p(f) - f + f * f / 2) / f**3


def singles():
    poly("exp_f", "(e^r - 1 - r)/r^2 on |r| <= 0.3475, weight r^2.",
         lambda r: exp_rest(r, 2), "-0.3475", "0.3475", 5, lambda r: r * r + mpf(10) ** -9, True)
    poly("expm1_f", "The same as exp_f, a term longer.",
         lambda r: exp_rest(r, 2), "-0.3475", "0.3475", 6, lambda r: r * r + mpf(10) ** -9, True)
    poly("exp2_f", "(2^r - 1)/r on |r| <= 0.5, weight r.",
         lambda r: exp_rest(r * mp.log(2), 1) * mp.log(2), "-0.5", "0.5", 7, lambda r: abs(r) + mpf(10) ** -9, True)
    poly("log_f", "(log(1+f) - f + f^2/2)/f^3 on |f| <= 1/3, weight f^2.",
         log1p_tail, "-0.33334", "0.33334", 8, lambda f: f * f + mpf(10) ** -9, True)
    u_sin = mpf("0.618")
    poly("sin_f", "(sin r - r)/r^3 in u = r^2 <= 0.618, weight u.",
         lambda u: (mp.sin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, u_sin, 3, lambda u: u, True)
    poly("cos_f", "(cos r - 1 + r^2/2)/r^4 in u = r^2 <= 0.618, weight u^2.",
         lambda u: (mp.cos(mp.sqrt(u)) - 1 + u / 2) / u**2, 0, u_sin, 3, lambda u: u**2, True)
    poly("sin_wide_f", "(sin r - r)/r^3 in u = r^2 <= 2.5, weight r/sin r u.",
         lambda u: (mp.sin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, mpf("2.5"), 5, lambda u: u * mp.sqrt(u) / mp.sin(mp.sqrt(u)), True)
    poly("tanh_f", "(tanh(x) - x)/x^3 in u = x^2 <= 0.36, weight u.",
         lambda u: (mp.tanh(mp.sqrt(u)) / mp.sqrt(u) - 1) / u, 0, mpf("0.36"), 5, lambda u: u, True)
    poly("erf_f", "erf(x)/x - 1 in u = x^2 <= 0.5184, weight 1.",
         lambda u: mp.erf(mp.sqrt(u)) / mp.sqrt(u) - 1, 0, mpf("0.5184"), 6, lambda u: mpf(1), True)
    poly("erfc_f", "log2(erfc(1 + z)) + 3 on [-0.285, 3], weight erfc.",
         lambda z: mp.log(mp.erfc(1 + z), 2) + 3, "-0.285", 3, 9, lambda z: mp.erfc(1 + z), True)


def main():
    print("// Code generated by scripts/vecmath_coefficients.py. DO NOT EDIT.\n")
    print("#ifndef VM_COEFFICIENTS_H\n#define VM_COEFFICIENTS_H\n")
    constants()
    doubles()
    lights()
    singles()
    print("#endif")


if __name__ == "__main__":
    main()
