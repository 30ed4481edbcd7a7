package ir

func init() {
	OpCumsum = register("cumsum(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Spec{
		Category: Scan,
		Doc: "Running sum along dim, of self's shape. Elements are converted to the result dtype first: dtype, else i64 for " +
			"integers and bool, else self's. ATen's cumsum.",
		Infer: inferScan,
		VJP:   vjpCumsum,
	})
	OpCumprod = register("cumprod(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Spec{
		Category: Scan,
		Doc:      "Running product along dim, of self's shape, with the dtypes of cumsum. ATen's cumprod.",
		Infer:    inferScan,
		VJP:      vjpCumprod,
	})
	OpCummax = register("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", Spec{
		Category: Scan,
		Doc: "Running maximum along dim and the i64 index where it stands, the later of equal ones; a NaN stays the maximum " +
			"once met. Both have self's shape. ATen's cummax.",
		Infer: func(a Args) []Shape {
			s := a.In[0].Shape()
			requireArithmetic(a, s.DType())
			a.Dim("dim", s.Rank())
			return []Shape{s, s.WithDType(I64)}
		},
		VJP: vjpCummax,
	})
}

func inferScan(a Args) []Shape {
	d := accumulateDType(a)
	if d == Bool {
		a.Fail(ErrDType, "not defined for dtype bool")
	}
	s := a.In[0].Shape()
	a.Dim("dim", s.Rank())
	return []Shape{s.WithDType(d)}
}
