// A host of tensors that are memory alone, and calls of every function of the container interface: right
// ones, wrong ones, and ones during which a function of the host fails. Built with the sanitizers by
// TestInterfaceUnderSanitizers, together with the object's source and the plan of driver.lir:
// y = (x @ w + b)[index] and its running sum, for x f32[4,8], index i64[3], w f32[8,6], b f32[6], and
// a count of runs, n f32[], which each run assigns.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

struct Tensor {
	char *base; // malloc'ed, shared
	int *users;
	char *data;
	int32_t dtype, device;
	std::vector<int64_t> sizes, strides;
};
using H = Tensor *;
using Err = int32_t;
struct Pair { const char *name; H handle; };
using Map = std::unordered_map<std::string, H>;
using Box = void *;

static long live;
static bool grad = true, leave_grad;
static long countdown = -1; // the call of the host that fails

[[noreturn]] static void stop(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	exit(1);
}
#define NEED(cond) do { if (!(cond)) stop("line %d: %s", __LINE__, #cond); } while (0)

static bool fails() { return countdown >= 0 && countdown-- == 0; }
static int64_t width(int32_t dtype) { return dtype == 4 || dtype == 7 ? 8 : 4; }
static int64_t count(const Tensor *t) { int64_t n = 1; for (auto s : t->sizes) n *= s; return n; }

static H make(int32_t dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t before = 0, int32_t device = 0)
{
	int64_t last = 0;
	bool empty = false;
	for (size_t i = 0; i < sizes.size(); i++) last += (sizes[i] - 1) * strides[i], empty |= sizes[i] == 0;
	const int64_t bytes = empty ? 0 : (before + last + 1) * width(dtype); // not one more: views end where memory does
	char *p = (char *)calloc(1, bytes ? bytes : 1);
	live++;
	return new Tensor{p, new int(1), p + (empty ? 0 : before * width(dtype)), dtype, device, sizes, strides};
}
static std::vector<int64_t> dense(const std::vector<int64_t> &sizes)
{
	std::vector<int64_t> st(sizes.size());
	int64_t n = 1;
	for (size_t i = sizes.size(); i-- > 0;) st[i] = n, n *= sizes[i];
	return st;
}
static H make(int32_t dtype, std::vector<int64_t> sizes) { return make(dtype, sizes, dense(sizes)); }
template <class F> static void each(const Tensor *t, F f)
{
	std::vector<int64_t> at(t->sizes.size());
	const int64_t n = count(t);
	for (int64_t i = 0; i < n; i++) {
		int64_t off = 0;
		for (size_t d = 0; d < at.size(); d++) off += at[d] * t->strides[d];
		f(i, t->data + off * width(t->dtype));
		for (size_t d = at.size(); d-- > 0; at[d] = 0) if (++at[d] < t->sizes[d]) break;
	}
}

