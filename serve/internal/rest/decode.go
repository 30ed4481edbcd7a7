package rest

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/jsonread"
)

// maxDepth bounds the nesting of a request's JSON.
const maxDepth = 100

// inferCall is a decoded request for inference and what its answer should look like.
type inferCall struct {
	inference.Request
	// binaryOutputs says that outputs come as bytes unless they ask for JSON.
	binaryOutputs bool
	// raw says that the answer is all bytes, as the request was.
	raw bool
}

// binaryOutput reports whether output i of the answer is to come as bytes.
func (c *inferCall) binaryOutput(i int) bool {
	if i < len(c.Outputs) {
		if b, ok := c.Outputs[i].Parameters["binary_data"].(bool); ok {
			return b
		}
	}
	return c.binaryOutputs
}

func badf(format string, args ...any) error {
	return inference.Errorf(inference.InvalidArgument, format, args...)
}

// decodeInfer reads a request: JSON, and the bytes that follow it for inputs that have
// them. The tensors share memory with both.
func decodeInfer(text, tail []byte, nonFinite bool) (*inferCall, error) {
	d := decoder{r: jsonread.New(text, maxDepth), tail: tail, call: &inferCall{}, nonFinite: nonFinite}
	if nonFinite {
		d.r.AllowNonFinite()
	}
	err := d.r.Object(d.member)
	if err == nil {
		err = d.r.End()
	}
	if err != nil {
		if _, syntax := err.(*jsonread.SyntaxError); syntax {
			return nil, badf("failed to parse the request: %w", err)
		}
		return nil, err
	}
	if len(d.call.Inputs) == 0 {
		return nil, badf("the request has no inputs")
	}
	if len(d.tail) > 0 {
		return nil, badf("%d bytes follow the JSON that no input's binary_data_size accounts for", len(d.tail))
	}
	if b, ok := d.call.Parameters["binary_data_output"]; ok {
		if d.call.binaryOutputs, ok = b.(bool); !ok {
			return nil, badf("parameter binary_data_output: expected true or false, got %v", b)
		}
	}
	return d.call, nil
}

type decoder struct {
	r         *jsonread.Reader
	tail      []byte // what no input has taken yet
	call      *inferCall
	nonFinite bool
}

func (d *decoder) member(key string) (err error) {
	switch key {
	case "id":
		d.call.ID, err = d.r.String()
	case "parameters":
		d.call.Parameters, err = parameters(d.r)
	case "inputs":
		d.call.Inputs = make([]inference.Tensor, 0, 4)
		err = d.r.Array(d.input)
	case "outputs":
		d.call.Outputs = make([]inference.RequestedOutput, 0, 4)
		err = d.r.Array(d.output)
	default:
		_, err = d.r.Skip()
	}
	return err
}

func (d *decoder) output() error {
	var o inference.RequestedOutput
	err := d.r.Object(func(key string) (err error) {
		switch key {
		case "name":
			o.Name, err = d.r.String()
		case "parameters":
			o.Parameters, err = parameters(d.r)
		default:
			_, err = d.r.Skip()
		}
		return err
	})
	if err == nil && o.Name == "" {
		err = badf("output %d of the request has no name", len(d.call.Outputs))
	}
	if b, ok := o.Parameters["binary_data"]; ok && err == nil {
		if _, ok := b.(bool); !ok {
			err = badf("output %q, parameter binary_data: expected true or false, got %v", o.Name, b)
		}
	}
	d.call.Outputs = append(d.call.Outputs, o)
	return err
}

