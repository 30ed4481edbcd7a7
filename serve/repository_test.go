package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
)

func index(t *testing.T, url string) string {
	t.Helper()
	code, text := ask(t, "POST", url+"/v2/repository/index", "")
	var all []inference.IndexEntry
	if err := json.Unmarshal([]byte(text), &all); err != nil || code != 200 {
		t.Fatal(code, text, err)
	}
	var words []string
	for _, e := range all {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s/%s %s", e.Name, e.Version, e.State)))
	}
	return strings.Join(words, ", ")
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// answerOf returns what a model multiplies 1 by.
func answerOf(t *testing.T, url, path string) string {
	t.Helper()
	code, text := ask(t, "POST", url+"/v2/models/"+path+"/infer", oneRow)
	if code != 200 {
		return fmt.Sprint(code, " ", text)
	}
	_, data, _ := strings.Cut(text, `"data":[`)
	return strings.SplitN(data, ",", 2)[0]
}

// Versions come and go by requests; what fails changes nothing that is served.
func TestRepository(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	writeProgram(t, dir, "other", 1, "7")
	hs := start(t, Options{Models: dir, Mode: ModeExplicit, Load: []string{"m"}, Allow: []string{"model-repository"}})
	load := func(name, body string) string {
		code, text := ask(t, "POST", hs.URL+"/v2/repository/models/"+name+"/load", body)
		return fmt.Sprint(code, " ", text)
	}
	expect := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) || (want == "" && got != "") {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	expect("index", index(t, hs.URL), "m/1 READY, other/")
	expect("answer", answerOf(t, hs.URL, "m"), "2")
	expect("not loaded", answerOf(t, hs.URL, "other"), "404")

	writeProgram(t, dir, "m", 2, "3")
	expect("load", load("m", "{}"), "200")
	expect("the highest version is served", answerOf(t, hs.URL, "m"), "3")
	expect("the one before is not", answerOf(t, hs.URL, "m/versions/1"), "404")

	writeProgram(t, dir, "m", 3, "broken(")
	expect("a load that fails", load("m", ""), `load model \"m\" version 3`)
	expect("keeps what was", answerOf(t, hs.URL, "m"), "3")
	expect("and says so", index(t, hs.URL), "m/2 READY, m/3 UNAVAILABLE")

	all := `{"parameters":{"config":"{\"version_policy\":{\"all\":{}}}"}}`
	expect("version 3 is still broken", load("m", all), "version 3")
	expect("but 1 is served", answerOf(t, hs.URL, "m/versions/1"), "2")
	writeProgram(t, dir, "m", 3, "5")
	expect("mended", load("m", all), "200")
	expect("all versions", answerOf(t, hs.URL, "m/versions/1")+answerOf(t, hs.URL, "m/versions/2")+answerOf(t, hs.URL, "m/versions/3"), "235")
	_, meta := ask(t, "GET", hs.URL+"/v2/models/m", "")
	expect("metadata", meta, `"versions":["1","2","3"]`)

	for body, want := range map[string]string{
		`{"parameters":{"config":"{\"optimization\":{\"priority\":1}}"}}`:                        "501 {\"error\":\"load model \\\"m\\\": optimization is not supported",
		`{"parameters":{"config":"{\"dynamic_batching\":{\"preserve_ordering\":true}}"}}`:        "dynamic_batching.preserve_ordering is not supported",
		`{"parameters":{"config":"{\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_INT8\"}]}"}}`: "the configuration says TYPE_INT8, the model takes FP32",
		`{"parameters":{"config":"{\"backend\":\"tensorrt\"}"}}`:                                 "backend",
		`{"parameters":{"config":"nonsense"}}`:                                                   "parameter config",
		`{"parameters":{"file:1/model.pt2":"abc"}}`:                                              "501",
	} {
		expect(body, load("m", body), want)
	}
	expect("still there", answerOf(t, hs.URL, "m"), "5")
	for _, name := range []string{"nobody", "..%2Fm", "%2E%2E"} {
		expect(name, load(name, ""), "404")
	}
	code, text := ask(t, "POST", hs.URL+"/v2/repository/models/m/unload", "")
	expect("unload", fmt.Sprint(code, text), "200")
	expect("gone", answerOf(t, hs.URL, "m"), "404")
	code, text = ask(t, "POST", hs.URL+"/v2/repository/models/m/unload", "")
	expect("twice", fmt.Sprint(code, text), "404")
	expect("load again", load("m", ""), "200")
}

// The configuration of a folder: names, bounds of the queue, policies.
func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	writeProgram(t, dir, "m", 4, "4")
	writeFile(t, filepath.Join(dir, "m", "config.pbtxt"), `
name: "m"
max_batch_size: 4
input [{ name: "numbers" data_type: TYPE_FP32 dims: [2] }]
output [{ name: "doubled" data_type: TYPE_FP32 dims: [2] }]
version_policy { specific { versions: [1] } }
instance_group [{ count: 1 kind: KIND_CPU }]
dynamic_batching { max_queue_delay_microseconds: 100 priority_levels: 2 default_priority_level: 2 }
`)
	hs := start(t, Options{Models: dir})
	code, text := ask(t, "POST", hs.URL+"/v2/models/m/infer", `{"parameters":{"priority":1,"timeout":1000000},"inputs":[{"name":"numbers","shape":[1,2],"datatype":"FP32","data":[1,2]}],"outputs":[{"name":"doubled"}]}`)
	if code != 200 || !strings.Contains(text, `"name":"doubled","datatype":"FP32","shape":[1,2],"data":[2,4]`) {
		t.Error(code, text)
	}
	code, text = ask(t, "POST", hs.URL+"/v2/models/m/infer", `{"parameters":{"priority":9},"inputs":[{"name":"numbers","shape":[1,2],"datatype":"FP32","data":[1,2]}]}`)
	if code != 400 || !strings.Contains(text, "levels 1 to 2") {
		t.Error(code, text)
	}
	_, text = ask(t, "GET", hs.URL+"/v2/models/m/config", "")
	for _, want := range []string{`"max_batch_size":4`, `"dims":[2]`, `"name":"numbers"`, `"max_queue_delay_microseconds":100`, `"versions":[1]`, `"priority_levels":2`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s has no %s", text, want)
		}
	}
	_, text = ask(t, "GET", hs.URL+"/v2/models/m/stats", "")
	for _, want := range []string{`"inference_count":1`, `"execution_count":1`, `"batch_size":1`, `"fail":{"count":1`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s has no %s", text, want)
		}
	}
	_, text = ask(t, "GET", hs.URL+"/metrics", "")
	for _, want := range []string{`loris_rows_total{model="m",version="1"} 1`, `loris_ready 1`, `loris_requests_failed_total{model="m",version="1",kind="invalid_argument"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics have no %s", want)
		}
	}
}

// Mode poll takes what is complete, follows links, and drops what is gone.
func TestPoll(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	writeProgram(t, store, "a", 1, "2")
	writeProgram(t, store, "b", 1, "3")
	link := filepath.Join(dir, "m")
	point := func(to string) {
		t.Helper()
		if err := os.Symlink(filepath.Join(store, to), link+".new"); err != nil {
			t.Skip(err) // not every system has them
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	point("a")
	s, err := New(Options{Models: dir, Mode: ModePoll})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.repository.Poll(ctx, 2*time.Millisecond); close(done) }()
	defer func() { stop(); <-done }()
	until := func(what string, good func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !good(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it does not happen: ", what)
			}
		}
	}
	value := func() string {
		r := &inference.Request{Model: "m", Inputs: []inference.Tensor{{Name: "x", Datatype: inference.Int8}}}
		_, err := s.repository.Infer(t.Context(), r)
		m, merr := s.repository.ModelMetadata("m", "")
		if merr != nil {
			return "none"
		}
		return fmt.Sprint(m.Versions, err != nil)
	}
	until("loaded", func() bool { return value() == "[1] true" })
	writeProgram(t, store, "b", 2, "5")
	point("b")
	until("the link leads elsewhere", func() bool { return value() == "[2] true" })
	writeProgram(t, store, "b", 3, "broken(")
	until("a failure is told", func() bool {
		all, _ := s.repository.Index(false)
		for _, e := range all {
			if e.Version == "3" && e.State == inference.StateUnavailable && e.Reason != "" {
				return value() == "[2] true"
			}
		}
		return false
	})
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	until("gone", func() bool { return value() == "none" })
}

// Requests that come while versions are exchanged are answered by one or the other.
func TestReloadUnderLoad(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	hs := start(t, Options{Models: dir, Allow: []string{"model-repository"}})
	var stop atomic.Bool
	var answers, second atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				switch got := answerOf(t, hs.URL, "m"); got {
				case "2":
				case "3":
					second.Add(1)
				default:
					t.Error("got ", got)
					return
				}
				answers.Add(1)
			}
		})
	}
	for i := range 20 {
		writeProgram(t, dir, "m", 1, fmt.Sprint(2+(i+1)%2))
		if err := os.Chtimes(filepath.Join(dir, "m", "1", "model.lir"), time.Time{}, time.Unix(int64(1e9+i), 0)); err != nil {
			t.Fatal(err)
		}
		if code, text := ask(t, "POST", hs.URL+"/v2/repository/models/m/load", ""); code != 200 {
			t.Fatal(code, text)
		}
	}
	stop.Store(true)
	wg.Wait()
	if answers.Load() == 0 || second.Load() == 0 {
		t.Errorf("%d answers, %d of the other version", answers.Load(), second.Load())
	}
}

func TestDigests(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	s, err := New(Options{Models: dir, AllowDigests: []string{strings.Repeat("00", 32)}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	err = s.Load(t.Context())
	if err == nil || !strings.Contains(err.Error(), "which is not allowed") {
		t.Fatal(err)
	}
	_, sum, _ := strings.Cut(err.Error(), "sha256 ")
	sum, _, _ = strings.Cut(sum, ",")
	s2, err := New(Options{Models: dir, AllowDigests: []string{sum}})
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close(context.Background())
	if err := s2.Load(t.Context()); err != nil {
		t.Error(err)
	}
}

// A folder that is one model by itself: its file, or its versions.
func TestModelName(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "versions", 3, "2")
	writeProgram(t, dir, "file", 1, "4")
	for sub, want := range map[string]string{"versions": "2", "file/1": "4"} {
		hs := start(t, Options{Models: filepath.Join(dir, filepath.FromSlash(sub)), ModelName: "m"})
		if got := answerOf(t, hs.URL, "m"); got != want {
			t.Errorf("%s: %s, want %s", sub, got, want)
		}
	}
	hs := start(t, Options{Models: dir, ModelName: "m", KeepGoing: true, Mode: ModeExplicit, Load: []string{"versions"}})
	if got := answerOf(t, hs.URL, "versions"); got != "2" {
		t.Errorf("a folder of models: %s", got)
	}
}
