package steps

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
)

// device runs Sequences on the device of fibers of package emit: C++ of all
// kernels in a few files, compiled once.
type device struct {
	t       *testing.T
	library string   // what those of the library begin with
	entries []string // by number: the name
	sources []string // by number: without what is common
	numbers map[string]int
	input   []byte
	cases   int
}

func newDevice(t *testing.T) *device {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the device of these tests needs Linux")
	}
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("the device of these tests needs g++")
	}
	const entry = "\nextern \"C\" __global__"
	source := (&emit.MaxPool{Window: emit.Window{Out: [3]int{1, 1, 1}}, DType: 1, Batch: 1}).Plan(limits).Launches[0].Source()
	library := source[:strings.LastIndex(source, entry)]
	return &device{t: t, library: library, numbers: map[string]int{}}
}

// limits are small, so that loops over blocks are tested.
var limits = emit.Limits{Processors: 2, Threads: 64, Tensor: true}

// entry returns the number of an entry.
func (d *device) entry(l *emit.Launch) int {
	n, ok := d.numbers[l.Entry]
	if !ok {
		source := l.Source()
		if rest, ok := strings.CutPrefix(source, d.library); ok {
			source = rest
		} else {
			source = source[strings.Index(source, "// kernel "):] // behind what the library begins with, too
		}
		n = len(d.entries)
		d.numbers[l.Entry] = n
		d.entries, d.sources = append(d.entries, l.Entry), append(d.sources, source)
	}
	return n
}

func (d *device) word(v ...int) {
	for _, x := range v {
		d.input = binary.LittleEndian.AppendUint64(d.input, uint64(x))
	}
}

// copier copies bytes.
func copier(n int) *emit.Plan {
	return (&emit.Cat{Outer: 1, Parts: []int{n}, Size: 1, Align: 1}).Plan(limits)
}

// add adds a run of a Sequence: memory by number, and at the end that of faults.
func (d *device) add(s *Sequence, memory [][]byte) {
	d.cases++
	d.word(len(memory))
	for _, m := range memory {
		d.word(len(m))
		d.input = append(d.input, m...)
	}
	count := 0
	plans := make([]*emit.Plan, len(s.Steps))
	for i := range s.Steps {
		plans[i] = s.Steps[i].Kernels
		if s.Steps[i].Copy > 0 {
			plans[i] = copier(s.Steps[i].Copy)
		}
		count += len(plans[i].Launches)
	}
	d.word(count)
	for i := range s.Steps {
		for k := range plans[i].Launches {
			d.launch(&s.Steps[i], &plans[i].Launches[k], len(memory)-1)
		}
	}
}

func (d *device) launch(s *Step, l *emit.Launch, faults int) {
	d.word(d.entry(l), 1)
	d.word(l.Grid[:]...)
	d.word(l.Block[:]...)
	d.word(len(l.Params))
	for _, p := range l.Params {
		d.word(int(p))
	}
	var fixes [][3]int
	for _, a := range l.Addresses {
		r := s.Work
		switch {
		case a.Operand == emit.Fault && s.Fault < 0:
			continue // nothing is left there
		case a.Operand == emit.Fault:
			r = Ref{faults, FaultBytes * s.Fault}
		case a.Operand >= 0:
			r = s.Refs[a.Operand]
		}
		fixes = append(fixes, [3]int{a.Slot, r.Memory, r.Offset + a.Offset})
	}
	d.word(len(fixes))
	for _, f := range fixes {
		d.word(f[:]...)
	}
}

// run returns all memory after the runs.
func (d *device) run() []byte {
	d.t.Helper()
	d.t.Logf("%d entries, %d runs", len(d.entries), d.cases)
	name := filepath.Join(d.t.TempDir(), "all")
	if err := os.WriteFile(name+".cc", []byte(d.program()), 0o666); err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command("g++", "-std=c++17", "-O0", "-w", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-o", name, name+".cc")
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out[:min(len(out), 4000)])
	}
	cmd = exec.Command(name)
	cmd.Stdin = bytes.NewReader(append(binary.LittleEndian.AppendUint64(nil, uint64(d.cases)), d.input...))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	return out
}

// program returns the source of a program that has all entries.
func (d *device) program() string {
	var b, table strings.Builder
	for _, name := range []string{"../fakecuda/testdata/device.h", "../emit/testdata/serve.h"} {
		path, err := filepath.Abs(name)
		if err != nil {
			d.t.Fatal(err)
		}
		fmt.Fprintf(&b, "#include %q\n", path)
	}
	b.WriteString(d.library)
	written := map[string]bool{} // what several entries call
	for i, name := range d.entries {
		forms, entry := d.sources[i], d.sources[i][strings.LastIndex(d.sources[i], "\nextern \"C\""):]
		if forms = strings.TrimSuffix(forms, entry); !written[forms] {
			b.WriteString(forms)
			written[forms] = true
		}
		b.WriteString(entry)
		fmt.Fprintf(&table, "Entry<%s>::run,\n", name)
	}
	fmt.Fprintf(&b, "static const Call calls[] = {\n%s};\nint main() { return serve(calls); }\n", &table)
	return b.String()
}
