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
	// binaryOutputs says that outputs come as bytes unless they ask for JSON, and
	// asked, by requested output, what they ask for: 1 for bytes, -1 for JSON, 0 if
	// they say nothing.
	binaryOutputs bool
	asked         []int8
	// raw says that the answer is all bytes, as the request was.
	raw bool

	// What most requests have room in.
	room struct {
		inputs  [4]inference.Tensor
		outputs [4]inference.RequestedOutput
		asked   [4]int8
		dims    [16]int64
	}
}

// binaryOutput reports whether output i of the answer is to come as bytes.
func (c *inferCall) binaryOutput(i int) bool {
	if i < len(c.asked) && c.asked[i] != 0 {
		return c.asked[i] > 0
	}
	return c.binaryOutputs
}

// words are the strings that requests are made of.
var words = func() map[string]string {
	all := map[string]string{}
	for _, w := range []string{
		"id", "parameters", "inputs", "outputs", "name", "datatype", "shape", "data", "binary_data_size", "binary_data", "binary_data_output",
		"BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "BYTES",
	} {
		all[w] = w
	}
	return all
}()

func badf(format string, args ...any) error {
	return inference.Errorf(inference.InvalidArgument, format, args...)
}

// decodeInfer reads a request: JSON, and the bytes that follow it for inputs that have
// them. The tensors share memory with both.
func decodeInfer(text, tail []byte, nonFinite bool) (*inferCall, error) {
	d := decoder{r: jsonread.New(text, maxDepth), tail: tail, call: &inferCall{}, nonFinite: nonFinite}
	d.dims = d.call.room.dims[:0]
	d.r.Intern(words)
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
	dims      []int64 // of the inputs that were read
	nonFinite bool
}

func (d *decoder) member(key string) (err error) {
	switch key {
	case "id":
		d.call.ID, err = d.r.String()
	case "parameters":
		d.call.Parameters, err = parameters(d.r, "", nil)
	case "inputs":
		d.call.Inputs = d.call.room.inputs[:0]
		err = d.r.Array(d.input)
	case "outputs":
		d.call.Outputs, d.call.asked = d.call.room.outputs[:0], d.call.room.asked[:0]
		err = d.r.Array(d.output)
	default:
		_, err = d.r.Skip()
	}
	return err
}

func (d *decoder) output() error {
	d.call.Outputs = append(d.call.Outputs, inference.RequestedOutput{})
	d.call.asked = append(d.call.asked, 0)
	i := len(d.call.Outputs) - 1
	o, asked := &d.call.Outputs[i], &d.call.asked[i]
	binaryData := func() error {
		b, err := d.r.Bool()
		if err != nil {
			return badf("output %d, parameter binary_data: %w", i, err)
		}
		if *asked = -1; b {
			*asked = 1
		}
		return nil
	}
	err := d.r.Object(func(key string) (err error) {
		switch key {
		case "name":
			o.Name, err = d.r.String()
		case "parameters":
			o.Parameters, err = parameters(d.r, "binary_data", binaryData)
		default:
			_, err = d.r.Skip()
		}
		return err
	})
	if err == nil && o.Name == "" {
		err = badf("output %d of the request has no name", i)
	}
	return err
}

func (d *decoder) input() error {
	d.call.Inputs = append(d.call.Inputs, inference.Tensor{})
	i := len(d.call.Inputs) - 1
	t := &d.call.Inputs[i]
	var data []byte
	hasShape, size := false, int64(-1) // of the bytes behind the JSON
	binarySize := func() error {
		text, err := d.r.Number()
		if err == nil {
			size, err = strconv.ParseInt(string(text), 10, 64)
		}
		if err != nil || size < 0 {
			return badf("input %d, parameter binary_data_size: expected a number of bytes, got %s", i, text)
		}
		return nil
	}
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
			t.Shape, err = d.shape()
		case "parameters":
			t.Parameters, err = parameters(d.r, "binary_data_size", binarySize)
		case "data":
			data, err = d.r.Skip()
		default:
			_, err = d.r.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case t.Name == "":
		return badf("input %d has no name", i)
	case !t.Datatype.Valid():
		return badf("input %q: expected a datatype such as FP32 or INT64, got %q", t.Name, string(t.Datatype))
	case !hasShape:
		return badf("input %q has no shape", t.Name)
	}
	return d.fill(t, data, size)
}

// fill sets the data of an input, from size bytes behind the JSON or, if that is
// negative, from an array.
func (d *decoder) fill(t *inference.Tensor, data []byte, size int64) error {
	n, ok := inference.NumElements(t.Shape)
	if !ok {
		return badf("input %q: the shape %v has no number of elements", t.Name, t.Shape)
	}
	if size < 0 {
		if data == nil {
			return badf("input %q has no data", t.Name)
		}
		var err error
		t.Data, err = elements(t, data, n, d.nonFinite)
		return err
	}
	switch {
	case data != nil:
		return badf("input %q has both data and binary_data_size", t.Name)
	case size > int64(len(d.tail)):
		return badf("input %q: binary_data_size is %d, but only %d bytes are left of the body", t.Name, size, len(d.tail))
	}
	t.Data, d.tail = d.tail[:size:size], d.tail[size:]
	return checkSize(t, n)
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

// shape reads the sizes of an input, behind those of the inputs before.
func (d *decoder) shape() ([]int64, error) {
	from := len(d.dims)
	err := d.r.Array(func() error {
		text, err := d.r.Number()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || n < 0 {
			return badf("a shape has the size %s, which is no number from 0 on", text)
		}
		d.dims = append(d.dims, n)
		return nil
	})
	return d.dims[from:len(d.dims):len(d.dims)], err
}

// parameters reads an object of strings, numbers and booleans; but own reads the value of
// the member special, which is of the protocol.
func parameters(r *jsonread.Reader, special string, own func() error) (p inference.Parameters, err error) {
	err = r.Object(func(key string) (err error) {
		if key == special && own != nil {
			return own()
		}
		if p == nil {
			p = inference.Parameters{}
		}
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
