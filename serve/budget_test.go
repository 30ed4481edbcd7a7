package serve

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// programBytes is the size of the files that writeProgram writes for a factor of one digit.
const programBytes = 92

// Models that do not fit beside each other take turns: the one that was used least recently goes, and
// comes back with the next request. All of them are ready and described meanwhile.
func TestMemoryBudget(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"a", "b", "c"} {
		writeProgram(t, dir, name, 1, fmt.Sprint(i+2))
	}
	hs := start(t, Options{Models: dir, MemoryBudget: 2 * programBytes})
	idle := func(want string) {
		t.Helper()
		got := ""
		_, text := ask(t, "POST", hs.URL+"/v2/repository/index", `{"ready":true}`)
		_, metrics := ask(t, "GET", hs.URL+"/metrics", "")
		for _, name := range []string{"a", "b", "c"} {
			said := strings.Contains(text, fmt.Sprintf(`{"name":%q,"version":"1","state":"READY","reason":"idle: unloaded`, name))
			measured := strings.Contains(metrics, fmt.Sprintf("loris_model_memory_bytes{model=%q,version=\"1\"} 0\n", name)) &&
				strings.Contains(metrics, fmt.Sprintf("loris_model_idle{model=%q,version=\"1\"} 1\n", name))
			if said != measured {
				t.Errorf("%s: the index and the metrics differ:\n%s\n%s", name, text, metrics)
			}
			if said {
				got += name
			}
		}
		if got != want {
			t.Errorf("idle are %q, want %q", got, want)
		}
	}
	idle("a")
	if code, text := ask(t, "GET", hs.URL+"/v2/health/ready", ""); code != 200 {
		t.Error(code, text)
	}
	for _, path := range []string{"", "/ready", "/config", "/stats", "/versions/1/ready"} { // which load nothing
		if code, text := ask(t, "GET", hs.URL+"/v2/models/a"+path, ""); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	idle("a")
	for _, c := range []struct{ model, want, idle string }{{"b", "3", "a"}, {"a", "2", "c"}, {"a", "2", "c"}, {"c", "4", "b"}, {"b", "3", "a"}, {"a", "2", "c"}} {
		if got := answerOf(t, hs.URL, c.model); got != c.want {
			t.Errorf("%s: %s, want %s", c.model, got, c.want)
		}
		idle(c.idle)
	}
	_, metrics := ask(t, "GET", hs.URL+"/metrics", "")
	for _, want := range []string{
		`loris_requests_succeeded_total{model="a",version="1"} 3`, `loris_model_idle_unloads_total{model="a",version="1"} 2`, `loris_memory_budget_bytes 184`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}

// Requests for more models than fit, from many clients at once, all get their answers.
func TestMemoryBudgetUnderLoad(t *testing.T) {
	dir := t.TempDir()
	names := []string{"a", "b", "c", "d"}
	for i, name := range names {
		writeProgram(t, dir, name, 1, fmt.Sprint(i+2))
	}
	hs := start(t, Options{Models: dir, MemoryBudget: 2 * programBytes})
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			for i := range 12 {
				at := (worker + i*(worker+1)) % len(names)
				if got, want := answerOf(t, hs.URL, names[at]), fmt.Sprint(at+2); got != want {
					t.Errorf("%s: %s, want %s", names[at], got, want)
				}
			}
		})
	}
	wg.Wait()
}

// What cannot be had again stays: weights that a client has sent. A model that never fits says so.
func TestMemoryBudgetKeepsWeights(t *testing.T) {
	model, first := affineModel(t)
	other := filepath.Join(t.TempDir(), "other.lir")
	writeFile(t, other, affine)
	o := Options{
		Files: []string{"m=" + model, "other=" + other}, Weights: []string{first, first}, MemoryBudget: int64(len(affine)) * 2,
		AllowWeightUpdate: true, Allow: []string{"weights", "model-repository"}, LoadWait: 50 * time.Millisecond, KeepGoing: true,
	}
	hs := start(t, o)
	infer := func(name string) (int, string) {
		return ask(t, "POST", hs.URL+"/v2/models/"+name+"/infer", onesBody)
	}
	if code, text := infer("m"); code != http.StatusOK { // other is idle now
		t.Fatal(code, text)
	}
	if code, text := ask(t, "POST", hs.URL+"/v2/models/m/weights?weight_version=four", string(weightsFile(t, 2)), "Content-Type", "application/octet-stream"); code != 400 { // without "one", and not partial
		t.Fatal(code, text)
	}
	if code, text := ask(t, "POST", hs.URL+"/v2/models/m/weights?weight_version=four&partial=true", string(weightsFile(t, 2)), "Content-Type", "application/octet-stream"); code != 200 {
		t.Fatal(code, text)
	}
	if code, text := infer("other"); code != http.StatusServiceUnavailable || !strings.Contains(text, "m version 1 (has a state or weights that are in no file)") {
		t.Error(code, text)
	}
	if code, text := infer("m"); code != http.StatusOK || !strings.Contains(text, `"data":[5,5]`) {
		t.Error(code, text)
	}
	writeFile(t, other, affine+strings.Repeat("\n", 3*len(affine)))
	if code, text := infer("other"); code != http.StatusServiceUnavailable || !strings.Contains(text, "more than the memory budget of") {
		t.Error(code, text)
	}
	if got := index(t, hs.URL); got != "m/1 READY, other/1 UNAVAILABLE" {
		t.Error(got)
	}
}

// A model that is broken on disk while it is idle answers with the reason, and comes back when it is
// mended.
func TestMemoryBudgetBroken(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "a", 1, "2")
	writeProgram(t, dir, "b", 1, "3")
	hs := start(t, Options{Models: dir, MemoryBudget: programBytes})
	writeProgram(t, dir, "a", 1, "x(")
	if got := answerOf(t, hs.URL, "a"); !strings.HasPrefix(got, "503") || !strings.Contains(got, "cannot be loaded again") {
		t.Error(got)
	}
	if got := index(t, hs.URL); got != "a/1 UNAVAILABLE, b/1 READY" {
		t.Error(got)
	}
	writeProgram(t, dir, "a", 1, "5")
	if got := answerOf(t, hs.URL, "a"); got != "5" {
		t.Error(got)
	}
}

// Several versions of a model take turns like models do, and unloading takes idle ones away, too.
func TestMemoryBudgetVersions(t *testing.T) {
	dir := t.TempDir()
	for n := 1; n <= 3; n++ {
		writeProgram(t, dir, "m", n, fmt.Sprint(n+1))
	}
	writeFile(t, filepath.Join(dir, "m", "config.pbtxt"), `version_policy { all {} }`)
	s, err := New(Options{Models: dir, MemoryBudget: programBytes, Allow: []string{"model-repository"}})
	if err != nil {
		t.Fatal(err)
	}
	hs := startServer(t, s)
	for _, n := range []int{1, 3, 2, 2, 1} {
		if got := answerOf(t, hs.URL, fmt.Sprintf("m/versions/%d", n)); got != fmt.Sprint(n+1) {
			t.Errorf("version %d: %s", n, got)
		}
	}
	if code, text := ask(t, "POST", hs.URL+"/v2/repository/models/m/unload", ""); code != 200 {
		t.Error(code, text)
	}
	if got := answerOf(t, hs.URL, "m"); !strings.HasPrefix(got, "404") {
		t.Error(got)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
