package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/commandtest"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
	"github.com/loris-ml/loris/internal/ir"
)

func f32s(name string, dims []int, v ...float32) tensors.Tensor {
	t := tensors.Tensor{Name: name, Shape: ir.MakeShape(ir.F32, dims...)}
	for _, x := range v {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(x))
	}
	return t
}

func inputsFile(t *testing.T, ts ...tensors.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.safetensors")
	if err := tensors.WriteFile(path, ts, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunPrints(t *testing.T) {
	x := f32s("x", []int{2, 3}, 1, 2, 3, 4, 5, 6)
	scale := f32s("scale", []int{3}, 1, 0.5, -2)
	byPosition := func(t tensors.Tensor, name string) tensors.Tensor {
		t.Name = name
		return t
	}
	prog := commandtest.Write(t, "affine.lir", commandtest.Affine)
	want := "out0: f32[2,3]\n[[  1.    1.   -6. ]\n [  4.    2.5 -12. ]]\nout1: bool[2]\n[False False]\n"
	for name, in := range map[string][]tensors.Tensor{
		"by name":     {x, scale},
		"by position": {byPosition(x, "in0"), byPosition(scale, "in1")},
		"mixed":       {byPosition(scale, "in1"), x},
	} {
		if got := succeed(t, "run", prog, "--in", inputsFile(t, in...), "--device", "ref"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestRunWrites(t *testing.T) {
	prog := commandtest.Write(t, "affine.lir", commandtest.Affine)
	out := filepath.Join(t.TempDir(), "b.safetensors")
	in := inputsFile(t, f32s("x", []int{2, 3}, 1, 2, 3, 4, 5, 6), f32s("scale", []int{3}, 1, 2, 3))
	if text := succeed(t, "run", prog, "--in", in, "--out", out, "--device", "ref"); text != "" {
		t.Errorf("printed %q", text)
	}
	got, _, err := tensors.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if want := f32s("out0", []int{2, 3}, 1, 4, 9, 4, 10, 18); !bytes.Equal(got["out0"].Data, want.Data) || got["out0"].Shape != want.Shape {
		t.Errorf("out0 is %v%v, want %v", got["out0"].Shape, got["out0"], want)
	}
	if o := got["out1"]; o.Shape != ir.MakeShape(ir.Bool, 2) || !bytes.Equal(o.Data, []byte{1, 1}) {
		t.Errorf("out1 is %v%v", o.Shape, o)
	}
	if len(got) != 2 {
		t.Errorf("%d outputs", len(got))
	}
}

func TestRunRandomInputs(t *testing.T) {
	prog := commandtest.Write(t, "affine.lir", commandtest.Affine)
	in := inputsFile(t, f32s("scale", []int{3}, 0, 0, 0))
	got := succeed(t, "run", prog, "--in", in, "--random-inputs", "--device", "ref")
	if !strings.Contains(got, "out1: bool[2]\n[False False]") {
		t.Errorf("the given input was not used:\n%s", got)
	}
	one := succeed(t, "run", prog, "--random-inputs", "--seed", "1", "--device", "ref")
	again := succeed(t, "run", prog, "--random-inputs", "--seed", "1", "--device", "ref")
	other := succeed(t, "run", prog, "--random-inputs", "--seed", "2", "--device", "ref")
	if one != again || one == other {
		t.Errorf("seeds 1, 1 and 2 give\n%s\n%s\n%s", one, again, other)
	}
}

// TestRunEveryDType passes random tensors of each dtype through and prints them.
func TestRunEveryDType(t *testing.T) {
	for _, d := range ir.DTypes() {
		prog := commandtest.Write(t, "copy.lir", `program @copy { %x = parameter "x" : `+d.String()+`[2,5] return %x }`)
		got := succeed(t, "run", prog, "--random-inputs", "--device", "ref")
		if !strings.HasPrefix(got, "out0: "+d.String()+"[2,5]\n[[") {
			t.Errorf("%v: %q", d, got)
		}
		if d == ir.C128 {
			continue // the file format lacks it
		}
		out := filepath.Join(t.TempDir(), "out.safetensors")
		succeed(t, "run", prog, "--random-inputs", "--device", "ref", "--out", out)
		file, _, err := tensors.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if text := "out0: " + d.String() + "[2,5]\n" + file["out0"].String() + "\n"; text != got {
			t.Errorf("%v: written %s, printed %s", d, text, got)
		}
	}
}

func TestRunErrors(t *testing.T) {
	x := f32s("x", []int{2, 3}, 1, 2, 3, 4, 5, 6)
	scale := f32s("scale", []int{3}, 1, 1, 1)
	wrong := f32s("scale", []int{4}, 1, 1, 1, 1)
	ints := tensors.Tensor{Name: "scale", Shape: ir.MakeShape(ir.I32, 3), Data: make([]byte, 12)}
	extra := f32s("bias", nil, 1)
	index := commandtest.Write(t, "index.lir", `program @pick {
  %x = parameter "x" : f32[2,3]
  %i = parameter "i" : i64[1]
  return index_select(%x, 0, %i)
}`)
	prog := commandtest.Write(t, "affine.lir", commandtest.Affine)
	complexOut := commandtest.Write(t, "complex.lir", `program @c { %x = parameter "x" : c128[1] return %x }`)
	tooFar := tensors.Tensor{Name: "i", Shape: ir.MakeShape(ir.I64, 1), Data: []byte{7, 0, 0, 0, 0, 0, 0, 0}}
	for _, c := range []struct {
		name string
		args []string
		want string // part of the error
	}{
		{"no file", []string{prog + ".lir", "--device", "ref"}, ": no such file or directory"},
		{"no inputs", []string{prog, "--device", "ref"}, `missing input "x" (f32[2,3]), "scale" (f32[3]): give --in or --random-inputs`},
		{"missing", []string{prog, "--device", "ref", "--in", inputsFile(t, x)}, `missing input "scale" (f32[3]): not in `},
		{"shape", []string{prog, "--device", "ref", "--in", inputsFile(t, x, wrong)}, `input "scale": expected f32[3], given f32[4]`},
		{"dtype", []string{prog, "--device", "ref", "--in", inputsFile(t, x, ints)}, `input "scale": expected f32[3], given i32[3]`},
		{"unexpected", []string{prog, "--device", "ref", "--in", inputsFile(t, x, scale, extra)}, `unexpected input "bias": the program takes "x", "scale"`},
		{"no such file", []string{prog, "--device", "ref", "--in", "nowhere.safetensors"}, "nowhere.safetensors: no such file"},
		{"malformed file", []string{prog, "--device", "ref", "--in", commandtest.Write(t, "bad.safetensors", "\x08\x00\x00\x00\x00\x00\x00\x00{\"x\":1}}")}, "malformed file at byte "},
		{"short file", []string{prog, "--device", "ref", "--in", commandtest.Write(t, "short.safetensors", "abc")}, "short.safetensors: safetensors: malformed file at byte 0: 3 bytes are too few"},
		{"no backend", []string{prog, "--device", "cuda:7"}, `cuda:7: `},
		{"no device", []string{prog, "--device", "abacus"}, `device error: "abacus": the device types are `},
		{"no such ordinal", []string{prog, "--device", "ref:7"}, "device error: ref:7"},
		{"run time", []string{index, "--device", "ref", "--in", inputsFile(t, x, tooFar)}, "index error"},
		{"dtype of output", []string{complexOut, "--device", "ref", "--random-inputs", "--out", filepath.Join(t.TempDir(), "o")}, `tensor "out0": dtype error: files have no c128`},
		{"output folder", []string{prog, "--device", "ref", "--random-inputs", "--out", filepath.Join(t.TempDir(), "no", "o")}, "no such file or directory"},
	} {
		code, out, errOut := invoke(t, "", append([]string{"run"}, c.args...)...)
		if code != command.ExitError || out != "" || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit code %d, output %q, error %q, want %q", c.name, code, out, errOut, c.want)
		}
		if strings.Count(errOut, "\n") != 1 || !strings.HasPrefix(errOut, "loris: ") {
			t.Errorf("%s: the error is not one line: %q", c.name, errOut)
		}
	}
}

func TestMalformedPrograms(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `1:1: expected "program", found the end of the text`},
		{"program @p {\n  %0 = fly()\n  return %0\n}", `2:8: there is no op "fly"`},
		{"program @p {\n  %x = parameter \"x\" : f32[2,3]\n  return relu(%y)\n}", "3:15: %y is not defined above"},
		{"program @p {\n  %x = parameter \"x\" : f99[2]\n  return %x\n}", `2:24: no dtype is named "f99"`},
		{"program @p {\n  %x = parameter \"x\" : f32[2,3]\n  %0 = relu(%x) : f32[3,2]\n  return %0\n}", "3:19: result 0 of relu is f32[2,3], not f32[3,2]"},
		{"program @p {\n  %x = parameter \"x\" : f32[2,3]\n  return matmul(%x, %x)\n}", "3:10: matmul(f32[2,3], f32[2,3]): shape error"},
	} {
		path := commandtest.Write(t, "bad.lir", c.text)
		for _, name := range []string{"run", "dump"} {
			code, out, errOut := invoke(t, "", name, path, "--device", "ref")
			if code != command.ExitError || out != "" || !strings.HasPrefix(errOut, path+":"+c.want) || strings.Count(errOut, "\n") != 1 {
				t.Errorf("%s %q: exit code %d, output %q, error %q, want %q", name, c.text, code, out, errOut, c.want)
			}
			code, _, errOut = invoke(t, c.text, name, "-", "--device", "ref")
			if code != command.ExitError || !strings.HasPrefix(errOut, "<stdin>:"+c.want) {
				t.Errorf("%s -: %q: exit code %d, error %q, want %q", name, c.text, code, errOut, c.want)
			}
		}
	}
}
