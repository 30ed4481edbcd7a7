package failures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/loris-ml/loris/internal/attack/failures/filecalls"
	"github.com/loris-ml/loris/internal/attack/held"
)

// FileRow is what became of a program on files.
type FileRow struct {
	Program string
	// Failures is how many calls of the system failed, one in each run. Errors of the runs returned an
	// error, and left Before as it was or had made After; Harmless ones did without the call.
	Failures, Errors, Before, After, Harmless int
}

// fileProgram is something that users do with files.
type fileProgram struct {
	name string
	// prepare makes the files that are there before.
	prepare func(ctx context.Context, dir string) error
	run     func(ctx context.Context, dir string) error
	// state reports whether what run makes is there, whole: false is what prepare made.
	state func(ctx context.Context, dir string) (after bool, err error)
	// left are the names of what is in the directory at the end; nil does not tell.
	left []string
}

// RunFiles has every call of the system on files fail in every program, and returns a row for each.
// root is the repository's. The error is of the first failure that was not handled as it is promised.
func RunFiles(ctx context.Context, in *filecalls.Injector, root fs.FS) (rows []FileRow, err error) {
	temp, err := os.MkdirTemp("", "failures")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return nil, err
	}
	// A call on files waits for a goroutine of this process. A collection that stops all goroutines
	// would wait for the call in turn, so there is none but between runs.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, p := range filePrograms(root) {
		row := FileRow{Program: p.name}
		for n := -1; ; n++ { // the first run opens what stays open
			runtime.GC()
			dir := filepath.Join(temp, fmt.Sprint(n+1))
			failed, err := oneFileFailure(ctx, in, p, dir, n, &row)
			if err != nil {
				return rows, fmt.Errorf("%s, call %d (%s): %w", p.name, n, strings.ReplaceAll(failed, temp, ""), err)
			}
			if err := os.RemoveAll(dir); err != nil {
				return rows, err
			}
			if failed == "" && n >= 0 {
				break
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// oneFileFailure runs a program with the failure of call n, none for -1, and then without.
func oneFileFailure(ctx context.Context, in *filecalls.Injector, p fileProgram, dir string, n int, row *FileRow) (failed string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if err := p.prepare(ctx, dir); err != nil {
		return "", fmt.Errorf("preparing: %w", err)
	}
	before := held.Now()
	in.Arm(dir, n)
	runErr := try(func() error { return p.run(ctx, dir) })
	if failed = in.Disarm(); failed == "" && runErr != nil {
		return "", runErr
	}
	after, err := p.state(ctx, dir)
	switch {
	case err != nil:
		return failed, fmt.Errorf("after the error %v: %w", runErr, err)
	case runErr == nil && !after:
		return failed, errors.New("there was no error, and no result")
	case runErr != nil && hides(runErr):
		return failed, fmt.Errorf("the error hides that of the system: %w", runErr)
	}
	row.count(failed, runErr, after)
	if err := p.run(ctx, dir); err != nil {
		return failed, fmt.Errorf("tried again: %w", err)
	}
	if after, err := p.state(ctx, dir); err != nil || !after {
		return failed, fmt.Errorf("tried again: %v, %w", after, err)
	}
	if n < 0 {
		return "", nil
	}
	return failed, errors.Join(remains(dir, p.left), held.Back(before))
}

// hides reports whether an error does not tell that of the system, but for the dynamic linker's, which
// has words of its own.
func hides(err error) bool {
	return !errors.As(err, new(syscall.Errno)) && !strings.Contains(err.Error(), "open the library")
}

func (r *FileRow) count(failed string, err error, after bool) {
	switch {
	case failed == "":
		return
	case err == nil:
		r.Harmless++
	case after:
		r.Errors++
		r.After++
	default:
		r.Errors++
		r.Before++
	}
	r.Failures++
}

// remains compares the names in a directory with those that a program leaves.
func remains(dir string, want []string) error {
	if want == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err == nil && !slices.Equal(names, want) {
		err = fmt.Errorf("the directory has %q, want %q", names, want)
	}
	return err
}

// copied returns a prepare that copies a file of the repository.
func copied(root fs.FS, name, to string) func(context.Context, string) error {
	return func(_ context.Context, dir string) error {
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, to), b, 0o600)
	}
}
