//go:build cuda && linux && cgo

package driver

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
)

const fillSource = `// a kernel
extern "C" __global__ void fill_u32(unsigned *to, unsigned value, unsigned long long n)
{
	for (unsigned long long i = threadIdx.x; i < n; i += blockDim.x)
		to[i] = value;
}
`

func TestCompiler(t *testing.T) {
	f := fakecuda.New(t)
	v := must[*Compiler](t)(OpenCompiler(f.Path, 0))
	if v.Version() != 12090 || v.Path() != f.Path || !reflect.DeepEqual(v.Archs(), []int{80, 90}) {
		t.Errorf("%v at %s for %v", v.Version(), v.Path(), v.Archs())
	}
	cubin, log, err := v.Compile(fillSource+"// warn\n", "fill.cu", "sm_90", []string{"--use_fast_math"})
	if err != nil || log != "fill.cu(1): warning: take care\n" {
		t.Fatalf("%q, %v", log, err)
	}
	if calls := f.Calls(); !reflect.DeepEqual(after(calls, "nvrtcCompileProgram"), []string{"nvrtcCompileProgram fill.cu --gpu-architecture=sm_90 …"}) {
		t.Errorf("%q", calls)
	}
	// What was compiled can be loaded and run.
	c := retain(t, must[*Driver](t)(Open(f.Path)), 0)
	s := closing[*Stream](t)(c.NewStream(0))
	_, x := pool(t, s, 8)
	m := closing[*Module](t)(c.LoadModule(cubin))
	fill := must[*Function](t)(m.Function("fill_u32"))
	check(t, fill.Launch(s, Launch{Block: Dim{X: 32}}, []uint64{uint64(x), 3, 2}))
	got := make([]byte, 8)
	check(t, s.CopyOut(got, x))
	if !bytes.Equal(got, le32(3, 3)) {
		t.Errorf("the kernel wrote %v", got)
	}
}

func TestCompileErrors(t *testing.T) {
	f := fakecuda.New(t)
	v := must[*Compiler](t)(OpenCompiler(f.Path, 0))
	_, log, err := v.Compile(fillSource+"  #error not this\n", "fill.cu", "sm_80", nil)
	var e *CompileError
	if !errors.Is(err, ErrCompile) || !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	want := CompileError{Name: "fill.cu", Arch: "sm_80", Line: 7, Source: "#error not this", Message: "#error directive: not this", Log: log}
	if *e != want {
		t.Errorf("got %+v, want %+v", *e, want)
	}
	if text := "fill.cu:7: for sm_80: #error directive: not this: #error not this"; err.Error() != text {
		t.Errorf("got %v, want %s", err, text)
	}
	_, _, err = v.Compile(fillSource, "fill.cu", "sm_80", []string{"--wrong"})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "nvrtcCompileProgram: invalid option") || !strings.Contains(err.Error(), "option --wrong") {
		t.Errorf("a wrong option: %v", err)
	}
	_, _, err = v.Compile(fillSource, "fill.cu", "compute_80", nil)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `"compute_80"`) {
		t.Errorf("no machine code: %v", err)
	}
	for _, call := range []string{"nvrtcCreateProgram", "nvrtcCompileProgram"} {
		f.Fail(call, 1, 0, true)
		if _, _, err = v.Compile(fillSource, "fill.cu", "sm_80", nil); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), call) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestCompileErrorTexts(t *testing.T) {
	for _, c := range []struct {
		log, message, source string
		line                 int
	}{
		{"k.cu(2): error: identifier \"y\" is undefined\n  a\n  ^\n", `identifier "y" is undefined`, "two", 2},
		{"k.cu(3): warning #177-D: unused\nk.cu(1): error #20: bad\n", "bad", "one", 1},
		{"k.cu(1): catastrophic error: cannot open source file \"x.h\"\n", `cannot open source file "x.h"`, "one", 1},
		{"x.h(9): error: bad\n", "x.h(9): bad", "", 0},
		{"k.cu(99): error: bad\n", "bad", "", 99},
		{"nvrtc: error: failed\nmore\n", "nvrtc: error: failed", "", 0},
		{"", "the source does not compile", "", 0},
	} {
		e := newCompileError("k.cu", "sm_80", "one\n  two\nthree", c.log)
		if e.Message != c.message || e.Source != c.source || e.Line != c.line {
			t.Errorf("%q: %+v", c.log, e)
		}
	}
}

