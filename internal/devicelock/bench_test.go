package devicelock_test

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/internal/devicelock"
)

// BenchmarkBeside is a Lock and an Unlock beside other holders: forks that wait for a processor hold
// the lock.
func BenchmarkBeside(b *testing.B) {
	for _, holders := range []int{0, 3, 63} {
		b.Run(fmt.Sprint(holders), func(b *testing.B) {
			l := devicelock.NewLocker("a")
			for i := range holders {
				if err := l.LockFor(b.Context(), &[1]int{i}, devicelock.Apart, 0); err != nil {
					b.Fatal(err)
				}
			}
			owner := new(int)
			for b.Loop() {
				if err := l.LockFor(b.Context(), owner, devicelock.Apart, 0); err != nil {
					b.Fatal(err)
				}
				l.Unlock(owner, nil)
			}
		})
	}
}
