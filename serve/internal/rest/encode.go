package rest

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// appendResponse appends the JSON of an answer. Outputs that come as bytes have their
// size there, and their data is to follow the text, in order.
func appendResponse(b []byte, c *inferCall, resp *inference.Response, nonFinite bool) ([]byte, error) {
	b = append(b, `{"model_name":`...)
	b = appendString(b, resp.Model)
	b = append(b, `,"model_version":`...)
	b = appendString(b, resp.Version)
	if resp.ID != "" {
		b = append(b, `,"id":`...)
		b = appendString(b, resp.ID)
	}
	if len(resp.Parameters) > 0 {
		b = append(b, `,"parameters":`...)
		b = appendParameters(b, resp.Parameters)
	}
	b = append(b, `,"outputs":[`...)
	for i := range resp.Outputs {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendOutput(b, &resp.Outputs[i], c.binaryOutput(i), nonFinite); err != nil {
			return nil, err
		}
	}
	return append(b, ']', '}'), nil
}

func appendOutput(b []byte, t *inference.Tensor, binaryData, nonFinite bool) ([]byte, error) {
	b = append(b, `{"name":`...)
	b = appendString(b, t.Name)
	b = append(b, `,"datatype":"`...)
	b = append(b, t.Datatype...)
	b = append(b, `","shape":[`...)
	for i, d := range t.Shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	b = append(b, ']')
	if binaryData && !t.Parameters.Shared() {
		b = append(b, `,"parameters":{"binary_data_size":`...)
		b = strconv.AppendInt(b, int64(len(t.Data)), 10)
		return append(b, '}', '}'), nil
	}
	if len(t.Parameters) > 0 {
		b = append(b, `,"parameters":`...)
		b = appendParameters(b, t.Parameters)
	}
	if t.Parameters.Shared() {
		return append(b, '}'), nil
	}
	b = append(b, `,"data":[`...)
	b, err := appendElements(b, t, nonFinite)
	return append(b, ']', '}'), err
}

func appendElements(b []byte, t *inference.Tensor, nonFinite bool) ([]byte, error) {
	if t.Datatype == inference.Bytes {
		return appendBytes(b, t)
	}
	if t.Datatype == inference.FP16 || t.Datatype == inference.BF16 {
		return nil, badf("output %q: %s has no form in JSON; ask for it with binary_data", t.Name, t.Datatype)
	}
	size := t.Datatype.Size()
	for i := 0; i+size <= len(t.Data); i += size {
		if i > 0 {
			b = append(b, ',')
		}
		e := t.Data[i : i+size]
		switch t.Datatype {
		case inference.FP32, inference.FP64:
			f, bits := math.Float64frombits(bitsOf(e)), 64
			if size == 4 {
				f, bits = float64(math.Float32frombits(uint32(bitsOf(e)))), 32
			}
			if (math.IsNaN(f) || math.IsInf(f, 0)) && !nonFinite {
				return nil, inference.Errorf(inference.InvalidArgument,
					"output %q: element %d is %v, which has no form in JSON; ask for binary_data, or start the server with --json-nan", t.Name, i/size, f)
			}
			b = appendFloat(b, f, bits)
		case inference.Bool:
			b = strconv.AppendBool(b, e[0] != 0)
		case inference.Int8, inference.Int16, inference.Int32, inference.Int64:
			shift := 64 - 8*size
			b = strconv.AppendInt(b, int64(bitsOf(e)<<shift)>>shift, 10)
		default:
			b = strconv.AppendUint(b, bitsOf(e), 10)
		}
	}
	return b, nil
}

// appendFloat writes the shortest text that reads back as the same number; NaN and the
// infinities as Python writes them.
func appendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(b, f, 'e', -1, bits)
	}
	return strconv.AppendFloat(b, f, 'f', -1, bits)
}

func bitsOf(e []byte) (v uint64) {
	for i := len(e) - 1; i >= 0; i-- {
		v = v<<8 | uint64(e[i])
	}
	return v
}

func appendBytes(b []byte, t *inference.Tensor) ([]byte, error) {
	for i, rest := 0, t.Data; len(rest) >= 4; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		n := int(binary.LittleEndian.Uint32(rest))
		b = appendString(b, string(rest[4:4+n]))
		rest = rest[4+n:]
	}
	return b, nil
}

func appendParameters(b []byte, p inference.Parameters) []byte {
	text, err := json.Marshal(map[string]any(p))
	if err != nil { // a NaN; what else parameters hold can be written
		return append(b, "{}"...)
	}
	return append(b, text...)
}

// appendString writes a string; what is not UTF-8 in it as U+FFFD.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			text, err := json.Marshal(s)
			if err != nil { // no string fails
				return append(b, `""`...)
			}
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
