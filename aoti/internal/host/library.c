// Opening libraries and calling their container interface.

#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The functions that this host provides to libraries and needs itself.
extern lori_error lori_torch_create_tensor_from_blob(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t,
						     int32_t, int32_t, lori_handle *);
extern lori_error lori_torch_delete_tensor_object(lori_handle);
extern lori_error lori_torch_new_tensor_handle(lori_handle, lori_handle *);
extern lori_error lori_torch_get_data_ptr(lori_handle, void **);
extern lori_error lori_torch_get_dim(lori_handle, int64_t *);
extern lori_error lori_torch_get_sizes(lori_handle, int64_t **);
extern lori_error lori_torch_get_strides(lori_handle, int64_t **);
extern lori_error lori_torch_get_dtype(lori_handle, int32_t *);

static const lori_tensor_api own_tensors = {
	.create_from_blob = lori_torch_create_tensor_from_blob,
	.remove = lori_torch_delete_tensor_object,
	.alias = lori_torch_new_tensor_handle,
	.data = lori_torch_get_data_ptr,
	.dim = lori_torch_get_dim,
	.sizes = lori_torch_get_sizes,
	.strides = lori_torch_get_strides,
	.dtype = lori_torch_get_dtype,
	.own = true,
};

// A row says where the address of a function belongs; the library is none
// without those that are needed.
typedef struct row {
	const char *name;
	size_t offset;
	bool needed;
} row;

#define CALL(field) offsetof(lori_calls, field)
static const row interface[] = {
	{"AOTInductorModelContainerCreateWithDevice", CALL(create), true},
	{"AOTInductorModelContainerCreateWithExternalConstants", CALL(create_external), false},
	{"AOTInductorModelContainerDelete", CALL(destroy), true},
	{"AOTInductorModelContainerRun", CALL(run), true},
	{"AOTInductorModelContainerGetNumInputs", CALL(num_inputs), true},
	{"AOTInductorModelContainerGetNumOutputs", CALL(num_outputs), true},
	{"AOTInductorModelContainerGetInputName", CALL(input_name), true},
	{"AOTInductorModelContainerGetOutputName", CALL(output_name), true},
	{"AOTInductorModelContainerGetCallSpec", CALL(call_spec), true},
	{"AOTInductorModelContainerGetNumConstants", CALL(num_constants), true},
	{"AOTInductorModelContainerGetConstantName", CALL(constant_name), true},
	{"AOTInductorModelContainerGetConstantOriginalFQN", CALL(constant_fqn), true},
	{"AOTInductorModelContainerGetConstantFromFolded", CALL(constant_folded), true},
	{"AOTInductorModelContainerGetConstantDtype", CALL(constant_dtype), true},
	{"AOTInductorModelContainerGetConstantType", CALL(constant_type), false},
	{"AOTInductorModelContainerGetConstantDataSize", CALL(constant_bytes), false},
	{"AOTInductorModelContainerGetConstantsBlobSize", CALL(blob_size), false},
	{"AOTInductorModelUpdateConstantsFromBlob", CALL(load_blob), false},
	{"AOTInductorModelContainerExtractConstantsMapEntries", CALL(extract), false},
	{"AOTInductorModelContainerRunConstantFolding", CALL(fold), true},
	{"AOTInductorModelCreate", CALL(model_create), true},
	{"AOTInductorModelRun", CALL(model_run), true},
	{"AOTInductorModelGetNumOutputs", CALL(model_outputs), true},
	{"AOTInductorModelUpdateConstantsMap", CALL(model_update), true},
	{"AOTInductorModelUpdateConstantsMapV2", CALL(model_update_pairs), false},
	{"AOTInductorModelDelete", CALL(model_destroy), true},
	{"AOTInductorGetLastError", CALL(last_error), false},
	{0},
};

