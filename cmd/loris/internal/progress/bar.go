// Package progress draws how far work has come.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Bar is a progress bar on a terminal. It is decoration: where it cannot be drawn, work goes on.
type Bar struct {
	w       io.Writer
	total   int
	what    string
	started time.Time
	drawn   time.Time // when it was last drawn
}

// OnTerminal reports whether what is written to w is on a terminal.
func OnTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// barWidth is the number of characters of a bar, barPause the least time between drawings.
const (
	barWidth = 30
	barPause = 50 * time.Millisecond
)

// New returns a bar of work of total parts.
func New(w io.Writer, total int) *Bar {
	return &Bar{w: w, total: max(total, 1), started: time.Now()}
}

// Set draws the bar with what is being done and how much of it is done.
func (b *Bar) Set(what string, done int) {
	now := time.Now()
	if what == b.what && now.Sub(b.drawn) < barPause {
		return
	}
	b.what, b.drawn = what, now
	fmt.Fprintf(b.w, "\r\x1b[K%s", b.text(now.Sub(b.started), done))
}

// text is the bar after some time.
func (b *Bar) text(spent time.Duration, done int) string {
	done = min(max(done, 0), b.total)
	full := barWidth * done / b.total
	s := fmt.Sprintf("%s %3d%% |%s%s|", b.what, 100*done/b.total, strings.Repeat("█", full), strings.Repeat(" ", barWidth-full))
	if done == 0 {
		return s
	}
	left := time.Duration(float64(spent) / float64(done) * float64(b.total-done))
	return fmt.Sprintf("%s [%v:%v]", s, spent.Round(time.Second), left.Round(time.Second))
}

// Clear takes the bar away.
func (b *Bar) Clear() { fmt.Fprint(b.w, "\r\x1b[K") }
