//go:build cuda && linux && cgo

// Calls of NVRTC and cuBLASLt.

#include "calls.h"

#include <stdbool.h>
#include <stdlib.h>

// fetch allocates what one of NVRTC's pairs of functions, a size and the bytes,
// has; one byte more, which is zero.
static nvrtcResult fetch(nvrtcProgram p, nvrtcResult (*size)(nvrtcProgram, size_t *),
			 nvrtcResult (*bytes)(nvrtcProgram, char *), char **out, size_t *n)
{
	*out = NULL;
	*n = 0;
	nvrtcResult r = size(p, n);
	if (r)
		return r;
	*out = calloc(*n + 1, 1);
	return *out ? bytes(p, *out) : LORI_NVRTC_OUT_OF_MEMORY;
}

nvrtcResult lori_cu_compile(const lori_nvrtc *v, const char *src, const char *name, const char *const *options,
			    int n_options, int ptx, char **image, size_t *size, char **log, const char **call)
{
	nvrtcProgram p;
	size_t unused;
	*image = *log = NULL;
	*call = "nvrtcCreateProgram";
	nvrtcResult r = v->nvrtcCreateProgram(&p, src, name, 0, NULL, NULL);
	if (r)
		return r;
	*call = "nvrtcCompileProgram";
	r = v->nvrtcCompileProgram(p, n_options, options);
	// A log that cannot be had is no reason to refuse the image.
	if (fetch(p, v->nvrtcGetProgramLogSize, v->nvrtcGetProgramLog, log, &unused)) {
		free(*log);
		*log = NULL;
	}
	if (!r && ptx) {
		*call = "nvrtcGetPTX";
		r = fetch(p, v->nvrtcGetPTXSize, v->nvrtcGetPTX, image, size);
	} else if (!r) {
		*call = "nvrtcGetCUBIN";
		r = fetch(p, v->nvrtcGetCUBINSize, v->nvrtcGetCUBIN, image, size);
	}
	v->nvrtcDestroyProgram(&p);
	return r;
}

nvrtcResult lori_cu_nvrtc_version(const lori_nvrtc *v, int *major, int *minor, int *archs)
{
	nvrtcResult r = v->nvrtcVersion(major, minor);
	return r ? r : v->nvrtcGetNumSupportedArchs(archs);
}

nvrtcResult lori_cu_nvrtc_archs(const lori_nvrtc *v, int *archs) { return v->nvrtcGetSupportedArchs(archs); }

size_t lori_cu_blas_version(const lori_cublaslt *l) { return l->cublasLtGetVersion(); }

void lori_cu_blas_text(const lori_cublaslt *l, cublasStatus_t s, const char **name, const char **text)
{
	*name = l->cublasLtGetStatusName(s);
	*text = l->cublasLtGetStatusString(s);
}

cublasStatus_t lori_cu_blas_create(const lori_driver *d, CUcontext c, const lori_cublaslt *l, cublasLtHandle_t *h,
				   CUresult *r)
{
	*r = d->cuCtxSetCurrent(c);
	return *r ? 0 : l->cublasLtCreate(h);
}

cublasStatus_t lori_cu_blas_destroy(const lori_driver *d, CUcontext c, const lori_cublaslt *l, cublasLtHandle_t h,
				    CUresult *r)
{
	*r = d->cuCtxSetCurrent(c);
	return *r ? 0 : l->cublasLtDestroy(h);
}

// TRY runs a call whose failure ends the function.
#define TRY(function, ...)                               \
	do {                                             \
		*call = #function;                       \
		cublasStatus_t s_ = l->function(__VA_ARGS__); \
		if (s_)                                  \
			return s_;                       \
	} while (0)

static cublasStatus_t layout(const lori_cublaslt *l, const lori_matrix *x, int32_t batch,
			     cublasLtMatrixLayout_t *out, const char **call)
{
	TRY(cublasLtMatrixLayoutCreate, out, x->type, x->rows, x->cols, x->ld);
	if (batch > 1) {
		TRY(cublasLtMatrixLayoutSetAttribute, *out, LORI_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
		TRY(cublasLtMatrixLayoutSetAttribute, *out, LORI_LAYOUT_BATCH_STRIDE, &x->stride, sizeof x->stride);
	}
	return 0;
}

static cublasStatus_t describe(const lori_cublaslt *l, const lori_matmul_spec *spec, lori_matmul *m,
			       const char **call)
{
	TRY(cublasLtMatmulDescCreate, &m->desc, spec->compute, spec->scale);
	TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_TRANSA, &spec->transa, sizeof spec->transa);
	TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_TRANSB, &spec->transb, sizeof spec->transb);
	TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_EPILOGUE, &spec->epilogue, sizeof spec->epilogue);
	if (m->scaled)
		TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_FAST_ACCUM, &spec->fast, sizeof spec->fast);
	if (m->scaled && spec->scale_rows) {
		const int32_t mode = LORI_SCALE_ROWS;
		TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_A_SCALE_MODE, &mode, sizeof mode);
		TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_B_SCALE_MODE, &mode, sizeof mode);
		// What there is to choose from may depend on that there are scales; a run says
		// where they are.
		const uint64_t some = 256;
		TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_A_SCALE, &some, sizeof some);
		TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_B_SCALE, &some, sizeof some);
	}
	if (spec->epilogue & LORI_EPILOGUE_BIAS)
		TRY(cublasLtMatmulDescSetAttribute, m->desc, LORI_DESC_BIAS_TYPE, &spec->bias_type,
		    sizeof spec->bias_type);
	cublasStatus_t s = layout(l, &spec->a, spec->batch, &m->a, call);
	if (!s)
		s = layout(l, &spec->b, spec->batch, &m->b, call);
	return s ? s : layout(l, &spec->d, spec->batch, &m->d, call);
}

