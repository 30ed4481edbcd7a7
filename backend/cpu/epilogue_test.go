package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

// epilogueCases are Programs and the steps they take: what can be done to the
// results of a dense op is, and what is needed otherwise stays.
var epilogueCases = []struct {
	name, text string
	steps      int
}{
	{"linear", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[17,20]
		%b = parameter "b" : f32[17]
		return linear(%x, %w, %b)`, 1},
	{"linear and relu", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[17,20]
		%b = parameter "b" : f32[17]
		return relu(linear(%x, %w, %b))`, 1},
	{"gelu", `
		%x = parameter "x" : f32[2,3,20]
		%w = parameter "w" : f32[17,20]
		%b = parameter "b" : f32[17]
		return gelu(linear(%x, %w, %b))`, 1},
	{"gelu by tanh", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20,17]
		return gelu(matmul(%x, %w), approximate="tanh")`, 1},
	{"gelu written out", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20,17]
		%0 = matmul(%x, %w)
		%1 = erf(div(%0, full([], 1.4142135623730951, f32)))
		return mul(mul(full([], 0.5, f32), %0), add(full([], 1.0, f32), %1))`, 1},
	{"silu of f64", `
		%x = parameter "x" : f64[9,20]
		%w = parameter "w" : f64[20,17]
		return silu(matmul(%x, %w))`, 1},
	{"sigmoid of bf16", `
		%x = parameter "x" : bf16[9,20]
		%w = parameter "w" : bf16[20,17]
		%b = parameter "b" : bf16[17]
		return sigmoid(add(%b, matmul(%x, %w)))`, 1},
	{"factors of bf16 that are widened", `
		%s = parameter "s" : bf16[17]
		%x = parameter "x" : bf16[9,20]
		%w = parameter "w" : bf16[20,17]
		return addmm(%s, %x, %w)`, 3},
	{"batches of f16 that are widened and summed", `
		%s = parameter "s" : f16[9,17]
		%x = parameter "x" : f16[3,9,20]
		%w = parameter "w" : f16[3,20,17]
		return addbmm(%s, %x, %w)`, 3},
	{"a widened factor with another use", `
		%x = parameter "x" : bf16[9,20]
		%w = parameter "w" : bf16[20,17]
		%0 = cast(%x, dtype=f32)
		return matmul(%0, cast(%w, dtype=f32)), neg(%0)`, 2},
	{"factors of two types that are widened", `
		%x = parameter "x" : bf16[9,20]
		%w = parameter "w" : f16[20,17]
		return matmul(cast(%x, dtype=f32), cast(%w, dtype=f32))`, 3},
	{"gelu of f16, which is computed in f32", `
		%x = parameter "x" : f16[9,20]
		%w = parameter "w" : f16[20,17]
		return gelu(matmul(%x, %w))`, 1},
	{"scale, bias, residual, tanh", `
		%x = parameter "x" : f32[4,9,20]
		%w = parameter "w" : f32[4,20,17]
		%s = parameter "s" : f32[]
		%b = parameter "b" : f32[1,17]
		%r = parameter "r" : f32[4,9,17]
		%0 = div(mul(matmul(%x, %w), %s), full([], 8.0, f32))
		return tanh(add(%r, add(%0, %b)))`, 1},
	{"a residual in another order of dimensions", `
		%x = parameter "x" : f32[4,9,20]
		%w = parameter "w" : f32[20,17]
		%r = parameter "r" : f32[17,4,9]
		return add(matmul(%x, %w), permute(%r, [1,2,0]))`, 1},
	{"a residual whose rows are uneven is copied", `
		%x = parameter "x" : f32[4,9,20]
		%w = parameter "w" : f32[20,17]
		%r = parameter "r" : f32[9,4,17]
		return add(matmul(%x, %w), permute(%r, [1,0,2]))`, 2},
	{"a vector on the left", `
		%x = parameter "x" : f32[20]
		%w = parameter "w" : f32[3,20,17]
		%r = parameter "r" : f32[3,17]
		return relu(add(matmul(%x, %w), %r))`, 1},
	{"a vector on the right", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20]
		return relu(matmul(%x, %w))`, 2},
	{"a sum of two products", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20,17]
		%y = parameter "y" : f32[9,5]
		%v = parameter "v" : f32[5,17]
		return relu(add(matmul(%x, %w), matmul(%y, %v)))`, 2},
	{"a result that is used twice", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20,17]
		%0 = matmul(%x, %w)
		return add(relu(%0), exp(%0))`, 2},
	{"a result that is returned", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20,17]
		%0 = matmul(%x, %w)
		return relu(%0), %0`, 2},
	{"an inner value of an activation that is returned", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20,17]
		%0 = matmul(%x, %w)
		%1 = sigmoid(%0)
		return mul(%0, %1), %1`, 2},
	{"what is computed for the sum only stays with it", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20,17]
		%y = parameter "y" : f32[9,17]
		return add(matmul(%x, %w), mul(%y, %y))`, 2},
	{"a sum that broadcasts the product", `
		%x = parameter "x" : f32[1,20]
		%w = parameter "w" : f32[20,17]
		%r = parameter "r" : f32[9,17]
		return add(matmul(%x, %w), %r)`, 2},
	{"a gradient's mask stays pointwise", `
		%x = parameter "x" : f32[9,20]
		%w = parameter "w" : f32[20,17]
		%y = parameter "y" : f32[9,17]
		return where(le(%y, 0.0), 0.0, matmul(%x, %w))`, 2},
	{"a product that is transposed is made so", `
		%x = parameter "x" : f32[20,9]
		%w = parameter "w" : f32[20,37]
		%b = parameter "b" : f32[37]
		return permute(relu(add(matmul(permute(%x, [1,0]), %w), %b)), [1,0])`, 1},
	{"a batch of products that are transposed", `
		%x = parameter "x" : f32[4,9,20]
		%w = parameter "w" : f32[4,20,17]
		%r = parameter "r" : f32[4,9,17]
		return permute(add(matmul(%x, %w), %r), [0,2,1])`, 1},
	{"rows of two dimensions are not transposed by the product", `
		%x = parameter "x" : f32[4,9,20]
		%w = parameter "w" : f32[20,17]
		return permute(matmul(%x, %w), [0,2,1])`, 2},
	{"attention beside its projection", `
		%x = parameter "x" : f32[2,5,3,8]
		%y = permute(%x, [0,2,1,3])
		%0 = scaled_dot_product_attention(%y, %y, %y)
		return reshape(permute(%0, [0,2,1,3]), [2,5,24])`, 1},
	{"attention of f16, masked", `
		%x = parameter "x" : f16[2,3,5,8]
		%m = parameter "m" : f32[5,5]
		%0 = scaled_dot_product_attention(%x, %x, %x, %m)
		return permute(%0, [0,2,1,3])`, 6},
	{"no rows", `
		%x = parameter "x" : f32[0,20]
		%w = parameter "w" : f32[20,17]
		%b = parameter "b" : f32[17]
		return relu(add(matmul(%x, %w), %b))`, 1},
	{"no depth", `
		%x = parameter "x" : f32[9,0]
		%w = parameter "w" : f32[0,17]
		%b = parameter "b" : f32[17]
		return relu(add(matmul(%x, %w), %b))`, 1},
	{"convolution, bias, relu", `
		%x = parameter "x" : f32[2,5,9,8]
		%w = parameter "w" : f32[7,5,3,3]
		%b = parameter "b" : f32[7]
		return relu(conv2d(%x, %w, %b, [1,1], [1,1]))`, 1},
	{"convolution, batch norm, residual, relu", `
		%x = parameter "x" : f32[2,34,9,8]
		%w = parameter "w" : f32[37,34,3,2]
		%g = parameter "g" : f32[37]
		%b = parameter "b" : f32[37]
		%m = parameter "m" : f32[37]
		%v = parameter "v" : f32[37]
		%r = parameter "r" : f32[2,37,9,7]
		%0, %1, %2 = batch_norm(conv2d(%x, %w, padding=[1,0]), %g, %b, %m, exp(%v), false, 0.1, 1e-05)
		return relu(add(%0, %r))`, 3}, // eᵛ, 1/√(eᵛ+ε)
	{"convolution by Winograd's method of logarithms, some NaN, batch norm, residual, relu", `
		%x = parameter "x" : f32[2,32,13,12]
		%w = parameter "w" : f32[36,32,3,3]
		%g = parameter "g" : f32[36]
		%b = parameter "b" : f32[36]
		%m = parameter "m" : f32[36]
		%v = parameter "v" : f32[36]
		%r = parameter "r" : f32[2,36,13,12]
		%y = conv2d(log(add(%x, 3.0)), mul(%w, 0.03), padding=[1,1])
		%0, %1, %2 = batch_norm(%y, %g, %b, %m, exp(%v), false, 0.1, 1e-05)
		return nan_to_num(relu(add(%0, %r)), -7.0)`, 6},
	{"convolution by Winograd's method of bf16, channels innermost", `
		%x = parameter "x" : bf16[2,13,12,32]
		%w = parameter "w" : bf16[36,32,3,3]
		%b = parameter "b" : bf16[36]
		return relu(conv2d(permute(%x, [0,3,1,2]), mul(%w, 0.125), %b, padding=[1,1]))`, 2},
	{"convolution as a product, batch norm, residual, relu", `
		%x = parameter "x" : f32[1,6,9,8]
		%w = parameter "w" : f32[37,6,3,3]
		%g = parameter "g" : f32[37]
		%b = parameter "b" : f32[37]
		%m = parameter "m" : f32[37]
		%v = parameter "v" : f32[37]
		%r = parameter "r" : f32[1,37,5,4]
		%0, %1, %2 = batch_norm(conv2d(%x, %w, stride=[2,2], padding=[1,1]), %g, %b, %m, exp(%v), false, 0.1, 1e-05)
		return relu(add(%0, %r))`, 3},
	{"convolution as a product with a residual whose channels adjoin", `
		%x = parameter "x" : f64[1,6,4,3]
		%w = parameter "w" : f64[40,6,1,1]
		%b = parameter "b" : f64[40]
		%r = parameter "r" : f64[1,4,3,40]
		return tanh(add(conv2d(%x, %w, %b), permute(%r, [0,3,1,2])))`, 1},
	{"convolution as a product of one position", `
		%x = parameter "x" : f32[1,5,3,3]
		%w = parameter "w" : f32[7,5,3,3]
		%s = parameter "s" : f32[1,7,1,1]
		return sigmoid(mul(conv2d(%x, %w), %s))`, 1},
	{"convolution with a residual of uneven rows", `
		%x = parameter "x" : f32[2,5,3,4]
		%w = parameter "w" : f32[30,5,1,1]
		%r = parameter "r" : f32[2,30,4,3]
		return relu(add(conv2d(%x, %w), permute(%r, [0,1,3,2])))`, 2},
	{"convolution as a product with a residual of uneven rows", `
		%x = parameter "x" : f32[1,5,3,4]
		%w = parameter "w" : f32[30,5,1,1]
		%r = parameter "r" : f32[1,30,4,3]
		return relu(add(conv2d(%x, %w), permute(%r, [0,1,3,2])))`, 2},
	{"convolution by groups, factors of channels, silu", `
		%x = parameter "x" : f32[2,6,9]
		%w = parameter "w" : f32[4,3,3]
		%s = parameter "s" : f32[4,1]
		return silu(sub(mul(conv1d(%x, %w, groups=2), %s), full([], 0.25, f32)))`, 1},
	{"depthwise convolution and factors of channels", `
		%x = parameter "x" : f64[2,6,9,9]
		%w = parameter "w" : f64[6,1,3,3]
		%s = parameter "s" : f64[1,6,1,1]
		return tanh(div(conv2d(%x, %w, groups=6), exp(%s)))`, 2},
	{"convolution of bf16 with a residual", `
		%x = parameter "x" : bf16[2,6,9,9]
		%w = parameter "w" : bf16[5,6,1,1]
		%r = parameter "r" : bf16[2,5,9,9]
		return relu(add(conv2d(%x, %w), %r))`, 1},
	{"convolution with a residual whose channels adjoin", `
		%x = parameter "x" : f32[2,6,9,9]
		%w = parameter "w" : f32[40,6,1,1]
		%r = parameter "r" : f32[2,9,9,40]
		return relu(add(conv2d(%x, %w), permute(%r, [0,3,1,2])))`, 1},
}

