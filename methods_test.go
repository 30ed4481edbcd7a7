package loris

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/opinfo"
)

// TestMethodsMatchPyTorch calls the method of each op on PyTorch's samples, with
// the arguments that have defaults as options.
func TestMethodsMatchPyTorch(t *testing.T) {
	m := newSession(t, WithDevice(Ref)).With()
	most := 12 // cases of an op
	if !longtest.Enabled() {
		most = 3
	}
	called := 0
	for _, sp := range ir.Ops() {
		name := methodName(sp.Name)
		method, ok := reflect.TypeFor[*Tensor]().MethodByName(name)
		if !ok {
			continue
		}
		cases, err := opinfo.Load(sp.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range cases {
			c := &cases[i]
			if n == most {
				break
			}
			args, ok := methodArgs(m, sp, method.Type, c)
			if x := c.Input("index"); !ok || c.Mutated != nil || x != nil && x.Tensor != nil && x.Tensor.DType == "u8" {
				continue // an index of u8 goes with no elements only
			}
			n++
			var outs []*Tensor
			if err := Try(func() { outs = results(method.Func, args) }); err != nil {
				t.Errorf("%v: %v", c, err)
				continue
			}
			// PyTorch's batch_norm returns no statistics.
			got, err := fetched(t, outs[:min(len(outs), len(c.Outputs))])
			if err == nil {
				err = c.Check(got)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n > 0 {
			called++
		}
	}
	if called < 150 {
		t.Errorf("only %d methods were called", called)
	}
}

// methodName is the Go name of an op.
func methodName(op string) string {
	names := map[string]string{
		"matmul": "MatMul", "isnan": "IsNaN", "isinf": "IsInf", "isfinite": "IsFinite", "logsumexp": "LogSumExp",
		"_scaled_mm": "ScaledMM", "_int_mm": "IntMM",
	}
	name := names[op]
	if name == "" {
		for w := range strings.SplitSeq(op, "_") {
			name += strings.ToUpper(w[:min(1, len(w))]) + w[min(1, len(w)):]
		}
	}
	return name
}

// methodArgs returns the arguments of a call of a method; false if the case is
// not one of its forms.
func methodArgs(m Maker, sp *ir.Spec, typ reflect.Type, c *opinfo.Case) (args []reflect.Value, ok bool) {
	given := map[string]any{}
	for _, a := range c.Inputs {
		switch {
		case a.Tensor != nil:
			given[a.Name] = sampleTensor(m, a.Tensor)
		case a.List != nil:
			list := make([]*Tensor, len(a.List))
			for i, x := range a.List {
				if x == nil {
					return nil, false
				}
				list[i] = sampleTensor(m, x)
			}
			given[a.Name] = list
		default:
			given[a.Name] = a.Scalar
		}
	}
	for _, a := range c.Attrs {
		name := a.Name
		if _, text := a.Value.(string); text && name == "padding" {
			name = "padding_str"
		}
		given[name] = a.Value
	}
	iface, hasOpts := optionInterface(typ)
	var opts []reflect.Value
	for i := range sp.Schema.Params {
		p := &sp.Schema.Params[i]
		v, there := given[p.Name]
		delete(given, p.Name)
		switch {
		case p.HasDef && !hasOpts && !there && len(args) < typ.NumIn() && typ.In(len(args)).Kind() == reflect.Interface:
			args = append(args, reflect.Zero(typ.In(len(args))))
		case p.HasDef && hasOpts && there:
			o, ok := optionOf(sp.Op, iface, p.Name, optionValue(v))
			if !ok {
				return nil, false
			}
			opts = append(opts, o)
		case p.HasDef && !there:
		case !there || len(args) == typ.NumIn():
			return nil, false
		default:
			a, ok := argument(typ, len(args), v)
			if !ok {
				return nil, false
			}
			args = append(args, a...)
		}
	}
	fixed := typ.NumIn()
	if typ.IsVariadic() {
		fixed--
	}
	return append(args, opts...), len(given) == 0 && len(args) >= fixed
}

func sampleTensor(m Maker, x *opinfo.Tensor) *Tensor {
	d, err := ir.ParseDType(string(x.DType))
	if err != nil {
		panic(err)
	}
	return m.FromBytes(x.Data, MakeShape(d, x.Shape...))
}

// argument converts a value to the i-th parameter of a method, which takes the
// elements of a list one by one if it is the last.
func argument(typ reflect.Type, i int, v any) ([]reflect.Value, bool) {
	want := typ.In(i)
	switch x := v.(type) {
	case []int64:
		ints := optionValue(x).([]int)
		if typ.IsVariadic() && i == typ.NumIn()-1 && want == reflect.TypeFor[[]int]() {
			var out []reflect.Value
			for _, n := range ints {
				out = append(out, reflect.ValueOf(n))
			}
			return out, true
		}
		v = ints
	case opinfo.DType:
		d, err := ir.ParseDType(string(x))
		if err != nil {
			return nil, false
		}
		v = d
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Type().AssignableTo(want):
		return []reflect.Value{r}, true
	case r.CanConvert(want) && r.Kind() != reflect.String && want.Kind() != reflect.Slice:
		return []reflect.Value{r.Convert(want)}, true
	}
	return nil, false
}

// optionValue returns an argument as the constructors of options give it.
func optionValue(v any) any {
	switch x := v.(type) {
	case *Tensor:
		return x.ex()
	case int64:
		return int(x)
	case []int64:
		out := make([]int, len(x))
		for i, n := range x {
			out[i] = int(n)
		}
		return out
	case opinfo.DType:
		d, err := ir.ParseDType(string(x))
		if err != nil {
			panic(err)
		}
		return d
	}
	return v
}

func results(method reflect.Value, args []reflect.Value) (out []*Tensor) {
	for _, r := range method.Call(args) {
		switch x := r.Interface().(type) {
		case *Tensor:
			out = append(out, x)
		case []*Tensor:
			out = append(out, x...)
		default:
			panic(fmt.Sprintf("a result is a %T", x))
		}
	}
	return out
}

func fetched(t *testing.T, ts []*Tensor) ([]opinfo.Tensor, error) {
	data, err := Fetch(t.Context(), ts...)
	if err != nil {
		return nil, err
	}
	out := make([]opinfo.Tensor, len(ts))
	for i, x := range ts {
		out[i] = opinfo.Tensor{DType: opinfo.DType(x.DType().String()), Shape: x.Dims(), Data: data[i]}
	}
	return out, nil
}
