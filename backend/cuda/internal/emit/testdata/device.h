// A CUDA device in plain C++, for tests: the threads of a block are fibers, which
// change places at barriers and shuffles. Blocks run one after another.

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmath>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

struct Dim {
  unsigned x, y, z;
};
static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace device {

enum State { ready, at_warp, at_block, done };

struct Fiber {
  ucontext_t start;
  jmp_buf here;
  std::vector<char> stack;
  State state;
  bool started;
  Dim idx;
  int parity;
};

static std::vector<Fiber*> fibers;
static jmp_buf scheduler;
static int current;
static bool alone; // threads run to their end, there are no barriers
static unsigned exchange[2][1024];

static void (*kernel)(const void*);
static const void* params;

static void body() {
  kernel(params);
  fibers[current]->state = done;
  _longjmp(scheduler, 1);
}

static void resume(int i) {
  Fiber& f = *fibers[i];
  current = i;
  threadIdx = f.idx;
  f.state = ready;
  if (_setjmp(scheduler)) return;
  if (f.started) _longjmp(f.here, 1);
  f.started = true;
  setcontext(&f.start);
}

static void wait(State s) {
  if (alone) {
    fprintf(stderr, "a barrier in a kernel that should have none\n");
    abort();
  }
  Fiber& f = *fibers[current];
  f.state = s;
  if (!_setjmp(f.here)) _longjmp(scheduler, 1);
}

// warp runs the lanes of a warp until each waits for the block or is done.
static void warp(int lo, int hi) {
  for (bool more = true; more;) {
    more = false;
    for (int i = lo; i < hi; i++) {
      if (fibers[i]->state == ready || fibers[i]->state == at_warp) {
        resume(i);
        more = more || fibers[i]->state == at_warp;
      }
    }
    int waiting = 0;
    for (int i = lo; i < hi; i++) waiting += fibers[i]->state == at_warp;
    if (waiting != 0 && waiting != hi - lo) {
      fprintf(stderr, "a shuffle without all lanes of the warp\n");
      abort();
    }
  }
}

static void block(int threads) {
  while ((int)fibers.size() < threads) {
    fibers.push_back(new Fiber);
    fibers.back()->stack.resize(64 << 10);
  }
  for (int i = 0; i < threads; i++) {
    Fiber& f = *fibers[i];
    f.state = ready;
    f.started = false;
    f.parity = 0;
    f.idx = Dim{i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    getcontext(&f.start);
    f.start.uc_stack.ss_sp = f.stack.data();
    f.start.uc_stack.ss_size = f.stack.size();
    f.start.uc_link = nullptr;
    makecontext(&f.start, body, 0);
  }
  for (int left = threads; left > 0;) {
    for (int i = 0; i < threads; i += 32) warp(i, i + 32 < threads ? i + 32 : threads);
    left = 0;
    for (int i = 0; i < threads; i++) {
      if (fibers[i]->state == at_block) {
        fibers[i]->state = ready;
        left++;
      }
    }
  }
}

static void launch(void (*k)(const void*), const void* p, Dim grid, Dim size, bool barriers) {
  kernel = k, params = p, gridDim = grid, blockDim = size, alone = !barriers;
  for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
        if (barriers) {
          block(size.x * size.y * size.z);
          continue;
        }
        for (threadIdx.z = 0; threadIdx.z < size.z; threadIdx.z++)
          for (threadIdx.y = 0; threadIdx.y < size.y; threadIdx.y++)
            for (threadIdx.x = 0; threadIdx.x < size.x; threadIdx.x++) k(p);
      }
}

} // namespace device

static inline void __syncthreads() { device::wait(device::at_block); }
static inline void __syncwarp() { device::wait(device::at_warp); }

