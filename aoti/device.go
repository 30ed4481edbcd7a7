package aoti

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/pt2"
)

// deviceTypes returns the device types that packages can run on in this build,
// sorted.
func deviceTypes() []string {
	types := append(accelerator.Types(), "cpu")
	slices.Sort(types)
	return slices.Compact(types)
}

// chooseDevice sets the device of o: the one that it asks for, or that the model
// was compiled for. A device that this build does not run models on, or that the
// model was not compiled for, is a *TargetError.
func chooseDevice(pkg string, m *pt2.Model, o *options) error {
	compiled := m.Metadata.Device()
	want := o.device
	if want == "" {
		want = compiled
	}
	if want == "" {
		want = "cpu"
	}
	kind, _, _ := strings.Cut(want, ":")
	if kind != "cpu" && accelerator.Of(kind) == nil {
		target := &pt2.TargetError{Path: pkg, Model: m.Name, What: "device", Need: kind, Have: strings.Join(deviceTypes(), ", "), Missing: []string{kind}}
		if why := backend.Absent(kind); why != nil {
			return fmt.Errorf("%w: %w", target, why)
		}
		return target
	}
	if compiled != "" && compiled != kind {
		return &pt2.TargetError{Path: pkg, Model: m.Name, What: "device", Need: compiled, Have: want}
	}
	o.device = want
	return nil
}
