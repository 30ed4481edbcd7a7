// Products of matrices, and convolutions, which are products of the filters with
// what they see.

// ProductFrame is a batch of products of matrices that lie in any way; the result
// is dense. Strides are in elements.
struct ProductFrame {
  char *x, *y;
  i64 batch, down, across; // products, and their tiles
  i64 m, n, k;
  i64 x_row, x_col, y_row, y_col;
  i64 rank, dims[8], x_batch[8], y_batch[8]; // of the batch
  Tail tail;
};

template <class T_> struct Matrices {
  typedef T_ T;
  typedef ProductFrame Frame;
  typedef i32 Digits;
  typedef i64 Reach;
  struct Row {
    const T* at;
    bool inside;
  };
  const Frame& f;
  const T *x, *y;
  i64 m, n, k, apart, first;
  INLINE Matrices(const Frame& frame, i64 b)
      : f(frame), x((const T*)frame.x), y((const T*)frame.y), m(f.m), n(f.n), k(f.k), apart(f.n), first(b * f.m * f.n) {
    for (int d = f.rank - 1; d >= 0; d--) {
      const u32 c = (u32)b % (u32)f.dims[d];
      b = (u32)b / (u32)f.dims[d];
      x += c * f.x_batch[d], y += c * f.y_batch[d];
    }
  }
  INLINE i32 digits(i32 k) const { return k; }
  INLINE void advance(i32& k, i32 by) const { k += by; }
  INLINE void next(i32& k) const { k++; }
  template <bool right> INLINE i64 reach(i32 k) const { return k * (right ? f.y_row : f.x_col); }
  template <bool right> INLINE Row row(i32 i) const { return Row{(right ? y : x) + i * (right ? f.y_col : f.x_row), i < (right ? n : m)}; }
  template <bool right> INLINE const T* at(const Row& r, i64 reach, bool& inside) const {
    inside = r.inside;
    return r.at + reach;
  }
  INLINE i64 place(i32 n) const { return first + n; }
  INLINE i64 channel(i32, i32 n) const { return n; }
};

// ConvFrame is a convolution with three spatial dimensions. Strides are in elements,
// and for dimensions those of the input.
struct ConvFrame {
  char *x, *w;
  i64 batch, down, across; // groups times phases, and their tiles
  i64 m, channels;         // of results and of the input in a group
  i64 groups, images;
  // A transposed convolution has as many phases along a dimension as its stride:
  // positions of one phase see the same taps, period apart.
  i64 in[3], out[3], kernel[3], stride[3], pad[3], dilation[3], period[3];
  i64 x_image, x_channel, x_at[3];
  i64 w_group, w_out, w_in, w_at[3];
  Tail tail;
};

// Axis is one dimension of one phase: of its outs, number q being first + q·apart
// of the result, each meets with tap + t·period of the filter, t < taps, what is at
// q·step + from + t·dilation of the input.
struct Axis { i32 outs, first, apart, step, from, taps, tap, period, dilation; };

template <bool transposed> INLINE Axis axis_of(const ConvFrame& f, int d, i32 phase) {
  const i32 out = f.out[d], kernel = f.kernel[d], stride = f.stride[d], pad = f.pad[d], dilation = f.dilation[d];
  if (!transposed) return Axis{out, 0, 1, stride, -pad, kernel, 0, 1, dilation};
  const i32 period = f.period[d];
  i32 tap = 0;
  while (tap < period && (phase + pad - tap * dilation) % stride != 0) tap++;
  const i32 taps = tap < period && tap < kernel ? (kernel - tap + period - 1) / period : 0;
  const i32 outs = phase < out ? (out - phase + stride - 1) / stride : 0;
  return Axis{outs, phase, stride, 1, (phase + pad - tap * dilation) / stride, taps, tap, period, -(dilation * period / stride)};
}

