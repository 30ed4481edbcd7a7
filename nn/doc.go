// Package nn has the layers of PyTorch under their names and with its initial
// distributions: modules with named parameters, and weight files in the safetensors
// format, which PyTorch reads and writes.
//
//	m := nn.NewSequential(
//		nn.NewLinear(64, 32),
//		nn.Func(nn.ReLU),
//		nn.NewLinear(32, 10),
//	)
//	logits := m.Forward(x)                     // records
//	err := nn.Save(ctx, "mlp.safetensors", m, nil)
//
// Parameters are variables, so they live across steps; a layer records their initial
// values, which the next MarkStep computes. Marking a step after a model is built keeps the
// initialisation out of the graph of the first training step. After Load no initial value
// is computed.
//
// A module that a program defines embeds Base and registers its variables and inner
// modules:
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
// Load reads weights under other names, in part or in other dtypes (Rename, Partial, CastFloats), and
// Freeze keeps parameters from being trained. NewLSTM and its kind take sequences of any length with
// one compilation for each length. MultiheadAttention and TransformerEncoderLayer decode a token at a
// time with a KVCache.
//
// Mistakes in building a layer or a graph panic with a *loris.OpError; loris.Try returns
// it.
package nn
