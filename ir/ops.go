package ir

// The primitive ops: those that backends have kernels for. Their rows are filled
// in by init functions (a literal table whose gradients build nodes would be an
// initialisation cycle); composites need no variable here.
var (
	OpNeg, OpAbs, OpSign, OpExp, OpExp2, OpExpm1, OpLog, OpLog2, OpLog10, OpLog1p, OpSqrt, OpRsqrt, OpReciprocal, OpSin, OpCos, OpTan, OpAsin, OpAcos, OpAtan, OpSinh, OpCosh, OpTanh, OpAsinh, OpAcosh, OpAtanh, OpSigmoid, OpRelu, OpErf, OpErfinv, OpFloor, OpCeil, OpRound, OpTrunc, OpIsNaN, OpIsInf, OpIsFinite, OpLogicalNot, OpBitwiseNot                                  Op
	OpAdd, OpSub, OpMul, OpDiv, OpFloorDivide, OpTruncDivide, OpRemainder, OpFmod, OpPow, OpAtan2, OpMaximum, OpMinimum, OpEq, OpNe, OpLt, OpLe, OpGt, OpGe, OpLogicalAnd, OpLogicalOr, OpLogicalXor, OpBitwiseAnd, OpBitwiseOr, OpBitwiseXor, OpBitwiseLeftShift, OpBitwiseRightShift                                                                                             Op
	OpCast, OpWhere, OpSum, OpProd, OpAmax, OpAmin, OpArgmax, OpArgmin, OpAny, OpAll, OpCumsum, OpCumprod, OpCummax, OpReshape, OpPermute, OpExpand, OpSlice, OpFlip, OpCat, OpConstantPadNd, OpFull, OpArange, OpLinspace, OpGather, OpScatter, OpScatterReduce, OpIndexSelect, OpIndexAdd, OpSort, OpMatMul, OpConvolution, OpMaxPoolWithIndices, OpUniform, OpNormal, OpRandint Op
)

// Neg records neg(x), elementwise.
func (b *Builder) Neg(x Value) Value { return b.Unary(OpNeg, x) }

// Abs records abs(x), elementwise.
func (b *Builder) Abs(x Value) Value { return b.Unary(OpAbs, x) }

// Sign records sign(x), elementwise.
func (b *Builder) Sign(x Value) Value { return b.Unary(OpSign, x) }

// Exp records exp(x), elementwise.
func (b *Builder) Exp(x Value) Value { return b.Unary(OpExp, x) }

// Exp2 records exp2(x), elementwise.
func (b *Builder) Exp2(x Value) Value { return b.Unary(OpExp2, x) }

// Expm1 records expm1(x), elementwise.
func (b *Builder) Expm1(x Value) Value { return b.Unary(OpExpm1, x) }

// Log records log(x), elementwise.
func (b *Builder) Log(x Value) Value { return b.Unary(OpLog, x) }

// Log2 records log2(x), elementwise.
func (b *Builder) Log2(x Value) Value { return b.Unary(OpLog2, x) }

// Log10 records log10(x), elementwise.
func (b *Builder) Log10(x Value) Value { return b.Unary(OpLog10, x) }

// Log1p records log1p(x), elementwise.
func (b *Builder) Log1p(x Value) Value { return b.Unary(OpLog1p, x) }

// Sqrt records sqrt(x), elementwise.
func (b *Builder) Sqrt(x Value) Value { return b.Unary(OpSqrt, x) }

// Rsqrt records rsqrt(x), elementwise.
func (b *Builder) Rsqrt(x Value) Value { return b.Unary(OpRsqrt, x) }

// Reciprocal records reciprocal(x), elementwise.
func (b *Builder) Reciprocal(x Value) Value { return b.Unary(OpReciprocal, x) }

// Sin records sin(x), elementwise.
func (b *Builder) Sin(x Value) Value { return b.Unary(OpSin, x) }

// Cos records cos(x), elementwise.
func (b *Builder) Cos(x Value) Value { return b.Unary(OpCos, x) }

// Tan records tan(x), elementwise.
func (b *Builder) Tan(x Value) Value { return b.Unary(OpTan, x) }

// Asin records asin(x), elementwise.
func (b *Builder) Asin(x Value) Value { return b.Unary(OpAsin, x) }

// Acos records acos(x), elementwise.
func (b *Builder) Acos(x Value) Value { return b.Unary(OpAcos, x) }

// Atan records atan(x), elementwise.
func (b *Builder) Atan(x Value) Value { return b.Unary(OpAtan, x) }

// Sinh records sinh(x), elementwise.
func (b *Builder) Sinh(x Value) Value { return b.Unary(OpSinh, x) }

// Cosh records cosh(x), elementwise.
func (b *Builder) Cosh(x Value) Value { return b.Unary(OpCosh, x) }

// Tanh records tanh(x), elementwise.
func (b *Builder) Tanh(x Value) Value { return b.Unary(OpTanh, x) }

// Asinh records asinh(x), elementwise.
func (b *Builder) Asinh(x Value) Value { return b.Unary(OpAsinh, x) }

// Acosh records acosh(x), elementwise.
func (b *Builder) Acosh(x Value) Value { return b.Unary(OpAcosh, x) }

// Atanh records atanh(x), elementwise.
func (b *Builder) Atanh(x Value) Value { return b.Unary(OpAtanh, x) }

// Sigmoid records sigmoid(x), elementwise.
func (b *Builder) Sigmoid(x Value) Value { return b.Unary(OpSigmoid, x) }

