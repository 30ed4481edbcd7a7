package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// bar is a progress bar on a terminal. It is decoration: where it cannot be drawn, work goes on.
type bar struct {
	w       io.Writer
	total   int
	what    string
	started time.Time
	drawn   time.Time // when it was last drawn
}

// barWidth is the number of characters of a bar, barPause the least time between drawings.
const (
	barWidth = 30
	barPause = 50 * time.Millisecond
)

func newBar(w io.Writer, total int) *bar {
	return &bar{w: w, total: max(total, 1), started: time.Now()}
}

// set draws the bar with what is being done and how much of it is done.
func (b *bar) set(what string, done int) {
	now := time.Now()
	if what == b.what && now.Sub(b.drawn) < barPause {
		return
	}
	b.what, b.drawn = what, now
	fmt.Fprintf(b.w, "\r\x1b[K%s", b.text(now.Sub(b.started), done))
}

// text is the bar after some time.
func (b *bar) text(spent time.Duration, done int) string {
	done = min(max(done, 0), b.total)
	full := barWidth * done / b.total
	s := fmt.Sprintf("%s %3d%% |%s%s|", b.what, 100*done/b.total, strings.Repeat("█", full), strings.Repeat(" ", barWidth-full))
	if done == 0 {
		return s
	}
	left := time.Duration(float64(spent) / float64(done) * float64(b.total-done))
	return fmt.Sprintf("%s [%v:%v]", s, spent.Round(time.Second), left.Round(time.Second))
}

// clear takes the bar away.
func (b *bar) clear() { fmt.Fprint(b.w, "\r\x1b[K") }
