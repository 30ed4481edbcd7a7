//go:build cuda && linux && cgo

package driver

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/sanitizer"
)

func TestModule(t *testing.T) {
	_, c, s := setup(t)
	m := closing[*Module](t)(c.LoadModule(fakecuda.Cubin(90, "kernel add_f32 4", "global table 8")))
	if _, err := m.Function("nothing"); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `kernel "nothing"`) {
		t.Errorf("a kernel that is not there: %v", err)
	}
	if _, _, err := m.Global("nothing"); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `variable "nothing"`) {
		t.Errorf("a variable that is not there: %v", err)
	}
	p, n, err := m.Global("table")
	if n != 8 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	check(t, s.CopyIn(p, []byte("12345678")))
	add := must[*Function](t)(m.Function("add_f32"))
	a, err := add.Attributes()
	if want := (Attributes{MaxThreads: 1024, Registers: 32, MaxDynamicShared: 49152, Arch: 90}); a != want || err != nil {
		t.Errorf("%+v, %v", a, err)
	}
	if n, err := add.BlocksPerSM(256, 100<<10); n != 2 || err != nil {
		t.Errorf("%d blocks, %v", n, err)
	}
	if threads, blocks, err := add.BlockSize(0, 512); threads != 512 || blocks != 528 || err != nil {
		t.Errorf("%d threads, %d blocks, %v", threads, blocks, err)
	}
	if add.Name() != "add_f32" {
		t.Error(add.Name())
	}
}

func TestDamagedModules(t *testing.T) {
	f, c, _ := setup(t)
	sections := func(offset uint64, n uint16) []byte {
		b := fakecuda.Cubin(90)
		binary.LittleEndian.PutUint64(b[40:], offset)
		binary.LittleEndian.PutUint16(b[58:], 64)
		binary.LittleEndian.PutUint16(b[60:], n)
		return b
	}
	for _, x := range []struct {
		name  string
		image []byte
		asked bool // the driver
	}{
		{"nothing", nil, false},
		{"text", []byte(strings.Repeat("no module ", 20)), false},
		{"a header cut off", fakecuda.Cubin(90)[:63], false},
		{"sections beyond the end", sections(64, 100), false},
		{"sections far away", sections(math.MaxUint64, 1), false},
		{"not machine code", append(fakecuda.Cubin(90)[:64], 0), true},
		{"for a later device", fakecuda.Cubin(100), true},
	} {
		f.Calls()
		if _, err := c.LoadModule(x.image); !errors.Is(err, ErrImage) {
			t.Errorf("%s: %v", x.name, err)
		}
		if asked := len(f.Calls()) > 0; asked != x.asked {
			t.Errorf("%s: the driver was asked: %v", x.name, asked)
		}
	}
}

func TestLaunch(t *testing.T) {
	f, c, s := setup(t)
	m := closing[*Module](t)(c.LoadModule(fakecuda.Cubin(90, "kernel add_f32 4", "kernel many 3")))
	add, many := must[*Function](t)(m.Function("add_f32")), must[*Function](t)(m.Function("many"))
	_, x := pool(t, s, 16)
	check(t, s.CopyIn(x, le32(math.Float32bits(1.5), math.Float32bits(2), math.Float32bits(0), math.Float32bits(-1))))
	f.Calls()
	check(t, add.Launch(s, Launch{Grid: Dim{X: 2}, Block: Dim{X: 128}, Shared: 1024}, []uint64{uint64(x), uint64(x), uint64(x + 8), 2}))
	got := make([]byte, 8)
	check(t, s.CopyOut(got, x))
	if want := le32(math.Float32bits(1.5), math.Float32bits(1)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	params := []uint64{uint64(math.Float32bits(1)), 1<<63 + 5, 0xffffffffffffffff}
	check(t, many.Launch(s, Launch{Grid: Dim{1, 2, 3}, Block: Dim{4, 5, 6}, Cooperative: true, Overlap: true, Cluster: Dim{X: 2}}, params))
	calls := f.Calls()
	if want := []string{"cuLaunchKernelEx many grid=1,2,3 block=4,5,6 shared=0 cooperative=1 cluster=2,1,1 overlap=1 0x3f800000 0x8000000000000005 0xffffffffffffffff"}; !reflect.DeepEqual(after(calls, "cuLaunchKernelEx"), want) {
		t.Errorf("%q", calls)
	}
	if plain := after(calls, "cuLaunchKernel"); len(plain) != 1 || !strings.HasPrefix(plain[0], "cuLaunchKernel add_f32 grid=2,1,1 block=128,1,1 shared=1024 0x") {
		t.Errorf("%q", plain)
	}
	check(t, s.Wait(background))
}

func le32(v ...uint32) []byte {
	var out []byte
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, x)
	}
	return out
}

