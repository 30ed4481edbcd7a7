package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/commandtest"
	"github.com/loris-ml/loris/cmd/loris/internal/tensors"
)

// quick are flags of a training that takes no time: 4 steps an epoch.
var quick = []string{"--batch", "400", "--hidden", "16"}

func trainArgs(dir string, args ...string) []string {
	return append(append([]string{"train", "digits", "--out", dir}, quick...), args...)
}

// jsonLines decodes each line into an object.
func jsonLines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(text) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, o)
	}
	return out
}

func checkFiles(t *testing.T, dir string) {
	t.Helper()
	w, meta, err := tensors.ReadFile(filepath.Join(dir, "digits.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if s := w["0.weight"].Shape.String(); len(w) != 4 || s != "f32[16,64]" || meta["format"] != "pt" {
		t.Errorf("%d tensors, 0.weight %s, metadata %v", len(w), s, meta)
	}
	f, err := os.Open(filepath.Join(dir, "digits.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := png.Decode(f); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoint.safetensors")); err != nil {
		t.Error(err)
	}
}

func TestTrainJSON(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "out")
	lines := jsonLines(t, succeed(t, trainArgs(dir, "--epochs", "2", "--json", "--report")...))
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	start, last := lines[0], lines[3]
	if start["event"] != "start" || start["train_images"] != 1437.0 || start["test_images"] != 360.0 || start["parameters"] != 1210.0 {
		t.Errorf("%v", start)
	}
	for i, e := range lines[1:3] {
		if e["event"] != "epoch" || e["epoch"] != float64(i+1) || e["compiles"] != 4.0 || e["cached_hits"] != float64(1+(i+1)*5-4) {
			t.Errorf("%v", e)
		}
		for _, key := range []string{"train_loss", "train_accuracy", "test_loss", "test_accuracy", "lr", "seconds", "live_tensors", "memory_bytes"} {
			if v, ok := e[key].(float64); !ok || v <= 0 {
				t.Errorf("%s is %v", key, e[key])
			}
		}
	}
	if last["event"] != "done" || last["interrupted"] != false || last["epochs"] != 2.0 || last["compiles"] != 4.0 ||
		last["cached_hits"] != 7.0 || last["test_accuracy"] != lines[2]["test_accuracy"] || !(last["seconds"].(float64) > 0) {
		t.Errorf("%v", last)
	}
	if graphs := last["report"].(map[string]any)["graphs"].([]any); len(graphs) != 4 {
		t.Errorf("%d graphs are reported", len(graphs))
	}
	checkFiles(t, dir)
}

func TestTrainText(t *testing.T) {
	dir := t.TempDir()
	text := succeed(t, trainArgs(dir, "--epochs", "3", "--report", "--device", "ref", "--dropout", "0")...)
	for _, want := range []string{
		"perceptron 64-16-10 (1210 parameters) on ref:0: 1437 training and 360 test images, batches of 400\n",
		"\nepoch 1/3  training: loss ", "\nepoch 3/3  training: loss ",
		"\ntest accuracy ", " after 3 epochs, ",
		"\n4 graphs compiled, once each; 12 times the cache had the graph\n",
		"\non ref:0 after each epoch from the second on: ",
		"steps 13, runs 16, compiles 4, cached hits 12\n",
		"wrote " + filepath.Join(dir, "digits.safetensors") + ", ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	checkFiles(t, dir)
}

// interrupter cancels once the first epoch is printed.
type interrupter struct {
	bytes.Buffer
	cancel context.CancelFunc
}

func (w *interrupter) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`"epoch":1,`)) {
		w.cancel()
	}
	return w.Buffer.Write(b)
}

