package backendtest

import (
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/opinfo"
)

// form is a vector's call on its way to a row of the table: what differs in
// name or in shape between ATen's merged overloads and the rows is settled here.
type form struct {
	b    *ir.Builder
	op   string
	args []ir.Named
}

// take removes an argument and returns its value; nil if it is not there.
func (f *form) take(name string) any {
	for i, a := range f.args {
		if a.Name == name {
			f.args = slices.Delete(f.args, i, i+1)
			return a.Value
		}
	}
	return nil
}

func (f *form) set(name string, v any) {
	f.take(name)
	f.args = append(f.args, ir.A(name, v))
}

// deflt sets an argument that is not there.
func (f *form) deflt(name string, v any) {
	if i := slices.IndexFunc(f.args, func(a ir.Named) bool { return a.Name == name }); i < 0 {
		f.set(name, v)
	}
}

// forms has the ops whose calls are not the row's as they stand.
var forms = map[string]func(f *form){
	"add":                scaleOther,
	"sub":                scaleOther,
	"div":                roundedDiv,
	"sort":               func(f *form) { f.take("stable") }, // ours always is
	"scatter":            scatterValue,
	"to":                 func(f *form) { f.op = "cast" },
	"to_f8":              func(f *form) { f.op = "cast" },
	"cross_entropy_loss": func(f *form) { f.op = "cross_entropy" },
	"linspace":           func(f *form) { f.deflt("dtype", ir.DefaultDType) },
	"arange":             arangeDefaults,
	"full":               fullDType,
	"conv1d":             namedPadding,
	"conv2d":             namedPadding,
	"conv3d":             namedPadding,

	"linalg_lstsq":               func(f *form) { f.take("driver") }, // which says how
	"native_layer_norm_backward": allGradients,
	"native_group_norm_backward": allGradients,

	"upsample_nearest1d":   func(f *form) { f.interpolate("nearest") },
	"upsample_nearest2d":   func(f *form) { f.interpolate("nearest") },
	"upsample_nearest3d":   func(f *form) { f.interpolate("nearest") },
	"upsample_linear1d":    func(f *form) { f.interpolate("linear") },
	"upsample_bilinear2d":  func(f *form) { f.interpolate("bilinear") },
	"upsample_trilinear3d": func(f *form) { f.interpolate("trilinear") },
}

// allGradients asks for the gradients of the three operands, as the vectors do.
func allGradients(f *form) { f.set("output_mask", []int{1, 1, 1}) }

// scaleOther is alpha of add and sub.
func scaleOther(f *form) {
	if alpha := f.take("alpha"); alpha != nil {
		f.set("other", f.b.Call1(aten.Mul, []any{f.take("other"), alpha}))
	}
}

func roundedDiv(f *form) {
	switch f.take("rounding_mode") {
	case "floor":
		f.op = "floor_divide"
	case "trunc":
		f.op = "trunc_divide"
	}
}

// scatterValue is the overload with a number in the place of src.
func scatterValue(f *form) {
	v := f.take("value")
	if v == nil {
		return
	}
	var self, index ir.Value
	for _, a := range f.args {
		switch a.Name {
		case "self":
			self = a.Value.(ir.Value)
		case "index":
			index = a.Value.(ir.Value)
		}
	}
	f.set("src", f.b.Full(index.Shape().Dims(), v, self.DType()))
}

func arangeDefaults(f *form) {
	f.deflt("start", 0)
	f.deflt("step", 1)
	d := ir.I64
	for _, a := range f.args {
		if _, ok := a.Value.(float64); ok {
			d = ir.DefaultDType
		}
	}
	f.deflt("dtype", d)
}

func fullDType(f *form) {
	v := f.take("fill_value")
	switch v.(type) {
	case bool:
		f.deflt("dtype", ir.Bool)
	case int:
		f.deflt("dtype", ir.I64)
	default:
		f.deflt("dtype", ir.DefaultDType)
	}
	f.set("fill_value", v)
}

// namedPadding is the overload with a string.
func namedPadding(f *form) {
	for _, a := range f.args {
		if s, ok := a.Value.(string); ok && a.Name == "padding" {
			f.take("padding")
			f.set("padding_str", s)
			return
		}
	}
}

func (f *form) interpolate(mode string) {
	f.op = "interpolate"
	f.set("mode", mode)
	f.set("self", f.take("input"))
	if v := f.take("output_size"); v != nil {
		f.set("size", v)
	}
	if v, ok := f.take("scale_factors").([]float64); ok {
		f.set("scale_factor", v[0]) // the vectors scale all dimensions alike
	}
}

// unsupported says why a case is left out, or returns "".
func unsupported(c *opinfo.Case) string {
	for _, in := range c.Inputs {
		if in.Name == "index" && in.Tensor != nil && in.Tensor.DType != "i64" && in.Tensor.DType != "i32" {
			return "indices are i64 or i32"
		}
		for _, x := range in.List {
			if x == nil {
				return "a list of tensors has no holes"
			}
			if c.Op == "cat" && len(x.Shape) == 1 && x.Shape[0] == 0 && len(c.Outputs[0].Shape) > 1 {
				return "cat does not skip empty vectors"
			}
		}
	}
	switch {
	case c.Op == "one_hot" && c.Attr("num_classes") == nil:
		return "the result's shape would depend on data"
	case c.Op == "batch_norm" && len(c.Inputs[0].Tensor.Shape) == 1:
		return "ATen takes a vector, which has no channels, for lack of a check"
	case (c.Op == "fmod" || c.Op == "remainder") && c.DType == "f64" && hasSubnormal(c.Input("other")):
		return "PyTorch's vector code gives NaN for a subnormal divisor"
	}
	return ""
}

func hasSubnormal(a *opinfo.Arg) bool {
	if a == nil || a.Tensor == nil {
		return false
	}
	return slices.ContainsFunc(a.Tensor.Float64s(), func(v float64) bool { return v != 0 && -0x1p-1022 < v && v < 0x1p-1022 })
}

// call records the use of the row.
func (f *form) call() []ir.Value {
	if change := forms[f.op]; change != nil {
		change(f)
	}
	op, ok := ir.Lookup(f.op)
	if !ok {
		panic(ir.NewOpError(f.op, ir.ErrArg, nil, "there are vectors, but no row"))
	}
	for _, p := range op.Spec().Schema.Params {
		if !p.HasDef && strings.HasSuffix(p.Type, "?") {
			f.deflt(p.Name, nil)
		}
	}
	return f.b.Call(op, nil, f.args...)
}
