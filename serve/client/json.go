package client

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/jsonread"
)

// appendRequest appends the JSON of a request whose inputs follow it as bytes and whose outputs are
// to come so.
func appendRequest(b []byte, r *Request) (_ []byte, err error) {
	b = append(b, '{')
	if r.ID != "" {
		b = append(b, `"id":`...)
		b = append(appendString(b, r.ID), ',')
	}
	b = append(b, `"parameters":{"binary_data_output":true`...)
	for key, value := range r.Parameters {
		b = append(b, ',')
		if b, err = appendMember(b, key, value); err != nil {
			return nil, err
		}
	}
	b = append(b, `},"inputs":[`...)
	for i := range r.Inputs {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendInput(b, &r.Inputs[i]); err != nil {
			return nil, err
		}
	}
	b = append(b, ']')
	for i, name := range r.Outputs {
		if i == 0 {
			b = append(b, `,"outputs":[`...)
		}
		b = append(b, `{"name":`...)
		b = append(appendString(b, name), '}', ',')
		if i == len(r.Outputs)-1 {
			b[len(b)-1] = ']'
		}
	}
	return append(b, '}'), nil
}

func appendInput(b []byte, t *Tensor) (_ []byte, err error) {
	b = append(b, `{"name":`...)
	b = appendString(b, t.Name)
	b = append(b, `,"datatype":`...)
	b = appendString(b, t.Datatype)
	b = append(b, `,"shape":[`...)
	for i, d := range t.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	b = append(b, `],"parameters":{"binary_data_size":`...)
	b = strconv.AppendInt(b, int64(len(t.Data)), 10)
	for key, value := range t.Parameters {
		b = append(b, ',')
		if b, err = appendMember(b, key, value); err != nil {
			return nil, fmt.Errorf("input %q: %w", t.Name, err)
		}
	}
	return append(b, '}', '}'), nil
}

// appendMember appends a parameter.
func appendMember(b []byte, key string, value any) ([]byte, error) {
	switch value.(type) {
	case bool, int64, uint64, float64, string:
	default:
		return nil, fmt.Errorf("parameter %q is a %T; there are bool, int64, uint64, float64 and string", key, value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("parameter %q: %w", key, err)
	}
	return append(append(appendString(b, key), ':'), text...), nil
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			text, _ := json.Marshal(s) // no string fails
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// decodeResponse reads an answer: JSON, and the bytes of the outputs behind it, whose memory they
// share.
func decodeResponse(text, tail []byte) (*Response, error) {
	d := &decoder{r: jsonread.New(text, 100), tail: tail, out: &Response{}}
	err := d.r.Object(func(key string) (err error) {
		switch key {
		case "model_name":
			d.out.Model, err = d.r.String()
		case "model_version":
			d.out.Version, err = d.r.String()
		case "id":
			d.out.ID, err = d.r.String()
		case "parameters":
			d.out.Parameters, err = d.parameters("", nil)
		case "outputs":
			err = d.r.Array(d.output)
		default:
			_, err = d.r.Skip()
		}
		return err
	})
	if err == nil {
		err = d.r.End()
	}
	if err == nil && len(d.tail) > 0 {
		err = fmt.Errorf("%d bytes follow the outputs", len(d.tail))
	}
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	return d.out, nil
}

type decoder struct {
	r    *jsonread.Reader
	tail []byte
	out  *Response
}

func (d *decoder) output() error {
	var t Tensor
	size := int64(-1)
	err := d.r.Object(func(key string) (err error) {
		switch key {
		case "name":
			t.Name, err = d.r.String()
		case "datatype":
			t.Datatype, err = d.r.String()
		case "shape":
			err = d.r.Array(func() error {
				n, err := d.integer()
				t.Shape = append(t.Shape, n)
				return err
			})
		case "parameters":
			t.Parameters, err = d.parameters("binary_data_size", func() (err error) { size, err = d.integer(); return err })
		default:
			_, err = d.r.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case size < 0:
		return fmt.Errorf("output %q did not come as bytes: the server lacks the extension binary_tensor_data; use its gRPC", t.Name)
	case size > int64(len(d.tail)):
		return fmt.Errorf("output %q has %d bytes, but only %d are left", t.Name, size, len(d.tail))
	}
	t.Data, d.tail = d.tail[:size:size], d.tail[size:]
	if n, ok := inference.NumElements(t.Shape); !ok || inference.Datatype(t.Datatype).Size() > 0 && n*int64(inference.Datatype(t.Datatype).Size()) != size {
		return fmt.Errorf("output %q is %s%v, but has %d bytes", t.Name, t.Datatype, t.Shape, size)
	}
	d.out.Outputs = append(d.out.Outputs, t)
	return nil
}

func (d *decoder) integer() (int64, error) {
	text, err := d.r.Number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("expected a number from 0 on, got %s", text)
	}
	return n, nil
}

// parameters reads an object of bools, numbers and strings; own reads the member special.
func (d *decoder) parameters(special string, own func() error) (map[string]any, error) {
	var out map[string]any
	err := d.r.Object(func(key string) (err error) {
		if own != nil && key == special {
			return own()
		}
		if out == nil {
			out = map[string]any{}
		}
		switch d.r.Peek() {
		case '"':
			out[key], err = d.r.String()
		case 't', 'f':
			out[key], err = d.r.Bool()
		case '{', '[', 'n':
			_, err = d.r.Skip()
		default:
			var text []byte
			if text, err = d.r.Number(); err != nil {
				return err
			}
			if i, notInt := strconv.ParseInt(string(text), 10, 64); notInt == nil {
				out[key] = i
				return nil
			}
			var f float64
			if f, err = strconv.ParseFloat(string(text), 64); err == nil && !math.IsInf(f, 0) {
				out[key] = f
			}
		}
		return err
	})
	return out, err
}
