package dist

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/atomicfile"
	"github.com/loris-ml/loris/internal/tracefile"
)

// WithTrace has rank 0 write a trace of all ranks to a file, in the format of Chrome's tracing, which
// https://ui.perfetto.dev shows: what sessions of the group do on each rank, at the times of rank 0. All
// ranks give it. The file is written by Close; meanwhile each rank keeps its events in a temporary file.
// For Init the variable LORIS_TRACE does the same.
func WithTrace(path string) Option {
	return func(w *world) {
		if path != "" {
			w.trace = &trace{path: path, base: time.Now()}
		}
	}
}

// trace is what a rank keeps for the trace of all ranks. Times are since base.
type trace struct {
	path     string
	base     time.Time
	begin    reading
	sessions []*tracedSession // guarded by world.mu
}

// tracedSession is the trace of one session.
type tracedSession struct {
	file  *os.File
	start time.Duration
	stop  func() error
}

// reading is a comparison of clocks: when this rank's was at At, rank 0's was Ahead of it.
type reading struct{ At, Ahead time.Duration }

// traceTag is an engine's tag that no send has.
const traceTag = 2*maxTag + 2

// readings is how often clocks are compared; the quickest answer counts.
const readings = 8

// compareClocks compares this rank's clock with that of rank 0. All ranks call it.
func (t *trace) compareClocks(ctx context.Context, e Engine) (best reading, err error) {
	now := func() time.Duration { return time.Since(t.base) }
	word := make([]byte, 8)
	if e.Rank() == 0 {
		for r := 1; r < e.Size(); r++ {
			for range readings {
				if err := e.Recv(ctx, word, r, traceTag); err != nil {
					return best, err
				}
				binary.LittleEndian.PutUint64(word, uint64(now()))
				if err := e.Send(ctx, word, r, traceTag); err != nil {
					return best, err
				}
			}
		}
		return reading{At: now()}, nil
	}
	for quickest, i := time.Duration(0), 0; i < readings; i++ {
		asked := now()
		if err := e.Send(ctx, word, 0, traceTag); err != nil {
			return best, err
		}
		if err := e.Recv(ctx, word, 0, traceTag); err != nil {
			return best, err
		}
		took := now() - asked
		if i == 0 || took < quickest {
			quickest = took
			best.At = asked + took/2
			best.Ahead = time.Duration(binary.LittleEndian.Uint64(word)) - best.At
		}
	}
	return best, nil
}

// add traces a session until finish.
func (t *trace) add(s *loris.Session) error {
	f, err := os.CreateTemp("", "loris-trace-*.json")
	if err != nil {
		return err
	}
	_ = os.Remove(f.Name()) // the memory goes with the process; where open files stay, finish removes it
	x := &tracedSession{file: f, start: time.Since(t.base)}
	if x.stop, err = s.Trace(f); err != nil {
		return errors.Join(err, x.remove())
	}
	t.sessions = append(t.sessions, x)
	return nil
}

func (x *tracedSession) remove() error {
	err := x.file.Close()
	_ = os.Remove(x.file.Name())
	return err
}

// traced is what a rank tells rank 0 before the bytes of its traces.
type traced struct {
	Begin, End reading
	Starts     []time.Duration // by session
	Bytes      []int64
}

// finish ends the traces of this rank and has rank 0 write that of all. All ranks call it. What goes wrong
// on a rank beside the exchange is an error of that rank alone.
func (t *trace) finish(ctx context.Context, g *Group) error {
	mine := traced{Begin: t.begin}
	var failed error
	for _, x := range t.sessions {
		failed = errors.Join(failed, x.stop())
		n, err := x.file.Seek(0, io.SeekEnd)
		_, again := x.file.Seek(0, io.SeekStart)
		failed = errors.Join(failed, err, again)
		mine.Starts, mine.Bytes = append(mine.Starts, x.start), append(mine.Bytes, n)
	}
	err := g.together(ctx, "trace", func(ctx context.Context) (err error) {
		if mine.End, err = t.compareClocks(ctx, g.engine); err != nil {
			return err
		}
		if g.Rank() > 0 {
			return t.send(ctx, g.engine, mine)
		}
		failed = errors.Join(failed, t.write(ctx, g.engine, mine))
		return nil
	})
	for _, x := range t.sessions {
		_ = x.remove()
	}
	return errors.Join(failed, err)
}

