// What a container tells of itself.
#include "glue.h"

#define API __attribute__((visibility("default"))) lx_error

static lx_error set(const char **out, int64_t text)
{
	*out = lx_text(text);
	return LX_OK;
}

static const lx_param *param(int64_t at, size_t i) { return (const lx_param *)(loris_words + at) + i; }

static lx_error bad_index(void)
{
	lx_fail("the index is out of range");
	return LX_FAILED;
}

#define COUNT(function, field) \
	API AOTInductor##function(void *b, size_t *n) \
	{ \
		(void)b; \
		*n = (size_t)lx_plan_of()->field; \
		return LX_OK; \
	}
COUNT(ModelContainerGetNumInputs, inputs)
COUNT(ModelContainerGetNumOutputs, outputs)
COUNT(ModelContainerGetNumConstants, constants)
COUNT(ModelGetNumOutputs, outputs)

#define PARAM(function, list, at) \
	API AOTInductorModelContainerGet##function(void *b, size_t i, const char **out) \
	{ \
		(void)b; \
		return i < (size_t)lx_plan_of()->list ? set(out, param(lx_plan_of()->at, i)->name) : bad_index(); \
	}
PARAM(InputName, inputs, input_at)
PARAM(OutputName, outputs, output_at)

#define CONSTANT(function, kind, statement) \
	API AOTInductorModelContainerGetConstant##function(void *b, size_t i, kind *out) \
	{ \
		(void)b; \
		if (i >= (size_t)lx_plan_of()->constants) \
			return bad_index(); \
		const lx_constant *c = lx_constant_of(i); \
		(void)c; \
		statement; \
		return LX_OK; \
	}
CONSTANT(Name, const char *, *out = lx_text(c->name))
CONSTANT(OriginalFQN, const char *, *out = lx_text(c->fqn))
CONSTANT(FromFolded, bool, *out = false)
CONSTANT(Type, int32_t, *out = (int32_t)c->type)
CONSTANT(Dtype, int32_t, *out = (int32_t)c->dtype)
CONSTANT(DataSize, size_t, *out = (size_t)c->bytes)

API AOTInductorModelContainerGetCallSpec(void *b, const char **in, const char **out)
{
	(void)b;
	set(out, lx_plan_of()->out_spec);
	return set(in, lx_plan_of()->in_spec);
}

API AOTInductorModelContainerGetConstantsBlobSize(void *b, uint64_t *n)
{
	(void)b;
	*n = (uint64_t)lx_plan_of()->weights;
	return LX_OK;
}

API AOTInductorModelContainerDidCallLoadConstants(void *b, bool *out)
{
	(void)b;
	*out = true; // constants are there from the start
	return LX_OK;
}

// How Inductor's libraries copy constants to a GPU: these settings are taken and mean nothing here.
API AOTInductorSetUsePinnedAsyncConstantsCopy(bool on)
{
	(void)on;
	return LX_OK;
}

API AOTInductorSetPinnedAsyncConstantsCopyStageBufferBytes(size_t n)
{
	(void)n;
	return LX_OK;
}

API AOTInductorSetPinnedAsyncConstantsCopyCpuThreads(size_t n)
{
	(void)n;
	return LX_OK;
}
