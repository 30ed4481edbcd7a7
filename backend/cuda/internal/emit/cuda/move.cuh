// Moves of elements of any type of a size.

struct Sixteen { u64 lo, hi; };

struct ClearFrame {
  char* dst;
  i64 words; // of 4 bytes
};
INLINE void clear_words(const ClearFrame& f) {
  EACH(i, f.words) ((u32*)f.dst)[i] = 0;
}

// transpose copies rows × columns of what lies by columns (operand 1) to what lies
// by rows (operand 0), by squares of 32 in shared memory.
template <class T, int K> INLINE void transpose(const Frame<2, K>& f) {
  __shared__ T tile[32][33];
  const i64 down = (f.rows + 31) / 32, across = (f.cols + 31) / 32;
  for (i64 b = blockIdx.x; b < f.outers * down * across; b += gridDim.x) {
    const i64 o = b / (down * across), r0 = b / across % down * 32, c0 = b % across * 32;
    char* const to = f.at(0, o, 0);
    const char* const from = f.at(1, o, 0);
    for (int y = threadIdx.y; y < 32; y += blockDim.y) {
      const i64 r = r0 + threadIdx.x, c = c0 + y;
      if (r < f.rows && c < f.cols) tile[y][threadIdx.x] = *(const T*)(from + r * f.arg[1].row + c * f.arg[1].col);
    }
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += blockDim.y) {
      const i64 r = r0 + y, c = c0 + threadIdx.x;
      if (r < f.rows && c < f.cols) *(T*)(to + r * f.arg[0].row + c * f.arg[0].col) = tile[threadIdx.x][y];
    }
    __syncthreads();
  }
}

// CatFrame joins up to N dense operands along the middle of [outer, n, inner].
template <int N> struct CatFrame {
  char* dst;
  i64 outer, row; // row is how many elements of dst belong to one outer index
  struct Part {
    char* at;
    i64 row, start; // elements for an outer index, and where they begin there
  } part[N];
};
template <class T, int N> INLINE void cat(const CatFrame<N>& f) {
  const typename CatFrame<N>::Part& p = f.part[blockIdx.y];
  EACH(i, f.outer * p.row) {
    const i64 o = i / p.row, c = i % p.row;
    ((T*)f.dst)[o * f.row + p.start + c] = ((const T*)p.at)[i];
  }
}

// PadFrame puts a value around what x has; where before or after are negative it
// is cut.
struct PadFrame {
  char* dst;
  const char *x, *value;
  i64 n, rank; // elements and dimensions of dst
  i64 dims[8], before[8], inner[8], strides[8]; // inner and strides are those of x
};
template <class T> INLINE void pad(const PadFrame& f) {
  EACH(i, f.n) {
    i64 rest = i, at = 0;
    bool inside = true;
    for (int d = f.rank - 1; d >= 0; d--) {
      const i64 c = rest % f.dims[d] - f.before[d];
      rest /= f.dims[d];
      inside = inside && 0 <= c && c < f.inner[d];
      at += c * f.strides[d];
    }
    ((T*)f.dst)[i] = inside ? ((const T*)f.x)[at] : *(const T*)f.value;
  }
}
