package loris

import "io"

// Trace writes what the session and its forks do to w, from now on until stop is called, in the
// format of Chrome's tracing, which https://ui.perfetto.dev shows. There is a track for each
// session with the stages of its syncs (recording, collecting, compiling, uploading numbers,
// waiting for devices and for reads), one for each device with the computations it runs, one with
// the kernels of each computation and the line that recorded them, and one for the compiler. Where a
// goroutine has a session of its own, its track is the goroutine's.
//
// Events are written on another goroutine and never waited for; stop returns the first error of
// writing, or how many events came too fast to be written. A session that is traced already is an
// error. While nothing is traced this costs an atomic load in each stage.
func (s *Session) Trace(w io.Writer) (stop func() error, err error) { return s.ex().TraceEvents(w) }