// Convolution has channels of the result as left rows and positions of all images
// as right ones. The depth is channels of the input times taps, and the channels
// are last in it, or first.
template <class T_, bool transposed, bool last> struct Convolution {
  typedef T_ T;
  typedef ConvFrame Frame;
  struct Digits { i32 d[4]; };
  struct Row {
    const T* from;
    i32 at[3];
  };
  struct Reach { i32 far, at[3]; };
  static const int tap = last ? 0 : 1, channel_digit = last ? 3 : 0;
  const Frame& f;
  const T *x, *w;
  i64 m, n, k, apart;
  i32 group;
  Axis axis[3];
  i32 sizes[4], x_steps[4], w_steps[4];

  INLINE Convolution(const Frame& frame, i64 b) : f(frame), x((const T*)frame.x), w((const T*)frame.w), m(frame.m), n(frame.images), k(frame.channels) {
    group = (u32)b % (u32)f.groups;
    u32 phases = (u32)b / (u32)f.groups;
    x += group * f.channels * f.x_channel, w += group * f.w_group;
#pragma unroll
    for (int d = 2; d >= 0; d--) {
      const u32 stride = transposed ? f.stride[d] : 1;
      axis[d] = axis_of<transposed>(f, d, phases % stride);
      phases /= stride;
      n *= axis[d].outs, k *= axis[d].taps;
      w += axis[d].tap * f.w_at[d];
      sizes[tap + d] = axis[d].taps;
      x_steps[tap + d] = axis[d].dilation * f.x_at[d], w_steps[tap + d] = axis[d].period * f.w_at[d];
    }
    sizes[channel_digit] = f.channels, x_steps[channel_digit] = f.x_channel, w_steps[channel_digit] = f.w_in;
    apart = f.out[0] * f.out[1] * f.out[2];
  }
  INLINE Digits digits(u32 k) const {
    Digits r;
#pragma unroll
    for (int i = 3; i > 0; i--) r.d[i] = k % (u32)sizes[i], k /= (u32)sizes[i];
    r.d[0] = k;
    return r;
  }
  INLINE void advance(Digits& r, const Digits& by) const {
#pragma unroll
    for (int i = 3; i > 0; i--) {
      r.d[i] += by.d[i];
      if (r.d[i] >= sizes[i]) r.d[i] -= sizes[i], r.d[i - 1]++;
    }
    r.d[0] += by.d[0];
  }
  INLINE void next(Digits& r) const { advance(r, Digits{{0, 0, 0, 1}}); }
  template <bool right> INLINE Row row(i32 i) const {
    Row r;
    const bool outside = i >= (right ? n : m);
    if (!right) {
      r.from = w + i * f.w_out, r.at[0] = outside ? -1 : 0;
      return r;
    }
    u32 rest = outside ? 0 : (u32)i;
    r.from = x;
#pragma unroll
    for (int d = 2; d >= 0; d--) {
      r.at[d] = (i32)(rest % (u32)axis[d].outs) * axis[d].step + axis[d].from;
      rest /= (u32)axis[d].outs;
      r.from += r.at[d] * f.x_at[d];
    }
    r.from += rest * f.x_image;
    if (outside) r.at[0] = -(1 << 30);
    return r;
  }
  template <bool right> INLINE Reach reach(const Digits& k) const {
    Reach r;
    r.far = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) r.far += k.d[i] * (right ? x_steps[i] : w_steps[i]);
#pragma unroll
    for (int d = 0; d < 3; d++) r.at[d] = k.d[tap + d] * axis[d].dilation;
    return r;
  }
  template <bool right> INLINE const T* at(const Row& r, const Reach& k, bool& inside) const {
    inside = right || r.at[0] == 0;
    if (right) {
#pragma unroll
      for (int d = 0; d < 3; d++) inside = inside && (u32)(r.at[d] + k.at[d]) < (u32)f.in[d];
    }
    return r.from + k.far;
  }
  // place is where a position has its first result.
  INLINE i64 place(i32 i) const {
    u32 rest = i;
    i64 at = 0, size = 1;
#pragma unroll
    for (int d = 2; d >= 0; d--) {
      at += (rest % (u32)axis[d].outs * axis[d].apart + axis[d].first) * size;
      rest /= (u32)axis[d].outs;
      size *= f.out[d];
    }
    return (rest * f.groups + group) * m * size + at;
  }
  INLINE i64 channel(i32 m_, i32) const { return group * m + m_; }
};

// Seen is what a result of a convolution sees, at o[d] of a line: a channel of an
// image.
template <class T, bool transposed> struct Seen {
  const ConvFrame& f;
  const T *x, *w;
  i64 channel;
  Axis axis[3];
  i32 at[3];
  INLINE Seen(const ConvFrame& frame, i64 line, const i32 (&o)[3]) : f(frame), x((const T*)frame.x), w((const T*)frame.w) {
#pragma unroll
    for (int d = 0; d < 3; d++) {
      const u32 stride = transposed ? f.stride[d] : 1;
      axis[d] = axis_of<transposed>(f, d, (u32)o[d] % stride);
      at[d] = (i32)((u32)o[d] / stride) * axis[d].step + axis[d].from;
      w += axis[d].tap * f.w_at[d];
    }
    channel = line % (f.groups * f.m);
    x += line / (f.groups * f.m) * f.x_image + channel / f.m * f.channels * f.x_channel;
    w += channel / f.m * f.w_group + channel % f.m * f.w_out;
  }
  // meets moves both operands to a tap of a dimension; false in the padding.
  INLINE bool meets(int d, i32 t, const T*& x, const T*& w) const {
    const i32 i = at[d] + t * axis[d].dilation;
    x += i * f.x_at[d], w += t * axis[d].period * f.w_at[d];
    return (u32)i < (u32)f.in[d];
  }
};

