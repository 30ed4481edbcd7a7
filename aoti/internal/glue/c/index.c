// Reading through indices, for which libtorch has no function that writes to given memory.
#include "glue.h"

#include <string.h>

// An index counts from the end if it is negative.
static bool position(const void *index, int64_t bytes, int64_t i, int64_t size, int64_t *at)
{
	const int64_t v = bytes == 8 ? ((const int64_t *)index)[i] : ((const int32_t *)index)[i];
	*at = v < 0 ? v + size : v;
	if (*at >= 0 && *at < size)
		return true;
	lx_fail("index %lld is out of range for %lld elements", (long long)v, (long long)size);
	return false;
}

lx_error lx_index_select(char *to, const char *from, const void *index, int64_t index_bytes, int64_t outer, int64_t count, int64_t size, int64_t row)
{
	for (int64_t o = 0; o < outer; o++, from += size * row)
		for (int64_t i = 0, at; i < count; i++, to += row) {
			if (!position(index, index_bytes, i, size, &at))
				return LX_FAILED;
			memcpy(to, from + at * row, (size_t)row);
		}
	return LX_OK;
}

// sizes are those of the index, strides those of the source, in bytes.
lx_error lx_gather(char *to, const char *from, const void *index, int64_t index_bytes, int64_t element, int64_t rank, const int64_t *sizes,
		   const int64_t *strides, int64_t dim, int64_t size)
{
	int64_t where[LX_MAX_DIMS] = {0}, n = 1, base = 0;
	for (int64_t d = 0; d < rank; d++)
		n *= sizes[d];
	for (int64_t i = 0, at; i < n; i++, to += element) {
		if (!position(index, index_bytes, i, size, &at))
			return LX_FAILED;
		memcpy(to, from + base + at * strides[dim], (size_t)element);
		for (int64_t d = rank - 1; d >= 0; d--) {
			base += d == dim ? 0 : strides[d];
			if (++where[d] < sizes[d])
				break;
			base -= d == dim ? 0 : sizes[d] * strides[d];
			where[d] = 0;
		}
	}
	return LX_OK;
}
