package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loris-ml/loris/internal/ir"
)

var (
	//go:embed peer/runner.cpp
	peerCPP []byte
	//go:embed peer/loader.py
	peerPy []byte
	//go:embed peer/inductor.py
	peerInductor []byte
)

// torch is an installed PyTorch and the two programs that run packages in it.
type torch struct {
	version string
	folder  string // temporary files
	device  ir.Device
	cpp, py []string // command lines, to which the arguments are added
	missing string   // why there is no cpp
}

// findTorch asks Python for its PyTorch and builds the C++ peer with it. On a GPU it
// may be missing.
func findTorch(ctx context.Context, python, folder string, device ir.Device) (*torch, error) {
	script, source := filepath.Join(folder, "peer.py"), filepath.Join(folder, "peer.cpp")
	if err := os.WriteFile(script, peerPy, 0o600); err != nil {
		return nil, err
	}
	if err := writeSource(source); err != nil {
		return nil, err
	}
	out, err := command(ctx, python, script, device.String())
	if err != nil {
		return nil, fmt.Errorf("ask %s for torch: %w", python, err)
	}
	t := &torch{folder: folder, device: device, py: []string{python, script}}
	args := []string{"-std=c++20", "-O2", source}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "include":
			args = append(args, "-isystem", value)
		case "lib":
			args = append(args, "-L"+value, "-Wl,-rpath,"+value)
		case "cxx11":
			args = append(args, "-D_GLIBCXX_USE_CXX11_ABI="+value)
		case "version":
			t.version = value
		}
	}
	binary := filepath.Join(folder, "peer-"+t.version)
	t.cpp = []string{binary}
	if _, err := os.Stat(binary); err == nil && !onGPU(device) {
		return t, nil // built before, in a folder that stays
	}
	// Packages of Inductor name libtorch.so, of which this program calls nothing.
	args = append(args, "-o", binary, "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10")
	if onGPU(device) {
		// Nothing calls the first, either, whose runners register themselves.
		args = append(args, "-DWITH_CUDA", "-ltorch_cuda", "-lc10_cuda", "-Wl,--allow-shlib-undefined")
	}
	if _, err := command(ctx, "g++", args...); err != nil {
		if !onGPU(device) || ctx.Err() != nil {
			return nil, fmt.Errorf("build PyTorch's C++ runner: %w", err)
		}
		t.cpp, t.missing = nil, err.Error()
	}
	return t, nil
}

// writeSource writes the source of the C++ peer, and removes what was built of another one.
func writeSource(path string) error {
	if b, err := os.ReadFile(path); err == nil && bytes.Equal(b, peerCPP) {
		return nil
	}
	built, err := filepath.Glob(strings.TrimSuffix(path, ".cpp") + "-*")
	if err != nil {
		return err
	}
	for _, b := range built {
		if err := os.Remove(b); err != nil {
			return err
		}
	}
	return os.WriteFile(path, peerCPP, 0o600)
}

func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return string(out), nil
}

// manifest writes the inputs as the peers read them and returns the list's path.
func (t *torch) manifest(inputs []stored) (string, error) {
	var list strings.Builder
	for i, in := range inputs {
		path := filepath.Join(t.folder, "in"+strconv.Itoa(i))
		if err := os.WriteFile(path, in.data, 0o600); err != nil {
			return "", err
		}
		dims := make([]string, in.shape.Rank())
		for k := range dims {
			dims[k] = strconv.Itoa(in.shape.Dim(k))
		}
		fmt.Fprintf(&list, "%v\t%s\t%s\n", in.shape.DType(), strings.Join(dims, ","), path)
	}
	path := filepath.Join(t.folder, "inputs")
	return path, os.WriteFile(path, []byte(list.String()), 0o600)
}

// peer is a process that runs one package.
type peer struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr bytes.Buffer
	load   time.Duration
	batch  int
}

func (t *torch) start(ctx context.Context, line []string, path string, threads, batch int, inputs []stored) (*peer, error) {
	list, err := t.manifest(inputs)
	if err != nil {
		return nil, err
	}
	args := append(line[1:len(line):len(line)], path, strconv.Itoa(threads), list, t.device.String())
	p := &peer{batch: batch, cmd: exec.CommandContext(ctx, line[0], args...)}
	p.cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(threads))
	p.cmd.Stderr = &p.stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	n, err := p.answer("ready %d")
	p.load = time.Duration(n)
	return p, err
}

// answer reads a line and returns its number.
func (p *peer) answer(format string) (n int64, err error) {
	if !p.out.Scan() {
		p.stop()
		return 0, fmt.Errorf("the peer ended: %s", p.stderr.Bytes())
	}
	if _, err := fmt.Sscanf(p.out.Text(), format, &n); err != nil {
		return 0, fmt.Errorf("the peer said %q: %w", p.out.Text(), err)
	}
	return n, nil
}

// turn runs the package for a while and returns the median nanoseconds of a run.
func (p *peer) turn(_ context.Context, d time.Duration) (int64, error) {
	if _, err := fmt.Fprintf(p.in, "run %d %d\n", d.Milliseconds(), p.batch); err != nil {
		return 0, err
	}
	if !p.out.Scan() {
		return 0, fmt.Errorf("the peer ended: %s", p.stderr.Bytes())
	}
	var count, median, least int64
	_, err := fmt.Sscan(p.out.Text(), &count, &median, &least)
	return median, err
}

// results returns the elements of the outputs of the first run, which has as many
// as like.
func (p *peer) results(folder string, like []stored) ([][]byte, error) {
	path := filepath.Join(folder, "results")
	defer os.Remove(path)
	if _, err := fmt.Fprintf(p.in, "save %s\n", path); err != nil {
		return nil, err
	}
	if !p.out.Scan() {
		return nil, fmt.Errorf("the peer ended: %s", p.stderr.Bytes())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for i, one := range like {
		if len(data) < len(one.data) {
			return nil, fmt.Errorf("out%d is too short", i)
		}
		all = append(all, data[:len(one.data)])
		data = data[len(one.data):]
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%d bytes more than of %d outputs", len(data), len(like))
	}
	return all, nil
}

// stop ends the process; what it says then does not matter.
func (p *peer) stop() {
	p.in.Close()
	_ = p.cmd.Wait()
}
