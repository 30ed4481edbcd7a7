package loris

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

// numberCase is a line of testdata/numbers.txt: an op of a tensor of integers and of numbers.
type numberCase struct {
	op, line string
	dtype    DType
	numbers  []any
	want     string // the dtype and the elements, or "!"
}

// numberCases reads what PyTorch makes of numbers that an integer dtype cannot hold, and the tensors.
func numberCases(t *testing.T) (tensors map[DType][]int64, cases []numberCase) {
	t.Helper()
	f, err := os.Open("testdata/numbers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors = map[DType][]int64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		left, want, _ := strings.Cut(s.Text(), " -> ")
		words := strings.Fields(left)
		d, err := ParseDType(words[1])
		if err != nil {
			t.Fatal(err)
		}
		c := numberCase{op: words[0], line: s.Text(), dtype: d, want: want}
		for _, w := range words[2:] {
			if n, err := strconv.ParseInt(w, 10, 64); err == nil {
				c.numbers = append(c.numbers, int(n))
				continue
			}
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				t.Fatal(err)
			}
			c.numbers = append(c.numbers, v)
		}
		if c.op != "tensor" {
			cases = append(cases, c)
			continue
		}
		for _, n := range c.numbers {
			tensors[d] = append(tensors[d], int64(n.(int)))
		}
	}
	return tensors, cases
}

// call returns the op's name and arguments: x is the tensor, nonzero the same without zeros, at5 where
// it is 5.
func (c *numberCase) call(x, nonzero, at5 any) (op string, pos []any, named []ir.Named) {
	n := c.numbers[0]
	switch c.op {
	case "where":
		return "where", []any{at5, n, x}, nil
	case "masked_fill":
		return "masked_fill", []any{x, at5, n}, nil
	case "addcmul":
		return "addcmul", []any{x, x, x}, []ir.Named{ir.A("value", n)}
	case "threshold":
		return "threshold", []any{x, n, 9}, nil
	case "threshold_value":
		return "threshold", []any{x, 5, n}, nil
	case "full":
		return "full", []any{[]int{2}, n, c.dtype}, nil
	case "linspace":
		return "linspace", []any{n, 3, 2, c.dtype}, nil
	case "constant_pad_nd":
		return "constant_pad_nd", []any{x, []int{1, 0}, n}, nil
	case "pad":
		return "pad", []any{x, []int{1, 0}}, []ir.Named{ir.A("value", n)}
	case "rremainder", "rfloor_divide":
		return c.op[1:], []any{n, nonzero}, nil
	case "rsub", "rpow":
		return c.op[1:], []any{n, x}, nil
	}
	return c.op, append([]any{x}, c.numbers...), nil
}

// got returns a result as the table writes it.
func got(data []byte, d DType) string {
	words := []string{d.String()}
	e := elemsOf(data, d)
	for i := range len(data) / d.Size() {
		switch {
		case d == Bool:
			words = append(words, map[bool]string{true: "True", false: "False"}[e.int(i) != 0])
		case d.IsInt():
			words = append(words, strconv.FormatInt(e.int(i), 10))
		default:
			words = append(words, strconv.FormatFloat(e.float(i), 'g', -1, 64))
		}
	}
	return strings.Join(words, " ")
}