func TestMissingLibraries(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvNVRTC, dir)
	t.Setenv(EnvCUBLASLt, dir)
	_, noCompiler := OpenCompiler("", 12090)
	_, noBLAS := OpenBLAS("", 13000)
	for _, c := range []struct {
		err  error
		text []string
		no   string
	}{
		{noCompiler, []string{"NVRTC could not be opened", "libnvrtc.so.12", "libnvrtc.so:", EnvNVRTC, "scripts/cuda-env.sh"}, "so.13"},
		{noBLAS, []string{"cuBLASLt could not be opened", "libcublasLt.so.13", "libcublasLt.so.12", EnvCUBLASLt}, "nvrtc"},
	} {
		if !errors.Is(c.err, ErrNoLibrary) || strings.Contains(c.err.Error(), c.no) {
			t.Errorf("got %v", c.err)
		}
		for _, text := range c.text {
			if !strings.Contains(c.err.Error(), text) {
				t.Errorf("%q does not say %q", c.err, text)
			}
		}
	}
	f := fakecuda.New(t, "nvrtcGetCUBIN", "cublasLtMatmul")
	if _, err := OpenCompiler(f.Path, 0); !errors.Is(err, ErrOldDriver) || !strings.Contains(err.Error(), "has no nvrtcGetCUBIN") {
		t.Errorf("an old compiler: %v", err)
	}
	if _, err := OpenBLAS(f.Path, 0); !errors.Is(err, ErrOldDriver) || !strings.Contains(err.Error(), "has no cublasLtMatmul") {
		t.Errorf("an old library: %v", err)
	}
}