extern "C" {
Err aoti_torch_delete_tensor_object(H t)
{
	if (--*t->users == 0) { free(t->base); delete t->users; }
	delete t;
	live--;
	return 0;
}
Err aoti_torch_get_data_ptr(H t, void **p) { *p = count(t) ? t->data : nullptr; return fails(); }
Err aoti_torch_get_sizes(H t, int64_t **p) { *p = t->sizes.data(); return fails(); }
Err aoti_torch_get_strides(H t, int64_t **p) { *p = t->strides.data(); return fails(); }
Err aoti_torch_get_dim(H t, int64_t *p) { *p = (int64_t)t->sizes.size(); return fails(); }
Err aoti_torch_get_dtype(H t, int32_t *p) { *p = t->dtype; return fails(); }
Err aoti_torch_get_device_type(H t, int32_t *p) { *p = t->device; return fails(); }
Err aoti_torch_empty_strided(int64_t n, const int64_t *s, const int64_t *st, int32_t dtype, int32_t, int32_t, H *out)
{
	if (fails()) return 1;
	*out = make(dtype, {s, s + n}, {st, st + n});
	return 0;
}
Err aoti_torch_create_tensor_from_blob(void *p, int64_t n, const int64_t *s, const int64_t *st, int64_t, int32_t dtype, int32_t, int32_t, H *out)
{
	if (fails()) return 1;
	live++;
	*out = new Tensor{nullptr, new int(1), (char *)p, dtype, 0, {s, s + n}, {st, st + n}};
	return 0;
}
Err aoti_torch__reinterpret_tensor(H t, int64_t n, const int64_t *s, const int64_t *st, int64_t offset, H *out)
{
	if (fails()) return 1;
	++*t->users, live++;
	*out = new Tensor{t->base, t->users, t->data + offset * width(t->dtype), t->dtype, t->device, {s, s + n}, {st, st + n}};
	return 0;
}
Err aoti_torch_assign_tensors_out(H t, H *out)
{
	if (fails()) return 1;
	++*t->users, live++;
	*out = new Tensor(*t);
	return 0;
}
Err aoti_torch_copy_(H to, H from, int32_t)
{
	NEED(!grad || !leave_grad);
	if (fails()) return 1;
	NEED(to->sizes == from->sizes && to->dtype == from->dtype);
	std::vector<char *> at;
	each(from, [&](int64_t, char *p) { at.push_back(p); });
	each(to, [&](int64_t i, char *p) { memcpy(p, at[i], width(to->dtype)); });
	return 0;
}
bool aoti_torch_grad_mode_is_enabled() { return grad; }
void aoti_torch_grad_mode_set_enabled(bool on) { grad = on; }
Err aoti_torch_cpu_addmm_out(H c, H self, H a, H b, double beta, double alpha)
{
	NEED(!grad && beta == 1 && alpha == 1);
	if (fails()) return 1;
	auto at = [](H t, int64_t i, int64_t j) -> float & { return ((float *)t->data)[i * t->strides[0] + j * t->strides[1]]; };
	for (int64_t i = 0; i < a->sizes[0]; i++)
		for (int64_t j = 0; j < b->sizes[1]; j++) {
			float s = 0;
			for (int64_t k = 0; k < a->sizes[1]; k++) s += at(a, i, k) * at(b, k, j);
			at(c, i, j) = s + at(self, i, j);
		}
	return 0;
}
Err aoti_torch_cpu_convolution(H x, H w, H *bias, int64_t *, int64_t, int64_t *, int64_t, int64_t *, int64_t, int32_t, int64_t *, int64_t, int64_t, H *out)
{
	if (fails()) return 1;
	NEED(w->users && *w->users > 1); // a constant's storage is shared
	*out = make(x->dtype, {x->sizes[0], w->sizes[0], 1}, {w->sizes[0], 1, 1});
	each(*out, [&](int64_t i, char *p) {
		const int64_t row = i / w->sizes[0], channel = i % w->sizes[0];
		float s = ((float *)(*bias)->data)[channel];
		for (int64_t k = 0; k < w->sizes[1]; k++)
			s += ((float *)x->data)[row * x->strides[0] + k * x->strides[1]] * ((float *)w->data)[channel * w->strides[0] + k * w->strides[1]];
		*(float *)p = s;
	});
	return 0;
}
Err aoti_torch_cpu_cumsum(H x, int64_t dim, int32_t *dtype, H *out)
{
	if (fails()) return 1;
	NEED(dim == 0 && *dtype == x->dtype);
	*out = make(x->dtype, x->sizes, {1, x->sizes[0]}); // another layout than the plan wants
	std::vector<float> from;
	each(x, [&](int64_t, char *p) { from.push_back(*(float *)p); });
	for (size_t i = x->sizes[1]; i < from.size(); i++) from[i] += from[i - x->sizes[1]];
	each(*out, [&](int64_t i, char *p) { *(float *)p = from[i]; });
	return 0;
}

// The interface.
#define MC AOTInductorModelContainer
#define CAT(a, b) a##b
#define FN(name, ...) Err CAT(AOTInductorModelContainer, name)(__VA_ARGS__);
FN(Create, Box *, size_t, bool, const char *)
FN(CreateWithDevice, Box *, size_t, const char *, const char *)
FN(CreateWithExternalConstants, Box *, size_t, const char *, const char *, const Pair *, size_t)
FN(Delete, Box)
FN(Run, Box, H *, size_t, H *, size_t, void *, void *)
FN(RunSingleThreaded, Box, H *, size_t, H *, size_t, void *, void *)
FN(GetNumConstants, Box, size_t *)
FN(GetConstantName, Box, size_t, const char **)
FN(GetConstantOriginalFQN, Box, size_t, const char **)
FN(GetConstantFromFolded, Box, size_t, bool *)
FN(GetConstantType, Box, size_t, int32_t *)
FN(GetConstantDtype, Box, size_t, int32_t *)
FN(GetConstantDataSize, Box, size_t, size_t *)
FN(GetConstantsBlobSize, Box, uint64_t *)
FN(ExtractConstantsMap, Box, Map *, bool)
FN(ExtractConstantsMapEntries, Box, const Pair **, size_t *, bool)
FN(UpdateConstantBuffer, Box, Map *, bool, bool)
FN(UpdateConstantBufferFromCpu, Box, Map *, bool, bool)
FN(UpdateUserManagedConstantBuffer, Box, Map *, bool, bool)
FN(UpdateInactiveConstantBuffer, Box, Map *)
FN(UpdateConstantBufferPairs, Box, const Pair *, size_t, bool, bool)
FN(UpdateConstantBufferFromCpuPairs, Box, const Pair *, size_t, bool, bool)
FN(UpdateUserManagedConstantBufferPairs, Box, const Pair *, size_t, bool, bool)
FN(UpdateInactiveConstantBufferPairs, Box, const Pair *, size_t)
FN(RunConstantFolding, Box, bool, void *, void *)
FN(SwapConstantBuffer, Box)
FN(FreeInactiveConstantBuffer, Box)
FN(GetNumInputs, Box, size_t *)
FN(GetNumOutputs, Box, size_t *)
FN(GetInputName, Box, size_t, const char **)
FN(GetOutputName, Box, size_t, const char **)
FN(GetCallSpec, Box, const char **, const char **)
FN(DidCallLoadConstants, Box, bool *)
FN(SetUseStreamAffinity, Box, bool)
FN(GetStreamAffinityModelIndexForTesting, Box, void *, int64_t *)
Err AOTInductorModelCreate(Box *, Map *);
Err AOTInductorModelCreateV2(Box *, const Pair *, size_t);
Err AOTInductorModelRun(Box, H *, H *);
Err AOTInductorModelDelete(Box);
Err AOTInductorModelGetNumOutputs(Box, size_t *);
Err AOTInductorModelUpdateConstantsMap(Box, Map *);
Err AOTInductorModelUpdateConstantsMapV2(Box, const Pair *, size_t);
Err AOTInductorModelUpdateConstantsFromBlob(Box, const uint8_t *);
Err AOTInductorSetUsePinnedAsyncConstantsCopy(bool);
Err AOTInductorSetPinnedAsyncConstantsCopyStageBufferBytes(size_t);
Err AOTInductorSetPinnedAsyncConstantsCopyCpuThreads(size_t);
Err AOTInductorGetLastError(const char **);
extern const uint8_t loris_weights[];
}
#define C(name) CAT(AOTInductorModelContainer, name)

