// Capture and graphs.
#include "fake.h"

static graph *new_graph(enum kind kind, context *ctx)
{
	graph *g = fake_new(kind, sizeof *g);
	g->ctx = ctx;
	g->last = &g->first;
	return g;
}

// copy_items makes to's items those of from.
static void copy_items(graph *to, const graph *from)
{
	while (to->first) {
		item *gone = to->first;
		to->first = gone->next;
		fake_free(gone);
	}
	to->last = &to->first;
	to->nodes = from->nodes;
	for (item *i = from->first; i; i = i->next) {
		item *c = fake_clone(i);
		*to->last = c;
		to->last = &c->next;
	}
}

CUresult cuStreamBeginCapture_v2(CUstream hs, CUstreamCaptureMode mode)
{
	stream *s = (stream *)hs;
	ENTER("mode=%u", mode);
	NEED_OBJECT(s, STREAM);
	NEED(!fake_capture(s) && mode == LORI_CAPTURE_RELAXED);
	s->capture = new_graph(GRAPH, s->ctx);
	s->origin = true;
	LEAVE(0);
}

CUresult cuStreamEndCapture(CUstream hs, CUgraph *out)
{
	stream *s = (stream *)hs;
	ENTER("%s", "");
	NEED_OBJECT(s, STREAM);
	if (!s->capture || !s->origin)
		LEAVE(LORI_ERROR_CAPTURE_UNMATCHED);
	*out = (CUgraph)s->capture;
	s->capture->ended = true;
	s->capture = NULL;
	s->origin = false;
	LEAVE(0);
}

CUresult cuStreamIsCapturing(CUstream hs, CUstreamCaptureStatus *status)
{
	stream *s = (stream *)hs;
	ENTER("%s", "");
	NEED_OBJECT(s, STREAM);
	*status = fake_capture(s) != NULL;
	LEAVE(0);
}

CUresult cuGraphGetNodes(CUgraph h, CUgraphNode *nodes, size_t *n)
{
	graph *g = (graph *)h;
	ENTER("%s", "");
	NEED_OBJECT(g, GRAPH);
	NEED(!nodes);
	*n = g->nodes;
	LEAVE(0);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph h, unsigned long long flags)
{
	graph *g = (graph *)h;
	ENTER("flags=%llu", flags);
	NEED_OBJECT(g, GRAPH);
	graph *x = new_graph(EXEC, g->ctx);
	copy_items(x, g);
	*out = (CUgraphExec)x;
	LEAVE(0);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hx, CUgraph hg, CUgraphExecUpdateResultInfo *info)
{
	graph *x = (graph *)hx, *g = (graph *)hg;
	ENTER("%s", "");
	NEED_OBJECT(x, EXEC);
	NEED_OBJECT(g, GRAPH);
	item *a = x->first, *b = g->first;
	while (a && b && !strcmp(a->what, b->what)) {
		a = a->next;
		b = b->next;
	}
	if (a || b) {
		info->result = LORI_GRAPH_TOPOLOGY_CHANGED;
		LEAVE(LORI_ERROR_GRAPH_UPDATE);
	}
	copy_items(x, g);
	LEAVE(0);
}

CUresult cuGraphLaunch(CUgraphExec h, CUstream hs)
{
	graph *x = (graph *)h;
	stream *s = (stream *)hs;
	ENTER("%s", "");
	NEED_OBJECT(x, EXEC);
	NEED_OBJECT(s, STREAM);
	if (x->ctx != s->ctx)
		LEAVE(LORI_ERROR_INVALID_HANDLE);
	for (item *i = x->first; i; i = i->next) {
		item *c = fake_clone(i);
		c->s = s;
		fake_enqueue(c);
	}
	LEAVE(0);
}

CUresult cuGraphExecDestroy(CUgraphExec x) { DESTROY(x, EXEC); }

CUresult cuGraphDestroy(CUgraph g) { DESTROY(g, GRAPH); }
