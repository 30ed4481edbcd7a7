//go:build cuda && linux && cgo

package cuda

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/build"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// ArtifactID returns the build of this module, the machine code that kernels are
// compiled to and the version of their compiler. It is empty where there is no
// such device or compiler.
func (b *Backend) ArtifactID(d ir.Device) string {
	id := build.ID()
	g, err := b.of(d)
	if id == "" || err != nil {
		return ""
	}
	c, err := b.compiler()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %s nvrtc %v %s", b.Version(), g.props.Arch(), c.Version(), id)
}

// artifact is what is kept of a compiled Program.
type artifact struct {
	Cubins map[string][]byte // by entry
	// Products are the choices that were the fastest, on a GPU of this name with this
	// version of cuBLASLt, which numbers them.
	Products map[driver.MatmulSpec]int
	GPU      string
	BLAS     int
}

// fitting returns the choices that count on the device.
func (d *device) fitting(a *artifact) map[driver.MatmulSpec]int {
	if len(a.Products) == 0 || a.GPU != d.props.Name || a.BLAS != d.blasVersion() {
		return nil
	}
	return a.Products
}

// artifactOf returns what is to be kept.
func (d *device) artifactOf(cubins map[string][]byte, products map[driver.MatmulSpec]int) *artifact {
	a := &artifact{Cubins: cubins}
	if len(products) > 0 {
		a.Products, a.GPU, a.BLAS = products, d.props.Name, d.blasVersion()
	}
	return a
}

// blasVersion returns the version of cuBLASLt, 0 if there is none.
func (d *device) blasVersion() int {
	lt, err := d.backend.blas()
	if err != nil {
		return 0
	}
	return lt.Version()
}

// has reports whether an artefact has all of another one.
func (a *artifact) has(b *artifact) bool {
	for entry := range b.Cubins {
		if a.Cubins[entry] == nil {
			return false
		}
	}
	for spec, c := range b.Products {
		if was, ok := a.Products[spec]; !ok || was != c || a.GPU != b.GPU || a.BLAS != b.BLAS {
			return false
		}
	}
	return true
}

// CompileArtifact is Compile that takes the machine code of kernels from an
// artefact, see backend.ArtifactBackend: cubins by the names of their entries, and
// which ways to compute products were the fastest.
func (b *Backend) CompileArtifact(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions, data []byte) (backend.Model, []byte, error) {
	kept := &artifact{}
	if data != nil {
		if err := gob.NewDecoder(bytes.NewReader(data)).Decode(kept); err != nil {
			kept = &artifact{} // what cannot be read is made anew and replaced
		}
	}
	m, made, err := b.compile(ctx, p, d, o, kept)
	if err != nil {
		return nil, nil, err
	}
	if kept.has(made) {
		return m, nil, nil
	}
	var fresh bytes.Buffer
	if err := gob.NewEncoder(&fresh).Encode(made); err != nil {
		_ = m.Close() // the first error tells more
		return nil, nil, fmt.Errorf("cuda: program %q: %w", p.Name, err)
	}
	return m, fresh.Bytes(), nil
}
