//go:build linux && cgo

package host

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ctest"
	"github.com/loris-ml/loris/internal/ir"
)

func TestRegisterShimThatTheHostHas(t *testing.T) {
	if err := RegisterShim("AOTITorchError aoti_torch_cpu_mm_out(AtenTensorHandle x)", nothing); !errors.Is(err, ErrRegistered) {
		t.Errorf("%v", err)
	}
}

// A trampoline finds each argument wherever the compiler of a caller puts it.
func TestTrampolinesFindArguments(t *testing.T) {
	var got OpArgs
	var list []int64
	const args = `bool b, double d0, int64_t i1, float f1, int32_t i2, const char* s, int64_t i4, const int64_t* list, int64_t list_len,
		double d2, double d3, double d4, double d5, double d6, double d7, double d8, float f9, int32_t i7, bool c, AtenTensorHandle* none`
	err := RegisterShim("AOTITorchError aoti_torch_cpu_arguments("+args+")", func(a OpArgs) ([]backend.Buffer, error) {
		if a["b"] == 0 {
			return nil, errors.New("asked to fail")
		}
		got, list = a, slices.Clone(a["list"].([]int64))
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer UnregisterShim("aoti_torch_cpu_arguments")
	b, err := BindShims([]string{"aoti_torch_clone", "aoti_torch_cpu_arguments"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	trampoline := b.Names["aoti_torch_cpu_arguments"]
	if len(b.Names) != 1 || trampoline == "" {
		t.Fatalf("%v", b.Names)
	}
	text := `#include <stdbool.h>
#include <stdint.h>
typedef int32_t AOTITorchError;
typedef void *AtenTensorHandle;
AOTITorchError SLOT(` + args + `);
static const char *said(AOTITorchError code) { return code ? "failed" : 0; }
const char *good(void *arg) {
	int64_t list[] = {4, -5, 6};
	return said(SLOT(true, 0.5, -1, 1.25f, -2, "text", INT64_MIN, list, 3, 2, 3, 4, 5, 6, 7, 8, -9.5f, 7, true, 0));
}
const char *bad(void *arg) { return said(SLOT(false, 0, 0, 0, 0, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0)); }
`
	lib := ctest.Open(t, ctest.Build(t, write(t, "caller.c", strings.ReplaceAll(text, "SLOT", trampoline))))
	if said := lib.Call("good", nil); said != "" {
		t.Fatal(said)
	}
	want := OpArgs{"b": 1, "d0": 0.5, "i1": -1, "f1": 1.25, "i2": -2, "s": "text", "i4": math.MinInt64, "d2": 2.0, "d3": 3.0,
		"d4": 4.0, "d5": 5.0, "d6": 6.0, "d7": 7.0, "d8": 8.0, "f9": -9.5, "i7": 7, "c": 1}
	delete(got, "list")
	if fmt.Sprint(got) != fmt.Sprint(want) || !slices.Equal(list, []int64{4, -5, 6}) {
		t.Errorf("%v and %v, want %v", got, list, want)
	}
	if lib.Call("bad", nil) == "" {
		t.Error("a call that fails succeeds")
	}
}

// More functions than trampolines are an error, and those that are given up are free
// again.
func TestTrampolinesRunOut(t *testing.T) {
	var names []string
	for i := range 65 {
		name := fmt.Sprintf("aoti_torch_cpu_op%d", i)
		if err := RegisterShim("AOTITorchError "+name+"()", nothing); err != nil {
			t.Fatal(err)
		}
		defer UnregisterShim(name)
		names = append(names, name)
	}
	for range 2 {
		if _, err := BindShims(names); !errors.Is(err, ErrTrampolines) {
			t.Errorf("%v", err)
		}
		b, err := BindShims(names[:64])
		if err != nil {
			t.Fatal(err)
		}
		again, err := BindShims(names[:1])
		if err != nil || again.Names[names[0]] != b.Names[names[0]] {
			t.Errorf("a second library: %v, %v", again, err)
		}
		again.Close()
		b.Close()
		b.Close()
	}
}

// The number of results is checked, and no tensor stays behind.
func TestShimChecksResults(t *testing.T) {
	leakCheck(t)
	s, err := parseShim("AOTITorchError aoti_torch_cpu_results(AtenTensorHandle x, AtenTensorHandle* ret0)")
	if err != nil {
		t.Fatal(err)
	}
	x := tensorOf(t, ir.F32, []float64{1, 2}, 2)
	for n := range 3 {
		s.op = func(a OpArgs) ([]backend.Buffer, error) {
			out := make([]backend.Buffer, n)
			for i := range out {
				out[i] = a["x"].(backend.Buffer)
				out[i].Retain()
			}
			return out, nil
		}
		outs, err := s.run(values{"x": x})
		if (err == nil) != (n == 1) {
			t.Errorf("%d results: %v", n, err)
		}
		for _, o := range outs {
			release(o)
		}
	}
}
