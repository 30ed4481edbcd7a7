// The maps of libstdc++, read and written from C. A map is {buckets, their count, first node, count};
// a node is {next, string, handle, hash}. A string of the present ABI is {data, length, 16 bytes} and
// one of the old ABI, with which PyTorch 2.6 is built, {data}, its length 24 bytes before the data.
#include "source.h"

#include <string.h>

typedef struct node {
	struct node *next;
	const char *key;
	size_t length; // the handle in a map of the old ABI
	char own[16]; // short texts lie here
	lx_handle value;
	size_t hash;
} node;

struct lx_map {
	void *buckets;
	size_t bucket_count;
	node *first;
	size_t count;
};

// The version function came with 2.9, the present ABI with 2.7. Where that has a length, the old one
// has a handle, which is an address.
static bool old_strings(const node *n)
{
	return !aoti_torch_abi_version && n->key != n->own && n->length > 1 << 20;
}

lx_handle lx_find(const lx_source *s, const char *name)
{
	const size_t length = strlen(name);
	if (!s->map) {
		for (size_t i = 0; i < s->count; i++)
			if (!strcmp(s->pairs[i].name, name))
				return s->pairs[i].handle;
		return NULL;
	}
	for (const node *n = s->map->first; n; n = n->next) {
		const bool old = old_strings(n);
		const size_t have = old ? ((const size_t *)n->key)[-3] : n->length;
		if (have == length && !memcmp(n->key, name, length))
			return old ? (lx_handle)n->length : n->value;
	}
	return NULL;
}

bool lx_empty(const lx_source *s) { return s->map ? s->map->count == 0 : s->count == 0; }

// Of libstdc++: std::_Hash_bytes and operator new.
size_t _ZSt11_Hash_bytesPKvmm(const void *, size_t, size_t) __attribute__((weak));
void *_Znwm(size_t) __attribute__((weak));

// lx_insert adds what is not there to a map of the present ABI. It does not grow the table, which
// later inserts of the caller do.
lx_error lx_insert(lx_map *m, const char *key, lx_handle value)
{
	const size_t length = strlen(key);
	if (!_ZSt11_Hash_bytesPKvmm || !_Znwm) {
		lx_fail("libstdc++ is not there, whose map is to be written");
		return LX_FAILED;
	}
	node *n = _Znwm(sizeof *n), **bucket = m->buckets;
	char *text = length < sizeof n->own ? n->own : _Znwm(length + 1);
	memcpy(text, key, length + 1);
	n->key = text;
	n->length = length;
	if (text != n->own)
		memcpy(n->own, &length, sizeof length); // its capacity
	n->value = value;
	n->hash = _ZSt11_Hash_bytesPKvmm(key, length, 0xc70f6907UL);
	const size_t at = n->hash % m->bucket_count;
	if (bucket[at]) {
		n->next = bucket[at]->next;
		bucket[at]->next = n;
	} else {
		n->next = m->first;
		m->first = n;
		if (n->next)
			bucket[n->next->hash % m->bucket_count] = n;
		bucket[at] = (node *)&m->first; // as libstdc++, which takes the map for the node before the first
	}
	m->count++;
	return LX_OK;
}
