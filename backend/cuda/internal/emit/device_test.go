package emit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// device runs kernels on a device of testdata/device.h: C++ of all kernels in one
// file, compiled once.
type device struct {
	t       *testing.T
	sources map[string]string // by name, without what is common
	entries []string
	index   map[string]int
	frames  []string // by entry: the type of its parameter
	cases   []*deviceCase
}

// deviceCase is a sequence of launches on some memory.
type deviceCase struct {
	memory   [][]byte // is replaced by what the launches make of it
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
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("the device of these tests needs g++")
	}
	return &device{t: t, sources: map[string]string{}, index: map[string]int{}}
}

// add adds a source with the type of the parameter of its entries.
func (d *device) add(name, source, frame string, entries []string) {
	if _, ok := d.sources[name]; ok {
		return
	}
	for _, part := range []string{prelude, opsSource, foldSource} {
		source = strings.TrimPrefix(source, part)
		source = strings.TrimPrefix(source, "\n")
	}
	d.sources[name] = source
	for _, e := range entries {
		d.index[e] = len(d.entries)
		d.entries = append(d.entries, e)
		d.frames = append(d.frames, frame)
	}
}

// run compiles everything, runs the cases and checks each.
func (d *device) run() {
	d.t.Helper()
	dir := d.t.TempDir()
	source, err := filepath.Abs("testdata/device.h")
	if err != nil {
		d.t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#include %q\n", source)
	for _, part := range []string{prelude, opsSource, foldSource} {
		b.WriteString(part)
	}
	names := make([]string, 0, len(d.sources))
	for name := range d.sources {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.WriteString(d.sources[name])
	}
	b.WriteString("static const Call calls[] = {\n")
	for i, e := range d.entries {
		fmt.Fprintf(&b, "call<%s, %s>,\n", d.frames[i], e)
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
	for _, c := range d.cases {
		for i, m := range c.memory {
			c.memory[i], out = out[:len(m):len(m)], out[len(m):]
		}
		c.check(c.memory)
	}
	if len(out) != 0 {
		d.t.Fatalf("%d bytes of output are left", len(out))
	}
	d.t.Logf("%d entries, %d cases", len(d.entries), len(d.cases))
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
