//go:build linux

package restarts

import (
	"fmt"
	"strings"
)

// Counts are what processes did. Of one that was killed only Saves are known.
type Counts struct {
	Steps, Saves, Loads int64
	// Numbers are values that were read and right, Errors what the system refused, and Times how often a
	// file or the clock got another time, or the process was stopped.
	Numbers, Errors, Times int64
}

func (c *Counts) add(d Counts) {
	c.Steps += d.Steps
	c.Saves += d.Saves
	c.Loads += d.Loads
	c.Numbers += d.Numbers
	c.Errors += d.Errors
	c.Times += d.Times
}

// report is what a process has said.
type report struct {
	Counts
	found, ended         bool
	loaded, begun, saved int64
}

// parse reads it. The last line of a process that was killed may be a part of one.
func parse(out string) (r report, err error) {
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var n int
		switch what, _, _ := strings.Cut(line, " "); what {
		case "loaded":
			n, err = fmt.Sscanf(line, "loaded %d\n", &r.loaded)
			r.found = true
		case "begun":
			n, err = fmt.Sscanf(line, "begun %d\n", &r.begun)
		case "saved":
			n, err = fmt.Sscanf(line, "saved %d\n", &r.saved)
			r.Saves++
		case "steps":
			saves := int64(0)
			n, err = fmt.Sscanf(line, "steps %d saves %d loads %d numbers %d errors %d times %d\n", &r.Steps, &saves, &r.Loads, &r.Numbers, &r.Errors, &r.Times)
		case "end":
			r.ended, n = true, 1
		}
		if err != nil || n == 0 {
			return r, fmt.Errorf("it said %q: %w", line, err)
		}
	}
	return r, nil
}