static std::mt19937 rng(1);
static int64_t pick(int64_t n) { return (int64_t)(rng() % (uint64_t)n); }
static const char *why() { const char *s; AOTInductorGetLastError(&s); return s; }
static H fill(H t, float v) { each(t, [&](int64_t, char *p) { *(float *)p = v; }); return t; }
static H index3(int64_t a, int64_t b, int64_t c) { H t = make(4, {3}); int64_t v[] = {a, b, c}; memcpy(t->data, v, 24); return t; }

// runs reads the count of runs.
static float runs(Box b, bool inactive = false)
{
	const Pair *entries;
	size_t n;
	NEED(!C(ExtractConstantsMapEntries)(b, &entries, &n, inactive));
	for (size_t i = 0; i < n; i++) if (!strcmp(entries[i].name, "w.n")) return *(float *)entries[i].handle->data;
	stop("there is no count");
}

// run runs once on x of the given layout and returns the first element of y, which is 8·x·w + b.
static float run(Box b, bool strided = false)
{
	H in[2] = {fill(strided ? make(6, {4, 8}, {1, 4}, 3) : make(6, {4, 8}), 1), index3(0, -1, 3)}, out[2] = {};
	const float count = runs(b);
	Err e = C(Run)(b, in, 2, out, 2, nullptr, nullptr);
	NEED(!e && grad && !in[0] && !in[1] && out[0] && out[1] && runs(b) == count + 1);
	float y = *(float *)out[0]->data, z = ((float *)out[1]->data)[2 * 6];
	NEED(z == 3 * y);
	for (H t : out) aoti_torch_delete_tensor_object(t);
	return y;
}

