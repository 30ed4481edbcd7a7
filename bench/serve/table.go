package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// numbers reads a list of positive numbers with commas between them.
func numbers(text string) (all []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number from 1 on", word)
		}
		all = append(all, n)
	}
	return all, nil
}

// appendRows adds rows to a file of JSON lines; no name is no file.
func appendRows(file string, rows []row) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	for i := range rows {
		if err = e.Encode(&rows[i]); err != nil {
			break
		}
	}
	return cmp.Or(err, f.Close())
}

// table prints rows that other runs have written.
func table(_ context.Context, args []string) error {
	var rows []row
	for _, name := range args {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		for d := json.NewDecoder(bufio.NewReader(f)); ; {
			var r row
			err := d.Decode(&r)
			if err == io.EOF {
				break
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			rows = append(rows, r)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	printTable(os.Stdout, rows)
	return nil
}

// load names the load of a row.
func (r *row) load() string {
	if r.Workers > 0 {
		return fmt.Sprintf("closed, %d", r.Workers)
	}
	return fmt.Sprintf("open, %.0f/s", r.Due)
}

// printTable prints Markdown: a line for each model and load, and for each system and protocol the rate,
// p50 and p99. Failures follow it.
func printTable(w io.Writer, rows []row) {
	var columns, lines []string
	cells := map[string]string{}
	for i := range rows {
		r := &rows[i]
		column, line := r.System+" "+r.Protocol, r.Model+" | "+r.load()
		columns, lines = appendNew(columns, column), appendNew(lines, line)
		text := fmt.Sprintf("%.0f/s %s %s", r.Rate, short(r.P50), short(r.P99))
		if r.Failed > 0 {
			text += fmt.Sprintf(" (%d failed)", r.Failed)
		}
		cells[line+column] = text
	}
	fmt.Fprintf(w, "| model | load | %s |\n|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)))
	for _, line := range lines {
		fmt.Fprintf(w, "| %s |", line)
		for _, column := range columns {
			fmt.Fprintf(w, " %s |", cmp.Or(cells[line+column], "–"))
		}
		fmt.Fprintln(w)
	}
}

func appendNew(list []string, s string) []string {
	for _, old := range list {
		if old == s {
			return list
		}
	}
	return append(list, s)
}

// short writes nanoseconds with three digits.
func short(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2fms", float64(ns)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%.0fms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
