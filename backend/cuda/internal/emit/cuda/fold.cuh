
// shuffle exchanges values with the lane whose number differs by d.
template <class A> INLINE A shuffle(A a, int d) {
  union Words {
    A a;
    u32 w[(sizeof(A) + 3) / 4];
    __device__ Words(A x) : a(x) {}
  } x(a);
#pragma unroll
  for (int k = 0; k < (int)(sizeof(A) / 4); k++) x.w[k] = __shfl_xor_sync(0xffffffffu, x.w[k], d);
  return x.a;
}

// fold_group joins the accumulators of the threads that differ in thread.x, whose
// number is a power of two, and gives all of them the result. All threads of the
// block call it. pool has 16 bytes for each warp.
template <class R> INLINE typename R::A fold_group(typename R::A a, const Grid& g, u64* pool) {
  typedef typename R::A A;
  const int width = g.threads.x < 32 ? g.threads.x : 32;
  for (int d = width / 2; d > 0; d /= 2) {
    const A b = shuffle(a, d);
    a = g.thread.x & d ? R::fold(b, a) : R::fold(a, b);
  }
  if (g.threads.x <= 32) return a;
  const int warps = g.threads.x / 32;
  A* const mine = (A*)pool + g.thread.y * warps;
  __syncthreads();
  if (g.thread.x % 32 == 0) mine[g.thread.x / 32] = a;
  __syncthreads();
  a = mine[0];
  for (int w = 1; w < warps; w++) a = R::fold(a, mine[w]);
  return a;
}
template <class R> INLINE typename R::A fold_group(typename R::A a, u64* pool) { return fold_group<R>(a, own_grid(), pool); }

// fold_rows joins the accumulators of the threads that differ in thread.y. pool has
// 16 bytes for each thread.
template <class R> INLINE typename R::A fold_rows(typename R::A a, const Grid& g, u64* pool) {
  typedef typename R::A A;
  if (g.threads.y == 1) return a;
  A* const all = (A*)pool;
  __syncthreads();
  all[g.thread.y * g.threads.x + g.thread.x] = a;
  __syncthreads();
  a = all[g.thread.x];
#pragma unroll 8
  for (int y = 1; y < g.threads.y; y++) a = R::fold(a, all[y * g.threads.x + g.thread.x]);
  return a;
}

// Operand is where an operand begins and how many bytes it moves along rows,
// columns and the K dimensions around them.
template <int K> struct Operand {
  char* at;
  i64 row, col;
  i64 outer[K ? K : 1];
};

// Frame is what a launch works on, in slots of 64 bits.
template <int N, int K> struct Frame {
  i64 rows, cols;
  i64 first;  // is added to indices
  i64 outers; // the product of outer
  i64 parts;  // into how many each line is cut
  char* work; // for accumulators and line values between launches
  u32* fault; // an instruction that divided by zero
  i64 outer[K ? K : 1];
  Operand<K> arg[N];

  // at returns where operand a begins for a row of an outer index.
  INLINE char* at(int a, i64 o, i64 row) const {
    char* p = arg[a].at + row * arg[a].row;
    if (K > 0) {
#pragma unroll
      for (int d = K - 1; d >= 0; d--) {
        p += o % outer[d] * arg[a].outer[d];
        o /= outer[d];
      }
    }
    return p;
  }
};
