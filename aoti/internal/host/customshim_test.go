package host

import (
	"errors"
	"slices"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

func nothing(OpArgs) ([]backend.Buffer, error) { return nil, nil }

func TestShimPrototypes(t *testing.T) {
	s, err := parseShim(`AOTI_TORCH_EXPORT AOTITorchError aoti_torch_cpu_many(AtenTensorHandle self, AtenTensorHandle* weight,
		const AtenTensorHandle* list, int64_t list_len, const int64_t ** dims, int64_t dims_len, const char *mode,
		bool flag, int32_t dtype, double* scale, float eps, uint32_t n, AtenTensorHandle* ret0, AtenTensorHandle * out1);`)
	if err != nil {
		t.Fatal(err)
	}
	want := []param{{"self", kindTensor}, {"weight", kindOptTensor}, {"list", kindTensors}, {"list_len", kindInt},
		{"dims", kindOptInts}, {"dims_len", kindInt}, {"mode", kindString}, {"flag", kindBool}, {"dtype", kindBool},
		{"scale", kindOptFloat}, {"eps", kindFloat}, {"n", kindInt}, {"ret0", kindOut}, {"out1", kindOut}}
	if s.name != "aoti_torch_cpu_many" || !slices.Equal(s.params, want) {
		t.Errorf("%s%v", s.name, s.params)
	}
	for _, bad := range []string{
		"", "aoti_torch_cpu_f()", "void aoti_torch_cpu_f()", "AOTITorchError short_name()", "AOTITorchError aoti_torch_cpu_f(int64_t)",
		"AOTITorchError aoti_torch_cpu_f(std::string s)", "AOTITorchError aoti_torch_cpu_f(const int64_t* dims)",
		"AOTITorchError aoti_torch_cpu_f(const int64_t* dims, double x)", "AOTITorchError aoti_torch_cpu_f(int64_t x",
	} {
		if err := RegisterShim(bad, nothing); !errors.Is(err, ir.ErrArg) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := RegisterShim("AOTITorchError aoti_torch_cpu_f()", nil); !errors.Is(err, ir.ErrArg) {
		t.Errorf("no op: %v", err)
	}
}

func TestRegisterShimTwice(t *testing.T) {
	const name, prototype = "aoti_torch_cpu_twice", "AOTITorchError aoti_torch_cpu_twice(AtenTensorHandle x)"
	if err := RegisterShim(prototype, nothing); err != nil {
		t.Fatal(err)
	}
	if err := RegisterShim(prototype, nothing); !errors.Is(err, ErrRegistered) {
		t.Errorf("a second time: %v", err)
	}
	UnregisterShim(name)
	if customShim(name) != nil {
		t.Error("it is still there")
	}
}