static cublasStatus_t choose(const lori_cublaslt *l, cublasLtHandle_t h, const lori_matmul_spec *spec, lori_matmul *m,
			     cublasLtMatmulPreference_t p, const char **call)
{
	TRY(cublasLtMatmulPreferenceSetAttribute, p, LORI_PREFERENCE_WORKSPACE, &spec->workspace,
	    sizeof spec->workspace);
	static const cublasLtMatmulPreferenceAttributes_t aligns[] = {
		LORI_PREFERENCE_ALIGN_A, LORI_PREFERENCE_ALIGN_B, LORI_PREFERENCE_ALIGN_C, LORI_PREFERENCE_ALIGN_D,
	};
	for (int i = 0; i < 4; i++)
		TRY(cublasLtMatmulPreferenceSetAttribute, p, aligns[i], &spec->align, sizeof spec->align);
	TRY(cublasLtMatmulAlgoGetHeuristic, h, m->desc, m->a, m->b, m->d, m->d, p, LORI_MAX_CHOICES, m->choices,
	    &m->n);
	return m->n > 0 ? 0 : LORI_BLAS_NOT_SUPPORTED;
}

static bool eight_bits(uint32_t type) { return type == LORI_R_8F_E4M3 || type == LORI_R_8F_E5M2; }

cublasStatus_t lori_cu_matmul_create(const lori_driver *d, CUcontext c, const lori_cublaslt *l, cublasLtHandle_t h,
				     const lori_matmul_spec *spec, lori_matmul *m, CUresult *r, const char **call)
{
	*r = d->cuCtxSetCurrent(c);
	if (*r)
		return 0;
	m->scale = spec->scale;
	m->scaled = eight_bits(spec->a.type) || eight_bits(spec->b.type);
	cublasStatus_t s = describe(l, spec, m, call);
	if (!s) {
		cublasLtMatmulPreference_t p;
		TRY(cublasLtMatmulPreferenceCreate, &p);
		s = choose(l, h, spec, m, p, call);
		l->cublasLtMatmulPreferenceDestroy(p);
	}
	return s;
}

cublasStatus_t lori_cu_matmul_destroy(const lori_cublaslt *l, lori_matmul *m)
{
	cublasStatus_t first = 0, s;
	cublasLtMatrixLayout_t layouts[] = {m->a, m->b, m->d};
	for (int i = 0; i < 3; i++)
		if (layouts[i] && (s = l->cublasLtMatrixLayoutDestroy(layouts[i])) && !first)
			first = s;
	if (m->desc && (s = l->cublasLtMatmulDescDestroy(m->desc)) && !first)
		first = s;
	return first;
}

static cublasStatus_t point(const lori_cublaslt *l, lori_matmul *m, unsigned int attribute, uint64_t p,
			    const char **call)
{
	TRY(cublasLtMatmulDescSetAttribute, m->desc, attribute, &p, sizeof p);
	return 0;
}

// factor is alpha or beta in the type that the product wants.
typedef union factor {
	double f64;
	float f32;
	int32_t i32;
} factor;

static factor factor_of(uint32_t type, double v)
{
	factor f = {0};
	switch (type) {
	case LORI_R_64F:
		f.f64 = v;
		break;
	case LORI_R_32I:
		f.i32 = (int32_t)v;
		break;
	default:
		f.f32 = (float)v;
	}
	return f;
}

cublasStatus_t lori_cu_matmul_run(const lori_driver *d, CUcontext c, const lori_cublaslt *l, cublasLtHandle_t h,
				  lori_matmul *m, const lori_matmul_run *run, CUstream s, CUresult *r,
				  const char **call)
{
	factor alpha = factor_of(m->scale, run->alpha), beta = factor_of(m->scale, run->beta);
	cublasStatus_t e = 0;
	*r = d->cuCtxSetCurrent(c);
	if (*r)
		return 0;
	if (run->bias)
		e = point(l, m, LORI_DESC_BIAS_POINTER, run->bias, call);
	if (!e && m->scaled)
		e = point(l, m, LORI_DESC_A_SCALE, run->scale_a, call);
	if (!e && m->scaled)
		e = point(l, m, LORI_DESC_B_SCALE, run->scale_b, call);
	if (!e && m->scaled)
		e = point(l, m, LORI_DESC_D_SCALE, run->scale_d, call);
	if (e)
		return e;
	TRY(cublasLtMatmul, h, m->desc, &alpha, (void *)run->a, m->a, (void *)run->b, m->b, &beta, (void *)run->c,
	    m->d, (void *)run->d, m->d, &m->choices[run->choice].algo, (void *)run->workspace, run->workspace_size, s);
	return 0;
}