// wrong runs with inputs that are wrong in some way, or with a host that fails.
static void wrong(Box b)
{
	H in[3] = {make(6, {4, 8}), index3(1, 2, 3), nullptr}, out[2] = {};
	size_t n = 2, m = 2;
	const float count = runs(b);
	auto other = [&](int i, H t) { if (in[i]) aoti_torch_delete_tensor_object(in[i]); in[i] = t; };
	switch (pick(9)) {
	case 0: other(0, make((int32_t)(pick(2) ? 7 : 4), {4, 8})); break;
	case 1: other(0, make(6, {4, 8, 1})); break;
	case 2: other(0, make(6, {4, 7 + 2 * pick(2)})); break;
	case 3: other(0, make(6, {0, 8})); break;
	case 4: other(0, make(6, {4, 8}, {8, 1}, 0, 1)); break;
	case 5: other((int)pick(2), nullptr); break;
	case 6: n = (size_t)pick(2); for (size_t i = n; i < 2; i++) other((int)i, nullptr); break;
	case 7: if (pick(2)) m = 1; else in[2] = make(6, {1}), n = 3; break;
	case 8: other(0, make(6, {4, 8}, {1, 4})), other(1, index3(pick(2) ? 4 : -5, 0, 1 + (int64_t)pick(1000000))); break;
	}
	Err e = pick(2) ? C(Run)(b, in, n, out, m, nullptr, nullptr) : C(RunSingleThreaded)(b, in, n, out, m, nullptr, nullptr);
	NEED(e && *why() && grad && runs(b) == count);
	for (size_t i = 0; i < 3; i++) NEED(!in[i]);
	NEED(!out[0] && !out[1]);
}

// fault has the k-th call of the host fail in a run; false once none is left to fail.
static bool fault(Box b, long k)
{
	H in[2] = {make(6, {4, 8}, {1, 4}), index3(1, 2, 3)}, out[2] = {};
	countdown = k;
	Err e = C(Run)(b, in, 2, out, 2, nullptr, nullptr);
	bool hit = countdown < 0;
	countdown = -1;
	NEED(!in[0] && !in[1] && grad && (e ? hit && *why() && !out[0] && !out[1] : true));
	for (H t : out) if (t) aoti_torch_delete_tensor_object(t);
	return hit;
}

