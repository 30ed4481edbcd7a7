//go:build linux && cgo

package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	_ "github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// invoke calls a math function as its stub does, with Go's types for the
// arguments: *tensor, []*tensor, int, []int64, bool, float64, string, **tensor
// for a result, nil for none; pointers for optional numbers.
func invoke(t testing.TB, name string, args ...any) error {
	t.Helper()
	return invokeBy(t, nil, name, args...)
}

// invokeBy is invoke with another function in the place of the op's own.
func invokeBy(t testing.TB, fn opFunc, name string, args ...any) error {
	t.Helper()
	line := -1
	for i := range signatures {
		if signatures[i].name == shimPrefix+name {
			line = i
		}
	}
	if line >= 0 && fn == nil {
		fn = functions[line].host
	}
	if fn == nil {
		t.Fatalf("no function %s", name)
	}
	s := &signatures[line]
	words := make([]int64, len(s.params))
	var keep []any
	put := func(i int, p unsafe.Pointer) { *(*unsafe.Pointer)(unsafe.Pointer(&words[i])) = p }
	at := 0
	for _, a := range args {
		i := at
		at++
		switch a := a.(type) {
		case nil:
			if s.params[i].kind.list() {
				at++
			}
		case *tensor:
			if s.params[i].kind == kindOptTensor {
				p := &a
				keep = append(keep, p)
				put(i, unsafe.Pointer(p))
			} else {
				put(i, unsafe.Pointer(a))
			}
		case []*tensor:
			list := unsafe.Pointer(unsafe.SliceData(a))
			if s.params[i].kind == kindOptTensors {
				ptrs := make([]**tensor, len(a))
				for j := range a {
					if a[j] != nil {
						ptrs[j] = &a[j]
					}
				}
				keep = append(keep, ptrs)
				list = unsafe.Pointer(unsafe.SliceData(ptrs))
			}
			put(i, list)
			words[i+1] = int64(len(a))
			at++
		case int:
			words[i] = int64(a)
		case bool:
			if a {
				words[i] = 1
			}
		case float64:
			words[i] = int64(math.Float64bits(a))
		case []int64:
			list := unsafe.Pointer(unsafe.SliceData(a))
			if s.params[i].kind == kindOptInts {
				p := &list
				keep = append(keep, p)
				list = unsafe.Pointer(p)
			}
			put(i, list)
			words[i+1] = int64(len(a))
			at++
		case []int32:
			put(i, unsafe.Pointer(unsafe.SliceData(a)))
			words[i+1] = int64(len(a))
			at++
		case []float64:
			p := unsafe.Pointer(unsafe.SliceData(a))
			keep = append(keep, &p)
			put(i, unsafe.Pointer(&p))
			words[i+1] = int64(len(a))
			at++
		case []*float64:
			put(i, unsafe.Pointer(unsafe.SliceData(a)))
			words[i+1] = int64(len(a))
			at++
		case string:
			b := append([]byte(a), 0)
			p := unsafe.Pointer(&b[0])
			if s.params[i].kind == kindOptString {
				q := new(unsafe.Pointer)
				*q = p
				keep = append(keep, b)
				p = unsafe.Pointer(q)
			}
			keep = append(keep, p)
			put(i, p)
		case *int64:
			put(i, unsafe.Pointer(a))
		case *int32:
			put(i, unsafe.Pointer(a))
		case *float64:
			put(i, unsafe.Pointer(a))
		case **tensor:
			put(i, unsafe.Pointer(a))
		default:
			t.Fatalf("argument %d of %s is a %T", i, name, a)
		}
	}
	err := fn(call{sig: s, args: words})
	runtime.KeepAlive(args)
	runtime.KeepAlive(keep)
	return err
}

// random returns a tensor of small integers, in an order of the dimensions that
// is not the row-major one if order says so, and deletes it when the test ends.
func random(t testing.TB, rng *rand.Rand, d ir.DType, order []int, dims ...int) *tensor {
	t.Helper()
	strides := make([]int64, len(dims))
	step := int64(1)
	for i := range dims {
		k := len(dims) - 1 - i
		if order != nil {
			k = order[k]
		}
		strides[k] = step
		step *= int64(max(dims[k], 1))
	}
	h, err := newStrided(ir.MakeShape(d, dims...), strides)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(h) })
	for i := range int(step) {
		store(h, i, float64(rng.IntN(9)-4))
	}
	return h
}

