package tensorboard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// read returns the events of a file, whose checksums it compares.
func read(t *testing.T, path string) (events [][]byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		if checksum(b[:8]) != binary.LittleEndian.Uint32(b[8:]) || checksum(b[12:12+n]) != binary.LittleEndian.Uint32(b[12+n:]) {
			t.Fatal("a checksum is wrong")
		}
		events = append(events, b[12:12+n])
		b = b[16+n:]
	}
	return events
}

// fields decodes a message: its fields by number, numbers as 8 bytes.
func fields(t *testing.T, b []byte) map[int][]byte {
	t.Helper()
	out := map[int][]byte{}
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		b = b[n:]
		var v []byte
		switch key & 7 {
		case 0:
			x, n := binary.Uvarint(b)
			v, b = binary.LittleEndian.AppendUint64(nil, x), b[n:]
		case 1:
			v, b = b[:8], b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			v, b = b[n:n+int(size)], b[n+int(size):]
		case 5:
			v, b = b[:4], b[4:]
		default:
			t.Fatalf("wire type %d", key&7)
		}
		out[int(key>>3)] = v
	}
	return out
}

// value returns the fields of the one value of an event, and its step.
func value(t *testing.T, event []byte) (map[int][]byte, uint64) {
	t.Helper()
	e := fields(t, event)
	return fields(t, fields(t, e[5])[1]), binary.LittleEndian.Uint64(e[2])
}

func number(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

func TestEvents(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "runs", "a"))
	if err != nil {
		t.Fatal(err)
	}
	w.now = func() time.Time { return time.Unix(100, 5e8) }
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	values := []float32{-1, 0, 1, 1, float32(math.NaN()), float32(math.Inf(1))}
	for _, err := range []error{w.Scalar("loss", 7, 0.25), w.Histogram("w", 8, values), w.Histogram("none", 8, values[4:]), w.Image("img", 9, img), w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if w.Scalar("loss", 8, 1) == nil {
		t.Error("a closed file was written to")
	}
	events := read(t, w.Path())
	if len(events) != 4 || string(fields(t, events[0])[3]) != "brain.Event:2" {
		t.Fatalf("%d events, first %q", len(events), events[0])
	}
	if at := number(fields(t, events[1])[1]); at != 100.5 {
		t.Errorf("time %v", at)
	}
	v, step := value(t, events[1])
	if string(v[1]) != "loss" || step != 7 || math.Float32frombits(binary.LittleEndian.Uint32(v[2])) != 0.25 {
		t.Errorf("scalar %v of step %d", v, step)
	}
	v, _ = value(t, events[2])
	h := fields(t, v[5])
	if number(h[1]) != -1 || number(h[2]) != 1 || number(h[3]) != 4 || number(h[4]) != 1 || number(h[5]) != 3 || len(h[6]) != 8*buckets || len(h[7]) != 8*buckets {
		t.Errorf("histogram %v", h)
	}
	v, step = value(t, events[3])
	m := fields(t, v[4])
	got, err := png.Decode(bytes.NewReader(m[4]))
	if err != nil || step != 9 || binary.LittleEndian.Uint64(m[1]) != 2 || binary.LittleEndian.Uint64(m[2]) != 3 || got.Bounds() != img.Bounds() {
		t.Errorf("image %v of step %d, %v", m, step, err)
	}
}

// The checksum of the format's description: CRC-32C of "123456789" is e3069283.
func TestChecksum(t *testing.T) {
	c := uint32(0xe3069283)
	if got, want := checksum([]byte("123456789")), (c>>15|c<<17)+0xa282ead8; got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestHistogram(t *testing.T) {
	for _, c := range []struct {
		values []float32
		counts []int
	}{
		{nil, nil},
		{[]float32{2, 2, 2}, []int{3}},
		{[]float32{float32(math.NaN())}, nil},
	} {
		h := NewHistogram(c.values)
		if !slices.Equal(h.Counts, c.counts) {
			t.Errorf("%v: counts %v, want %v", c.values, h.Counts, c.counts)
		}
		var b bytes.Buffer
		if err := h.WritePNG(&b, "weights"); err != nil {
			t.Fatal(err)
		}
		if img, err := png.Decode(&b); err != nil || img.Bounds().Dx() != 800 {
			t.Errorf("%v: %v", c.values, err)
		}
	}
	values := make([]float32, 1000)
	for i := range values {
		values[i] = float32(i)
	}
	for i, n := range NewHistogram(values).Counts {
		if n < 19 || n > 21 {
			t.Errorf("bucket %d has %d of 1000 even values", i, n)
		}
	}
}

func ExampleWriter() {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	w, err := Create(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for step := range int64(3) {
		if err := w.Scalar("loss", step, 1/float64(step+1)); err != nil {
			fmt.Println(err)
		}
		if err := w.Histogram("weights", step, []float32{0.1, 0.2, 0.4}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(w.Close())
	// Output: <nil>
}