// send sends this rank's traces to rank 0.
func (t *trace) send(ctx context.Context, e Engine, mine traced) error {
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	size := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	if err := errors.Join(e.Send(ctx, size, 0, traceTag), e.Send(ctx, text, 0, traceTag)); err != nil {
		return err
	}
	piece := make([]byte, pieceBytes)
	for i, x := range t.sessions {
		for left := mine.Bytes[i]; left > 0; left -= int64(len(piece)) {
			piece = piece[:min(left, pieceBytes)]
			_, read := io.ReadFull(x.file, piece) // what cannot be read is sent as something else, and told here
			if err := errors.Join(e.Send(ctx, piece, 0, traceTag), read); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes the trace of all ranks. What they send is received also where no file can be made.
func (t *trace) write(ctx context.Context, e Engine, mine traced) error {
	begun := false
	collect := func(f io.Writer) error {
		begun = true
		merged := tracefile.NewMerger(f)
		for i, x := range t.sessions {
			merged.Add(x.file, 0, i, "rank 0", mine.shift(i))
		}
		for r := 1; r < e.Size(); r++ {
			if err := t.receive(ctx, e, r, merged); err != nil {
				return err
			}
		}
		return merged.Close()
	}
	err := atomicfile.Write(t.path, collect)
	if !begun {
		err = errors.Join(err, collect(io.Discard))
	}
	return err
}

// receive adds the traces of another rank. It takes all that the rank sends, also what cannot be read.
func (t *trace) receive(ctx context.Context, e Engine, rank int, merged *tracefile.Merger) error {
	size := make([]byte, 8)
	if err := e.Recv(ctx, size, rank, traceTag); err != nil {
		return err
	}
	text := make([]byte, binary.LittleEndian.Uint64(size))
	if err := e.Recv(ctx, text, rank, traceTag); err != nil {
		return err
	}
	var its traced
	if err := json.Unmarshal(text, &its); err != nil {
		return fmt.Errorf("rank %d sent what describes no trace: %w", rank, err)
	}
	for i, n := range its.Bytes {
		r := &receiver{ctx: ctx, e: e, rank: rank, left: n}
		merged.Add(r, rank, i, fmt.Sprintf("rank %d", rank), its.shift(i))
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
	}
	return nil
}

// receiver reads what a rank sends.
type receiver struct {
	ctx   context.Context
	e     Engine
	rank  int
	left  int64 // bytes to receive
	piece bytes.Reader
}

// Read implements io.Reader.
func (r *receiver) Read(b []byte) (int, error) {
	if r.piece.Len() == 0 && r.left > 0 {
		piece := make([]byte, min(r.left, pieceBytes))
		if err := r.e.Recv(r.ctx, piece, r.rank, traceTag); err != nil {
			return 0, err
		}
		r.left -= int64(len(piece))
		r.piece.Reset(piece)
	}
	return r.piece.Read(b)
}

// shift returns what makes times of a session's trace times of rank 0: between the two comparisons clocks
// are taken to drift apart evenly.
func (t *traced) shift(session int) func(time.Duration) time.Duration {
	return func(at time.Duration) time.Duration {
		at += t.Starts[session]
		drift := 0.0
		if span := t.End.At - t.Begin.At; span > 0 {
			drift = float64(t.End.Ahead-t.Begin.Ahead) / float64(span)
		}
		return at + t.Begin.Ahead + time.Duration(drift*float64(at-t.Begin.At))
	}
}
