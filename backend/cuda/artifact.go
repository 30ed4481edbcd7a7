//go:build cuda && linux && cgo

package cuda

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/build"
	"github.com/loris-ml/loris/ir"
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

// CompileArtifact is Compile that takes the machine code of kernels from an
// artefact, see backend.ArtifactBackend: cubins by the names of their entries.
func (b *Backend) CompileArtifact(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions, artifact []byte) (backend.Model, []byte, error) {
	var kept map[string][]byte
	if artifact != nil {
		if err := gob.NewDecoder(bytes.NewReader(artifact)).Decode(&kept); err != nil {
			kept = nil // what cannot be read is made anew and replaced
		}
	}
	m, cubins, err := b.compile(ctx, p, d, o, kept)
	if err != nil {
		return nil, nil, err
	}
	complete := true
	for entry := range cubins {
		complete = complete && kept[entry] != nil
	}
	if complete {
		return m, nil, nil
	}
	var fresh bytes.Buffer
	if err := gob.NewEncoder(&fresh).Encode(cubins); err != nil {
		_ = m.Close() // the first error tells more
		return nil, nil, fmt.Errorf("cuda: program %q: %w", p.Name, err)
	}
	return m, fresh.Bytes(), nil
}
