package ir

func init() {
	OpSort = register("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", Spec{
		Category: Indexing,
		Doc: "Elements in order along dim and the i64 index each came from, both of self's shape. Equal elements keep their " +
			"order; NaN counts as the largest. ATen's sort.stable.",
		Infer: func(a Args) []Shape {
			s := a.In[0].Shape()
			requireArithmetic(a, s.DType())
			a.Dim("dim", s.Rank())
			return []Shape{s, s.WithDType(I64)}
		},
		VJP: vjpSort,
	})
}