func (d *decoder) input() error {
	var t inference.Tensor
	var data []byte
	hasShape := false
	err := d.r.Object(func(key string) (err error) {
		switch key {
		case "name":
			t.Name, err = d.r.String()
		case "datatype":
			var name string
			name, err = d.r.String()
			t.Datatype = inference.Datatype(name)
		case "shape":
			hasShape = true
			t.Shape, err = shape(d.r)
		case "parameters":
			t.Parameters, err = parameters(d.r)
		case "data":
			data, err = d.r.Skip()
		default:
			_, err = d.r.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case t.Name == "":
		return badf("input %d has no name", len(d.call.Inputs))
	case !t.Datatype.Valid():
		return badf("input %q: expected a datatype such as FP32 or INT64, got %q", t.Name, string(t.Datatype))
	case !hasShape:
		return badf("input %q has no shape", t.Name)
	}
	if err := d.fill(&t, data); err != nil {
		return err
	}
	d.call.Inputs = append(d.call.Inputs, t)
	return nil
}

// fill sets the data of an input, from the bytes behind the JSON or from an array.
func (d *decoder) fill(t *inference.Tensor, data []byte) error {
	n, ok := inference.NumElements(t.Shape)
	if !ok {
		return badf("input %q: the shape %v has no number of elements", t.Name, t.Shape)
	}
	if size, binary := t.Parameters["binary_data_size"]; binary {
		bytes, ok := size.(int64)
		switch {
		case !ok || bytes < 0:
			return badf("input %q, parameter binary_data_size: expected a number of bytes, got %v", t.Name, size)
		case data != nil:
			return badf("input %q has both data and binary_data_size", t.Name)
		case bytes > int64(len(d.tail)):
			return badf("input %q: binary_data_size is %d, but only %d bytes are left of the body", t.Name, bytes, len(d.tail))
		}
		t.Data, d.tail = d.tail[:bytes:bytes], d.tail[bytes:]
		delete(t.Parameters, "binary_data_size")
		return checkSize(t, n)
	}
	if data == nil {
		return badf("input %q has no data", t.Name)
	}
	var err error
	t.Data, err = elements(t, data, n, d.nonFinite)
	return err
}

// checkSize compares a tensor's bytes with its n elements.
func checkSize(t *inference.Tensor, n int64) error {
	if size := int64(t.Datatype.Size()); size > 0 {
		// Divided, since the product may not fit.
		if got := int64(len(t.Data)); got%size != 0 || got/size != n {
			return badf("input %q: expected %d elements of %d bytes for %s%v, got %d bytes", t.Name, n, size, t.Datatype, t.Shape, got)
		}
		return nil
	}
	count := int64(0)
	for rest := t.Data; len(rest) > 0; count++ {
		if len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.LittleEndian.Uint32(rest)) {
			return badf("input %q: element %d of BYTES is longer than what is left", t.Name, count)
		}
		rest = rest[4+binary.LittleEndian.Uint32(rest):]
	}
	if count != n {
		return badf("input %q: expected %d elements for BYTES%v, got %d", t.Name, n, t.Shape, count)
	}
	return nil
}

func shape(r *jsonread.Reader) ([]int64, error) {
	dims := make([]int64, 0, 4)
	err := r.Array(func() error {
		text, err := r.Number()
		if err != nil {
			return err
		}
		d, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || d < 0 {
			return badf("a shape has the size %s, which is no number from 0 on", text)
		}
		dims = append(dims, d)
		return nil
	})
	return dims, err
}

// parameters reads an object of strings, numbers and booleans.
func parameters(r *jsonread.Reader) (inference.Parameters, error) {
	p := inference.Parameters{}
	err := r.Object(func(key string) (err error) {
		switch r.Peek() {
		case '"':
			p[key], err = r.String()
		case 't', 'f':
			p[key], err = r.Bool()
		case '{', '[', 'n':
			return badf("parameter %q: expected a string, a number or a boolean", key)
		default:
			var text []byte
			if text, err = r.Number(); err == nil {
				p[key], err = number(text)
			}
		}
		return err
	})
	return p, err
}

// number returns a number as int64, uint64 if that does not hold it, or float64 if it
// has a fraction or an exponent.
func number(text []byte) (any, error) {
	s := string(text)
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, badf("the number %s is too large", s)
	}
	return f, nil
}
