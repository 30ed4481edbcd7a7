package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/onnx"
	"github.com/loris-ml/loris/torchexport"
)

// compareLoads times Load of each model beside os.ReadFile of the same files, by turns, and writes a row for each form.
func compareLoads(ctx context.Context, s settings) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model\tMB\tread ms\tload ms\tload of read\tleast of read\tleast of load\tleast of both")
	for _, base := range s.bases {
		for _, form := range []struct {
			files []string
			load  func(m loris.Maker) error
		}{
			{[]string{base + ".pt2"}, func(m loris.Maker) error {
				_, err := torchexport.Load(ctx, base+".pt2", torchexport.With(m))
				return err
			}},
			{[]string{base + ".onnx", base + ".onnx.data"}, func(m loris.Maker) error {
				_, err := onnx.Load(ctx, base+".onnx", onnx.With(m))
				return err
			}},
		} {
			if err := compareLoad(ctx, s, form.files, form.load, w); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

func compareLoad(ctx context.Context, s settings, files []string, load func(loris.Maker) error, w *tabwriter.Writer) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(s.threads + 1))
	var reads, loads []int64
	size := 0
	for turn := range s.rounds + 1 {
		begin := time.Now()
		n, err := readAll(files)
		if err != nil {
			return err
		}
		read := time.Since(begin)
		runtime.GC() // what one turn read is not the next one's to clear up
		session, err := loris.New(loris.WithThreads(s.threads))
		if err != nil {
			return err
		}
		begin = time.Now()
		err = load(session.With())
		took := time.Since(begin)
		if err := errors.Join(err, session.Close(context.WithoutCancel(ctx))); err != nil {
			return err
		}
		runtime.GC()
		if turn > 0 { // the first one of a process meets files that the system does not hold
			size, reads, loads = n, append(reads, read.Nanoseconds()), append(loads, took.Nanoseconds())
		}
	}
	r, l := median(reads), median(loads)
	leastRead, leastLoad := float64(slices.Min(reads)), float64(slices.Min(loads))
	_, err := fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t%.2f\n",
		filepath.Base(files[0]), size>>20, r/1e6, l/1e6, l/r, leastRead/1e6, leastLoad/1e6, leastLoad/leastRead)
	return err
}

// readAll reads files and returns the sum of their sizes; those that are not there are not counted.
func readAll(files []string) (size int, err error) {
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		size += len(b)
		runtime.KeepAlive(b)
	}
	return size, nil
}
