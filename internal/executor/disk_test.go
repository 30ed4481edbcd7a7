package executor_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// keeping is a fake backend whose artefact is a text; what comes back as another
// text is of no use.
type keeping struct {
	*fake
	id string
}

func (k *keeping) ArtifactID(ir.Device) string { return k.id }

func (k *keeping) CompileArtifact(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions, artifact []byte) (backend.Model, []byte, error) {
	want := "code of " + k.id
	if string(artifact) == want {
		return &fakeModel{f: k.fake, p: p, d: d}, nil, nil
	}
	m, err := k.Compile(ctx, p, d, o)
	return m, []byte(want), err
}

func newKeeping(t testing.TB, id string) *keeping {
	k := &keeping{newFake(t), id}
	backend.Register(k)
	return k
}

// start runs a program as a process of its own would: with a session of its own
// over the directory. It returns the report after everything is written.
func start(t *testing.T, dir string, rows int) report.Report {
	t.Helper()
	return startWith(t, executor.Config{DiskDir: dir}, rows)
}

func startWith(t *testing.T, cfg executor.Config, rows int) report.Report {
	t.Helper()
	cfg.Device = fakeDevice(0)
	s, err := executor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x := floats(t, s, make([]float32, 2*rows), rows, 2)
	want(t, binaryOp(s, aten.Add, x, x), make([]float32, 2*rows)...)
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return s.Report()
}

func TestDiskTier(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	newKeeping(t, "a")
	expect := func(what string, rows int, compiles, hits, writes int64) {
		t.Helper()
		r := start(t, dir, rows)
		if r.Compiles != compiles || r.DiskHits != hits || r.DiskWrites != writes || r.DiskError != nil {
			t.Errorf("%s: %d compiles, %d disk hits, %d writes, %v; want %d, %d, %d", what, r.Compiles, r.DiskHits, r.DiskWrites, r.DiskError, compiles, hits, writes)
		}
	}
	expect("the first start", 1, 1, 0, 1)
	expect("the second start", 1, 0, 1, 0)
	expect("another shape", 2, 1, 0, 1)
	newKeeping(t, "b")
	expect("another machine", 1, 1, 0, 1)
	files, err := filepath.Glob(filepath.Join(dir, "*.entry"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 10); err != nil {
			t.Fatal(err)
		}
	}
	expect("damaged entries", 1, 1, 0, 1)
	expect("after them", 1, 0, 1, 0)
	newKeeping(t, "")
	expect("nothing to keep", 1, 1, 0, 0)
}

// Artefacts of deterministic computations and others do not serve each other;
// those for another number of threads do.
func TestDiskTierKeepsDeterministicApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	newKeeping(t, "a")
	for i, c := range []struct {
		cfg            executor.Config
		compiles, hits int64
	}{
		{executor.Config{}, 1, 0},
		{executor.Config{Deterministic: true}, 1, 0},
		{executor.Config{Threads: 2}, 0, 1},
		{executor.Config{Deterministic: true, Threads: 3}, 0, 1},
	} {
		c.cfg.DiskDir = dir
		if r := startWith(t, c.cfg, 1); r.Compiles != c.compiles || r.DiskHits != c.hits {
			t.Errorf("start %d: %d compiles, %d disk hits, want %d and %d", i, r.Compiles, r.DiskHits, c.compiles, c.hits)
		}
	}
}

// An artefact that the backend cannot use is replaced.
func TestDiskTierReplacesWhatIsOfNoUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	k := newKeeping(t, "a")
	start(t, dir, 1)
	misfit := &misfit{k}
	backend.Register(misfit)
	if r := start(t, dir, 1); r.Compiles != 1 || r.DiskWrites != 1 {
		t.Errorf("%d compiles, %d writes", r.Compiles, r.DiskWrites)
	}
	if r := start(t, dir, 1); r.Compiles != 0 || r.DiskHits != 1 {
		t.Errorf("then %d compiles, %d hits", r.Compiles, r.DiskHits)
	}
}

// misfit has the ID of keeping but wants another text.
type misfit struct{ *keeping }

func (k *misfit) CompileArtifact(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions, artifact []byte) (backend.Model, []byte, error) {
	if string(artifact) == "other" {
		return &fakeModel{f: k.fake, p: p, d: d}, nil, nil
	}
	m, err := k.Compile(ctx, p, d, o)
	return m, []byte("other"), err
}

func TestDiskTierOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	newKeeping(t, "a")
	if _, err := executor.New(executor.Config{Device: fakeDevice(0), DiskDir: dir}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a directory that others may write to: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := executor.New(executor.Config{Device: fakeDevice(0), DiskDir: file}); err == nil {
		t.Error("a file opens as a directory")
	}
}
