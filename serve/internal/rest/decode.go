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

// decodeInfer reads a request into call, which is empty: JSON, and the bytes that follow it for inputs
// that have them. The tensors share memory with both.
func (d *decoder) decodeInfer(call *inferCall, text, tail []byte, nonFinite bool) error {
	d.tail, d.call, d.nonFinite = tail, call, nonFinite
	d.dims = call.room.dims[:0]
	d.r.Reset(text, maxDepth)
	if nonFinite {
		d.r.AllowNonFinite()
	}
	err := d.r.Object(d.members.request)
	if err == nil {
		err = d.r.End()
	}
	if err != nil {
		if _, syntax := err.(*jsonread.SyntaxError); syntax {
			return badf("failed to parse the request: %w", err)
		}
		return err
	}
	if len(call.Inputs) == 0 {
		return badf("the request has no inputs")
	}
	if len(d.tail) > 0 {
		return badf("%d bytes follow the JSON that no input's binary_data_size accounts for", len(d.tail))
	}
	if b, ok := call.Parameters["binary_data_output"]; ok {
		if call.binaryOutputs, ok = b.(bool); !ok {
			return badf("parameter binary_data_output: expected true or false, got %v", b)
		}
	}
	return nil
}

// decoder reads one request after another.
type decoder struct {
	r         jsonread.Reader
	tail      []byte // what no input has taken yet
	call      *inferCall
	dims      []int64 // of the inputs that were read
	nonFinite bool

	// The input and the parameters at which it is.
	data       []byte // the array of the input's data
	hasShape   bool
	size       int64 // the input's bytes behind the JSON; negative for none
	parameters inference.Parameters
	special    string       // the parameter that is of the protocol
	own        func() error // reads its value

	// The methods as functions, made once for all requests.
	members struct{ request, input, output, parameter func(key string) error }
	values  struct{ input, output, dim, binarySize, binaryData func() error }
}

func newDecoder() *decoder {
	d := &decoder{}
	d.r.Intern(words)
	d.members.request, d.members.input, d.members.output, d.members.parameter = d.member, d.inputMember, d.outputMember, d.parameter
	d.values.input, d.values.output, d.values.dim, d.values.binarySize, d.values.binaryData = d.input, d.output, d.dim, d.binarySize, d.binaryData
	return d
}

// forget drops what belongs to the last request.
func (d *decoder) forget() {
	d.r.Reset(nil, 0)
	d.tail, d.call, d.dims, d.data, d.parameters = nil, nil, nil, nil, nil
}

func (d *decoder) member(key string) (err error) {
	switch key {
	case "id":
		d.call.ID, err = d.r.String()
	case "parameters":
		d.call.Parameters, err = d.readParameters("", nil)
	case "inputs":
		d.call.Inputs = d.call.room.inputs[:0]
		err = d.r.Array(d.values.input)
	case "outputs":
		d.call.Outputs, d.call.asked = d.call.room.outputs[:0], d.call.room.asked[:0]
		err = d.r.Array(d.values.output)
	default:
		_, err = d.r.Skip()
	}
	return err
}

func (d *decoder) output() error {
	d.call.Outputs = append(d.call.Outputs, inference.RequestedOutput{})
	d.call.asked = append(d.call.asked, 0)
	err := d.r.Object(d.members.output)
	if i := len(d.call.Outputs) - 1; err == nil && d.call.Outputs[i].Name == "" {
		err = badf("output %d of the request has no name", i)
	}
	return err
}

func (d *decoder) outputMember(key string) (err error) {
	o := &d.call.Outputs[len(d.call.Outputs)-1]
	switch key {
	case "name":
		o.Name, err = d.r.Name()
	case "parameters":
		o.Parameters, err = d.readParameters("binary_data", d.values.binaryData)
	default:
		_, err = d.r.Skip()
	}
	return err
}

func (d *decoder) binaryData() error {
	i := len(d.call.asked) - 1
	b, err := d.r.Bool()
	if err != nil {
		return badf("output %d, parameter binary_data: %w", i, err)
	}
	if d.call.asked[i] = -1; b {
		d.call.asked[i] = 1
	}
	return nil
}

func (d *decoder) input() error {
	d.call.Inputs = append(d.call.Inputs, inference.Tensor{})
	d.data, d.hasShape, d.size = nil, false, -1
	err := d.r.Object(d.members.input)
	i := len(d.call.Inputs) - 1
	t := &d.call.Inputs[i]
	switch {
	case err != nil:
		return err
	case t.Name == "":
		return badf("input %d has no name", i)
	case !t.Datatype.Valid():
		return badf("input %q: expected a datatype such as FP32 or INT64, got %q", t.Name, string(t.Datatype))
	case !d.hasShape:
		return badf("input %q has no shape", t.Name)
	}
	return d.fill(t, d.data, d.size)
}

func (d *decoder) inputMember(key string) (err error) {
	t := &d.call.Inputs[len(d.call.Inputs)-1]
	switch key {
	case "name":
		t.Name, err = d.r.Name()
	case "datatype":
		var name string
		name, err = d.r.String()
		t.Datatype = inference.Datatype(name)
	case "shape":
		d.hasShape = true
		t.Shape, err = d.shape()
	case "parameters":
		t.Parameters, err = d.readParameters("binary_data_size", d.values.binarySize)
	case "data":
		d.data, err = d.r.Skip()
	default:
		_, err = d.r.Skip()
	}
	return err
}

func (d *decoder) binarySize() error {
	text, err := d.r.Number()
	if err == nil {
		d.size, err = strconv.ParseInt(string(text), 10, 64)
	}
	if err != nil || d.size < 0 {
		return badf("input %d, parameter binary_data_size: expected a number of bytes, got %s", len(d.call.Inputs)-1, text)
	}
	return nil
}

// fill sets the data of an input, from size bytes behind the JSON or, if that is
// negative, from an array.
func (d *decoder) fill(t *inference.Tensor, data []byte, size int64) error {
	n, ok := inference.NumElements(t.Shape)
	if !ok {
		return badf("input %q: the shape %v has no number of elements", t.Name, t.Shape)
	}
	if t.Parameters.Shared() {
		if data != nil || size >= 0 {
			return badf("input %q is in shared memory, and has data besides", t.Name)
		}
		return nil
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
	err := d.r.Array(d.values.dim)
	return d.dims[from:len(d.dims):len(d.dims)], err
}

func (d *decoder) dim() error {
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
}

// readParameters reads an object of strings, numbers and booleans; but own reads the value of
// the member special, which is of the protocol.
func (d *decoder) readParameters(special string, own func() error) (inference.Parameters, error) {
	d.parameters, d.special, d.own = nil, special, own
	err := d.r.Object(d.members.parameter)
	return d.parameters, err
}

func (d *decoder) parameter(key string) (err error) {
	if key == d.special && d.own != nil {
		return d.own()
	}
	if d.parameters == nil {
		d.parameters = inference.Parameters{}
	}
	d.parameters[key], err = parameterValue(&d.r, key)
	return err
}

// parameterValue reads the value of a parameter.
func parameterValue(r *jsonread.Reader, key string) (any, error) {
	switch r.Peek() {
	case '"':
		return r.String()
	case 't', 'f':
		return r.Bool()
	case '{', '[', 'n':
		return nil, badf("parameter %q: expected a string, a number or a boolean", key)
	}
	text, err := r.Number()
	if err != nil {
		return nil, err
	}
	return number(text)
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
