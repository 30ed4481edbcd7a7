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
	x->from = g;
	copy_items(x, g);
	*out = (CUgraphExec)x;
	LEAVE(0);
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
	ENTER("flags=%u", flags);
	*out = (CUgraph)new_graph(GRAPH, fake_current());
	LEAVE(0);
}

// add puts items behind the node that is the last one so far.
static CUresult add(graph *g, const CUgraphNode *after, size_t n, item *first, CUgraphNode *out)
{
	item *end = NULL;
	for (item *i = g->first; i; i = i->next)
		end = i;
	if (n != (end != NULL) || (end && *after != end->node)) {
		fake_free(first);
		return LORI_ERROR_INVALID_VALUE;
	}
	node *made = malloc(sizeof *made);
	made->g = g;
	*out = (CUgraphNode)made;
	*g->last = first;
	for (item *i = first; i; i = i->next) {
		i->node = made;
		g->last = &i->next;
	}
	g->nodes++;
	return 0;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph h, const CUgraphNode *after, size_t n,
				 const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	graph *g = (graph *)h;
	ENTER("%s", "");
	NEED_OBJECT(g, GRAPH);
	item *i;
	CUresult r = fake_kernel_item(p, &i);
	LEAVE(r ? r : add(g, after, n, i, out));
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph h, const CUgraphNode *after, size_t n, CUgraph hc)
{
	graph *g = (graph *)h, *child = (graph *)hc, copy = {.last = &copy.first};
	ENTER("%s", "");
	NEED_OBJECT(g, GRAPH);
	NEED_OBJECT(child, GRAPH);
	NEED(child->first);
	copy_items(&copy, child);
	LEAVE(add(g, after, n, copy.first, out));
}

// part returns where the items of a node begin in an executable graph.
static item **part(graph *x, node *n)
{
	if (!fake_is(x->from, GRAPH) || n->g != x->from)
		return NULL;
	for (item **i = &x->first; *i; i = &(*i)->next)
		if ((*i)->node == n)
			return i;
	return NULL;
}

// replace puts an item in the place of one.
static void replace(graph *x, item **at, item *by)
{
	item *was = *at;
	by->node = was->node;
	by->next = was->next;
	if (x->last == &was->next)
		x->last = &by->next;
	*at = by;
	fake_free(was);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec h, CUgraphNode hn, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	graph *x = (graph *)h;
	ENTER("%s", "");
	NEED_OBJECT(x, EXEC);
	item **at = part(x, (node *)hn), *by;
	NEED(at);
	CUresult r = fake_kernel_item(p, &by);
	if (!r)
		replace(x, at, by);
	LEAVE(r);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec h, CUgraphNode hn, CUgraph hc)
{
	graph *x = (graph *)h, *child = (graph *)hc;
	node *n = (node *)hn;
	ENTER("%s", "");
	NEED_OBJECT(x, EXEC);
	NEED_OBJECT(child, GRAPH);
	item **begin = part(x, n), *a = begin ? *begin : NULL, *b = child->first;
	NEED(begin);
	while (a && a->node == n && b && !strcmp(a->what, b->what)) {
		a = a->next;
		b = b->next;
	}
	if ((a && a->node == n) || b)
		LEAVE(LORI_ERROR_GRAPH_UPDATE);
	for (b = child->first; b; b = b->next, begin = &(*begin)->next)
		replace(x, begin, fake_clone(b));
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
