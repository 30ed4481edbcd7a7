package cpu

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/build"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/parallel"
)

// journal is the use of an engine by one compilation: it notes the kernels and
// answers that the Program needed, for its artefact, and has the code made.
type journal struct {
	*engine
	emission emission
	codes    map[string]*kernelCode
	probes   map[fuse.Probe]bool
	noted    map[*laid]struct{} // those whose code is among codes
	// eager says that code is made at once: what is made later may turn out not to be possible.
	eager bool
}

// journal returns a new one whose code at most threads goroutines make, or as many as there are
// processors for 0; nil for no engine.
func (e *engine) journal(threads int) *journal {
	if e == nil {
		return nil
	}
	return &journal{engine: e, emission: emission{engine: e, most: parallel.NewLimiter(threads).Threads() - 1}, codes: map[string]*kernelCode{}, probes: map[fuse.Probe]bool{}, noted: map[*laid]struct{}{}}
}

// compile returns the code of a kernel, which may be made until the compilation ends; false if it is
// known that there can be none. The kernel must not change any more.
func (j *journal) compile(k *loop.Kernel) (c *kernelCode, ok bool) {
	c = j.engine.find(k.Key(), k)
	j.note(c)
	return c, !c.none()
}

// note notes code that the Program needs, and has it made.
func (j *journal) note(c *kernelCode) {
	if j.codes[c.key] == c {
		return
	}
	j.codes[c.key] = c
	switch {
	case c.made.Load():
	case j.eager:
		j.engine.make(c)
	default:
		j.emission.add(c)
	}
	if c.made.Load() && c.fault != nil {
		panic(c.fault)
	}
}

// serves reports whether what was kept of a kernel is still right, and notes the code.
func (j *journal) serves(k *laid, piece int) bool {
	if k == nil || k.piece != piece || k.evictions != j.evictions.Load() {
		return false
	}
	if _, ok := j.noted[k]; !ok {
		j.noted[k] = struct{}{}
		j.note(k.code)
	}
	return !k.code.none()
}

func (j *journal) supports(q fuse.Probe) bool {
	ok := j.engine.supports(q)
	j.probes[q] = ok
	return ok
}

// artifact is what is kept of a Program: the machine code of its kernels and
// which ops have any. The plan is made anew, which takes less time than reading
// it would.
type artifact struct {
	codes  map[string][]byte // by Kernel.Key; empty for what has no code
	probes map[fuse.Probe]bool
}

// artifactFile is an artifact as JSON, in which neither kind of key can be that of an object.
type artifactFile struct {
	Codes  []keptCode
	Probes []keptProbe
}

type keptCode struct{ Key, Code []byte }

type keptProbe struct {
	Probe     fuse.Probe
	Supported bool
}

func parseArtifact(data []byte) (*artifact, error) {
	var f artifactFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	a := &artifact{map[string][]byte{}, map[fuse.Probe]bool{}}
	for _, c := range f.Codes {
		a.codes[string(c.Key)] = c.Code
	}
	for _, p := range f.Probes {
		a.probes[p.Probe] = p.Supported
	}
	return a, nil
}

// ArtifactID returns the build of this module and the instructions that kernels
// are compiled to; it is empty in a portable backend.
func (b *Backend) ArtifactID(d ir.Device) string {
	if b.engine == nil || b.engine.load == nil || d != Device {
		return ""
	}
	id := build.ID()
	if id == "" {
		return ""
	}
	return b.Version() + " " + b.engine.name + " " + id
}

// CompileArtifact is Compile that takes the machine code of kernels from an
// artefact, see backend.ArtifactBackend.
func (b *Backend) CompileArtifact(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions, data []byte) (backend.Model, []byte, error) {
	kept := &artifact{}
	if data != nil && b.engine != nil {
		// What cannot be read is made anew and replaced.
		if a, err := parseArtifact(data); err == nil {
			kept = a
			b.engine.learn(kept)
		}
	}
	j := b.engine.journal(o.Threads)
	m, err := b.compile(ctx, p, d, o, j)
	if err != nil || j == nil || j.within(kept) {
		return m, nil, err
	}
	fresh, err := j.artifact()
	if err != nil {
		return nil, nil, fmt.Errorf("cpu: program %q: %w", p.Name, err)
	}
	return m, fresh, nil
}

// learn takes over code and answers that the engine does not have.
func (e *engine) learn(a *artifact) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, data := range a.codes {
		if e.codes.Contains(key) {
			continue
		}
		var code executable
		if len(data) > 0 {
			var err error
			if code, err = e.load(data); err != nil {
				continue
			}
		}
		c := &kernelCode{key: key, code: code}
		c.once.Do(func() { c.made.Store(true) })
		e.keep(c)
	}
	maps.Copy(e.probes, a.probes)
}

// within reports whether an artefact has all code and probes that the compilation
// needed.
func (j *journal) within(a *artifact) bool {
	for key := range j.codes {
		if _, ok := a.codes[key]; !ok {
			return false
		}
	}
	for q := range j.probes {
		if _, ok := a.probes[q]; !ok {
			return false
		}
	}
	return true
}

// artifact encodes what the compilation needed.
func (j *journal) artifact() ([]byte, error) {
	var f artifactFile
	for key, c := range j.codes {
		var data []byte
		if c.code != nil {
			var err error
			if data, err = c.code.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
				return nil, err
			}
		}
		f.Codes = append(f.Codes, keptCode{[]byte(key), data})
	}
	for probe, supported := range j.probes {
		f.Probes = append(f.Probes, keptProbe{probe, supported})
	}
	return json.Marshal(&f)
}