// updates gives constants in all ways and all forms, and checks what runs see.
static void updates(Box b)
{
	H w = fill(make(6, {8, 6}), 2), view = fill(make(6, {8, 6}, {1, 8}, 5), 3), tail = fill(make(6, {6}, {1}, 40), 1), bad = make(6, {8, 7}), wide = make(7, {6});
	auto map = [](std::initializer_list<std::pair<const std::string, H>> l) { return Map(l); };
	Map full = map({{"w_w", w}, {"w_b", tail}}), part = map({{"w_w", view}}), wrong1 = map({{"w_w", bad}, {"w_b", tail}}), wrong2 = map({{"w_w", w}, {"w_b", wide}}), none;
	NEED(!C(UpdateConstantBuffer)(b, &full, false, true) && run(b) == 17);
	NEED(!C(UpdateConstantBuffer)(b, &part, false, false) && run(b) == 25);
	for (Map *m : {&part, &wrong1, &wrong2, &none}) NEED(C(UpdateConstantBufferFromCpu)(b, m, false, true) && *why() && run(b, true) == 25);
	NEED(!C(UpdateInactiveConstantBuffer)(b, &full) && run(b) == 25 && !C(SwapConstantBuffer)(b) && run(b) == 17);
	NEED(!C(FreeInactiveConstantBuffer)(b) && C(SwapConstantBuffer)(b) && *why());
	Pair pairs[] = {{"w_w", view}, {"w_b", tail}}, one[] = {{"w_b", tail}};
	NEED(!C(UpdateConstantBufferPairs)(b, pairs, 2, true, true) && !C(SwapConstantBuffer)(b) && run(b) == 25);
	NEED(!C(UpdateInactiveConstantBufferPairs)(b, pairs, 2) && C(UpdateInactiveConstantBufferPairs)(b, one, 1));
	NEED(!C(UpdateConstantBufferFromCpuPairs)(b, one, 1, false, false) && run(b) == 25);
	// The inactive set counts by itself, from what the active one had.
	const float count = runs(b);
	NEED(!C(UpdateInactiveConstantBuffer)(b, &full) && run(b) == 25 && runs(b) == count + 1 && runs(b, true) == count && !C(SwapConstantBuffer)(b) && run(b) == 17 && runs(b) == count + 1);
	NEED(!C(SwapConstantBuffer)(b));
	// The caller's tensors themselves: what he writes is seen, also after he has freed his handle.
	NEED(!C(UpdateUserManagedConstantBuffer)(b, &full, false, true) && run(b) == 17);
	fill(w, 4);
	NEED(run(b) == 33);
	NEED(!C(UpdateUserManagedConstantBufferPairs)(b, pairs, 2, true, true) && !C(RunConstantFolding)(b, true, nullptr, nullptr));
	Map got;
	const Pair *entries;
	size_t n;
	NEED(!C(ExtractConstantsMap)(b, &got, false) && got.size() == 3 && got.count("w.w") && got.at("w.b")->sizes.size() == 1);
	for (int i = 0; i < 50; i++) got["another name, longer than what fits " + std::to_string(i)] = nullptr; // the table grows
	NEED(got.size() == 53 && got.at("w.w")->sizes[0] == 8);
	NEED(!C(ExtractConstantsMapEntries)(b, &entries, &n, true) && n == 3 && !strcmp(entries[0].name, "w.w"));
	NEED(!AOTInductorModelUpdateConstantsMap(b, &part) && run(b) == 25 && !AOTInductorModelUpdateConstantsMapV2(b, one, 1) && run(b) == 25);
	NEED(!AOTInductorModelUpdateConstantsFromBlob(b, loris_weights));
	for (long k = 0;; k++) { // failures change nothing
		float was = run(b);
		countdown = k;
		Err e = C(UpdateConstantBuffer)(b, &full, false, true);
		bool hit = countdown < 0;
		countdown = -1;
		NEED(!e || run(b) == was);
		if (!hit) break;
		NEED(!AOTInductorModelUpdateConstantsFromBlob(b, loris_weights));
	}
	NEED(run(b) == 33);
	for (H t : {w, view, tail, bad, wide}) aoti_torch_delete_tensor_object(t);
	NEED(run(b) == 33);
}

