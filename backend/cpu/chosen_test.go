package cpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/loop"
)

// chosenPrograms read rows by an index: %t [V,D] of a dtype by %i [N], with %x [N,D], %b [D]. All of it is one step.
var chosenPrograms = []struct {
	name, text string
	steps      int
}{
	{"rows and a sum", `return add(index_select(%t, 0, %i), %x)`, 1},
	{"two indices", `return sub(index_select(%t, 0, %i), index_select(%t, 0, %j))`, 1},
	{"rows of another view", `return add(reshape(index_select(%t, 0, %i), [1,N,D]), expand(reshape(%b, [1,1,D]), [1,N,D]))`, 1},
	{"reduced rows", `return sum(mul(index_select(%t, 0, %i), %x), [1])`, 1},
	{"reduced columns", `return amax(maximum(index_select(%t, 0, %i), %x), [0])`, 1},
	{"reduced to one", `return amin(add(index_select(%t, 0, %i), %x), [0,1])`, 2},
	{"softmax of rows", `return softmax(add(index_select(%t, 0, %i), %x), -1)`, 1},
	{"neighbours", `return amax(reshape(index_select(%t, 0, %i), [N/2,2,D]), [1])`, 1},
	{"differences to a row", `return sub(reshape(index_select(%t, 0, %i), [N/2,2,D]), reshape(slice(%x, 0, 0, N/2, 1), [N/2,1,D]))`, 1},
	{"parts of a cat", `return cat([index_select(%t, 0, %i), sub(index_select(%t, 0, %i), index_select(%t, 0, %j))], 1)`, 1},
	{"parts of a cat of narrow rows", `return cat([slice(%x, 1, 0, 1, 1), neg(slice(%x, 1, 0, 1, 1)), slice(%x, 1, 1, 2, 1)], 1)`, 1},
	{"long parts of a cat", `return cat([%x, neg(%x)], 0)`, 2},
	{"sums of computed rows", `return index_add(%t, 0, %i, mul(%x, expand(reshape(%b, [1,D]), [N,D])))`, 2},
	{"scattered sums of computed rows", `return scatter_reduce(%t, 0, expand(reshape(%i, [N,1]), [N,D]), mul(%x, expand(reshape(%b, [1,D]), [N,D])), "sum")`, 2},
	{"distances", `%0 = sub(index_select(%t, 0, %i), index_select(%t, 0, %j))
		return sum(mul(%0, %0), [1])`, -1},
	{"products of neighbours", `return sum(mul(reshape(index_select(%t, 0, %i), [N/2,2,D]), reshape(slice(%x, 0, 0, N/2, 1), [N/2,1,D])), [2])`, -1},
	{"messages", `return index_add(%t, 0, %i, maximum(index_select(%t, 0, %j), %x)), %t`, 3},
	{"sums of rows that something else needs", `%r = mul(%x, %x)
		return index_add(%t, 0, %i, %r), amax(%r, [1])`, 4},
	{"gather of whole rows", `return add(gather(%t, 0, expand(reshape(%i, [N,1]), [N,D])), %x)`, 1},
	{"gather behind an expanded dimension", `return neg(gather(expand(reshape(%t, [1,V,D]), [2,V,D]), 1, expand(reshape(%i, [2,N/2,1]), [2,N/2,D])))`, 1},
	{"rows that are returned", `%r = index_select(%t, 0, %i)
		return %r, neg(%r)`, 2},
	{"rows for a product", `%r = index_select(%t, 0, %i)
		return matmul(%r, permute(%x, [1,0])), neg(%r)`, 3},
	{"a view that no strides have", `return neg(reshape(index_select(%t, 0, %i), [N*D]))`, 2},
	{"an index of i32", `return add(index_select(%t, 0, cast(%i, i32)), %x)`, -1},
}

// sizes puts sizes in place of letters.
func chosenText(text string, d ir.DType, v, n, width int) string {
	text = fmt.Sprintf(`program @p {
		%%t = parameter "t" : %v[V,D]
		%%x = parameter "x" : %v[N,D]
		%%b = parameter "b" : %v[D]
		%%i = parameter "i" : i64[N]
		%%j = parameter "j" : i64[N]
		%s
	}`, d, d, d, text)
	half, all := fmt.Sprint(n/2), fmt.Sprint(n)
	return strings.NewReplacer("[N*D", fmt.Sprint("[", n*width), "[N/2", "["+half, ",N/2", ","+half, " N/2", " "+half, "[N", "["+all, ",N", ","+all,
		"[V", fmt.Sprint("[", v), ",V", fmt.Sprint(",", v), "D]", fmt.Sprint(width, "]")).Replace(text)
}

