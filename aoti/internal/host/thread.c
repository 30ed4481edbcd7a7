// What belongs to a thread: the text of its last error, grad mode, and the
// destructors of the thread-local variables of libraries.

#include "shim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT = 2048 };

static _Thread_local char error_text[TEXT];
static _Thread_local bool grad_disabled;

lori_error lori_fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(error_text, sizeof error_text, format, args);
	va_end(args);
	return LORI_FAIL;
}

lori_error lori_fail_text(const char *text) { return lori_fail("%s", text); }

const char *lori_error_text(void) { return error_text; }
void lori_error_clear(void) { error_text[0] = 0; }

bool lori_torch_grad_mode_is_enabled(void) { return !grad_disabled; }
void lori_torch_grad_mode_set_enabled(bool enabled) { grad_disabled = !enabled; }

// A node is one destructor. Each thread has a list, newest first; all lists are
// linked, so that unloading a library finds its destructors on every thread.
typedef struct node {
	struct node *next;
	void (*dtor)(void *);
	void *obj;
	void *dso;
} node;

typedef struct thread_list {
	struct thread_list *next, *prev;
	node *head;
} thread_list;

// exits.lock is held while destructors run, so that no library is unloaded under
// one of them; it is recursive because a destructor may register another.
static struct exits {
	pthread_once_t once;
	pthread_mutex_t lock; // guards lists and every list in it
	pthread_key_t key;    // the thread's list; its destructor is run_all
	bool ready;
	thread_list lists;
} exits = {.once = PTHREAD_ONCE_INIT};

static void run_all(void *arg)
{
	thread_list *l = arg;
	pthread_mutex_lock(&exits.lock);
	for (node *n = l->head; n; n = l->head) {
		l->head = n->next;
		n->dtor(n->obj);
		free(n);
	}
	l->prev->next = l->next;
	l->next->prev = l->prev;
	pthread_mutex_unlock(&exits.lock);
	free(l);
}

static void exits_init(void)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&exits.lock, &attr);
	pthread_mutexattr_destroy(&attr);
	exits.lists.next = exits.lists.prev = &exits.lists;
	exits.ready = pthread_key_create(&exits.key, run_all) == 0;
}

// this_thread returns the thread's list, a new one at first, or NULL.
static thread_list *this_thread(void)
{
	thread_list *l = pthread_getspecific(exits.key);
	if (l)
		return l;
	l = calloc(1, sizeof *l);
	if (!l)
		return NULL;
	if (pthread_setspecific(exits.key, l) != 0) {
		free(l);
		return NULL;
	}
	l->next = exits.lists.next;
	l->prev = &exits.lists;
	l->next->prev = l;
	exits.lists.next = l;
	return l;
}

int __lor_thread_atexit(void (*dtor)(void *), void *obj, void *dso)
{
	pthread_once(&exits.once, exits_init);
	node *n = malloc(sizeof *n);
	if (!exits.ready || !n) {
		free(n);
		return -1;
	}
	pthread_mutex_lock(&exits.lock);
	thread_list *l = this_thread();
	if (l) {
		*n = (node){.next = l->head, .dtor = dtor, .obj = obj, .dso = dso};
		l->head = n;
	}
	pthread_mutex_unlock(&exits.lock);
	if (!l)
		free(n);
	return l ? 0 : -1;
}

int __lor_thread_atexit_impl(void (*dtor)(void *), void *obj, void *dso) { return __lor_thread_atexit(dtor, obj, dso); }

void lori_thread_atexit_unload(const void *low, const void *high)
{
	pthread_once(&exits.once, exits_init);
	pthread_mutex_lock(&exits.lock);
	for (thread_list *l = exits.lists.next; l != &exits.lists; l = l->next) {
		node **at = &l->head;
		while (*at) {
			node *n = *at;
			if ((char *)n->dso < (char *)low || (char *)n->dso >= (char *)high) {
				at = &n->next;
				continue;
			}
			*at = n->next;
			n->dtor(n->obj);
			free(n);
			at = &l->head; // the destructor may have registered another
		}
	}
	pthread_mutex_unlock(&exits.lock);
}
