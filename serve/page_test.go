package serve

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// The page is there for everybody, with a policy that lets nothing else in; its numbers need their
// scopes, and end with the server.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	s, err := New(Options{Models: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	hs := startServer(t, s)
	for path, want := range map[string]string{
		"/": "text/html", "/page/app.js": "text/javascript", "/page/style.css": "text/css", "/page/uplot.js": "text/javascript", "/page/icon.svg": "image/svg+xml",
	} {
		resp, err := http.Get(hs.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if h := resp.Header; resp.StatusCode != 200 || !strings.HasPrefix(h.Get("Content-Type"), want) || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %v", path, resp.StatusCode, h)
		}
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{{"POST", "/", 405}, {"GET", "/page/nothing.js", 404}, {"GET", "/page/../server.go", 404}, {"GET", "/other", 404}} {
		if code, text := ask(t, c.method, hs.URL+c.path, ""); code != c.want {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, text)
		}
	}
	resp, err := http.Get(hs.URL + "/page/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() (e struct {
		Ready  bool
		Models []struct {
			Name, State string
			Total       int
			Rate, P50   float64
			Batches     map[string]int
		}
	}) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(text), &e); err != nil {
					t.Fatal(err)
				}
				return e
			}
		}
		t.Fatal("the stream ended: ", lines.Err())
		return e
	}
	if e := next(); !e.Ready || len(e.Models) != 1 || e.Models[0].Name != "m" || e.Models[0].State != "READY" || e.Models[0].Total != 0 {
		t.Errorf("%+v", e)
	}
	if got := answerOf(t, hs.URL, "m"); got != "2" {
		t.Fatal(got)
	}
	for e := next(); ; e = next() {
		if m := e.Models[0]; m.Total == 1 {
			if m.Rate <= 0 || m.P50 <= 0 || m.Batches["1"] != 1 {
				t.Errorf("%+v", m)
			}
			break
		}
	}
	s.repository.Stop()
	for lines.Scan() { // until the server ends it
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	_, text := ask(t, "GET", hs.URL+"/page/models/m/versions/1", "")
	if !strings.Contains(text, `"files":[{"name":"model.lir","bytes":92,"sha256":"`) || strings.Contains(text, `"changed"`) || !strings.Contains(text, `"inputs":[{"name":"x","datatype":"FP32","shape":"[4, 2]"}]`) {
		t.Error(text)
	}
	for path, want := range map[string]int{"/page/models/m/versions/2": 404, "/page/models/none/versions/1": 404} {
		if code, text := ask(t, "GET", hs.URL+path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	without := start(t, Options{Models: dir, NoPage: true})
	for _, path := range []string{"/", "/page/events"} {
		if code, _ := ask(t, "GET", without.URL+path, ""); code != 404 {
			t.Errorf("without a page %s: %d", path, code)
		}
	}
}
