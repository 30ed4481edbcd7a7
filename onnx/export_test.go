package onnx

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	program "github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

var exportTo = flag.String("onnx.export", "", "folder that exported models go to with their inputs and outputs, for scripts/onnx-export-check")

// exported are Programs to write. Parameters whose names begin with w are weights.
var exported = map[string]string{
	"mlp": `%x = parameter "x" : f32[3,4]
  %w = parameter "w" : f32[5,4]
  %b = parameter "wb" : f32[5]
  %0 = linear(%x, %w, %b)
  %1 = gelu(%0, approximate="tanh")
  %2 = softmax(%1, dim=-1)
  return %2, %x`,
	"convolutions": `%x = parameter "x" : f32[2,3,8,9]
  %w = parameter "w" : f32[4,3,3,3]
  %b = parameter "wb" : f32[4]
  %0 = conv2d(%x, %w, %b, stride=[2,1], padding=[1,0])
  %1 = relu(%0)
  %2, %3 = max_pool2d_with_indices(%1, kernel_size=[2,2])
  %4 = avg_pool2d(%1, kernel_size=[2,2])
  return %2, %3, %4`,
	"attention": `%q = parameter "q" : f32[2,2,5,4]
  %k = parameter "k" : f32[2,2,5,4]
  %v = parameter "v" : f32[2,2,5,4]
  %0 = scaled_dot_product_attention(%q, %k, %v, is_causal=true)
  return %0`,
	"norms": `%x = parameter "x" : f32[2,6,5]
  %w = parameter "w" : f32[5]
  %b = parameter "wb" : f32[5]
  %0 = layer_norm(%x, normalized_shape=[5], weight=%w, bias=%b)
  %1 = rms_norm(%x, normalized_shape=[5], weight=%w)
  %2 = group_norm(%x, num_groups=3)
  return %0, %1, %2`,
	"shapes": `%x = parameter "x" : f32[3,4]
  %0 = permute(%x, dims=[1,0])
  %1 = reshape(%0, shape=[2,6])
  %2 = slice(%1, dim=1, start=1, end=6, step=2)
  %3 = flip(%2, dims=[0,1])
  %4 = cat([%3, %2], dim=0)
  %5 = constant_pad_nd(%4, pad=[1,-1,0,2], value=1.5)
  %6 = cumsum(%5, dim=1)
  %7 = expand(%6, size=[2,6,3])
  return %7`,
	"integers": `%x = parameter "x" : i64[2,3]
  %0 = add(%x, 3)
  %1 = maximum(%0, %x)
  %2 = gt(%1, 4)
  %3 = where(%2, %0, %x)
  %4 = sum(%3, dim=[1])
  %5 = any(%2)
  %6 = cast(%3, dtype=f32)
  return %4, %2, %6`,
	"indices": `%x = parameter "x" : f32[4,5]
  %i = parameter "i" : i64[2]
  %0 = index_select(%x, dim=0, index=%i)
  %1, %2 = sort(%0, dim=1, descending=true)
  %3 = argmax(%0, dim=1)
  %4 = gather(%0, dim=1, index=%2)
  return %1, %2, %3, %4`,
	"reductions": `%x = parameter "x" : f32[2,3,4]
  %0 = mean(%x, dim=[0,2])
  %1 = amax(%x, dim=[1], keepdim=true)
  %2 = prod(%x, dim=[1])
  %3 = sum(%x)
  %4 = std(%x, dim=[2])
  %5 = logsumexp(%x, dim=[1])
  return %0, %1, %2, %3, %4, %5`,
	"pointwise": `%x = parameter "x" : f32[7]
  %0 = rsqrt(%x)
  %1 = expm1(%x)
  %2 = log1p(%x)
  %3 = silu(%x)
  %4 = leaky_relu(%x)
  %5 = clamp(%x, 0.2, 0.8)
  %6 = elu(%x)
  %7 = erf(%x)
  return %0, %1, %2, %3, %4, %5, %6, %7`,
	"factories": `%x = parameter "x" : f32[3]
  %0 = full(size=[2,3], fill_value=2.5, dtype=f32)
  %1 = arange(start=0, end=3, step=1, dtype=f32)
  %2 = mul(%x, %1)
  %3 = add(%0, %2)
  return %3`,
}

