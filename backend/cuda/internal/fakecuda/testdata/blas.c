// Matrix products of f32, f64, i8, 8-bit floats, and f16 that give f32, one element
// after another, with bias, relu and gelu. What has one byte an element has to lie
// as cuBLASLt wants it.
#include "fake.h"

#include <math.h>

typedef struct layout {
	object o;
	uint32_t type;
	uint64_t rows, cols;
	int64_t ld, stride;
	int32_t batch;
} layout;

typedef struct desc {
	object o;
	uint32_t compute, scale, transa, transb, epilogue, bias_type;
	int32_t mode_a, mode_b;
	int8_t fast;
	uint64_t bias, scale_a, scale_b, scale_d;
} desc;

typedef struct preference {
	object o;
	uint64_t workspace;
	uint32_t align[4]; // of a, b, c, d; 0 is cuBLASLt's default, 256
} preference;

// What a product needs when its turn comes.
typedef struct product {
	desc how;
	layout la, lb, ld;
	uint64_t a, b, c, d;
	double alpha, beta;
	uint64_t algo;
} product;

size_t cublasLtGetVersion(void) { return 120900; }

const char *cublasLtGetStatusName(cublasStatus_t s)
{
	return s == LORI_BLAS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INVALID_VALUE";
}

const char *cublasLtGetStatusString(cublasStatus_t s)
{
	return s == LORI_BLAS_NOT_SUPPORTED ? "the requested functionality is not supported" : "an invalid value";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
	ENTER("%s", "");
	*out = fake_new(BLAS, sizeof(object));
	LEAVE(0);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) { DESTROY(h, BLAS); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType scale)
{
	ENTER("compute=%u scale=%u", compute, scale);
	desc *d = fake_new(DESC, sizeof *d);
	d->compute = compute;
	d->scale = scale;
	*out = (cublasLtMatmulDesc_t)d;
	LEAVE(0);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { DESTROY(d, DESC); }

// store copies an attribute of the right size.
static CUresult store(void *to, size_t want, const void *from, size_t size)
{
	if (!to || want != size)
		return LORI_BLAS_INVALID_VALUE;
	memcpy(to, from, size);
	return 0;
}

#define STORE(field) LEAVE(store(&field, sizeof field, v, size))

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t h, cublasLtMatmulDescAttributes_t a, const void *v,
					      size_t size)
{
	desc *d = (desc *)h;
	ENTER("%u size=%zu", a, size);
	NEED_OBJECT(d, DESC);
	switch (a) {
	case LORI_DESC_TRANSA:
		STORE(d->transa);
	case LORI_DESC_TRANSB:
		STORE(d->transb);
	case LORI_DESC_EPILOGUE:
		STORE(d->epilogue);
	case LORI_DESC_BIAS_TYPE:
		STORE(d->bias_type);
	case LORI_DESC_BIAS_POINTER:
		STORE(d->bias);
	case LORI_DESC_A_SCALE:
		STORE(d->scale_a);
	case LORI_DESC_B_SCALE:
		STORE(d->scale_b);
	case LORI_DESC_D_SCALE:
		STORE(d->scale_d);
	case LORI_DESC_A_SCALE_MODE:
		STORE(d->mode_a);
	case LORI_DESC_B_SCALE_MODE:
		STORE(d->mode_b);
	case LORI_DESC_FAST_ACCUM:
		STORE(d->fast);
	}
	LEAVE(LORI_BLAS_INVALID_VALUE);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t cols,
					  int64_t ld)
{
	ENTER("type=%u %llux%llu ld=%lld", type, (unsigned long long)rows, (unsigned long long)cols, (long long)ld);
	if ((uint64_t)ld < rows)
		LEAVE(LORI_BLAS_INVALID_VALUE);
	layout *l = fake_new(LAYOUT, sizeof *l);
	l->type = type;
	l->rows = rows;
	l->cols = cols;
	l->ld = ld;
	l->batch = 1;
	*out = (cublasLtMatrixLayout_t)l;
	LEAVE(0);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { DESTROY(l, LAYOUT); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t h, cublasLtMatrixLayoutAttribute_t a,
						const void *v, size_t size)
{
	layout *l = (layout *)h;
	ENTER("%u size=%zu", a, size);
	NEED_OBJECT(l, LAYOUT);
	switch (a) {
	case LORI_LAYOUT_BATCH_COUNT:
		STORE(l->batch);
	case LORI_LAYOUT_BATCH_STRIDE:
		STORE(l->stride);
	}
	LEAVE(LORI_BLAS_INVALID_VALUE);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
	ENTER("%s", "");
	*out = (cublasLtMatmulPreference_t)fake_new(PREFERENCE, sizeof(preference));
	LEAVE(0);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { DESTROY(p, PREFERENCE); }

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t h,
						    cublasLtMatmulPreferenceAttributes_t a, const void *v, size_t size)
{
	preference *p = (preference *)h;
	ENTER("%u size=%zu", a, size);
	NEED_OBJECT(p, PREFERENCE);
	switch (a) {
	case LORI_PREFERENCE_WORKSPACE:
		STORE(p->workspace);
	case LORI_PREFERENCE_ALIGN_A ... LORI_PREFERENCE_ALIGN_D:
		STORE(p->align[a - LORI_PREFERENCE_ALIGN_A]);
	}
	LEAVE(LORI_BLAS_INVALID_VALUE);
}

// fits reports whether the shapes of a product go together.
static bool fits(const desc *d, const layout *a, const layout *b, const layout *c)
{
	uint64_t m = d->transa ? a->cols : a->rows, k = d->transa ? a->rows : a->cols;
	uint64_t k2 = d->transb ? b->cols : b->rows, n = d->transb ? b->rows : b->cols;
	return k == k2 && m == c->rows && n == c->cols && a->batch == c->batch && b->batch == c->batch;
}

static bool eight_bits(uint32_t type) { return type == LORI_R_8F_E4M3 || type == LORI_R_8F_E5M2; }

// along_depth reports whether both factors lie along the depth, in units of so many
// elements.
static bool along_depth(const desc *d, const layout *a, const layout *b, const layout *c, int unit)
{
	return d->transa == LORI_OP_T && d->transb == LORI_OP_N && a->rows % unit == 0 && c->rows % unit == 0 &&
	       a->ld % unit == 0 && b->ld % unit == 0;
}

// narrow reports whether there is a product of 8-bit floats.
static bool narrow(const desc *d, const layout *a, const layout *b, const layout *c)
{
	if (!along_depth(d, a, b, c, 16) || d->compute != LORI_COMPUTE_32F || d->mode_a != d->mode_b ||
	    (a->type == LORI_R_8F_E5M2 && b->type == LORI_R_8F_E5M2))
		return false;
	uint32_t bias = c->type == LORI_R_16F ? LORI_R_16F : LORI_R_16BF;
	if (d->epilogue & LORI_EPILOGUE_BIAS && d->bias_type != bias)
		return false;
	return c->type == LORI_R_32F || c->type == LORI_R_16F || c->type == LORI_R_16BF;
}

static bool computes(const desc *d, const layout *a, const layout *b, const layout *c)
{
	switch (d->epilogue) { // the combinations that there are
	case LORI_EPILOGUE_DEFAULT:
	case LORI_EPILOGUE_RELU:
	case LORI_EPILOGUE_BIAS:
	case LORI_EPILOGUE_RELU | LORI_EPILOGUE_BIAS:
	case LORI_EPILOGUE_GELU:
	case LORI_EPILOGUE_GELU | LORI_EPILOGUE_BIAS:
		break;
	default:
		return false;
	}
	if (eight_bits(a->type) && eight_bits(b->type))
		return narrow(d, a, b, c);
	if (a->type != b->type || d->mode_a || d->mode_b)
		return false;
	switch (a->type) {
	case LORI_R_16F:
		return c->type == LORI_R_32F && d->compute == LORI_COMPUTE_32F;
	case LORI_R_32F:
		return c->type == LORI_R_32F && (d->compute == LORI_COMPUTE_32F || d->compute == LORI_COMPUTE_TF32);
	case LORI_R_64F:
		return c->type == LORI_R_64F && d->compute == LORI_COMPUTE_64F;
	case LORI_R_8I:
		return c->type == LORI_R_32I && d->compute == LORI_COMPUTE_32I && along_depth(d, a, b, c, 4);
	}
	return false;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t hd, cublasLtMatrixLayout_t ha,
					      cublasLtMatrixLayout_t hb, cublasLtMatrixLayout_t hc,
					      cublasLtMatrixLayout_t hd2, cublasLtMatmulPreference_t hp, int want,
					      cublasLtMatmulHeuristicResult_t *out, int *n)
{
	desc *d = (desc *)hd;
	layout *a = (layout *)ha, *b = (layout *)hb, *c = (layout *)hc;
	preference *p = (preference *)hp;
	ENTER("%d", want);
	NEED_OBJECT(h, BLAS);
	NEED_OBJECT(hd2, LAYOUT);
	*n = 0;
	if (!fits(d, a, b, c))
		LEAVE(LORI_BLAS_INVALID_VALUE);
	if (!computes(d, a, b, c))
		LEAVE(LORI_BLAS_NOT_SUPPORTED);
	// An algorithm relies on the alignment that was promised for each matrix.
	uint64_t align = 0;
	for (int i = 0; i < 4; i++)
		align |= (uint64_t)(p->align[i] ? p->align[i] : 256) << 16 * i;
	out[(*n)++] = (cublasLtMatmulHeuristicResult_t){.algo = {{1, align}}, .wavesCount = 1};
	if (p->workspace >= 1024 && want > 1)
		out[(*n)++] = (cublasLtMatmulHeuristicResult_t){.algo = {{2, align}}, .workspaceSize = 1024, .wavesCount = 0.5f};
	LEAVE(0);
}

// widen is the number of a float with so many bits of exponent and mantissa.
static double widen(uint32_t bits, int exponent, int mantissa)
{
	double sign = bits >> (exponent + mantissa) ? -1 : 1;
	int e = bits >> mantissa & ((1 << exponent) - 1), bias = (1 << (exponent - 1)) - 1;
	int m = bits & ((1 << mantissa) - 1);
	return sign * (e ? ldexp(m + (1 << mantissa), e - bias - mantissa) : ldexp(m, 1 - bias - mantissa));
}

// narrowed is the pattern of a number in the range of normal ones, or 0.
static uint32_t narrowed(double v, int exponent, int mantissa)
{
	int e;
	double m = frexp(fabs(v), &e); // 0.5 ≤ m < 1
	e += (1 << (exponent - 1)) - 2;
	uint32_t sign = (uint32_t)(v < 0) << (exponent + mantissa);
	return v && e > 0 ? sign | (((uint32_t)e << mantissa) + (uint32_t)(rint(ldexp(m, mantissa + 1)) - (1 << mantissa))) : sign;
}

static double get(uint32_t type, uint64_t p, int64_t i)
{
	switch (type) {
	case LORI_R_32F:
		return ((float *)p)[i];
	case LORI_R_64F:
		return ((double *)p)[i];
	case LORI_R_16F:
		return widen(((uint16_t *)p)[i], 5, 10);
	case LORI_R_16BF:
		return widen(((uint16_t *)p)[i], 8, 7);
	case LORI_R_8F_E4M3:
		return widen(((uint8_t *)p)[i], 4, 3);
	case LORI_R_8F_E5M2:
		return widen(((uint8_t *)p)[i], 5, 2);
	case LORI_R_8I:
		return ((int8_t *)p)[i];
	default:
		return ((int32_t *)p)[i];
	}
}

static void put(uint32_t type, uint64_t p, int64_t i, double v)
{
	switch (type) {
	case LORI_R_32F:
		((float *)p)[i] = (float)v;
		break;
	case LORI_R_64F:
		((double *)p)[i] = v;
		break;
	case LORI_R_16F:
		((uint16_t *)p)[i] = narrowed(v, 5, 10);
		break;
	case LORI_R_16BF:
		((uint16_t *)p)[i] = narrowed(v, 8, 7);
		break;
	default:
		((int32_t *)p)[i] = (int32_t)v;
	}
}

static uint64_t width(uint32_t type)
{
	switch (type) {
	case LORI_R_64F:
		return 8;
	case LORI_R_16F:
	case LORI_R_16BF:
		return 2;
	case LORI_R_8I:
	case LORI_R_8F_E4M3:
	case LORI_R_8F_E5M2:
		return 1;
	}
	return 4;
}

// scale_of is one of the factors at p, 1 where there are none.
static double scale_of(uint64_t p, int32_t mode, int64_t i) { return p ? ((float *)p)[mode ? i : 0] : 1; }

static bool inside(const layout *l, uint64_t p)
{
	uint64_t n = (l->batch - 1) * l->stride + (l->cols - 1) * l->ld + l->rows;
	return fake_device_range(p, n * width(l->type));
}

static CUresult multiply(item *it)
{
	product *p = it->own;
	fake_skipped += p->algo == 2 ? fake_config.algo2 : fake_config.algo1;
	const layout *a = &p->la, *b = &p->lb, *d = &p->ld;
	if (!inside(a, p->a) || !inside(b, p->b) || !inside(d, p->d))
		return LORI_ERROR_ILLEGAL_ADDRESS;
	const struct { uint64_t at; int32_t mode; uint64_t n; } scales[] = {
		{p->how.scale_a, p->how.mode_a, d->rows}, {p->how.scale_b, p->how.mode_b, d->cols},
	};
	for (int i = 0; i < 2; i++)
		if (scales[i].mode ? !scales[i].at || !fake_device_range(scales[i].at, 4 * scales[i].n)
				   : scales[i].at && !fake_device_range(scales[i].at, 4))
			return LORI_ERROR_ILLEGAL_ADDRESS;
	int64_t k = p->how.transa ? a->rows : a->cols;
	for (int64_t z = 0; z < d->batch; z++)
		for (int64_t j = 0; j < (int64_t)d->cols; j++)
			for (int64_t i = 0; i < (int64_t)d->rows; i++) {
				double sum = 0;
				for (int64_t l = 0; l < k; l++) {
					int64_t at = p->how.transa ? i * a->ld + l : l * a->ld + i;
					int64_t bt = p->how.transb ? l * b->ld + j : j * b->ld + l;
					sum += get(a->type, p->a, z * a->stride + at) *
					       get(b->type, p->b, z * b->stride + bt);
				}
				int64_t dt = z * d->stride + j * d->ld + i;
				sum *= p->alpha * scale_of(p->how.scale_a, p->how.mode_a, i) *
				       scale_of(p->how.scale_b, p->how.mode_b, j);
				if (p->beta != 0)
					sum += p->beta * get(d->type, p->c, dt);
				if (p->how.epilogue & LORI_EPILOGUE_BIAS)
					sum += get(p->how.bias_type, p->how.bias, i);
				if (p->how.epilogue & LORI_EPILOGUE_RELU && sum < 0)
					sum = 0;
				if (p->how.epilogue & LORI_EPILOGUE_GELU)
					sum = sum / 2 * (1 + tanh(0.7978845608 * (sum + 0.044715 * sum * sum * sum)));
				put(d->type, p->d, dt, sum);
			}
	return 0;
}

static double factor_of(uint32_t type, const void *p)
{
	return type == LORI_R_64F ? *(double *)p : type == LORI_R_32I ? *(int32_t *)p : *(float *)p;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t hd, const void *alpha, const void *a,
			      cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
			      const void *c, cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld,
			      const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size, cudaStream_t s)
{
	desc *how = (desc *)hd;
	ENTER("algo=%llu workspace=%zu epilogue=%u", (unsigned long long)algo->data[0], size, how->epilogue);
	NEED_OBJECT(h, BLAS);
	NEED_OBJECT(lc, LAYOUT);
	if (algo->data[0] == 2 && (size < 1024 || !fake_device_range((uint64_t)workspace, 1024)))
		LEAVE(LORI_BLAS_INVALID_VALUE);
	const uint64_t at[4] = {(uint64_t)a, (uint64_t)b, (uint64_t)c, (uint64_t)d};
	for (int i = 0; i < 4; i++)
		if (at[i] % (algo->data[1] >> 16 * i & 0xffff))
			LEAVE(LORI_BLAS_INVALID_VALUE);
	product *p = malloc(sizeof *p);
	*p = (product){*how, *(layout *)la, *(layout *)lb, *(layout *)ld, (uint64_t)a, (uint64_t)b, (uint64_t)c,
		       (uint64_t)d, factor_of(how->scale, alpha), factor_of(how->scale, beta), algo->data[0]};
	item *i = fake_item((stream *)s, "matmul", multiply);
	i->own = p;
	i->own_size = sizeof *p;
	LEAVE(fake_enqueue(i));
}
