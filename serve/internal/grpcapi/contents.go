package grpcapi

import (
	"encoding/binary"
	"math"

	inferencepb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// fieldOf is the field of InferTensorContents that has the elements of a datatype.
var fieldOf = map[string]string{
	"BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents",
	"UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
	"FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}

// contents returns the elements of an input that are in the fields of its message,
// little-endian and dense.
func contents(t *inferencepb.ModelInferRequest_InferInputTensor) ([]byte, error) {
	c, want := t.GetContents(), fieldOf[t.GetDatatype()]
	for _, f := range [...]struct {
		name string
		len  int
	}{
		{"bool_contents", len(c.GetBoolContents())}, {"int_contents", len(c.GetIntContents())}, {"int64_contents", len(c.GetInt64Contents())},
		{"uint_contents", len(c.GetUintContents())}, {"uint64_contents", len(c.GetUint64Contents())},
		{"fp32_contents", len(c.GetFp32Contents())}, {"fp64_contents", len(c.GetFp64Contents())}, {"bytes_contents", len(c.GetBytesContents())},
	} {
		switch {
		case f.len == 0 || f.name == want:
		case want == "":
			return nil, invalid("input %q is %s, which has no field of contents: send it in raw_input_contents", t.GetName(), t.GetDatatype())
		default:
			return nil, invalid("input %q is %s, whose elements are in %s, but %s has %d", t.GetName(), t.GetDatatype(), want, f.name, f.len)
		}
	}
	data, at := elements(c, t.GetDatatype())
	if at >= 0 {
		return nil, invalid("input %q: element %d does not fit %s", t.GetName(), at, t.GetDatatype())
	}
	return data, nil
}

// elements returns the elements of the field for the datatype; at is the first one
// that does not fit it, or -1.
func elements(c *inferencepb.InferTensorContents, datatype string) (data []byte, at int) {
	le := binary.LittleEndian
	switch datatype {
	case "BOOL":
		data = make([]byte, len(c.GetBoolContents()))
		for i, v := range c.GetBoolContents() {
			if v {
				data[i] = 1
			}
		}
	case "INT8":
		return narrow(c.GetIntContents(), 1, math.MinInt8, math.MaxInt8)
	case "INT16":
		return narrow(c.GetIntContents(), 2, math.MinInt16, math.MaxInt16)
	case "INT32":
		return narrow(c.GetIntContents(), 4, math.MinInt32, math.MaxInt32)
	case "UINT8":
		return narrow(c.GetUintContents(), 1, 0, math.MaxUint8)
	case "UINT16":
		return narrow(c.GetUintContents(), 2, 0, math.MaxUint16)
	case "UINT32":
		return narrow(c.GetUintContents(), 4, 0, math.MaxUint32)
	case "INT64":
		data = make([]byte, 0, 8*len(c.GetInt64Contents()))
		for _, v := range c.GetInt64Contents() {
			data = le.AppendUint64(data, uint64(v))
		}
	case "UINT64":
		data = make([]byte, 0, 8*len(c.GetUint64Contents()))
		for _, v := range c.GetUint64Contents() {
			data = le.AppendUint64(data, v)
		}
	case "FP32":
		data = make([]byte, 0, 4*len(c.GetFp32Contents()))
		for _, v := range c.GetFp32Contents() {
			data = le.AppendUint32(data, math.Float32bits(v))
		}
	case "FP64":
		data = make([]byte, 0, 8*len(c.GetFp64Contents()))
		for _, v := range c.GetFp64Contents() {
			data = le.AppendUint64(data, math.Float64bits(v))
		}
	case "BYTES":
		for _, v := range c.GetBytesContents() {
			data = append(le.AppendUint32(data, uint32(len(v))), v...)
		}
	}
	return data, -1
}

// narrow returns the low bytes of integers; at is the first one outside of the
// bounds, or -1.
func narrow[T int32 | uint32](values []T, size int, least, most int64) (data []byte, at int) {
	data = make([]byte, 0, size*len(values))
	for i, v := range values {
		if int64(v) < least || int64(v) > most {
			return nil, i
		}
		for b := range size {
			data = append(data, byte(v>>(8*b)))
		}
	}
	return data, -1
}
