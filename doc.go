// Package loris is lazy tensors for Go. Operations on tensors record a graph;
// MarkStep, Sync or a read compiles it, once per distinct graph, and runs it in
// the background.
//
//	x := loris.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
//	y := x.MatMul(x).Relu().Sum(loris.Dim(1))
//	v, err := y.Float32s(ctx)
//
// A Variable lives across steps, Grad records gradients, and Compile turns a
// function into one that is traced once for each signature of its inputs.
//
// Everything belongs to a Session. Functions that make tensors use the default
// session, which begins on the cpu; Session.With makes tensors in another one.
// An operation belongs to the session of its operands.
//
// Operations have ATen's names and meaning: broadcasting, type promotion,
// negative dimensions. Their required arguments are positional and the others options,
// such as Dim(1) and Keepdim(true), whose types the compiler checks; SumOption lists the
// options of Sum. A mistake in building a graph, such as shapes that do not fit, panics
// with an *OpError that names the op, the shapes and the line; Try returns it as an error
// instead. What fails when a graph runs is the error of the calls that wait for its
// results.
package loris

//go:generate go run ./internal/gen/rootops
