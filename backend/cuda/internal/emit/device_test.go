package emit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// device runs kernels on a device of fakecuda's device.h: C++ of all kernels in
// one file, compiled once.
type device struct {
	t       *testing.T
	limits  Limits
	sources map[string]string // by name, without what is common
	// complete are the sources as they are.
	complete map[string]string
	entries  []string
	index    map[string]int
	owners   []string // by entry: the name of its source
	cases    []*deviceCase
}

// deviceCase is a sequence of launches on some memory.
type deviceCase struct {
	memory   [][]byte
	launches []deviceLaunch
	check    func(memory [][]byte)
}

type deviceLaunch struct {
	entry       int
	barriers    bool
	grid, block [3]int
	slots       []uint64
	// fixes are slots that get the address of an offset in a buffer.
	fixes [][3]int
}

func newDevice(t *testing.T) *device {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the device of these tests needs Linux")
	}
	if _, err := exec.LookPath("g++"); err != nil && (openGPU == nil || openGPU(t) == nil) {
		t.Skip("the device of these tests needs g++, or a GPU")
	}
	return &device{t: t, limits: small, sources: map[string]string{}, complete: map[string]string{}, index: map[string]int{}}
}

// add adds a source with its entries.
func (d *device) add(name, source string, entries []string) {
	if _, ok := d.sources[name]; ok {
		return
	}
	if d.complete[name] == "" {
		d.complete[name] = source
	}
	d.sources[name] = strings.TrimPrefix(source, prelude)
	for _, e := range entries {
		d.index[e] = len(d.entries)
		d.entries = append(d.entries, e)
		d.owners = append(d.owners, name)
	}
}

// launches returns the launches of a plan; the workspace and the fault are the
// buffers from work on.
func (d *device) launches(p *Plan, work int) (all []deviceLaunch) {
	for i := range p.Launches {
		l := &p.Launches[i]
		if _, ok := d.index[l.Entry]; !ok {
			d.complete[l.Entry] = l.Source()
			source := strings.TrimPrefix(l.Source(), prelude+library)
			d.add(l.Entry, source, []string{l.Entry})
		}
		dl := deviceLaunch{entry: d.index[l.Entry], barriers: true, grid: l.Grid, block: l.Block, slots: l.Params}
		for _, a := range l.Addresses {
			buffer := a.Operand
			switch buffer {
			case Work:
				buffer = work
			case Fault:
				buffer = work + 1
			}
			dl.fixes = append(dl.fixes, [3]int{a.Slot, buffer, a.Offset})
		}
		all = append(all, dl)
	}
	return all
}

// faultBytes is the size of the memory of faults.
const faultBytes = 16

// In builds with the tag cuda compileAll compiles complete sources, by name, and
// openGPU returns a GPU, or nil if there is none.
var (
	compileAll func(t *testing.T, sources map[string]string)
	openGPU    func(t *testing.T) gpu
)

// gpu runs the cases of a device and returns what they leave in memory.
type gpu interface{ run(d *device) [][][]byte }

// run compiles everything, runs the cases and checks each: on a GPU, and as C++.
func (d *device) run() {
	d.t.Helper()
	if compileAll != nil {
		compileAll(d.t, d.complete)
	}
	d.t.Logf("%d entries, %d cases", len(d.entries), len(d.cases))
	if openGPU != nil {
		if g := openGPU(d.t); g != nil {
			for i, memory := range g.run(d) {
				d.cases[i].check(memory)
			}
		}
	}
	if _, err := exec.LookPath("g++"); err != nil {
		return
	}
	out := d.asProgram()
	for _, c := range d.cases {
		memory := make([][]byte, len(c.memory))
		for i, m := range c.memory {
			memory[i], out = out[:len(m):len(m)], out[len(m):]
		}
		c.check(memory)
	}
	if len(out) != 0 {
		d.t.Fatalf("%d bytes of output are left", len(out))
	}
}

// asProgram runs the cases as C++ and returns all memory.
func (d *device) asProgram() []byte {
	d.t.Helper()
	dir := d.t.TempDir()
	var b strings.Builder
	for _, name := range []string{"../fakecuda/testdata/device.h", "testdata/serve.h"} {
		source, err := filepath.Abs(name)
		if err != nil {
			d.t.Fatal(err)
		}
		fmt.Fprintf(&b, "#include %q\n", source)
	}
	b.WriteString(prelude + library)
	for _, name := range slices.Sorted(maps.Keys(d.sources)) {
		b.WriteString(d.sources[name])
	}
	b.WriteString("static const Call calls[] = {\n")
	for _, e := range d.entries {
		fmt.Fprintf(&b, "Entry<%s>::run,\n", e)
	}
	b.WriteString("};\nint main() { return serve(calls); }\n")
	if err := os.WriteFile(filepath.Join(dir, "all.cc"), []byte(b.String()), 0o666); err != nil {
		d.t.Fatal(err)
	}
	program := filepath.Join(dir, "all")
	cmd := exec.Command("g++", "-std=c++17", "-O0", "-w", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-o", program, filepath.Join(dir, "all.cc"))
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out[:min(len(out), 4000)])
	}
	cmd = exec.Command(program)
	cmd.Stdin = bytes.NewReader(d.input())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	return out
}

func (d *device) input() []byte {
	var b []byte
	word := func(v ...int) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
	}
	word(len(d.cases))
	for _, c := range d.cases {
		word(len(c.memory))
		for _, m := range c.memory {
			word(len(m))
			b = append(b, m...)
		}
		word(len(c.launches))
		for _, l := range c.launches {
			barriers := 0
			if l.barriers {
				barriers = 1
			}
			word(l.entry, barriers)
			word(l.grid[:]...)
			word(l.block[:]...)
			word(len(l.slots))
			for _, s := range l.slots {
				b = binary.LittleEndian.AppendUint64(b, s)
			}
			word(len(l.fixes))
			for _, f := range l.fixes {
				word(f[:]...)
			}
		}
	}
	return b
}
