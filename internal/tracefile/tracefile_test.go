package tracefile

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"testing"
	"time"
)

// TestEventsAreJSON reads back what is written, whatever names and times are.
func TestEventsAreJSON(t *testing.T) {
	names := []string{"", "matmul", `a "quoted" name`, `back\slash`, "tab\there", "größer ∂", "\x00\x1f"}
	durations := []time.Duration{0, 1, 10, 999, 1000, 1001, 123456789, time.Hour + 7, -1, -1500}
	var out bytes.Buffer
	w := New(&out)
	for _, n := range names {
		for _, d := range durations {
			w.Add(Event{Track: w.Track("track"), Name: n, Category: "test", Start: w.Begin().Add(d), Duration: d, Detail: n})
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var events []merged
	if err := json.Unmarshal(out.Bytes(), &events); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	for i, n := range names {
		for k, d := range durations {
			e, want := events[i*len(durations)+k], float64(d)/1e3
			if e.Name != n || e.Args["detail"] != n || math.Abs(e.Start-want) > 1e-6 || math.Abs(e.Duration-want) > 1e-6 {
				t.Errorf("%q, %v: got %+v", n, d, e)
			}
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	w := New(io.Discard)
	defer w.Close()
	e := Event{Track: 1, Name: "matmul", Category: "kernel", Start: w.Begin().Add(time.Second), Duration: 12345, Detail: "main.go:12"}
	var text []byte
	first := true
	for b.Loop() {
		text = w.append(text[:0], &e, &first)
	}
}
