//go:build amd64 && !noasm

package half

import "golang.org/x/sys/cpu"

//go:generate go run -C _asm . -out ../convert_amd64.s -stubs ../convert_stubs_amd64.go -pkg half

// loops are conversions of whole blocks of a slice, by the vector width of the
// processor. They agree with the scalar ones on every pattern.
type loops struct {
	lanes                 int
	widenBF16, widenF16   func(dst *float32, src *uint16, n int)
	narrowBF16, narrowF16 func(dst *uint16, src *float32, n int)
}

// candidates lists the loops that this processor can run, best first.
var candidates = func() (list []*loops) {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
		list = append(list, &loops{16, widenBF16AVX512, widenF16AVX512, narrowBF16AVX512, narrowF16AVX512})
	}
	// Every processor with AVX2 and FMA has F16C too.
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, &loops{8, widenBF16AVX2, widenF16AVX2, narrowBF16AVX2, narrowF16AVX2})
	}
	return list
}()

// whole is the most elements of one call: a few microseconds, in which the
// runtime can't stop the goroutine.
const whole = 32 << 10

// blocks runs a loop over the whole blocks of src and returns how many elements
// that were.
func blocks[D, S any](dst []D, src []S, pick func(*loops) func(*D, *S, int)) int {
	if len(candidates) == 0 {
		return 0
	}
	l := candidates[0]
	done, end := 0, len(src)/l.lanes*l.lanes
	for done < end {
		n := min(whole, end-done)
		pick(l)(&dst[done], &src[done], n)
		done += n
	}
	return done
}

func widenBF16(dst []float32, src []uint16) int {
	return blocks(dst, src, func(l *loops) func(*float32, *uint16, int) { return l.widenBF16 })
}

func widenF16(dst []float32, src []uint16) int {
	return blocks(dst, src, func(l *loops) func(*float32, *uint16, int) { return l.widenF16 })
}

func narrowBF16(dst []uint16, src []float32) int {
	return blocks(dst, src, func(l *loops) func(*uint16, *float32, int) { return l.narrowBF16 })
}

func narrowF16(dst []uint16, src []float32) int {
	return blocks(dst, src, func(l *loops) func(*uint16, *float32, int) { return l.narrowF16 })
}
