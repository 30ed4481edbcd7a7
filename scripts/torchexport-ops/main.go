// Command torchexport-ops runs the cases that make.py wrote to a folder, an exported program with
// inputs and results each, and holds results against PyTorch's:
//
//	go run ./scripts/torchexport-ops DIR [PREFIX]
//
// It prints the cases that fail with their reasons, and counts by reason. Of what has several right
// answers, the order of equal elements, signs of eigenvectors and memory that nobody wrote, PyTorch's may
// be another.
package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/loris-ml/loris"
	_ "github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/torchexport"
)

func main() {
	prefix := ""
	if len(os.Args) > 2 {
		prefix = os.Args[2]
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], prefix+"*.pt2"))
	if err != nil || len(paths) == 0 {
		fmt.Fprintln(os.Stderr, "usage: torchexport-ops DIR [PREFIX]; no cases found", err)
		os.Exit(2)
	}
	failed := map[string]int{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".pt2")
		if err := try(strings.TrimSuffix(path, ".pt2")); err != nil {
			text := strings.ReplaceAll(err.Error(), "\n", " | ")
			fmt.Printf("%-50s %s\n", name, text)
			failed[kind(text)]++
		}
	}
	total := 0
	for _, k := range slices.SortedFunc(maps.Keys(failed), func(a, b string) int { return cmp.Compare(failed[b], failed[a]) }) {
		fmt.Printf("%6d %s\n", failed[k], k)
		total += failed[k]
	}
	fmt.Printf("%d of %d cases as PyTorch's\n", len(paths)-total, len(paths))
}

var numbers = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?|0x[0-9a-f]+`)

// kind is what errors of one cause have in common.
func kind(text string) string {
	return numbers.ReplaceAllString(text[:min(len(text), 90)], "#")
}

func try(base string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	f, err := safetensors.Open(base + ".safetensors")
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := torchexport.Load(ctx, base+".pt2")
	if err != nil {
		return err
	}
	ins, err := tensors(f, "in")
	if err != nil {
		return err
	}
	want, err := tensors(f, "out")
	if err != nil {
		return err
	}
	outs, err := m.Call(ctx, ins...)
	if err != nil {
		return err
	}
	if len(outs) != len(want) {
		return fmt.Errorf("%d results, PyTorch has %d", len(outs), len(want))
	}
	for i, o := range outs {
		if err := compare(ctx, o, want[i]); err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
	}
	return loris.MarkStep(ctx)
}

func tensors(f *safetensors.File, kind string) (all []*loris.Tensor, err error) {
	for {
		name := fmt.Sprintf("%s%d", kind, len(all))
		if _, ok := f.Lookup(name); !ok {
			return all, nil
		}
		shape, data, err := tensorfile.Read(f, name)
		if err != nil {
			return nil, err
		}
		all = append(all, loris.FromBytes(slices.Clone(data), shape))
	}
}

// tolerance is that of torch.testing.assert_close, ten times that for f32: PyTorch rounds, too.
func tolerance(d loris.DType) (relative, absolute float64) {
	switch d {
	case loris.F32, loris.C64:
		return 1.3e-5, 1e-5
	case loris.F64, loris.C128:
		return 1e-7, 1e-7
	case loris.F16:
		return 1e-3, 1e-5
	case loris.BF16:
		return 1.6e-2, 1e-5
	}
	return 0, 0
}

func compare(ctx context.Context, got, want *loris.Tensor) error {
	if got.DType() != want.DType() || !slices.Equal(got.Shape().Dims(), want.Shape().Dims()) {
		return fmt.Errorf("is %v, PyTorch has %v", got.Shape(), want.Shape())
	}
	g, err := values(ctx, got)
	if err != nil {
		return err
	}
	w, err := values(ctx, want)
	if err != nil {
		return err
	}
	relative, absolute := tolerance(got.DType())
	for i := range w {
		if g[i] == w[i] || math.IsNaN(g[i]) && math.IsNaN(w[i]) || math.Abs(g[i]-w[i]) <= absolute+relative*math.Abs(w[i]) {
			continue
		}
		return fmt.Errorf("number %d of %d is %g, PyTorch has %g", i, len(w), g[i], w[i])
	}
	return nil
}

// values returns the numbers of a tensor, those of a complex one by pairs.
func values(ctx context.Context, t *loris.Tensor) ([]float64, error) {
	if !t.DType().IsComplex() {
		return t.Cast(loris.F64).Float64s(ctx)
	}
	all, err := t.Complex128s(ctx)
	pairs := make([]float64, 0, 2*len(all))
	for _, z := range all {
		pairs = append(pairs, real(z), imag(z))
	}
	return pairs, err
}