func TestTrainInterruptAndResume(t *testing.T) {
	whole := jsonLines(t, succeed(t, trainArgs(t.TempDir(), "--epochs", "3", "--json")...))

	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errOut := &interrupter{cancel: cancel}, new(bytes.Buffer)
	code := command.Main(ctx, NewRoot(Rest{}), trainArgs(dir, "--epochs", "3", "--json"), strings.NewReader(""), out, errOut)
	checkpoint := filepath.Join(dir, "checkpoint.safetensors")
	if want := "interrupted in epoch 2: resume by --resume " + checkpoint + "\n"; code != command.ExitInterrupted || errOut.String() != want {
		t.Errorf("exit code %d, error %q, want %q", code, errOut, want)
	}
	lines := jsonLines(t, out.String())
	if last := lines[len(lines)-1]; len(lines) != 3 || last["interrupted"] != true || last["epochs"] != 1.0 || last["test_accuracy"] != lines[1]["test_accuracy"] {
		t.Errorf("%d lines, the last %v", len(lines), last)
	}
	checkFiles(t, dir)

	// The settings come from the checkpoint, the epochs too.
	again := jsonLines(t, succeed(t, "train", "digits", "--resume", checkpoint, "--out", dir, "--json"))
	if len(again) != 4 || again[0]["epochs_done"] != 1.0 {
		t.Fatalf("%d lines, the first %v", len(again), again[0])
	}
	for i := 1; i <= 2; i++ {
		if a, w := again[i], whole[i+1]; a["epoch"] != w["epoch"] || a["train_loss"] != w["train_loss"] || a["test_loss"] != w["test_loss"] {
			t.Errorf("after the resumption %v\nwithout it %v", a, w)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--resume", checkpoint}, command.ExitError, "all of 3 epochs are done: give more by --epochs"},
		{[]string{"--resume", checkpoint, "--batch", "9"}, command.ExitUsage, "--batch is the checkpoint's"},
		{[]string{"--resume", filepath.Join(dir, "digits.safetensors")}, command.ExitError, "not the expected checkpoint"},
	} {
		code, _, errOut := invoke(t, "", append([]string{"train", "digits", "--out", dir}, c.args...)...)
		if code != c.code || !strings.Contains(errOut, c.want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit code %d, error %q", c.args, code, errOut)
		}
	}
}

func TestTrainDiverges(t *testing.T) {
	lines := jsonLines(t, succeed(t, trainArgs(t.TempDir(), "--epochs", "2", "--lr", "1e30", "--json")...))
	if last := lines[len(lines)-1]; last["test_loss"] != nil {
		t.Errorf("test loss %v", last["test_loss"])
	}
}

func TestTrainErrors(t *testing.T) {
	file := commandtest.Write(t, "file", "")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"train", "letters"}, command.ExitUsage, `unknown data set "letters": there is digits`},
		{[]string{"train", "digits", "--epochs", "0"}, command.ExitError, "number of epochs is 0"},
		{[]string{"train", "digits", "--hidden", "a"}, command.ExitUsage, "--hidden"},
		{[]string{"train", "digits", "--device", "abacus"}, command.ExitError, "device error"},
		{[]string{"train", "digits", "--out", filepath.Join(file, "x")}, command.ExitError, "not a directory"},
		{[]string{"train", "digits", "--resume", "nowhere"}, command.ExitError, "no such file"},
		{[]string{"train", "digits", "--resume", file}, command.ExitError, "malformed file"},
		{[]string{"predict", "digits"}, command.ExitUsage, "--weights is missing"},
		{[]string{"predict", "digits", "--weights", file}, command.ExitError, "malformed file"},
		{[]string{"predict", "digits", "--weights", file, "--image", "360"}, command.ExitError, "there is no test image 360: they are 0 to 359"},
	} {
		code, out, errOut := invoke(t, "", c.args...)
		if code != c.code || out != "" || !strings.Contains(errOut, c.want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit code %d, output %q, error %q, want %q", c.args, code, out, errOut, c.want)
		}
	}
}

func TestPredict(t *testing.T) {
	dir := t.TempDir()
	lines := jsonLines(t, succeed(t, trainArgs(dir, "--epochs", "6", "--json")...))
	right := lines[len(lines)-1]["right"].(float64)
	weights := filepath.Join(dir, "digits.safetensors")
	for _, device := range []string{"cpu", "ref"} {
		var all []prediction
		if err := json.Unmarshal([]byte(succeed(t, "predict", "digits", "--weights", weights, "--json", "--device", device)), &all); err != nil {
			t.Fatal(err)
		}
		n := 0.0
		for _, p := range all {
			sum := 0.0
			for _, x := range p.Probabilities {
				sum += float64(x)
			}
			if math.Abs(sum-1) > 1e-5 {
				t.Errorf("image %d: probabilities add to %v", p.Image, sum)
			}
			if p.Predicted == p.Label {
				n++
			}
		}
		if len(all) != 360 || n != right {
			t.Errorf("%s: %v of %d right, %v while training", device, n, len(all), right)
		}
	}
	if text := succeed(t, "predict", "digits", "--weights", weights); strings.Count(text, "read as a") != 360-int(right) {
		t.Errorf("%v right, the others\n%s", right, text)
	}
	image := succeed(t, "predict", "digits", "--weights", weights, "--image", "1")
	if lines := strings.Split(image, "\n"); len(lines) != 13 || len(lines[0]) != 16 || lines[11] != "test image 1 is a 1" {
		t.Errorf("image:\n%s", image)
	}
}