// TestChosenRows holds kernels that find rows by an index to the reference: rows of all short widths and some longer ones.
func TestChosenRows(t *testing.T) {
	const v, n = 7, 86
	widths := []int{3, 16, 33}
	if longtest.Enabled() {
		widths = []int{2, 3, 8, 9, 15, 16, 17, 33, 64, 100}
	}
	backends := []*Backend{NewDefined(), NewPortable()}
	for _, b := range Levels() {
		backends = append(backends, b)
	}
	for _, b := range backends {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.F16, ir.I32, ir.I64, ir.U8} {
			for _, c := range chosenPrograms {
				if !d.IsFloat() && (strings.Contains(c.text, "softmax") || strings.Contains(c.text, "matmul")) {
					continue
				}
				for _, width := range widths {
					var places [2][]float64
					for k := range n {
						places[0], places[1] = append(places[0], float64(k*5%v)), append(places[1], float64(k*3/2%v))
					}
					numbers := func(n int) (list []float64) {
						for k := range n {
							list = append(list, float64(k*7%11))
						}
						return list
					}
					sameAsRef(t, b, chosenText(c.text, d, v, n, width), 4e-3, numbers(v*width), numbers(n*width), numbers(width), places[0], places[1])
				}
			}
		}
	}
}

// TestChosenSteps counts the steps of programs whose rows are worth finding by their index.
func TestChosenSteps(t *testing.T) {
	b := New()
	if b.engine == nil {
		t.Skip("there is no code for this machine")
	}
	for _, c := range chosenPrograms {
		if c.steps < 0 {
			continue
		}
		p, _ := graph.Optimize(program(t, chosenText(c.text, ir.F32, 7, 46, 32)), graph.Options{Supports: b.Supports})
		m, err := compile(b, p, backend.CompileOptions{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.plan.Steps) != c.steps {
			t.Errorf("%s: %d steps, want %d", c.name, len(m.plan.Steps), c.steps)
			logSteps(t, m)
		}
	}
}

// TestChosenOutOfRange expects the error of the instruction that chooses, and right results afterwards.
func TestChosenOutOfRange(t *testing.T) {
	text := chosenText(`return sum(add(index_select(%t, 0, %i), %x), [1])`, ir.F32, 7, 46, 20)
	for _, b := range []*Backend{New(), NewDefined(), NewPortable()} {
		m := mustCompile(t, b, text)
		in := upload(t, b, m)
		defer release(in)
		at := in[3].(interface{ Data() []byte }).Data()
		for row, wrong := range map[int]byte{0: 7, 45: 9, 20: 200} {
			right := at[8*row]
			at[8*row] = wrong
			_, err := m.Run(ctx, in, nil)
			if !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), fmt.Sprintf("index_select: %v: index %d is out of range for size 7", ir.ErrIndex, wrong)) {
				t.Errorf("%v", err)
			}
			at[8*row] = right
			out, err := m.Run(ctx, in, nil)
			if err != nil {
				t.Fatal(err)
			}
			release(out)
		}
	}
}

// TestChosenOfOtherSizes compiles programs of one template whose rows are worth finding by their index, and not.
func TestChosenOfOtherSizes(t *testing.T) {
	known, fresh, ts := New(), New(), graph.NewTemplates()
	if known.engine == nil {
		t.Skip("a portable backend keeps nothing")
	}
	for _, c := range chosenPrograms {
		for _, width := range []int{20, 40, 18, 41, 19, 20, 100} {
			p := program(t, chosenText(c.text, ir.F32, 7, 46, width))
			compareCompiled(t, p, ts, known, fresh, func(i int) []byte {
				if i < 3 {
					return noiseBytes
				}
				return []byte{5, 0, 0, 0, 0, 0, 0, 0, byte(i), 0, 0, 0, 0, 0, 0, 0}
			})
		}
	}
}

