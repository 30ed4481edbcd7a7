package container_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

// The model x·scale+bias, whose scale is folded from weight and bias, and which
// is told the weight by its name in the program that was traced.
const (
	runText = `program @run {
  %x = parameter "x" : f32[4]
  %scale = parameter "scale" : f32[4]
  %bias = parameter "bias" : f32[4]
  %0 = add(mul(%x, %scale), %bias)
  return %0
}`
	foldText = `program @fold {
  %weight = parameter "weight" : f32[4]
  %bias = parameter "bias" : f32[4]
  %0 = add(%weight, %bias)
  return %0
}`
)

func parse(t testing.TB, text string) *graph.Program {
	t.Helper()
	p, err := graph.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func floats(t testing.TB, d ir.Device, v ...float32) backend.Buffer {
	t.Helper()
	be, err := backend.For(d)
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for _, f := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	b, err := be.Upload(ctx, ir.MakeShape(ir.F32, len(v)), d, data)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func same(v float32) []float32 { return []float32{v, v, v, v} }

func affine(t testing.TB, d ir.Device) *container.Program {
	weight, bias := floats(t, d, same(2)...), floats(t, ref.Device, same(1)...)
	t.Cleanup(func() { weight.Release(); bias.Release() })
	return &container.Program{
		Run: parse(t, runText), Fold: parse(t, foldText), Device: d, Folded: []string{"scale"},
		Constants: []container.ProgramConstant{
			{Name: "weight", OriginalName: "layer.weight", Type: backend.ConstantParameter, Value: weight},
			{Name: "bias", Value: bias},
		},
	}
}

func TestProgram(t *testing.T) {
	for _, d := range []ir.Device{cpu.Device, ref.Device} {
		t.Run(d.String(), func(t *testing.T) {
			be, err := backend.For(d)
			if err != nil {
				t.Fatal(err)
			}
			p := affine(t, d)
			in := floats(t, d, same(10)...)
			before := be.BytesInUse(d)
			c, err := container.New(ctx, p.Compile, container.Config{Instances: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(c.InputNames(), c.OutputNames()); got != "[x] [out0]" {
				t.Errorf("spec %s", got)
			}
			want := func(v float32) {
				t.Helper()
				out, err := c.Run(ctx, []backend.Buffer{in}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if first(out[0]) != v || last(out[0]) != v {
					t.Errorf("got %v and %v, want %v", first(out[0]), last(out[0]), v)
				}
				out[0].Release()
			}
			want(10*(2+1) + 1)
			five := floats(t, ref.Device, same(5)...)
			err = c.Update(ctx, map[string]backend.Buffer{"layer.weight": five}, container.Inactive, container.Partial())
			five.Release()
			if err := errors.Join(err, c.Fold(ctx, container.Inactive)); err != nil {
				t.Fatal(err)
			}
			want(31)
			if err := c.Swap(ctx); err != nil {
				t.Fatal(err)
			}
			want(10*(5+1) + 1)
			got, err := c.ExtractConstants(ctx, container.Active, true)
			if err != nil {
				t.Fatal(err)
			}
			if first(got["layer.weight"]) != 5 || first(got["bias"]) != 1 || len(got) != 2 {
				t.Errorf("extracted %v", got)
			}
			release(got)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if n := be.BytesInUse(d) - before; n != 0 {
				t.Errorf("%d bytes are left", n)
			}
			in.Release()
		})
	}
}

// Inputs may be donated, constants never are.
func TestProgramDonation(t *testing.T) {
	c, err := container.New(ctx, affine(t, cpu.Device).Compile, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		in := floats(t, cpu.Device, same(10)...)
		out, err := c.Run(ctx, []backend.Buffer{in}, []bool{true})
		if err != nil || first(out[0]) != 31 {
			t.Fatalf("got %v, %v", out, err)
		}
		out[0].Release()
		in.Release()
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestProgramSwapsUnderLoad(t *testing.T) {
	c, err := container.New(ctx, affine(t, cpu.Device).Compile, container.Config{Instances: 2})
	if err != nil {
		t.Fatal(err)
	}
	in := floats(t, cpu.Device, same(1)...)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				out, err := c.Run(ctx, []backend.Buffer{in}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				// weight = bias = v gives 1·(v+v)+v.
				if v := first(out[0]); math.Mod(float64(v), 3) != 0 && v != 4 {
					t.Errorf("a torn run: %v", v)
				}
				out[0].Release()
			}
		})
	}
	for v := range 200 {
		b := floats(t, cpu.Device, same(float32(v))...)
		err := c.Update(ctx, map[string]backend.Buffer{"weight": b, "bias": b}, container.Inactive, container.UserManaged())
		b.Release()
		if err := errors.Join(err, c.Swap(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	in.Release()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestProgramErrors(t *testing.T) {
	three := floats(t, cpu.Device, 1, 2, 3)
	defer three.Release()
	for _, tt := range []struct {
		name   string
		change func(*container.Program)
		want   error
		says   string
	}{
		{"no device", func(p *container.Program) { p.Device = ir.Device{} }, ir.ErrDevice, "any"},
		{"unknown constant", func(p *container.Program) { p.Constants[0].Name = "wait" }, ir.ErrArg, `"wait"`},
		{"unknown folded", func(p *container.Program) { p.Folded[0] = "scales" }, ir.ErrArg, `"scales"`},
		{"twice", func(p *container.Program) { p.Constants[1].Name = "weight" }, ir.ErrArg, `"weight"`},
		{"shape", func(p *container.Program) { p.Constants[0].Value = three }, ir.ErrShape, "f32[3]"},
		{"nothing folds", func(p *container.Program) { p.Fold = nil; p.Constants = p.Constants[1:] }, ir.ErrArg, "0 values, 1"},
		{"folds an input", func(p *container.Program) { p.Constants = p.Constants[:1] }, ir.ErrArg, `"bias"`},
		{"folded shape", func(p *container.Program) {
			p.Fold = parse(t, strings.ReplaceAll(foldText, "add(%weight, %bias)", "unsqueeze(%bias, 0)"))
		}, ir.ErrShape, "f32[1,4]"},
		{"shapes differ", func(p *container.Program) { p.Run = parse(t, strings.ReplaceAll(runText, "[4]", "[5]")) }, ir.ErrShape, "f32[5]"},
	} {
		p := affine(t, cpu.Device)
		tt.change(p)
		if _, err := container.New(ctx, p.Compile, container.Config{Instances: 1}); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A program without constants is a container of its own kind.
func TestProgramWithoutConstants(t *testing.T) {
	p := &container.Program{Run: parse(t, runText), Device: ref.Device}
	c, err := container.New(ctx, p.Compile, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	a := floats(t, ref.Device, same(2)...)
	out, err := c.Run(ctx, []backend.Buffer{a, a, a}, nil)
	if err != nil || first(out[0]) != 6 {
		t.Errorf("%v, %v", out, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func Example() {
	// y = x·w, whose w can be replaced while it runs.
	program, err := graph.Parse(`program @y {
  %x = parameter "x" : f32[]
  %w = parameter "w" : f32[]
  %0 = mul(%x, %w)
  return %0
}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	be, _ := backend.For(cpu.Device)
	number := func(v float32) backend.Buffer {
		b, _ := be.Upload(ctx, ir.MakeShape(ir.F32), cpu.Device, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		return b
	}
	p := &container.Program{Run: program, Device: cpu.Device, Constants: []container.ProgramConstant{{Name: "w", Value: number(2)}}}
	c, err := container.New(context.Background(), p.Compile, container.Config{Instances: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	show := func() {
		out, err := c.Run(ctx, []backend.Buffer{number(10)}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(first(out[0]))
	}
	show()
	_ = c.Save(ctx, "before", container.Active)
	_ = c.Update(ctx, map[string]backend.Buffer{"w": number(3)}, container.Inactive)
	_ = c.Swap(ctx)
	show()
	_ = c.Activate(ctx, "before")
	show()
	// Output:
	// 20
	// 30
	// 20
}
