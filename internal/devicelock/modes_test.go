package devicelock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Which work may be beside which, and that nobody who could join the holders goes before an
// earlier one who cannot.
func TestModes(t *testing.T) {
	type call struct {
		owner string
		mode  Mode
	}
	tests := []struct {
		name  string
		calls []call // each holds the lock for a second
		want  []int  // the second in which each begins
	}{
		{"alone", []call{{"a", Alone}, {"b", Alone}}, []int{0, 1}},
		{"readers", []call{{"a", Reads}, {"b", Reads}, {"c", Reads}}, []int{0, 0, 0}},
		{"those that overwrite their own", []call{{"a", Overwrites}, {"b", Overwrites}}, []int{0, 0}},
		{"apart from all", []call{{"a", Apart}, {"b", Reads}, {"c", Apart}, {"d", Reads}}, []int{0, 0, 0, 0}},
		{"apart from what overwrites", []call{{"a", Overwrites}, {"b", Apart}}, []int{0, 0}},
		{"readers and what overwrites", []call{{"a", Reads}, {"b", Overwrites}}, []int{0, 1}},
		{"alone and apart", []call{{"a", Apart}, {"b", Alone}}, []int{0, 1}},
		{"of one owner", []call{{"a", Reads}, {"a", Reads}, {"b", Reads}}, []int{0, 1, 1}},
		{"behind one that waits", []call{{"a", Reads}, {"b", Overwrites}, {"c", Reads}, {"d", Apart}}, []int{0, 1, 2, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := NewLocker("cpu:0")
				begin := time.Now()
				got := make([]int, len(tt.calls))
				for i, c := range tt.calls {
					go func() {
						if err := l.LockFor(t.Context(), c.owner, c.mode, 0); err != nil {
							t.Error(err)
						}
						got[i] = int(time.Since(begin) / time.Second)
						time.Sleep(time.Second)
						l.Unlock(c.owner, nil)
					}()
					synctest.Wait()
				}
				if err := l.Barrier(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if !slices.Equal(got, tt.want) {
					t.Errorf("they begin in seconds %v, want %v", got, tt.want)
				}
				if s := l.Stats(); s.Locks != uint64(len(tt.calls)) {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

// One that gives up lets those behind it join the holders.
func TestCancelledWaiterLetsOthersJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLocker("cpu:0")
		if err := l.LockFor(t.Context(), "a", Reads, 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if err := l.LockFor(ctx, "b", Overwrites, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}()
		synctest.Wait()
		joined := false
		go func() {
			if err := l.LockFor(t.Context(), "c", Reads, 0); err != nil {
				t.Error(err)
			}
			joined = true
		}()
		synctest.Wait()
		if joined {
			t.Error("a reader has passed one that waits")
		}
		cancel()
		synctest.Wait()
		if !joined {
			t.Error("a reader waits for one that has given up")
		}
	})
}
