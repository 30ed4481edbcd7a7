package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// hostileHeaders are headers of about n bytes, valid or not, that are made of what is expensive to
// read.
func hostileHeaders(n int) map[string]string {
	many := func(item func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(item(i))
		}
		return b.String()
	}
	empty := func(i int) string { return fmt.Sprintf(`"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i) }
	return map[string]string{
		"many tensors":  `{` + many(empty) + `}`,
		"many metadata": `{"__metadata__":{` + many(func(i int) string { return fmt.Sprintf(`"%x":""`, i) }) + `}}`,
		"many members":  `{"a":{` + many(func(int) string { return `"x":1` }) + `,"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`,
		"many objects":  `{"a":{"x":[` + many(func(int) string { return `{}` }) + `],"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`,
		"deep":          `{"a":{"x":` + strings.Repeat(`[`, n) + strings.Repeat(`]`, n) + `}}`,
		"long shapes": `{` + many(func(i int) string {
			return fmt.Sprintf(`"%x":{"dtype":"U8","shape":[0%s],"data_offsets":[0,0]}`, i, strings.Repeat(",0", maxRank-1))
		}) + `}`,
		"escapes":      `{"__metadata__":{"k":"` + strings.Repeat(`\n`, n/2) + `"}}`,
		"false counts": `{"__metadata__":{"k":"` + strings.Repeat(`\"data_offsets\"`, n/17) + `"}}`,
		"not sorted": `{` + many(func(i int) string {
			last := n/60 - i
			return fmt.Sprintf(`"%x":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}`, i, max(last, 0), max(last+1, 1))
		}) + `}`,
	}
}

// The memory that a header takes is bounded by its length, whatever it says.
func TestHeaderCost(t *testing.T) {
	const n = 1 << 20
	for name, text := range hostileHeaders(n) {
		b := file(text, "")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := Read(bytes.NewReader(b), int64(len(b)))
		runtime.ReadMemStats(&after)
		allocated := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(text))
		t.Logf("%s: %.1f bytes allocated for one of %d, %v", name, allocated, len(text), err)
		if allocated > 14 {
			t.Errorf("%s: %.1f bytes allocated for one of the header", name, allocated)
		}
		runtime.KeepAlive(f)
	}
}

// More tensors or entries than any model has are refused before they cost much.
func TestTooManyEntries(t *testing.T) {
	b := []byte(`{"__metadata__":{"-":""`)
	for i := range maxEntries {
		b = append(strconv.AppendInt(append(b, `,"`...), int64(i), 36), `":""`...)
	}
	at := bytes.LastIndexByte(b, ',') + 1
	expectFormatError(t, file(string(append(b, `}}`...)), ""), int64(lengthSize+at), "more than 1048576")
	many := make([]Info, maxEntries+1)
	if _, err := NewWriter(io.Discard, many, nil); !errors.Is(err, ErrInvalidTensor) {
		t.Errorf("too many tensors: %v", err)
	}
}

func BenchmarkHostileHeader(b *testing.B) {
	for name, text := range hostileHeaders(10 << 20) {
		b.Run(name, func(b *testing.B) {
			in := file(text, "")
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				Read(bytes.NewReader(in), int64(len(in)))
			}
		})
	}
}