// TestChosenWithoutCode holds programs to the reference where kernels that have indices, or store elsewhere, turn out to have
// no code.
func TestChosenWithoutCode(t *testing.T) {
	for name, refuses := range map[string]func(k *loop.Kernel, a *loop.Arg) bool{
		"rows by an index":   func(_ *loop.Kernel, a *loop.Arg) bool { return a.By > 0 && !a.Write },
		"sums by an index":   func(_ *loop.Kernel, a *loop.Arg) bool { return a.By > 0 && a.Write },
		"several results":    func(k *loop.Kernel, a *loop.Arg) bool { return a.Write && !k.Args[len(k.Args)-1].Write },
		"nothing at all has": func(*loop.Kernel, *loop.Arg) bool { return true },
	} {
		b := NewDefined()
		build := b.engine.build
		b.engine.build = func(k *loop.Kernel) (executable, error) {
			if slices.ContainsFunc(k.Args, func(a loop.Arg) bool { return refuses(k, &a) }) {
				return nil, errors.New(name)
			}
			return build(k)
		}
		for _, c := range chosenPrograms {
			var numbers [5][]float64
			for i := range 46 * 21 {
				for k := range 3 {
					numbers[k] = append(numbers[k], float64(i*7%11))
				}
				numbers[3], numbers[4] = append(numbers[3], float64(i%7)), append(numbers[4], float64(i*3%7))
			}
			sameAsRef(t, b, chosenText(c.text, ir.F32, 7, 46, 21), 4e-3, numbers[0][:7*21], numbers[1], numbers[2][:21], numbers[3][:46], numbers[4][:46])
		}
	}
}

// TestPickedColumns holds lines of few elements that indices pick to the reference, of more lines than a call has, and counts
// their steps.
func TestPickedColumns(t *testing.T) {
	const v, n = 11, 9001
	var places [2][]float64
	for k := range n {
		places[0], places[1] = append(places[0], float64(k*5%v)), append(places[1], float64(k*3/2%v))
	}
	for name, b := range Levels() {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.I16, ir.U8} {
			for width := 2; width <= 6; width++ {
				text := chosenText(`%0 = sub(index_select(%t, 0, %i), index_select(%t, 0, %j))
					return sum(mul(%0, %0), [1])`, d, v, n, width)
				var numbers [3][]float64
				for k := range n * width {
					numbers[1] = append(numbers[1], 0)
					numbers[0] = append(numbers[0], float64(k*7%11))
				}
				sameAsRef(t, b, text, 4e-3, numbers[0][:v*width], numbers[1], numbers[1][:width], places[0], places[1])
				if m := compileSized(t, b, text, "n"); len(m.plan.Steps) != 1 {
					t.Errorf("%s: %d steps of %d %v", name, len(m.plan.Steps), width, d)
				}
			}
		}
		m := mustCompile(t, b, chosenText("return sum(neg(index_select(%t, 0, %i)), [1])", ir.F32, v, n, 3))
		in := upload(t, b, m)
		in[3].(interface{ Data() []byte }).Data()[8*8000] = 11
		if _, err := m.Run(ctx, in, nil); !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), "index_select") || !strings.Contains(err.Error(), "index 11 is out of range for size 11") {
			t.Errorf("%s: %v", name, err)
		}
		release(in)
	}
}

// TestSumsInOrder holds sums with rows of more than the cache has to the reference, and their steps to a copy and one more.
func TestSumsInOrder(t *testing.T) {
	const v, n, width = 9001, 9500, 40
	for name, b := range Levels() {
		for _, d := range []ir.DType{ir.F32, ir.I64} {
			for _, op := range []string{`index_add(%t, 0, %i, %x)`, `scatter_reduce(%t, 0, expand(reshape(%i, [N,1]), [N,D]), %x, "sum")`} {
				text := chosenText("return "+op, d, v, n, width)
				var numbers [4][]float64
				for k := range n * width {
					numbers[0], numbers[1] = append(numbers[0], float64(k*7%11)), append(numbers[1], float64(k%13))
				}
				for k := range n {
					numbers[2], numbers[3] = append(numbers[2], float64(k*k%v)), append(numbers[3], 0)
				}
				sameAsRef(t, b, text, 1e-6, numbers[0][:v*width], numbers[1], numbers[1][:width], numbers[2], numbers[3])
				m, err := compile(b, program(t, text), backend.CompileOptions{Threads: 1})
				if err != nil {
					t.Fatal(err)
				}
				if len(m.plan.Steps) != 2 {
					t.Errorf("%s: %d steps of %v", name, len(m.plan.Steps), d)
				}
				in := upload(t, b, m)
				in[3].(interface{ Data() []byte }).Data()[8*9000+2] = 1
				if _, err := m.Run(ctx, in, nil); !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), "out of range for size 9001") {
					t.Errorf("%s: %v", name, err)
				}
				release(in)
			}
		}
	}
}
