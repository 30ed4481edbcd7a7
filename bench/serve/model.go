package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/client"
)

// model is a package with the inputs of a request and the output that is the right answer to them.
type model struct {
	name, file string // the file is the package's path
	inputs     []client.Tensor
	want       []float32
}

// openModel reads NAME.safetensors beside NAME.pt2.
func openModel(dir, name string) (_ *model, err error) {
	if dir == "" {
		return nil, errors.New("--models names the folder of models that peers/models.py makes")
	}
	m := &model{name: name}
	if m.file, err = filepath.Abs(filepath.Join(dir, name+".pt2")); err != nil {
		return nil, err
	}
	f, err := safetensors.Open(filepath.Join(dir, name+".safetensors"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for i := 0; ; i++ {
		t, ok, err := read(f, fmt.Sprintf("in%d", i))
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		t.Name = fmt.Sprintf("INPUT__%d", i)
		m.inputs = append(m.inputs, t)
	}
	out, ok, err := read(f, "out0")
	if err != nil || !ok || len(m.inputs) == 0 {
		return nil, fmt.Errorf("%s.safetensors lacks in0 or out0: %w", name, err)
	}
	m.want, err = client.Slice[float32](&out)
	return m, err
}

// bytes is the size of the inputs.
func (m *model) bytes() (n int) {
	for i := range m.inputs {
		n += len(m.inputs[i].Data)
	}
	return n
}

// check compares an output with the right one.
func (m *model) check(t *client.Tensor) error {
	got, err := client.Slice[float32](t)
	if err != nil {
		return err
	}
	if len(got) != len(m.want) {
		return fmt.Errorf("the answer has %d elements, not %d", len(got), len(m.want))
	}
	most := float32(0)
	for _, w := range m.want {
		most = max(most, w, -w)
	}
	for i, g := range got {
		if d := math.Abs(float64(g - m.want[i])); !(d <= 1e-3*float64(most)) {
			return fmt.Errorf("element %d of the answer is %v, not %v", i, g, m.want[i])
		}
	}
	return nil
}

// datatypes are the protocol's names of a file's types; models of the benchmark have no others.
var datatypes = map[safetensors.DType]string{safetensors.F32: "FP32", safetensors.I64: "INT64"}

// read returns a tensor of a file, if it has one of the name.
func read(f *safetensors.File, name string) (t client.Tensor, ok bool, err error) {
	info, ok := f.Lookup(name)
	if !ok {
		return t, false, nil
	}
	t = client.Tensor{Name: name, Datatype: datatypes[info.DType], Shape: info.Shape}
	if t.Datatype == "" {
		return t, false, fmt.Errorf("%s is %s", name, info.DType)
	}
	t.Data, err = f.Bytes(name)
	return t, err == nil, err
}

// numpyType is numpy's name of a datatype.
var numpyType = map[string]string{"FP32": "float32", "INT64": "int64"}

// shapes is the inputs' types and dimensions behind the first, as JSON.
func (m *model) shapes() string {
	var all [][]any
	for i := range m.inputs {
		all = append(all, []any{numpyType[m.inputs[i].Datatype], m.inputs[i].Shape[1:]})
	}
	text, _ := json.Marshal(all) // strings and numbers
	return string(text)
}