// What else the generations export. They only tell a generation from another.
static const char *const others[] = {
	"AOTInductorModelContainerCreate",
	"AOTInductorModelContainerDidCallLoadConstants",
	"AOTInductorModelContainerExtractConstantsMap",
	"AOTInductorModelContainerGetStreamAffinityModelIndexForTesting",
	"AOTInductorModelContainerRunSingleThreaded",
	"AOTInductorModelContainerSetUseStreamAffinity",
	"AOTInductorModelContainerUpdateConstantBufferFromCpu",
	"AOTInductorModelContainerUpdateConstantBufferFromCpuPairs",
	"AOTInductorModelContainerUpdateConstantBufferPairs",
	"AOTInductorModelContainerUpdateInactiveConstantBuffer",
	"AOTInductorModelContainerUpdateInactiveConstantBufferPairs",
	"AOTInductorModelContainerUpdateUserManagedConstantBuffer",
	"AOTInductorModelRunMinimalArrayrefInterfaceV2",
	"AOTInductorSetPinnedAsyncConstantsCopyCpuThreads",
	"AOTInductorSetPinnedAsyncConstantsCopyStageBufferBytes",
	"AOTInductorSetUsePinnedAsyncConstantsCopy",
	"AOTInductorModelContainerUpdateUserManagedConstantBufferPairs",
	"AOTInductorModelContainerUpdateConstantBuffer",
	"AOTInductorModelContainerSwapConstantBuffer",
	"AOTInductorModelContainerFreeInactiveConstantBuffer",
	"AOTInductorModelCreateV2",
	NULL,
};

#define TENSOR(field) offsetof(lori_tensor_api, field)
static const row libtorch_tensors[] = {
	{"aoti_torch_create_tensor_from_blob", TENSOR(create_from_blob), true},
	{"aoti_torch_delete_tensor_object", TENSOR(remove), true},
	{"aoti_torch_new_tensor_handle", TENSOR(alias), true},
	{"aoti_torch_get_data_ptr", TENSOR(data), true},
	{"aoti_torch_get_dim", TENSOR(dim), true},
	{"aoti_torch_get_sizes", TENSOR(sizes), true},
	{"aoti_torch_get_strides", TENSOR(strides), true},
	{"aoti_torch_get_dtype", TENSOR(dtype), true},
	{0},
};

// resolve fills a table of function pointers and counts the ones found.
static lori_error resolve(void *handle, const row *rows, void *table, int *found)
{
	for (const row *r = rows; r->name; r++) {
		void *p = dlsym(handle, r->name);
		if (!p && r->needed)
			return lori_fail("the library does not export %s", r->name);
		memcpy((char *)table + r->offset, &p, sizeof p);
		*found += p != NULL;
	}
	return LORI_OK;
}

typedef struct range {
	ElfW(Addr) base;
	const char *low, *high;
} range;

static int find_range(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	range *r = arg;
	if (info->dlpi_addr != r->base)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type != PT_LOAD)
			continue;
		const char *low = (const char *)(info->dlpi_addr + h->p_vaddr), *high = low + h->p_memsz;
		if (!r->low || low < r->low)
			r->low = low;
		if (high > r->high)
			r->high = high;
	}
	return 1;
}

// inspect reads from the loaded image where it lies and which std::string it was
// built for: the mangled name of the container's constructor takes one by
// reference.
static lori_error inspect(lori_library *l)
{
	struct link_map *map;
	if (dlinfo(l->handle, RTLD_DI_LINKMAP, &map) != 0)
		return lori_fail("%s", dlerror());
	range r = {.base = map->l_addr};
	dl_iterate_phdr(find_range, &r);
	l->low = r.low;
	l->high = r.high;
	const char *strings = NULL;
	size_t size = 0;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB)
			strings = (const char *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRSZ)
			size = d->d_un.d_val;
	}
	static const char old[] = "AOTInductorModelContainerC2EmRKSs";
	l->old_strings = strings && memmem(strings, size, old, sizeof old - 1) != NULL;
	return LORI_OK;
}

