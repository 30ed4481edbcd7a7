package ir

func init() {
	const operands = "(Tensor self, Tensor target, "
	register("soft_margin_loss"+operands+"str reduction='mean') -> Tensor", Spec{
		Doc:      "log(1 + exp(-target·self)), with target 1 or -1. reduction is mean, sum or none. Floating dtypes. As torch.nn.functional.soft_margin_loss.",
		Category: Neural, Promote: PromoteDefault, Decompose: elementLoss(func(b *Builder, a Args, x, t Value) Value {
			return b.log1p(b.Exp(b.Neg(b.Mul(t, x))))
		}),
	})
}