// store sets the element at a position in memory.
func store(h *tensor, i int, x float64) {
	d, _ := scalartype.DType(int32(h.dtype))
	p := unsafe.Add(dataOf(h), i*d.Size())
	switch d {
	case ir.F32:
		*(*float32)(p) = float32(x)
	case ir.F64:
		*(*float64)(p) = x
	case ir.BF16:
		*(*uint16)(p) = half.F32ToBF16(float32(x))
	case ir.F16:
		*(*uint16)(p) = half.F32ToF16(float32(x))
	case ir.I64:
		*(*int64)(p) = int64(x)
	case ir.I32:
		*(*int32)(p) = int32(x)
	case ir.Bool:
		*(*bool)(p) = x > 0
	default:
		panic(d.String())
	}
}

// numbers returns the elements in row-major order as float64.
func numbers(t testing.TB, h *tensor) []float64 {
	t.Helper()
	s, err := shapeOf(h)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := newTensor(s.WithDType(ir.F64))
	if err != nil {
		t.Fatal(err)
	}
	defer release(wide)
	if err := copyTensor(wide, h); err != nil {
		t.Fatal(err)
	}
	return append([]float64(nil), elements[float64](wide)...)
}

func TestMatmul(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.F16, ir.I64} {
		for _, batch := range []int{0, 1, 5} {
			for _, turned := range []bool{false, true} {
				for _, bias := range []string{"none", "row", "full", "self", "scaled", "alpha0"} {
					if batch == 0 && d == ir.I64 && bias == "alpha0" {
						continue // PyTorch has no such call: Inductor folds it
					}
					t.Run(fmt.Sprintf("%v/%d/%v/%s", d, batch, turned, bias), func(t *testing.T) {
						testMatmul(t, d, batch, turned, bias)
					})
				}
			}
		}
	}
}

func testMatmul(t *testing.T, d ir.DType, batch int, turned bool, bias string) {
	leakCheck(t)
	rng := rand.New(rand.NewPCG(1, 2))
	const m, k, n = 3, 7, 5
	dims := func(r, c int) []int {
		if batch > 0 {
			return []int{batch, r, c}
		}
		return []int{r, c}
	}
	order := []int{0, 1, 2}[:len(dims(1, 1))]
	if turned {
		order[len(order)-1], order[len(order)-2] = order[len(order)-2], order[len(order)-1]
	}
	a, b, out := random(t, rng, d, order, dims(m, k)...), random(t, rng, d, order, dims(k, n)...), random(t, rng, d, nil, dims(m, n)...)
	self, alpha, beta := out, 1.0, 0.0
	switch bias {
	case "row":
		self, beta = random(t, rng, d, nil, n), 1
	case "full":
		self, beta = random(t, rng, d, order, dims(m, n)...), 1
	case "self":
		beta = 2
	case "scaled":
		self, alpha, beta = random(t, rng, d, nil, n), 3, 2
	case "alpha0":
		self, alpha, beta = random(t, rng, d, nil, n), 0, 1
	}
	av, bv, sv := numbers(t, a), numbers(t, b), numbers(t, self)
	name := "cpu_addmm_out"
	if batch > 0 {
		name = "cpu_baddbmm_out"
	}
	if err := invoke(t, name, out, self, a, b, beta, alpha); err != nil {
		t.Fatal(err)
	}
	got := numbers(t, out)
	for i := range got {
		p, r, c := i/(m*n), i/n%m, i%n
		want := beta * sv[i%len(sv)]
		if len(sv) == n {
			want = beta * sv[c]
		}
		for j := range k {
			want += alpha * av[(p*m+r)*k+j] * bv[(p*k+j)*n+c]
		}
		if got[i] != want {
			t.Fatalf("element %d is %v, want %v", i, got[i], want)
		}
	}
}
