//go:build cuda && linux && cgo

package cuda

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/ir"
)

// compiledModel is testdata/inductor.c as a library, compiled once.
var compiledModel = sync.OnceValues(func() ([]byte, error) { return compileModel() })

func compileModel(flags ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "inductor")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	so := filepath.Join(dir, "model.so")
	args := append([]string{"-shared", "-fPIC", "-O1", "-Wall", "-o", so, "testdata/inductor.c"}, flags...)
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(so)
}

// writePackage writes an archive of the model for CUDA.
func writePackage(t testing.TB) string {
	t.Helper()
	so, err := compiledModel()
	check(t, err)
	return writePackageOf(t, so)
}

// writePackageOf is writePackage for a form of the model.
func writePackageOf(t testing.TB, so []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.pt2")
	f, err := os.Create(path)
	check(t, err)
	z := zip.NewWriter(f)
	const dir = "model/data/aotinductor/model/"
	for _, m := range []struct {
		name string
		data []byte
	}{
		{"model/archive_format", []byte("pt2")},
		{"model/archive_version", []byte("0")},
		{"model/byteorder", []byte("little")},
		{dir + "model.wrapper.so", so},
		{dir + "model.wrapper_metadata.json", []byte(`{"AOTI_DEVICE_KEY": "cuda"}`)},
		{dir + "model.wrapper.json", []byte(namedOps)},
		{dir + "kernels.cubin", fakecuda.Cubin(90, "kernel add_f32 4", "kernel trap 1")},
	} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Method: zip.Store})
		check(t, err)
		_, err = w.Write(m.data)
		check(t, err)
	}
	check(t, z.Close())
	check(t, f.Close())
	return path
}

// namedOps are the ops that the model calls by their names.
var namedOps = func() string {
	node := func(target string) string {
		return `{"name": "buf", "node": {"target": "` + target + `", "inputs": [
			{"name": "self", "arg": {"as_tensor": {"name": "a"}}, "kind": 1},
			{"name": "other", "arg": {"as_tensor": {"name": "b"}}, "kind": 1}],
			"outputs": [{"as_tensor": {"name": "buf"}}]}}`
	}
	return `{"nodes": [` + node("aten::hypot") + "," + node("loristest::difference") + `]}`
}()

// difference is an op of the user's.
func difference(args aoti.OpArgs) ([]backend.Buffer, error) {
	x, err := aoti.Float32s(args["self"].(backend.Buffer))
	if err != nil {
		return nil, err
	}
	y, err := aoti.Float32s(args["other"].(backend.Buffer))
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(x))
	for i := range out {
		out[i] = x[i] - y[i]
	}
	return []backend.Buffer{aoti.FromSlice(out, args["self"].(backend.Buffer).Shape().Dims()...)}, nil
}

// loadModel loads the model on a stand-in.
func loadModel(t testing.TB, devices int, opts ...aoti.Option) (*fakecuda.Fake, *Backend, *aoti.Runner) {
	t.Helper()
	return loadPackage(t, devices, writePackage(t), opts...)
}