static lori_error fill(lori_library *l, void *libtorch)
{
	if (resolve(l->handle, interface, &l->calls, &l->symbols) != LORI_OK)
		return LORI_FAIL;
	for (const char *const *name = others; *name; name++)
		l->symbols += dlsym(l->handle, *name) != NULL;
	int found = 0;
	l->tensors = own_tensors;
	if (libtorch) {
		l->tensors.own = false;
		if (resolve(libtorch, libtorch_tensors, &l->tensors, &found) != LORI_OK)
			return LORI_FAIL;
	}
	return inspect(l);
}

// A library's own inline functions come before those of the same name that a
// libtorch of another release has brought into the process. AddressSanitizer
// does not allow it.
enum {
	OPEN = RTLD_NOW | RTLD_LOCAL,
#ifdef __SANITIZE_ADDRESS__
	OPEN_ALONE = OPEN,
#else
	OPEN_ALONE = OPEN | RTLD_DEEPBIND,
#endif
};

lori_library *lori_library_open(const char *path, void *libtorch)
{
	if (!lori_cxx_open())
		return NULL;
	lori_library *l = calloc(1, sizeof *l);
	if (!l) {
		lori_fail("out of memory");
		return NULL;
	}
	l->handle = dlopen(path, libtorch ? OPEN : OPEN_ALONE);
	if (!l->handle) {
		lori_fail("%s", dlerror());
		free(l);
		return NULL;
	}
	if (fill(l, libtorch) != LORI_OK) {
		dlclose(l->handle);
		free(l);
		return NULL;
	}
	return l;
}

lori_error lori_library_close(lori_library *l)
{
	if (!l)
		return LORI_OK;
	lori_thread_atexit_unload(l->low, l->high);
	int bad = dlclose(l->handle);
	free(l);
	return bad ? lori_fail("%s", dlerror()) : LORI_OK;
}

void *lori_libtorch_open(const char *path)
{
	enum { FLAGS = RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE };
	void *h = dlopen(path, FLAGS);
	if (!h) {
		lori_fail("%s", dlerror());
		return NULL;
	}
	// Libraries also need libtorch.so, an empty one beside it, by its name alone.
	char other[4096];
	const char *slash = strrchr(path, '/');
	int n = snprintf(other, sizeof other, "%.*slibtorch.so", slash ? (int)(slash - path) + 1 : 0, path);
	if (n > 0 && (size_t)n < sizeof other)
		dlopen(other, FLAGS);
	return h;
}

void lori_call_begin(void)
{
	lori_error_clear();
	lori_caught_clear();
}

lori_error lori_call_end(lori_library *l, lori_error code)
{
	// A check may have failed in the last parallel region of the call.
	bool late = lori_pending() && lori_take_pending() != LORI_OK;
	if (code == LORI_OK)
		return late ? LORI_FAIL : LORI_OK;
	enum { PART = 1024 };
	const char *text = NULL;
	if (l->calls.last_error && l->calls.last_error(&text) != LORI_OK)
		text = NULL;
	if (!text || !*text)
		text = lori_caught();
	const char *cause = lori_error_text();
	if (!*text)
		return lori_fail("%.*s", PART, *cause ? strdupa(cause) : "the library failed and does not say why");
	size_t n = strlen(text);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		n--;
	if (!*cause)
		return lori_fail("%.*s", (int)n, text);
	char copy[PART];
	snprintf(copy, sizeof copy, "%s", cause);
	// What was thrown is the cause itself, or only where in a generated file a function
	// of the host failed.
	static const char where[] = "API call failed at ";
	if (strstr(text, copy))
		return lori_fail("%.*s", (int)n, text);
	if (strncmp(text, where, sizeof where - 1) == 0)
		return lori_fail("%s", copy);
	return lori_fail("%s (%.*s)", copy, n < PART ? (int)n : PART, text);
}