static void describe(Box b)
{
	size_t n, bytes;
	const char *s, *t;
	bool yes;
	int32_t code;
	int64_t at;
	uint64_t all;
	NEED(!C(GetNumInputs)(b, &n) && n == 2 && !C(GetNumOutputs)(b, &n) && n == 2 && !AOTInductorModelGetNumOutputs(b, &n) && n == 2);
	NEED(!C(GetInputName)(b, 1, &s) && !strcmp(s, "index") && C(GetInputName)(b, 2, &s) && !C(GetOutputName)(b, 0, &s) && C(GetOutputName)(b, 9, &s));
	NEED(!C(GetNumConstants)(b, &n) && n == 3 && !C(GetConstantName)(b, 0, &s) && !strcmp(s, "w_w") && !C(GetConstantOriginalFQN)(b, 0, &s) && !strcmp(s, "w.w"));
	NEED(!C(GetConstantFromFolded)(b, 0, &yes) && !yes && !C(GetConstantType)(b, 0, &code) && code == 1 && !C(GetConstantType)(b, 2, &code) && code == 2 && !C(GetConstantDtype)(b, 0, &code) && code == 6);
	NEED(!C(GetConstantDataSize)(b, 0, &bytes) && bytes == 192 && C(GetConstantDataSize)(b, 3, &bytes) && !C(GetConstantsBlobSize)(b, &all) && all == 320);
	NEED(!C(GetCallSpec)(b, &s, &t) && strstr(s, "builtins.dict") && strstr(t, "builtins.tuple") && !C(DidCallLoadConstants)(b, &yes) && yes);
	NEED(!C(GetStreamAffinityModelIndexForTesting)(b, nullptr, &at) && at == -2 && !C(SetUseStreamAffinity)(b, true) && !C(GetStreamAffinityModelIndexForTesting)(b, nullptr, &at) && at == -1);
	NEED(!AOTInductorSetUsePinnedAsyncConstantsCopy(true) && !AOTInductorSetPinnedAsyncConstantsCopyStageBufferBytes(1) && !AOTInductorSetPinnedAsyncConstantsCopyCpuThreads(1));
}

// The rules of the interface that cost a crash or a leak when they are broken, each by itself.

// Inputs belong to the library, which clears their slots, also on errors, and leaves no outputs then.
static void rule_stolen(Box b)
{
	NEED(run(b) == run(b));
	for (int i = 0; i < 50; i++) wrong(b);
	for (long k = 0; fault(b, k); k++) ;
}

// Gradients are off while functions that write to a given tensor run, and as they were afterwards.
static void rule_gradients(Box b)
{
	for (bool on : {true, false}) {
		grad = on;
		H in[2] = {make(6, {4, 8}), index3(0, 1, 2)}, out[2] = {};
		NEED(!C(Run)(b, in, 2, out, 2, nullptr, nullptr) && grad == on); // addmm_out looks whether they are off
		for (H t : out) aoti_torch_delete_tensor_object(t);
	}
	grad = true;
}

// Inputs may be views of any strides, behind an offset, of memory that ends where they do.
static void rule_strides(Box b)
{
	auto y = [&](H x) {
		int64_t n = 0;
		each(x, [&](int64_t i, char *p) { *(float *)p = (float)(i % 5), n++; });
		H in[2] = {x, index3(3, 2, 1)}, out[2] = {};
		NEED(n == 32 && !C(Run)(b, in, 2, out, 2, nullptr, nullptr));
		std::vector<float> all;
		each(out[0], [&](int64_t, char *p) { all.push_back(*(float *)p); });
		for (H t : out) aoti_torch_delete_tensor_object(t);
		return all;
	};
	const auto want = y(make(6, {4, 8}));
	NEED(y(make(6, {4, 8}, {1, 4})) == want && y(make(6, {4, 8}, {16, 2}, 7)) == want && y(make(6, {4, 8}, {8, 1}, 3)) == want);
}

// Dtype, rank, sizes, device and count are looked at always, and the text says which input is wrong and how.
static void rule_checks(Box b)
{
	auto fails_with = [&](H x, size_t n, const char *text) {
		H in[2] = {x, index3(0, 0, 0)}, out[2] = {};
		if (n < 2) aoti_torch_delete_tensor_object(in[1]), in[1] = nullptr;
		NEED(C(Run)(b, in, n, out, 2, nullptr, nullptr) && strstr(why(), text) && !in[0] && !in[1]);
	};
	fails_with(make(7, {4, 8}), 2, "input x: has dtype float64, want float32");
	fails_with(make(6, {4, 8, 1}), 2, "input x: has 3 dimensions, want 2");
	fails_with(make(6, {4, 9}), 2, "input x: has sizes [4, 9], want [4, 8]");
	fails_with(make(6, {4, 8}, {8, 1}, 0, 1), 2, "input x: is not on the CPU");
	fails_with(nullptr, 2, "input x: there is no tensor");
	fails_with(make(6, {4, 8}), 1, "1 inputs and 2 outputs, want 2 and 2");
}