// convolve_each computes a result by each thread, or R below each other, for few
// channels.
template <class T, bool transposed, bool post, int R> INLINE void convolve_each(const ConvFrame& f) {
  typedef decltype(summed(widen(T()))) A;
  const i64 down = (f.out[1] + R - 1) / R, places = f.out[0] * down * f.out[2];
  EACH(i, f.tail.total / (f.out[0] * f.out[1] * f.out[2]) * places) {
    const i64 line = i / places, place = i % places;
    const i32 o[3] = {(i32)(place / f.out[2] / down), (i32)(place / f.out[2] % down) * R, (i32)(place % f.out[2])};
    const Seen<T, transposed> s(f, line, o);
    const i64 apart = s.axis[1].step * f.x_at[1];
    A sum[R] = {};
    for (i64 c = 0; c < f.channels; c++) {
      for (i32 a = 0; a < s.axis[0].taps; a++) {
        const T *x0 = s.x + c * f.x_channel, *w0 = s.w + c * f.w_in;
        if (!s.meets(0, a, x0, w0)) continue;
        for (i32 b = 0; b < s.axis[1].taps; b++) {
          const T *x1 = x0, *w1 = w0;
          s.meets(1, b, x1, w1);
          const i32 row = s.at[1] + b * s.axis[1].dilation;
          for (i32 e = 0; e < s.axis[2].taps; e++) {
            const T *x2 = x1, *w2 = w1;
            if (!s.meets(2, e, x2, w2)) continue;
            const A w = summed(widen(*w2));
#pragma unroll
            for (int r = 0; r < R; r++) {
              if ((u32)(row + r * s.axis[1].step) < (u32)f.in[1]) sum[r] = fused(summed(widen(x2[r * apart])), w, sum[r]);
            }
          }
        }
      }
    }
    const i64 first = ((line * f.out[0] + o[0]) * f.out[1] + o[1]) * f.out[2] + o[2];
#pragma unroll
    for (int r = 0; r < R; r++) {
      if (o[1] + r < f.out[1]) finish<T, post>(f.tail, first + r * f.out[2], s.channel, sum[r]);
    }
  }
}

// convolve_sums computes a result by each block, for few results that see much:
// a warp takes a line of taps.
template <class T, bool transposed, bool post> INLINE void convolve_sums(const ConvFrame& f) {
  typedef decltype(summed(widen(T()))) A;
  __shared__ u64 pool[64];
  const int warps = (blockDim.x + 31) / 32;
  for (i64 i = blockIdx.x; i < f.tail.total; i += gridDim.x) {
    const i64 row = i / f.out[2], line = row / f.out[1] / f.out[0];
    const Seen<T, transposed> s(f, line, {(i32)(row / f.out[1] % f.out[0]), (i32)(row % f.out[1]), (i32)(i % f.out[2])});
    A sum = 0;
    for (i64 k = threadIdx.x / 32; k < f.channels * s.axis[0].taps * s.axis[1].taps; k += warps) {
      const i64 c = k / s.axis[1].taps / s.axis[0].taps;
      const T *x1 = s.x + c * f.x_channel, *w1 = s.w + c * f.w_in;
      const bool near = s.meets(0, k / s.axis[1].taps % s.axis[0].taps, x1, w1);
      if (!s.meets(1, k % s.axis[1].taps, x1, w1) || !near) continue;
      for (i32 e = threadIdx.x % 32; e < s.axis[2].taps; e += 32) {
        const T *x2 = x1, *w2 = w1;
        if (s.meets(2, e, x2, w2)) sum = fused(summed(widen(*x2)), summed(widen(*w2)), sum);
      }
    }
    sum = fold_group<Sum<A>>(sum, pool);
    if (threadIdx.x == 0) finish<T, post>(f.tail, i, s.channel, sum);
  }
}
