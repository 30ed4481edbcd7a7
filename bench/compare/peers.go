package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
)

//go:embed peer/*.py
var scripts embed.FS

// peer is a system to compare with.
type peer struct {
	name   string
	module string // of Python; "" for a program of its own
	system string // what peer/main.py calls it
	gpu    bool   // it computes on GPUs, too

	line    []string // the command line, to which the number of threads is added; nil if it is not installed
	missing string   // why
	version string   // once it was started
}

// peers lists all that this command knows, in the order of reports.
func peers() []*peer {
	return []*peer{
		{name: "eager", gpu: true, module: "torch", system: "torch-eager"},
		{name: "compile", gpu: true, module: "torch", system: "torch-compile"},
		{name: "aoti", gpu: true, module: "torch", system: "torch-aoti"},
		{name: "lazy", module: "torch", system: "torch-lazy"},
		{name: "jax", gpu: true, module: "jax", system: "jax"},
		{name: "mlx", module: "mlx", system: "mlx"},
		{name: "gomlx"},
	}
}

func names() (list []string) {
	for _, p := range peers() {
		list = append(list, p.name)
	}
	return list
}

// find returns the peers that were asked for, and prepares those that are
// installed: the folder gets the scripts, GoMLX's program and the digits.
func find(ctx context.Context, s settings, folder string) ([]*peer, error) {
	if err := writeScripts(folder); err != nil {
		return nil, err
	}
	if err := writeDigits(folder); err != nil {
		return nil, err
	}
	pythons := map[string]string{} // by module
	for _, python := range s.pythons {
		for _, module := range modulesOf(ctx, python) {
			if pythons[module] == "" {
				pythons[module] = python
			}
		}
	}
	var list []*peer
	for _, p := range peers() {
		if !slices.Contains(s.peers, p.name) {
			continue
		}
		list = append(list, p)
		if s.device != loris.CPU && !p.gpu {
			p.missing = "not for " + s.device.String()
			continue
		}
		if p.module == "" {
			p.line, p.missing = buildGoMLX(ctx, s.gomlx, folder)
			continue
		}
		if python := pythons[p.module]; python != "" {
			p.line = []string{python, filepath.Join(folder, "main.py"), p.system}
		} else {
			p.missing = fmt.Sprintf("%s has no %s", strings.Join(s.pythons, " and "), p.module)
		}
	}
	return list, nil
}

func writeScripts(folder string) error {
	files, err := scripts.ReadDir("peer")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := scripts.ReadFile("peer/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, f.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeDigits leaves the images and labels where the peers look for them.
func writeDigits(folder string) error {
	pixels, labels, err := workloads.Digits()
	if err != nil {
		return err
	}
	for name, data := range map[string]any{"digits.pixels": pixels, "digits.labels": labels} {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, data); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// modulesOf returns which of the peers' modules a Python has; none if it is no
// Python.
func modulesOf(ctx context.Context, python string) []string {
	const ask = "import importlib.util as u; print(*(m for m in ('torch', 'jax', 'mlx') if u.find_spec(m) and u.find_spec('numpy')))"
	out, err := exec.CommandContext(ctx, python, "-c", ask).Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

// buildGoMLX builds the peer of bench/peers/gomlx from modules that were
// downloaded before.
func buildGoMLX(ctx context.Context, module, folder string) (line []string, missing string) {
	if _, err := os.Stat(filepath.Join(module, "go.mod")); err != nil {
		return nil, err.Error()
	}
	binary := filepath.Join(folder, "gomlx")
	cmd := exec.CommandContext(ctx, "go", "build", "-C", module, "-o", binary, ".")
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(string(out), "\n")
		return nil, fmt.Sprintf("it does not build (GOWORK=off go mod download -C %s): %s", module, first)
	}
	return []string{binary, folder}, ""
}
