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

	"github.com/loris-ml/loris/internal/safetensors"
)

var (
	//go:embed peer/runner.cpp
	peerCPP []byte
	//go:embed peer/loader.py
	peerPy []byte
)

// torch is an installed PyTorch and the two programs that run packages in it.
type torch struct {
	version string
	folder  string   // temporary files
	cpp, py []string // command lines, to which the arguments are added
}

// findTorch asks Python for its PyTorch and builds the C++ peer with it.
func findTorch(ctx context.Context, python, folder string) (*torch, error) {
	script, source, binary := filepath.Join(folder, "peer.py"), filepath.Join(folder, "peer.cpp"), filepath.Join(folder, "peer")
	if err := os.WriteFile(script, peerPy, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(source, peerCPP, 0o600); err != nil {
		return nil, err
	}
	out, err := command(ctx, python, script)
	if err != nil {
		return nil, fmt.Errorf("ask %s for torch: %w", python, err)
	}
	t := &torch{folder: folder, cpp: []string{binary}, py: []string{python, script}}
	args := []string{"-std=c++20", "-O2", source, "-o", binary}
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
	if _, err := command(ctx, "g++", append(args, "-ltorch", "-ltorch_cpu", "-lc10")...); err != nil {
		return nil, fmt.Errorf("build PyTorch's C++ runner: %w", err)
	}
	return t, nil
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

// input is one tensor that packages are run with.
type input struct {
	info safetensors.Info
	data []byte
}

// readInputs reads in0, in1, … of a file.
func readInputs(path string) ([]input, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in []input
	for {
		info, ok := f.Lookup("in" + strconv.Itoa(len(in)))
		if !ok {
			break
		}
		data, err := f.Bytes(info.Name)
		if err != nil {
			return nil, err
		}
		in = append(in, input{info, data})
	}
	return in, nil
}

// manifest writes the inputs as the peers read them and returns the list's path.
func (t *torch) manifest(inputs []input) (string, error) {
	var list strings.Builder
	for i, in := range inputs {
		path := filepath.Join(t.folder, "in"+strconv.Itoa(i))
		if err := os.WriteFile(path, in.data, 0o600); err != nil {
			return "", err
		}
		dims := make([]string, len(in.info.Shape))
		for k, d := range in.info.Shape {
			dims[k] = strconv.Itoa(int(d))
		}
		dtype := strings.ToLower(string(in.info.DType))
		fmt.Fprintf(&list, "%s\t%s\t%s\n", dtype, strings.Join(dims, ","), path)
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
}

func (t *torch) start(ctx context.Context, line []string, path string, threads int, inputs []input) (*peer, error) {
	list, err := t.manifest(inputs)
	if err != nil {
		return nil, err
	}
	args := append(line[1:len(line):len(line)], path, strconv.Itoa(threads), list)
	p := &peer{cmd: exec.CommandContext(ctx, line[0], args...)}
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
	if _, err := fmt.Fprintf(p.in, "run %d\n", d.Milliseconds()); err != nil {
		return 0, err
	}
	if !p.out.Scan() {
		return 0, fmt.Errorf("the peer ended: %s", p.stderr.Bytes())
	}
	var count, median, least int64
	_, err := fmt.Sscan(p.out.Text(), &count, &median, &least)
	return median, err
}

// stop ends the process; what it says then does not matter.
func (p *peer) stop() {
	p.in.Close()
	_ = p.cmd.Wait()
}
