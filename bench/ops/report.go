package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// sort puts the worst ratios first, and rows without one last.
func (m *measurement) sort() {
	slices.SortStableFunc(m.rows, func(a, b row) int { return cmp.Compare(b.Ratio, a.Ratio) })
}

// shown returns the rows that are printed.
func (m *measurement) shown() []row {
	if m.worst > 0 && len(m.rows) > m.worst {
		return m.rows[:m.worst]
	}
	return m.rows
}

// summary says of the rows of one number of threads how many are how fast.
type summary struct {
	Threads  int     `json:"threads"`
	Rows     int     `json:"rows"`     // with a ratio
	Without  int     `json:"without"`  // rows that PyTorch lacks, refuses or computes otherwise
	Median   float64 `json:"median"`   // ratio
	P95      float64 `json:"p95"`      // 95 % of the rows have at most this ratio
	Slower   int     `json:"slower"`   // rows above 1.1
	Slowest  int     `json:"slowest"`  // rows above 1.5
	Category string  `json:"category"` // "" is all
}

// summaries are of all rows by threads, and of each category.
func (m *measurement) summaries() (list []summary) {
	type key struct {
		threads  int
		category string
	}
	ratios, without := map[key][]float64{}, map[key]int{}
	var keys []key
	for _, r := range m.rows {
		for _, k := range []key{{r.Threads, ""}, {r.Threads, r.Category}} {
			if ratios[k] == nil && without[k] == 0 {
				keys = append(keys, k)
			}
			if r.Ratio > 0 {
				ratios[k] = append(ratios[k], r.Ratio)
			} else {
				without[k]++
			}
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.threads, b.threads), cmp.Compare(a.category, b.category))
	})
	for _, k := range keys {
		v := ratios[k]
		slices.Sort(v)
		s := summary{Threads: k.threads, Category: k.category, Rows: len(v), Without: without[k]}
		if n := len(v); n > 0 {
			s.Median, s.P95 = v[n/2], v[min(n-1, n*95/100)]
		}
		for _, x := range v {
			if x > 1.1 {
				s.Slower++
			}
			if x > 1.5 {
				s.Slowest++
			}
		}
		list = append(list, s)
	}
	return list
}

func (m *measurement) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(map[string]any{"peer": m.version, "noise": m.noise, "trusted": m.trusted(), "missing": m.missing, "cut": m.cut, "summary": m.summaries(), "rows": m.shown()})
}

func (m *measurement) report(w io.Writer) error {
	fmt.Fprintf(w, "%s/%s, %s, %s; the least time of %d turns of %v\n", runtime.GOOS, runtime.GOARCH, runtime.Version(), m.version, m.rounds, m.turn)
	for _, n := range m.noise {
		fmt.Fprintln(w, n)
	}
	if !m.trusted() {
		fmt.Fprintln(w, "THE MACHINE IS NOT QUIET: take ratios as orders of magnitude")
	}
	if m.cut {
		fmt.Fprintf(w, "these are the rows of %v only: there are more\n", m.length)
	}
	if len(m.missing) > 0 {
		fmt.Fprintf(w, "no case on these dtypes: %v\n", m.missing)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\nthreads\tcategory\trows\twithout\tmedian\t95 %\tabove 1.1\tabove 1.5\t")
	for _, s := range m.summaries() {
		fmt.Fprintf(tw, "%d\t%s\t%d\t%d\t%.3g\t%.3g\t%d\t%d\t\n", s.Threads, cmp.Or(s.Category, "all"), s.Rows, s.Without, s.Median, s.P95, s.Slower, s.Slowest)
	}
	fmt.Fprintln(tw, "\nratio\tLoris\teager\tcompile\top\tdtype\tsize\tpass\tthreads\t")
	for _, r := range m.shown() {
		fmt.Fprintf(tw, "%.3g\t%v\t%v\t%v\t%s\t%s\t%s\t%s\t%d\t%s\n", r.Ratio, time.Duration(r.Loris), time.Duration(r.Eager), time.Duration(r.Compile), r.Op, r.DType, r.Size, r.Pass, r.Threads, r.Why)
	}
	return tw.Flush()
}
