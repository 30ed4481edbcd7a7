package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// noise is how uneven the machine was, before and after.
type noise struct {
	Threads int     `json:"threads"`
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
}

// quiet is the most unevenness at which figures are to be trusted.
const quiet = 1.1

func (n noise) String() string {
	return fmt.Sprintf("%d threads: equal pieces of work took up to %.2f times the least before, %.2f after", n.Threads, n.Before, n.After)
}

// trusted reports whether the machine was quiet whenever it was looked at.
func (m *measurement) trusted() bool {
	return !slices.ContainsFunc(m.noise, func(n noise) bool { return max(n.Before, n.After) > quiet })
}

// unevenness does equal pieces of work on so many threads, for a fifth of a second, and returns what
// nine of ten of them took at most, over the least. Where something else uses the processors it is
// well above 1.
func unevenness(threads int) float64 {
	const pieces = 200
	times := make([][]float64, threads)
	var wg sync.WaitGroup
	for i := range times {
		wg.Go(func() {
			x := uint64(i) | 1
			for range pieces {
				begin := time.Now()
				for range 1 << 19 {
					x ^= x << 13
					x ^= x >> 7
					x ^= x << 17
				}
				times[i] = append(times[i], float64(time.Since(begin)))
			}
			if x == 0 {
				times[i] = nil // never: keeps the loop
			}
		})
	}
	wg.Wait()
	all := slices.Concat(times...)
	slices.Sort(all)
	return all[len(all)*9/10] / all[0]
}
