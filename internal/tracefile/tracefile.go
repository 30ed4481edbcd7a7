// Package tracefile writes traces in the format of Chrome's about:tracing, which Perfetto reads.
package tracefile

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"
)

// Event is a span of time on a track.
type Event struct {
	Track    int
	Name     string
	Category string
	Start    time.Time
	Duration time.Duration
	Detail   string // shown with the event; may be empty
}

// chunkSize is how many events are written at a time, queuedChunks how many chunks may wait.
const (
	chunkSize    = 1024
	queuedChunks = 64
)

// Writer writes a trace on a goroutine of its own.
type Writer struct {
	begin time.Time

	mu     sync.Mutex
	chunk  []Event        // guarded by mu
	tracks map[string]int // guarded by mu
	names  []string       // of the tracks; guarded by mu
	lost   int            // events that came faster than they are written; guarded by mu
	closed bool           // guarded by mu

	chunks chan []Event
	done   chan struct{}
	err    error // of writing, final when done is closed
}

// New starts a trace.
func New(w io.Writer) *Writer {
	t := &Writer{begin: time.Now(), tracks: map[string]int{}, chunks: make(chan []Event, queuedChunks), done: make(chan struct{})}
	go t.write(w)
	return t
}

// Begin returns when the trace began.
func (t *Writer) Begin() time.Time { return t.begin }

// Track returns the number of a track, from 1, which is made at its first use.
func (t *Writer) Track(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.tracks[name]; n != 0 {
		return n
	}
	t.names = append(t.names, name)
	t.tracks[name] = len(t.names)
	return len(t.names)
}

// Add adds an event. It does not wait for the file.
func (t *Writer) Add(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if t.chunk == nil {
		t.chunk = make([]Event, 0, chunkSize)
	}
	if t.chunk = append(t.chunk, e); len(t.chunk) == chunkSize {
		t.send()
	}
}

// send hands the chunk to the goroutine that writes; mu is held.
func (t *Writer) send() {
	select {
	case t.chunks <- t.chunk:
		t.chunk = nil
	default:
		t.lost += len(t.chunk)
		t.chunk = t.chunk[:0]
	}
}

// Close writes what is left and returns the first error of writing. Later events are dropped.
func (t *Writer) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		<-t.done
		return t.err
	}
	t.closed = true
	last := t.chunk
	t.mu.Unlock()
	t.chunks <- last
	close(t.chunks)
	<-t.done
	if t.err == nil && t.lost > 0 {
		t.err = errors.New(strconv.Itoa(t.lost) + " events came faster than they could be written and are not in the trace")
	}
	return t.err
}

func (t *Writer) write(w io.Writer) {
	defer close(t.done)
	out := bufio.NewWriterSize(w, 1<<16)
	first := true
	b := []byte("[")
	for chunk := range t.chunks {
		for i := range chunk {
			b = t.append(b, &chunk[i], &first)
		}
		if _, err := out.Write(b); err != nil && t.err == nil {
			t.err = err
		}
		b = b[:0]
	}
	t.mu.Lock()
	names := t.names
	t.mu.Unlock()
	for i, name := range names {
		b = separator(b, &first)
		b = append(b, `{"ph":"M","pid":1,"name":"thread_name","tid":`...)
		b = strconv.AppendInt(b, int64(i+1), 10)
		b = append(b, `,"args":{"name":`...)
		b = append(appendString(b, name), "}}"...)
	}
	b = append(b, "\n]\n"...)
	_, err := out.Write(b)
	t.err = errors.Join(t.err, err, out.Flush())
}

func separator(b []byte, first *bool) []byte {
	if *first {
		*first = false
		return append(b, '\n')
	}
	return append(b, ",\n"...)
}

// append appends the JSON of an event. Times are in microseconds.
func (t *Writer) append(b []byte, e *Event, first *bool) []byte {
	b = separator(b, first)
	b = append(b, `{"ph":"X","pid":1,"tid":`...)
	b = strconv.AppendInt(b, int64(e.Track), 10)
	b = append(b, `,"name":`...)
	b = appendString(b, e.Name)
	b = append(b, `,"cat":`...)
	b = appendString(b, e.Category)
	b = append(b, `,"ts":`...)
	b = appendMicros(b, e.Start.Sub(t.begin))
	b = append(b, `,"dur":`...)
	b = appendMicros(b, e.Duration)
	if e.Detail != "" {
		b = append(b, `,"args":{"detail":`...)
		b = append(appendString(b, e.Detail), '}')
	}
	return append(b, '}')
}

// appendMicros appends a time in microseconds with three decimals.
func appendMicros(b []byte, d time.Duration) []byte {
	if d < 0 {
		b, d = append(b, '-'), -d
	}
	b = strconv.AppendInt(b, int64(d/time.Microsecond), 10)
	ns := int(d % time.Microsecond)
	return append(b, '.', byte('0'+ns/100), byte('0'+ns/10%10), byte('0'+ns%10))
}

// appendString appends a JSON string. Names are mostly plain; other characters are escaped.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	if plain(s) {
		return append(append(b, s...), '"')
	}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, `\u00`...)
			b = append(b, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

// plain reports whether JSON has a string as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}
