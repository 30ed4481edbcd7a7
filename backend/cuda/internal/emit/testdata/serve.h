// The protocol of the tests: launches from standard input, memory after them to
// standard output. device.h comes before.

#include <vector>

typedef void (*Call)(void* const*);

static uint64_t word() {
  uint64_t x;
  if (fread(&x, 8, 1, stdin) != 1) {
    fprintf(stderr, "the input ends too early\n");
    abort();
  }
  return x;
}

static fake_dim dim() {
  fake_dim d;
  d.x = word(), d.y = word(), d.z = word();
  return d;
}

// Memory is aligned as on a device and has a guard of zeros around it.
static char* aligned(size_t n) {
  char* p = (char*)aligned_alloc(256, (n + 511) / 256 * 256);
  memset(p, 0, (n + 511) / 256 * 256);
  return p;
}

// alone is a wait of kernels that should have no barriers.
static void alone(gpu*, thread_state) { fiber_die("a barrier in a kernel that should have none"); }

static int serve(const Call* calls) {
  here = new gpu();
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
      const fake_dim grid = dim(), size = dim();
      std::vector<uint64_t> slots(word());
      for (auto& s : slots) s = word();
      for (uint64_t fixes = word(); fixes > 0; fixes--) {
        const uint64_t slot = word(), buffer = word(), offset = word();
        slots[slot] = (uint64_t)(memory[buffer] + offset);
      }
      void* const params[] = {slots.data()};
      fiber_launch(here, calls[entry], params, grid, size, barriers ? fiber_wait : alone);
    }
    for (size_t i = 0; i < memory.size(); i++) {
      if (sizes[i]) fwrite(memory[i], sizes[i], 1, stdout);
      free(memory[i]);
    }
  }
  return 0;
}
