package cli

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/commandtest"
	"github.com/loris-ml/loris/internal/ir"
)

var update = flag.Bool("update", false, "write the golden files")

func invoke(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return commandtest.Invoke(t, NewRoot(Rest{}), stdin, args...)
}

func succeed(t *testing.T, args ...string) string {
	t.Helper()
	return commandtest.Succeed(t, NewRoot(Rest{}), args...)
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"fly"}, `loris: unknown command "fly" for "loris" (see loris --help)`},
		{[]string{"dump", "a.lir", "--format", "svg"}, `loris: --format is "svg": the formats are text, dot, json (see loris dump --help)`},
		{[]string{"ops", "sum", "prod"}, "loris: accepts at most 1 arg(s), received 2 (see loris ops --help)"},
		{[]string{"devices", "cpu"}, `loris: unknown command "cpu" for "loris devices" (see loris devices --help)`},
	} {
		code, out, errOut := invoke(t, "", c.args...)
		if code != command.ExitUsage || out != "" || errOut != c.want+"\n" {
			t.Errorf("%v: exit code %d, output %q, error\n%swant\n%s", c.args, code, out, errOut, c.want)
		}
	}
}

func TestOpsGolden(t *testing.T) {
	for name, ref := range map[string]string{"matmul": "kernel", "softmax": "composite", "argmax": "kernel", "topk": "composite"} {
		text, backends, _ := strings.Cut(succeed(t, "ops", name), "backends  ")
		golden(t, "ops_"+name+".txt", text)
		if !strings.Contains(backends, "ref: "+ref) { // the other backends vary with the build
			t.Errorf("%s: backends %q", name, backends)
		}
	}
}

func TestOpsTable(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(succeed(t, "ops")), "\n")
	if len(lines) != len(ir.Ops())+1 {
		t.Errorf("%d lines for %d ops", len(lines), len(ir.Ops()))
	}
	var infos []opInfo
	if err := json.Unmarshal([]byte(succeed(t, "ops", "--json")), &infos); err != nil {
		t.Fatal(err)
	}
	if len(infos) != len(ir.Ops()) {
		t.Errorf("%d objects for %d ops", len(infos), len(ir.Ops()))
	}
	for i, o := range infos {
		if !strings.HasPrefix(lines[i+1], o.Name+" ") || !strings.HasSuffix(lines[i+1], o.Schema) {
			t.Errorf("line %q is not that of %s", lines[i+1], o.Name)
		}
		if o.Gradient == (o.NoGradient != "") {
			t.Errorf("%s: gradient %v, reason for none %q", o.Name, o.Gradient, o.NoGradient)
		}
		if how := o.Backends["ref"]; how != "kernel" && how != "composite" {
			t.Errorf("%s: %q on ref", o.Name, how)
		}
		if _, ok := o.Backends["null"]; ok {
			t.Errorf("%s: listed as computed by a backend that computes nothing", o.Name)
		}
	}
}

func TestOpsUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"softmaxx": `loris: there is no op "softmaxx"; there is softmax` + "\n",
		"qqq":      `loris: there is no op "qqq"; loris ops lists all` + "\n",
	} {
		code, _, errOut := invoke(t, "", "ops", name)
		if code != command.ExitError || errOut != want {
			t.Errorf("ops %s: exit code %d, error %q, want %q", name, code, errOut, want)
		}
	}
}

func TestDevices(t *testing.T) {
	text := succeed(t, "devices")
	var list []deviceInfo
	if err := json.Unmarshal([]byte(succeed(t, "devices", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range list {
		found = found || d == deviceInfo{Device: "ref:0", Backend: "ref-1", MemoryInUse: d.MemoryInUse}
		if !strings.Contains(text, d.Device+" ") {
			t.Errorf("%s is not in\n%s", d.Device, text)
		}
	}
	if !found {
		t.Errorf("no ref:0 in %+v", list)
	}
	// Whether there are GPUs depends on the machine; that there is an answer not.
	if i := slices.IndexFunc(list, func(d deviceInfo) bool { return strings.HasPrefix(d.Device, "cuda") }); i < 0 || (list[i].Error == "") == (list[i].State == "") {
		t.Errorf("no answer about GPUs in %+v", list)
	}
}

func TestVersion(t *testing.T) {
	var v versionInfo
	if err := json.Unmarshal([]byte(succeed(t, "version", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version == "" || !strings.HasPrefix(v.Go, "go1.") || v.Backends["ref"] != "ref-1" {
		t.Errorf("%+v", v)
	}
	if text := succeed(t, "version"); !strings.Contains(text, v.Go) || !strings.Contains(text, v.Version) {
		t.Errorf("%s without %s or %s", text, v.Go, v.Version)
	}
}

func TestCompletion(t *testing.T) {
	if out := succeed(t, "completion", "bash"); !strings.Contains(out, "complete -o default") {
		t.Error("no bash completion")
	}
	if out := succeed(t, "__complete", "ops", "softm"); !strings.Contains(out, "softmax\n") {
		t.Errorf("no softmax in %q", out)
	}
	if out := succeed(t, "__complete", "run", "--device", ""); !strings.Contains(out, "ref\n") {
		t.Errorf("no ref in %q", out)
	}
}

// What comes from files and their names is not obeyed by the terminal.
func TestOutputIsEscaped(t *testing.T) {
	code, out, errOut := invoke(t, "", "aoti", "inspect", "no\x1b[2J\u009bfile")
	if code != command.ExitError || out != "" || strings.ContainsAny(errOut, "\x1b\u009b") || !strings.Contains(errOut, `no\u001b[2J\u009bfile`) {
		t.Errorf("exit code %d, %q, %q", code, out, errOut)
	}
}
