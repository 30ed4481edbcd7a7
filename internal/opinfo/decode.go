package opinfo

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// formatVersion is the version that scripts/opinfo writes.
const formatVersion = 1

// The JSON form of a file. Objects whose order matters stay raw.
type (
	fileJSON struct {
		Format int
		Op     string
		Cases  []caseJSON
	}
	caseJSON struct {
		DType      DType
		Inputs     json.RawMessage
		Attrs      json.RawMessage
		Outputs    []Tensor
		Mutated    json.RawMessage
		Cotangents []*Tensor
		Grads      []gradJSON
		ATol       float64
	}
	gradJSON struct {
		Input string
		Index int
		Grad  Tensor
	}
)

// decode reads one compressed file and checks everything that the types don't.
func decode(r io.Reader, op string) ([]Case, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	var file fileJSON
	if err := json.NewDecoder(z).Decode(&file); err != nil {
		return nil, err
	}
	if file.Format != formatVersion || file.Op != op {
		return nil, fmt.Errorf("format %d of op %q, want format %d of %q", file.Format, file.Op, formatVersion, op)
	}
	cases := make([]Case, len(file.Cases))
	for i, c := range file.Cases {
		if cases[i], err = c.decode(op); err != nil {
			return nil, fmt.Errorf("case %d: %w", i, err)
		}
	}
	return cases, nil
}

func (c caseJSON) decode(op string) (Case, error) {
	out := Case{Op: op, DType: c.DType, Outputs: c.Outputs, Cotangents: c.Cotangents, ATol: c.ATol}
	var err error
	if out.Inputs, err = decodeArgs(c.Inputs); err != nil {
		return out, fmt.Errorf("inputs: %w", err)
	}
	if out.Mutated, err = decodeArgs(c.Mutated); err != nil {
		return out, fmt.Errorf("mutated: %w", err)
	}
	err = eachMember(c.Attrs, func(name string, raw json.RawMessage) error {
		value, err := decodeAttr(raw)
		out.Attrs = append(out.Attrs, Attr{name, value})
		return err
	})
	if err != nil {
		return out, fmt.Errorf("attributes: %w", err)
	}
	for _, g := range c.Grads {
		out.Grads = append(out.Grads, Grad{g.Input, g.Index, g.Grad})
	}
	return out, out.validate()
}

// validate checks that the parts of a case fit together.
func (c *Case) validate() error {
	for _, t := range c.Outputs {
		if err := t.validate(); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	if len(c.Grads) > 0 && len(c.Cotangents) != len(c.Outputs) {
		return fmt.Errorf("%d cotangents for %d outputs", len(c.Cotangents), len(c.Outputs))
	}
	for _, t := range c.Cotangents {
		if t == nil {
			continue
		}
		if err := t.validate(); err != nil {
			return fmt.Errorf("cotangent: %w", err)
		}
	}
	for _, g := range c.Grads {
		if c.Input(g.Input) == nil {
			return fmt.Errorf("gradient of %q, which is no input", g.Input)
		}
		if err := g.Tensor.validate(); err != nil {
			return fmt.Errorf("gradient of %q: %w", g.Input, err)
		}
	}
	return nil
}

// decodeArgs reads {name: tensor | [tensor or null, …] | {"scalar": number}, …} in order.
func decodeArgs(raw json.RawMessage) ([]Arg, error) {
	var args []Arg
	err := eachMember(raw, func(name string, value json.RawMessage) error {
		arg, err := decodeArg(value)
		arg.Name = name
		args = append(args, arg)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return args, err
}

func decodeArg(raw json.RawMessage) (Arg, error) {
	if raw[0] == '[' {
		list := []*Tensor{}
		if err := json.Unmarshal(raw, &list); err != nil {
			return Arg{}, err
		}
		for _, t := range list {
			if t == nil {
				continue
			}
			if err := t.validate(); err != nil {
				return Arg{}, err
			}
		}
		return Arg{List: list}, nil
	}
	var either struct {
		Tensor
		Scalar json.RawMessage
	}
	if err := json.Unmarshal(raw, &either); err != nil {
		return Arg{}, err
	}
	if either.Scalar != nil {
		n, err := decodeNumber(either.Scalar)
		return Arg{Scalar: n}, err
	}
	return Arg{Tensor: &either.Tensor}, either.Tensor.validate()
}

// decodeAttr reads a number, string, {"dtype": name} or a list of numbers.
func decodeAttr(raw json.RawMessage) (any, error) {
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '[':
		return decodeNumbers(raw)
	case '{':
		var named struct{ DType DType }
		if err := json.Unmarshal(raw, &named); err != nil {
			return nil, err
		}
		if named.DType != "" {
			if named.DType.Size() == 0 {
				return nil, fmt.Errorf("unknown dtype %q", string(named.DType))
			}
			return named.DType, nil
		}
	}
	return decodeNumber(raw)
}

// decodeNumbers returns []int64, or []float64 when any of the numbers is a float.
func decodeNumbers(raw json.RawMessage) (any, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	ints, floats := make([]int64, 0, len(list)), make([]float64, 0, len(list))
	for _, item := range list {
		n, err := decodeNumber(item)
		if err != nil {
			return nil, err
		}
		switch n := n.(type) {
		case int64:
			ints, floats = append(ints, n), append(floats, float64(n))
		case float64:
			floats = append(floats, n)
		default:
			return nil, fmt.Errorf("%s in a list of numbers", item)
		}
	}
	if len(ints) == len(floats) {
		return ints, nil
	}
	return floats, nil
}

// decodeNumber keeps Python's kinds apart: true is a bool, 2 an int64, 2.0 a float64, {"float": "inf"} what JSON lacks.
func decodeNumber(raw json.RawMessage) (any, error) {
	switch {
	case raw[0] == 't' || raw[0] == 'f':
		return raw[0] == 't', nil
	case raw[0] == '{':
		var named struct{ Float string }
		if err := json.Unmarshal(raw, &named); err != nil {
			return nil, err
		}
		return strconv.ParseFloat(named.Float, 64)
	case bytes.ContainsAny(raw, ".eE"):
		return strconv.ParseFloat(string(raw), 64)
	}
	return strconv.ParseInt(string(raw), 10, 64)
}

// eachMember calls f for the members of a JSON object in the order of the text. An absent object has none.
func eachMember(raw json.RawMessage, f func(name string, value json.RawMessage) error) error {
	if raw == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("want an object, got %.20s", raw)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := f(name.(string), value); err != nil {
			return err
		}
	}
	return nil
}
