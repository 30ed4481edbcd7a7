package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/safetensors"
)

// small is a quick run: 4 steps an epoch, the last of 237 images.
func small() Config {
	c := Defaults()
	c.Epochs, c.Batch, c.Hidden = 5, 400, []int{16}
	return c
}

func newTrainer(t *testing.T, c Config) *Trainer {
	t.Helper()
	tr, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tr
}

func runEpoch(t *testing.T, tr *Trainer) Epoch {
	t.Helper()
	e, err := tr.RunEpoch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLearns(t *testing.T) {
	c := Defaults()
	c.Epochs = 20
	tr := newTrainer(t, c)
	var e Epoch
	for range c.Epochs {
		e = runEpoch(t, tr)
	}
	if e.Test.Accuracy < 0.97 || e.Test.Right != int(math.Round(360*e.Test.Accuracy)) || e.Test.Images != 360 {
		t.Errorf("%d of %d test images right, accuracy %v", e.Test.Right, e.Test.Images, e.Test.Accuracy)
	}
	right := 0
	for label, row := range e.Test.Confusion {
		sum := 0
		for _, n := range row {
			sum += n
		}
		if sum != 36 {
			t.Errorf("%d images of a %d", sum, label)
		}
		right += row[label]
	}
	if right != e.Test.Right {
		t.Errorf("%d on the diagonal, %d right", right, e.Test.Right)
	}
	if e.Number != 20 || e.TrainLoss > 0.2 || e.TrainAccuracy < 0.95 || e.LR >= c.LR/100 || e.Time <= 0 {
		t.Errorf("last epoch %+v", e)
	}
}

// TestCompilesOncePerGraph counts: initial values, step, last step, evaluation.
func TestCompilesOncePerGraph(t *testing.T) {
	tr := newTrainer(t, small())
	const graphs = 4
	var second Usage
	for epoch := 1; epoch <= 5; epoch++ {
		runEpoch(t, tr)
		syncs := 1 + epoch*(tr.StepsPerEpoch()+1)
		if r := tr.Report(); r.Compiles != graphs || r.CachedHits != int64(syncs-graphs) {
			t.Errorf("after epoch %d: %d compiles and %d cached hits, want %d and %d\n%v", epoch, r.Compiles, r.CachedHits, graphs, syncs-graphs, r)
		}
		switch {
		case epoch == 2:
			second = tr.Usage()
		case epoch > 2:
			u := tr.Usage()
			for range 100 { // the collector may have more to do
				if u == second {
					break
				}
				time.Sleep(10 * time.Millisecond)
				u = tr.Usage()
			}
			if u != second {
				t.Errorf("after epoch %d: %+v in use, after epoch 2: %+v", epoch, u, second)
			}
		}
	}
	if r := tr.Report(); r.CarriedAcrossSteps != 0 || r.Trims != 0 {
		t.Errorf("%v", r)
	}
}

func TestBackendsAgree(t *testing.T) {
	c := small()
	c.Hidden = []int{4}
	var want []float64
	for _, device := range []loris.Device{{}, loris.Ref} {
		c.Device = device
		tr := newTrainer(t, c)
		var got []float64
		for range 2 {
			e := runEpoch(t, tr)
			got = append(got, e.TrainLoss, e.Test.Loss)
		}
		if want == nil {
			want = got
		}
		for i := range got {
			if math.Abs(got[i]-want[i]) > 1e-4 {
				t.Errorf("losses %v on %v, %v on the first", got, device, want)
			}
		}
	}
}

// TestResume stops in the middle of an epoch and goes on in another session.
func TestResume(t *testing.T) {
	whole := newTrainer(t, small())
	for range 3 {
		runEpoch(t, whole)
	}
	want := weights(t, whole)

	first := newTrainer(t, small())
	runEpoch(t, first)
	ctx, cancel := context.WithCancel(t.Context())
	first.Progress = func(step, steps int) {
		if step == 2 && steps == 4 {
			cancel()
		}
	}
	if _, err := first.RunEpoch(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted epoch gives %v", err)
	}
	path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	if err := first.SaveCheckpoint(t.Context(), path); err != nil {
		t.Fatal(err)
	}

	c, err := ReadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	second := newTrainer(t, c)
	if err := second.LoadCheckpoint(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	for epoch := 2; epoch <= 3; epoch++ {
		if e := runEpoch(t, second); e.Number != epoch {
			t.Errorf("epoch %d, want %d", e.Number, epoch)
		}
	}
	if got := weights(t, second); !slices.Equal(got, want) {
		t.Error("training after a resumption differs from training without")
	}
	if got := weights(t, first); slices.Equal(got, want) {
		t.Error("the weights of a third of the training are those of all")
	}
}

func weights(t *testing.T, tr *Trainer) []float32 {
	t.Helper()
	var all []float32
	for _, v := range tr.model.Params() {
		w, err := v.Value().Float32s(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w...)
	}
	return all
}

func TestWeightsFile(t *testing.T) {
	tr := newTrainer(t, small())
	e := runEpoch(t, tr)
	path := filepath.Join(t.TempDir(), "digits.safetensors")
	if err := tr.SaveWeights(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	s, err := loris.New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	m, err := LoadModel(t.Context(), path, s.With())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range m.Params() {
		names = append(names, name)
	}
	if want := []string{"0.weight", "0.bias", "2.weight", "2.bias"}; !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
	classes, err := m.Forward(s.With().FromSlice(tr.test.Pixels, 360, 64)).Argmax(loris.Dim(1)).Int64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i, label := range tr.test.Labels {
		if classes[i] == label {
			right++
		}
	}
	if right != e.Test.Right {
		t.Errorf("%d right with the file's weights, %d before", right, e.Test.Right)
	}
}

func TestNoHiddenLayerNoDropout(t *testing.T) {
	c := small()
	c.Hidden, c.Dropout = nil, 0
	tr := newTrainer(t, c)
	if n := tr.Parameters(); n != 650 {
		t.Errorf("%d parameters", n)
	}
	if e := runEpoch(t, tr); math.IsNaN(e.TrainLoss) {
		t.Errorf("%+v", e)
	}
}

func TestBadSettings(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"epochs is 0":        func(c *Config) { c.Epochs = 0 },
		"batch size is -1":   func(c *Config) { c.Batch = -1 },
		"learning rate is 0": func(c *Config) { c.LR = 0 },
		"dropout is 1":       func(c *Config) { c.Dropout = 1 },
		"hidden layers are [8 0]": func(c *Config) {
			c.Hidden = []int{8, 0}
		},
		"device error": func(c *Config) { c.Device = loris.Device{Type: 99} },
	} {
		c := Defaults()
		change(&c)
		if _, err := New(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, meta map[string]string) string {
		path := filepath.Join(dir, name)
		m := new(nn.Base)
		if err := nn.Save(t.Context(), path, m, meta); err != nil {
			t.Fatal(err)
		}
		return path
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	layers := func(hidden string) map[string]string {
		return map[string]string{metaConfig: `{"epochs":1,"batch":1,"lr":1,"hidden":[` + hidden + `]}`}
	}
	wide := filepath.Join(dir, "wide")
	if err := safetensors.WriteFile(wide, []safetensors.Tensor{
		{Name: "0.weight", DType: "F32", Shape: []int64{1, 64}, Data: make([]byte, 256)},
	}, layers("4611686018427387904")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		wide: `has 4611686018427387904 units of 64 inputs, but its weights "0.weight" are [1 64]`,
		save("deep", layers("1"+strings.Repeat(",1", 200_000))): `200001 hidden layers, but no weights "0.weight"`,
		filepath.Join(dir, "none"):                              "no such file",
		garbage:                                                 "malformed file",
		save("other", nil):                                      "not weights of the digits example",
		save("json", map[string]string{metaConfig: "{"}):        "unexpected end of JSON",
		save("values", map[string]string{metaConfig: `{"epochs":1}`}): "batch size is 0",
	} {
		if _, err := ReadConfig(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	path := filepath.Join(dir, "w")
	tr := newTrainer(t, small())
	if err := tr.SaveWeights(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := tr.LoadCheckpoint(t.Context(), path); err == nil {
		t.Error("weights were taken for a checkpoint")
	}
	c := small()
	c.Hidden = []int{17}
	if err := tr.SaveCheckpoint(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := newTrainer(t, c).LoadCheckpoint(t.Context(), path); !errors.Is(err, nn.ErrMismatch) {
		t.Errorf("a checkpoint of other hidden layers: %v", err)
	}
}
