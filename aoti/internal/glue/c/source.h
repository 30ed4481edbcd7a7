// What a caller gives constants in: pairs, or a std::unordered_map<std::string, AtenTensorHandle>.
#pragma once
#include "glue.h"

typedef struct lx_map lx_map;
typedef struct lx_source {
	const lx_pair *pairs;
	size_t count;
	const lx_map *map;
} lx_source;

lx_handle lx_find(const lx_source *source, const char *name);
bool lx_empty(const lx_source *source);
lx_error lx_insert(lx_map *map, const char *key, lx_handle value);