func TestWrongLaunches(t *testing.T) {
	_, c, s := setup(t)
	m := closing[*Module](t)(c.LoadModule(fakecuda.Cubin(90, "kernel k 0")))
	k := must[*Function](t)(m.Function("k"))
	for _, x := range []struct {
		name   string
		l      Launch
		params int
	}{
		{"a block of 2048", Launch{Block: Dim{X: 2048}}, 0},
		{"a block of 64×64", Launch{Block: Dim{64, 64, 1}}, 0},
		{"a grid too high", Launch{Grid: Dim{1, 65536, 1}}, 0},
		{"shared memory", Launch{Shared: 64 << 10}, 0},
		{"too many parameters", Launch{}, MaxParams + 1},
	} {
		err := k.Launch(s, x.l, make([]uint64, x.params))
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `kernel "k"`) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	check(t, k.SetMaxDynamicShared(64<<10))
	check(t, k.Launch(s, Launch{Shared: 64 << 10}, nil))
	check(t, k.SetCarveout(100))
	check(t, k.Launch(s, Launch{}, make([]uint64, MaxParams)))
	for _, err := range []error{k.SetMaxDynamicShared(1 << 20), k.SetCarveout(101)} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("a wrong attribute: %v", err)
		}
	}
	check(t, s.Wait(background))
}

// What a computation does for each kernel must leave the collector alone.
func TestNothingIsAllocated(t *testing.T) {
	if sanitizer.Race || sanitizer.Address {
		t.Skip("race detector and address sanitizer allocate")
	}
	_, c, s := setup(t)
	m := closing[*Module](t)(c.LoadModule(fakecuda.Cubin(90, "kernel k 4")))
	k := must[*Function](t)(m.Function("k"))
	p, x := pool(t, s, 64)
	e := closing[*Event](t)(c.NewEvent(false))
	host := closing[*HostMem](t)(c.NewHostMem(64))
	check(t, s.BeginCapture())
	g := closing[*Graph](t)(s.EndCapture())
	exec := closing[*GraphExec](t)(g.Instantiate())
	var failed error
	note := func(err error) {
		if err != nil {
			failed = err
		}
	}
	for name, fn := range map[string]func(){
		"launch": func() {
			params := [4]uint64{uint64(x), 2, 3, 4}
			note(k.Launch(s, Launch{Grid: Dim{X: 8}, Block: Dim{X: 128}}, params[:]))
		},
		"launch with attributes": func() {
			params := [4]uint64{uint64(x), 2, 3, 4}
			note(k.Launch(s, Launch{Overlap: true}, params[:]))
		},
		"event": func() {
			note(e.Record(s))
			_, err := e.Done()
			note(err)
			note(s.WaitEvent(e))
		},
		"graph":   func() { note(exec.Launch(s)) },
		"copy":    func() { note(s.CopyIn(x, host.Bytes())); note(s.CopyOut(host.Bytes(), x)); note(s.Set(x, 1, 4, 2)) },
		"memory":  func() { y, err := p.Alloc(s, 16); note(err); note(s.Free(y)) },
		"waiting": func() { note(s.Wait(background)) },
	} {
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	check(t, failed)
	check(t, s.Wait(background))
}
