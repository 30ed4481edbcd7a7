package onnx

import (
	"slices"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// exportRows are the ops that ONNX can say, by ATen's names.
var exportRows = exportTable()

func exportTable() map[string]*exportRow {
	t := map[string]*exportRow{}
	for name, op := range map[string]string{
		"abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil",
		"cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log", "neg": "Neg", "reciprocal": "Reciprocal",
		"relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan",
		"tanh": "Tanh", "isnan": "IsNaN", "isinf": "IsInf", "hardswish": "HardSwish", "mish": "Mish", "softsign": "Softsign",
	} {
		t[name] = &exportRow{write: exportUnary(op)}
	}
	for name, op := range map[string]string{
		"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min", "matmul": "MatMul",
		"eq": "Equal", "gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less", "le": "LessOrEqual", "bitwise_and": "BitwiseAnd",
		"bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor",
	} {
		t[name] = &exportRow{write: exportBinary(op)}
	}
	for name, op := range map[string]string{"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"} {
		t[name] = &exportRow{write: exportLogical(op)}
	}
	for name, op := range map[string]string{"sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd", "mean": "ReduceMean"} {
		t[name] = &exportRow{write: exportReduction(op)}
	}
	for name, op := range map[string]string{"argmax": "ArgMax", "argmin": "ArgMin"} {
		t[name] = &exportRow{write: exportArg(op)}
	}
	for name, op := range map[string]string{"softmax": "Softmax", "log_softmax": "LogSoftmax"} {
		t[name] = &exportRow{takes: func(a ir.Args) bool { return a.In[0].DType().IsFloat() && a.Get("dtype") == nil && a.In[0].Rank() > 0 }, write: func(x *exportCall) []string {
			return []string{x.emit(op, x.in, attrInt("axis", x.a.Dim("dim", x.rank(0))))}
		}}
	}
	for name, write := range map[string]func(x *exportCall) []string{
		"ne": exportNe, "logical_not": exportNot, "signbit": exportSignbit, "rsqrt": exportRsqrt, "expm1": exportExpm1, "log1p": exportLog1p, "cast": exportCast,
		"where": exportWhere, "cat": exportCat, "permute": exportPermute, "reshape": exportReshape, "expand": exportExpand, "slice": exportSlice,
		"flip": exportFlip, "index_select": exportIndexSelect, "gather": exportGather, "scatter": exportScatter, "constant_pad_nd": exportPad,
		"cumsum": exportCumsum, "full": exportFull, "arange": exportArange, "convolution": exportConvolution,
		"max_pool_with_indices": exportMaxPool, "sort": exportSort, "linear": exportLinear,
	} {
		t[name] = &exportRow{write: write}
	}
	t["gelu"] = &exportRow{write: func(x *exportCall) []string {
		return []string{x.emit("Gelu", x.in, attrText("approximate", x.a.Str("approximate")))}
	}}
	t["layer_norm"] = &exportRow{takes: func(a ir.Args) bool { return a.Get("weight") == 1 && a.In[0].DType() == ir.F32 }, write: func(x *exportCall) []string {
		eps, _ := x.a.OptFloat("eps")
		return []string{x.emit("LayerNormalization", x.in, attrInt("axis", -len(x.a.Ints("normalized_shape"))), attrFloat("epsilon", eps))}
	}}
	return t
}

// exportUnary converts integers first where the result is floating.
func exportUnary(op string) func(x *exportCall) []string {
	return func(x *exportCall) []string {
		in, d := x.in[0], x.dtype(0)
		if to := x.outs[0].DType(); to.IsFloat() {
			in = x.cast(in, d, to)
		} else if to == ir.Bool && !d.IsFloat() {
			in = x.cast(in, d, ir.F32)
		} else if to.IsInt() && slices.Contains([]string{"Ceil", "Floor", "Round"}, op) {
			return []string{in}
		}
		return []string{x.emit(op, []string{in})}
	}
}

// exportBinary brings both operands to the dtype of the result, or of comparisons to one of them. Sums and
// products of bool are or and and.
func exportBinary(op string) func(x *exportCall) []string {
	return func(x *exportCall) []string {
		d := x.outs[0].DType()
		if d == ir.Bool && x.dtype(0) == ir.Bool && x.dtype(1) == ir.Bool {
			switch op {
			case "Add", "Max", "BitwiseOr":
				op = "Or"
			case "Mul", "Min", "BitwiseAnd":
				op = "And"
			case "BitwiseXor":
				op = "Xor"
			case "Equal":
			default:
				return nil
			}
			return []string{x.emit(op, x.in)}
		}
		if d == ir.Bool {
			d = x.dtype(0)
		}
		return []string{x.emit(op, []string{x.cast(x.in[0], x.dtype(0), d), x.cast(x.in[1], x.dtype(1), d)})}
	}
}

func exportLogical(op string) func(x *exportCall) []string {
	return func(x *exportCall) []string {
		return []string{x.emit(op, []string{x.cast(x.in[0], x.dtype(0), ir.Bool), x.cast(x.in[1], x.dtype(1), ir.Bool)})}
	}
}

func exportNe(x *exportCall) []string {
	return []string{x.emit("Not", []string{x.emit("Equal", x.in)})}
}

func exportNot(x *exportCall) []string {
	return []string{x.emit("Not", []string{x.cast(x.in[0], x.dtype(0), ir.Bool)})}
}

// exportSignbit tells zeros by their reciprocals. ONNX has no op that tells the signs of NaNs, which
// count as positive.
func exportSignbit(x *exportCall) []string {
	in, d := x.in[0], x.dtype(0)
	if d == ir.Bool {
		in, d = x.cast(in, d, ir.U8), ir.U8
	}
	below := func(in string) string { return x.emit("Less", []string{in, x.number(d, 0)}) }
	if !d.IsFloat() {
		return []string{below(in)}
	}
	return []string{x.emit("Or", []string{below(in), below(x.emit("Reciprocal", []string{in}))})}
}

func exportRsqrt(x *exportCall) []string {
	in := x.cast(x.in[0], x.dtype(0), x.outs[0].DType())
	return []string{x.emit("Reciprocal", []string{x.emit("Sqrt", []string{in})})}
}

func exportExpm1(x *exportCall) []string {
	d := x.outs[0].DType()
	e := x.emit("Exp", []string{x.cast(x.in[0], x.dtype(0), d)})
	return []string{x.emit("Sub", []string{e, x.number(d, 1)})}
}

func exportLog1p(x *exportCall) []string {
	d := x.outs[0].DType()
	s := x.emit("Add", []string{x.cast(x.in[0], x.dtype(0), d), x.number(d, 1)})
	return []string{x.emit("Log", []string{s})}
}

func exportCast(x *exportCall) []string {
	if onnxType(x.outs[0].DType()) == 0 {
		return nil
	}
	return []string{x.emit("Cast", x.in, attrInt("to", int(onnxType(x.outs[0].DType()))))}
}

func exportWhere(x *exportCall) []string {
	d := x.outs[0].DType()
	return []string{x.emit("Where", []string{x.cast(x.in[0], x.dtype(0), ir.Bool), x.cast(x.in[1], x.dtype(1), d), x.cast(x.in[2], x.dtype(2), d)})}
}

// exportReduction writes a reduction over dims, or over all; sums and products have the dtype of the
// result, extremes of bool go by u8.
func exportReduction(op string) func(x *exportCall) []string {
	return func(x *exportCall) []string {
		d, to := x.dtype(0), x.outs[0].DType()
		in := x.in[0]
		switch {
		case op == "ReduceMax" || op == "ReduceMin":
			if d == ir.Bool {
				in, to = x.cast(in, d, ir.U8), ir.U8
			}
		default:
			in = x.cast(in, d, to)
		}
		names := []string{in}
		if dims, ok := x.a.Get("dim").([]int); ok && len(dims) > 0 {
			names = append(names, x.ints(dims...))
		}
		if x.rank(0) == 0 {
			return []string{x.emit("Identity", []string{in})}
		}
		y := x.emit(op, names, attrBool("keepdims", x.a.Bool("keepdim")))
		return []string{x.cast(y, to, x.outs[0].DType())}
	}
}

func exportArg(op string) func(x *exportCall) []string {
	return func(x *exportCall) []string {
		dim, ok := x.a.OptInt("dim")
		if !ok || x.rank(0) == 0 || x.dtype(0) == ir.Bool {
			return nil
		}
		return []string{x.emit(op, x.in, attrInt("axis", x.a.NormDim(dim, x.rank(0))), attrBool("keepdims", x.a.Bool("keepdim")))}
	}
}

func exportCat(x *exportCall) []string {
	return []string{x.emit("Concat", x.in, attrInt("axis", x.a.Dim("dim", x.outs[0].Rank())))}
}

func exportPermute(x *exportCall) []string {
	perm := slices.Clone(x.a.Ints("dims"))
	for i, d := range perm {
		perm[i] = x.a.NormDim(d, x.rank(0))
	}
	return []string{x.emit("Transpose", x.in, attrInts("perm", perm...))}
}

func exportReshape(x *exportCall) []string {
	return []string{x.emit("Reshape", []string{x.in[0], x.ints(x.outs[0].Dims()...)}, attrInt("allowzero", 1))}
}

func exportExpand(x *exportCall) []string {
	return []string{x.emit("Expand", []string{x.in[0], x.ints(x.outs[0].Dims()...)})}
}

func exportSlice(x *exportCall) []string {
	dim := x.a.Dim("dim", x.rank(0))
	start, ok := x.a.OptInt("start")
	if !ok {
		start = 0
	}
	end, ok := x.a.OptInt("end")
	if !ok {
		end = x.a.In[0].Shape().Dim(dim)
	}
	return []string{x.emit("Slice", []string{x.in[0], x.ints(start), x.ints(end), x.ints(dim), x.ints(x.a.Int("step"))})}
}

func exportFlip(x *exportCall) []string {
	dims := x.a.Ints("dims")
	n := len(dims)
	if n == 0 {
		return []string{x.emit("Identity", x.in)}
	}
	return []string{x.emit("Slice", []string{x.in[0], x.ints(slices.Repeat([]int{-1}, n)...), x.ints(slices.Repeat([]int{-1 << 62}, n)...), x.ints(dims...), x.ints(slices.Repeat([]int{-1}, n)...)})}
}

func exportIndexSelect(x *exportCall) []string {
	return []string{x.emit("Gather", x.in, attrInt("axis", x.a.Dim("dim", x.rank(0))))}
}

func exportGather(x *exportCall) []string {
	return []string{x.emit("GatherElements", x.in, attrInt("axis", x.a.Dim("dim", x.rank(0))))}
}

func exportScatter(x *exportCall) []string {
	return []string{x.emit("ScatterElements", x.in, attrInt("axis", x.a.Dim("dim", x.rank(0))))}
}

// exportPad writes padding, of which ATen's list has the last dimension first.
func exportPad(x *exportCall) []string {
	pad, rank := x.a.Ints("pad"), x.rank(0)
	widths := make([]int, 2*rank)
	for i := 0; i < len(pad)/2; i++ {
		widths[rank-1-i], widths[2*rank-1-i] = pad[2*i], pad[2*i+1]
	}
	value := x.cast(x.in[1], x.dtype(1), x.dtype(0))
	return []string{x.emit("Pad", []string{x.in[0], x.ints(widths...), value})}
}

func exportCumsum(x *exportCall) []string {
	in := x.cast(x.in[0], x.dtype(0), x.outs[0].DType())
	axis := x.constant(ir.MakeShape(ir.I64), elements.EncodeInts(ir.I64, []int64{int64(x.a.Dim("dim", x.rank(0)))}))
	return []string{x.emit("CumSum", []string{in, axis})}
}

func exportFull(x *exportCall) []string {
	d := x.outs[0].DType()
	if !d.IsFloat() && !d.IsIntegral() {
		return nil
	}
	value := x.constant(ir.MakeShape(d), fillOf(x.a, d))
	return []string{x.emit("Expand", []string{value, x.ints(x.outs[0].Dims()...)})}
}

func fillOf(a ir.Args, d ir.DType) []byte {
	f, n := a.Number("fill_value")
	if _, integer := a.Get("fill_value").(int64); integer {
		return elements.AppendNumber(nil, d, n)
	}
	return elements.AppendNumber(nil, d, f)
}

// exportArange writes the elements themselves.
func exportArange(x *exportCall) []string {
	d, n := x.outs[0].DType(), x.outs[0].Numel()
	start, _ := x.a.Number("start")
	step, _ := x.a.Number("step")
	if n > 1<<20 || !d.IsFloat() && !d.IsIntegral() {
		return nil
	}
	var data []byte
	for i := range n {
		data = elements.AppendNumber(data, d, start+float64(i)*step)
	}
	return []string{x.constant(x.outs[0], data)}
}

func exportConvolution(x *exportCall) []string {
	pads := x.a.Ints("padding")
	attrs := []*pb.Attribute{
		attrInts("strides", x.a.Ints("stride")...), attrInts("pads", slices.Concat(pads, pads)...),
		attrInts("dilations", x.a.Ints("dilation")...), attrInt("group", x.a.Int("groups")),
	}
	if !x.a.Bool("transposed") {
		return []string{x.emit("Conv", x.in, attrs...)}
	}
	return []string{x.emit("ConvTranspose", x.in, append(attrs, attrInts("output_padding", x.a.Ints("output_padding")...))...)}
}

// exportMaxPool writes the pooling; its indices, in ONNX, count through the whole input, in ATen through
// one channel.
func exportMaxPool(x *exportCall) []string {
	if !x.dtype(0).IsFloat() {
		return nil
	}
	pads, spatial := x.a.Ints("padding"), x.a.In[0].Shape().Dims()[2:]
	values, index := x.fresh(), x.fresh()
	x.node("MaxPool", x.in, []string{values, index}, attrInts("kernel_shape", x.a.Ints("kernel_size")...), attrInts("strides", x.a.Ints("stride")...),
		attrInts("pads", slices.Concat(pads, pads)...), attrInts("dilations", x.a.Ints("dilation")...), attrBool("ceil_mode", x.a.Bool("ceil_mode")))
	within := x.constant(ir.MakeShape(ir.I64), elements.EncodeInts(ir.I64, []int64{int64(max(product(spatial), 1))}))
	return []string{values, x.emit("Mod", []string{index, within})}
}

func exportSort(x *exportCall) []string {
	if x.rank(0) == 0 || x.dtype(0) == ir.Bool {
		return nil
	}
	dim := x.a.Dim("dim", x.rank(0))
	values, index := x.fresh(), x.fresh()
	x.node("TopK", []string{x.in[0], x.ints(x.a.In[0].Shape().Dim(dim))}, []string{values, index}, attrInt("axis", dim), attrBool("largest", x.a.Bool("descending")))
	return []string{values, index}
}

func exportLinear(x *exportCall) []string {
	turned := x.emit("Transpose", x.in[1:2], attrInts("perm", 1, 0))
	if x.rank(1) == 1 {
		turned = x.in[1]
	}
	y := x.emit("MatMul", []string{x.in[0], turned})
	if len(x.in) > 2 {
		y = x.emit("Add", []string{y, x.in[2]})
	}
	return []string{y}
}