// The real compiler, which needs no GPU.
func TestRealCompiler(t *testing.T) {
	if os.Getenv(EnvNVRTC) == "" {
		t.Skip(EnvNVRTC + " is not set; scripts/cuda-env.sh brings NVRTC")
	}
	v := must[*Compiler](t)(OpenCompiler("", 0))
	t.Logf("NVRTC %v: %s", v.Version(), v.Path())
	for _, arch := range []string{"sm_80", "sm_90"} {
		cubin, log, err := v.Compile(fillSource, "fill.cu", arch, nil)
		if err != nil || log != "" {
			t.Fatalf("%s: %q, %v", arch, log, err)
		}
		if err := checkELF(cubin); err != nil || !bytes.Contains(cubin, []byte("fill_u32")) {
			t.Errorf("%s: %d bytes, %v", arch, len(cubin), err)
		}
		if err := checkELF(cubin[:len(cubin)-1]); err == nil {
			t.Errorf("%s: a cubin that is cut off passes", arch)
		}
	}
	_, _, err := v.Compile(strings.Replace(fillSource, "= value", "= worth", 1), "fill.cu", "sm_80", nil)
	var e *CompileError
	if !errors.As(err, &e) || e.Line != 5 || e.Source != "to[i] = worth;" || !strings.Contains(e.Message, `"worth" is undefined`) {
		t.Errorf("got %+v", err)
	}
	if _, _, err := v.Compile(fillSource, "fill.cu", "sm_80", []string{"--no-such-option"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a wrong option: %v", err)
	}
}

// blasSetup is cuBLASLt on a device.
func blasSetup(t *testing.T) (*fakecuda.Fake, *Stream, *BLASHandle) {
	t.Helper()
	f, c, s := setup(t)
	b := must[*BLAS](t)(OpenBLAS(f.Path, 0))
	if b.Version() != 120900 || b.Path() != f.Path {
		t.Errorf("version %d at %s", b.Version(), b.Path())
	}
	return f, s, closing[*BLASHandle](t)(c.NewBLAS(b))
}

// upload copies float32s into memory of their own.
func upload(t *testing.T, p *MemPool, s *Stream, v []float32) DevicePtr {
	t.Helper()
	x := alloc(t, p, s, int64(4*len(v)))
	var bits []uint32
	for _, f := range v {
		bits = append(bits, math.Float32bits(f))
	}
	check(t, s.CopyIn(x, le32(bits...)))
	return x
}

func TestMatmul(t *testing.T) {
	for _, c := range []struct {
		name string
		spec MatmulSpec
	}{
		{"plain", MatmulSpec{M: 3, N: 5, K: 4}},
		{"A transposed", MatmulSpec{M: 3, N: 5, K: 4, A: Matrix{Trans: true}}},
		{"B transposed", MatmulSpec{M: 3, N: 5, K: 4, B: Matrix{Trans: true}}},
		{"both, tf32", MatmulSpec{M: 2, N: 3, K: 4, A: Matrix{Trans: true}, B: Matrix{Trans: true}, TF32: true}},
		{"rows apart", MatmulSpec{M: 3, N: 2, K: 4, A: Matrix{LD: 6}, B: Matrix{LD: 3}, D: Matrix{LD: 5}}},
		{"bias and relu", MatmulSpec{M: 3, N: 5, K: 4, Bias: true, Activation: ReLU}},
		{"bias", MatmulSpec{M: 3, N: 5, K: 4, Bias: true}},
		{"gelu", MatmulSpec{M: 3, N: 5, K: 4, Activation: GELU}},
		{"bias and gelu", MatmulSpec{M: 3, N: 5, K: 4, Bias: true, Activation: GELU}},
		{"relu", MatmulSpec{M: 3, N: 5, K: 4, Activation: ReLU}},
		{"batch", MatmulSpec{M: 3, N: 5, K: 4, Batch: 3, A: Matrix{Stride: 12}, B: Matrix{Stride: 20, Trans: true}, D: Matrix{Stride: 15}}},
		{"batch that shares B", MatmulSpec{M: 3, N: 5, K: 4, Batch: 2, A: Matrix{Stride: 12}, D: Matrix{Stride: 15}, Bias: true}},
	} {
		t.Run(c.name, func(t *testing.T) { testMatmul(t, c.spec) })
	}
}

func testMatmul(t *testing.T, spec MatmulSpec) {
	_, s, h := blasSetup(t)
	p := closing[*MemPool](t)(s.Context().NewPool(0))
	r := rand.New(rand.NewPCG(1, 2))
	data := func() []float32 {
		v := make([]float32, 64)
		for i := range v {
			v[i] = float32(r.IntN(9) - 4) // sums of products are exact
		}
		return v
	}
	a, b, cd, bias := data(), data(), data(), data()
	args := MatmulArgs{A: upload(t, p, s, a), B: upload(t, p, s, b), D: upload(t, p, s, cd), Alpha: 2, Beta: 0.5}
	args.C = upload(t, p, s, cd)
	if spec.Bias {
		args.Bias = upload(t, p, s, bias)
	}
	m := closing[*Matmul](t)(h.NewMatmul(spec))
	check(t, m.Run(s, args))
	got := make([]byte, 4*64)
	check(t, s.CopyOut(got, args.D))
	want := append([]float32(nil), cd...)
	at := func(x Matrix, rows, cols, z, i, j int) int {
		if x.Trans {
			rows, cols, i, j = cols, rows, j, i
		}
		if x.LD != 0 {
			cols = x.LD
		}
		return z*x.Stride + i*cols + j
	}
	for z := range max(spec.Batch, 1) {
		for i := range spec.M {
			for j := range spec.N {
				var sum float32
				for k := range spec.K {
					sum += a[at(spec.A, spec.M, spec.K, z, i, k)] * b[at(spec.B, spec.K, spec.N, z, k, j)]
				}
				d := at(spec.D, spec.M, spec.N, z, i, j)
				sum = 2*sum + 0.5*cd[d]
				if spec.Bias {
					sum += bias[j]
				}
				switch spec.Activation {
				case ReLU:
					sum = max(sum, 0)
				case GELU:
					x := float64(sum)
					sum = float32(x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))))
				}
				want[d] = sum
			}
		}
	}
	for i, w := range want {
		if g := math.Float32frombits(uint32(got[4*i]) | uint32(got[4*i+1])<<8 | uint32(got[4*i+2])<<16 | uint32(got[4*i+3])<<24); math.Abs(float64(g-w)) > 1e-5 {
			t.Fatalf("element %d is %v, want %v", i, g, w)
		}
	}
}