// Relu records relu(x), elementwise.
func (b *Builder) Relu(x Value) Value { return b.Unary(OpRelu, x) }

// Erf records erf(x), elementwise.
func (b *Builder) Erf(x Value) Value { return b.Unary(OpErf, x) }

// Erfinv records erfinv(x), elementwise.
func (b *Builder) Erfinv(x Value) Value { return b.Unary(OpErfinv, x) }

// Floor records floor(x), elementwise.
func (b *Builder) Floor(x Value) Value { return b.Unary(OpFloor, x) }

// Ceil records ceil(x), elementwise.
func (b *Builder) Ceil(x Value) Value { return b.Unary(OpCeil, x) }

// Round records round(x), elementwise.
func (b *Builder) Round(x Value) Value { return b.Unary(OpRound, x) }

// Trunc records trunc(x), elementwise.
func (b *Builder) Trunc(x Value) Value { return b.Unary(OpTrunc, x) }

// IsNaN records isnan(x), elementwise.
func (b *Builder) IsNaN(x Value) Value { return b.Unary(OpIsNaN, x) }

// IsInf records isinf(x), elementwise.
func (b *Builder) IsInf(x Value) Value { return b.Unary(OpIsInf, x) }

// IsFinite records isfinite(x), elementwise.
func (b *Builder) IsFinite(x Value) Value { return b.Unary(OpIsFinite, x) }

// LogicalNot records logical_not(x), elementwise.
func (b *Builder) LogicalNot(x Value) Value { return b.Unary(OpLogicalNot, x) }

// BitwiseNot records bitwise_not(x), elementwise.
func (b *Builder) BitwiseNot(x Value) Value { return b.Unary(OpBitwiseNot, x) }

// Add records add(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Add(x, y Value) Value { return b.Binary(OpAdd, x, y) }

// Sub records sub(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Sub(x, y Value) Value { return b.Binary(OpSub, x, y) }

// Mul records mul(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Mul(x, y Value) Value { return b.Binary(OpMul, x, y) }

// Div records div(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Div(x, y Value) Value { return b.Binary(OpDiv, x, y) }

// FloorDivide records floor_divide(x, y), elementwise with broadcasting and promotion.
func (b *Builder) FloorDivide(x, y Value) Value { return b.Binary(OpFloorDivide, x, y) }

// TruncDivide records trunc_divide(x, y), elementwise with broadcasting and promotion.
func (b *Builder) TruncDivide(x, y Value) Value { return b.Binary(OpTruncDivide, x, y) }

// Remainder records remainder(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Remainder(x, y Value) Value { return b.Binary(OpRemainder, x, y) }

// Fmod records fmod(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Fmod(x, y Value) Value { return b.Binary(OpFmod, x, y) }

// Pow records pow(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Pow(x, y Value) Value { return b.Binary(OpPow, x, y) }

// Atan2 records atan2(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Atan2(x, y Value) Value { return b.Binary(OpAtan2, x, y) }

// Maximum records maximum(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Maximum(x, y Value) Value { return b.Binary(OpMaximum, x, y) }

// Minimum records minimum(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Minimum(x, y Value) Value { return b.Binary(OpMinimum, x, y) }

// Eq records eq(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Eq(x, y Value) Value { return b.Binary(OpEq, x, y) }

// Ne records ne(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Ne(x, y Value) Value { return b.Binary(OpNe, x, y) }

// Lt records lt(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Lt(x, y Value) Value { return b.Binary(OpLt, x, y) }

// Le records le(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Le(x, y Value) Value { return b.Binary(OpLe, x, y) }

// Gt records gt(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Gt(x, y Value) Value { return b.Binary(OpGt, x, y) }

// Ge records ge(x, y), elementwise with broadcasting and promotion.
func (b *Builder) Ge(x, y Value) Value { return b.Binary(OpGe, x, y) }

// LogicalAnd records logical_and(x, y), elementwise with broadcasting and promotion.
func (b *Builder) LogicalAnd(x, y Value) Value { return b.Binary(OpLogicalAnd, x, y) }

// LogicalOr records logical_or(x, y), elementwise with broadcasting and promotion.
func (b *Builder) LogicalOr(x, y Value) Value { return b.Binary(OpLogicalOr, x, y) }

// LogicalXor records logical_xor(x, y), elementwise with broadcasting and promotion.
func (b *Builder) LogicalXor(x, y Value) Value { return b.Binary(OpLogicalXor, x, y) }

// BitwiseAnd records bitwise_and(x, y), elementwise with broadcasting and promotion.
func (b *Builder) BitwiseAnd(x, y Value) Value { return b.Binary(OpBitwiseAnd, x, y) }

// BitwiseOr records bitwise_or(x, y), elementwise with broadcasting and promotion.
func (b *Builder) BitwiseOr(x, y Value) Value { return b.Binary(OpBitwiseOr, x, y) }

// BitwiseXor records bitwise_xor(x, y), elementwise with broadcasting and promotion.
func (b *Builder) BitwiseXor(x, y Value) Value { return b.Binary(OpBitwiseXor, x, y) }

// BitwiseLeftShift records bitwise_left_shift(x, y), elementwise with broadcasting and promotion.
func (b *Builder) BitwiseLeftShift(x, y Value) Value { return b.Binary(OpBitwiseLeftShift, x, y) }

// BitwiseRightShift records bitwise_right_shift(x, y), elementwise with broadcasting and promotion.
func (b *Builder) BitwiseRightShift(x, y Value) Value { return b.Binary(OpBitwiseRightShift, x, y) }
