// std::unordered_map<std::string, AtenTensorHandle> by hand, for libraries that
// take constants as nothing else. They only read it: they walk the elements, or
// look for a name. One bucket holds all elements.

#include "library.h"

#include <stdlib.h>
#include <string.h>

enum { HASH_SEED = 0xc70f6907 };

// The two layouts of std::string. The old one is a pointer to the characters,
// before which lie their length, capacity and count of references; a negative
// count says that the text must not be shared, so that a copy copies it.
typedef struct old_rep {
	size_t length, capacity;
	int32_t refs;
} old_rep;

typedef struct new_string {
	const char *text;
	size_t length;
	char local[16];
} new_string;

typedef struct node {
	struct node *next;
	union {
		struct {
			new_string name;
			lori_handle handle;
			size_t hash;
		} now;
		struct {
			const char *name;
			lori_handle handle;
			size_t hash;
		} old;
	};
} node;

// table is libstdc++'s _Hashtable.
typedef struct table {
	node **buckets;
	size_t bucket_count;
	node *first; // the address of this field is the element before the first
	size_t count;
	float max_load;
	size_t next_resize;
	node *single_bucket;
} table;

struct lori_map {
	table table;
	node *nodes;
	char *names; // the old strings with their headers, one block
};

static size_t old_size(size_t length) { return (sizeof(old_rep) + length + 1 + 15) & ~(size_t)15; }

static bool allocate(lori_map *m, const lori_pair *pairs, size_t n, bool old_strings)
{
	size_t bytes = 0;
	for (size_t i = 0; i < n && old_strings; i++)
		bytes += old_size(strlen(pairs[i].name));
	m->nodes = calloc(n ? n : 1, sizeof *m->nodes);
	m->names = bytes ? malloc(bytes) : NULL;
	return m->nodes && (m->names || !bytes);
}

lori_map *lori_map_new(const lori_pair *pairs, size_t n, bool old_strings)
{
	const lori_cxx *cxx = lori_cxx_open();
	if (!cxx)
		return NULL;
	lori_map *m = calloc(1, sizeof *m);
	if (!m || !allocate(m, pairs, n, old_strings)) {
		lori_fail("out of memory");
		lori_map_free(m);
		return NULL;
	}
	char *names = m->names;
	for (size_t i = 0; i < n; i++) {
		node *e = &m->nodes[i];
		e->next = i + 1 < n ? e + 1 : NULL;
		size_t length = strlen(pairs[i].name), hash = cxx->hash_bytes(pairs[i].name, length, HASH_SEED);
		if (old_strings) {
			old_rep *rep = (old_rep *)names;
			*rep = (old_rep){.length = length, .capacity = length, .refs = -1};
			char *text = names + sizeof(old_rep);
			memcpy(text, pairs[i].name, length + 1);
			names += old_size(length);
			e->old.name = text;
			e->old.handle = pairs[i].handle;
			e->old.hash = hash;
		} else {
			e->now.name = (new_string){.text = pairs[i].name, .length = length};
			e->now.handle = pairs[i].handle;
			e->now.hash = hash;
		}
	}
	m->table = (table){.bucket_count = 1, .first = n ? m->nodes : NULL, .count = n, .max_load = 1};
	m->table.buckets = &m->table.single_bucket;
	m->table.single_bucket = n ? (node *)&m->table.first : NULL;
	return m;
}

void *lori_map_pointer(lori_map *m) { return &m->table; }

void lori_map_free(lori_map *m)
{
	if (!m)
		return;
	free(m->nodes);
	free(m->names);
	free(m);
}