func TestMatmulTypes(t *testing.T) {
	f, _, h := blasSetup(t)
	for _, c := range []struct {
		a, b, d DataType
		n       int
		trans   bool // B lies by columns
		spec    MatmulSpec
		ok      bool
		calls   string
	}{
		{F32, F32, F32, 2, false, MatmulSpec{}, true, "compute=68 scale=0"},
		{F32, F32, F32, 2, false, MatmulSpec{TF32: true}, true, "compute=77 scale=0"},
		{F64, F64, F64, 2, false, MatmulSpec{}, true, "compute=70 scale=1"},
		{F16, F16, F32, 2, false, MatmulSpec{}, true, "compute=68 scale=0"},
		{F16, F16, F16, 2, false, MatmulSpec{}, false, "compute=68 scale=0"}, // the fake has none of these
		{BF16, BF16, F32, 2, false, MatmulSpec{}, false, "compute=68 scale=0"},
		{I8, I8, I32, 4, true, MatmulSpec{}, true, "compute=72 scale=10"},
		{I8, I8, I32, 4, false, MatmulSpec{}, false, "compute=72 scale=10"},
		{I8, I8, I32, 2, true, MatmulSpec{}, false, "compute=72 scale=10"},
		{F8E4M3, F8E5M2, BF16, 16, true, MatmulSpec{FastAccum: true}, true, "compute=68 scale=0"},
		{F8E5M2, F8E4M3, F32, 16, true, MatmulSpec{ScaleRows: true}, true, "compute=68 scale=0"},
		{F8E4M3, F8E4M3, BF16, 16, false, MatmulSpec{}, false, "compute=68 scale=0"},
		{F8E4M3, F8E4M3, BF16, 8, true, MatmulSpec{}, false, "compute=68 scale=0"},
		{F8E5M2, F8E5M2, BF16, 16, true, MatmulSpec{}, false, "compute=68 scale=0"},
	} {
		f.Calls()
		spec := c.spec
		spec.M, spec.N, spec.K = c.n, c.n, c.n
		spec.A, spec.B, spec.D = Matrix{Type: c.a}, Matrix{Type: c.b, Trans: c.trans}, Matrix{Type: c.d}
		m, err := h.NewMatmul(spec)
		if c.ok {
			check(t, err)
			check(t, m.Close())
		} else if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), fmt.Sprintf("matrix product %[1]d×%[1]d×%[1]d: cuda:0: cublasLtMatmulAlgoGetHeuristic", c.n)) {
			t.Errorf("%+v: %v", spec, err)
		}
		if got := after(f.Calls(), "cublasLtMatmulDescCreate"); !reflect.DeepEqual(got, []string{"cublasLtMatmulDescCreate " + c.calls}) {
			t.Errorf("%+v: %q", spec, got)
		}
	}
}

func TestMatmulErrors(t *testing.T) {
	f, s, h := blasSetup(t)
	for _, spec := range []MatmulSpec{{M: 0, N: 1, K: 1}, {M: 1, N: -1, K: 1}, {M: 1, N: 1, K: 1, Batch: -1}, {M: 1, N: 1, K: 1, D: Matrix{Trans: true}}, {M: 2, N: 2, K: 2, A: Matrix{LD: 1}}} {
		if _, err := h.NewMatmul(spec); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	m := must[*Matmul](t)(h.NewMatmul(MatmulSpec{M: 2, N: 2, K: 2, Workspace: 4096}))
	if got, want := m.Choices(), []MatmulChoice{{0, 1}, {1024, 0.5}}; !reflect.DeepEqual(got, want) {
		t.Errorf("choices %v", got)
	}
	p, x := pool(t, s, 64)
	args := MatmulArgs{A: x, B: x + 16, D: x + 32, Alpha: 1}
	for _, c := range []func(a *MatmulArgs){
		func(a *MatmulArgs) { a.Choice = 2 }, func(a *MatmulArgs) { a.Choice = -1 }, func(a *MatmulArgs) { a.Bias = x },
		func(a *MatmulArgs) { a.Choice = 1 }, // without its workspace
	} {
		wrong := args
		c(&wrong)
		if err := m.Run(s, wrong); !errors.Is(err, ErrInvalid) && !strings.Contains(fmt.Sprint(err), "CUBLAS_STATUS_INVALID_VALUE") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	args.Choice, args.Workspace = 1, alloc(t, p, s, 1024)
	f.Calls()
	check(t, m.Run(s, args))
	if got := after(f.Calls(), "cublasLtMatmul"); !reflect.DeepEqual(got, []string{"cublasLtMatmul algo=2 workspace=1024 epilogue=1"}) {
		t.Errorf("%q", got)
	}
	check(t, errors.Join(m.Close(), m.Close()))
	if err := m.Run(s, args); !errors.Is(err, ErrInvalid) {
		t.Errorf("after Close: %v", err)
	}
	// Whatever fails on the way, nothing stays.
	for _, call := range []string{"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
		"cublasLtMatrixLayoutSetAttribute", "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"} {
		f.Fail(call, 3, 0, true)
		_, err := h.NewMatmul(MatmulSpec{M: 2, N: 2, K: 2, Batch: 2, Bias: true})
		if !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), call) {
			t.Errorf("%s: %v", call, err)
		}
	}
	f.Fail("cublasLtCreate", 3, 0, true)
	b := h.b
	if _, err := s.Context().NewBLAS(b); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("no handle: %v", err)
	}
	if _, err := OpenBLAS(filepath.Join(t.TempDir(), "none"), 0); !errors.Is(err, ErrNoLibrary) {
		t.Errorf("no file: %v", err)
	}
}