static inline unsigned __shfl_xor_sync(unsigned, unsigned v, int d) {
  int i = device::current;
  int& parity = device::fibers[i]->parity;
  unsigned* slots = device::exchange[parity ^= 1];
  slots[i] = v;
  device::wait(device::at_warp);
  return slots[i ^ d];
}
static inline unsigned __shfl_up_sync(unsigned, unsigned v, unsigned d) {
  int i = device::current;
  int& parity = device::fibers[i]->parity;
  unsigned* slots = device::exchange[parity ^= 1];
  slots[i] = v;
  device::wait(device::at_warp);
  return (unsigned)i % 32 >= d ? slots[i - d] : v;
}

static inline unsigned atomicMax(unsigned* p, unsigned v) {
  unsigned old = *p;
  if (v > old) *p = v;
  return old;
}
static inline unsigned atomicAdd(unsigned* p, unsigned v) {
  unsigned old = *p;
  *p += v;
  return old;
}
static inline int atomicAdd(int* p, int v) {
  int old = *p;
  *p += v;
  return old;
}
static inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long v) {
  unsigned long long old = *p;
  *p += v;
  return old;
}

template <class To, class From> static inline To bits(From x) {
  To y;
  static_assert(sizeof x == sizeof y, "");
  memcpy(&y, &x, sizeof y);
  return y;
}
static inline unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return bits<float>(x); }
static inline long long __double_as_longlong(double x) { return bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return bits<double>(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}

// The inverse of erf, by Newton's method on erfc, which is precise near 1.
static inline double erfinv(double x) {
  if (!(x > -1 && x < 1)) return x == 1 ? HUGE_VAL : x == -1 ? -HUGE_VAL : NAN;
  if (x == 0) return x;
  const long double half_root_pi = 0.886226925452758013649083741670572591L, a = fabsl((long double)x);
  long double l = logl((1 - a) * (1 + a)), b = 4.3307467508L + l / 2;
  long double y = a < 1e-4L ? a * half_root_pi : sqrtl(sqrtl(b * b - l / 0.147L) - b);
  for (int i = 0; i < 6; i++) {
    const long double off = a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y);
    const long double step = off * half_root_pi * expl(y * y);
    y -= step / (1 + y * step);
  }
  return x < 0 ? -y : y;
}
static inline float erfinvf(float x) { return erfinv(x); }

// The rest is the protocol of the tests: launches from standard input, memory
// after them to standard output.

typedef void (*Call)(const void*);
template <class F, void (*k)(F)> static void call(const void* p) {
  F f;
  memcpy((void*)&f, p, sizeof f);
  k(f);
}

static uint64_t word() {
  uint64_t x;
  if (fread(&x, 8, 1, stdin) != 1) {
    fprintf(stderr, "the input ends too early\n");
    abort();
  }
  return x;
}

static Dim dim() {
  Dim d;
  d.x = word(), d.y = word(), d.z = word();
  return d;
}

// Memory is aligned as on a device and has a guard of zeros around it.
static char* aligned(size_t n) {
  char* p = (char*)aligned_alloc(256, (n + 511) / 256 * 256);
  memset(p, 0, (n + 511) / 256 * 256);
  return p;
}

static int serve(const Call* calls) {
  for (uint64_t cases = word(); cases > 0; cases--) {
    std::vector<char*> memory(word());
    std::vector<size_t> sizes(memory.size());
    for (size_t i = 0; i < memory.size(); i++) {
      sizes[i] = word();
      memory[i] = aligned(sizes[i]);
      if (sizes[i] && fread(memory[i], sizes[i], 1, stdin) != 1) abort();
    }
    for (uint64_t launches = word(); launches > 0; launches--) {
      const uint64_t entry = word(), barriers = word();
      const Dim grid = dim(), size = dim();
      std::vector<uint64_t> slots(word());
      for (auto& s : slots) s = word();
      for (uint64_t fixes = word(); fixes > 0; fixes--) {
        const uint64_t slot = word(), buffer = word(), offset = word();
        slots[slot] = (uint64_t)(memory[buffer] + offset);
      }
      device::launch(calls[entry], slots.data(), grid, size, barriers);
    }
    for (size_t i = 0; i < memory.size(); i++) {
      if (sizes[i]) fwrite(memory[i], sizes[i], 1, stdout);
      free(memory[i]);
    }
  }
  return 0;
}
