package projection

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// network has numbers that are easy to compute with: 1 µs a message, 1 byte a nanosecond.
var network = Network{Alpha: time.Microsecond, Beta: 1e9}

func TestCost(t *testing.T) {
	library := network
	library.Library = true
	const mib = 1 << 20
	for _, c := range []struct {
		w    Network
		t    Transfer
		n    int
		want time.Duration
	}{
		{network, Transfer{"all_reduce", mib}, 1, 0},
		{network, Transfer{"all_reduce", 8}, 2, time.Microsecond + 8},
		{network, Transfer{"all_reduce", 8}, 64, 6*time.Microsecond + 63*8},
		{network, Transfer{"all_reduce", 2 * mib}, 2, 2*time.Microsecond + 2*mib},
		{network, Transfer{"all_reduce", 4 * mib}, 4, 2*(3+2)*time.Microsecond + 6*mib},
		{library, Transfer{"all_reduce", 4 * mib}, 4, 4*time.Microsecond + 6*mib},
		{network, Transfer{"all_gather", 2 * mib}, 2, time.Microsecond + mib},
		{network, Transfer{"reduce_scatter", 2 * mib}, 4, 3*time.Microsecond + 3*mib/2},
		{network, Transfer{"broadcast", mib}, 5, 3*time.Microsecond + 3*mib},
		{network, Transfer{"send", mib}, 5, time.Microsecond + mib},
	} {
		if got := c.w.Cost(&c.t, c.n); math.Abs(float64(got-c.want)) > 1 {
			t.Errorf("%v on %d ranks: %v, want %v", c.t, c.n, got, c.want)
		}
	}
}

// trace is a run of two kernels with a sum between them: it begins after the first kernel and is awaited
// after the second.
const trace = `[
{"ph":"M","pid":0,"name":"process_name","args":{"name":"rank 0"}},
{"ph":"X","pid":0,"tid":1,"name":"run","cat":"run","ts":0,"dur":1000,"args":{"detail":"abc"}},
{"ph":"X","pid":0,"tid":2,"name":"matmul","cat":"kernel","ts":0,"dur":100,"args":{"detail":"a.go:1"}},
{"ph":"X","pid":0,"tid":2,"name":"all_reduce","cat":"kernel","ts":100,"dur":10,"args":{"detail":"a.go:2"}},
{"ph":"X","pid":0,"tid":3,"name":"all_reduce(f32[524288], sum)","cat":"collective","ts":105,"dur":500,"args":{"detail":"a.go:2"}},
{"ph":"X","pid":0,"tid":2,"name":"matmul","cat":"kernel","ts":110,"dur":200,"args":{"detail":"a.go:3"}},
{"ph":"X","pid":0,"tid":2,"name":"wait all_reduce","cat":"kernel","ts":310,"dur":600,"args":{"detail":"a.go:2"}},
{"ph":"X","pid":1,"tid":1,"name":"run","cat":"run","ts":0,"dur":7000,"args":{"detail":"abc"}},
{"ph":"X","pid":0,"tid":1,"name":"run","cat":"run","ts":2000,"dur":1000,"args":{"detail":"no transfers"}}
]`

func TestProject(t *testing.T) {
	steps, err := Read(strings.NewReader(trace))
	if err != nil || len(steps) != 1 {
		t.Fatalf("%v, %v", steps, err)
	}
	s := steps[0]
	if s.Hash != "abc" || s.Runs != 1 || s.Measured != time.Millisecond || s.Between != 90*time.Microsecond || len(s.Items) != 4 {
		t.Errorf("%+v", s)
	}
	const bytes = 2 << 20
	got := network.Project(s.Items, s.Between, 2)
	agreed := time.Microsecond + 16
	sum := 2*time.Microsecond + bytes
	want := Times{
		Step:     agreed + 100*time.Microsecond + sum + 90*time.Microsecond,
		Compute:  390 * time.Microsecond,
		Transfer: sum,
		Waited:   agreed + sum - 200*time.Microsecond,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if one := network.Project(s.Items, s.Between, 1); one.Step != 390*time.Microsecond || one.Waited != 0 {
		t.Errorf("on one rank: %+v", one)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":  "",
		"no JSON":  "[{]",
		"no begin": strings.Replace(trace, `"name":"all_reduce","cat":"kernel"`, `"name":"relu","cat":"kernel"`, 1),
		"no dtype": strings.Replace(trace, "f32[", "f33[", 1),
		"no sum":   strings.Replace(trace, "all_reduce(f32[524288], sum)", "broadcast(f32[524288], root 0)", 1),
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}
