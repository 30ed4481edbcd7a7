package dist

import (
	"fmt"
	"strings"
)

// RankError says that a collective was given up. The group and those split from it cannot be used any
// more; the values of variables are those of before the step.
type RankError struct {
	Group string
	Rank  int    // which reports the error
	Op    string // ATen's name; empty if no collective was under way
	Line  string // file:line of the user's call
	// Status says where the ranks were, as far as the engine knows.
	Status string
	Err    error // why: the error of a rank that has failed, or of the context
}

// Error names the collective, the rank, the line, the reason and where the ranks were.
func (e *RankError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "dist: rank %d of group %q", e.Rank, e.Group)
	if e.Op != "" {
		fmt.Fprintf(&b, " gave up %s", e.Op)
	}
	if e.Line != "" {
		fmt.Fprintf(&b, " (at %s)", e.Line)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Status != "" {
		b.WriteString("; " + e.Status)
	}
	return b.String()
}

// Unwrap returns why.
func (e *RankError) Unwrap() error { return e.Err }

// Use is a collective of one rank, as MismatchError shows it.
type Use struct {
	Rank int
	Text string // the op with its shapes and attributes; empty if the rank has none in this place
	Line string // file:line of the user's call
}

// String says what the rank has there.
func (u Use) String() string {
	if u.Text == "" {
		return fmt.Sprintf("rank %d has no collective there", u.Rank)
	}
	if u.Line == "" {
		return fmt.Sprintf("rank %d has %s", u.Rank, u.Text)
	}
	return fmt.Sprintf("rank %d has %s (at %s)", u.Rank, u.Text, u.Line)
}

// MismatchError says that ranks were about to run different collectives. All ranks get it, nothing
// was run, and the group can still be used; but for what is sent and not what is received, which the
// receiver finds, and after which the group cannot be used.
type MismatchError struct {
	Group string
	Index int    // of the first collective of the run that differs, from 0
	Uses  [2]Use // those of two ranks

	oneSided bool // the other rank does not have the error
}

// Error shows what two ranks would have run.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("dist: the ranks of group %q disagree about collective %d of the run: %v, %v", e.Group, e.Index, e.Uses[0], e.Uses[1])
}