// An update copies what a view has, and nothing behind it.
static void rule_views(Box b)
{
	H w = fill(make(6, {8, 6}, {1, 8}, 9), 3), bias = fill(make(6, {6}, {1}, 40), 1);
	Map full{{"w_w", w}, {"w_b", bias}};
	NEED(!C(UpdateConstantBuffer)(b, &full, false, true) && run(b) == 25);
	fill(w, 7), fill(bias, 7);
	NEED(run(b) == 25); // a copy
	aoti_torch_delete_tensor_object(w), aoti_torch_delete_tensor_object(bias);
}

static int rule(const std::string &name)
{
	const std::map<std::string, void (*)(Box)> rules = {
		{"stolen", rule_stolen}, {"gradients", rule_gradients}, {"strides", rule_strides}, {"checks", rule_checks}, {"views", rule_views}};
	Box b;
	NEED(!C(Create)(&b, 1, true, nullptr));
	rules.at(name)(b);
	NEED(!C(Delete)(b) && live == 0);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2) return rule(argv[2]);
	const int rounds = argc > 1 ? atoi(argv[1]) : 200;
	Box b;
	NEED(C(CreateWithDevice)(&b, 0, "cpu", nullptr) && C(CreateWithDevice)(&b, 1, "cuda", nullptr) && *why() && C(Create)(&b, 1, false, nullptr));
	NEED(!C(Create)(&b, 2, true, nullptr));
	describe(b);
	const float first = run(b);
	NEED(run(b, true) == first);
	for (int i = 0; i < rounds; i++) wrong(b);
	for (long k = 0; fault(b, k); k++) ;
	NEED(run(b) == first);
	updates(b);
	NEED(!C(Delete)(b) && live == 0);
	for (long k = 0;; k++) {
		countdown = k;
		Err e = C(CreateWithDevice)(&b, 1, "cpu", nullptr);
		bool hit = countdown < 0;
		countdown = -1;
		NEED(!e == !hit);
		if (!e) { C(Delete)(b); break; }
	}
	H w = fill(make(6, {8, 6}), 1), bias = fill(make(6, {6}), 2);
	H n = fill(make(6, {}), 5);
	Pair pairs[] = {{"w_w", w}, {"w_b", bias}, {"w_n", n}};
	NEED(C(CreateWithExternalConstants)(&b, 1, "cpu", nullptr, pairs, 1) && !C(CreateWithExternalConstants)(&b, 1, "cpu", nullptr, pairs, 2) && run(b) == 10 && !C(Delete)(b) && *(float *)n->data == 5);
	Map none, all{{"w_w", w}, {"w_b", bias}, {"w_n", n}};
	NEED(!AOTInductorModelCreate(&b, &none)); // without values runs fail, and say so
	H in[2] = {make(6, {4, 8}), index3(0, 0, 0)}, out[2] = {};
	NEED(AOTInductorModelRun(b, in, out) && *why() && !in[0] && !AOTInductorModelUpdateConstantsMap(b, &all) && run(b) == 10 && !AOTInductorModelDelete(b));
	NEED(!AOTInductorModelCreate(&b, nullptr) && run(b) == first && !AOTInductorModelDelete(b));
	NEED(!AOTInductorModelCreateV2(&b, pairs, 3) && run(b) == 10 && *(float *)n->data == 7 && !AOTInductorModelDelete(b)); // the caller's own counts
	aoti_torch_delete_tensor_object(n), aoti_torch_delete_tensor_object(w), aoti_torch_delete_tensor_object(bias);
	NEED(live == 0);
	printf("%d wrong runs, nothing leaked\n", rounds);
}
