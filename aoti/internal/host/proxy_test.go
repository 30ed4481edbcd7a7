//go:build linux && cgo

package host

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

const bincountNode = `{"name": "buf0", "node": {"target": "aten::bincount", "inputs": [
	{"name": "self", "arg": {"as_tensor": {"name": "a"}}, "kind": 1},
	{"name": "weights", "arg": {"as_none": true}, "kind": 1},
	{"name": "minlength", "arg": {"as_int": 8}, "kind": 1}],
	"outputs": [{"as_tensor": {"name": "buf0"}}]}}`

func proxyOf(t *testing.T, nodes ...string) *proxyExecutor {
	t.Helper()
	p := new(proxyExecutor)
	for _, text := range nodes {
		var n externNode
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		c, err := n.read()
		if err != nil {
			t.Fatal(err)
		}
		p.calls = append(p.calls, c)
	}
	return p
}

func tensorOf[T number](t *testing.T, d ir.DType, data []T, dims ...int) *tensor {
	t.Helper()
	h, err := save(array[T]{data, dims}, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(h) })
	return h
}

func TestProxyCall(t *testing.T) {
	leakCheck(t)
	p := proxyOf(t, bincountNode)
	in := tensorOf(t, ir.I64, []int64{1, 3, 3, 9}, 4)
	out := undefined(t)
	if err := p.calls[0].run([]int64{2}, []*tensor{in, out}); err != nil {
		t.Fatal(err)
	}
	if got, want := numbers(t, out), []float64{0, 1, 0, 2, 0, 0, 0, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, bad := range []struct {
		ints    []int64
		tensors []*tensor
	}{{nil, []*tensor{in, out}}, {[]int64{2, 2}, []*tensor{in, out}}, {[]int64{2}, []*tensor{in}}, {[]int64{2}, nil}} {
		if err := p.calls[0].run(bad.ints, bad.tensors); !errors.Is(err, ErrExtern) {
			t.Errorf("%d ints and %d tensors: %v", len(bad.ints), len(bad.tensors), err)
		}
	}
}

func undefined(t *testing.T) *tensor {
	t.Helper()
	h, err := newUndefined()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(h) })
	return h
}

func TestRegisteredOp(t *testing.T) {
	leakCheck(t)
	const name = "host_test::twice"
	node := strings.ReplaceAll(bincountNode, "aten::bincount", name)
	if missing, err := SupportsExtern([]byte(`{"nodes": [` + node + `]}`)); err != nil || !slices.Equal(missing, []string{name}) {
		t.Errorf("%v, %v before the op is there", missing, err)
	}
	err := Register(name, func(args OpArgs) ([]backend.Buffer, error) {
		x, ok := args["self"].(backend.Buffer)
		if _, given := args["weights"]; !ok || given || args["minlength"] != 2 {
			return nil, errors.New("other arguments")
		}
		x.Retain()
		return []backend.Buffer{x}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer Unregister(name)
	if err := Register(name, func(OpArgs) ([]backend.Buffer, error) { return nil, nil }); !errors.Is(err, ErrRegistered) {
		t.Errorf("a second registration: %v", err)
	}
	for _, bad := range []string{"twice", "::twice", "aten::add", "ns::"} {
		if err := Register(bad, func(OpArgs) ([]backend.Buffer, error) { return nil, nil }); !errors.Is(err, ir.ErrArg) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if !ProvidesOp(name) {
		t.Error("the op is not provided")
	}
	p := proxyOf(t, node)
	in, out := tensorOf(t, ir.F32, []float64{1, 2, 3}, 3), undefined(t)
	if err := p.calls[0].run([]int64{2}, []*tensor{in, out}); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, out); !slices.Equal(got, []float64{1, 2, 3}) {
		t.Errorf("%v", got)
	}
}

func TestExternNodesThatMakeNoSense(t *testing.T) {
	if _, err := SupportsExtern([]byte("{")); !errors.Is(err, ErrExtern) {
		t.Errorf("%v", err)
	}
	for _, node := range []string{`7`, `{"node": {"target": "aten::no_such_op"}}`,
		`{"node": {"target": "aten::relu", "inputs": [{"name": "self", "arg": {"as_custom_obj": {}}}]}}`} {
		if h, err := newProxy([]json.RawMessage{json.RawMessage(node)}); !errors.Is(err, ErrExtern) {
			freeProxy(h)
			t.Errorf("%s: %v", node, err)
		}
	}
}

// The generator's first draws from a seed are those of PyTorch 2.15.
func TestGenerator(t *testing.T) {
	g := new(generator)
	g.seed(7)
	if got := []float32{g.single(), g.single(), g.single()}; !slices.Equal(got, []float32{0.5349225401878357, 0.19880318641662598, 0.6592116951942444}) {
		t.Errorf("single: %v", got)
	}
	g.seed(7)
	if got := []float64{g.double(), g.double()}; !slices.Equal(got, []float64{0.279380429906404, 0.27369371365176565}) {
		t.Errorf("double: %v", got)
	}
	g.seed(7)
	var x [5]float64
	g.normals(x[:], 0, 1, false)
	for i, want := range []float64{-0.1467950940132141, 0.7861412763595581, 0.9468216300010681, -1.1143440008163452, 1.6907901763916016} {
		if float32(x[i]) != float32(want) {
			t.Errorf("normal %d: %v, want %v", i, x[i], want)
		}
	}
}

func FuzzParseBlocked(f *testing.F) {
	f.Add(make([]byte, blockedBytes+4))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseBlocked(b)
		if err != nil || d.extent() > 1<<16 || d.extent() < 0 {
			return
		}
		n, strides := 1, make([]int, len(d.dims))
		for i := len(d.dims) - 1; i >= 0; i-- {
			strides[i] = n
			n *= max(d.dims[i], 1)
			if n > 1<<16 {
				return
			}
		}
		if err := unpackBlocked(d, make([]byte, n), make([]byte, d.extent()), strides); err != nil {
			t.Error(err)
		}
	})
}
