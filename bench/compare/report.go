package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
)

// report prints the tables.
func (m *measurement) report(w io.Writer, all []*peer) error {
	fmt.Fprintf(w, "%s, %s/%s, %s, Loris %s\n", processor(), runtime.GOOS, runtime.GOARCH, runtime.Version(), revision())
	for _, p := range all {
		if p.version != "" {
			fmt.Fprintf(w, "%s: %s\n", p.name, p.version)
		} else {
			fmt.Fprintf(w, "%s: not installed (%s)\n", p.name, p.missing)
		}
	}
	for _, l := range m.limits {
		fmt.Fprintln(w, l)
	}
	fmt.Fprintf(w, "Medians of %d turns of %v; chains: of an op. Ratios: of Loris to the best peer, and to the machine's limit.\n", m.rounds, m.turn)
	if m.device != loris.CPU {
		fmt.Fprintf(w, "Runs are waited for %d at a time, but where each must be seen by itself.\n", workloads.AheadGPU)
	}
	fmt.Fprintln(w)
	if err := table(w, all, m.rows, formatTime); err != nil {
		return err
	}
	if len(m.memory) > 0 {
		fmt.Fprintln(w, "\nPeak of the tensors' memory in a run, beyond what stays:")
		return table(w, all, m.memory, formatBytes)
	}
	return nil
}

func table(w io.Writer, all []*peer, rows []row, format func(float64) string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "workload\tthreads\tLoris\t")
	for _, p := range all {
		fmt.Fprintf(tw, "%s\t", p.name)
	}
	fmt.Fprintln(tw, "best\tratio\tto limit\tmust\taim\tdifference\tallowed\t")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%d\t%s\t", r.Name, r.Threads, format(r.Loris))
		for _, p := range all {
			fmt.Fprintf(tw, "%s\t", format(r.Peers[p.name]))
		}
		peer := r.Peer
		if peer == "" {
			peer = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%g\t%g\t%.1e\t%.1e\t\n", peer, formatRatio(r.Ratio, r.Must), formatRatio(r.Limit, 0), r.Must, r.Aim, r.Difference, r.Tolerance)
	}
	return tw.Flush()
}

// formatRatio marks a ratio above the limit, unless the limit is 0.
func formatRatio(v, most float64) string {
	switch {
	case v == 0:
		return "-"
	case most > 0 && v > most:
		return fmt.Sprintf("%.3g !", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// formatTime shows nanoseconds with about three digits.
func formatTime(ns float64) string {
	if ns == 0 {
		return "-"
	}
	if ns < 100 {
		return fmt.Sprintf("%.3gns", ns)
	}
	d := time.Duration(ns)
	for unit := time.Duration(10); ; unit *= 10 {
		if d < 100*unit {
			return d.Round(unit / 10).String()
		}
	}
}

func formatBytes(n float64) string {
	switch {
	case n == 0:
		return "-"
	case n < 1<<20:
		return fmt.Sprintf("%.1fKiB", n/(1<<10))
	}
	return fmt.Sprintf("%.2fMiB", n/(1<<20))
}

// processor returns the name of the processor, where the system tells it.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
				return fmt.Sprintf("%s, %d processors", strings.TrimSpace(value), runtime.NumCPU())
			}
		}
	}
	return fmt.Sprintf("%d processors", runtime.NumCPU())
}

// revision returns what this program was built from.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}
