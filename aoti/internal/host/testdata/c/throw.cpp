// Failing checks, as generated C++ has them. The region is called as gcc calls
// it, under this host's name.

#include <cstdint>
#include <cstring>
#include <stdexcept>

extern "C" {
void lori_torch_check(bool cond, const char *func, const char *file, uint32_t line, const char *msg);
int32_t lori_torch_empty_strided(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, void **);
const char *lori_error_text(void);
bool lori_pending(void);
void LOMP_parallel(void (*fn)(void *), void *data, unsigned num_threads, unsigned flags);
void LOMP_barrier(void);
int lmp_get_thread_num(void);

struct guard {
	int *count;
	~guard() { ++*count; }
};

static void kernel(int index, int *destroyed)
{
	guard g{destroyed};
	lori_torch_check(index < 10, "kernel", "kernel.cpp", 7, "index 12 is out of bounds");
}

static void body(void *) noexcept
{
	lori_torch_check(lmp_get_thread_num() != 2, "body", "kernel.cpp", 9, "bad in a region");
	LOMP_barrier();
}

const char *test_throw(void *)
{
	int destroyed = 0;
	kernel(3, &destroyed);
	try {
		kernel(12, &destroyed);
		return "nothing was thrown";
	} catch (const std::runtime_error &e) {
		if (!std::strstr(e.what(), "index 12 is out of bounds") || !std::strstr(e.what(), "(in ") || std::strstr(e.what(), "kernel.cpp"))
			return "another text";
	}
	if (destroyed != 2)
		return "the frames in between were not unwound";
	LOMP_parallel(body, nullptr, 4, 0);
	if (!lori_pending())
		return "the failure in the region is lost";
	void *t = nullptr;
	int64_t one = 1;
	if (lori_torch_empty_strided(1, &one, &one, 6, 0, 0, &t) == 0)
		return "the call after the region did not fail";
	if (!std::strstr(lori_error_text(), "bad in a region"))
		return "the text of the failure in the region is lost";
	if (lori_torch_empty_strided(1, &one, &one, 6, 0, 0, &t) != 0)
		return "the failure stays";
	extern int32_t lori_torch_delete_tensor_object(void *);
	return lori_torch_delete_tensor_object(t) ? "delete" : nullptr;
}
}
