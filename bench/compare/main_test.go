package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
)

// The test's program is a peer, too, if this variable says how it shall behave.
const behaviour = "BENCH_COMPARE_PEER"

func TestMain(m *testing.M) {
	if b := os.Getenv(behaviour); b != "" {
		pretend(b)
		return
	}
	os.Exit(m.Run())
}

// pretend answers as a peer that has chain-recorded.
func pretend(behaviour string) {
	fmt.Println("ready pretended 1.0")
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		request := strings.Fields(s.Text())
		switch {
		case request[0] == "open" && behaviour == "crash":
			fmt.Fprintln(os.Stderr, "out of memory, say")
			os.Exit(3)
		case request[0] == "open" && (behaviour == "none" || request[1] != "chain-recorded"):
			fmt.Println("none")
		case request[0] == "open" && behaviour == "error":
			fmt.Println("error ValueError: no")
		case request[0] == "open":
			x := workloads.NewData(loris.With()).Floats(4, 1)
			y := slices.Clone(x)
			for range 1000 {
				for i := range y {
					y[i] += x[i]
				}
			}
			if behaviour == "wrong" {
				y[2]++
			}
			var b bytes.Buffer
			_ = binary.Write(&b, binary.LittleEndian, y)
			if err := os.WriteFile(request[3], b.Bytes(), 0o600); err != nil {
				fmt.Println("error", err)
				continue
			}
			fmt.Println("ok")
		case request[0] == "turn" && behaviour == "late":
			return
		case request[0] == "turn":
			fmt.Println("ok 3 1000 900")
		case request[0] == "peak":
			fmt.Println("ok 4096")
		case request[0] == "limits":
			fmt.Println("ok 2e12", 1e9*float64(len(os.Args)))
		default:
			fmt.Println("ok")
		}
	}
}

func pretended(t *testing.T, name, behaves string) *peer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(behaviour, behaves)
	return &peer{name: name, line: []string{self}}
}

func measured(t *testing.T, only string, all ...*peer) *measurement {
	t.Helper()
	return measuredOn(t, loris.CPU, only, all...)
}

func measuredOn(t *testing.T, d loris.Device, only string, all ...*peer) *measurement {
	t.Helper()
	list, err := workloads.Select(only)
	if err != nil {
		t.Fatal(err)
	}
	m := &measurement{folder: t.TempDir(), progress: io.Discard,
		settings: settings{workloads: list, rounds: 2, turn: time.Millisecond, vectors: 1 << 12, device: d}}
	if err := m.measure(t.Context(), all, 1); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMeasure(t *testing.T) {
	p := pretended(t, "eager", "well")
	absent := &peer{name: "mlx", missing: "there is no such thing"}
	m := measured(t, "^chain-recorded$", p, absent)
	if len(m.wrong) > 0 || len(m.rows) != 1 {
		t.Fatalf("%v, %v", m.wrong, m.rows)
	}
	r := m.rows[0]
	// A run of 1,000 ops took the peer 1,000 ns.
	if r.Name != "chain-recorded" || r.Threads != 1 || r.Peer != "eager" || r.Best != 1 || r.Loris <= 0 || r.Ratio != r.Loris || r.Must != 0.3 || r.Unit != "ns" || r.Limit != 0 {
		t.Errorf("%+v", r)
	}
	var w strings.Builder
	if err := m.report(&w, []*peer{p, absent}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"eager: pretended 1.0", "mlx: not installed (there is no such thing)", "1 threads:", "chain-recorded", "1ns"} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no %q in\n%s", want, w.String())
		}
	}
}

// On a device that is not the host's the peers are told which, and one of them says
// what it can do.
func TestMeasureDevice(t *testing.T) {
	p := pretended(t, "eager", "well")
	m := measuredOn(t, loris.Ref, "^chain-recorded$", p)
	// Its arguments are its name, the threads and the device.
	if want := []string{"ref:0: by eager, products 2000 GFLOP/s, copies 3 GB/s"}; len(m.wrong) > 0 || !slices.Equal(m.limits, want) {
		t.Fatalf("%q, %v, want %q", m.limits, m.wrong, want)
	}
	if m = measuredOn(t, loris.Ref, "^chain-recorded$"); len(m.limits) > 0 || len(m.wrong) > 0 {
		t.Errorf("%q, %v without a peer that knows", m.limits, m.wrong)
	}
}

func TestMeasureMemory(t *testing.T) {
	m := measured(t, "^mlp-step$", pretended(t, "compile", "well"))
	if len(m.wrong) > 0 || len(m.memory) != 1 {
		t.Fatalf("%v, %+v", m.wrong, m.memory)
	}
	r := m.memory[0]
	// What is kept between the layers alone is some hundred kilobytes.
	if r.Loris < 1e5 || r.Loris > 1e8 || r.Peer != "" || r.Unit != "bytes" {
		t.Errorf("%+v", r)
	}
}

