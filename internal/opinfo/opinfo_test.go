package opinfo

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestOpsCoverEveryFamily(t *testing.T) {
	ops := Ops()
	if !slices.IsSorted(ops) {
		t.Error("not sorted")
	}
	for _, op := range []string{
		"neg", "gelu", "to", "div", "where", "bitwise_left_shift", "sum", "linalg_vector_norm", "cummax", "pad", "slice", "eye",
		"index_put", "topk", "einsum", "conv3d", "conv_transpose2d", "batch_norm", "scaled_dot_product_attention",
		"cross_entropy_loss", "upsample_bilinear2d",
	} {
		if !slices.Contains(ops, op) {
			t.Errorf("no vectors of %s", op)
		}
	}
}

func TestLoadUnknownOp(t *testing.T) {
	if _, err := Load("no_such_op"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

// Every file must decode, and its cases must be whole: gradients have the shape of their input, cotangents that of their
// output, and each case passes its own check.
func TestEveryVectorIsWhole(t *testing.T) {
	seen := map[DType]bool{}
	for _, op := range Ops() {
		cases, err := Load(op)
		if err != nil {
			t.Fatal(err)
		}
		if len(cases) == 0 {
			t.Errorf("%s: no cases", op)
		}
		for i := range cases {
			c := &cases[i]
			seen[c.DType] = true
			if len(c.Outputs) == 0 {
				t.Errorf("%v: no outputs", c)
			}
			if err := c.Check(c.Outputs); err != nil {
				t.Errorf("own outputs: %v", err)
			}
			for j, cot := range c.Cotangents {
				if cot != nil && cot.String() != c.Outputs[j].String() {
					t.Errorf("%v: cotangent %v of output %v", c, cot, c.Outputs[j])
				}
			}
			for _, g := range c.Grads {
				in := c.Input(g.Input)
				want := in.Tensor
				if in.List != nil {
					want = in.List[g.Index]
				}
				if want == nil || g.Tensor.String() != want.String() {
					t.Errorf("%v: gradient %v of input %v", c, g.Tensor, in)
				}
			}
		}
	}
	for _, d := range []DType{"bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"} {
		if !seen[d] {
			t.Errorf("no case of %s", d)
		}
	}
}

// The vectors must say what the op means: recompute one simple op from the decoded form, gradients included.
func TestVectorsOfMul(t *testing.T) {
	cases, err := Load("mul")
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for i := range cases {
		c := &cases[i]
		a, b := c.Inputs[0].Tensor, c.Inputs[1].Tensor
		if c.Inputs[0].Name != "self" || c.Inputs[1].Name != "other" {
			t.Fatalf("%v: inputs out of order", c)
		}
		if a == nil || b == nil || a.String() != b.String() || !a.DType.IsFloat() || len(c.Grads) != 2 {
			continue
		}
		done++
		product := func(x, y Tensor) []float64 {
			out := x.Float64s()
			for i, v := range y.Float64s() {
				out[i] *= v
			}
			return out
		}
		check := func(what string, got []float64, want Tensor) {
			for i, w := range want.Float64s() {
				if math.Abs(got[i]-w) > 1e-12 {
					t.Errorf("%v: %s[%d] = %v, want %v", c, what, i, got[i], w)
				}
			}
		}
		check("output", product(*a, *b), c.Outputs[0])
		check("gradient", product(*b, *c.Cotangents[0]), c.Grads[0].Tensor)
		check("gradient", product(*a, *c.Cotangents[0]), c.Grads[1].Tensor)
	}
	if done == 0 {
		t.Error("no case to recompute")
	}
}

func compress(text string) *bytes.Buffer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // to memory
	_ = z.Close()
	return &b
}

func file(body string) string {
	return `{"format":1,"op":"f","cases":[` + body + `]}`
}

func TestDecode(t *testing.T) {
	text := file(`{"dtype":"f32",
		"inputs":{"self":{"dtype":"i16","shape":[2],"data":"AQD//w=="},"zeta":{"scalar":2},"alpha":{"scalar":2.0},
			"beta":{"scalar":true},"gamma":{"scalar":{"float":"-inf"}},"list":[null,{"dtype":"u8","shape":[0],"data":""}],"none":[]},
		"attrs":{"dim":-1,"eps":1e-05,"flag":false,"mode":"same","out":{"dtype":"bf16"},"p":{"float":"inf"},"size":[2,3],
			"scales":[1,1.5],"empty":[],"big":9223372036854775807},
		"outputs":[{"dtype":"bool","shape":[],"data":"AQ=="}],"atol":0.5,
		"mutated":{"self":{"dtype":"u8","shape":[1],"data":"Bw=="}},
		"cotangents":[null],
		"grads":[{"input":"list","index":1,"grad":{"dtype":"u8","shape":[0],"data":""}}]}`)
	cases, err := decode(compress(text), "f")
	if err != nil {
		t.Fatal(err)
	}
	empty := Tensor{"u8", []int{0}, []byte{}}
	want := Case{
		Op: "f", DType: "f32", ATol: 0.5,
		Inputs: []Arg{
			{Name: "self", Tensor: &Tensor{"i16", []int{2}, []byte{1, 0, 255, 255}}},
			{Name: "zeta", Scalar: int64(2)},
			{Name: "alpha", Scalar: 2.0},
			{Name: "beta", Scalar: true},
			{Name: "gamma", Scalar: math.Inf(-1)},
			{Name: "list", List: []*Tensor{nil, &empty}},
			{Name: "none", List: []*Tensor{}},
		},
		Attrs: []Attr{
			{"dim", int64(-1)},
			{"eps", 1e-5},
			{"flag", false},
			{"mode", "same"},
			{"out", DType("bf16")},
			{"p", math.Inf(1)},
			{"size", []int64{2, 3}},
			{"scales", []float64{1, 1.5}},
			{"empty", []int64{}},
			{"big", int64(math.MaxInt64)},
		},
		Outputs:    []Tensor{{"bool", []int{}, []byte{1}}},
		Mutated:    []Arg{{Name: "self", Tensor: &Tensor{"u8", []int{1}, []byte{7}}}},
		Cotangents: []*Tensor{nil},
		Grads:      []Grad{{"list", 1, empty}},
	}
	if !reflect.DeepEqual(cases[0], want) {
		t.Errorf("got\n%#v\nwant\n%#v", cases[0], want)
	}
	c := &cases[0]
	const line = "f(self=i16[2], zeta=2, alpha=2, beta=true, gamma=-Inf, list=[none u8[0]], none=[], dim=-1, eps=1e-05, flag=false, " +
		"mode=same, out=bf16, p=+Inf, size=[2 3], scales=[1 1.5], empty=[], big=9223372036854775807)"
	if got := c.String(); got != line {
		t.Errorf("got  %s\nwant %s", got, line)
	}
	if c.Input("zeta").Scalar != int64(2) || c.Input("absent") != nil {
		t.Error("Input finds the wrong operand")
	}
	if c.Attr("mode") != "same" || c.Attr("absent") != nil {
		t.Error("Attr finds the wrong attribute")
	}
	if got := c.Tolerance("f32"); got != (Tolerance{1.3e-6, 0.5}) {
		t.Errorf("widened tolerance is %v", got)
	}
	if got := c.Tolerance("i32"); got != (Tolerance{}) {
		t.Errorf("integers have tolerance %v", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tensor := func(dtype, shape, data string) string {
		return `{"dtype":"` + dtype + `","shape":` + shape + `,"data":"` + data + `"}`
	}
	good := tensor("u8", "[1]", "AQ==")
	for name, text := range map[string]string{
		"json":             `{`,
		"format":           `{"format":2,"op":"f","cases":[]}`,
		"op":               `{"format":1,"op":"g","cases":[]}`,
		"short data":       file(`{"outputs":[` + tensor("i16", "[1]", "AQ==") + `]}`),
		"unknown dtype":    file(`{"inputs":{"x":` + tensor("u16", "[1]", "AQE=") + `}}`),
		"negative shape":   file(`{"inputs":{"x":` + tensor("u8", "[-1]", "AQ==") + `}}`),
		"list element":     file(`{"inputs":{"x":[` + tensor("u8", "[2]", "AQ==") + `]}}`),
		"inputs no object": file(`{"inputs":[]}`),
		"scalar":           file(`{"inputs":{"x":{"scalar":"two"}}}`),
		"mutated":          file(`{"mutated":{"x":` + tensor("u8", "[2]", "AQ==") + `}}`),
		"attribute dtype":  file(`{"attrs":{"dtype":{"dtype":"u16"}}}`),
		"attribute object": file(`{"attrs":{"x":{}}}`),
		"attribute list":   file(`{"attrs":{"x":[true]}}`),
		"cotangents":       file(`{"inputs":{"x":` + good + `},"outputs":[` + good + `],"grads":[{"input":"x","grad":` + good + `}]}`),
		"cotangent":        file(`{"cotangents":[` + tensor("u8", "[2]", "AQ==") + `]}`),
		"gradient of none": file(`{"outputs":[` + good + `],"cotangents":[` + good + `],"grads":[{"input":"x","grad":` + good + `}]}`),
	} {
		if cases, err := decode(compress(text), "f"); err == nil {
			t.Errorf("%s: decoded %v", name, cases)
		}
	}
	if _, err := decode(strings.NewReader("not compressed"), "f"); err == nil {
		t.Error("decoded plain text")
	}
}
