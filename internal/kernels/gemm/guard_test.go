//go:build linux

package gemm

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// TestNothingBeyondOperands multiplies matrices that end at a page that can't be
// touched. A fault in assembly ends the process, so that it is done in another.
func TestNothingBeyondOperands(t *testing.T) {
	const mark = "LORIS_GEMM_GUARD"
	if os.Getenv(mark) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^TestNothingBeyondOperands$")
		cmd.Env = append(os.Environ(), mark+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			if len(out) > 2000 {
				out = out[:2000]
			}
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	types(t, testGuard[float32], testGuard[float64], testGuard[BF16], testGuard[F16])
}

func testGuard[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for _, m := range []int{1, 2, 5, 14, 15, 33} {
		for _, n := range []int{1, 3, 8, 15, 16, 31, 33, 70} {
			for _, k := range []int{1, 7, 17, 50, 67} {
				la, lb, lc := rng.IntN(len(layouts)), rng.IntN(len(layouts)), rng.IntN(len(layouts))
				a, b, c := guarded(t, made[T](rng, m, k, la)), guarded(t, made[T](rng, k, n, lb)), guarded(t, made[T](rng, m, n, lc))
				want := naive(c, a, b, &Options[T]{})
				Mul(c, a, b, &Options[T]{Threads: 1})
				agree(t, c, want)
				for _, x := range []Matrix[T]{a, b, c} {
					unmap(t, x)
				}
			}
		}
	}
}

const page = 4096

// guarded copies a matrix to pages of its own that end with its last element
// and are followed by one without access.
func guarded[T Element](t *testing.T, m Matrix[T]) Matrix[T] {
	t.Helper()
	size := len(m.Data) * int(unsafe.Sizeof(m.Data[0]))
	whole := roundUp(size, page)
	mem, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mprotect(mem[whole:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	mapped[&mem[whole-size]] = mem
	data := unsafe.Slice((*T)(unsafe.Pointer(&mem[whole-size])), len(m.Data))
	copy(data, m.Data)
	m.Data = data
	return m
}

// mapped has the mappings by the address of the data in them.
var mapped = map[*byte][]byte{}

func unmap[T Element](t *testing.T, m Matrix[T]) {
	t.Helper()
	at := (*byte)(unsafe.Pointer(&m.Data[0]))
	if err := syscall.Munmap(mapped[at]); err != nil {
		t.Fatal(err)
	}
	delete(mapped, at)
}
