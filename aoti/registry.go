package aoti

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/loris-ml/loris/aoti/pt2"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/accelerator"
)

// Opener opens a model of a package for one device type. The package is closed
// after it returns; what it returns must not read it later.
type Opener func(ctx context.Context, m *pt2.Model, o *Options) (Opened, error)

// Opened is an opened model, of which instances can be made.
type Opened interface {
	// NewInstance returns an instance. It is safe for concurrent use.
	NewInstance(ctx context.Context) (Model, error)
	// Weights returns constants by name that the package keeps apart from the
	// model, to be set before the first run, each a new reference; nil if there
	// are none.
	Weights(ctx context.Context) (map[string]Buffer, error)
	// Close frees the model, after all instances.
	Close() error
}

var openers = struct {
	sync.RWMutex
	byDevice map[string]Opener
}{byDevice: map[string]Opener{}}

// RegisterRunner makes models for a device type, such as "cuda", open with open.
// The last one registered wins.
func RegisterRunner(device string, open Opener) {
	openers.Lock()
	defer openers.Unlock()
	openers.byDevice[device] = open
}

// Runners returns the device types that have a runner, sorted.
func Runners() []string {
	openers.RLock()
	defer openers.RUnlock()
	out := accelerator.Types()
	for d := range openers.byDevice {
		out = append(out, d)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// opener returns the opener for the device that o asks for, or that the model
// was compiled for. A device that there is no runner for, or that the model was
// not compiled for, is a *pt2.TargetError.
func opener(pkg string, m *pt2.Model, o *Options) (Opener, error) {
	compiled := m.Metadata.Device()
	want := o.Device
	if want == "" {
		want = compiled
	}
	if want == "" {
		want = "cpu"
	}
	kind, _, _ := strings.Cut(want, ":")
	openers.RLock()
	open := openers.byDevice[kind]
	openers.RUnlock()
	if open == nil && accelerator.Of(kind) != nil {
		open = openLibrary
	}
	if open == nil {
		target := &pt2.TargetError{Path: pkg, Model: m.Name, What: "device", Need: kind, Have: strings.Join(Runners(), ", "), Missing: []string{kind}}
		if why := backend.Absent(kind); why != nil {
			return nil, fmt.Errorf("%w: %w", target, why)
		}
		return nil, target
	}
	if compiled != "" && compiled != kind {
		return nil, &pt2.TargetError{Path: pkg, Model: m.Name, What: "device", Need: compiled, Have: want}
	}
	o.Device = want
	return open, nil
}
