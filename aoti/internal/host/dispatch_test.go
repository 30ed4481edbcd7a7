//go:build linux && cgo

package host

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ctest"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

func f32(x float32) backend.Buffer {
	data := make([]byte, 4)
	over([]float32{0}, data)[0] = x
	b, err := hostmem.Wrap(ir.MakeShape(ir.F32), cpuDevice(), data, func() {})
	if err != nil {
		panic(err)
	}
	return b
}

// Ops by name: those that libraries bring along, this host's, and custom ones.
func TestDispatcher(t *testing.T) {
	const name = "host_test::scaled"
	err := Register(name+"(Tensor x, float by, int? more=None, *, bool flag=False) -> (Tensor, Tensor)", func(a OpArgs) ([]backend.Buffer, error) {
		x := a["x"].(backend.Buffer)
		if a["by"] == 0.0 {
			return nil, errors.New("by nothing")
		}
		more, _ := a["more"].(int)
		data := over([]float32{0}, x.(*hostmem.Buffer).Data())
		x.Retain()
		return []backend.Buffer{f32(data[0]*float32(a["by"].(float64)) + float32(more)), x}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer Unregister(name)
	if err := Register("host_test::nameless", nothing); err != nil {
		t.Fatal(err)
	}
	defer Unregister("host_test::nameless")
	lib := ctest.Open(t, ctest.Build(t, "testdata/c/dispatch.cpp"))
	for _, name := range []string{"library", "ops"} {
		t.Run(name, func(t *testing.T) {
			leakCheck(t)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			objects := memory().objects
			if text := lib.Call("test_"+name, nil); text != "" {
				t.Error(text)
			}
			if n := memory().objects; n != objects {
				t.Errorf("%d objects more", n-objects)
			}
		})
	}
}

func TestParseSchema(t *testing.T) {
	s, err := parseSchema("ns::op.out(Tensor(a!) self, Tensor? w=None, SymInt[2] dims, *, ScalarType? dtype=None, int[2] pad=[0, 1], str s=\"x\") -> (Tensor(a!), Tensor)")
	if err != nil {
		t.Fatal(err)
	}
	want := []param{{"self", kindTensor}, {"w", kindOptTensor}, {"dims", kindOther}, {"dtype", kindOptBool}, {"pad", kindOther}, {"s", kindOther}}
	if s.name != "ns::op.out" || s.returns != 2 || fmt.Sprint(s.params) != fmt.Sprint(want) {
		t.Errorf("%+v", s)
	}
	if s, err := parseSchema("op() -> ()"); err != nil || s.returns != 0 || len(s.params) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "op", "op(Tensor x)", "op(Tensor) -> Tensor", "o p(Tensor x) -> Tensor"} {
		if _, err := parseSchema(bad); !errors.Is(err, ir.ErrArg) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
