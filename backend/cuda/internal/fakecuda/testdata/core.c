// The state of the fake, and what tests set and ask.
#include "fake.h"

#include <stdarg.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct fake_config fake_config = {.version = 12090, .devices = 1, .memory = 1 << 30, .peers = 1, .sms = 132};
long fake_live[KINDS];

static const char *const kinds[KINDS] = {"context", "stream", "event", "module", "pool", "memory", "pinned memory",
					 "graph", "executable graph", "blas handle", "matmul description",
					 "matrix layout", "matmul preference", "program", "communicator", "write outside of memory"};

static char *calls; // what was called, a line each
static size_t calls_len, calls_cap;

enum { FAULTS = 16 };
static struct fault {
	char call[64];
	CUresult code;
	long skip; // calls that succeed first
	bool once;
} faults[FAULTS];

static _Thread_local context *current;
static context contexts[16];

static void note(const char *call, const char *args)
{
	size_t need = strlen(call) + strlen(args) + 3;
	if (calls_len + need > calls_cap) {
		calls_cap = 2 * (calls_cap + need);
		calls = realloc(calls, calls_cap);
	}
	calls_len += sprintf(calls + calls_len, "%s%s%s\n", call, *args ? " " : "", args);
}

CUresult fake_enter(const char *call, bool quiet, const char *format, ...)
{
	char args[1024];
	va_list ap;
	va_start(ap, format);
	vsnprintf(args, sizeof args, format, ap);
	va_end(ap);
	pthread_mutex_lock(&fake_lock);
	if (!quiet)
		note(call, args);
	for (struct fault *f = faults; f < faults + FAULTS; f++) {
		if (strcmp(f->call, call) || f->skip-- > 0)
			continue;
		CUresult code = f->code;
		if (f->once)
			*f = (struct fault){0};
		else if (current && (code == LORI_ERROR_ILLEGAL_ADDRESS || code == LORI_ERROR_LAUNCH_FAILED))
			current->lost = code;
		return fake_leave(code);
	}
	return 0;
}

CUresult fake_leave(CUresult r)
{
	pthread_mutex_unlock(&fake_lock);
	return r;
}

void *fake_new(enum kind kind, size_t size)
{
	object *o = calloc(1, size);
	o->kind = kind;
	o->alive = true;
	fake_live[kind]++;
	return o;
}

bool fake_is(const void *p, enum kind kind)
{
	const object *o = p;
	return o && o->alive && o->kind == kind;
}

void fake_end(void *p)
{
	object *o = p;
	o->alive = false;
	fake_live[o->kind]--;
}

context *fake_current(void) { return current; }

context *fake_device_context(int device) { return &contexts[device]; }

CUresult cuCtxSetCurrent(CUcontext c)
{
	context *ctx = (context *)c;
	CUresult r = fake_enter(__func__, true, "%s", "");
	if (r)
		return r;
	if (ctx)
		NEED_OBJECT(ctx, CONTEXT);
	current = ctx;
	LEAVE(0);
}

// fake_set sets an entry of the configuration; false if there is none.
bool fake_set(const char *key, long v)
{
	struct {
		const char *key;
		long *at;
	} entries[] = {
		{"version", &fake_config.version}, {"devices", &fake_config.devices}, {"init", &fake_config.init},
		{"memory", &fake_config.memory},   {"peers", &fake_config.peers}, {"sms", &fake_config.sms},
		{"shuffle", &fake_config.shuffle}, {"trap", &fake_config.trap},   {"algo1", &fake_config.algo1},
		{"algo2", &fake_config.algo2},     {"idle", &fake_config.idle},
	};
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
		if (!strcmp(entries[i].key, key)) {
			pthread_mutex_lock(&fake_lock);
			*entries[i].at = v;
			pthread_mutex_unlock(&fake_lock);
			return true;
		}
	return false;
}

// fake_fail makes calls of a function fail after skip ones; false without room.
bool fake_fail(const char *call, unsigned int code, long skip, bool once)
{
	pthread_mutex_lock(&fake_lock);
	bool room = false;
	for (struct fault *f = faults; f < faults + FAULTS && !room; f++)
		if (!*f->call) {
			*f = (struct fault){.code = code, .skip = skip, .once = once};
			strncpy(f->call, call, sizeof f->call - 1);
			room = true;
		}
	pthread_mutex_unlock(&fake_lock);
	return room;
}

// fake_heal ends all faults.
void fake_heal(void)
{
	pthread_mutex_lock(&fake_lock);
	memset(faults, 0, sizeof faults);
	pthread_mutex_unlock(&fake_lock);
}

// fake_calls returns what was called since the last time; the caller frees it.
char *fake_calls(void)
{
	pthread_mutex_lock(&fake_lock);
	char *out = strndup(calls ? calls : "", calls_len);
	calls_len = 0;
	pthread_mutex_unlock(&fake_lock);
	return out;
}

// fake_count returns how many objects of the i-th kind live and its name, NULL
// behind the last.
const char *fake_count(int i, long *n)
{
	if (i >= KINDS)
		return NULL;
	pthread_mutex_lock(&fake_lock);
	*n = fake_live[i];
	pthread_mutex_unlock(&fake_lock);
	return kinds[i];
}