func TestExport(t *testing.T) {
	for name, text := range exported {
		t.Run(name, func(t *testing.T) {
			p, err := program.Parse("program @" + name + " {\n  " + text + "\n}\n")
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			inputs, constants, all := exampleInputs(p)
			want := runReference(ctx, t, p, all)
			var file bytes.Buffer
			if err := Export(ctx, &file, p, ExportOptions{Constants: constants}); err != nil {
				t.Fatal(err)
			}
			if *exportTo != "" {
				writeCase(t, filepath.Join(*exportTo, name), file.Bytes(), p, inputs, want)
			}
			m, err := Decode(name, file.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if got := len(m.Signature().Inputs); got != len(inputs) {
				t.Fatalf("%d inputs, %d are expected", got, len(inputs))
			}
			outs, err := m.Call(ctx, inputs...)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range outs {
				if o.Shape() != want[i].Shape() {
					t.Fatalf("output %d is %v, %v is expected", i, o.Shape(), want[i].Shape())
				}
				got, err := o.Bytes(ctx)
				if err != nil {
					t.Fatal(err)
				}
				data, err := want[i].Bytes(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := alike(o.DType(), got, data, 1e-4, 1e-5); err != nil {
					t.Errorf("output %d: %v", i, err)
				}
			}
		})
	}
}

// exampleInputs makes values for the parameters: integers from 0 to 2, floats from 0.1 to 1.
func exampleInputs(p *program.Program) (inputs []*loris.Tensor, constants map[string]Constant, all [][]byte) {
	constants = map[string]Constant{}
	for k, q := range p.Params {
		var data []byte
		for i := range q.Shape.Numel() {
			if q.Shape.DType().IsFloat() {
				data = elements.AppendFloat(data, q.Shape.DType(), 0.55+0.45*math.Sin(float64(7*k+3*i)))
			} else {
				data = elements.AppendInt(data, q.Shape.DType(), int64((i*i+k)%3))
			}
		}
		all = append(all, data)
		if strings.HasPrefix(q.Name, "w") {
			constants[q.Name] = Constant{q.Shape, data}
		} else {
			inputs = append(inputs, loris.FromBytes(data, q.Shape))
		}
	}
	return inputs, constants, all
}

func runReference(ctx context.Context, t *testing.T, p *program.Program, all [][]byte) []backend.Buffer {
	t.Helper()
	be, err := backend.For(loris.Ref)
	if err != nil {
		t.Fatal(err)
	}
	lowered, _ := program.Optimize(p, program.Options{Supports: be.Supports})
	m, err := be.Compile(ctx, lowered, loris.Ref, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	var in []backend.Buffer
	for i, q := range p.Params {
		b, err := be.Upload(ctx, q.Shape, loris.Ref, all[i])
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, b)
	}
	outs, err := m.Run(ctx, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

// writeCase writes a model with its data as ONNX's backend tests have them.
func writeCase(t *testing.T, dir string, file []byte, p *program.Program, inputs []*loris.Tensor, want []backend.Buffer) {
	t.Helper()
	ctx := context.Background()
	set := filepath.Join(dir, "test_data_set_0")
	if err := os.MkdirAll(set, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(path string, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "model.onnx"), file)
	for i, in := range inputs {
		data, err := in.Bytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		put(filepath.Join(set, fmt.Sprintf("input_%d.pb", i)), pb.EncodeTensor(tensorOf("", in.Shape(), data)))
	}
	for i, o := range want {
		data, err := o.Bytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		put(filepath.Join(set, fmt.Sprintf("output_%d.pb", i)), pb.EncodeTensor(tensorOf("", o.Shape(), data)))
	}
}

// What ONNX cannot say is listed at once, and constants that do not fit are refused.
func TestExportRefuses(t *testing.T) {
	ctx := context.Background()
	parse := func(text string) *program.Program {
		p, err := program.Parse("program @p {\n  " + text + "\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := parse(`%x = parameter "x" : f32[3,3]
  %0 = linalg_matrix_exp(%x)
  %1 = erfinv(%0)
  return %1`)
	var u *UnsupportedError
	if err := Export(ctx, &bytes.Buffer{}, p, ExportOptions{}); !errors.As(err, &u) || len(u.Items) != 2 || !strings.Contains(err.Error(), "linalg_matrix_exp") || !strings.Contains(err.Error(), "erfinv") {
		t.Error(err)
	}
	p = parse("%x = parameter \"x\" : f32[3]\n  return %x")
	if err := Export(ctx, &bytes.Buffer{}, p, ExportOptions{Constants: map[string]Constant{"y": {}}}); !errors.Is(err, ir.ErrArg) {
		t.Error(err)
	}
	if err := Export(ctx, &bytes.Buffer{}, p, ExportOptions{Constants: map[string]Constant{"x": {Shape: p.Params[0].Shape}}}); !errors.Is(err, ir.ErrShape) {
		t.Error(err)
	}
}
