// Products of small matrices by tensor cores: PTX's mma, ldmatrix and cp.async, of
// devices from sm_80 on. All lanes of a warp call them together, in blocks whose
// threads are along x. A lane of number l holds of
//
//   a, 16 × 16, rows l/4 and l/4+8:    a[0] and a[1] at columns l%4·2 and the next,
//                                      a[2] and a[3] at these plus 8;
//   b, 16 × 8, column l/4:             b[0] at rows l%4·2 and the next, b[1] plus 8;
//   c, 16 × 8, columns l%4·2 and next: c[0], c[1] of row l/4, c[2], c[3] of l/4+8;
//
// of pairs the first in the low half. With tf32 a word is one element, a 16 × 8 and
// b 8 × 8: columns of a and rows of b are l%4 and that plus 4.
//
// Without __CUDA_ARCH__ the lanes show each other what they hold, and sums are
// rounded once; a device rounds them in ways of its own, within some units of f32.

#ifndef __CUDA_ARCH__
struct Shown { f32 a[8], b[4]; };

// mma_shown is a product whose words have E elements.
template <int E> INLINE void mma_shown(f32 (&c)[4], const Shown& mine) {
  __shared__ Shown block[1024];
  const int lane = threadIdx.x % 32;
  const Shown* const all = block + threadIdx.x / 32 * 32;
  block[threadIdx.x] = mine;
  __syncwarp();
  for (int i = 0; i < 4; i++) {
    f64 sum = c[i];
    for (int k = 0; k < 8 * E; k++) {
      const int at = k / E % 4, group = k / E / 4;
      sum += (f64)all[lane / 4 * 4 + at].a[(group * 2 + i / 2) * E + k % E] * all[(lane % 4 * 2 + i % 2) * 4 + at].b[group * E + k % E];
    }
    c[i] = (f32)sum;
  }
  __syncwarp();
}

template <class T> INLINE void mma_pairs(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  Shown s;
  for (int i = 0; i < 8; i++) s.a[i] = widen(T{(u16)(a[i / 2] >> i % 2 * 16)});
  for (int i = 0; i < 4; i++) s.b[i] = widen(T{(u16)(b[i / 2] >> i % 2 * 16)});
  mma_shown<2>(c, s);
}
#else
#define MMA(form) \
  asm("mma.sync.aligned." form " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#endif

// mma adds a·b to c; T is f16 or bf16.
template <class T> INLINE void mma(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]);
template <> INLINE void mma<f16>(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#ifdef __CUDA_ARCH__
  MMA("m16n8k16.row.col.f32.f16.f16.f32");
#else
  mma_pairs<f16>(c, a, b);
#endif
}
template <> INLINE void mma<bf16>(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#ifdef __CUDA_ARCH__
  MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
#else
  mma_pairs<bf16>(c, a, b);
#endif
}

// mma_tf32 does so with elements that to_tf32 made.
INLINE void mma_tf32(f32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#ifdef __CUDA_ARCH__
  MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
#else
  Shown s;
  for (int i = 0; i < 4; i++) s.a[i] = __uint_as_float(a[i] & ~0x1fffu);
  for (int i = 0; i < 2; i++) s.b[i] = __uint_as_float(b[i] & ~0x1fffu);
  mma_shown<1>(c, s);
#endif
}

// to_tf32 rounds to 10 bits of mantissa, to nearest, of two away from 0.
INLINE u32 to_tf32(f32 x) {
#ifdef __CUDA_ARCH__
  u32 y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
#else
  const u32 b = __float_as_uint(x);
  return (b & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : (b + 0x1000) & ~0x1fffu;
#endif
}

// pack_pair rounds two elements, the first to the low half; T is f16 or bf16.
template <class T> INLINE u32 pack_pair(f32 x, f32 y);
template <> INLINE u32 pack_pair<f16>(f32 x, f32 y) {
#ifdef __CUDA_ARCH__
  u32 p;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(y), "f"(x));
  return p;
#else
  f16 low, high;
  set(low, x), set(high, y);
  return low.bits | (u32)high.bits << 16;
#endif
}
template <> INLINE u32 pack_pair<bf16>(f32 x, f32 y) {
#ifdef __CUDA_ARCH__
  u32 p;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(y), "f"(x));
  return p;
#else
  bf16 low, high;
  set(low, x), set(high, y);
  return low.bits | (u32)high.bits << 16;
#endif
}

#ifdef __CUDA_ARCH__
INLINE u32 in_shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
#endif

// ldmatrix reads four matrices of 8 × 8 elements of 16 bits from shared memory. row
// is where the row l%8 of matrix l/8 is, 16 bytes at a multiple of 16. Of each
// matrix a lane gets the columns l%4·2 and the next of row l/4, or, transposed, the
// rows l%4·2 and the next of column l/4: a as mma wants it of matrices above each
// other, then beside; b, transposed, of what lies by rows, or as it is of what lies
// by columns. Who wrote the rows must have met a barrier.
template <bool transposed> INLINE void ldmatrix(u32 (&r)[4], const void* row) {
#ifdef __CUDA_ARCH__
  if (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(in_shared(row)) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(in_shared(row)) : "memory");
#else
  __shared__ const u16* block[1024];
  const u16* const* const rows = block + threadIdx.x / 32 * 32;
  const int lane = threadIdx.x % 32, far = lane / 4, near = lane % 4 * 2;
  if ((u64)row % 16) __trap();
  block[threadIdx.x] = (const u16*)row;
  __syncwarp();
  for (int i = 0; i < 4; i++) {
    const u16* const* const m = rows + i * 8;
    r[i] = transposed ? m[near][far] | (u32)m[near + 1][far] << 16 : m[far][near] | (u32)m[far][near + 1] << 16;
  }
  __syncwarp();
#endif
}

#ifndef __CUDA_ARCH__
// Copy is a copy under way. What it goes to has NaNs until it is waited for.
struct Copy { char* to; const char* from; int size, valid, group; };
struct Copies {
  Copy all[128];
  int n, group;
};
INLINE Copies& copies() {
  __shared__ Copies block[1024];
  return block[threadIdx.x];
}
#endif

// cp_async begins to copy Size bytes, 4, 8 or 16, from memory to shared memory, both
// at multiples of Size: valid ones, and zeros after these. Without valid ones from
// may be any address of the device. Each copy must be waited for.
template <int Size> INLINE void cp_async(void* to, const void* from, int valid) {
#ifdef __CUDA_ARCH__
  if (Size == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(in_shared(to)), "l"(__cvta_generic_to_global(from)), "r"(valid) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" : : "r"(in_shared(to)), "l"(__cvta_generic_to_global(from)), "n"(Size), "r"(valid) : "memory");
#else
  Copies& c = copies();
  if ((u64)to % Size || valid && (u64)from % Size || c.n == 128) __trap();
  memset(to, 0xff, Size);
  c.all[c.n++] = Copy{(char*)to, (const char*)from, Size, valid, c.group};
#endif
}

// cp_async_commit makes a group of the copies that the thread began since the last.
INLINE void cp_async_commit() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" : : : "memory");
#else
  copies().group++;
#endif
}

// cp_async_wait waits for the thread's groups but the last N. Others see what was
// copied after a barrier.
template <int N> INLINE void cp_async_wait() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#else
  Copies& c = copies();
  int left = 0;
  for (int i = 0; i < c.n; i++) {
    const Copy& w = c.all[i];
    if (w.group < c.group - N) {
      memset(w.to, 0, w.size);
      memcpy(w.to, w.from, w.valid);
    } else {
      c.all[left++] = w;
    }
  }
  c.n = left;
#endif
}
