package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestQueriesOfDeployAskForMetrics holds the queries of the dashboard and of the example for scaling
// against the metrics of a server that has answered and refused a request: names and labels.
func TestQueriesOfDeployAskForMetrics(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "scale", 1, "2")
	hs := start(t, Options{Models: dir})
	for name, want := range map[string]int{"x": http.StatusOK, "z": http.StatusBadRequest} {
		body := fmt.Sprintf(`{"inputs":[{"name":%q,"shape":[1,2],"datatype":"FP32","data":[1,2]}]}`, name)
		if status, text := ask(t, "POST", hs.URL+"/v2/models/scale/infer", body); status != want {
			t.Fatal(status, text)
		}
	}
	_, page := ask(t, "GET", hs.URL+"/metrics", "")
	labels := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^(loris_\w+)(?:\{(.*)\})? `).FindAllStringSubmatch(page, -1) {
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
			labels[m[1]] = append(labels[m[1]], l[1])
		}
		labels[m[1]] = append(labels[m[1]], "")
	}
	queries := dashboard(t)
	scaling, err := os.ReadFile("../deploy/kserve/keda.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(string(scaling), "query: ")
	query, _, _ = strings.Cut(query, "\n")
	for _, q := range append(queries, query) {
		names := regexp.MustCompile(`loris_\w+`).FindAllString(q, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for nothing of Loris", q)
		}
		for _, name := range names {
			if labels[name] == nil {
				t.Errorf("%s: there is no metric %s", q, name)
			}
			for _, l := range append(regexp.MustCompile(`(\w+)=~?"`).FindAllStringSubmatch(q, -1), regexp.MustCompile(`by \((\w+)`).FindAllStringSubmatch(q, -1)...) {
				if !slices.Contains(labels[name], l[1]) {
					t.Errorf("%s: %s has no label %s", q, name, l[1])
				}
			}
		}
	}
}

// dashboard returns the queries of the dashboard.
func dashboard(t *testing.T) (all []string) {
	text, err := os.ReadFile("../deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
		for _, q := range p.Targets {
			all = append(all, q.Expr)
		}
	}
	return all
}

// TestUnit has systemd check the unit, whose program is this one here.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd's own check of units (Debian's package systemd) is not here")
	}
	unit, err := os.ReadFile("../deploy/loris.service")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const program = "/usr/local/bin/loris"
	if !strings.Contains(string(unit), "ExecStart="+program+" serve ") {
		t.Fatalf("the unit does not start %s serve", program)
	}
	file := filepath.Join(t.TempDir(), "loris.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(unit), program, self)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || len(out) > 0 { // what it does not know is said, but no failure
		t.Errorf("%v: %s", err, out)
	}
}