func TestEpilogues(t *testing.T) {
	for _, c := range epilogueCases {
		t.Run(c.name, func(t *testing.T) {
			be := New()
			whole := program(t, "program @p {\n"+c.text+"\n}")
			p, _ := graph.Optimize(whole, graph.Options{Supports: be.Supports})
			m, err := compile(be, p, backend.CompileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(m.plan.Steps) != c.steps {
				t.Errorf("%d steps, want %d", len(m.plan.Steps), c.steps)
				for i, s := range m.plan.Steps {
					t.Logf("%d: %v reads %v, writes %v", i, s.Instr.Op, s.Reads, s.Writes)
				}
			}
			likeReference(t, be, whole, m)
		})
	}
}

// likeReference runs a Program on both backends with the same random operands,
// twice, since steps keep state.
func likeReference(t *testing.T, be *Backend, p *graph.Program, m *model) {
	t.Helper()
	def := ref.New()
	p, _ = graph.Optimize(p, graph.Options{Supports: def.Supports})
	want, err := def.Compile(ctx, p, ref.Device, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var a, b []backend.Buffer
		for _, q := range p.Params {
			data := randomBytes(rng, q.Shape)
			x, err := be.Upload(ctx, q.Shape, Device, data)
			if err != nil {
				t.Fatal(err)
			}
			y, err := def.Upload(ctx, q.Shape, ref.Device, data)
			if err != nil {
				t.Fatal(err)
			}
			a, b = append(a, x), append(b, y)
		}
		got, err := m.Run(ctx, a, nil)
		if err != nil {
			t.Fatal(err)
		}
		exp, err := want.Run(ctx, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if err := near(t, got[i], exp[i]); err != nil {
				t.Errorf("seed %d, result %d: %v", seed, i, err)
			}
		}
		release(got)
		release(a)
	}
}

func randomBytes(rng *rand.Rand, s ir.Shape) []byte {
	data := make([]byte, s.Bytes())
	for i := range s.Numel() {
		v := rng.NormFloat64()
		switch s.DType() {
		case ir.F64:
			as[float64](data)[i] = v
		case ir.F32:
			as[float32](data)[i] = float32(v)
		case ir.BF16:
			as[uint16](data)[i] = half.F32ToBF16(float32(v))
		case ir.F16:
			as[uint16](data)[i] = half.F32ToF16(float32(v))
		default:
			panic(s)
		}
	}
	return data
}

// near compares two tensors of floats.
func near(t *testing.T, got, want backend.Buffer) error {
	t.Helper()
	if got.Shape() != want.Shape() {
		return fmt.Errorf("%v, want %v", got.Shape(), want.Shape())
	}
	tol := map[ir.DType]float64{ir.F64: 1e-13, ir.F32: 5e-6, ir.BF16: 1e-2, ir.F16: 2e-3}[got.Shape().DType()]
	x, y := floats(t, got), floats(t, want)
	for i := range x {
		if d := math.Abs(x[i] - y[i]); !(d <= tol*(4+math.Abs(y[i]))) {
			return fmt.Errorf("element %d is %v, want %v", i, x[i], y[i])
		}
	}
	return nil
}

func floats(t *testing.T, b backend.Buffer) []float64 {
	t.Helper()
	data, err := b.Bytes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, b.Shape().Numel())
	for i := range out {
		switch b.Shape().DType() {
		case ir.F64:
			out[i] = as[float64](data)[i]
		case ir.F32:
			out[i] = float64(as[float32](data)[i])
		case ir.BF16:
			out[i] = float64(half.BF16ToF32(as[uint16](data)[i]))
		case ir.F16:
			out[i] = float64(half.F16ToF32(as[uint16](data)[i]))
		}
	}
	return out
}

// TestBadPrograms compiles Programs that no builder makes: an error, not a panic.
func TestBadPrograms(t *testing.T) {
	for name, spoil := range map[string]func(p *graph.Program){
		"a result out of range":   func(p *graph.Program) { p.Instrs[0].Out = 99 },
		"an operand out of range": func(p *graph.Program) { p.Instrs[1].Args[0] = 99 },
		"an operand from later":   func(p *graph.Program) { p.Instrs[0].Args[0] = p.Instrs[1].Out },
		"a missing operand":       func(p *graph.Program) { p.Instrs[0].Args = p.Instrs[0].Args[:1] },
		"another shape":           func(p *graph.Program) { p.Shapes[p.Instrs[1].Out] = ir.MakeShape(ir.F32, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			p := program(t, `program @p {
				%x = parameter "x" : f32[9,20]
				%w = parameter "w" : f32[20,17]
				return relu(matmul(%x, %w))
			}`)
			spoil(p)
			if _, err := compile(New(), p, backend.CompileOptions{}); err == nil {
				t.Error("no error")
			}
		})
	}
}
