// Command gomlx is a peer of bench/compare: it runs the workloads in GoMLX with its
// Go backend, answering requests as bench/compare/peer/main.py does.
//
//	gomlx FOLDER THREADS
//
// It is a module of its own so that Loris does not depend on GoMLX.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
)

// workload is one that is open. Results are those after the runs so far.
type workload struct {
	run     func()
	results func() []float32
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gomlx FOLDER THREADS")
		os.Exit(2)
	}
	threads, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gomlx:", err)
		os.Exit(2)
	}
	runtime.GOMAXPROCS(threads)
	// What GoMLX prints must not meet the answers.
	out := os.Stdout
	os.Stdout = os.Stderr
	fmt.Fprintln(out, "ready gomlx", version())
	serve(simplego.GetBackend(), out)
}

// version returns that of GoMLX.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/gomlx/gomlx" {
				return d.Version
			}
		}
	}
	return "of unknown version"
}

func serve(b backends.Backend, out io.Writer) {
	var open *workload
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		request := strings.Fields(in.Text())
		switch request[0] {
		case "open":
			fmt.Fprintln(out, answer(func() (string, error) {
				var err error
				open, err = opened(b, request[1:])
				if open == nil && err == nil {
					return "none", nil
				}
				return "ok", err
			}))
		case "turn":
			fmt.Fprintln(out, answer(func() (string, error) { return turn(open, request[1]) }))
		case "peak":
			fmt.Fprintln(out, "none")
		default:
			open = nil
			runtime.GC()
			fmt.Fprintln(out, "ok")
		}
	}
}

// answer makes a line of an error or a panic, with which GoMLX reports mistakes.
func answer(f func() (string, error)) (line string) {
	defer func() {
		if r := recover(); r != nil {
			line = oneLine(fmt.Sprint("error ", r))
		}
	}()
	line, err := f()
	if err != nil {
		return oneLine("error " + err.Error())
	}
	return line
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return s[:min(len(s), 500)]
}

// opened makes a workload, runs it and writes its results: name, runs, file.
func opened(b backends.Backend, args []string) (*workload, error) {
	f := makers[args[0]]
	if f == nil {
		return nil, nil
	}
	runs, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	w := f(b)
	for range runs {
		w.run()
	}
	var out bytes.Buffer
	if err := binary.Write(&out, binary.LittleEndian, w.results()); err != nil {
		return nil, err
	}
	return w, os.WriteFile(args[2], out.Bytes(), 0o600)
}

func turn(w *workload, milliseconds string) (string, error) {
	d, err := strconv.Atoi(milliseconds)
	if err != nil {
		return "", err
	}
	var times []int64
	for end := time.Now().Add(time.Duration(d) * time.Millisecond); len(times) == 0 || time.Now().Before(end); {
		begin := time.Now()
		w.run()
		times = append(times, time.Since(begin).Nanoseconds())
	}
	slices.Sort(times)
	return fmt.Sprintf("ok %d %d %d", len(times), times[len(times)/2], times[0]), nil
}
