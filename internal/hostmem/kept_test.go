package hostmem_test

import (
	"runtime"
	"testing"

	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

type half struct{ words []byte }

// keep has a buffer keep what is made of it, as a run does.
func keep(b *hostmem.Buffer, run uint64, key int) (v *half, made bool) {
	if !b.Steady(run) {
		return nil, false
	}
	if v := hostmem.Kept[int, half](b, &key); v != nil {
		return v, false
	}
	v = hostmem.Keep(b, key, 1<<20, 0, func() *half { return &half{make([]byte, 1<<20)} })
	return v, v != nil
}

func TestBuffersKeepWhatThreeRunsMeet(t *testing.T) {
	a := hostmem.NewAllocator()
	b := must(a.New(ir.MakeShape(ir.F32, 16), ir.Device{}))
	view := b.View(ir.MakeShape(ir.F32, 4, 4))
	defer b.Release()
	defer view.Release()
	for i, want := range []bool{false, false, true, false, false} {
		run := a.NextRun()
		if v, made := keep(view, run, 1); made != want || i >= 2 && v == nil {
			t.Errorf("run %d keeps %v, made now: %v, want %v", i, v, made, want)
		}
		if i < 2 {
			if _, made := keep(b, run, 1); made {
				t.Errorf("run %d counts twice", i)
			}
		}
	}
	if _, made := keep(b, a.NextRun(), 2); !made {
		t.Error("another key is not another value")
	}
	b.Written()
	if v, _ := keep(view, a.NextRun(), 1); v != nil {
		t.Error("it is kept though the contents changed")
	}
	a.NextRun()
	for range 3 {
		keep(b, a.NextRun(), 1)
	}
	key := 1
	if a.Trim(); hostmem.Kept[int, half](b, &key) != nil {
		t.Error("it is kept though memory is short")
	}
	if v, made := keep(b, a.NextRun(), 1); v == nil || !made {
		t.Error("it is not made again afterwards")
	}
}

func TestWrappedMemoryKeepsNothing(t *testing.T) {
	b := must(hostmem.Wrap(ir.MakeShape(ir.U8, 4), ir.Device{}, make([]byte, 4), nil))
	defer b.Release()
	for run := range uint64(10) {
		if b.Steady(run + 1) {
			t.Fatal("somebody else may write it")
		}
	}
	b.Written()
}

func TestWhatIsKeptCountsAsMemory(t *testing.T) {
	a := hostmem.NewAllocator()
	before := memlimit.Held()
	b := must(a.New(ir.MakeShape(ir.F32, 16), ir.Device{}))
	for range 3 {
		keep(b, a.NextRun(), 1)
	}
	if got := memlimit.Held() - before; got < 1<<20 {
		t.Errorf("%d bytes are held, want %d and the buffer", got, 1<<20)
	}
	key := 7
	if v := hostmem.Keep(b, key, 1<<20, before+1<<20, func() *half { return &half{} }); v != nil {
		t.Error("more than half of the limit is kept")
	}
	b.Release()
	for range 100 {
		if runtime.GC(); memlimit.Held()-before < 1<<20 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d bytes are held after the buffer's end", memlimit.Held()-before)
}

// must returns the buffer of an allocation that cannot fail.
func must[B any](b B, err error) B {
	if err != nil {
		panic(err)
	}
	return b
}