func TestWrongPeers(t *testing.T) {
	for behaves, want := range map[string]string{
		"wrong": "eager's results differ by",
		"error": "ValueError: no",
		"crash": "out of memory, say",
		"late":  "in its turn: eager ended",
		"none":  "",
	} {
		m := measured(t, "^chain-recorded$", pretended(t, "eager", behaves))
		if r := m.rows[0]; r.Peer != "" || r.Ratio != 0 || r.Loris <= 0 || len(r.Peers) > 0 {
			t.Errorf("%s: %+v", behaves, r)
		}
		if got := errors.Join(m.wrong...); want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
			t.Errorf("%s: the error is %v, want %q", behaves, got, want)
		}
	}
}

func TestPeerThatDoesNotStart(t *testing.T) {
	p := &peer{name: "jax", line: []string{filepath.Join(t.TempDir(), "nothing")}}
	m := measured(t, "^chain-compiled$", p)
	if p.line != nil || p.missing == "" || len(m.rows) != 1 {
		t.Errorf("%+v, %v", p, m.rows)
	}
}

func TestDifference(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		got, want []float32
		d         float64
	}{
		{[]float32{1, 2}, []float32{1, 2}, 0},
		{[]float32{0, 0}, []float32{0, 0}, 0},
		{[]float32{1, 2}, []float32{1, 4}, 0.5},
		{[]float32{nan, 2}, []float32{1, 2}, math.NaN()},
		{[]float32{1, 2}, []float32{1, nan}, math.NaN()},
	} {
		d, err := difference(c.got, c.want)
		if err != nil || d != c.d && !(math.IsNaN(d) && math.IsNaN(c.d)) {
			t.Errorf("%v and %v: %v, %v, want %v", c.got, c.want, d, err, c.d)
		}
	}
	if _, err := difference([]float32{1}, nil); err == nil {
		t.Error("results of different lengths do not differ")
	}
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"--python", "a", "--python", "b", "--only", "softmax", "--threads", "2,4", "--turn", "50ms", "--peers", "jax,mlx", "--device", "ref"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.pythons, []string{"a", "b"}) || !slices.Equal(s.threads, []int{2, 4}) || s.turn != 50*time.Millisecond ||
		!slices.Equal(s.peers, []string{"jax", "mlx"}) || len(s.workloads) != 1 || s.device != loris.Ref {
		t.Errorf("%+v", s)
	}
	for _, bad := range [][]string{{"x"}, {"--threads", "0"}, {"--threads", "x"}, {"--rounds", "0"}, {"--only", "zebra"}, {"--peers", "numpy"}, {"--device", "abacus"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if s, err := parse([]string{"--peers", ""}); err != nil || !slices.Equal(s.peers, []string{""}) {
		t.Errorf("no peers: %v, %v", s.peers, err)
	}
}

// TestRun runs the command without any peer.
func TestRun(t *testing.T) {
	s, err := parse([]string{"--python", filepath.Join(t.TempDir(), "no-python"), "--peers", "jax", "--only", "^chain-compiled$", "--threads", "1", "--rounds", "1", "--turn", "1ms", "--vectors", "4096", "--json"})
	if err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	if err := run(t.Context(), &w, io.Discard, s); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(w.Bytes(), &rows); err != nil || len(rows) != 1 {
		t.Fatalf("%v: %s", err, w.Bytes())
	}
	for _, key := range []string{"name", "threads", "loris", "best", "peer", "ratio", "limit", "must", "aim"} {
		if _, ok := rows[0][key]; !ok {
			t.Errorf("no %s in %v", key, rows[0])
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{formatTime(0), "-"}, {formatTime(12.345), "12.3ns"}, {formatTime(1234), "1.23µs"}, {formatTime(12_345_678), "12.3ms"},
		{formatBytes(0), "-"}, {formatBytes(2048), "2.0KiB"}, {formatBytes(3 << 20), "3.00MiB"},
		{formatRatio(0, 1), "-"}, {formatRatio(0.5, 1), "0.5"}, {formatRatio(1.5, 1), "1.5 !"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestPlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ratios.png")
	if err := plotRows(path, []row{{Name: "a", Threads: 1, Ratio: 0.5, Must: 1, Aim: 0.8}, {Name: "a", Threads: 2, Ratio: 2, Must: 1, Aim: 0.8}, {Name: "b", Threads: 1}}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(data, []byte("\x89PNG")) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if err := plotRows(path, nil); err == nil {
		t.Error("a plot of nothing")
	}
}