// loadPackage is loadModel for a package.
func loadPackage(t testing.TB, devices int, path string, opts ...aoti.Option) (*fakecuda.Fake, *Backend, *aoti.Runner) {
	t.Helper()
	f, b := newFake(t, devices)
	before := accelerator.Of("cuda")
	accelerator.Register("cuda", b)
	t.Cleanup(func() { accelerator.Register("cuda", before) })
	check(t, aoti.RegisterOp("loristest::difference", difference))
	t.Cleanup(func() { aoti.UnregisterOp("loristest::difference") })
	r, err := aoti.Load(t.Context(), path, opts...)
	check(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f, b, r
}

// filled returns an array on a GPU whose elements are all v.
func filled(t testing.TB, b *Backend, d ir.Device, v float32, dims ...int) backend.Buffer {
	t.Helper()
	s := ir.MakeShape(ir.F32, dims...)
	data := make([]float32, s.Numel())
	for i := range data {
		data[i] = v
	}
	host := aoti.FromSlice(data, dims...)
	if d.Type != DeviceType {
		return host
	}
	bytes, err := host.Bytes(t.Context())
	check(t, err)
	buf, err := b.Upload(t.Context(), s, d, bytes)
	check(t, err)
	t.Cleanup(buf.Release)
	return buf
}

// same returns the element that all elements of a buffer are; an error if they differ.
func same(ctx context.Context, b backend.Buffer) (float32, error) {
	v, err := aoti.Float32s(b)
	if err != nil {
		return 0, err
	}
	for i, x := range v {
		if x != v[0] {
			return 0, fmt.Errorf("torn: element %d is %v, the first %v", i, x, v[0])
		}
	}
	return v[0], nil
}

// runs runs the model and returns what all elements of the output are.
func runs(t testing.TB, r *aoti.Runner, x backend.Buffer) float32 {
	t.Helper()
	out, err := r.Run(t.Context(), x)
	check(t, err)
	defer out[0].Release()
	v, err := same(t.Context(), out[0])
	check(t, err)
	return v
}

func TestInductorRun(t *testing.T) {
	_, b, r := loadModel(t, 2, aoti.Device("cuda:1"), aoti.Instances(2))
	x := filled(t, b, gpu(1), 3, 5, 8)
	for range 3 {
		if v := runs(t, r, x); v != 2*(3*8+1) {
			t.Errorf("got %v", v)
		}
	}
	out, err := r.Run(t.Context(), x)
	check(t, err)
	if out[0].Device() != gpu(1) || out[0].Shape() != ir.MakeShape(ir.F32, 5, 4) {
		t.Errorf("the output is %v on %v", out[0].Shape(), out[0].Device())
	}
	check(t, out[0].(backend.AsyncBuffer).Wait(t.Context()))
	into := filled(t, b, gpu(1), 0, 5, 4)
	check(t, r.RunInto(t.Context(), []backend.Buffer{x}, []backend.Buffer{into}))
	if v, err := same(t.Context(), into); v != 50 || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	check(t, r.Close())
	if v, err := same(t.Context(), out[0]); v != 50 || err != nil {
		t.Errorf("after Close: %v, %v", v, err)
	}
	out[0].Release()
}

func TestInductorWantsItsDevice(t *testing.T) {
	_, b, r := loadModel(t, 2)
	for _, d := range []ir.Device{{Type: ir.RegisterDeviceType("cpu")}, gpu(1)} {
		_, err := r.Run(t.Context(), filled(t, b, d, 1, 2, 8))
		if !errors.Is(err, ir.ErrDevice) || !errors.Is(err, accelerator.ErrPlace) || !strings.Contains(err.Error(), "input 0") {
			t.Errorf("an input on %v: %v", d, err)
		}
	}
	if v := runs(t, r, filled(t, b, gpu(0), 1, 2, 8)); v != 18 {
		t.Errorf("got %v", v)
	}
	_, err := aoti.Load(t.Context(), writePackage(t), aoti.Device("cuda:9"))
	if !errors.Is(err, ErrNoDevice) || !errors.Is(err, ir.ErrDevice) {
		t.Errorf("a device that there is not: %v", err)
	}
	var target *aoti.TargetError
	if _, err = aoti.Load(t.Context(), writePackage(t), aoti.Device("cpu")); !errors.As(err, &target) {
		t.Errorf("on the CPU: %v", err)
	}
}

func TestInductorConstants(t *testing.T) {
	for _, where := range []ir.Device{{Type: ir.RegisterDeviceType("cpu")}, gpu(0), gpu(1)} {
		for _, managed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v managed=%v", where, managed), func(t *testing.T) {
				_, b, r := loadModel(t, 2)
				x := filled(t, b, gpu(0), 1, 2, 8)
				var opts []aoti.UpdateOption
				if managed {
					opts = append(opts, aoti.UserManaged())
				}
				check(t, r.Update(t.Context(), map[string]backend.Buffer{
					"layer.weight": filled(t, b, where, 2, 8, 4), "layer.bias": filled(t, b, where, 5, 4),
				}, aoti.Inactive, opts...))
				if v := runs(t, r, x); v != 18 {
					t.Errorf("before the swap: %v", v)
				}
				check(t, r.Swap(t.Context()))
				if v := runs(t, r, x); v != 42 {
					t.Errorf("after the swap: %v", v)
				}
			})
		}
	}
}

