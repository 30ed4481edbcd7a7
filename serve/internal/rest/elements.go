package rest

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/jsonread"
)

// elements reads the data of an input, nested or flat, as little-endian bytes.
func elements(t *inference.Tensor, data []byte, n int64, nonFinite bool) ([]byte, error) {
	if t.Datatype == inference.FP16 || t.Datatype == inference.BF16 {
		return nil, badf("input %q: %s has no form in JSON; send it as binary data", t.Name, t.Datatype)
	}
	r := jsonread.New(data, maxDepth)
	if nonFinite {
		r.AllowNonFinite()
	}
	e := elementReader{r: r, t: t, n: n, parse: parsers[t.Datatype]}
	// An element takes two bytes of JSON at least, whatever the shape says.
	size := max(t.Datatype.Size(), 1)
	e.out = make([]byte, 0, min(n, int64(len(data)/2+1))*int64(size))
	if r.Peek() != '[' {
		return nil, badf("input %q: expected an array as data", t.Name)
	}
	if err := e.value(); err != nil {
		return nil, err
	}
	if e.count != n {
		return nil, badf("input %q: expected %d elements for %s%v, got %d", t.Name, n, t.Datatype, t.Shape, e.count)
	}
	return e.out, nil
}

type elementReader struct {
	r        *jsonread.Reader
	t        *inference.Tensor
	n, count int64
	parse    func(r *jsonread.Reader, out []byte) ([]byte, bool, error)
	out      []byte
}

func (e *elementReader) value() error {
	if e.r.Peek() == '[' {
		return e.r.Array(e.value)
	}
	if e.count == e.n {
		return badf("input %q: expected %d elements for %s%v, got more", e.t.Name, e.n, e.t.Datatype, e.t.Shape)
	}
	before := *e.r
	out, ok, err := e.parse(e.r, e.out)
	if err != nil || !ok {
		text, _ := before.Skip()
		return badf("input %q, element %d: expected %s, got %.40s", e.t.Name, e.count, e.t.Datatype, text)
	}
	e.out = out
	e.count++
	return nil
}

// parsers read one element and append it; false if it is no such element, or does not
// fit.
var parsers = map[inference.Datatype]func(r *jsonread.Reader, out []byte) ([]byte, bool, error){
	inference.Bool:   parseBool,
	inference.Int8:   signed(8),
	inference.Int16:  signed(16),
	inference.Int32:  signed(32),
	inference.Int64:  signed(64),
	inference.Uint8:  unsigned(8),
	inference.Uint16: unsigned(16),
	inference.Uint32: unsigned(32),
	inference.Uint64: unsigned(64),
	inference.FP32: func(r *jsonread.Reader, out []byte) ([]byte, bool, error) {
		f, ok, err := float(r, 32)
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(f))), ok, err
	},
	inference.FP64: func(r *jsonread.Reader, out []byte) ([]byte, bool, error) {
		f, ok, err := float(r, 64)
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(f)), ok, err
	},
	inference.Bytes: func(r *jsonread.Reader, out []byte) ([]byte, bool, error) {
		s, err := r.String()
		out = binary.LittleEndian.AppendUint32(out, uint32(len(s)))
		return append(out, s...), uint64(len(s)) <= math.MaxUint32, err
	},
}

// parseBool also takes 0 and 1, which numpy's users write.
func parseBool(r *jsonread.Reader, out []byte) ([]byte, bool, error) {
	switch r.Peek() {
	case 't', 'f':
		b, err := r.Bool()
		if b {
			return append(out, 1), true, err
		}
		return append(out, 0), true, err
	}
	text, err := r.Number()
	if err != nil || len(text) != 1 || text[0] > '1' {
		return out, false, err
	}
	return append(out, text[0]-'0'), true, nil
}

func signed(bits int) func(*jsonread.Reader, []byte) ([]byte, bool, error) {
	return func(r *jsonread.Reader, out []byte) ([]byte, bool, error) {
		text, err := r.Number()
		if err != nil {
			return out, false, err
		}
		v, err := strconv.ParseInt(string(text), 10, bits)
		return appendBits(out, uint64(v), bits), err == nil, nil
	}
}

func unsigned(bits int) func(*jsonread.Reader, []byte) ([]byte, bool, error) {
	return func(r *jsonread.Reader, out []byte) ([]byte, bool, error) {
		text, err := r.Number()
		if err != nil {
			return out, false, err
		}
		v, err := strconv.ParseUint(string(text), 10, bits)
		return appendBits(out, v, bits), err == nil, nil
	}
}

func appendBits(out []byte, v uint64, bits int) []byte {
	for range bits / 8 {
		out = append(out, byte(v))
		v >>= 8
	}
	return out
}

func float(r *jsonread.Reader, bits int) (float64, bool, error) {
	text, err := r.Number()
	if err != nil {
		return 0, false, err
	}
	f, err := strconv.ParseFloat(string(text), bits)
	return f, err == nil, nil
}
