// Package nn is layers over loris: modules with named parameters, the layers of
// PyTorch under their names, with its initial distributions, and weight files in
// the safetensors format, which PyTorch reads and writes.
//
//	m := nn.NewSequential(
//		nn.NewLinear(64, 32),
//		nn.Func(nn.ReLU),
//		nn.NewLinear(32, 10),
//	)
//	logits := m.Forward(x)                     // records
//	err := nn.Save(ctx, "mlp.safetensors", m, nil)
//
// Parameters are variables, so they live across steps; a layer records their
// initial values, which the next MarkStep computes. Marking a step once after
// building a model keeps the initialisation out of the graph of the first
// training step. Load leaves nothing of the initialisation to compute.
//
// A module of one's own embeds Base and registers what it is made of:
//
//	type Block struct {
//		nn.Base
//		norm *nn.LayerNorm
//		fc   *nn.Linear
//	}
//
//	func NewBlock(dim int) *Block {
//		b := &Block{norm: nn.NewLayerNorm([]int{dim}), fc: nn.NewLinear(dim, dim)}
//		b.Add("norm", b.norm)
//		b.Add("fc", b.fc)
//		return b
//	}
//
//	func (b *Block) Forward(x *loris.Tensor) *loris.Tensor {
//		return x.Add(b.fc.Forward(b.norm.Forward(x)))
//	}
//
// Mistakes in building a layer or a graph panic with a *loris.OpError, as ops
// do; loris.Try returns it.
package nn