// TestInductorStridedConstants checks that values get the strides that the library
// gives its constants, wherever they come from, and lie in the library's blob with
// them.
func TestInductorStridedConstants(t *testing.T) {
	so, err := compileModel("-DTRANSPOSED")
	check(t, err)
	path := writePackageOf(t, so)
	_, b, r := loadPackage(t, 2, path)
	put := func(d ir.Device, v []float32, dims ...int) backend.Buffer {
		on := aoti.FromSlice(v, dims...)
		if d.Type != DeviceType {
			return on
		}
		raw, err := on.Bytes(t.Context())
		check(t, err)
		buf, err := b.Upload(t.Context(), on.Shape(), d, raw)
		check(t, err)
		t.Cleanup(buf.Release)
		return buf
	}
	// Each row of x picks a row of the weight.
	x := make([]float32, 2*8)
	x[3], x[8+5] = 1, 1
	in := put(gpu(0), x, 2, 8)
	for i, where := range []ir.Device{{Type: ir.RegisterDeviceType("cpu")}, gpu(0), gpu(1)} {
		w := make([]float32, 8*4)
		for k := range w {
			w[k] = float32(100*i + 10*(k/4) + k%4)
		}
		check(t, r.Update(t.Context(), map[string]backend.Buffer{
			"layer.weight": put(where, w, 8, 4), "layer.bias": filled(t, b, where, 0.5, 4),
		}, aoti.Inactive))
		check(t, r.Swap(t.Context()))
		out, err := r.Run(t.Context(), in)
		check(t, err)
		got, err := aoti.Float32s(out[0])
		check(t, err)
		out[0].Release()
		for k, y := range got {
			if want := 2 * (w[4*[]int{3, 5}[k/4]+k%4] + 0.5); y != want {
				t.Errorf("from %v: element %d is %v, want %v", where, k, y, want)
			}
		}
	}
}

func TestInductorSwapUnderLoad(t *testing.T) {
	_, b, r := loadModel(t, 1, aoti.Instances(3))
	x := filled(t, b, gpu(0), 1, 112, 8) // whose result goes through kernels of the host
	sets := [2]map[string]backend.Buffer{}
	for i := range sets {
		v := float32(i + 1)
		sets[i] = map[string]backend.Buffer{"w": filled(t, b, gpu(0), v, 8, 4), "b": filled(t, b, gpu(0), v, 4)}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				out, err := r.Run(t.Context(), x)
				if err != nil {
					t.Error(err)
					return
				}
				v, err := same(t.Context(), out[0])
				if out[0].Release(); err != nil || v != 18 && v != 36 {
					t.Errorf("got %v, %v", v, err)
					return
				}
			}
		})
	}
	for i := range 20 {
		check(t, r.Update(t.Context(), sets[i%2], aoti.Inactive))
		check(t, r.Swap(t.Context()))
	}
	close(done)
	wg.Wait()
}

func TestInductorFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		rows int
		want error
		text string
		lost bool
	}{
		{"a kernel traps", 101, driver.ErrLost, "", true},
		{"memory is exhausted", 102, ErrOutOfMemory, "compute", false},
		{"another device is asked for", 103, nil, "device 3", false},
		{"a launch is refused", 104, nil, "launch", false},
		{"a kernel is not in the package", 105, nil, "none.cubin", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, b, r := loadModel(t, 2)
			out, err := r.Run(t.Context(), filled(t, b, gpu(0), 1, c.rows, 8))
			if err == nil {
				// What happens there is told to those who wait for it, and read it.
				err = out[0].(backend.AsyncBuffer).Wait(t.Context())
				if _, also := out[0].Bytes(t.Context()); (err == nil) != (also == nil) {
					t.Errorf("Wait: %v, Bytes: %v", err, also)
				}
				out[0].Release()
			}
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v", err)
			}
			if c.lost {
				_, err := r.Run(t.Context(), filled(t, b, gpu(1), 1, 2, 8))
				if err == nil {
					t.Error("a model on a device that is lost runs")
				}
				other := filled(t, b, gpu(1), 1, 2)
				_, err = other.Bytes(t.Context())
				check(t, err)
				return
			}
			if v := runs(t, r, filled(t, b, gpu(0), 1, 2, 8)); v != 18 {
				t.Errorf("the next run: %v", v)
			}
		})
	}
}

func TestInductorFrees(t *testing.T) {
	_, b, r := loadModel(t, 1, aoti.Instances(2))
	x := filled(t, b, gpu(0), 1, 2, 8)
	_ = runs(t, r, x)
	before := b.BytesInUse(gpu(0))
	for i := range 6 {
		cpu := ir.Device{Type: ir.RegisterDeviceType("cpu")}
		check(t, r.Update(t.Context(), map[string]backend.Buffer{
			"w": filled(t, b, cpu, float32(i), 8, 4), "b": filled(t, b, cpu, float32(i), 4),
		}, aoti.Active))
		_ = runs(t, r, x)
	}
	if now := b.BytesInUse(gpu(0)); now > before+int64(2*8*4*4) {
		t.Errorf("%d bytes in use, before the updates %d", now, before)
	}
	check(t, r.Close())
	if now := b.BytesInUse(gpu(0)); now != int64(x.Shape().Bytes()) {
		t.Errorf("%d bytes in use after Close, the input has %d", now, x.Shape().Bytes())
	}
}