// Numbers that an integer dtype cannot hold do what they do in PyTorch, or are an error.
func TestNumbersBesideIntegersAreAsInPyTorch(t *testing.T) {
	tensors, cases := numberCases(t)
	if len(cases) < 4000 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, dev := range []Device{Ref, CPU} {
		for _, d := range []DType{U8, I8, I16, I32, I64} {
			t.Run(dev.String()+"/"+d.String(), func(t *testing.T) {
				s := newSession(t, WithDevice(dev))
				m := s.With(As(d))
				x := m.FromSlice(tensors[d])
				nonzero := m.FromSlice(slices.DeleteFunc(slices.Clone(tensors[d]), func(v int64) bool { return v == 0 }))
				at5 := x.Eq(5)
				record := func(c *numberCase) (out *Tensor, err error) {
					if c.op == "full" { // the function makes no such op
						err = Try(func() { out = m.Full(c.numbers[0], 2) })
						return out, err
					}
					name, pos, named := c.call(x.ex(), nonzero.ex(), at5.ex())
					op, _ := ir.Lookup(name)
					err = Try(func() {
						out = tensors1(s.ex().Call(op, func() *executor.Tensor { return new(executor.Tensor) }, pos, named))
					})
					return out, err
				}
				var outs []*Tensor
				var of []*numberCase
				for i := range cases {
					c := &cases[i]
					if c.dtype != d {
						continue
					}
					out, err := record(c)
					switch {
					case c.want != "!" && err != nil:
						t.Errorf("%s: %v", c.line, err)
					case c.want == "!" && err == nil:
						if _, err := out.Bytes(t.Context()); err == nil {
							t.Errorf("%s: PyTorch refuses, this gives %v", c.line, out.Shape())
						}
					case err == nil:
						outs, of = append(outs, out), append(of, c)
					}
				}
				data, err := Fetch(t.Context(), outs...)
				if err != nil {
					t.Fatal(err)
				}
				for i, c := range of {
					if g := got(data[i], outs[i].DType()); g != c.want {
						t.Errorf("%s: got %s", c.line, g)
					}
				}
			})
		}
	}
}

func tensors1(ts []*executor.Tensor) *Tensor { return (*Tensor)(ts[0]) }

// In the text form the numbers are constants.
func TestNumbersInTextAreAsInPyTorch(t *testing.T) {
	tensors, cases := numberCases(t)
	for d, values := range tensors {
		var data, nonzero []byte
		n := 0
		for _, v := range values {
			data = elements.AppendInt(data, d, v)
			if v != 0 {
				nonzero, n = elements.AppendInt(nonzero, d, v), n+1
			}
		}
		head := fmt.Sprintf("program @x {\n%%x = parameter \"x\" : %v[%d]\n%%y = parameter \"y\" : %v[%d]\n%%m = eq(%%x, 5)\n", d, len(values), d, n)
		text := func(c *numberCase) string {
			name, pos, named := c.call("%x", "%y", "%m")
			var args []string
			for _, p := range pos {
				args = append(args, fmt.Sprint(p))
			}
			for _, n := range named {
				args = append(args, n.Name+"="+fmt.Sprint(n.Value))
			}
			r := strings.NewReplacer("+Inf", "inf", "-Inf", "-inf", "NaN", "nan", " 0]", ",0]")
			return name + "(" + r.Replace(strings.Join(args, ", ")) + ")"
		}
		var body, names []string
		var of []*numberCase
		for i := range cases {
			c := &cases[i]
			if c.dtype != d {
				continue
			}
			if c.want != "!" {
				name := fmt.Sprintf("%%r%d", len(of))
				body, names, of = append(body, name+" = "+text(c)), append(names, name), append(of, c)
				continue
			}
			p, err := graph.Parse(head + "%r = " + text(c) + "\nreturn %r\n}\n")
			if err == nil {
				lowered, _ := graph.Optimize(p, graph.Options{Supports: ref.New().Supports})
				_, err = ref.Eval(lowered, [][]byte{data, nonzero})
			}
			if err == nil {
				t.Errorf("%s: PyTorch refuses, %s does not", c.line, text(c))
			}
		}
		p, err := graph.Parse(head + strings.Join(body, "\n") + "\nreturn " + strings.Join(names, ", ") + "\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		lowered, _ := graph.Optimize(p, graph.Options{Supports: ref.New().Supports})
		outs, err := ref.Eval(lowered, [][]byte{data, nonzero})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range of {
			if g := got(outs[i], p.Shape(p.Returns[i]).DType()); g != c.want {
				t.Errorf("%s: %s gives %s", c.line, text(c), g)
			}
		}
	}
}
