//go:build cuda && linux && cgo

package driver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
)

// These are of the stand-in, too: what tests of the layers above rely on.

const kernelsSource = `
struct Frame { unsigned long long to, n; };

// Each block sums its part of 0, 1, … n-1 by shuffles and shared memory.
extern "C" __global__ void sums(const Frame f) {
  __shared__ unsigned part[32];
  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  unsigned v = i < f.n ? i : 0;
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (t % 32 == 0) part[t / 32] = v;
  __syncthreads();
  if (t == 0) {
    unsigned all = 0;
    for (unsigned w = 0; w < blockDim.x / 32; w++) all += part[w];
    ((unsigned*)f.to)[blockIdx.x] = all;
  }
}

extern "C" __global__ void mixed(unsigned* to, unsigned char a, double b, unsigned short c) {
  to[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)] = a + (unsigned)b + c + blockIdx.y + gridDim.z;
}

extern "C" __global__ void fails(unsigned* to) {
  if (threadIdx.x == 40) __trap();
  __syncthreads();
  to[threadIdx.x] = 1;
}
`

func loadKernels(t *testing.T, f *fakecuda.Fake, c *Context) *Module {
	t.Helper()
	v := must[*Compiler](t)(OpenCompiler(f.Path, 0))
	cubin, log, err := v.Compile(kernelsSource, "kernels.cu", "sm_90", nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return closing[*Module](t)(c.LoadModule(cubin))
}

func numbers(t *testing.T, s *Stream, from DevicePtr, n int) []uint32 {
	t.Helper()
	b := make([]byte, 4*n)
	check(t, s.CopyOut(b, from))
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}

func TestKernels(t *testing.T) {
	f, c, s := setup(t)
	m := loadKernels(t, f, c)
	_, x := pool(t, s, 4096)
	sums := must[*Function](t)(m.Function("sums"))
	for _, block := range []uint32{32, 256, 1024} {
		n := 3*block - 5
		check(t, sums.Launch(s, Launch{Grid: Dim{X: 3}, Block: Dim{X: block}}, []uint64{uint64(x), uint64(n)}))
		for i, got := range numbers(t, s, x, 3) {
			lo, hi := uint32(i)*block, min(uint32(i+1)*block, n)
			if want := (hi*(hi-1) - lo*(lo-1)) / 2; lo > 0 && got != want || lo == 0 && got != hi*(hi-1)/2 {
				t.Errorf("blocks of %d: part %d is %d, want %d", block, i, got, want)
			}
		}
	}
	mixed := must[*Function](t)(m.Function("mixed"))
	params := []uint64{uint64(x), 1<<63 + 200, 0x4024000000000000, 300} // the high bits of a char are no part of it
	check(t, mixed.Launch(s, Launch{Grid: Dim{1, 1, 7}, Block: Dim{2, 3, 4}}, params))
	for i, got := range numbers(t, s, x, 24) {
		if got != 200+10+300+0+7 {
			t.Errorf("element %d is %d", i, got)
		}
	}
}

func TestKernelsInGraphs(t *testing.T) {
	f, c, s := setup(t)
	m := loadKernels(t, f, c)
	_, x := pool(t, s, 64)
	sums := must[*Function](t)(m.Function("sums"))
	how := Launch{Block: Dim{X: 32}}
	params := func(i, n uint64) []uint64 { return []uint64{uint64(x) + 4*i, n + i} }
	check(t, s.BeginCapture())
	check(t, sums.Launch(s, how, params(1, 5)))
	second := closing[*Graph](t)(s.EndCapture())
	g := closing[*Graph](t)(c.NewGraph())
	kernel := must[Node](t)(g.AddKernel(Node{}, sums, how, params(0, 5)))
	child := must[Node](t)(g.AddChild(kernel, second))
	check(t, s.Set(x, 0, 4, 2))
	exec := closing[*GraphExec](t)(g.Instantiate())
	if got := fmt.Sprint(numbers(t, s, x, 2)); got != "[0 0]" {
		t.Errorf("after the capture: %s", got)
	}
	for _, n := range []uint64{5, 9} {
		check(t, exec.SetKernel(kernel, sums, how, params(0, n)))
		check(t, s.BeginCapture())
		check(t, sums.Launch(s, how, params(1, n)))
		check(t, exec.SetChild(child, closing[*Graph](t)(s.EndCapture())))
		for range 2 {
			check(t, s.Set(x, 0, 4, 2))
			check(t, exec.Launch(s))
			if got, want := fmt.Sprint(numbers(t, s, x, 2)), fmt.Sprintf("[%d %d]", n*(n-1)/2, (n+1)*n/2); got != want {
				t.Errorf("replayed for %d: %s, want %s", n, got, want)
			}
		}
	}
}

func TestKernelThatTraps(t *testing.T) {
	f, d := start(t, 2)
	bad := must[*Context](t)(must[*Device](t)(d.Device(0)).Retain())
	good := retain(t, d, 1)
	v := must[*Compiler](t)(OpenCompiler(f.Path, 0))
	cubin, _, err := v.Compile(kernelsSource, "kernels.cu", "sm_90", nil)
	check(t, err)
	m := must[*Module](t)(bad.LoadModule(cubin))
	s := must[*Stream](t)(bad.NewStream(0))
	fails := must[*Function](t)(m.Function("fails"))
	check(t, fails.Launch(s, Launch{Block: Dim{X: 64}}, []uint64{0}))
	if err := s.Wait(background); !IsLost(err) {
		t.Errorf("the wait says %v", err)
	}
	for _, x := range []interface{ Close() error }{m, s} {
		if err := x.Close(); !IsLost(err) {
			t.Errorf("closing %T says %v", x, err)
		}
	}
	check(t, bad.Close())
	// The other device computes as before.
	other := closing[*Stream](t)(good.NewStream(0))
	_, x := pool(t, other, 64)
	sums := must[*Function](t)(closing[*Module](t)(good.LoadModule(cubin)).Function("sums"))
	check(t, sums.Launch(other, Launch{Block: Dim{X: 64}}, []uint64{uint64(x), 64}))
	if got := numbers(t, other, x, 1)[0]; got != 64*63/2 {
		t.Errorf("got %d", got)
	}
}

func TestErrorsOfSources(t *testing.T) {
	f := fakecuda.New(t)
	v := must[*Compiler](t)(OpenCompiler(f.Path, 0))
	_, _, err := v.Compile("// first\nextern \"C\" __global__ void k(int* p) {\n  p[0] = worth;\n}\n", "k.cu", "sm_90", nil)
	var e *CompileError
	if !errors.As(err, &e) || e.Line != 3 || e.Source != "p[0] = worth;" {
		t.Errorf("got %+v", err)
	}
}
