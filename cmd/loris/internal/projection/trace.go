package projection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loris-ml/loris/internal/ir"
)

// Step is a computation with collectives, as a rank has run it several times.
type Step struct {
	Hash string // of its graph
	Runs int
	// Measured is the time of the run with the median time of kernels, whose schedule Items are; Between is
	// its time between kernels.
	Measured, Between time.Duration
	Items             []Item
}

// event is an event of a trace; times are in µs.
type event struct {
	Phase    string
	Process  int
	Name     string
	Category string
	Start    float64
	Duration float64
	Detail   string
}

// run is one run of a computation.
type run struct {
	event
	kernels, transfers []event
	busy               float64 // of kernels that compute
}

// Read reads a trace of package dist or of a session, and returns the computations with collectives of the
// first process, those that took longest in all first.
func Read(r io.Reader) ([]Step, error) {
	runs, err := readRuns(r)
	if err != nil {
		return nil, err
	}
	byHash := map[string][]*run{}
	for _, x := range runs {
		if len(x.transfers) > 0 {
			byHash[x.Detail] = append(byHash[x.Detail], x)
		}
	}
	var out []Step
	for hash, list := range byHash {
		slices.SortFunc(list, func(a, b *run) int { return cmp.Compare(a.busy, b.busy) })
		s, err := list[len(list)/2].step()
		if err != nil {
			return nil, err
		}
		s.Hash, s.Runs = hash, len(list)
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Step) int {
		return cmp.Or(cmp.Compare(time.Duration(b.Runs)*b.Measured, time.Duration(a.Runs)*a.Measured), strings.Compare(a.Hash, b.Hash))
	})
	return out, nil
}

// readRuns reads the runs of the first process with what happened in each.
func readRuns(r io.Reader) ([]*run, error) {
	d := json.NewDecoder(r)
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("no trace: %w", err)
	}
	var all []event
	for d.More() {
		var e struct {
			Ph, Name, Cat string
			PID           int
			Ts, Dur       float64
			Args          struct{ Detail string }
		}
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("no trace: %w", err)
		}
		if e.Ph == "X" && e.PID <= 1 { // a merged trace counts processes from 0, that of a session is 1
			all = append(all, event{e.Ph, e.PID, e.Name, e.Cat, e.Ts, e.Dur, e.Args.Detail})
		}
	}
	first := 1
	for _, e := range all {
		first = min(first, e.Process)
	}
	all = slices.DeleteFunc(all, func(e event) bool { return e.Process != first })
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.Start, b.Start) })
	var runs []*run
	for _, e := range all {
		if e.Category == "run" && e.Name == "run" {
			runs = append(runs, &run{event: e})
		}
	}
	for _, e := range all {
		i, _ := slices.BinarySearchFunc(runs, e.Start, func(x *run, at float64) int { return cmp.Compare(x.Start, at) })
		if i == len(runs) || runs[i].Start > e.Start {
			i--
		}
		if i < 0 || e.Start > runs[i].Start+runs[i].Duration {
			continue
		}
		switch x := runs[i]; {
		case e.Category == "kernel":
			x.kernels = append(x.kernels, e)
		case e.Category == "collective" && e.Name != "agreement":
			x.transfers = append(x.transfers, e)
		}
	}
	for _, x := range runs {
		for _, k := range x.kernels {
			if op, _ := transferOf(k.Name); op == "" {
				x.busy += k.Duration
			}
		}
	}
	return runs, nil
}

// transferOf returns the collective that a kernel of the trace begins or waits for; "" for none.
func transferOf(kernel string) (op string, wait bool) {
	op, wait = strings.CutPrefix(kernel, "wait ")
	if o, ok := ir.Lookup(op); !ok || o.Spec().Category != ir.Collective {
		return "", false
	}
	return op, wait
}

// step returns the schedule of a run. Transfers begin in the order of their kernels. Of several that wait,
// of one op and line, the first that has begun is taken.
func (x *run) step() (Step, error) {
	s := Step{Measured: micros(x.Duration), Between: micros(x.Duration)}
	type waiting struct {
		line string
		*Transfer
	}
	var open []waiting
	for _, k := range x.kernels {
		s.Between -= micros(k.Duration)
		op, wait := transferOf(k.Name)
		switch {
		case op == "":
			s.Items = append(s.Items, Item{Kernel: micros(k.Duration)})
		case wait:
			i := slices.IndexFunc(open, func(w waiting) bool { return w.Op == op && w.line == k.Detail })
			if i < 0 {
				return s, fmt.Errorf("the trace has no begin of %s at %s", op, k.Detail)
			}
			s.Items = append(s.Items, Item{Wait: open[i].Transfer})
			open = slices.Delete(open, i, i+1)
		default:
			i := slices.IndexFunc(x.transfers, func(e event) bool { return strings.HasPrefix(e.Name, op+"(") })
			if i < 0 {
				return s, fmt.Errorf("the trace has no transfer of %s at %s", op, k.Detail)
			}
			t, err := parse(x.transfers[i].Name)
			if err != nil {
				return s, err
			}
			x.transfers = slices.Delete(x.transfers, i, i+1)
			s.Items = append(s.Items, Item{Begin: t})
			open = append(open, waiting{k.Detail, t})
		}
	}
	s.Between = max(s.Between, 0)
	return s, nil
}

func micros(x float64) time.Duration { return time.Duration(x * float64(time.Microsecond)) }

// transferText is a collective as traces name it: op, dtype, dimensions, and the number of ranks where it
// is part of the shape.
var transferText = regexp.MustCompile(`^(\w+)\((\w+)\[([\d,]*)\](?:.* (\d+) ranks)?`)

// parse reads the name of a transfer.
func parse(text string) (*Transfer, error) {
	m := transferText.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("the trace has a transfer %q, which is none", text)
	}
	d, err := ir.ParseDType(m[2])
	if err != nil {
		return nil, fmt.Errorf("the trace has a transfer %q: %w", text, err)
	}
	t := &Transfer{Op: m[1], Bytes: d.Size()}
	for n := range strings.SplitSeq(m[3], ",") {
		if n == "" {
			continue
		}
		k, err := strconv.Atoi(n)
		if err != nil {
			return nil, err
		}
		t.Bytes *= k
	}
	if t.Op == "all_gather" {
		if ranks, err := strconv.Atoi(m[4]); err == nil {
			t.Bytes *= ranks
		}
	}
	return t, nil
}
