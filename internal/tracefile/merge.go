package tracefile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// tracksOf is how many tracks a trace of a process may have beside its others.
const tracksOf = 1000

// Merger writes one trace of those of several processes.
type Merger struct {
	out   *bufio.Writer
	enc   *json.Encoder
	first bool
	named map[int]bool // processes
	err   error
}

// NewMerger begins a trace.
func NewMerger(w io.Writer) *Merger {
	out := bufio.NewWriter(w)
	return &Merger{out: out, enc: json.NewEncoder(out), first: true, named: map[int]bool{}}
}

// merged is an event of a file.
type merged struct {
	Phase    string            `json:"ph"`
	Process  int               `json:"pid"`
	Track    int               `json:"tid"`
	Name     string            `json:"name"`
	Category string            `json:"cat,omitempty"`
	Start    float64           `json:"ts"` // µs
	Duration float64           `json:"dur,omitempty"`
	Args     map[string]string `json:"args,omitempty"`
}

// Add adds a trace that a Writer wrote, the one of that number of a process. shift gives the time in the
// merged trace of one since the trace began. Errors are those of Close.
func (m *Merger) Add(r io.Reader, process, number int, name string, shift func(time.Duration) time.Duration) {
	if !m.named[process] {
		m.named[process] = true
		m.write(&merged{Phase: "M", Process: process, Name: "process_name", Args: map[string]string{"name": name}})
	}
	d := json.NewDecoder(r)
	_, err := d.Token() // the bracket
	for err == nil && d.More() {
		var e merged
		if err = d.Decode(&e); err == nil {
			e.Process = process
			e.Track += number * tracksOf
			if e.Phase == "X" {
				e.Start = float64(shift(time.Duration(e.Start*1e3))) / 1e3
			}
			m.write(&e)
		}
	}
	if err != nil {
		m.err = errors.Join(m.err, fmt.Errorf("the trace of %s: %w", name, err))
	}
}

// write writes an event; the errors of the buffer stay until Close.
func (m *Merger) write(e *merged) {
	before := ",\n"
	if m.first {
		before, m.first = "[\n", false
	}
	_, _ = m.out.WriteString(before)
	_ = m.enc.Encode(e)
}

// Close ends the trace and returns the first error of reading and writing.
func (m *Merger) Close() error {
	if m.first {
		_, _ = m.out.WriteString("[")
	}
	_, _ = m.out.WriteString("]\n")
	return errors.Join(m.err, m.out.Flush())
}
