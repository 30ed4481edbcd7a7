// Package torchexport runs and trains programs that torch.export.save wrote, in pure Go: without
// PyTorch, Python, cgo or a compiler, on every system and device that Loris has.
//
//	m, err := torchexport.Load(ctx, "model.pt2")
//	outs, err := m.Call(ctx, x)
//
// A [Model] records the program's ops as lazy tensors and holds its weights as Variables under
// PyTorch's names. So it is a module for package nn and for optimisers like any other: gradients flow
// through it, loris.Compile makes one function of it, weights are saved, loaded and frozen. Batches and
// sequences may have any size that the export left open.
//
// Ops in place, also on views, mean what they mean in PyTorch. Dropout and batch norm train if the model
// was exported in training mode, and don't otherwise. Nothing of a file is executed.
package torchexport
