
// Memory accesses and grids, which all kernels share.

// Pack is V elements that are read or written at once.
template <class T, int V> struct alignas(sizeof(T) * V) Pack { T v[V]; };

// fetch reads V elements at p, put writes them.
template <int V, class T> INLINE void fetch(T* x, const char* p) {
  const Pack<T, V> pack = *(const Pack<T, V>*)p;
#pragma unroll
  for (int j = 0; j < V; j++) x[j] = pack.v[j];
}
template <int V, class T> INLINE void put(char* p, const T* x) {
  Pack<T, V> pack;
#pragma unroll
  for (int j = 0; j < V; j++) pack.v[j] = x[j];
  *(Pack<T, V>*)p = pack;
}

// gather and spread do the same with elements that are step bytes apart.
template <int V, class T> INLINE void gather(T* x, const char* p, i64 step) {
#pragma unroll
  for (int j = 0; j < V; j++) x[j] = *(const T*)(p + j * step);
}
template <int V, class T> INLINE void spread(char* p, i64 step, const T* x) {
#pragma unroll
  for (int j = 0; j < V; j++) *(T*)(p + j * step) = x[j];
}

// Grid is where a thread is in its block, and the block among those of a kernel,
// which has a launch for itself or shares one.
struct Three { u32 x, y, z; };
struct Grid { Three block, blocks, thread, threads; };

INLINE Grid own_grid() {
  return Grid{{blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z},
              {threadIdx.x, threadIdx.y, threadIdx.z}, {blockDim.x, blockDim.y, blockDim.z}};
}

// Share is the part of a launch that a kernel has: blocks from start on. Its
// threads are 2 to the powers of across along x, and down along y.
struct Share {
  i64 start, x, y, z; // blocks
  i64 across, down;

  INLINE Grid grid() const {
    const u32 b = blockIdx.x - (u32)start, t = threadIdx.x, u = t >> across;
    return Grid{{b % (u32)x, b / (u32)x % (u32)y, b / (u32)(x * y)}, {(u32)x, (u32)y, (u32)z},
                {t & ((1u << across) - 1), u & ((1u << down) - 1), u >> down}, {1u << across, 1u << down, blockDim.x >> (across + down)}};
  }
};

// Counter is what counts the packs of a line: of one that registers hold there are
// few.
template <bool H> struct Counter { typedef i64 type; };
template <> struct Counter<true> { typedef int type; };

INLINE i64 least(i64 x, i64 y) { return x < y ? x : y; }
