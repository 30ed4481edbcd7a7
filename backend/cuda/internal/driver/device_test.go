//go:build cuda && linux && cgo

package driver

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
)

// The same tests on the stand-in and, where there is one, on a GPU, so that what
// is true of the one is known of the other.
func TestOnFakeAndReal(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		f := fakecuda.New(t)
		onDevice(t, must[*Driver](t)(Open(f.Path)), f.Path)
	})
	t.Run("real", func(t *testing.T) {
		d, err := Open("")
		if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
			t.Skip(err)
		}
		check(t, err)
		onDevice(t, d, "")
	})
}

// onDevice tests the first device with the libraries at path.
func onDevice(t *testing.T, d *Driver, path string) {
	g := must[*Device](t)(d.Device(0))
	p, err := g.Properties()
	check(t, err)
	t.Logf("%+v, CUDA %v at %s", p, d.Version(), d.Path())
	if p.Name == "" || p.Major < 5 || p.SMs < 1 || p.WarpSize != 32 || p.Memory < 1<<20 || p.MaxThreadsPerBlock < 512 || p.SharedPerBlockMax < p.SharedPerBlock {
		t.Errorf("properties %+v", p)
	}
	c := retain(t, d, 0)
	s := closing[*Stream](t)(c.NewStream(0))
	t.Run("kernel", func(t *testing.T) {
		v, err := OpenCompiler(path, d.Version())
		if errors.Is(err, ErrNoLibrary) {
			t.Skip(err)
		}
		check(t, err)
		onDeviceKernel(t, c, s, v, p)
	})
	t.Run("product", func(t *testing.T) {
		b, err := OpenBLAS(path, d.Version())
		if errors.Is(err, ErrNoLibrary) {
			t.Skip(err)
		}
		check(t, err)
		onDeviceProduct(t, s, closing[*BLASHandle](t)(c.NewBLAS(b)))
	})
	t.Run("memory", func(t *testing.T) {
		pool, x := pool(t, s, 1<<16)
		if st, err := pool.Stats(); st.Used < 1<<16 || st.Reserved < st.Used || err != nil {
			t.Errorf("%+v, %v", st, err)
		}
		_, total, err := c.MemInfo()
		check(t, err)
		var full *MemoryError
		if _, err := pool.Alloc(s, 2*total); !errors.As(err, &full) || full.Wanted != 2*total || full.Total != total {
			t.Errorf("twice the memory: %v", err)
		}
		check(t, s.Set(x, 0x0102, 2, 1<<15))
		got := make([]byte, 1<<16)
		check(t, s.CopyOut(got, x))
		for i, b := range got {
			if b != byte(2-i%2) {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
	})
}

// onDeviceKernel compiles a kernel, launches it and replays it as a graph.
func onDeviceKernel(t *testing.T, c *Context, s *Stream, v *Compiler, p Properties) {
	const n = 1000
	cubin, _, err := v.Compile(fillSource, "fill.cu", p.Arch(), nil)
	check(t, err)
	m := closing[*Module](t)(c.LoadModule(cubin))
	fill := must[*Function](t)(m.Function("fill_u32"))
	if a, err := fill.Attributes(); a.MaxThreads < 128 || a.Arch == 0 || err != nil {
		t.Errorf("%+v, %v", a, err)
	}
	if blocks, err := fill.BlocksPerSM(128, 0); blocks < 1 || err != nil {
		t.Errorf("%d blocks, %v", blocks, err)
	}
	_, x := pool(t, s, 4*n)
	host := closing[*HostMem](t)(c.NewHostMem(4 * n))
	from, to := closing[*Event](t)(c.NewEvent(true)), closing[*Event](t)(c.NewEvent(true))
	launch := func(value uint64) {
		check(t, fill.Launch(s, Launch{Block: Dim{X: 128}}, []uint64{uint64(x), value, n}))
		check(t, s.CopyOut(host.Bytes(), x))
	}
	expect := func(want uint32) {
		t.Helper()
		check(t, to.Record(s))
		check(t, to.Wait(background))
		for i := 0; i < 4*n; i += 4 {
			if got := binary.LittleEndian.Uint32(host.Bytes()[i:]); got != want {
				t.Fatalf("element %d is %d, want %d", i/4, got, want)
			}
		}
	}
	check(t, from.Record(s))
	launch(7)
	expect(7)
	if d, err := to.Since(from); d < 0 || err != nil {
		t.Errorf("the time is %v, %v", d, err)
	}
	// A graph of the kernel and a captured copy, whose kernel is replaced.
	check(t, s.BeginCapture())
	check(t, s.CopyOut(host.Bytes(), x))
	copied := closing[*Graph](t)(s.EndCapture())
	params := func(value uint64) []uint64 { return []uint64{uint64(x), value, n} }
	g := closing[*Graph](t)(c.NewGraph())
	kernel := must[Node](t)(g.AddKernel(Node{}, fill, Launch{Block: Dim{X: 128}}, params(8)))
	must[Node](t)(g.AddChild(kernel, copied))
	exec := closing[*GraphExec](t)(g.Instantiate())
	expect(7)
	check(t, exec.Launch(s))
	expect(8)
	check(t, exec.SetKernel(kernel, fill, Launch{Block: Dim{X: 128}}, params(9)))
	check(t, exec.Launch(s))
	expect(9)
}

// onDeviceProduct computes a product with a bias and relu.
func onDeviceProduct(t *testing.T, s *Stream, h *BLASHandle) {
	const size = 64
	p := closing[*MemPool](t)(s.Context().NewPool(0))
	a, b, bias := make([]float32, size*size), make([]float32, size*size), make([]float32, size)
	for i := range a {
		a[i], b[i] = float32(i%7-3), float32(i%5-2) // sums are exact
	}
	for i := range bias {
		bias[i] = float32(i - 30)
	}
	m := closing[*Matmul](t)(h.NewMatmul(MatmulSpec{M: size, N: size, K: size, Bias: true, Activation: ReLU}))
	t.Logf("choices %v", m.Choices())
	d := alloc(t, p, s, 4*size*size)
	check(t, m.Run(s, MatmulArgs{A: upload(t, p, s, a), B: upload(t, p, s, b), D: d, Bias: upload(t, p, s, bias), Alpha: 1}))
	got := make([]byte, 4*size*size)
	check(t, s.CopyOut(got, d))
	for i := range size {
		for j := range size {
			want := bias[j]
			for k := range size {
				want += a[i*size+k] * b[k*size+j]
			}
			want = max(want, 0)
			if g := math.Float32frombits(binary.LittleEndian.Uint32(got[4*(i*size+j):])); g != want {
				t.Fatalf("element %d, %d is %v, want %v", i, j, g, want)
			}
		}
	}
}
